"""Pairs of confidential records that are most alike in what a release keeps: what an independent person would have in a record's place.

A partly synthetic release keeps some variables of every record and synthesises the others. How often a draw that owes nothing
to the record's own values would hit a confidential record all the same is seen from another record: given to record i, the drawn
variables of the record j that is nearest to it in the kept ones are those of a person like it who is not it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.sorting import distinct_codes, sort_order
from .cells import Keys
from .coded import midrank_shares

MOST_RECORDS = 500
MOST_TIES = 5
LOOKED_AT = 100
"""Number of records on either side that are examined for how near a person is."""
ROUNDING = 1e-9
"""More than what is lost where two shares are subtracted."""


@dataclass(frozen=True, eq=False)
class NeighbourPairs:
    """P pairs of a record and one that is nearest to it.

    own: first record of each pair, (P,)
    other: second record of each pair, (P,)
    weight: weight of each pair, which sums to 1 for each record that has pairs, (P,)
    cases: number of records that have pairs
    """

    own: Integers
    other: Integers
    weight: Floats
    cases: int

    def weighted_share(self, holds: Floats) -> float:
        """Return the share of the cases for which something holds, by pair (P,)."""
        return float(self.weight @ holds) / self.cases if self.cases else 0.0


def nearest_neighbour_pairs(
    data: Microdata, names: Sequence[str], rows: Keys, among: Integers | None = None
) -> NeighbourPairs:
    """Pair at most 500 records, of those ``among`` if given, each with up to 5 of the others that are nearest to it, other ones of equals
    for each.

    The distance is 1 for each variable with levels in which two records differ, and the difference of ranks, in records / n, for each
    number (Gower 1971). Chosen in the order of their ``rows`` (n,), which says nothing of where they stand: shuffling the table changes
    nothing.
    """
    order = sort_order(rows)
    chosen = order if among is None else order[np.isin(order, among)]
    if len(chosen) > MOST_RECORDS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_RECORDS).astype(np.int64)]
    if len(data) < 2 or not len(chosen):
        return NeighbourPairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
    columns = [(_comparable_values(data, name)[order], data.schema[name].kind.has_levels) for name in names]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    search = _LevelGroupSearch.from_columns(columns, len(order))
    own: list[Integers] = []
    other: list[Integers] = []
    weight: list[Floats] = []
    for i in rank[chosen]:
        ties = search.nearest_records(int(i))
        some_of = min(len(ties), MOST_TIES)
        ties = ties[(len(own) + np.arange(some_of) * len(ties) // some_of) % len(ties)]
        own.append(np.full(len(ties), i))
        other.append(ties)
        weight.append(np.full(len(ties), 1 / len(ties)))
    return NeighbourPairs(order[np.concatenate(own)], order[np.concatenate(other)], np.concatenate(weight), len(chosen))


@dataclass(frozen=True, eq=False)
class _LevelGroupSearch:
    """Records sorted by the group of all their levels, and in it by their first number.

    A record of another group is at distance 1 or more, and the distance in the first number bounds the whole: where one is near, few others are
    looked at.

    columns: values (n,) of each column, and whether they are levels
    members: records in the sorted order, (n,)
    first: their first numbers, (n,)
    place: where each record stands in the order, (n,)
    group: group of each record, (n,)
    edges: where each group begins and ends
    """

    columns: Sequence[tuple[Floats, bool]]
    members: Integers
    first: Floats
    place: Integers
    group: Integers
    edges: Integers

    @classmethod
    def from_columns(cls, columns: Sequence[tuple[Floats, bool]], records: int) -> _LevelGroupSearch:
        """Build the search among ``records`` records."""
        group = np.zeros(records, dtype=np.int64)
        for values, levels in columns:
            if levels:
                group = distinct_codes(group * (values.max() + 2) + values).codes.astype(np.int64)
        first = next((values for values, levels in columns if not levels), np.zeros(records))
        members = sort_order(first)
        members = members[sort_order(group[members])]
        place = np.empty(records, dtype=np.int64)
        place[members] = np.arange(records)
        return cls(columns, members, first[members], place, group, np.append(0, np.cumsum(np.bincount(group))))

    def nearest_records(self, i: int) -> Integers:
        """Return the other records that are nearest to record ``i``, ascending."""
        start, end = self.edges[self.group[i]], self.edges[self.group[i] + 1]
        at = self.place[i]
        near = self.members[max(start, at - LOOKED_AT) : min(end, at + LOOKED_AT + 1)]
        bound = np.nextafter(self._distances_from(i, near).min(), np.float32(np.inf)) if len(near) > 1 else 1.0
        if bound < 1:
            first, reach = self.first[start:end], bound + ROUNDING
            low, high = np.searchsorted(first, [self.first[at] - reach, self.first[at] + reach])
            some = np.sort(self.members[start + low : start + high])
        else:
            some = np.arange(len(self.members))
        distance = self._distances_from(i, some)
        return np.asarray(some[distance == distance.min()])

    def _distances_from(self, i: int, others: Integers) -> NDArray[np.float32]:
        """Return how far some records (k,) are from record ``i``, (k,); it is infinitely far from itself."""
        distance = np.zeros(len(others), dtype=np.float32)
        for values, levels in self.columns:
            apart = values[i] - values[others]
            distance += (apart != 0) if levels else np.abs(apart)
        distance[others == i] = np.inf
        return distance


def _comparable_values(data: Microdata, name: str) -> Floats:
    """Return codes of levels, or ranks of numbers as a share of the records, missing ones first: (n,)."""
    numbers = data.numbers(name)
    if data.schema[name].kind.has_levels:
        return np.asarray(np.where(np.isnan(numbers), -1, numbers))
    return midrank_shares(numbers)
