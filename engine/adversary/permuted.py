"""Permutation p-value of an attack: how often as much is found when membership does not matter.

If a release does not depend on single people, members and controls are exchangeable. The p-value is the share of
divisions into groups of these sizes, including the true one, in which the members fare at least as much better. Ties
are broken at random (Dufour 2006, Journal of Econometrics 133(2), §2), so that the p-value is uniform on [0, 1] without
a leak, whatever the number of people (Phipson & Smyth 2010).
"""

from __future__ import annotations

import numpy as np

from ..data.arrays import Floats

PERMUTATIONS = 999
"""Number of random divisions into groups."""
DIGITS = 9
"""Number of decimals compared, so that rounding does not break ties."""


def exact_p_value(own: Floats, others: Floats, rng: np.random.Generator, n_permutations: int = PERMUTATIONS) -> float:
    """Return the p-value of a larger mean probability of a right guess for members (n,) than for controls (c,).

    Returns 1 without members or controls.
    """
    if not len(own) or not len(others):
        return 1.0
    values, counts = np.unique(np.round(np.concatenate([own, others]), DIGITS), return_counts=True)
    # Few distinct values occur, so drawing their counts is cheaper than permuting people, and the order of people has
    # no effect.
    dealt = rng.multivariate_hypergeometric(counts, len(own), n_permutations, method="marginals") @ values
    return randomised_p_value(float(np.sort(np.round(own, DIGITS)).sum()), dealt, rng)


def randomised_p_value(observed: float, permuted: Floats, rng: np.random.Generator) -> float:
    """Return the share of the permuted statistics (P,) and the observed one that are as large, ties in random order."""
    above, permuted = round(observed, DIGITS - 2), np.round(permuted, DIGITS - 2)
    larger, equal = int((permuted > above).sum()), 1 + int((permuted == above).sum())
    return float(larger + (1 - rng.random()) * equal) / (len(permuted) + 1)
