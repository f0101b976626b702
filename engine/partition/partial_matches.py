"""Records that agree wherever both have a value: a missing value matches anything (sdcMicro's meaning; Templ 2017, §3.2.2).

The relation is not transitive, so that it makes no classes: each record has matches of its own. Records are compared by the
columns in which they have values, group by group: a pair of groups with missing values in the same columns is one join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ..arrays import Booleans, Integers
from .equivalence_classes import Composition, class_sizes
from .grouping import numbered

MISSING = -1
"""The code of a missing value."""


def partial_matches(rows: Integers, others: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Which of the ``rows`` (r, d) matches which of the ``others`` (o, d), as pairs of places, each once, in several parts.

    Codes mean the same in both; ``MISSING`` matches every code.
    """
    ours, theirs = (list(_by_missing(codes)) for codes in (rows, others))
    for lacking, own in ours:
        for absent, place in theirs:
            compared = np.flatnonzero(~(lacking | absent))
            first, second = (codes[np.ix_(some, compared)] for codes, some in ((rows, own), (others, place)))
            columns = [[first[:, j], second[:, j]] for j in range(len(compared))]
            (left, right), groups = numbered(columns, [len(own), len(place)])
            order = np.argsort(right, kind="stable")
            sizes = np.bincount(right, minlength=groups)
            starts = np.cumsum(sizes) - sizes
            times = sizes[left]
            opening = np.cumsum(times) - times
            within = np.arange(int(times.sum())) - np.repeat(opening, times)
            yield np.repeat(own, times), place[order[np.repeat(starts[left], times) + within]]


def _by_missing(codes: Integers) -> Iterator[tuple[Booleans, Integers]]:
    """The rows (r, d) by the columns in which they lack a value: (d,) and the places of the rows."""
    patterns, which = np.unique(codes == MISSING, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield pattern, np.flatnonzero(which.reshape(-1) == number)


def match_counts(rows: Integers, others: Integers, weights: Integers) -> Integers:
    """How many records each of the rows (r, d) matches, where ``weights`` (o,) records are like each of the others (o, d): (r,)."""
    found = np.zeros(len(rows), dtype=np.int64)
    for ours, theirs in partial_matches(rows, others):
        found += np.bincount(ours, weights=weights[theirs], minlength=len(rows)).astype(np.int64)
    return found


def class_patterns(columns: Sequence[pd.Series], classes: Integers) -> Integers:
    """The codes of each equivalence class, (classes, d): ``columns`` are the d of n records, ``classes`` (n,) theirs."""
    first = np.unique(classes, return_index=True)[1]
    found = np.empty((len(first), len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        values = column.iloc[first]
        found[:, place] = np.where(values.isna(), MISSING, numbered([[values]], [len(first)])[0][0])
    return found


def matching_sizes(columns: Sequence[pd.Series], classes: Integers) -> Integers:
    """How many records the records of each class match, itself among them, (classes,)."""
    patterns = class_patterns(columns, classes)
    return match_counts(patterns, patterns, class_sizes(classes))


def composition_of_matches(patterns: Integers, own: Composition, values: int) -> Composition:
    """The values among the records that match each of the different ``patterns`` (g, d), whose own records have the composition ``own``."""
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
    return Composition(key // values, key % values, count, sizes)
