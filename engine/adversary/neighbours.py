"""Pairs of confidential records that are most alike in the variables that a release keeps.

A partly synthetic release keeps some variables of every record and synthesises the others. The pairs tell how often a
draw that does not depend on the record's own values would hit it: give record i the synthesised variables of the record
j nearest to it in the kept ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.long_arrays import compute_column, long_blocks, release_pages, take_rows
from ..data.microdata import Microdata
from ..data.sorting import sort_order
from .cells import break_ties_by_unit
from .coded import midrank_shares
from .nearest_records import LevelGroupSearch, find_nearest_by_block

MOST_RECORDS = 500
MOST_TIES = 5
MOST_SORTED = 1 << 20
"""Records that are sorted by their rows to choose some of them; of more the smallest keys are chosen."""


@dataclass(frozen=True, eq=False)
class NeighbourPairs:
    """P pairs of a record and one of its nearest records.

    own: first record of each pair, (P,)
    other: second record of each pair, (P,)
    weight: weight of each pair, summing to 1 over the pairs of a record, (P,)
    cases: number of records that have pairs
    """

    own: Integers
    other: Integers
    weight: Floats
    cases: int

    def weighted_share(self, holds: Floats) -> float:
        """Return the weighted share of the cases for which ``holds`` (P,) is true."""
        return float(self.weight @ holds) / self.cases if self.cases else 0.0


def nearest_neighbour_pairs(
    data: Microdata, names: Sequence[str], rows: Keys, among: Integers | None = None
) -> NeighbourPairs:
    """Pair at most 500 records, of ``among`` if given, each with up to 5 nearest others.

    The distance is 1 for each differing level plus the difference of rank shares for each number (Gower 1971). Where
    several records describe a unit, a pair is of two units.
    """
    # A housemate is no other person: what both have in common is released of one for the other.
    units = data.units
    if units is None and len(data) > MOST_SORTED:
        return _pairs_of_long_table(data, names, rows, among)
    order = sort_order(rows if units is None else break_ties_by_unit(rows, units))
    # By row key, so that shuffling the table changes nothing.
    places = None if among is None else np.flatnonzero(np.isin(order, among))
    number = len(order) if places is None else len(places)
    chosen = np.arange(number) if number <= MOST_RECORDS else np.linspace(0, number - 1, MOST_RECORDS).astype(np.int64)
    chosen = chosen if places is None else places[chosen]
    if len(data) < 2 or not len(chosen) or (units is not None and len(units) < 2):
        return NeighbourPairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0)
    columns = [(take_rows(values, order), has_levels) for values, has_levels in _comparable_columns(data, names)]
    search = LevelGroupSearch.from_columns(columns, len(order), unit_of=None if units is None else units.unit_of[order])
    own: list[Integers] = []
    other: list[Integers] = []
    weight: list[Floats] = []
    for i in chosen:
        release_pages()
        ties = search.nearest_records(int(i))
        some_of = min(len(ties), MOST_TIES)
        # Equal records take different ones of their common ties.
        ties = ties[(len(own) + np.arange(some_of) * len(ties) // some_of) % len(ties)]
        own.append(np.full(len(ties), i))
        other.append(ties)
        weight.append(np.full(len(ties), 1 / len(ties)))
    return NeighbourPairs(order[np.concatenate(own)], order[np.concatenate(other)], np.concatenate(weight), len(chosen))


def _pairs_of_long_table(data: Microdata, names: Sequence[str], rows: Keys, among: Integers | None) -> NeighbourPairs:
    """Return the pairs of the records with the smallest keys, which are any records."""
    chosen = _records_with_smallest_keys(rows, among)
    others = find_nearest_by_block(_comparable_columns(data, names), chosen, rows, MOST_TIES)
    weight = [np.full(len(ties), 1 / len(ties)) for ties in others]
    own = np.repeat(chosen, [len(ties) for ties in others])
    return NeighbourPairs(own, np.concatenate(others), np.concatenate(weight), len(chosen))


def _records_with_smallest_keys(rows: Keys, among: Integers | None) -> Integers:
    """Return at most 500 records of a long table, of ``among`` if given, in the order of their keys."""
    found = np.zeros(0, dtype=np.int64)
    total = len(rows) if among is None else len(among)
    for some in long_blocks(total):
        own = np.arange(some.start, some.stop) if among is None else among[some]
        found = np.append(found, own)
        found = found[np.argsort(rows[found], kind="stable")[:MOST_RECORDS]]
    return found


def _comparable_columns(data: Microdata, names: Sequence[str]) -> list[tuple[Floats, bool]]:
    """Return the comparable values of each variable, (n,), and whether they are levels."""
    return [(_comparable_values(data, name), data.schema[name].kind.has_levels) for name in names]


def _comparable_values(data: Microdata, name: str) -> Floats:
    """Return the codes of levels, or the midranks of numbers as shares of the records, missing first, (n,)."""
    numbers = data.numbers(name)
    if not data.schema[name].kind.has_levels:
        return midrank_shares(numbers)
    return compute_column(len(numbers), np.float64, lambda rows: np.nan_to_num(numbers[rows], nan=-1.0))
