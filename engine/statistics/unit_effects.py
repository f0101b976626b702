"""What records of a unit have in common beyond their predictors: its share of a variance, and draws that share it.

A residual is sqrt(share) u + sqrt(1 - share) e times its standard deviation: u is one standard normal number a unit, e
one a record. The share is the intraclass correlation of the confidential residuals.

Counts and levels in an order have no residual. A record's value is then that at the place Phi(z) of its own
distribution, with z = sqrt(share) u + sqrt(1 - share) e (a Gaussian copula): each record keeps the distribution that the
model gives it, and records of a unit are alike in where they stand. Places of values with ties tell less than the normal
numbers behind them, so that their correlation would understate the share: it is the share at which the model's records
would be as alike as the confidential ones are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.units import Units
from ..errors import NotComputable

UNIT_EFFECT = "unit effect"
"""Column with the standard normal number u of the unit of each drawn record, in the table of a step that asks for it."""
LARGEST_SHARE = 0.999
"""With a share of 1 all records of a unit would be alike in every dataset."""
MOST_CUTS = 15
"""Numbers at which counts and levels are cut to say how alike they are."""
TERMS = 100
"""Powers of the share by which the likeness of two records is a series."""
UNITS_AT_ONCE = 10_000
SURE = 1e-15
"""What a probability is away from 0 and from 1 at least."""


def intraclass_correlation(values: Floats, units: Units) -> float:
    """Return the share of the variance of values (n,), NaN where missing, that lies between units.

    It is (B - W) / (B + (s - 1) W) with mean squares between and within units and s the mean size, corrected for units
    of different size; -1 where it would be lower, as it may be where few units have two values. Raises NotComputable
    where no unit has two values, or all are equal.
    """
    present = ~np.isnan(values)
    codes = pd.factorize(units.unit_of[present])[0]
    values = values[present]
    sizes = np.bincount(codes).astype(np.float64)
    count, groups = len(values), len(sizes)
    if groups < 2 or count <= groups:
        raise NotComputable("fewer than two units, or no unit with two values")
    values = values - values.mean()
    means = np.bincount(codes, weights=values) / sizes
    within = float(((values - means[codes]) ** 2).sum()) / (count - groups)
    between = float((sizes * means**2).sum()) / (groups - 1)
    size = (count - float((sizes**2).sum()) / count) / (groups - 1)
    if between + within <= 0:
        raise NotComputable("all values are equal")
    return max((between - within) / (between + (size - 1) * within), -1.0)


def shared_variance(residuals: Floats, data: Microdata) -> float:
    """Return the share of the variance of residuals (n,), NaN where missing, that records of a unit share.

    It is 0 where units have one record, or are no more alike than strangers.
    """
    if data.units is None:
        return 0.0
    try:
        found = intraclass_correlation(residuals, data.units)
    except NotComputable:
        return 0.0
    return min(max(found, 0.0), LARGEST_SHARE)


def normal_scores(values: Floats, groups: Integers) -> Floats:
    """Return the normal scores of values (n,), NaN where missing, by their ranks within each group (n,).

    Equal values have the score of their mean rank. Values of a group that has only one value have none.
    """
    from scipy.special import ndtri  # most recipes, which read this module, have no units

    found = np.full(len(values), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    if not len(present):
        return found
    order = present[np.lexsort((values[present], groups[present]))]
    own, of = values[order], groups[order]
    new_group = np.append(True, of[1:] != of[:-1])
    new_value = new_group | np.append(True, own[1:] != own[:-1])
    group, value = np.cumsum(new_group) - 1, np.cumsum(new_value) - 1
    size, ties = np.bincount(group), np.bincount(value)
    start_of_group, start_of_value = np.flatnonzero(new_group), np.flatnonzero(new_value)
    below = start_of_value[value] - start_of_group[group]
    scores = ndtri((below + ties[value] / 2) / size[group])
    found[order] = np.where(ties[value] == size[group], np.nan, scores)
    return found


def choose_cuts(values: Floats) -> Floats:
    """Return numbers at which values (n,), NaN where missing, are cut: about equally many lie between two of them.

    At most 15, in ascending order; a value that equals one lies below it, and none lies above all values.
    """
    present = values[~np.isnan(values)]
    if not len(present):
        return np.empty(0)
    every = np.unique(present)
    if len(every) <= MOST_CUTS:
        return np.asarray(every[:-1], dtype=np.float64)
    shares = np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1)
    found, times = np.unique(np.quantile(present, shares, method="inverted_cdf"), return_counts=True)
    # A frequent value is parted from those below it too.
    frequent = np.searchsorted(every, found[times > 1])
    found = np.union1d(found, every[frequent[frequent > 0] - 1])
    return np.asarray(found[found < every[-1]], dtype=np.float64)


def share_of_places(values: Floats, cuts: Floats, below: Floats, data: Microdata) -> float:
    """Return the share by which records of a unit are alike in the places of their values.

    Values are (n,), NaN where missing; ``below`` (n, c) is each record's probability of a value up to each cut (c,).
    It is 0 where units have one record, or are no more alike than strangers.

    A record's score is the mean of z between the cuts that its value lies between. The sum of the products of two
    records' scores over all pairs of a unit is a series in the share (Mehler 1866), whose coefficients are sums over
    units: it is solved for the share at which it is the sum of the confidential records. A unit counts by its records,
    not by its pairs.
    """
    if data.units is None or not len(cuts):
        return 0.0
    present = np.flatnonzero(~np.isnan(values))
    codes = pd.factorize(data.units.unit_of[present])[0]
    shared = np.bincount(codes)[codes] > 1
    if not shared.any():
        return 0.0
    order = np.argsort(codes[shared], kind="stable")
    rows, codes = present[shared][order], codes[shared][order]
    starts = np.append(np.flatnonzero(np.append(True, codes[1:] != codes[:-1])), len(rows))
    observed, series = 0.0, np.zeros(TERMS + 1)
    for first in range(0, len(starts) - 1, UNITS_AT_ONCE):
        own = starts[first : first + UNITS_AT_ONCE + 1]
        which = rows[own[0] : own[-1]]
        pairs = _PairSums(own[:-1] - own[0], np.diff(own))
        found, coefficients = _sum_scores(np.searchsorted(cuts, values[which]), below[which], pairs)
        observed += found
        series += coefficients

    def excess(share: float) -> float:
        return float(np.polynomial.polynomial.polyval(share, series)) - observed

    if observed <= 0:
        return 0.0
    from scipy.optimize import brentq

    return LARGEST_SHARE if excess(LARGEST_SHARE) <= 0 else float(brentq(excess, 0.0, LARGEST_SHARE))


class _PairSums:
    """Sums over the pairs of records of a unit, of units of ``sizes`` (U,) whose first records are ``starts`` (U,)."""

    def __init__(self, starts: Integers, sizes: Integers) -> None:
        self.starts, self.weights = starts, 1.0 / (sizes - 1)

    def __call__(self, values: Floats) -> float:
        """Return the sum of the products of the values (n,) of all pairs."""
        of_units, squares = np.add.reduceat(values, self.starts), np.add.reduceat(values**2, self.starts)
        return float(self.weights @ (of_units**2 - squares))


def _sum_scores(level: Integers, below: Floats, pairs: _PairSums) -> tuple[float, Floats]:
    """Return the sum over pairs of records in these levels (n,), and its series in the share, (TERMS + 1,)."""
    from scipy.special import ndtr, ndtri  # most recipes, which read this module, have no units

    cuts = ndtri(np.clip(below, SURE, 1.0 - SURE))
    density = np.exp(-0.5 * cuts**2) / np.sqrt(2.0 * np.pi)
    edge = np.zeros((len(cuts), 1))
    chance = np.diff(np.hstack([edge, ndtr(cuts), edge + 1.0]), axis=1)
    low, high = np.hstack([edge - np.inf, cuts]), np.hstack([cuts, edge + np.inf])
    mass = -np.diff(np.hstack([edge, density, edge]), axis=1)
    # A level without probability has its own cut as its mean, and rounding leaves no mean outside its level.
    scores = np.divide(mass, chance, out=np.zeros_like(mass), where=chance > 0).clip(low, high)
    steps = np.diff(scores, axis=1)
    series = np.zeros(TERMS + 1)
    # Hermite polynomials over the root of k!, times the density
    before, now = np.zeros_like(cuts), density
    for k in range(1, TERMS + 1):
        series[k] = pairs((steps * now).sum(axis=1) / np.sqrt(k))
        before, now = now, (cuts * now - np.sqrt(k - 1) * before) / np.sqrt(k)
    return pairs(np.take_along_axis(scores, level[:, None], axis=1)[:, 0]), series


def unit_effect_columns(targets: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the effects of units on each target of a step."""
    return (UNIT_EFFECT,) if len(targets) == 1 else tuple(f"{UNIT_EFFECT} on {target}" for target in targets)


def effect_of_unit(released: Microdata, share: float, column: str = UNIT_EFFECT) -> tuple[Floats, float]:
    """Return what each drawn record (n,) has of its unit, and the standard deviation of what it has of its own.

    Both are in standard deviations of the residual.
    """
    return np.sqrt(share) * released.numbers(column), float(np.sqrt(1.0 - share))


def draw_places(released: Microdata, share: float, rng: np.random.Generator, column: str = UNIT_EFFECT) -> Floats:
    """Draw the place of each record's value in its distribution, (n,): uniform from 0 to 1, and alike within units."""
    from scipy.special import ndtr  # most recipes, which read this module, have no units

    effect, own = effect_of_unit(released, share, column)
    return np.asarray(ndtr(effect + own * rng.standard_normal(len(effect))))
