"""Looks for people who stand in a release: whole, but for a column, by their levels alone; those who stand there often, or again and again.

A person counts who is alone with the values of some columns in the joint table of members and controls, and whose values some
released row has. The rarest people are looked at apart, since a few are averaged away in the whole. Sets of columns are a small family; rows
are 64-bit numbers, so that a million are compared in a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Integers, side_by_side
from ..data.sorting import distinct_codes
from ..wording import counted
from .cells import Keys, counted_keys, mixed, times_in
from .coded import Column
from .independent_rows import SOME_COLUMNS, RowTest, SortedRows, compare_counts
from .membership_evidence import Look

MANY = 200_000
"""Records from which on the family is smaller: it takes a second for a set of columns and a million of them."""
MOST_LEFT_OUT = 10
"""Numbers of which each two are left out, so that the family stays small."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FEW = (25, 60)
"""The rarest people that are looked at apart: so many, and these shares of them."""
TIMES = (2, 3, 5, 10, 20, 50)
"""A row of a person is looked for that a dataset repeats so many times or more."""
ALONE = "who are alone with their values in"


@dataclass(frozen=True)
class Subset:
    """Columns to be compared, and what they are called in a sentence."""

    names: tuple[str, ...]
    what: str


@dataclass(frozen=True, eq=False)
class Group:
    """People with one level of a column: what they are called, and their rows in the joint table, (g,)."""

    what: str
    records: Integers


FEWEST_OF_GROUP, MOST_OF_GROUP = 12, 0.2
"""People of a group at least, and the share of all at most: larger ones are seen among all."""


def groups_by_level(columns: Sequence[Column]) -> list[Group]:
    """Return the people with each level of each column that few, but not too few people have; none of many records."""
    groups = list[Group]()
    for column in columns:
        if column.numbers is not None or len(column.own) > MANY:
            continue
        levels = distinct_codes(column.own)
        for code in np.flatnonzero(
            (levels.counts >= FEWEST_OF_GROUP) & (levels.counts <= MOST_OF_GROUP * len(column.own))
        ):
            groups.append(Group(f"with one value of {column.name}", np.flatnonzero(levels.codes == code)))
    return groups


def family(
    names: Sequence[str],
    numbers: Sequence[str],
    keys: Sequence[str],
    sensitive: Sequence[str],
    records: int = 0,
) -> list[Subset]:
    """The sets of columns that are compared, each once: all, all but one, all but two numbers, the levels, the numbers, the keys with a sensitive one.

    Of many ``records`` fewer sets.
    """
    levels, small = [name for name in names if name not in numbers], records <= MANY
    found = [Subset(tuple(names), f"all {len(names)} columns")]
    if len(names) > 2:
        found += [Subset(tuple(n for n in names if n != out), f"all columns but {out}") for out in names]
    found.append(Subset(tuple(levels), "all columns that are no numbers"))
    found += [
        Subset(tuple(n for n in levels if n != out), f"all columns that are no numbers but {out}")
        for out in levels
        if len(levels) > 2 and small
    ]
    found.append(Subset(tuple(n for n in names if n in numbers), "all numbers"))
    if len(names) > 3 and small:
        some = [n for n in names if n in numbers][:MOST_LEFT_OUT]
        found += [
            Subset(tuple(n for n in names if n not in out), f"all columns but {' and '.join(out)}")
            for out in combinations(some, 2)
        ]
    found.append(Subset(tuple(keys), "all quasi-identifiers"))
    found += [Subset((*keys, one), f"all quasi-identifiers and {one}") for one in sensitive if keys]
    found.append(Subset(tuple(sensitive), "all sensitive columns"))
    once: dict[frozenset[str], Subset] = {}
    for one in found:
        if len(one.names) > 1 or (len(one.names) == 1 and len(names) == 1):
            once.setdefault(frozenset(one.names), one)
    return list(once.values())


def marked(cells: Mapping[str, Keys], names: Sequence[str]) -> dict[str, Keys]:
    """Cells mixed with the place of their column, so that rows are their sums."""
    return {name: mixed(cells[name] ^ mixed(np.full(1, at + 1, dtype=np.uint64))) for at, name in enumerate(names)}


def _sum(cells: Mapping[str, Keys], names: Sequence[str]) -> Keys:
    total = cells[names[0]].copy()
    for name in names[1:]:
        total += cells[name]
    return total


