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
class Column:
    """A column: its cells and, of numbers, its values in the joint table, (N,), and in each release, (r,)."""

    name: str
    own: Keys
    released: Sequence[Keys]
    numbers: Floats | None = None
    released_numbers: Sequence[Floats] = ()

    @cached_property
    def values(self) -> tuple[Keys, Codes, Integers]:
        """The different cells of the joint table, ascending, which of them each record has, (N,), and how often each occurs."""
        values, own, counts = np.unique(self.own, return_inverse=True, return_counts=True)
        return values, own.astype(np.int32), counts

    @cached_property
    def ascending(self) -> Floats:
        """The joint table's numbers, ascending, NaN at the end."""
        assert self.numbers is not None
        return np.sort(self.numbers)

    @cached_property
    def place(self) -> Singles | None:
        """The place of each number of the joint table in it, (N,); None of levels."""
        return None if self.numbers is None else _place(self.ascending, self.numbers)


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
    values, own, counts = column.values

    def known(cells: Keys) -> Codes:
        place = sorted_search(values, cells).clip(max=len(values) - 1)
        return np.where(values[place] == cells, place, UNKNOWN).astype(np.int32)

    places = tuple(_place(column.ascending, one) for one in column.released_numbers)
    return Coded(column.name, own, tuple(map(known, column.released)), counts, column.place, places)


def by_rank(column: Column) -> Coded:
    """Codes by the order of frequencies for levels; for numbers the places in each table."""
    if column.numbers is not None:
        _values, own, counts = column.values
        places = tuple(_place(np.sort(one), one) for one in column.released_numbers)
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


def _place(ordered: Floats, values: Floats) -> Singles:
    """The share of a table's numbers (n,), ascending with NaN at the end, that lie below each value (k,), half of the equal ones among them."""
    present = ordered[: len(ordered) - int(np.isnan(ordered).sum())]
    # in ascending order: of a million values at random nearly all the time would go to memory that is not at hand
    order = np.argsort(values)
    ascending, middle = values[order], np.empty(len(values), dtype=np.int64)
    middle[order] = np.searchsorted(present, ascending) + np.searchsorted(present, ascending, side="right")
    return np.where(np.isnan(values), -1, middle / (2 * max(1, len(present)))).astype(np.float32)


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
