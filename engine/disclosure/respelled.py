"""Released numbers that stand for those of the data in other units or from another origin, and columns that stand under each other's names.

Units, origins and names hide nobody: whoever knows the population knows its distributions. A column of numbers is taken back by the one factor or the one
difference by which most of its values are values of the data. Columns are taken back to those whose distributions they have, whatever their
unit, origin and names of levels. Members and controls are one table here as everywhere: who is which is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.arrays import Floats
from ..data.sorting import Distinct, distinct_codes, sorted_search
from .cells import canonical, number_cells
from .coded import Column

MOST_RELEASED, MOST_OWN = 500, 1500
"""Different values from which a factor or a difference is found: the most frequent ones of a dataset and of the data."""
EXACT = 3e-6
"""How far two values may lie apart that are the same, as a share of them or of the spread: a factor brings rounding with it."""
MORE_ALIKE = 1.05
"""A factor or difference counts with which the frequencies of the values agree so much better than without."""
MOST_COMMON = 0.8
MOST_CANDIDATES = 60
"""Factors or differences that are tried: those that nearly as many pairs of values have as the commonest."""
QUANTILES = np.linspace(0.025, 0.975, 39)
MOST_LEVELS = 40
BETTER = 0.5
"""Columns are exchanged where this halves the distance of their distributions at least."""
LEAST_DISTANCE = 0.05
"""Distance of two distributions up to which a column is its own."""


def rescaled_back(column: Column) -> Column:
    """Return a column of numbers with the values of the data that those of each dataset stand for; as it is where it stands for its own.

    All datasets are written in one way, which the first of them shows.
    """
    if column.numbers is None or not column.released_numbers:
        return column
    own = distinct_codes(column.numbers[~np.isnan(column.numbers)])
    step = _find_step(own, column.released_numbers[0])
    if step is None:
        return column
    made = [canonical(_snapped(own.values, step.undo(one))[0]) for one in column.released_numbers]
    return replace(column, released=list(map(number_cells, made)), released_numbers=made)


@dataclass(frozen=True)
class _Step:
    """A factor, or a difference, between the numbers of a dataset and those of the data."""

    size: float
    is_factor: bool

    def undo(self, numbers: Floats) -> Floats:
        return np.asarray(numbers / self.size if self.is_factor else numbers - self.size)


def _find_step(own: Distinct, released: Floats) -> _Step | None:
    """Return the step that gives most rows of a dataset (r,) values of the data; None where it is in the unit of these, or none does."""
    present = released[np.isfinite(released)]
    if len(own.values) < 2 or len(present) < 2:
        return None
    made = distinct_codes(present)
    best, likeness = None, MORE_ALIKE * _likeness(own, made, _Step(0.0, is_factor=False))
    for is_factor in (True, False):
        for size in _common_steps(own, made, is_factor=is_factor):
            step = _Step(size, is_factor)
            alike = _likeness(own, made, step)
            if alike > likeness:
                best, likeness = step, alike
    return best


def _likeness(own: Distinct, made: Distinct, step: _Step) -> float:
    """Return how far the frequencies of the values agree once a step is undone: dense values agree after many steps, their frequencies after one."""
    snapped, is_own = _snapped(own.values, step.undo(made.values))
    place = sorted_search(own.values, snapped[is_own]).clip(max=len(own.values) - 1)
    return float(np.sqrt(made.counts[is_own] * own.counts[place].astype(np.float64)).sum())


def _snapped(values: Floats, numbers: Floats) -> tuple[Floats, np.ndarray]:
    """Return each number (k,) as the value of the data (v,), ascending, that it is, and whether it is one."""
    place = sorted_search(values, np.nan_to_num(numbers, nan=values[0])).clip(1, len(values) - 1)
    below, above = values[place - 1], values[place]
    nearest = np.where(np.abs(numbers - below) <= np.abs(above - numbers), below, above)
    spread = float(values[-1] - values[0])
    with np.errstate(invalid="ignore"):
        is_own = np.abs(numbers - nearest) <= EXACT * np.maximum(np.abs(nearest), 0.01 * spread)
    return np.where(is_own, nearest, numbers), np.asarray(is_own)


def _common_steps(own: Distinct, released: Distinct, *, is_factor: bool) -> list[float]:
    """Return the factors, or differences, between values of a dataset and of the data that most pairs of records have, commonest first."""
    (ours, our_weights), (theirs, their_weights) = _most_frequent(own, MOST_OWN), _most_frequent(released, MOST_RELEASED)  # fmt: skip
    if is_factor:
        kept, made = ours > 0, theirs > 0
        ours, our_weights, theirs, their_weights = np.log(ours[kept]), our_weights[kept], np.log(theirs[made]), their_weights[made]  # fmt: skip
    if not len(ours) or not len(theirs):
        return []
    middle = float(np.median(theirs)) - float(np.median(ours))
    spread = 1.0 if is_factor else float(np.ptp(ours)) or 1.0
    steps = (theirs[:, None] - ours[None, :]).ravel()
    weights = np.sqrt(their_weights[:, None] * our_weights[None, :]).ravel()
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


def _most_frequent(different: Distinct, most: int) -> tuple[Floats, Floats]:
    """Return the most frequent different values, at most so many, and their counts: half of them the most frequent, the others from everywhere."""
    some = np.argsort(-different.counts, kind="stable")
    if len(some) > most:
        frequent, rest = some[: most // 2], np.sort(some[most // 2 :])
        some = np.append(frequent, rest[np.linspace(0, len(rest) - 1, most - len(frequent)).astype(np.int64)])
    return np.asarray(different.values[some]), different.counts[some].astype(np.float64)


def exchanged_back(columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns, each with the released values of the column that has its distribution; the same ones where each has its own."""
    from scipy.optimize import linear_sum_assignment

    made = list(columns)
    for is_number in (True, False):
        places = [at for at, one in enumerate(columns) if (one.numbers is not None) == is_number]
        if len(places) < 2 or not columns[places[0]].released:
            continue
        some = [columns[at] for at in places]
        own, released = ([_profile(one, side) for one in some] for side in ("own", "released"))
        distances = np.abs(np.array(own)[:, None, :] - np.array(released)[None, :, :]).mean(axis=2)
        _, chosen = linear_sum_assignment(distances)
        its_own, exchanged = np.diag(distances), distances[np.arange(len(some)), chosen]
        moved = chosen != np.arange(len(some))
        if not moved.any() or exchanged[moved].sum() > BETTER * its_own[moved].sum() or its_own[moved].max() < LEAST_DISTANCE:  # fmt: skip
            continue
        for at, source in zip(places, chosen, strict=True):
            made[at] = replace(
                columns[at],
                released=some[source].released,
                released_numbers=some[source].released_numbers,
            )
    return columns if all(one is other or one.released is other.released for one, other in zip(made, columns, strict=True)) else made  # fmt: skip


def _profile(column: Column, side: str) -> Floats:
    """Return what a distribution is like in whatever unit, from whatever origin and under whatever names, of a column of the data or of its first dataset.

    Of numbers the quantiles on the scale of their quartiles, of levels the shares of the most frequent.
    """
    if column.numbers is None:
        counts = distinct_codes(column.own if side == "own" else column.released[0]).counts
        shares = np.sort(counts / counts.sum())[::-1][:MOST_LEVELS]
        return np.pad(shares, (0, MOST_LEVELS - len(shares))) * MOST_LEVELS / 2
    numbers = column.numbers if side == "own" else column.released_numbers[0]
    present = numbers[np.isfinite(numbers)]
    if len(present) < 2:
        return np.zeros(len(QUANTILES))
    quantiles = np.quantile(present, QUANTILES)
    spread = float(np.quantile(present, 0.75) - np.quantile(present, 0.25)) or float(present.std()) or 1.0
    return np.asarray(np.arcsinh((quantiles - np.median(present)) / spread))