def strata(records: int) -> list[tuple[str, int]]:
    """Return the strata of people in the order of their rarity, rarest first: some numbers of them, some shares of them, all."""
    sizes = {size for size in (*FEW, *(round(share * records) for share in SHARES)) if 20 <= size <= records // 2}
    return [*((f"the {size:,} rarest people", size) for size in sorted(sizes)), (f"all {records:,} people", records)]


@dataclass(frozen=True, eq=False)
class PeopleInRelease:
    """What a release shows of the people who are alone with their values.

    looks: who of them stands in it, by set of columns and stratum, who often, and who in half of the datasets
    rows: tests of rows that stand once in the joint table and once in a dataset, by set of columns and dataset
    """

    looks: tuple[Look, ...]
    rows: tuple[RowTest, ...]


def standing(
    own: Mapping[str, Keys],
    releases: Sequence[Mapping[str, Keys]],
    subsets: Sequence[Subset],
    order: Integers,
    groups: Sequence[Group] = (),
) -> PeopleInRelease:
    """Look for the people who are alone with their values in the datasets, for each set of columns.

    Parameters
    ----------
    own : mapping of str to keys
        Marked cells of the joint table, (N,) each.
    releases : sequence of mappings
        Marked cells of each dataset, (r,) each.
    subsets : sequence of Subset
        The sets of columns.
    order : array of int
        Records of the joint table, the rarest first, (N,).
    groups : sequence of Group
        People who are looked for by themselves, in all columns together.
    """
    layers = strata(len(order))
    own = {name: cells[order] for name, cells in own.items()}  # records stand by rarity: a stratum is the first of them

    def look(subset: Subset) -> PeopleInRelease:
        rows = SortedRows.from_rows(_sum(own, subset.names))
        lone, keys, pairs = rows.first_of(1), rows.keys[rows.counts == 1], int((rows.counts == 2).sum())
        if not len(lone):
            return PeopleInRelease((), ())
        times, tests = list[Integers](), list[RowTest]()
        for cells in releases:
            held, counts = counted_keys(_sum(cells, subset.names))
            times.append(times_in(held, counts, keys))
            # Whole rows are tested by themselves.
            if len(subset.names) < len(own):
                found = order[lone[times[-1] == 1]]
                tests.append(compare_counts(subset.what, SOME_COLUMNS, found, pairs + int((counts == 2).sum())))
        looks = _looks(subset.what, layers, lone, times, order)
        if len(subset.names) == len(own):
            looks += _looks_at_groups(subset.what, groups, lone, times, order)
        return PeopleInRelease(tuple(looks), tuple(tests))

    results = side_by_side(look, subsets)
    return PeopleInRelease(
        tuple(one for part in results for one in part.looks),
        tuple(one for part in results for one in part.rows),
    )


def _looks(
    what: str, layers: Sequence[tuple[str, int]], lone: Integers, times: Sequence[Integers], order: Integers
) -> list[Look]:
    """Return the looks of a set of columns for those who are alone with their row, (k,), which each dataset has so many times, (k,); records stand by rarity."""
    often = np.max(times, axis=0)
    # A flag a record, so that people come out by rarity and a stratum is a part of the array, without a copy.
    eligible = _by_rarity(lone, len(order))
    hits = _by_rarity(lone[often > 0], len(order))
    looks = []
    for who, size in layers:
        found, could = np.searchsorted(hits, size), np.searchsorted(eligible, size)
        looks.append(
            Look(who, f"{ALONE} {what} stand in the release", order[hits[:found]], order[eligible[:could]], True)
        )
    everybody = layers[-1][0]
    for k in TIMES:
        if not (often >= k).any():
            break
        repeated = order[lone[often >= k]]
        looks.append(
            Look(
                everybody,
                f"{ALONE} {what} stand in {counted(k, 'row')} of a dataset or more",
                repeated,
                order[eligible],
            )
        )
    if len(times) > 1:
        least = max(2, (len(times) + 1) // 2)
        again = np.sum([one > 0 for one in times], axis=0) >= least
        found_again = order[lone[again]]
        looks.append(
            Look(everybody, f"{ALONE} {what} stand in {least} of the datasets or more", found_again, order[eligible])
        )
    return looks


def _looks_at_groups(
    what: str, groups: Sequence[Group], lone: Integers, times: Sequence[Integers], order: Integers
) -> list[Look]:
    """Return a look at each group: a model can be too close for one of them alone."""
    is_alone, is_found = (np.zeros(len(order), dtype=np.bool_) for _ in range(2))
    is_alone[order[lone]] = True
    is_found[order[lone[np.max(times, axis=0) > 0]]] = True
    return [
        Look(f"the people {one.what}", f"{ALONE} {what} stand in the release", one.records[is_found[one.records]], one.records[is_alone[one.records]], True)
        for one in groups
    ]  # fmt: skip


def _by_rarity(places: Integers, records: int) -> Integers:
    flags = np.zeros(records, dtype=np.bool_)
    flags[places] = True
    return np.flatnonzero(flags)
