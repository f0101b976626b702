"""Which level of a confidential column each released level stands for, by what stands beside it.

Names of levels hide nobody: whoever knows the population knows which level is as frequent, at which ages, beside which other levels. Frequency alone
tells the common ones apart and fails where many levels are as rare as each other, as countries are. So each released level is given
the likelihood of its records' other values under each confidential level, as a naive Bayes classifier has it, and the levels are assigned to each
other one to one with the largest sum (Kuhn 1955): first by numbers alone, then by all columns, since what stands beside a level may be renamed too.

Members and controls are one table here as everywhere: who is which is not used, so that a wrong assignment finds nobody by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers, side_by_side
from .cells import MISSING, Keys
from .coded import UNKNOWN, Coded, Codes, Column, Singles, by_frequency, by_rank

Parts = NDArray[np.int8]
MOST_LEVELS = 500
"""A column of more levels is coded by its frequencies alone."""
PARTS, COMMON = 10, 15
"""So many parts of a number's distribution, and so many levels of another column, are told apart; rarer levels are taken together."""
PASSES = 3
"""Times that levels are assigned; the first time by numbers alone, which have no names."""
PRIOR = 1.0
"""Added to the records of each level, with the shares of all, so that nothing is impossible."""
SAME_NAME = 30.0
"""What a level's own name is worth, as a logarithm of odds: it decides where nothing else tells two levels apart."""
NEVER = -1e12
RENAMED = 0.05
"""Where more rows than this share have a level of another name, people are looked for under their own names."""


Named = tuple[Codes, Integers]
"""A release's own codes of a column of levels, (r,), most frequent first, and how often each occurs."""


def by_company(columns: Sequence[Column]) -> list[Coded]:
    """The columns as ``by_rank`` codes them, but levels by what stands beside them."""
    coded = side_by_side(by_rank, columns)
    own = [_parts(one.own, one.place) for one in coded]
    named = side_by_side(lambda one: list(map(by_frequency, one.released)) if one.numbers is None else [], columns)
    widths = [COMMON + 1 if one.place is None else PARTS + 1 for one in coded]
    profiles = side_by_side(lambda one: list(map(partial(_profile, one), own, widths)) if _is_told(one) else [], coded)
    for step in range(PASSES):
        seen = [i for i, one in enumerate(coded) if step or one.place is not None]
        beside = {i: _released_parts(coded[i]) for i in seen}

        def assigned(at: int, coded: list[Coded] = coded, beside: dict[int, list[Parts]] = beside) -> Coded:
            others = [(profiles[at][i], parts) for i, parts in beside.items() if i != at] if profiles[at] else []
            return _assigned(columns[at], coded[at], named[at], others)

        coded = side_by_side(assigned, range(len(columns)))
    return coded


def _is_told(one: Coded) -> bool:
    """Whether it is a column of levels, and of few enough."""
    return one.place is None and 1 < len(one.counts) <= MOST_LEVELS


def _parts(codes: Codes, places: Singles | None) -> Parts:
    """What of a column is told apart beside others, (n,): levels by their codes, rarer ones together, or numbers from 1 upwards, 0 of a missing one."""
    if places is None:
        return np.where((codes < 0) | (codes > COMMON), COMMON, codes).astype(np.int8)
    return np.where(places < 0, 0, np.minimum(places * PARTS, PARTS - 1).astype(np.int8) + 1).astype(np.int8)


def _released_parts(one: Coded) -> list[Parts]:
    places = one.released_places if one.place is not None else [None] * len(one.released)
    return [_parts(codes, some) for codes, some in zip(one.released, places, strict=True)]


def _profile(one: Coded, beside: Parts, width: int) -> Floats:
    """The logarithm of the share that each part of another column has among the records of each level, (levels, width)."""
    counts = _table(one.own, len(one.counts), beside, width)
    shares = (counts.sum(axis=0) + 1) / (len(one.own) + width)
    return np.asarray(np.log((counts + PRIOR * shares) / (one.counts[:, None] + PRIOR)))


def renamed_back(column: Column, coded: Coded) -> Column:
    """The column, its released levels with the cells of the confidential levels that they stand for.

    Unknown levels, numbers, and columns of too many levels stay as they are: by frequency alone most rare levels would be mistaken.
    """
    if coded.place is not None or len(coded.counts) > MOST_LEVELS:
        return column
    cells = np.empty(len(coded.counts), dtype=np.uint64)
    cells[coded.own] = column.own
    released = [
        np.where(codes == UNKNOWN, own, cells[codes])
        for codes, own in zip(coded.released, column.released, strict=True)
    ]
    return replace(column, released=released)


def other_names(column: Column, renamed: Column) -> bool:
    """Whether more than a few rows of a dataset have other cells: single rare levels are mistaken for each other by chance."""
    pairs = zip(column.released, renamed.released, strict=True)
    return any(float(np.mean(one != other)) > RENAMED for one, other in pairs if len(one) and one is not other)


def _assigned(
    column: Column, coded: Coded, named: Sequence[Named], beside: Sequence[tuple[Floats, list[Parts]]]
) -> Coded:
    if not _is_told(coded):
        return coded
    missing = bool((column.own == MISSING).any())
    released = []
    for at, (codes, counts) in enumerate(named):
        if not 1 < len(counts) <= MOST_LEVELS:
            released.append(coded.released[at])
            continue
        expected = (coded.counts + 0.5) * len(codes) / len(coded.own)
        score: Floats = counts[:, None].astype(np.float64) * np.log(expected) - expected
        for profile, parts in beside:
            score += _table(codes, len(counts), parts[at], profile.shape[1]) @ profile.T
        score += SAME_NAME * (_cells(codes, column.released[at])[:, None] == _cells(coded.own, column.own)[None, :])
        those = bool((column.released[at] == MISSING).any())
        if missing or those:
            score[-1 if those else slice(0), :] = NEVER
            score[:, -1 if missing else slice(0)] = NEVER
            if missing and those:
                score[-1, -1] = 0
        released.append(_best(score)[codes])
    return Coded(coded.name, coded.own, tuple(released), coded.counts)


def _cells(codes: Codes, cells: Keys) -> Keys:
    """Return the cell that each code stands for."""
    found = np.empty(int(codes.max(initial=0)) + 1, dtype=np.uint64)
    found[codes] = cells
    return found


def _table(rows: Codes, height: int, parts: Parts, width: int) -> Integers:
    """How many records have each pair of a level and a part, (height, width)."""
    return np.bincount(rows * np.int32(width) + parts, minlength=height * width).reshape(height, width)


def _best(score: Floats) -> Codes:
    """The column that each row of scores (k, v) is assigned to, (k,); unknown where none is left for it."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(score, maximize=True)
    found = np.full(len(score), UNKNOWN, dtype=np.int32)
    found[rows] = np.where(score[rows, columns] > NEVER / 2, columns, UNKNOWN)
    return found
