"""Permutation p-value of an attack: how often as much is found when membership does not matter.

If a release does not depend on single people, members and controls are exchangeable. The p-value is the share of
divisions into groups of these sizes, including the true one, in which the members fare at least as much better. Ties
are broken at random (Dufour 2006, Journal of Econometrics 133(2), §2), so that the p-value is uniform on [0, 1] without
a leak, whatever the number of people (Phipson & Smyth 2010).

Records of one unit, such as a household, are not exchangeable one by one: then whole units are divided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats, Integers

PERMUTATIONS = 999
"""Number of random divisions into groups."""
DIGITS = 9
"""Number of decimals compared, so that rounding does not break ties."""


@dataclass(frozen=True, eq=False)
class UnitsOfBoth:
    """Units of the records of members and of controls, each numbered for itself, where several records describe one.

    own: unit of each member's record, (n,)
    others: unit of each control's record, (c,)
    """

    own: Integers
    others: Integers

    def select(self, own: Booleans, others: Booleans) -> UnitsOfBoth:
        """Return the units of marked records, (n,) and (c,)."""
        return UnitsOfBoth(self.own[own], self.others[others])


def exact_p_value(
    own: Floats,
    others: Floats,
    rng: np.random.Generator,
    n_permutations: int = PERMUTATIONS,
    units: UnitsOfBoth | None = None,
) -> float:
    """Return the p-value of a larger mean probability of a right guess for members (n,) than for controls (c,).

    Returns 1 without members or controls. Whole units are divided where ``units`` are given.
    """
    if not len(own) or not len(others):
        return 1.0
    if units is not None:
        return _exact_p_value_of_units(own, others, rng, n_permutations, units)
    values, counts = np.unique(np.round(np.concatenate([own, others]), DIGITS), return_counts=True)
    # Few distinct values occur, so drawing their counts is cheaper than permuting people, and the order of people has
    # no effect.
    dealt = rng.multivariate_hypergeometric(counts, len(own), n_permutations, method="marginals") @ values
    return randomised_p_value(float(np.sort(np.round(own, DIGITS)).sum()), dealt, rng)


def _exact_p_value_of_units(
    own: Floats, others: Floats, rng: np.random.Generator, n_permutations: int, units: UnitsOfBoth
) -> float:
    """Return the p-value of the same difference of means if whole units are divided among members and controls."""
    sums, sizes = (
        np.concatenate([_sum_by_code(values, of) for values, of in sides])
        for sides in (
            ((own, units.own), (others, units.others)),
            ((np.ones(len(own)), units.own), (np.ones(len(others)), units.others)),
        )
    )
    # Units of as many records and of as many right guesses are drawn together, as equal records are.
    kinds, counts = np.unique(np.column_stack([np.round(sums, DIGITS), sizes]), axis=0, return_counts=True)
    members = len(np.unique(units.own))
    dealt = rng.multivariate_hypergeometric(counts, members, n_permutations, method="marginals") @ kinds
    total = (counts @ kinds)[None, :]

    def difference_of_means(of_members: Floats) -> Floats:
        """Return the mean of the members less that of the controls, from sums and numbers of records, (P, 2)."""
        rest = total - of_members
        return np.asarray(of_members[:, 0] / of_members[:, 1] - rest[:, 0] / rest[:, 1])

    observed = np.array([[np.sort(np.round(sums, DIGITS)[:members]).sum(), sizes[:members].sum()]])
    return randomised_p_value(float(difference_of_means(observed)[0]), difference_of_means(dealt), rng)


def _sum_by_code(values: Floats, codes: Integers) -> Floats:
    """Return the sums of the values (n,) with each code, by ascending code."""
    return np.asarray(np.bincount(np.unique(codes, return_inverse=True)[1], weights=values), dtype=np.float64)


def randomised_p_value(observed: float, permuted: Floats, rng: np.random.Generator) -> float:
    """Return the share of the permuted statistics (P,) and the observed one that are as large, ties in random order."""
    above, permuted = round(observed, DIGITS - 2), np.round(permuted, DIGITS - 2)
    larger, equal = int((permuted > above).sum()), 1 + int((permuted == above).sum())
    return float(larger + (1 - rng.random()) * equal) / (len(permuted) + 1)
