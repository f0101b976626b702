"""Records that agree wherever both have a value: a missing value matches anything.

That is sdcMicro's meaning (Templ 2017, §3.2.2). The relation is not transitive, so there are no equivalence classes:
each record has matches of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.arrays import Booleans, Integers
from ..data.rows import number_groups
from .equivalence_classes import ClassComposition, class_sizes

MISSING = -1
"""The code of a missing value."""

JOIN_COST = 1 << 19
"""Comparisons of two codes that take about as long as one join."""
MOST_PAIRS_AT_ONCE = 1 << 22
"""Pairs of rows that are compared at once."""


@dataclass(frozen=True, eq=False)
class GroupJoin:
    """Rows and other rows that match where their groups are equal.

    row_places: places of the rows, (r,)
    row_groups: group of each row, (r,)
    other_places: places of the others, (o,)
    other_groups: group of each other, (o,)
    n_groups: number of groups
    """

    row_places: Integers
    row_groups: Integers
    other_places: Integers
    other_groups: Integers
    n_groups: int


def _joins_by_missing_columns(rows: Integers, others: Integers) -> Iterator[GroupJoin]:
    """Yield a join for every pair of groups of rows (r, d) and others (o, d).

    The rows of a group lack values in the same columns.
    """
    ours, theirs = (list(_rows_by_missing_columns(codes)) for codes in (rows, others))
    for lacking, own in ours:
        for absent, place in theirs:
            # Within such a pair the matching is equality in the columns that both have, which is transitive and costs
            # one sort.
            compared = np.flatnonzero(~(lacking | absent))
            first, second = (codes[np.ix_(some, compared)] for codes, some in ((rows, own), (others, place)))
            columns = [[first[:, j], second[:, j]] for j in range(len(compared))]
            (left, right), groups = number_groups(columns, [len(own), len(place)])
            yield GroupJoin(own, left, place, right, groups)


def _missing_column_sets(codes: Integers) -> tuple[Integers, Integers]:
    """Return the distinct sets of columns in which rows (r, d) lack a value, as bits, and each row's set, (r,)."""
    found, which = np.unique((codes == MISSING) @ (1 << np.arange(codes.shape[1])), return_inverse=True)
    return found, which.reshape(-1)


def _rows_by_missing_columns(codes: Integers) -> Iterator[tuple[Booleans, Integers]]:
    """Yield each set of columns, (d,), in which some rows (r, d) lack a value, with the places of those rows."""
    sets, which = _missing_column_sets(codes)
    for number, one in enumerate(sets):
        yield (one >> np.arange(codes.shape[1]) & 1).astype(np.bool_), np.flatnonzero(which == number)


def partial_matches(rows: Integers, others: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield the matching pairs of ``rows`` (r, d) and ``others`` (o, d) as positions in both, each pair once.

    They come in several parts. Codes mean the same in both; ``MISSING`` matches every code. At most 62 columns.
    """
    for join in _joins_by_missing_columns(rows, others):
        order = np.argsort(join.other_groups, kind="stable")
        sizes = np.bincount(join.other_groups, minlength=join.n_groups)
        times = sizes[join.row_groups]
        first = (np.cumsum(sizes) - sizes)[join.row_groups] - (np.cumsum(times) - times)
        entry = np.repeat(first, times) + np.arange(int(times.sum()))
        yield np.repeat(join.row_places, times), join.other_places[order[entry]]


def agreement_matrix(rows: Integers, others: Integers) -> Booleans:
    """Return whether each of the rows (r, d) matches each of the others (o, d): (r, o)."""
    found = np.ones((len(rows), len(others)), dtype=np.bool_)
    for ours, theirs in zip(rows.T, others.T, strict=True):
        found &= (ours[:, None] == theirs) | (ours[:, None] == MISSING) | (theirs == MISSING)
    return found


def match_counts(rows: Integers, others: Integers, weights: Integers) -> Integers:
    """Count the records that match each of the rows (r, d): (r,).

    ``weights`` (o,) records have the values of each of the ``others`` (o, d).
    """
    groups = [len(_missing_column_sets(codes)[0]) for codes in (rows, others)]
    # Where nearly every row lacks other columns, comparing each with each is faster than a join for every two groups.
    if rows.size * len(others) < JOIN_COST * groups[0] * groups[1]:
        blocks = np.array_split(np.arange(len(rows)), 1 + len(rows) * len(others) // MOST_PAIRS_AT_ONCE)
        found = [agreement_matrix(rows[block], others) @ weights for block in blocks]
        return np.concatenate(found).astype(np.int64)
    total = np.zeros(len(rows), dtype=np.int64)
    for join in _joins_by_missing_columns(rows, others):
        alike = np.bincount(join.other_groups, weights=weights[join.other_places], minlength=join.n_groups).astype(
            np.int64
        )
        total[join.row_places] += alike[join.row_groups]
    return total


def class_patterns(columns: Sequence[pd.Series], classes: Integers) -> Integers:
    """Return the codes of each equivalence class, (classes, d).

    ``columns`` are the d columns of n records, ``classes`` (n,) the class of each record.
    """
    first = np.unique(classes, return_index=True)[1]
    found = np.empty((len(first), len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        values = column.iloc[first]
        found[:, place] = np.where(values.isna(), MISSING, number_groups([[values]], [len(first)])[0][0])
    return found


def matching_sizes(columns: Sequence[pd.Series], classes: Integers) -> Integers:
    """Count the records that the records of each class match, itself among them, (classes,)."""
    patterns = class_patterns(columns, classes)
    return match_counts(patterns, patterns, class_sizes(classes))


def composition_of_matches(patterns: Integers, own: ClassComposition, values: int) -> ClassComposition:
    """Count the values among the records that match each of the distinct ``patterns`` (g, d).

    ``own`` is the composition of the records that have each pattern.
    """
    first = np.searchsorted(own.group, np.arange(len(patterns) + 1))
    keys, counts = [], []
    for ours, theirs in partial_matches(patterns, patterns):
        times = first[theirs + 1] - first[theirs]
        opening = np.cumsum(times) - times
        entry = np.repeat(first[theirs] - opening, times) + np.arange(int(times.sum()))
        key, place = np.unique(np.repeat(ours, times) * values + own.value[entry], return_inverse=True)
        keys.append(key)
        counts.append(np.bincount(place, weights=own.count[entry]))
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    count = np.bincount(place, weights=np.concatenate(counts)).astype(np.int64)
    sizes = np.bincount(key // values, weights=count, minlength=len(patterns)).astype(np.int64)
    return ClassComposition(key // values, key % values, count, sizes)
