"""Probes for unique people whose values occur in a release, in all columns or in subsets, once or repeatedly.

A person counts who is unique on some columns in the joint table of members and controls, and whose values some released
row has. The rarest people are also examined separately, since an average over all hides a few. There is a small family
of column sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Integers, map_on_threads
from ..data.bits import Keys, mix_bits
from ..data.long_arrays import compute_column, long_blocks, zeros_column
from ..data.rows import distinct_codes
from ..wording import count_noun
from .cells import distinct_key_counts, look_up_counts
from .coded import JointColumn
from .independent_rows import SOME_COLUMNS, RowCoincidenceTest, SortedRows, compare_coincidences_with_pairs
from .membership_evidence import MembershipProbe

MANY = 200_000
"""Number of records above which the family is smaller: a set of columns takes a second for a million."""
MOST_LEFT_OUT = 10
"""Largest number of numeric columns of which pairs are left out."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FEW = (25, 60)
"""Numbers of the rarest people that are examined separately."""
TIMES = (2, 3, 5, 10, 20, 50)
"""Numbers of repetitions in a dataset that are searched for."""
ALONE = "who are alone with their values in"


@dataclass(frozen=True)
class ColumnSet:
    """Columns to be compared.

    names: names of the columns
    label: description of the set in words
    """

    names: tuple[str, ...]
    label: str


@dataclass(frozen=True, eq=False)
class LevelGroup:
    """People with one level of a column.

    label: description of the group in words
    records: their rows in the joint table, (g,)
    """

    label: str
    records: Integers


FEWEST_OF_GROUP, MOST_OF_GROUP = 12, 0.2
"""Fewest people of a group, and its largest share: larger groups show among all people."""


def list_level_groups(columns: Sequence[JointColumn]) -> list[LevelGroup]:
    """Return the people with each level that few, but not too few, people have; none for large tables."""
    groups = list[LevelGroup]()
    for column in columns:
        if column.numbers is not None or len(column.own) > MANY:
            continue
        levels = distinct_codes(column.own)
        for code in np.flatnonzero(
            (levels.counts >= FEWEST_OF_GROUP) & (levels.counts <= MOST_OF_GROUP * len(column.own))
        ):
            groups.append(LevelGroup(f"with one value of {column.name}", np.flatnonzero(levels.codes == code)))
    return groups


def list_column_sets(
    names: Sequence[str],
    numbers: Sequence[str],
    keys: Sequence[str],
    sensitive: Sequence[str],
    records: int = 0,
) -> list[ColumnSet]:
    """List the sets of columns on which people are compared, each once.

    These are all columns, all but one, all but two numbers, the levels, these but one, the numbers, the
    quasi-identifiers, these with each sensitive column, and the sensitive columns. Large tables have fewer sets.
    """
    levels, small = [name for name in names if name not in numbers], records <= MANY
    found = [ColumnSet(tuple(names), f"all {len(names)} columns")]
    if len(names) > 2:
        found += [ColumnSet(tuple(n for n in names if n != out), f"all columns but {out}") for out in names]
    found.append(ColumnSet(tuple(levels), "all columns that are no numbers"))
    found += [
        ColumnSet(tuple(n for n in levels if n != out), f"all columns that are no numbers but {out}")
        for out in levels
        if len(levels) > 2 and small
    ]
    found.append(ColumnSet(tuple(n for n in names if n in numbers), "all numbers"))
    if len(names) > 3 and small:
        some = [n for n in names if n in numbers][:MOST_LEFT_OUT]
        found += [
            ColumnSet(tuple(n for n in names if n not in out), f"all columns but {' and '.join(out)}")
            for out in combinations(some, 2)
        ]
    found.append(ColumnSet(tuple(keys), "all quasi-identifiers"))
    found += [ColumnSet((*keys, one), f"all quasi-identifiers and {one}") for one in sensitive if keys]
    found.append(ColumnSet(tuple(sensitive), "all sensitive columns"))
    once: dict[frozenset[str], ColumnSet] = {}
    for one in found:
        if len(one.names) > 1 or (len(one.names) == 1 and len(names) == 1):
            once.setdefault(frozenset(one.names), one)
    return list(once.values())


