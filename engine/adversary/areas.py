"""Area under the ROC curve (AUC) of the scores of two groups, its variance and its interval."""

from __future__ import annotations

import math

import numpy as np

from ..data.arrays import Floats, Integers
from ..statistics.ranks_and_tails import average_ranks
from ..statistics.score_interval import Z_95


def roc_area(positives: Floats | Integers, negatives: Floats | Integers) -> float:
    """Return the AUC of two groups, (m,) and (n,): share of pairs won by the positive, ties half."""
    ranks = average_ranks(np.concatenate([positives, negatives]))[: len(positives)]
    # ``fsum``, so that the order of the people does not change the last digits.
    return float((math.fsum(ranks) - len(positives) * (len(positives) + 1) / 2) / (len(positives) * len(negatives)))


def de_long_variance(positives: Floats, negatives: Floats, units: tuple[Integers, Integers] | None = None) -> float:
    """Return the variance of the AUC of two groups (m,) and (n,) with at least two scores each.

    DeLong, DeLong & Clarke-Pearson (1988). Where ``units`` (m,) and (n,) number those whom several scores are of, sums
    over these take the place of the scores' terms (Obuchowski 1997, Biometrics 53(2)).
    """
    found = 0.0
    for at, (some, against) in enumerate(((positives, negatives), (negatives, positives))):
        held = np.sort(against)
        share = (np.searchsorted(held, some, "left") + np.searchsorted(held, some, "right")) / (2 * len(held))
        if units is None:
            found += float(np.var(share, ddof=1)) / len(some)
            continue
        sums = np.bincount(np.unique(units[at], return_inverse=True)[1], weights=share - share.mean())
        found += float(np.square(sums).sum()) * len(sums) / max(1, len(sums) - 1) / len(some) ** 2
    return found


def area_interval(area: float, above: int, below: int, z: float = Z_95) -> tuple[float, float]:
    """Return the limits of an AUC of ``above`` times ``below`` pairs: all θ at most z standard errors from it.

    Newcombe (2006, Part 2, method 5), a score interval: the variance of Hanley & McNeil (1982) with exponential scores
    and N* = (m + n) / 2 - 1 in place of m - 1 and n - 1 is taken at θ, so that an AUC of 1 has an interval too. At θ =
    1/2 it is the exact variance of the Mann-Whitney test, (m + n + 1) / (12 m n).
    """
    from scipy.optimize import brentq

    def excess_distance(theta: float) -> float:
        """Return the distance of the AUC from θ beyond z standard errors at θ."""
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + ((above + below) / 2 - 1) * spread) / (above * below)
        return abs(area - theta) - z * math.sqrt(max(variance, 0.0))

    near = 1e-12
    lower = 0.0 if area <= near else float(brentq(excess_distance, 0.0, min(area, 1 - near)))
    upper = 1.0 if area >= 1 - near else float(brentq(excess_distance, max(area, near), 1.0))
    return lower, upper
