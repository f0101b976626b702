"""Lower bounds of a privacy loss from the success of an attack: epsilon, and mu of Gaussian differential privacy.

If a release is epsilon-differentially private, every test of "the record is in the data" has TPR <= exp(epsilon) FPR
and 1 - FPR <= exp(epsilon) (1 - TPR) (Kairouz, Oh & Viswanath 2015). So Clopper-Pearson limits of both rates bound
epsilon from below (Jagielski, Ullman & Oprea 2020, §4):

    epsilon >= log(lower TPR / upper FPR)
    mu >= z(lower TPR) - z(upper FPR)   (Dong, Roth & Su 2022; Nasr et al. 2023)

For Gaussian noise, mu determines epsilon at a delta (``epsilon_from_mu``), which needs fewer releases. The test is
chosen on one half of the releases and counted on the other. A bound of several targets together divides the level by
their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from ..data.arrays import Booleans, Floats, Integers

BOUND_LEVEL = 0.05


def epsilon_bound_from_guesses(correct: int, guesses: int, level: float = BOUND_LEVEL) -> float:
    """Return the lower bound of epsilon from ``correct`` of ``guesses`` at independent coins.

    Each coin decides whether a record is in the data.
    """
    if not guesses:
        return 0.0
    # Under epsilon-differential privacy the number of correct guesses is stochastically at most binomial with share
    # exp(epsilon) / (1 + exp(epsilon)), however many records one release is asked about (Steinke, Nasr & Jagielski
    # 2023, theorem 5.2 with delta = 0).
    share = float(clopper_pearson_limits(np.array([correct]), guesses, level)[0][0])
    return max(0.0, float(np.log(share / (1 - share)))) if share > 0 else 0.0


def epsilon_from_mu(mu: float, delta: float) -> float:
    """Return the epsilon at ``delta`` of Gaussian differential privacy ``mu``, by bisection.

    Balle & Wang (2018), theorem 8; Dong, Roth & Su (2022), corollary 1.
    """
    low, high = 0.0, mu * mu / 2 + mu * 10 + 1
    if mu <= 0 or _delta_from_mu(mu, 0.0) <= delta:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta_from_mu(mu, middle) <= delta else (middle, high)
    return low


def _delta_from_mu(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


class PrivacyLossBound(NamedTuple):
    """Largest lower bounds of the privacy loss, at least 0 each; or the thresholds of a test that attain them.

    epsilon: bound of differential privacy
    mu: bound of Gaussian differential privacy
    """

    epsilon: float
    mu: float


def clopper_pearson_limits(hits: Integers, cases: int, level: float) -> tuple[Floats, Floats]:
    """Return the one-sided lower and upper limits of shares of ``cases``, (k,) each, each at error ``level``."""
    from scipy.stats import beta

    hits = np.asarray(hits)
    low = beta.ppf(level, np.maximum(hits, 1), cases - hits + 1)
    high = beta.ppf(1 - level, hits + 1, np.maximum(cases - hits, 1))
    return np.where(hits > 0, low, 0.0), np.where(hits < cases, high, 1.0)


def privacy_loss_bounds(
    positives: Integers,
    members: int,
    false_positives: Integers,
    others: int,
    level: float = BOUND_LEVEL,
    delta: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the bounds of epsilon and mu, (k,) each, from the hits of k tests.

    ``positives`` (k,) of ``members`` releases with the record and ``false_positives`` (k,) of ``others`` without it
    test positive. All limits hold jointly with probability 1 - ``level``.
    """
    tpr, fnr = (
        clopper_pearson_limits(positives, members, level / 2)[0],
        clopper_pearson_limits(members - positives, members, level / 2)[1],
    )
    fpr, tnr = (
        clopper_pearson_limits(false_positives, others, level / 2)[1],
        clopper_pearson_limits(others - false_positives, others, level / 2)[0],
    )
    with np.errstate(divide="ignore"):
        # A guarantee that may fail with probability delta takes delta off the numerators (Jagielski et al. 2020, §4).
        epsilon = np.log(np.maximum(np.maximum((tpr - delta) / fpr, (tnr - delta) / fnr), 1.0))
        mu = ndtri(tpr) - ndtri(fpr)
    return epsilon, np.maximum(np.where(np.isfinite(mu), mu, 0.0), 0.0)


def best_bound_thresholds(
    scores: Floats, member: Booleans, level: float = BOUND_LEVEL, delta: float = 0.0
) -> PrivacyLossBound:
    """Return the thresholds of scores (k,) with the largest bounds of epsilon and mu, the most central ones of ties."""
    order = np.unique(scores)
    cuts = (order[1:] + order[:-1]) / 2 if len(order) > 1 else order
    own, others = np.sort(scores[member]), np.sort(scores[~member])
    hits, false = (len(side) - np.searchsorted(side, cuts, "right") for side in (own, others))
    each = []
    for found in privacy_loss_bounds(hits, len(own), false, len(others), level, delta):
        best = np.flatnonzero(found >= found.max() - 1e-12)
        each.append(float(cuts[best[np.argmin(np.abs(best - len(cuts) / 2))]]))
    return PrivacyLossBound(*each)


def bounds_at_thresholds(
    scores: Floats, member: Booleans, at_thresholds: PrivacyLossBound, level: float = BOUND_LEVEL, delta: float = 0.0
) -> PrivacyLossBound:
    """Return the bounds of the tests "score above ``at_thresholds``" on releases that were not used to choose these."""
    above = scores > np.array(at_thresholds)[:, None]
    hits, false = above[:, member].sum(axis=1), above[:, ~member].sum(axis=1)
    epsilon, mu = privacy_loss_bounds(hits, int(member.sum()), false, int((~member).sum()), level, delta)
    return PrivacyLossBound(float(epsilon[0]), float(mu[1]))
