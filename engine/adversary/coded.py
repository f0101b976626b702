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

from ..data.arrays import Floats, Integers
from ..data.sorting import Distinct, distinct_codes, is_first, sort_order, sorted_search
from .cells import MISSING, Keys

Codes = NDArray[np.int32]
Singles = NDArray[np.float32]
BINS = 20
"""Parts of a number's distribution that count as its values where people are ranked by how rare they are."""
UNKNOWN = -1
FEWEST_WITH_LEVEL = 5
"""Levels of fewer records of the joint table are joined: a hold-out of a fifth has all of four of them once in 600 times, of one once in five."""
MOST_WITH_RARE_LEVELS = 0.2
"""Columns in which more records have such levels are as good as numbers: whoever releases their values releases those of single people."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """The different numbers of a column (n,), NaN at the end, which each record has, and how many lie below each."""

    of: Distinct

    @cached_property
    def present(self) -> Integers:
        """How many of the values are numbers, and how many records have one."""
        missing = int(len(self.of.values) > 0 and np.isnan(self.of.values[-1]))
        return np.array([len(self.of.values) - missing, self.of.counts[: len(self.of.values) - missing].sum()])

    @cached_property
    def below(self) -> Integers:
        """How many records have a smaller number than each value, and how many have a number at all at the end, (v + 1,)."""
        return np.append(0, np.cumsum(self.of.counts[: self.present[0]]))

    def _found(self, others: Distinct) -> tuple[Integers, NDArray[np.bool_]]:
        """Where each of the other values (u,) would stand among the values, and whether it is the one that stands there."""
        values = self.of.values
        place = sorted_search(values[: self.present[0]], others.values)
        return place, values[place.clip(max=len(values) - 1)] == others.values

    def places_of(self, others: Ordered) -> Singles:
        """The share of these numbers that lie below each of the others (k,), half of the equal ones among them; -1 for NaN."""
        place, found = self._found(others.of)
        middle = self.below[place] + self.below[np.minimum(place + found, self.present[0])]
        places = (middle / (2 * max(1, int(self.present[1])))).astype(np.float32)
        places[np.isnan(others.of.values)] = -1
        return np.asarray(places[others.of.codes])

    def codes_of(self, others: Ordered) -> Codes:
        """Which of the values each of the others (k,) has; unknown where it is none of them."""
        place, found = self._found(others.of)
        codes = np.where(found, place, UNKNOWN).astype(np.int32)
        missing = np.isnan(others.of.values)
        codes[missing] = len(self.of.values) - 1 if self.present[0] < len(self.of.values) else UNKNOWN
        return np.asarray(codes[others.of.codes])


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
        return Ordered(distinct_codes(self.numbers))

    @cached_property
    def released_ordered(self) -> list[Ordered]:
        """The numbers of each release."""
        return [Ordered(distinct_codes(one)) for one in self.released_numbers]

    @cached_property
    def place(self) -> Singles | None:
        """The place of each number of the joint table in it, (N,); None of levels."""
        return None if self.numbers is None else self.ordered.places_of(self.ordered)


RARE = np.uint64(0xD1B54A32D192ED03)


def pool_rare_levels(name: str, own: Keys, released: Sequence[Keys]) -> Column:
    """Return a column of levels with the rare ones of the joint table (N,) as one level, there and in each dataset (r,).

    Every model draws the levels that members have. It cannot draw one that only hold-out people have, so that an honest release too would show members
    of a rare level more often than hold-out people. A released level that is not in the joint table stays as it is: it may be another name for one that is.
    """
    levels = distinct_codes(own)
    is_rare = (levels.counts < FEWEST_WITH_LEVEL) & (levels.values != MISSING)
    if not is_rare.any() or levels.counts[is_rare].sum() > MOST_WITH_RARE_LEVELS * len(own):
        return Column(name, own, released)
    rare = levels.values[is_rare]

    def join(cells: Keys) -> Keys:
        different = distinct_codes(cells)
        return np.asarray(np.where(np.isin(different.values, rare), RARE, different.values)[different.codes])

    return Column(name, join(own), [join(one) for one in released])


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
        return Coded(column.name, ordered.of.codes, codes, ordered.of.counts, column.place, places)
    own = distinct_codes(column.own)

    def known(cells: Keys) -> Codes:
        others = distinct_codes(cells)
        place = sorted_search(own.values, others.values).clip(max=len(own.values) - 1)
        return np.asarray(np.where(own.values[place] == others.values, place, UNKNOWN).astype(np.int32)[others.codes])

    return Coded(column.name, own.codes, tuple(map(known, column.released)), own.counts)


def by_rank(column: Column) -> Coded:
    """Codes by the order of frequencies for levels; for numbers the places in each table."""
    if column.numbers is not None:
        own, counts = column.ordered.of.codes, column.ordered.of.counts
        places = tuple(one.places_of(one) for one in column.released_ordered)
        unknown = tuple(np.full(len(one), UNKNOWN, dtype=np.int32) for one in column.released)
        return Coded(column.name, own, unknown, counts, column.place, places)
    own, counts = by_frequency(column.own)
    released = tuple(
        np.where(codes < len(counts), codes, UNKNOWN).astype(np.int32)
        for codes, _ in map(by_frequency, column.released)
    )
    return Coded(column.name, own, released, counts)


def by_frequency(cells: Keys) -> tuple[Codes, Integers]:
    """The place of each cell's value among the values by how often they occur, and the counts in that order. A missing value is the last."""
    different = distinct_codes(cells)
    values, counts = different.values, different.counts
    order = np.lexsort((values, -np.where(values == MISSING, 0, counts)))
    rank = np.empty(len(values), dtype=np.int32)
    rank[order] = np.arange(len(values))
    return rank[different.codes], counts[order]


