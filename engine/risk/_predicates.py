"""Predicates on the variables of a table, and which records they hold of: many at once, no loop over predicates or records.

A predicate is a conjunction of clauses, each on one variable: equal to a value, at most it, at least it, or missing. A predicate that holds of
exactly one record singles that record out (Cohen & Nissim 2020, PNAS 117(15); Giomi et al. 2022, §3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..data.microdata import Microdata

EQUAL, AT_MOST, AT_LEAST, MISSING = range(4)
CELLS = 4_000_000
"""Predicates times records that are looked at together."""
PIECES, FEWEST = 64, 500
"""Pieces of a table at most, and records of a piece at least, after each of which predicates that hold of too many are left."""


@dataclass(frozen=True, eq=False)
class Predicates:
    """P conjunctions of k clauses: the position of the variable, the operation and the value of each, all (P, k)."""

    variable: Integers
    operation: Integers
    value: Floats

    def __len__(self) -> int:
        return len(self.variable)

    def __getitem__(self, some: NDArray[np.bool_] | NDArray[np.intp]) -> Predicates:
        return Predicates(self.variable[some], self.operation[some], self.value[some])

    @classmethod
    def none(cls, clauses: int) -> Predicates:
        """No predicate at all."""
        nothing = np.empty((0, clauses))
        return cls(nothing.astype(np.int64), nothing.astype(np.int64), nothing)

    @classmethod
    def together(cls, parts: Sequence[Predicates]) -> Predicates:
        """Predicates of as many clauses each, one after another."""
        return cls(
            np.concatenate([part.variable for part in parts]),
            np.concatenate([part.operation for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    @property
    def distinct(self) -> Predicates:
        """Each predicate once, in the order in which they first come; clauses stand in the order of their variables."""
        order = np.argsort(self.variable, axis=1, kind="stable")
        sorted_ = Predicates(
            np.take_along_axis(self.variable, order, axis=1),
            np.take_along_axis(self.operation, order, axis=1),
            np.take_along_axis(self.value, order, axis=1),
        )
        said = np.hstack([sorted_.variable, sorted_.operation, np.nan_to_num(sorted_.value, nan=0.0)])
        _, first = np.unique(said, axis=0, return_index=True)
        return sorted_[np.sort(first)]

    def holds(self, records: Floats) -> NDArray[np.bool_]:
        """Of which records (n, d) each predicate holds, (P, n): a block of few predicates at a time is meant."""
        found = np.ones((len(self), len(records)), dtype=np.bool_)
        for clause in range(self.variable.shape[1]):
            for variable in np.unique(self.variable[:, clause]):
                column = records[:, variable]
                for operation in np.unique(self.operation[self.variable[:, clause] == variable, clause]):
                    own = (self.variable[:, clause] == variable) & (self.operation[:, clause] == operation)
                    found[own] &= _compared(column, int(operation), self.value[own, clause])
        return found

    def singles_out(self, records: Floats) -> NDArray[np.bool_]:
        """Which predicates hold of exactly one of the records (n, d), (P,).

        Those that hold of two are not looked at any further. Records that are alike stand together, so each piece has some from everywhere.
        """
        counts, left = np.zeros(len(self), dtype=np.int64), np.arange(len(self))
        pieces = max(1, min(PIECES, len(records) // FEWEST))
        for first in range(pieces):
            piece = np.ascontiguousarray(records[first::pieces])
            step = max(1, CELLS // max(1, len(piece)))
            for start in range(0, len(left), step):
                some = left[start : start + step]
                counts[some] += np.count_nonzero(self[some].holds(piece), axis=1)
            left = left[counts[left] < 2]
        return np.asarray(counts == 1)

    def matches(self, records: Floats, most: int) -> tuple[Integers, Integers, Integers]:
        """How many records (n, d) each predicate holds of, (P,); and pairs of predicate and record, of predicates with at most ``most``."""
        counts, pairs = np.zeros(len(self), dtype=np.int64), [np.empty((2, 0), dtype=np.int64)]
        step = max(1, CELLS // max(1, len(records)))
        for start in range(0, len(self), step):
            found = self[np.arange(start, min(start + step, len(self)))].holds(records)
            counts[start : start + step] = found.sum(axis=1)
            few = np.flatnonzero(counts[start : start + step] <= most)
            of, record = np.nonzero(found[few])
            pairs.append(np.vstack([few[of] + start, record]))
        predicate, record = np.concatenate(pairs, axis=1)
        return counts, predicate, record


def _compared(column: Floats, operation: int, values: Floats) -> NDArray[np.bool_]:
    """A comparison of a column (n,) with values (p,), (p, n); nothing compares with a missing value."""
    if operation == MISSING:
        return np.broadcast_to(np.isnan(column), (len(values), len(column)))
    if operation == EQUAL:
        return np.asarray(column[None, :] == values[:, None])
    if operation == AT_MOST:
        return np.asarray(column[None, :] <= values[:, None])
    return np.asarray(column[None, :] >= values[:, None])


def tables_of_numbers(tables: Sequence[Microdata], names: Sequence[str]) -> list[Floats]:
    """The variables of each table as floats, (n, d), in an order of records that their values alone decide.

    Levels have one code in all tables. Raises NotComputable like ``Microdata.numbers``.
    """
    columns: list[list[Floats]] = [[] for _ in tables]
    for name in names:
        if not tables[0].schema[name].kind.has_levels:
            for own, table in zip(columns, tables, strict=True):
                own.append(table.numbers(name))
            continue
        levels = pd.Index(list(dict.fromkeys(c for table in tables for c in table.column(name).cat.categories)))
        for own, table in zip(columns, tables, strict=True):
            codes = table.numbers(name)
            here = levels.get_indexer(pd.Index(table.column(name).cat.categories)).astype(np.float64)
            own.append(np.where(np.isnan(codes), np.nan, here[np.nan_to_num(codes).astype(np.intp)]))
    found = [np.column_stack(own) for own in columns]
    return [table[np.lexsort(table.T[::-1])] for table in found]


def univariate(records: Floats, ordered: NDArray[np.bool_], most: int, rng: np.random.Generator) -> Predicates:
    """Predicates on one variable that hold of exactly one of the ``records`` (n, d): a value that no other has, and the ends of ordered ones.

    At most ``most``, and of each variable at most its share of them, so that none with many values outnumbers all others.
    """
    each = max(1, -(-most // records.shape[1]))
    parts = [Predicates.none(1)]
    for variable in range(records.shape[1]):
        column = records[:, variable]
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        lone = values[counts == 1]
        operation = np.full(len(lone), EQUAL)
        if ordered[variable] and len(values) > 1:
            ends = [(AT_MOST, values[0])] * bool(counts[0] == 1) + [(AT_LEAST, values[-1])] * bool(counts[-1] == 1)
            operation = np.concatenate([operation, np.array([which for which, _ in ends], dtype=np.int64)])
            lone = np.concatenate([lone, np.array([value for _, value in ends])])
        if np.isnan(column).sum() == 1:
            operation, lone = np.append(operation, MISSING), np.append(lone, np.nan)
        chosen = np.sort(rng.choice(len(lone), min(each, len(lone)), replace=False))
        parts.append(Predicates(np.full((len(chosen), 1), variable), operation[chosen, None], lone[chosen, None]))
    found = Predicates.together(parts)
    return found[np.sort(rng.choice(len(found), min(most, len(found)), replace=False))]


def multivariate(
    records: Floats, ordered: NDArray[np.bool_], clauses: int, most: int, tries: int, rng: np.random.Generator
) -> Predicates:
    """At most ``most`` predicates on so many variables that hold of exactly one of the ``records`` (n, d), from so many ``tries``.

    Each is made from one record and some variables, all of them where there are no more than ``tries``, else drawn at random: its level or that it has none, and of a number at least it where it is above the
    median of the records, at most it otherwise (Giomi et al. 2022, §4.2).
    """
    size, d = records.shape
    clauses = min(clauses, d)
    if size * comb(d, clauses) <= tries:
        which = np.array(list(combinations(range(d), clauses)))
        variable, record = np.tile(which, (size, 1)), np.repeat(np.arange(size), len(which))
    else:
        variable, record = np.argsort(rng.random((tries, d)), axis=1)[:, :clauses], rng.integers(0, size, tries)
    value = records[record[:, None], variable]
    middle = np.array([np.median(own[~np.isnan(own)]) if not np.isnan(own).all() else 0.0 for own in records.T])
    operation = np.where(ordered[variable], np.where(value > middle[variable], AT_LEAST, AT_MOST), EQUAL)
    tried = Predicates(variable, np.where(np.isnan(value), MISSING, operation), value).distinct
    found = np.flatnonzero(tried.singles_out(records))
    return tried[np.sort(rng.choice(found, min(most, len(found)), replace=False))]


def guessed(
    like: Predicates, records: Floats, whole: NDArray[np.bool_], levels: Integers, rng: np.random.Generator
) -> Predicates:
    """Predicates of the form of others whose values are drawn at random: evenly from the ``levels`` (d,), or between the ends of ``records``.

    ``levels`` is 0 for what has none; of ``whole`` variables (d,) numbers are whole.
    """
    low, high = (np.array([own(one[~np.isnan(one)], initial=0.0) if np.isnan(one).all() else own(one[~np.isnan(one)])
                           for one in records.T]) for own in (np.min, np.max))  # fmt: skip
    at = like.variable
    level = np.floor(rng.random(at.shape) * np.maximum(levels, 1)[at])
    number = low[at] + rng.random(at.shape) * (high - low)[at]
    number = np.where(whole[at], np.rint(number), number)
    value = np.where(levels[at] > 0, level, number)
    return Predicates(at, like.operation, np.where(like.operation == MISSING, np.nan, value))
