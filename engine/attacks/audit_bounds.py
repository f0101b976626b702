"""Lower bounds of a privacy loss from how often an attack is right: epsilon, and mu of Gaussian differential privacy.

Where a release is epsilon-differentially private, every test of "the record is in the data" against "it is not" has TPR <= exp(epsilon) FPR and
1 - FPR <= exp(epsilon) (1 - TPR) (Kairouz, Oh & Viswanath 2015). So a test that was seen to be right more often refutes the claim, and its
Clopper-Pearson limits bound epsilon from below (Jagielski, Ullman & Oprea 2020, §4):

    epsilon >= log(lower TPR / upper FPR),   mu >= z(lower TPR) - z(upper FPR)   (Dong, Roth & Su 2022; Nasr et al. 2023)

The test, classifier and threshold, is chosen on one half of the releases and counted on the other. A bound of several targets together has the level divided by
their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import beta, norm

from ..arrays import Booleans, Floats, Integers

LEVEL = 0.05


def of_guesses(correct: int, guesses: int, level: float = LEVEL) -> float:
    """The lower bound of epsilon from ``correct`` of ``guesses`` at independent coins, each of which decided whether a record is in the data.

    Where a release is epsilon-differentially private, the number of correct guesses is stochastically at most binomial with the share
    exp(epsilon) / (1 + exp(epsilon)), however many records one release is asked about (Steinke, Nasr & Jagielski 2023, theorem 5.2 with delta = 0).
    """
    if not guesses:
        return 0.0
    share = float(clopper_pearson(np.array([correct]), guesses, level)[0][0])
    return max(0.0, float(np.log(share / (1 - share)))) if share > 0 else 0.0


class Bound(NamedTuple):
    """The largest lower bounds that a test shows, both at least 0."""

    epsilon: float
    mu: float


def clopper_pearson(hits: Integers, cases: int, level: float) -> tuple[Floats, Floats]:
    """One-sided lower and upper limits of shares of ``cases``, (k,) each, each exceeded with probability ``level`` at most."""
    hits = np.asarray(hits)
    low = beta.ppf(level, np.maximum(hits, 1), cases - hits + 1)
    high = beta.ppf(1 - level, hits + 1, np.maximum(cases - hits, 1))
    return np.where(hits > 0, low, 0.0), np.where(hits < cases, high, 1.0)


def bounds(
    positives: Integers, members: int, false: Integers, others: int, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Epsilon and mu, (k,) each, from ``positives`` (k,) of ``members`` releases with the record and ``false`` (k,) of ``others`` without it.

    Both limits together hold with 1 - ``level``.
    """
    tpr, fnr = (
        clopper_pearson(positives, members, level / 2)[0],
        clopper_pearson(members - positives, members, level / 2)[1],
    )
    fpr, tnr = clopper_pearson(false, others, level / 2)[1], clopper_pearson(others - false, others, level / 2)[0]
    with np.errstate(divide="ignore"):
        epsilon = np.log(np.maximum(tpr / fpr, tnr / fnr))
        mu = norm.ppf(tpr) - norm.ppf(fpr)
    return np.maximum(epsilon, 0.0), np.maximum(np.where(np.isfinite(mu), mu, 0.0), 0.0)


def threshold(scores: Floats, member: Booleans, level: float = LEVEL) -> float:
    """The threshold of scores (k,) whose bound is largest, as if it had been chosen beforehand; of equals the one nearest the middle."""
    order = np.unique(scores)
    cuts = (order[1:] + order[:-1]) / 2 if len(order) > 1 else order
    own, others = np.sort(scores[member]), np.sort(scores[~member])
    hits, false = (len(side) - np.searchsorted(side, cuts, "right") for side in (own, others))
    found = bounds(hits, len(own), false, len(others), level)[0]
    best = np.flatnonzero(found >= found.max() - 1e-12)
    return float(cuts[best[np.argmin(np.abs(best - len(cuts) / 2))]])


def counted(scores: Floats, member: Booleans, at: float, level: float = LEVEL) -> Bound:
    """The bound of the test "score above ``at``" on releases that had no part in choosing it."""
    above = scores > at
    hits, false = np.array([above[member].sum()]), np.array([above[~member].sum()])
    epsilon, mu = bounds(hits, int(member.sum()), false, int((~member).sum()), level)
    return Bound(float(epsilon[0]), float(mu[0]))
