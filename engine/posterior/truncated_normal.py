"""Draws from normal distributions truncated to intervals, by inversion in logarithms: exact in both tails."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

__all__ = ["truncated_normal"]

Floats = NDArray[np.float64]


def truncated_normal(mean: Floats, sd: Floats | float, lower: float, upper: float, rng: np.random.Generator) -> Floats:
    """One draw from each Normal(mean, sd^2) restricted to [lower, upper], (n,); either end may be infinite.

    A uniform share u of the interval's probability is solved for z from log(Phi(a) + u (Phi(b) - Phi(a))). An interval
    above the mean is reflected below it, where the logarithm of the cdf keeps its accuracy however far out it lies.
    """
    u = rng.random(len(mean))
    a, b = (lower - mean) / sd, (upper - mean) / sd
    above = a > 0
    low, high = np.where(above, -b, a), np.where(above, -a, b)
    top = log_ndtr(high)
    z = ndtri_exp(top + np.log(u + (1 - u) * np.exp(log_ndtr(low) - top)))
    return np.asarray(np.clip(mean + sd * np.where(above, -z, z), lower, upper))
