"""How often a score of one group lies above one of another: the Mann-Whitney statistic, which is the area under the ROC curve."""

from __future__ import annotations

import math

import numpy as np

from ..data.arrays import Floats, Integers
from ..statistics.score_interval import Z


def area(above: Floats | Integers, below: Floats | Integers) -> float:
    """The share of the pairs, one of each group (m,) and (n,), in which the first is larger, equal ones counting half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([above, below]))[: len(above)]
    return float((math.fsum(ranks) - len(above) * (len(above) + 1) / 2) / (len(above) * len(below)))


def de_long(above: Floats, below: Floats) -> float:
    """The variance of the area of the scores of two groups (m,) and (n,), of two or more each (DeLong, DeLong & Clarke-Pearson 1988)."""
    found = 0.0
    for some, against in ((above, below), (below, above)):
        held = np.sort(against)
        share = (np.searchsorted(held, some, "left") + np.searchsorted(held, some, "right")) / (2 * len(held))
        found += float(np.var(share, ddof=1)) / len(some)
    return found


def area_interval(area: float, above: int, below: int, z: float = Z) -> tuple[float, float]:
    """The interval of an area of ``above`` times ``below`` pairs: every θ that lies at most z standard errors from the area.

    Newcombe (2006, Part 2, method 5), of the kind of Wilson's: the variance, by Hanley & McNeil (1982) with exponential scores and
    N* = (m + n) / 2 - 1 in place of m - 1 and n - 1, is that at θ, so that an area of 1 has an interval too. At θ = 1/2 it is the exact
    one of the Mann-Whitney test, (m + n + 1) / (12 m n).
    """
    from scipy.optimize import brentq

    def beyond(theta: float) -> float:
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + ((above + below) / 2 - 1) * spread) / (above * below)
        return abs(area - theta) - z * math.sqrt(max(variance, 0.0))

    near = 1e-12
    lower = 0.0 if area <= near else float(brentq(beyond, 0.0, min(area, 1 - near)))
    upper = 1.0 if area >= 1 - near else float(brentq(beyond, max(area, near), 1.0))
    return lower, upper