def rarity(columns: Sequence[Coded]) -> Floats:
    """The product of the shares of a record's values among all, as a logarithm, (N,): lower is rarer. Numbers in twentieths."""
    return -surprise_of_records(columns)


def surprise_of_records(columns: Sequence[Coded]) -> Floats:
    """Return how rare the values of each record are: the sum of - log of their shares in the joint table, (N,). Numbers in twentieths."""
    total = np.zeros(len(columns[0].own) if columns else 0)
    for one in columns:
        total += _surprises(one)[_classes(one, one.own, one.place)]
    return total


def surprise_of_released(columns: Sequence[Coded], release: int) -> Floats:
    """Return the same of each row of a dataset, (r,). A level that is not in the joint table counts as one that half a record has."""
    total = np.zeros(len(columns[0].released[release]) if columns else 0)
    for one in columns:
        places = one.released_places[release] if one.place is not None else None
        total += _surprises(one)[_classes(one, one.released[release], places)]
    return total


def _classes(one: Coded, codes: Codes, places: Singles | None) -> Integers:
    """Return the class of each value, by its place for numbers of many values: classes of which rarity asks the shares; -1 of unknown levels."""
    if places is None or one.place is None or len(one.counts) <= 2 * BINS:
        return codes.astype(np.int64)
    return np.clip((places * BINS).astype(np.int64), -1, BINS - 1) + 1


def _surprises(one: Coded) -> Floats:
    """Return - log of the share of each class, that of unknown values last."""
    counts = (
        one.counts
        if one.place is None or len(one.counts) <= 2 * BINS
        else np.bincount(_classes(one, one.own, one.place), minlength=BINS + 1)
    )
    return np.asarray(-np.log(np.append(np.maximum(counts, 1), 0.5) / len(one.own)))


def near_cells(places: Singles, parts: int, offset: float) -> Keys:
    """Return cells of places (n,) that are equal within a part of the distribution, with limits moved by a share of a part; a missing one is its own."""
    return np.where(places < 0, np.uint64(0), (np.maximum(places, 0) * parts + offset + 1).astype(np.uint64))


def rarest_first(score: Floats, rows: Keys) -> Integers:
    """Records in the order of their rarity, of equals in the order of their rows, (N,)."""
    order = sort_order(score)
    new = is_first(score[order])
    tied = np.flatnonzero(~(new & np.append(new[1:], True)))
    if len(tied):
        run, some = np.cumsum(new)[tied], order[tied]
        by_row = sort_order(rows[some])
        order[tied] = some[by_row[sort_order(run[by_row])]]
    return order


def middle_ranks(values: Floats) -> Floats:
    """Ranks as shares of the records, missing ones first, (n,)."""
    different = distinct_codes(values)
    counts, missing = different.counts, int(np.isnan(different.values[-1:]).sum())
    first = np.append(counts[-missing:], 0)[0] if missing else 0
    above = np.cumsum(counts) + first
    ranks = above - (counts - 1) / 2
    if missing:
        ranks[-1] = (first + 1) / 2
    return np.asarray(ranks[different.codes] / len(values))
