"""Released numbers that stand for those of the data in other units or from another origin, and columns that stand under each other's names.

Units, origins and names hide nobody: whoever knows the population knows its distributions. A column of numbers is taken back by the one factor or the one
difference by which most of its values are values of the data. Columns are taken back to those whose distributions they have, whatever their
unit, origin and names of levels. Members and controls are one table here as everywhere: who is which is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..data.arrays import Floats
from ..data.sorting import distinct_codes, sorted_search
from .cells import canonical, number_cells
from .coded import Column

MOST_RELEASED, MOST_OWN = 150, 1500
"""Different values from which a factor or a difference is found: the most frequent ones of a dataset and of the data."""
EXACT = 3e-6
"""How far two values may lie apart that are the same, as a share of them or of the spread: a factor brings rounding with it."""
ENOUGH = 0.5
"""A factor or difference counts with which so large a share of the rows have values of the data."""
GAIN = 0.2
"""And with which so much more of them do than without."""
QUANTILES = np.linspace(0.025, 0.975, 39)
MOST_LEVELS = 40
BETTER = 0.5
"""Columns are exchanged where this halves the distance of their distributions at least."""
LEAST_DISTANCE = 0.05
"""Distance of two distributions up to which a column is its own."""


def rescaled_back(column: Column) -> Column:
    """Return a column of numbers with the values of the data that those of each dataset stand for; as it is where it stands for its own."""
    if column.numbers is None:
        return column
    own = column.numbers[~np.isnan(column.numbers)]
    made = [_taken_back(own, one) for one in column.released_numbers]
    if all(one is other for one, other in zip(made, column.released_numbers, strict=True)):
        return column
    return replace(column, released=list(map(number_cells, made)), released_numbers=made)


def _taken_back(own: Floats, released: Floats) -> Floats:
    """Return released numbers (r,) in the unit and from the origin of the data's (n,), the very values where they stand for these."""
    present = released[np.isfinite(released)]
    if len(own) < 2 or len(present) < 2:
        return released
    values = distinct_codes(own).values
    without = float(np.mean(_snapped(values, present)[1]))
    if without >= ENOUGH + GAIN:
        return released
    best, share = released, max(ENOUGH, without + GAIN)
    for is_factor in (True, False):
        step = _commonest_step(own, present, is_factor=is_factor)
        if step is None:
            continue
        moved = released / step if is_factor else released - step
        snapped, is_own = _snapped(values, moved)
        found = float(np.mean(is_own[np.isfinite(released)]))
        if found > share:
            best, share = canonical(snapped), found
    return best


def _snapped(values: Floats, numbers: Floats) -> tuple[Floats, np.ndarray]:
    """Return each number (k,) as the value of the data (v,), ascending, that it is, and whether it is one."""
    place = sorted_search(values, np.nan_to_num(numbers, nan=values[0])).clip(1, len(values) - 1)
    below, above = values[place - 1], values[place]
    nearest = np.where(np.abs(numbers - below) <= np.abs(above - numbers), below, above)
    spread = float(values[-1] - values[0])
    with np.errstate(invalid="ignore"):
        is_own = np.abs(numbers - nearest) <= EXACT * np.maximum(np.abs(nearest), 0.01 * spread)
    return np.where(is_own, nearest, numbers), np.asarray(is_own)


def _commonest_step(own: Floats, released: Floats, *, is_factor: bool) -> float | None:
    """Return the factor, or the difference, between values of a dataset (r,) and of the data (n,) that most pairs of them have; None without any.

    Of several that as many pairs have, the one nearest to that of the medians.
    """
    if is_factor:
        own, released = own[own > 0], released[released > 0]
    if not len(own) or not len(released):
        return None
    scale: Callable[[Floats], Floats] = np.log if is_factor else np.positive
    ours, theirs = (scale(_most_frequent(one, most)) for one, most in ((own, MOST_OWN), (released, MOST_RELEASED)))
    middle = float(np.median(scale(released))) - float(np.median(scale(own)))
    spread = 1.0 if is_factor else float(np.ptp(ours)) or 1.0
    steps = np.sort((theirs[:, None] - ours[None, :]).ravel())
    steps = steps[np.abs(steps - middle) <= (1.5 if is_factor else spread)]
    if not len(steps):
        return None
    width = EXACT * spread
    count = np.searchsorted(steps, steps + width, "right") - np.arange(len(steps))
    first = np.flatnonzero(count == count.max())
    at = int(first[np.argmin(np.abs(steps[first] - middle))])
    step = float(np.median(steps[at : at + int(count[at])]))
    return float(np.exp(step)) if is_factor else step


def _most_frequent(values: Floats, most: int) -> Floats:
    """Return the most frequent different values, at most so many; of equally frequent ones some from everywhere."""
    different = distinct_codes(values)
    if len(different.values) <= most:
        return different.values
    order = np.argsort(-different.counts, kind="stable")
    frequent = order[: most // 2]
    rest = np.sort(order[most // 2 :])
    some = np.append(frequent, rest[np.linspace(0, len(rest) - 1, most - len(frequent)).astype(int)])
    return np.asarray(different.values[some])


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
