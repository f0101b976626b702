"""Exact p-value of an attack: how often as much is found where it does not matter who is in the data.

Where a release owes nothing to single people, those in the data and controls are exchangeable: every division of them into two groups
of these sizes is as
probable. The p-value is the share of divisions, the one that is so among them, in which the people of the data fare as much better. Few
right guesses make
few different differences; equal ones are placed at random among each other (Dufour 2006, Journal of Econometrics 133(2), §2), so that
the p-value is
uniform on [0, 1] without a leak, whatever the number of people, and not just at most the level as often as it says (Phipson & Smyth 2010).
"""

from __future__ import annotations

import numpy as np

from ..data.arrays import Floats

PERMUTATIONS = 999
"""Divisions that are drawn."""
DIGITS = 9
"""Decimals that are compared: sums that differ by rounding alone are equal."""


def exact_p_value(own: Floats, others: Floats, rng: np.random.Generator, n_permutations: int = PERMUTATIONS) -> float:
    """Return the p-value of the larger mean chance to be right about people in the data (n,) than about controls (c,).

    The order of the people changes nothing. 1 where there are no people or no controls.
    """
    if not len(own) or not len(others):
        return 1.0
    values, counts = np.unique(np.round(np.concatenate([own, others]), DIGITS), return_counts=True)
    dealt = rng.multivariate_hypergeometric(counts, len(own), n_permutations, method="marginals") @ values
    return randomised_p_value(float(np.sort(np.round(own, DIGITS)).sum()), dealt, rng)


def randomised_p_value(observed: float, permuted: Floats, rng: np.random.Generator) -> float:
    """Return the share, in (0, 1], of the permuted differences (P,) and the one seen that are as large as the one seen; equal ones count
    in random order.
    """
    above, permuted = round(observed, DIGITS - 2), np.round(permuted, DIGITS - 2)
    larger, equal = int((permuted > above).sum()), 1 + int((permuted == above).sum())
    return float(larger + (1 - rng.random()) * equal) / (len(permuted) + 1)
