"""Which level of a confidential column each released level stands for, by what stands beside it.

Names of levels hide nobody: whoever knows the population knows which level is as frequent, at which ages, beside which other levels. Frequency alone
tells the common ones apart and fails where many levels are as rare as each other, as countries are. So each released level is given
the likelihood of its records' other values under each confidential level, as a naive Bayes classifier has it, and the levels are assigned to each
other one to one with the largest sum (Kuhn 1955): first by numbers alone, then by all columns, since what stands beside a level may be renamed too.

Members and controls are one table here as everywhere: who is which is not used, so that a wrong assignment finds nobody by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers, side_by_side
from .cells import MISSING
from .coded import UNKNOWN, Coded, Codes, Column, Singles, by_frequency, by_rank

Parts = NDArray[np.int8]
MOST_LEVELS = 500
"""Levels of a column that are assigned by what stands beside them; of more, by frequency alone."""
PARTS, COMMON = 10, 15
"""Parts of a number's distribution, and levels of another column, that are told apart beside a level; rarer ones are one."""
PASSES = 3
"""The first looks at numbers alone, which have no names."""
PRIOR = 1.0
"""Records with the shares of all that are added to those of a level, so that nothing is impossible."""
NEVER = -1e12
RENAMED = 0.05
"""The share of rows whose level has another name from which on people are looked for under their own."""


@dataclass(frozen=True, eq=False)
class _Beside:
    """A column as the company of others: which of ``size`` parts each record has, (N,) and, of each release, (r,)."""

    own: Parts
    released: tuple[Parts, ...]
    size: int

    @classmethod
    def of(cls, one: Coded) -> _Beside:
        if one.place is None:
            return cls(_common(one.own), tuple(map(_common, one.released)), COMMON + 1)
        return cls(_part(one.place), tuple(map(_part, one.released_places)), PARTS + 1)


def _common(codes: Codes) -> Parts:
    return np.where((codes < 0) | (codes > COMMON), COMMON, codes).astype(np.int8)


def _part(places: Singles) -> Parts:
    """From 1 upwards; 0 of a missing number, whose place is -1."""
    return np.where(places < 0, 0, np.minimum(places * PARTS, PARTS - 1).astype(np.int8) + 1).astype(np.int8)


def by_company(columns: Sequence[Column]) -> list[Coded]:
    """The columns as ``by_rank`` codes them, but levels by what stands beside them."""
    coded = side_by_side(by_rank, columns)
    for step in range(PASSES):
        beside = [_Beside.of(one) if step or one.place is not None else None for one in coded]

        def assigned(at: int, coded: list[Coded] = coded, beside: list[_Beside | None] = beside) -> Coded:
            others = [one for i, one in enumerate(beside) if one is not None and i != at]
            return _assigned(columns[at], coded[at], others)

        coded = side_by_side(assigned, range(len(columns)))
    return coded


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
    return any(float(np.mean(one != other)) > RENAMED for one, other in pairs if len(one))


def _assigned(column: Column, coded: Coded, beside: Sequence[_Beside]) -> Coded:
    if coded.place is not None or not 1 < len(coded.counts) <= MOST_LEVELS:
        return coded
    n, missing = len(coded.own), bool((column.own == MISSING).any())
    profiles = []
    for one in beside:
        counts = _table(coded.own, len(coded.counts), one.own, one.size)
        shares = (counts.sum(axis=0) + 1) / (n + one.size)
        profiles.append(np.log((counts + PRIOR * shares) / (coded.counts[:, None] + PRIOR)))
    released = []
    for at, cells in enumerate(column.released):
        codes, counts = by_frequency(cells)
        if not 1 < len(counts) <= MOST_LEVELS:
            released.append(coded.released[at])
            continue
        expected = (coded.counts + 0.5) * len(cells) / n
        score: Floats = counts[:, None].astype(np.float64) * np.log(expected) - expected
        for one, profile in zip(beside, profiles, strict=True):
            score += _table(codes, len(counts), one.released[at], one.size) @ profile.T
        those = bool((cells == MISSING).any())
        if missing or those:
            score[-1 if those else slice(0), :] = NEVER
            score[:, -1 if missing else slice(0)] = NEVER
            if missing and those:
                score[-1, -1] = 0
        released.append(_best(score)[codes])
    return Coded(coded.name, coded.own, tuple(released), coded.counts)


def _table(rows: Codes, height: int, columns: Parts, width: int) -> Integers:
    """How many records have each pair of two codes, (height, width)."""
    pairs = rows * np.int32(width) + columns
    return np.bincount(pairs, minlength=height * width).reshape(height, width)


def _best(score: Floats) -> Codes:
    """The column that each row of scores (k, v) is assigned to, (k,); unknown where none is left for it."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(score, maximize=True)
    found = np.full(len(score), UNKNOWN, dtype=np.int32)
    found[rows] = np.where(score[rows, columns] > NEVER / 2, columns, UNKNOWN)
    return found
