"""Probes for whole units, such as households, whose records are together in a release.

Sums and maxima of what a release shows of single records do not find a household that it copies: each of its people may
be like many others. What is rare is who lives together. So a unit counts that is alone with the multiset of its records
in some columns, and is found

    by composition   where a unit of the release has the same multiset of records, if released records are numbered by
                     units
    by neighbours    where records that follow each other in a dataset are those of the unit, if they are not numbered and
                     stand in the order in which they were made
    by its records   where a dataset has all of its records, as often as the unit has them, if they are not numbered

All units are looked at together and by their number of records. Where they are found by their records alone, many are
there by chance, so that units of several records also have weights: each that of the most powerful test where a share of
the units is copied, the log of 1 - s + s / c for a unit whose records are all there by chance with probability c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.units import Units
from ..wording import count_noun
from .cells import count_occurrences, sum_of_neighbours, unit_keys
from .coded import CodedColumn
from .membership_evidence import MembershipProbe
from .people import ColumnSet, rarity_strata, sum_cells
from .row_shares import RowShares

MOST_NEIGHBOURS = 12
"""Largest number of records of a unit that is searched for among records that follow each other."""
MOST_BY_CHANCE = 0.05
"""Chance that all records of a unit stand in a release of other units, up to which their standing there has a weight."""
COPIED_SHARE = 0.01
"""Share of copied units for which the weights are the best."""
PRIOR_RECORDS = 3.0
"""Number of records for which the smoothed share of a row counts, beside the others that have it.

These were chosen on seeds 100 to 107 of tests/benchmarks/copied_households.py, of which it prints others."""
RARELY_TOGETHER = f"the people of {count_noun(2, 'record')} or more with the rarest records together"
SEVERAL_RECORDS = f"the people of {count_noun(2, 'record')} or more"
WITH_ALL_RECORDS = "stand in the release with all of their records"
LEAST_CHANCE = 1e-12
LARGEST_SIZE = 4
"""Number of records from which on units are looked at together."""


def list_unit_column_sets(
    names: Sequence[str], numbers: Sequence[str], keys: Sequence[str], unit_level: Sequence[str]
) -> list[ColumnSet]:
    """List the sets of columns on which units are compared, each once.

    These are all columns, those that are no numbers, all but one, the quasi-identifiers, and those of the units.
    """
    # With an exact amount every unit is alone: the sets without numbers decide.
    found = [ColumnSet(tuple(names), f"all {len(names)} columns")]
    found.append(ColumnSet(tuple(n for n in names if n not in numbers), "all columns that are no numbers"))
    if len(names) > 2:
        found += [ColumnSet(tuple(n for n in names if n != out), f"all columns but {out}") for out in names]
    found.append(ColumnSet(tuple(keys), "all quasi-identifiers"))
    found.append(
        ColumnSet(tuple(n for n in names if n in unit_level), "the columns of units, and the number of records")
    )
    once: dict[frozenset[str], ColumnSet] = {}
    for one in found:
        if one.names:
            once.setdefault(frozenset(one.names), one)
    return list(once.values())


def probe_units(
    own: Mapping[str, Keys],
    units: Units,
    releases: Sequence[tuple[Mapping[str, Keys], Units | None]],
    subsets: Sequence[ColumnSet],
    rows: Keys,
    order: Integers,
    columns: Sequence[CodedColumn],
    in_file_order: Sequence[bool] = (),
) -> list[MembershipProbe]:
    """Return the probes of whole units for each set of columns.

    Parameters ---------- own : mapping of str to keys
        Marked cells of the joint table, (N,) each.
    units : Units
        The U units of the joint table, members and hold-out people numbered together.
    releases : sequence of pairs of a mapping of str to keys and Units
        Marked cells of each dataset, (r,) each, and its units; None where its records have no number of a unit.
    subsets : sequence of ColumnSet
        The sets of columns, the first of which has all of them.
    rows : keys
        Key of each record of the joint table, (N,).
    order : array of int
        Records of the joint table, the rarest first, (N,).
    columns : sequence of CodedColumn
        The columns of the sets, for the shares of records in the population.
    in_file_order : sequence of bool
        Whether the rows of each dataset stand in the order in which they were made; empty where none do.
    """
    stands_for_unit, strata = representative_records(rows, units), _unit_strata(units)
    by_rarity = _rarity_strata_of_units(units, order)
    in_order = in_file_order or [False] * len(releases)
    # only where records have no number does it matter how often chance brings those of a unit together
    population = RowShares(columns, rows) if any(numbered is None for _, numbered in releases) else None
    looks = list[MembershipProbe]()
    for at, subset in enumerate(subsets):
        whole = sum_cells(own, subset.names)
        keys = unit_keys(whole, units)
        is_alone = count_occurrences(keys, keys) == 1
        by_composition = by_neighbours = by_records = np.zeros(len(units), dtype=np.bool_)
        absent = np.ones(len(units))  # chance that none of the datasets has all records of a unit
        within = _count_within_unit(whole, units)
        expected = None if population is None else _expected_shares(whole, within, population.log_shares(subset.names))
        for (cells, released_units), ordered in zip(releases, in_order, strict=True):
            released = sum_cells(cells, subset.names)
            if released_units is not None:
                by_composition = by_composition | (count_occurrences(keys, unit_keys(released, released_units)) > 0)
                continue
            assert expected is not None
            by_records = by_records | _has_all_records(whole, within, units, released)
            absent *= 1 - _chance_of_all_records(expected * len(released), within, units)
            if ordered:
                by_neighbours = by_neighbours | _stands_together(keys, units, released)
        # a set of one or two columns in a rare stratum says little that the whole does not
        layers = [*strata, *by_rarity] if at < 2 else strata
        for is_found, how in (
            (by_composition, "make up a unit of the release"),
            (by_neighbours, "stand in the release one record after the other"),
            (by_records, WITH_ALL_RECORDS),
        ):
            looks += [
                MembershipProbe(
                    who,
                    f"who are alone with their records in {subset.label} {how}",
                    stands_for_unit[some & is_alone & is_found],
                    stands_for_unit[some & is_alone],
                    shows_copies=True,
                    # what chance seldom brings together must not be lost among many looks at what it often does
                    is_main=at < 2 and who == SEVERAL_RECORDS and how != WITH_ALL_RECORDS,
                    whole_units=True,
                    columns=subset.names,
                )
                for who, some in layers
                if is_found.any()
            ]
        if population is not None:
            looks += _weighted_probe(
                f"who are alone with their records in {subset.label} {WITH_ALL_RECORDS}",
                subset.names,
                stands_for_unit,
                (units.sizes > 1) & is_alone,
                by_records,
                1 - absent,
                is_main=at < 2,
            )
    return looks


def _weighted_probe(
    what: str,
    columns: tuple[str, ...],
    stands_for_unit: Integers,
    could: Booleans,
    is_found: Booleans,
    chance: Floats,
    *,
    is_main: bool,
) -> list[MembershipProbe]:
    """Return the probe of units (U,) whose records are seldom all in a release by chance, weighted by how seldom.

    what, columns: how they are found, in words, and the columns that are compared
    could, is_found: which units could be found, and which were, (U,)
    chance: chance that all records of a unit of other people are there, (U,)
    """
    could = could & (chance <= MOST_BY_CHANCE)
    if not (could & is_found).any():
        return []
    weights = np.log1p(COPIED_SHARE * (1 / np.maximum(chance, LEAST_CHANCE) - 1))
    return [
        MembershipProbe(
            RARELY_TOGETHER,
            what,
            stands_for_unit[could & is_found],
            stands_for_unit[could],
            shows_copies=True,
            is_main=is_main,
            whole_units=True,
            hit_weights=weights[could & is_found],
            eligible_weights=weights[could],
            columns=columns,
        )
    ]


def representative_records(rows: Keys, units: Units) -> Integers:
    """Return one record of each unit, (U,): that with the smallest key, so that the order of records does not matter."""
    order = np.lexsort((rows, units.unit_of))
    return np.asarray(order[np.cumsum(units.sizes) - units.sizes])


def _unit_strata(units: Units) -> list[tuple[str, Booleans]]:
    """Return all units, and those of each number of records, with labels and masks, (U,) each."""
    strata = [(f"all {len(units):,} people", np.ones(len(units), dtype=np.bool_))]
    # A unit of one record is a record: what rows show of it hides what is shown of the others.
    strata.append((SEVERAL_RECORDS, units.sizes > 1))
    for size in range(1, LARGEST_SIZE + 1):
        is_last = size == LARGEST_SIZE
        some = units.sizes >= size if is_last else units.sizes == size
        strata.append((f"the people of {count_noun(size, 'record')}{' or more' if is_last else ''}", some))
    return [(who, some) for who, some in strata if some.any()]


def _rarity_strata_of_units(units: Units, order: Integers) -> list[tuple[str, Booleans]]:
    """Return the units with the rarest records, by stratum, with labels and masks, (U,) each."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    by_rarity = np.argsort(-units.largest_by_unit(-rank), kind="stable")
    found = list[tuple[str, Booleans]]()
    for who, size in rarity_strata(len(units))[:-1]:
        some = np.zeros(len(units), dtype=np.bool_)
        some[by_rarity[:size]] = True
        found.append((who, some))
    return found


