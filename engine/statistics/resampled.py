"""Between what another sample as large as a given one has a statistic, in 19 of 20 cases.

The difference of two samples has twice the variance of one, so that the ranges are wider than confidence intervals.
"""

from __future__ import annotations

import math

import numpy as np

from ..data.arrays import Floats

WIDTH = 1.96 * math.sqrt(2)
"""Standard errors up to which two samples of one distribution differ in 19 of 20 cases."""


def resampled_quantile(values: Floats, q: float) -> tuple[float, float]:
    """Return the range of the q quantile of another sample of the distribution of values (n,), by their order alone."""
    n = len(values)
    # the share of the other sample below a value is binomial, whatever the distribution
    error = WIDTH * math.sqrt(q * (1 - q) * n)
    places = [min(n - 1, max(0, place)) for place in (math.floor(q * n - error), math.ceil(q * n + error))]
    low, high = np.partition(values, places)[places].tolist()
    return low, high


def resampled_sd(values: Floats) -> tuple[float, float]:
    """Return the range of the standard deviation of another sample of the distribution of values (n,), n at least 2, by
    their fourth moment.
    """
    sd = float(values.std(ddof=1))
    if not sd:
        return sd, sd
    kurtosis = float((((values - values.mean()) / sd) ** 4).mean())
    error = WIDTH * sd * math.sqrt(max(0.0, kurtosis - 1) / (4 * len(values)))
    return sd - error, sd + error
