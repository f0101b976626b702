"""Recognition of renamed levels: which confidential level each released level stands for.

Names of levels protect no one, since an intruder knows how frequent a level is in the population and what occurs beside
it. Frequency alone fails if many levels are equally rare. So each released level gets the naive Bayes likelihood of its
records' other values under each confidential level, and levels are assigned one to one with the largest sum (Kuhn
1955). Members and controls form one table: membership is not used, so that a wrong assignment finds no one by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers, map_on_threads
from ..data.bits import MISSING_KEY, Keys
from .coded import UNKNOWN_CODE, CodedColumn, Codes, JointColumn, Singles, code_by_rank, rank_by_frequency

Parts = NDArray[np.int8]
MOST_LEVELS = 500
"""Number of levels above which a column is coded by frequency alone."""
PARTS, COMMON = 10, 15
"""Bins of a number, and levels of another column, that are distinguished; rarer levels are joined."""
PASSES = 3
"""Number of assignments; the first uses numbers alone, which have no names."""
PRIOR = 1.0
"""Pseudo-count of each level, spread by the overall shares, so that no value is impossible."""
SAME_NAME = 30.0
"""Log odds for a level's own name: decides between otherwise equal levels."""
IMPOSSIBLE_SCORE = -1e12
LARGEST_SHARE_RENAMED = 0.05
"""Share of renamed rows above which people are also searched for with restored names."""


FrequencyCodes = tuple[Codes, Integers]
"""A release's own codes of a column of levels, (r,), most frequent first, and how often each occurs."""


def code_by_cooccurrence(columns: Sequence[JointColumn]) -> list[CodedColumn]:
    """Code columns like ``code_by_rank``, but levels by the values that occur beside them."""
    coded = map_on_threads(code_by_rank, columns)
    own = [_coarse_parts(one.codes, one.rank_shares) for one in coded]
    named = map_on_threads(
        lambda one: list(map(rank_by_frequency, one.released)) if one.numbers is None else [], columns
    )
    widths = [COMMON + 1 if one.rank_shares is None else PARTS + 1 for one in coded]
    profiles = map_on_threads(
        lambda one: list(map(partial(_level_profiles, one), own, widths)) if _has_recognisable_levels(one) else [],
        coded,
    )
    for step in range(PASSES):
        # First by numbers alone: levels beside a level may be renamed too.
        seen = [i for i, one in enumerate(coded) if step or one.rank_shares is not None]
        beside = {i: _released_parts(coded[i]) for i in seen}

        def column_with_assigned_levels(
            at: int, coded: list[CodedColumn] = coded, beside: dict[int, list[Parts]] = beside
        ) -> CodedColumn:
            """Return one column with its levels reassigned by the other columns."""
            others = [(profiles[at][i], parts) for i, parts in beside.items() if i != at] if profiles[at] else []
            return _assign_levels(columns[at], coded[at], named[at], others)

        coded = map_on_threads(column_with_assigned_levels, range(len(columns)))
    return coded


def _has_recognisable_levels(one: CodedColumn) -> bool:
    """Return whether a column has at least two levels and at most ``MOST_LEVELS``."""
    return one.rank_shares is None and 1 < len(one.counts) <= MOST_LEVELS


def _coarse_parts(codes: Codes, places: Singles | None) -> Parts:
    """Return coarse codes of a column, (n,).

    Levels beyond the ``COMMON`` most frequent are joined; numbers are in bins from 1, 0 if missing.
    """
    if places is None:
        return np.where((codes < 0) | (codes > COMMON), COMMON, codes).astype(np.int8)
    return np.where(places < 0, 0, np.minimum(places * PARTS, PARTS - 1).astype(np.int8) + 1).astype(np.int8)


def _released_parts(one: CodedColumn) -> list[Parts]:
    """Return the coarse codes of a column in each dataset."""
    places = one.released_rank_shares if one.rank_shares is not None else [None] * len(one.released_codes)
    return [_coarse_parts(codes, some) for codes, some in zip(one.released_codes, places, strict=True)]