def _has_all_records(rows: Keys, within: Integers, units: Units, released: Keys) -> Booleans:
    """Return whether a dataset has all records of each unit, as often as the unit has them (``within``, (N,)), (U,)."""
    lacks = count_occurrences(rows, released) < within
    return np.asarray(units.sum_by_unit(lacks.astype(np.int64)) == 0)


def _stands_together(keys: Keys, units: Units, released: Keys) -> Booleans:
    """Return whether records of a dataset that follow each other are those of each unit, in any order, (U,)."""
    found = np.zeros(len(units), dtype=np.bool_)
    for size in range(1, MOST_NEIGHBOURS + 1):
        some = units.sizes == size
        if some.any() and size <= len(released):
            found[some] = count_occurrences(keys[some], sum_of_neighbours(released, size)) > 0
    return found


def _expected_shares(rows: Keys, within: Integers, log_shares: Floats) -> Floats:
    """Return the share of the records of other units that is to be expected to have each record's row, (N,).

    The others that have it, and its share in the population (log, (N,)), lead to expect it (mean of a Gamma distribution):
    nothing depends on who is a member.
    """
    others = count_occurrences(rows, rows) - within
    return np.asarray((PRIOR_RECORDS + others) / (PRIOR_RECORDS / np.exp(log_shares) + len(rows)))


def _chance_of_all_records(expected: Floats, within: Integers, units: Units) -> Floats:
    """Return about the chance that a dataset of other units has all records of each unit, (U,).

    The number of each record there is taken to be Poisson with the ``expected`` mean, (N,); the unit has it ``within`` times.
    """
    from scipy.special import gammainc

    # of records that the unit has several times, each of them brings its part
    logs = np.log(np.maximum(gammainc(within, expected), LEAST_CHANCE)) / within
    return np.asarray(np.exp(units.sum_by_unit(logs)))


def _count_within_unit(rows: Keys, units: Units) -> Integers:
    """Return how often the unit of each record has its row, (n,)."""
    mixed = mix_bits(rows ^ mix_bits(units.unit_of.astype(np.uint64) + np.uint64(1)))
    return count_occurrences(mixed, mixed)
