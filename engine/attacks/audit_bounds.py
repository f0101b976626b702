"""Lower bounds of a privacy loss from how often an attack is right: epsilon, and mu of Gaussian differential privacy.

Where a release is (epsilon, delta)-differentially private, every test of "the record is in the data" against "it is not" has TPR <= exp(epsilon) FPR + delta,
and 1 - FPR <= exp(epsilon) (1 - TPR) + delta (Kairouz, Oh & Viswanath 2015). So a test that was seen to be right more often refutes the claim, and its
Clopper-Pearson limits bound epsilon from below (Jagielski, Ullman & Oprea 2020, §4):

    epsilon >= log((lower TPR - delta) / upper FPR),   mu >= z(lower TPR) - z(upper FPR)   (Dong, Roth & Su 2022; Nasr et al. 2023)

The test, classifier and threshold, is chosen on one half of the releases and counted on the other. A bound of several targets together has the level divided by
their number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import beta, norm

from ..arrays import Booleans, Floats

LEVEL = 0.05


class Bound(NamedTuple):
    """The largest lower bounds that a test shows, both at least 0."""

    epsilon: float
    mu: float


def clopper_pearson(hits: int, cases: int, level: float) -> tuple[float, float]:
    """One-sided lower and upper limits of a share, each exceeded with probability ``level`` at most."""
    low = float(beta.ppf(level, hits, cases - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - level, hits + 1, cases - hits)) if hits < cases else 1.0
    return low, high


def bound(positives: int, members: int, false: int, others: int, delta: float = 0.0, level: float = LEVEL) -> Bound:
    """From ``positives`` of ``members`` releases with the record, and ``false`` of ``others`` without it; both limits together hold with 1 - ``level``."""
    each = level / 2
    tpr, fpr = clopper_pearson(positives, members, each)[0], clopper_pearson(false, others, each)[1]
    fnr, tnr = clopper_pearson(members - positives, members, each)[1], clopper_pearson(others - false, others, each)[0]
    epsilon = max(_log_ratio(tpr - delta, fpr), _log_ratio(tnr - delta, fnr))
    mu = float(norm.ppf(tpr) - norm.ppf(fpr)) if 0 < tpr and fpr < 1 else 0.0
    return Bound(max(0.0, epsilon), max(0.0, mu) if math.isfinite(mu) else 0.0)


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else 0.0


def threshold(scores: Floats, member: Booleans, level: float = LEVEL) -> float:
    """The threshold of scores (k,) whose bound is largest, as if it had been chosen beforehand; of equals the one nearest the middle."""
    order = np.sort(np.unique(scores))
    cuts = (order[1:] + order[:-1]) / 2 if len(order) > 1 else order
    own, others = np.sort(scores[member]), np.sort(scores[~member])
    hits, false = (len(side) - np.searchsorted(side, cuts, "right") for side in (own, others))
    found = [
        bound(int(a), len(own), int(b), len(others), level=level).epsilon for a, b in zip(hits, false, strict=True)
    ]
    best = np.flatnonzero(np.asarray(found) >= max(found) - 1e-12)
    return float(cuts[best[np.argmin(np.abs(best - len(cuts) / 2))]])


def counted(scores: Floats, member: Booleans, at: float, delta: float = 0.0, level: float = LEVEL) -> Bound:
    """The bound of the test "score above ``at``" on releases that had no part in choosing it."""
    above = scores > at
    return bound(int(above[member].sum()), int(member.sum()), int(above[~member].sum()), int((~member).sum()), delta, level)
