"""The columns of a confidential table, its controls and its releases as codes and places, so that they are compared whatever they are called.

A cell has a code, equal where the values are, and a cell of a number also a place in the table, from 0 to 1. Two codings are made. As
they are: released values have the code of the confidential value that they equal. By rank: numbers have their place among the released
ones, levels the place of their frequency, so that a monotone or one-to-one recoding of a column changes nothing.

Members and controls are coded alike, as one joint table: who is which is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..arrays import Floats, Integers, sorted_search
from .cells import MISSING, Keys

Codes = NDArray[np.int32]
Singles = NDArray[np.float32]
BINS = 20
"""Parts of a number's distribution that count as its values where people are ranked by how rare they are."""
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Ordered:
    """Numbers (n,) in ascending order, NaN at the end, and the record of each."""

    ascending: Floats
    records: Integers

    @classmethod
    def of(cls, numbers: Floats) -> Ordered:
        records = np.argsort(numbers)
        return cls(numbers[records], records)

    def places_of(self, others: Ordered) -> Singles:
        """The share of these numbers that lie below each of the others (k,), half of the equal ones among them; -1 for NaN.

        They are asked in ascending order: of a million numbers at random nearly all the time would go to memory that is not at hand.
        """
        present, asked = (
            one.ascending[: len(one.ascending) - int(np.isnan(one.ascending).sum())] for one in (self, others)
        )
        places = np.full(len(others.records), -1, dtype=np.float32)
        middle = np.searchsorted(present, asked) + np.searchsorted(present, asked, side="right")
        places[others.records[: len(asked)]] = middle / (2 * max(1, len(present)))
        return places

    @cached_property
    def values(self) -> tuple[Floats, Codes, Integers]:
        """The different numbers, ascending, NaN once at the end, which of them each record has, (n,), and how often each occurs."""
        new = np.ones(len(self.ascending), dtype=np.bool_)
        before, after = self.ascending[:-1], self.ascending[1:]
        new[1:] = (before != after) & ~np.isnan(before)
        own = np.empty(len(new), dtype=np.int32)
        own[self.records] = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        return self.ascending[starts], own, np.diff(np.append(starts, len(new)))

    def codes_of(self, others: Ordered) -> Codes:
        """Which of the values each of the others (k,) has; unknown where it is none of them."""
        values, codes = self.values[0], np.full(len(others.records), UNKNOWN, dtype=np.int32)
        place = np.searchsorted(values, others.ascending).clip(max=len(values) - 1)
        found = values[place]
        known = (found == others.ascending) | (np.isnan(found) & np.isnan(others.ascending))
        codes[others.records[known]] = place[known]
        return codes


@dataclass(frozen=True, eq=False)
class Column:
    """A column: its cells and, of numbers, its values in the joint table, (N,), and in each release, (r,)."""

    name: str
    own: Keys
    released: Sequence[Keys]
    numbers: Floats | None = None
    released_numbers: Sequence[Floats] = ()

    @cached_property
    def ordered(self) -> Ordered:
        """The joint table's numbers."""
        assert self.numbers is not None
        return Ordered.of(self.numbers)

    @cached_property
    def released_ordered(self) -> list[Ordered]:
        """The numbers of each release."""
        return [Ordered.of(one) for one in self.released_numbers]

    @cached_property
    def place(self) -> Singles | None:
        """The place of each number of the joint table in it, (N,); None of levels."""
        return None if self.numbers is None else self.ordered.places_of(self.ordered)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column's codes, -1 for released values that nobody has, and places, None of levels; ``counts`` of each code in the joint table."""

    name: str
    own: Codes
    released: tuple[Codes, ...]
    counts: Integers
    place: Singles | None = None
    released_places: tuple[Singles, ...] = ()

    @cached_property
    def surprise(self) -> Singles:
        """- log of the share of records that have the record's value, (N,)."""
        return np.asarray(-np.log(self.counts / len(self.own)), dtype=np.float32)[self.own]


def as_they_are(column: Column) -> Coded:
    """Codes by equal values."""
    if column.numbers is not None:
        ordered, released = column.ordered, column.released_ordered
        codes, places = tuple(map(ordered.codes_of, released)), tuple(map(ordered.places_of, released))
        return Coded(column.name, ordered.values[1], codes, ordered.values[2], column.place, places)
    values, own, counts = np.unique(column.own, return_inverse=True, return_counts=True)

    def known(cells: Keys) -> Codes:
        place = sorted_search(values, cells).clip(max=len(values) - 1)
        return np.where(values[place] == cells, place, UNKNOWN).astype(np.int32)

    return Coded(column.name, own.astype(np.int32), tuple(map(known, column.released)), counts)


def by_rank(column: Column) -> Coded:
    """Codes by the order of frequencies for levels; for numbers the places in each table."""
    if column.numbers is not None:
        _values, own, counts = column.ordered.values
        places = tuple(one.places_of(one) for one in column.released_ordered)
        unknown = tuple(np.full(len(one), UNKNOWN, dtype=np.int32) for one in column.released)
        return Coded(column.name, own, unknown, counts, column.place, places)
    own, counts = _by_frequency(column.own)
    released = tuple(
        np.where(codes < len(counts), codes, UNKNOWN).astype(np.int32)
        for codes, _ in map(_by_frequency, column.released)
    )
    return Coded(column.name, own, released, counts)


def _by_frequency(cells: Keys) -> tuple[Codes, Integers]:
    """The place of each cell's value among the values by how often they occur, and the counts in that order. A missing value is the last."""
    values, codes, counts = np.unique(cells, return_inverse=True, return_counts=True)
    order = np.lexsort((values, -np.where(values == MISSING, 0, counts)))
    rank = np.empty(len(values), dtype=np.int32)
    rank[order] = np.arange(len(values))
    return rank[codes], counts[order]


def rarity(columns: Sequence[Coded]) -> Floats:
    """The product of the shares of a record's values among all, as a logarithm, (N,): lower is rarer. Numbers in twentieths."""
    total = np.zeros(len(columns[0].own) if columns else 0)
    for one in columns:
        total -= _share(one)
    return total


def _share(one: Coded) -> Floats:
    if one.place is None or len(one.counts) <= 2 * BINS:
        return one.surprise.astype(np.float64)
    part = np.clip((one.place * BINS).astype(np.int64), -1, BINS - 1) + 1
    return np.asarray(-np.log(np.maximum(np.bincount(part, minlength=BINS + 1), 1) / len(part)))[part]


def rarest_first(score: Floats, rows: Keys) -> Integers:
    """Records in the order of their rarity, of equals in the order of their rows, (N,)."""
    return np.lexsort((rows, score)).astype(np.int64)


def middle_ranks(values: Floats) -> Floats:
    """Ranks as shares of the records, missing ones first, (n,)."""
    return np.asarray(rankdata(np.where(np.isnan(values), -np.inf, values)) / len(values))
