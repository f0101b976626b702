"""Members and hold-out records of a run in one table, with the released datasets that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from sfumato.engine.adversary.agreement import find_reproduced_people
from sfumato.engine.adversary.cells import (
    align_with_originals,
    break_ties_by_unit,
    cell_keys,
    comparable_numbers,
    number_keys,
    row_keys,
)
from sfumato.engine.adversary.coded import (
    CodedColumn,
    JointColumn,
    code_by_value,
    log_value_shares,
    order_rarest_first,
    pool_rare_levels,
)
from sfumato.engine.adversary.independent_rows import (
    RowCoincidenceTest,
    RowEvidence,
    find_whole_rows,
    strongest_row_evidence,
)
from sfumato.engine.adversary.membership_evidence import MembershipProbe
from sfumato.engine.adversary.moved import probe_common_changes
from sfumato.engine.adversary.people import (
    ColumnSet,
    PeopleInRelease,
    find_people_in_release,
    list_column_sets,
    list_level_groups,
    mark_cells,
    sum_marked_cells,
)
from sfumato.engine.adversary.renamed import code_by_cooccurrence, has_other_names, restore_level_names
from sfumato.engine.adversary.respelled import undo_column_exchange, undo_rescaling
from sfumato.engine.adversary.single_values import merge_probes, probe_extreme_values, probe_unique_values
from sfumato.engine.adversary.unit_probes import list_unit_column_sets, probe_units
from sfumato.engine.data.arrays import Floats, Integers, map_on_threads
from sfumato.engine.data.bits import Keys
from sfumato.engine.data.long_arrays import is_long, join_columns
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.data.units import Units

from . import sentences
from .checks import ExaminedRelease, PooledDatasets
from .read_on_demand import MOST_CELLS
from .sentences import fill_sentence

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE)


class JointTable:
    """Members and hold-out records in one table, members first, with the datasets of a pool."""

    def __init__(self, case: ExaminedRelease, pool: PooledDatasets, names: Sequence[str]) -> None:
        self.case, self.pool, self.names = case, pool, tuple(names)
        self.members = len(case.confidential)

    @cached_property
    def n_records(self) -> int:
        """Return the number of members and hold-out records."""
        return self.members + (0 if self.case.controls is None else len(self.case.controls))

    @property
    def unit_of(self) -> Integers | None:
        """Return the unit of each record, (n_records,); None where each record is one."""
        return None if self.case.joint_units is None else self.case.joint_units.unit_of

    @cached_property
    def n_protected_members(self) -> int:
        """Return the number of those who are protected in the data: of units, or of records where each is one."""
        return self.members if self.unit_of is None else len(np.unique(self.unit_of[: self.members]))

    @property
    def n_protected(self) -> int:
        """Return the same number with the hold-out."""
        return self.n_records if self.case.joint_units is None else len(self.case.joint_units)

    @property
    def noun(self) -> str:
        """Return the plural noun of those who are protected."""
        return self.case.record_noun if self.unit_of is None else self.case.unit_noun

    def released_units(self) -> list[Units | None]:
        """Return the units of each dataset, as its records are numbered; None where they have no number of a unit."""
        name, found = self.case.confidential.schema.unit, list[Units | None]()
        for release, place in self.pool.datasets[: self.n_datasets_used]:
            is_numbered = name is not None and name in release.schema.names
            found.append(self.case.read_dataset(release, place, name).units if is_numbered else None)
        return found

    def cells_of_column(self, name: str) -> Keys:
        """Return the confidential cells of a column, (n_records,)."""
        own, controls = self.case.confidential_cells[name], self.case.controls
        return own if controls is None else join_columns([own, cell_keys(controls, (name,))[name]])

    def numbers_of_column(self, name: str) -> Floats:
        """Return a column's confidential numbers, (n_records,)."""
        parts = [one for one in (self.case.confidential, self.case.controls) if one is not None]
        return join_columns([comparable_numbers(one, name) for one in parts])

    def is_number(self, name: str) -> bool:
        """Return whether a column has numbers or dates that the release does not generalise to labels."""
        return self.case.confidential.schema[name].kind in NUMBERS and name not in self.case.recipe.generalised

    @cached_property
    def n_datasets_used(self) -> int:
        """Return how many of the datasets fit in memory, at least one."""
        sizes = [release.sizes[place] for release, place in self.pool.datasets]
        room = MOST_CELLS // max(1, len(self.names))
        within = int(np.searchsorted(np.cumsum(sizes), room - self.n_records, side="right"))
        return min(len(sizes), max(1, within))

    @property
    def size_text(self) -> str:
        """Describe how many datasets and records are compared."""
        whole = len(self.pool.datasets)
        if self.n_datasets_used == whole:
            return self.pool.size_text
        return fill_sentence(
            sentences.DATASETS_LOOKED_AT, size=self.pool.size_text, used=self.n_datasets_used, all=whole
        )

    @cached_property
    def columns(self) -> list[JointColumn]:
        """Return the columns with their confidential and released cells."""
        return [self._make_column(name) for name in self.names]

    def _make_column(self, name: str) -> JointColumn:
        """Return a column with its confidential and released cells, and its numbers where it has some."""
        if not self.is_number(name):
            return pool_rare_levels(
                name,
                self.cells_of_column(name),
                [one[name] for one in self.pool.cells_by_dataset[: self.n_datasets_used]],
            )
        # Values written with fewer digits stand for those of members or of hold-out people alike: held against members alone they find members.
        parts = [one for one in (self.case.confidential, self.case.controls) if one is not None]
        originals = join_columns([one.numbers(name) for one in parts])
        tables = self.pool.tables_with_variable(name)[: self.n_datasets_used]
        released = [align_with_originals(originals, one.numbers(name)) for one in tables]
        del originals
        return JointColumn(
            name,
            self.cells_of_column(name),
            [number_keys(one) for one in released],
            self.numbers_of_column(name),
            released,
        )

    @cached_property
    def coded_columns(self) -> list[CodedColumn]:
        """Return the columns with values coded by their rank or level."""
        # those of a long table are computed on threads of their own
        return map_on_threads(code_by_value, self.columns, threads=1 if is_long(self.n_records) else None)

    @cached_property
    def joint_keys(self) -> dict[str, Keys]:
        """Return the keys of the confidential cells by column, (n_records,) each, such that sums of them are keys of
        combinations.
        """
        return mark_cells({one.name: one.own for one in self.columns}, self.names)

    @cached_property
    def row_keys(self) -> Keys:
        """Return a key of each confidential row in all columns, (n_records,); equal rows have equal keys."""
        # Wraps around on purpose: the sum does not depend on the order of the columns.
        return sum_marked_cells({one.name: one.own for one in self.columns}, self.names, self.n_records)

    @cached_property
    def ordering_keys(self) -> Keys:
        """Return keys by which records are ordered, (n_records,); those of equal rows of alike units alone are equal."""
        units = self.case.joint_units
        return self.row_keys if units is None else break_ties_by_unit(self.row_keys, units)

    @cached_property
    def rarity_order(self) -> Integers:
        """Return the records from the rarest to the most common combination of values, (n_records,)."""
        return order_rarest_first(log_value_shares(self.coded_columns), self.ordering_keys)

    @property
    def released_keys(self) -> list[dict[str, Keys]]:
        """Return the keys of the released cells of each dataset by column."""
        return [
            mark_cells({one.name: one.released[at] for one in self.columns}, self.names)
            for at in range(self.n_datasets_used)
        ]

    @cached_property
    def column_sets(self) -> list[ColumnSet]:
        """Return the sets of columns by which people are looked for."""
        schema = self.case.confidential.schema
        keys, sensitive = (
            [n for n in self.names if schema[n].role is role] for role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)
        )
        numbers = [n for n in self.names if self.is_number(n)]
        return list_column_sets(self.names, numbers, keys, sensitive, self.n_records)

    @cached_property
    def people_in_release(self) -> PeopleInRelease:
        """Return which people are found in the datasets, and which of them repeatedly."""
        return find_people_in_release(
            self.joint_keys,
            self.released_keys,
            self.column_sets,
            self.rarity_order,
            list_level_groups(self.columns),
            self.unit_of,
        )

    @cached_property
    def columns_by_distribution(self) -> Sequence[JointColumn]:
        """Return the columns, each with the released column that has the most similar distribution."""
        return undo_column_exchange(self.columns)

    @cached_property
    def renamed_columns(self) -> list[CodedColumn]:
        """Return the columns coded by ranks, levels by the values with which they occur."""
        return code_by_cooccurrence(self.columns_by_distribution)

    @cached_property
    def looks(self) -> list[MembershipProbe]:
        """Return all membership probes for a release in which every column is drawn."""
        near = "stand in the release with nearly their own values, nearer to them {how} than another person would be"
        looks = list(self.people_in_release.probes)
        looks += find_reproduced_people(
            self.coded_columns, self.rarity_order, self.ordering_keys, near.format(how="by value")
        )
        looks += find_reproduced_people(
            self.renamed_columns, self.rarity_order, self.ordering_keys, near.format(how="by ranks and renamed levels")
        )
        return [
            *looks,
            *self.people_in_rewritten_columns.probes,
            *self._looks_for_moved_people(),
            *self.single_value_looks,
            *self.unit_looks(self.names),
        ]

    def unit_looks(self, names: Sequence[str], *, only_whole: bool = False) -> list[MembershipProbe]:
        """Return the membership probes for whole units by some columns; none where each record is one.

        ``only_whole``: all units by all of these columns, and no others.
        """
        units, schema = self.case.joint_units, self.case.confidential.schema
        if units is None:
            return []
        numbers = [n for n in names if self.is_number(n)]
        keys = [n for n in names if schema[n].role is Role.QUASI_IDENTIFIER]
        subsets = list_unit_column_sets(names, numbers, keys, schema.unit_level)
        releases = list(zip(self.released_keys, self.released_units(), strict=True))
        in_file_order = [not release.shuffled for release, _ in self.pool.datasets[: self.n_datasets_used]]
        if only_whole:
            # beside kept columns, rows in order are those of their own people, whatever was drawn
            subsets, in_file_order = subsets[:1], []
        found = probe_units(
            self.joint_keys,
            units,
            releases,
            subsets,
            self.row_keys,
            self.rarity_order,
            self.coded_columns,
            in_file_order,
        )
        if only_whole:
            return [one for one in found if one.who.startswith("all ")]
        return found

    @cached_property
    def looks_beside_kept_columns(self) -> list[MembershipProbe]:
        """Return the membership probes for a release with kept columns: single values, and all sensitive columns
        together.
        """
        schema = self.case.confidential.schema
        sensitive = [name for name in self.names if schema[name].role is Role.SENSITIVE]
        if not sensitive or (len(sensitive) < 2 and self.case.joint_units is None):
            return self.single_value_looks
        # No whole rows: what is found by them follows from the kept columns too.
        whole = [ColumnSet(tuple(sensitive), "all sensitive columns")]
        everybody = f"all {self.n_records:,} people"
        if len(sensitive) < 2:
            return [*self.single_value_looks, *self.unit_looks(sensitive, only_whole=True)]
        found = find_people_in_release(self.joint_keys, self.released_keys, whole, self.rarity_order).probes
        return [
            *self.single_value_looks,
            *(one for one in found if one.who == everybody),
            *self.unit_looks(sensitive, only_whole=True),
        ]

    @cached_property
    def single_value_looks(self) -> list[MembershipProbe]:
        """Return the membership probes for people with a unique or an extreme value, by column and together."""
        # A model draws the levels that members have, and never one that only hold-out people have: single levels say nothing of it.
        alone = [
            probe_unique_values(one.name, one.own, one.released) for one in self.columns if one.numbers is not None
        ]
        ends = [self._extreme_values_look(one) for one in self.columns if one.numbers is not None]
        looks = [*alone, *ends]
        if len(alone) > 1:
            looks.append(merge_probes(alone, "who are alone with a value have it in the release"))
        if len(ends) > 1:
            looks.append(merge_probes(ends, "with one of the smallest and largest values have it in the release"))
        return looks

    def _extreme_values_look(self, column: JointColumn) -> MembershipProbe:
        """Return the membership probe for people with one of the smallest or largest values of a column."""
        variable = self.case.confidential.schema[column.name]
        # A bound that the recipe declares is public: to be at it reveals nobody.
        known = [one for one in (variable.lower, variable.upper) if one is not None]
        numbers, cell = column.numbers, self.case.policy.smallest_cell
        assert numbers is not None
        return probe_extreme_values(column.name, column.own, numbers, self.members, column.released, cell, known)

    @cached_property
    def rewritten_columns(self) -> dict[str, list[JointColumn]]:
        """Return the columns rewritten as the confidential data are written, by what differs; empty where the release
        writes them so.
        """
        # Once for units and positions alone, and once for names of levels too: a poor model can make two levels look
        # like each other.
        rescaled = [one if one.numbers is None else undo_rescaling(one) for one in self.columns_by_distribution]
        named = [restore_level_names(one, coded) for one, coded in zip(rescaled, self.renamed_columns, strict=True)]
        found, last = dict[str, list[JointColumn]](), self.columns
        for how, columns in (("in other units or places", rescaled), ("under other names or in other units", named)):
            if any(map(has_other_names, last, columns)):
                found[how] = last = columns
        return found

    @cached_property
    def people_in_rewritten_columns(self) -> PeopleInRelease:
        """Return which people are found once released columns are rewritten as the confidential data are."""
        looks, rows = list[MembershipProbe](), list[RowCoincidenceTest]()
        for how, columns in self.rewritten_columns.items():
            released = [
                mark_cells({one.name: one.released[at] for one in columns}, self.names)
                for at in range(self.n_datasets_used)
            ]
            found = find_people_in_release(
                self.joint_keys, released, self.column_sets, self.rarity_order, unit_of=self.unit_of
            )
            looks += [replace(one, what=f"{one.what}, {how}", shows_copies=False) for one in found.probes]
            rows += [replace(one, what=f"{one.what}, {how}") for one in found.row_tests]
        return PeopleInRelease(tuple(looks), tuple(rows))

    @cached_property
    def whole_row_tests(self) -> list[RowCoincidenceTest]:
        """Return tests of whole rows, which do not use who is a member."""
        return find_whole_rows(self.columns, self.coded_columns, self.rewritten_columns, self.unit_of)

    @cached_property
    def strongest_row_evidence(self) -> RowEvidence | None:
        """Return the strongest evidence of all row tests; None without evidence."""
        return strongest_row_evidence(
            [*self.whole_row_tests, *self.people_in_release.row_tests, *self.people_in_rewritten_columns.row_tests]
        )

    @property
    def number_columns(self) -> list[JointColumn]:
        """Return the columns that are numbers or dates."""
        return [one for one in self.columns if one.numbers is not None]

    def _looks_for_moved_people(self) -> list[MembershipProbe]:
        """Return membership probes for people once a common shift of numbers or of dates is undone."""
        # A shift is common to two columns or more.
        if len(self.number_columns) < 2:
            return []
        levels = [one for one in self.columns if one.numbers is None]
        dates = {name for name in self.names if self.case.confidential.schema[name].kind is Kind.DATE}
        names = [one.name for one in levels]
        own = row_keys({one.name: one.own for one in levels}, names, self.n_records)
        released = [
            row_keys({one.name: one.released[at] for one in levels}, names, len(self.number_columns[0].released[at]))
            for at in range(self.n_datasets_used)
        ]
        return probe_common_changes(self.number_columns, dates, own, released)
