"""Recognition of released numbers in other units or with another origin, and of exchanged columns.

Units, origins and names protect no one, since an intruder knows the distributions in the population. A numeric column
is divided by the factor, or reduced by the difference, after which its values are as frequent as those of the data. A
column under another name is recognised by its distribution. Members and hold-out people form one table here: membership
is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.sorting import sorted_search
from .cells import distinct_key_counts, number_keys, round_to_40_bits
from .coded import JointColumn, RankedNumbers

MOST_RELEASED, MOST_OWN = 500, 1500
"""Numbers of distinct values of a dataset and of the data from which a change is estimated."""
EXACT = 3e-6
"""Tolerance for equal values, relative to the value or the spread: undoing a factor adds rounding."""
MORE_ALIKE = 1.05
"""Factor by which undoing a change must improve the agreement of frequencies."""
MOST_COMPARED = 10_000
"""Number of distinct values for comparing changes; the best is then compared with no change on all values."""
MOST_COMMON = 0.8
MOST_CANDIDATES = 60
"""Largest number of factors or differences that are tried."""
QUANTILES = np.linspace(0.025, 0.975, 39)
MOST_LEVELS = 40
EXCHANGED_DISTANCE_RATIO = 0.5
"""Ratio of distribution distances at or below which columns count as exchanged."""
LEAST_DISTANCE = 0.05
"""Distance up to which a column has its own distribution."""


@dataclass(frozen=True, eq=False)
class _ValueFrequencies:
    """Distinct numbers of a column with frequencies.

    values: distinct numbers, ascending, (v,)
    counts: number of records or rows with each, (v,)
    """

    values: Floats
    counts: Integers

    @classmethod
    def from_ranked(cls, ordered: RankedNumbers) -> _ValueFrequencies:
        """Keep the finite numbers."""
        known = np.isfinite(ordered.distinct_numbers.values)
        return cls(ordered.distinct_numbers.values[known], ordered.distinct_numbers.counts[known])

    def quantiles(self, shares: Floats) -> Floats:
        """Return the quantiles (s,) with linear interpolation as in ``numpy.quantile``."""
        ends = np.cumsum(self.counts)
        position = shares * (ends[-1] - 1)
        below, above = (self.values[np.searchsorted(ends, side(position), "right")] for side in (np.floor, np.ceil))
        return np.asarray(below + (position - np.floor(position)) * (above - below))

    def select_most_frequent(self, most: int) -> _ValueFrequencies:
        """Return at most ``most`` values, ascending: half of them the most frequent, the others evenly spread."""
        if len(self.values) <= most:
            return self
        order = np.argsort(-self.counts, kind="stable")
        rest = np.sort(order[most // 2 :])
        others = rest[np.linspace(0, len(rest) - 1, most - most // 2).astype(np.int64)]
        some = np.sort(np.append(order[: most // 2], others))
        return _ValueFrequencies(self.values[some], self.counts[some])


def undo_rescaling(column: JointColumn) -> JointColumn:
    """Return a numeric column with its datasets converted back to the values of the data."""
    if column.numbers is None or not column.released_numbers:
        return column
    # All datasets are written alike, so the first one decides.
    own = _ValueFrequencies.from_ranked(column.ranked_numbers)
    step = _find_unit_change(own, _ValueFrequencies.from_ranked(column.released_ranked_numbers[0]))
    if step is None:
        return column
    made = [round_to_40_bits(_snap_to_values(own.values, step.undo(one))[0]) for one in column.released_numbers]
    return replace(column, released=list(map(number_keys, made)), released_numbers=made)


@dataclass(frozen=True)
class _UnitChange:
    """Factor or difference between the numbers of a dataset and those of the data.

    size: the factor or the difference
    is_factor: whether it is a factor
    """

    size: float
    is_factor: bool

    def undo(self, numbers: Floats) -> Floats:
        """Convert numbers back to the unit and origin of the data."""
        return np.asarray(numbers / self.size if self.is_factor else numbers - self.size)


def _find_unit_change(own: _ValueFrequencies, made: _ValueFrequencies) -> _UnitChange | None:
    """Return the change of unit after which most rows have values of the data; None if no change helps."""
    if len(own.values) < 2 or made.counts.sum() < 2:
        return None
    some, as_it_is = made.select_most_frequent(MOST_COMPARED), _UnitChange(0.0, is_factor=False)
    steps = [_UnitChange(size, is_factor) for is_factor in (True, False) for size in _common_unit_changes(own, made, is_factor=is_factor)]  # fmt: skip
    if not steps:
        return None
    best = max(steps, key=lambda one: _frequency_agreement(own, some, one))
    return (
        best if _frequency_agreement(own, made, best) > MORE_ALIKE * _frequency_agreement(own, made, as_it_is) else None
    )


def _frequency_agreement(own: _ValueFrequencies, made: _ValueFrequencies, step: _UnitChange) -> float:
    """Return the agreement of the frequencies of values after undoing a change."""
    snapped, is_own = _snap_to_values(own.values, step.undo(made.values))
    place = sorted_search(own.values, snapped[is_own]).clip(max=len(own.values) - 1)
    # Frequencies rather than values: dense values agree after many changes, their frequencies after one.
    return float(np.sqrt(made.counts[is_own] * own.counts[place].astype(np.float64)).sum())


def _snap_to_values(values: Floats, numbers: Floats) -> tuple[Floats, np.ndarray]:
    """Return each number (k,) as the equal value of the data (v,), ascending, and whether there is one."""
    place = sorted_search(values, np.nan_to_num(numbers, nan=values[0])).clip(1, len(values) - 1)
    below, above = values[place - 1], values[place]
    nearest = np.where(np.abs(numbers - below) <= np.abs(above - numbers), below, above)
    spread = float(values[-1] - values[0])
    with np.errstate(invalid="ignore"):
        is_own = np.abs(numbers - nearest) <= EXACT * np.maximum(np.abs(nearest), 0.01 * spread)
    return np.where(is_own, nearest, numbers), np.asarray(is_own)


def _common_unit_changes(own: _ValueFrequencies, released: _ValueFrequencies, *, is_factor: bool) -> list[float]:
    """Return the most common factors or differences between values of a dataset and of the data, commonest first."""
    some = [own.select_most_frequent(MOST_OWN), released.select_most_frequent(MOST_RELEASED)]
    if is_factor:
        some = [_ValueFrequencies(np.log(one.values[one.values > 0]), one.counts[one.values > 0]) for one in some]
    ours, theirs = (one.values for one in some)
    if not len(ours) or not len(theirs):
        return []
    middle = float(np.median(theirs)) - float(np.median(ours))
    spread = 1.0 if is_factor else float(np.ptp(ours)) or 1.0
    steps = (theirs[:, None] - ours[None, :]).ravel()
    weights = np.sqrt(np.multiply.outer(some[1].counts, some[0].counts).astype(np.float64)).ravel()
    near = np.flatnonzero(np.abs(steps - middle) <= (1.5 if is_factor else spread))
    near = near[np.argsort(steps[near], kind="stable")]
    if not len(near):
        return []
    steps, weights = steps[near], weights[near]
    # Steps that are equal but for rounding fall into one part, or into two that are neighbours.
    width = EXACT if is_factor else max(EXACT, 1e-10 * spread)
    parts, first = np.unique(np.round(steps / width), return_index=True)
    sums = np.add.reduceat(weights, first)
    both = sums + np.append(np.where(np.diff(parts) == 1, sums[1:], 0.0), 0.0)
    common = np.flatnonzero(both >= MOST_COMMON * both.max())
    chosen = common[np.argsort(-both[common], kind="stable")][:MOST_CANDIDATES]
    ends = np.append(first[1:], len(steps))
    means = [float(np.average(steps[first[at] : ends[at]], weights=weights[first[at] : ends[at]])) for at in chosen]
    return [float(np.exp(one)) for one in means] if is_factor else means


def undo_column_exchange(columns: Sequence[JointColumn]) -> Sequence[JointColumn]:
    """Return the columns with the released values of the column that has their distribution; unchanged if all match."""
    made = list(columns)
    for is_number in (True, False):
        places = [at for at, one in enumerate(columns) if (one.numbers is not None) == is_number and one.released]
        for at, source in zip(places, _find_source_columns([columns[at] for at in places]), strict=True):
            one = columns[places[source]]
            if one is not columns[at]:
                made[at] = replace(columns[at], released=one.released, released_numbers=one.released_numbers)
    return made if any(one is not other for one, other in zip(made, columns, strict=True)) else columns


def _find_source_columns(columns: Sequence[JointColumn]) -> list[int]:
    """Return the position of the column whose released values have each column's distribution.

    This is the column itself unless others fit much better.
    """
    from scipy.optimize import linear_sum_assignment

    itself = np.arange(len(columns))
    if len(columns) < 2:
        return itself.tolist()
    shapes = [_distribution_shapes(one) for one in columns]
    distances = np.array([[np.abs(own - made).mean() for _, made in shapes] for own, _ in shapes])
    _, chosen = linear_sum_assignment(distances)
    moved = np.flatnonzero(chosen != itself)
    its_own, exchanged = distances[moved, moved], distances[moved, chosen[moved]]
    is_exchanged = (
        len(moved) and exchanged.sum() <= EXCHANGED_DISTANCE_RATIO * its_own.sum() and its_own.max() >= LEAST_DISTANCE
    )
    return (chosen if is_exchanged else itself).tolist()


def _distribution_shapes(column: JointColumn) -> tuple[Floats, Floats]:
    """Return the shapes of a column's distributions in the joint table and in its first dataset."""
    if column.numbers is None:
        return _shape_of_levels(column.own), _shape_of_levels(column.released[0])
    return _shape_of_numbers(column.ranked_numbers), _shape_of_numbers(column.released_ranked_numbers[0])


def _shape_of_levels(cells: Keys) -> Floats:
    """Return the shares of the most frequent levels, on a scale like that of numbers."""
    counts = distinct_key_counts(cells)[1]
    shares = np.sort(counts / counts.sum())[::-1][:MOST_LEVELS]
    return np.pad(shares, (0, MOST_LEVELS - len(shares))) * MOST_LEVELS / 2


def _shape_of_numbers(ordered: RankedNumbers) -> Floats:
    """Return the quantiles standardised by the interquartile range, or by the standard deviation if that is 0."""
    found = _ValueFrequencies.from_ranked(ordered)
    if found.counts.sum() < 2:
        return np.zeros(len(QUANTILES))
    low, middle, high = found.quantiles(np.array([0.25, 0.5, 0.75]))
    mean = np.average(found.values, weights=found.counts)
    spread = (high - low) or np.sqrt(np.average((found.values - mean) ** 2, weights=found.counts)) or 1.0
    return np.asarray(np.arcsinh((found.quantiles(QUANTILES) - middle) / spread))