def mark_cells(cells: Mapping[str, Keys], names: Sequence[str]) -> dict[str, Keys]:
    """Mix cell keys with the position of their column, so that a row key is a sum."""
    return dict(_iterate_marked_cells(cells, names))


def sum_marked_cells(cells: Mapping[str, Keys], names: Sequence[str], records: int) -> Keys:
    """Return the sum of the cell keys of all columns as ``mark_cells`` mixes them, (records,): a key of each row."""
    # Wraps around on purpose: the sum does not depend on the order of the columns.
    total: Keys = zeros_column(records, np.uint64)
    for at, name in enumerate(names):
        keys = cells[name]
        for rows in long_blocks(records):
            total[rows] += _mark_keys(keys[rows], at)
    return total


def _iterate_marked_cells(cells: Mapping[str, Keys], names: Sequence[str]) -> Iterator[tuple[str, Keys]]:
    """Yield each column with its cell keys, mixed with its position."""
    for at, name in enumerate(names):
        yield name, _marked_column(cells[name], at)


def _marked_column(keys: Keys, place: int) -> Keys:
    """Return the cell keys of a column (n,), mixed with its position."""
    return compute_column(len(keys), np.uint64, lambda rows: _mark_keys(keys[rows], place))


def _mark_keys(keys: Keys, place: int) -> Keys:
    """Return some cell keys (k,), mixed with the position of their column."""
    return mix_bits(keys ^ mix_bits(np.full(1, place + 1, dtype=np.uint64)))


def sum_cells(cells: Mapping[str, Keys], names: Sequence[str]) -> Keys:
    """Return the row keys of the named columns, (n,)."""
    total = cells[names[0]].copy()
    for name in names[1:]:
        total += cells[name]
    return total


