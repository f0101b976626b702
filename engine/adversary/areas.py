"""Area under the ROC curve of the scores of two groups (the Mann-Whitney statistic), its variance and its interval."""

from __future__ import annotations

import math

import numpy as np

from ..data.arrays import Floats, Integers
from ..statistics.score_interval import Z_95


def roc_area(positives: Floats | Integers, negatives: Floats | Integers) -> float:
    """Return the share of the pairs, one of each group (m,) and (n,), in which the first is larger; equal ones count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([positives, negatives]))[: len(positives)]
    return float((math.fsum(ranks) - len(positives) * (len(positives) + 1) / 2) / (len(positives) * len(negatives)))


def de_long_variance(positives: Floats, negatives: Floats) -> float:
    """Return the variance of the area of the scores of two groups (m,) and (n,), of two or more each (DeLong, DeLong & Clarke-Pearson 1988)."""
    found = 0.0
    for some, against in ((positives, negatives), (negatives, positives)):
        held = np.sort(against)
        share = (np.searchsorted(held, some, "left") + np.searchsorted(held, some, "right")) / (2 * len(held))
        found += float(np.var(share, ddof=1)) / len(some)
    return found


def area_interval(area: float, above: int, below: int, z: float = Z_95) -> tuple[float, float]:
    """Return the interval of an area of ``above`` times ``below`` pairs: every θ that lies at most z standard errors from the area.

    Newcombe (2006, Part 2, method 5), of the kind of Wilson's: the variance, by Hanley & McNeil (1982) with exponential scores and
    N* = (m + n) / 2 - 1 in place of m - 1 and n - 1, is that at θ, so that an area of 1 has an interval too. At θ = 1/2 it is the exact
    one of the Mann-Whitney test, (m + n + 1) / (12 m n).
    """
    from scipy.optimize import brentq

    def excess_distance(theta: float) -> float:
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + ((above + below) / 2 - 1) * spread) / (above * below)
        return abs(area - theta) - z * math.sqrt(max(variance, 0.0))

    near = 1e-12
    lower = 0.0 if area <= near else float(brentq(excess_distance, 0.0, min(area, 1 - near)))
    upper = 1.0 if area >= 1 - near else float(brentq(excess_distance, max(area, near), 1.0))
    return lower, upper