def _level_profiles(one: CodedColumn, beside: Parts, width: int) -> Floats:
    """Return the log share of each part of another column among the records of each level, (levels, width)."""
    counts = _cross_tabulate(one.codes, len(one.counts), beside, width)
    shares = (counts.sum(axis=0) + 1) / (len(one.codes) + width)
    return np.asarray(np.log((counts + PRIOR * shares) / (one.counts[:, None] + PRIOR)))


def restore_level_names(column: JointColumn, coded: CodedColumn) -> JointColumn:
    """Return the column with released levels replaced by the confidential levels they stand for."""
    if coded.rank_shares is not None or len(coded.counts) > MOST_LEVELS:
        # By frequency alone most rare levels would be mistaken for each other.
        return column
    cells = np.empty(len(coded.counts), dtype=np.uint64)
    cells[coded.codes] = column.own
    released = [
        np.where(codes == UNKNOWN_CODE, own, cells[codes])
        for codes, own in zip(coded.released_codes, column.released, strict=True)
    ]
    return replace(column, released=released)


def has_other_names(column: JointColumn, renamed: JointColumn) -> bool:
    """Return whether renaming changed more than a few rows of a dataset."""
    pairs = zip(column.released, renamed.released, strict=True)
    return any(
        # Single rare levels are mistaken for each other by chance.
        float(np.mean(one != other)) > LARGEST_SHARE_RENAMED
        for one, other in pairs
        if len(one) and one is not other
    )


def _assign_levels(
    column: JointColumn,
    coded: CodedColumn,
    named: Sequence[FrequencyCodes],
    beside: Sequence[tuple[Floats, list[Parts]]],
) -> CodedColumn:
    """Assign the released levels of a column to its confidential levels, given the other columns."""
    if not _has_recognisable_levels(coded):
        return coded
    missing = bool((column.own == MISSING_KEY).any())
    released = []
    for at, (codes, counts) in enumerate(named):
        if not 1 < len(counts) <= MOST_LEVELS:
            released.append(coded.released_codes[at])
            continue
        expected = (coded.counts + 0.5) * len(codes) / len(coded.codes)
        # Poisson log likelihood of the level's frequency.
        score: Floats = counts[:, None].astype(np.float64) * np.log(expected) - expected
        for profile, parts in beside:
            score += _cross_tabulate(codes, len(counts), parts[at], profile.shape[1]) @ profile.T
        score += SAME_NAME * (
            _cells_by_code(codes, column.released[at])[:, None] == _cells_by_code(coded.codes, column.own)[None, :]
        )
        those = bool((column.released[at] == MISSING_KEY).any())
        # A missing value stands for a missing value only.
        if missing or those:
            score[-1 if those else slice(0), :] = IMPOSSIBLE_SCORE
            score[:, -1 if missing else slice(0)] = IMPOSSIBLE_SCORE
            if missing and those:
                score[-1, -1] = 0
        released.append(_best_assignment(score)[codes])
    return CodedColumn(coded.name, coded.codes, tuple(released), coded.counts)


def _cells_by_code(codes: Codes, cells: Keys) -> Keys:
    """Return the cell of each code."""
    found = np.empty(int(codes.max(initial=0)) + 1, dtype=np.uint64)
    found[codes] = cells
    return found


def _cross_tabulate(rows: Codes, height: int, parts: Parts, width: int) -> Integers:
    """Count the records with each level and part, (height, width)."""
    return np.bincount(rows * np.int32(width) + parts, minlength=height * width).reshape(height, width)


def _best_assignment(score: Floats) -> Codes:
    """Return the column that each row of scores (k, v) is assigned to, (k,); unknown if none is left."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(score, maximize=True)
    found = np.full(len(score), UNKNOWN_CODE, dtype=np.int32)
    found[rows] = np.where(score[rows, columns] > IMPOSSIBLE_SCORE / 2, columns, UNKNOWN_CODE)
    return found