def rarity_strata(records: int) -> list[tuple[str, int]]:
    """Return the strata of people by rarity, with labels and sizes: fixed numbers, shares, and all."""
    sizes = {size for size in (*FEW, *(round(share * records) for share in SHARES)) if 20 <= size <= records // 2}
    return [*((f"the {size:,} rarest people", size) for size in sorted(sizes)), (f"all {records:,} people", records)]


@dataclass(frozen=True, eq=False)
class PeopleInRelease:
    """What a release shows about the unique people.

    probes: probes by set of columns and stratum, by number of repetitions, and by number of datasets
    row_tests: tests of rows that occur once in the joint table and once in a dataset, by set of columns and dataset
    """

    probes: tuple[MembershipProbe, ...]
    row_tests: tuple[RowCoincidenceTest, ...]


def find_people_in_release(
    own: Mapping[str, Keys],
    releases: Sequence[Mapping[str, Keys]],
    subsets: Sequence[ColumnSet],
    order: Integers,
    groups: Sequence[LevelGroup] = (),
    unit_of: Integers | None = None,
) -> PeopleInRelease:
    """Find the unique people whose values occur in the datasets, for each set of columns.

    Parameters ---------- own : mapping of str to keys
        Marked cells of the joint table, (N,) each.
    releases : sequence of mappings
        Marked cells of each dataset, (r,) each.
    subsets : sequence of ColumnSet
        The sets of columns.
    order : array of int
        Records of the joint table, the rarest first, (N,).
    groups : sequence of LevelGroup
        Groups that are examined separately, in all columns.
    unit_of : array of int, optional
        Unit of each record, (N,), where several records describe one.
    """
    layers = rarity_strata(len(order))
    if unit_of is not None:  # units are counted, and their records are what is rare
        layers = [(who.replace("rarest people", "rarest records"), size) for who, size in layers]
    own = {name: cells[order] for name, cells in own.items()}  # records stand by rarity: a stratum is the first of them

    def compare_on(subset: ColumnSet) -> PeopleInRelease:
        """Return the probes and tests of one set of columns."""
        rows = SortedRows.from_rows(sum_cells(own, subset.names))
        lone, keys, pairs = rows.rows_occurring(1), rows.keys[rows.counts == 1], int((rows.counts == 2).sum())
        if not len(lone):
            return PeopleInRelease((), ())
        times, tests = list[Integers](), list[RowCoincidenceTest]()
        for cells in releases:
            held, counts = distinct_key_counts(sum_cells(cells, subset.names))
            times.append(look_up_counts(held, counts, keys))
            # Whole rows are tested by themselves.
            if len(subset.names) < len(own):
                found = order[lone[times[-1] == 1]]
                tests.append(
                    compare_coincidences_with_pairs(
                        subset.label, SOME_COLUMNS, found, pairs + int((counts == 2).sum()), unit_of
                    )
                )
        looks = _column_set_probes(subset, layers, lone, times, order)
        if len(subset.names) == len(own):
            looks += _level_group_probes(subset, groups, lone, times, order)
        return PeopleInRelease(tuple(looks), tuple(tests))

    results = map_on_threads(compare_on, subsets)
    return PeopleInRelease(
        tuple(one for part in results for one in part.probes),
        tuple(one for part in results for one in part.row_tests),
    )


def _column_set_probes(
    subset: ColumnSet, layers: Sequence[tuple[str, int]], lone: Integers, times: Sequence[Integers], order: Integers
) -> list[MembershipProbe]:
    """Return the probes of a set of columns.

    ``lone`` (k,) are the unique people, ``times`` how often each dataset has their row, (k,) each; records are sorted
    by rarity.
    """
    what, columns = subset.label, subset.names
    often = np.max(times, axis=0)
    # A flag a record, so that people come out by rarity and a stratum is a part of the array, without a copy.
    eligible = _sort_places(lone, len(order))
    hits = _sort_places(lone[often > 0], len(order))
    looks = []
    for who, size in layers:
        found, could = np.searchsorted(hits, size), np.searchsorted(eligible, size)
        looks.append(
            MembershipProbe(
                who,
                f"{ALONE} {what} stand in the release",
                order[hits[:found]],
                order[eligible[:could]],
                True,
                columns=columns,
            )
        )
    everybody = layers[-1][0]
    for k in TIMES:
        if not (often >= k).any():
            break
        repeated = order[lone[often >= k]]
        looks.append(
            MembershipProbe(
                everybody,
                f"{ALONE} {what} stand in {count_noun(k, 'row')} of a dataset or more",
                repeated,
                order[eligible],
                columns=columns,
            )
        )
    if len(times) > 1:
        least = max(2, (len(times) + 1) // 2)
        again = np.sum([one > 0 for one in times], axis=0) >= least
        found_again = order[lone[again]]
        looks.append(
            MembershipProbe(
                everybody,
                f"{ALONE} {what} stand in {least} of the datasets or more",
                found_again,
                order[eligible],
                columns=columns,
            )
        )
    return looks


def _level_group_probes(
    subset: ColumnSet, groups: Sequence[LevelGroup], lone: Integers, times: Sequence[Integers], order: Integers
) -> list[MembershipProbe]:
    """Return a probe for each group: a model can memorise one group alone."""
    is_alone, is_found = (np.zeros(len(order), dtype=np.bool_) for _ in range(2))
    is_alone[order[lone]] = True
    is_found[order[lone[np.max(times, axis=0) > 0]]] = True
    return [
        MembershipProbe(f"the people {one.label}", f"{ALONE} {subset.label} stand in the release", one.records[is_found[one.records]], one.records[is_alone[one.records]], True, columns=subset.names)
        for one in groups
    ]  # fmt: skip


def _sort_places(places: Integers, records: int) -> Integers:
    """Return the distinct positions below ``records`` in ascending order."""
    flags = np.zeros(records, dtype=np.bool_)
    flags[places] = True
    return np.flatnonzero(flags)
