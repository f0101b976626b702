"""Members and hold-out records of a run as one table, beside the datasets of some releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from sfumato.engine.adversary.agreement import reproduced
from sfumato.engine.adversary.cells import Keys, cells_of, comparable, number_cells, rows_of, written_as
from sfumato.engine.adversary.coded import Coded, Column, as_they_are, pool_rare_levels, rarest_first, rarity
from sfumato.engine.adversary.independent_rows import RowEvidence, RowTest, find_whole_rows, strongest_rows
from sfumato.engine.adversary.membership_evidence import Look
from sfumato.engine.adversary.moved import moved_together
from sfumato.engine.adversary.people import PeopleInRelease, Subset, family, groups_by_level, marked, standing
from sfumato.engine.adversary.renamed import by_company, other_names, renamed_back
from sfumato.engine.adversary.respelled import exchanged_back, rescaled_back
from sfumato.engine.adversary.single_values import extreme, lone, looks_of_several
from sfumato.engine.data.arrays import Floats, Integers, side_by_side
from sfumato.engine.data.schema import Kind, Role

from .checks import Case, Pool
from .read_on_demand import MOST_CELLS

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE)


class Joint:
    """Members and hold-out records as one table, members first, beside the datasets of a pool: what content checks compare."""

    def __init__(self, case: Case, pool: Pool, names: Sequence[str]) -> None:
        self.case, self.pool, self.names = case, pool, tuple(names)
        self.members = len(case.confidential)

    @cached_property
    def records(self) -> int:
        return self.members + (0 if self.case.controls is None else len(self.case.controls))

    def cells(self, name: str) -> Keys:
        own, controls = self.case.own[name], self.case.controls
        return own if controls is None else np.concatenate([own, cells_of(controls, (name,))[name]])

    def numbers(self, name: str) -> Floats:
        parts = [one for one in (self.case.confidential, self.case.controls) if one is not None]
        return np.concatenate([comparable(one, name) for one in parts])

    def is_number(self, name: str) -> bool:
        return self.case.confidential.schema[name].kind in NUMBERS and name not in self.case.recipe.generalised

    @cached_property
    def looked_at(self) -> int:
        """How many of the datasets there is room for, at least one."""
        sizes = [release.sizes[place] for release, place in self.pool.datasets]
        room = MOST_CELLS // max(1, len(self.names))
        within = int(np.searchsorted(np.cumsum(sizes), room - self.records, side="right"))
        return min(len(sizes), max(1, within))

    @property
    def size(self) -> str:
        """How much was looked at, in words."""
        whole = len(self.pool.datasets)
        return self.pool.size + (
            "" if self.looked_at == whole else f"; {self.looked_at} of {whole} datasets were looked at"
        )

    @cached_property
    def columns(self) -> list[Column]:
        """Every column with its released cells."""
        return [self._column(name) for name in self.names]

    def _column(self, name: str) -> Column:
        if not self.is_number(name):
            return pool_rare_levels(name, self.cells(name), [one[name] for one in self.pool.cells[: self.looked_at]])
        # Values written with fewer digits stand for those of members or of hold-out people alike: held against members alone they find members.
        parts = [one for one in (self.case.confidential, self.case.controls) if one is not None]
        originals = np.concatenate([one.numbers(name) for one in parts])
        tables = self.pool.variable(name)[: self.looked_at]
        released = [written_as(originals, one.numbers(name)) for one in tables]
        return Column(name, self.cells(name), list(map(number_cells, released)), self.numbers(name), released)

    @cached_property
    def coded(self) -> list[Coded]:
        return side_by_side(as_they_are, self.columns)

    @cached_property
    def own(self) -> dict[str, Keys]:
        return marked({one.name: one.own for one in self.columns}, self.names)

    @cached_property
    def rows(self) -> Keys:
        total = np.zeros(self.records, dtype=np.uint64)
        for keys in self.own.values():
            total += keys
        return total

    @cached_property
    def order(self) -> Integers:
        return rarest_first(rarity(self.coded), self.rows)

    @property
    def released(self) -> list[dict[str, Keys]]:
        return [
            marked({one.name: one.released[at] for one in self.columns}, self.names) for at in range(self.looked_at)
        ]

    @cached_property
    def subsets(self) -> list[Subset]:
        schema = self.case.confidential.schema
        keys, sensitive = (
            [n for n in self.names if schema[n].role is role] for role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)
        )
        numbers = [n for n in self.names if self.is_number(n)]
        return family(self.names, numbers, keys, sensitive, self.records)

    @cached_property
    def standing(self) -> PeopleInRelease:
        """Who stands in the datasets, and who often."""
        return standing(self.own, self.released, self.subsets, self.order, groups_by_level(self.columns))

    @cached_property
    def columns_in_place(self) -> Sequence[Column]:
        """Every column with the released values of the column that it is by its distribution."""
        return exchanged_back(self.columns)

    @cached_property
    def renamed(self) -> list[Coded]:
        """Every column by ranks and, of levels, by what stands beside them."""
        return by_company(self.columns_in_place)

    @cached_property
    def looks(self) -> list[Look]:
        """All looks for people in datasets of which every column is drawn."""
        near = "stand in the release with nearly their own values, nearer to them {how} than another person would be"
        looks = list(self.standing.looks)
        looks += reproduced(self.coded, self.order, self.rows, near.format(how="by value"))
        looks += reproduced(self.renamed, self.order, self.rows, near.format(how="by ranks and renamed levels"))
        return [*looks, *self.under_own_names.looks, *self._looks_for_moved_people(), *self.single_value_looks]

    @cached_property
    def looks_beside_kept_columns(self) -> list[Look]:
        """The looks that ask nothing of whole rows, which follow from the kept columns too: single values and all sensitive ones."""
        schema = self.case.confidential.schema
        sensitive = [name for name in self.names if schema[name].role is Role.SENSITIVE]
        if len(sensitive) < 2:
            return self.single_value_looks
        whole = [Subset(tuple(sensitive), "all sensitive columns")]
        everybody = f"all {self.records:,} people"
        found = standing(self.own, self.released, whole, self.order).looks
        return [*self.single_value_looks, *(one for one in found if one.who == everybody)]

    @cached_property
    def single_value_looks(self) -> list[Look]:
        """Looks for people who are alone with a value, or have one of the smallest and largest, by column and together."""
        # A model draws the levels that members have, and never one that only hold-out people have: single levels say nothing of it.
        alone = [lone(one.name, one.own, one.released) for one in self.columns if one.numbers is not None]
        ends = [self._extreme(one) for one in self.columns if one.numbers is not None]
        looks = [*alone, *ends]
        if len(alone) > 1:
            looks.append(looks_of_several(alone, "who are alone with a value have it in the release"))
        if len(ends) > 1:
            looks.append(looks_of_several(ends, "with one of the smallest and largest values have it in the release"))
        return looks

    def _extreme(self, column: Column) -> Look:
        variable = self.case.confidential.schema[column.name]
        known = [one for one in (variable.lower, variable.upper) if one is not None]
        numbers, cell = column.numbers, self.case.policy.smallest_cell
        assert numbers is not None
        return extreme(column.name, column.own, numbers, self.members, column.released, cell, known)

    @cached_property
    def respelled(self) -> dict[str, list[Column]]:
        """The columns written as the data are, by what differs; nothing where the release writes them so.

        Once units and places alone, and once names of levels too: a poor model of a release can make two levels look like each other.
        """
        rescaled = [one if one.numbers is None else rescaled_back(one) for one in self.columns_in_place]
        named = [renamed_back(one, coded) for one, coded in zip(rescaled, self.renamed, strict=True)]
        found, last = dict[str, list[Column]](), self.columns
        for how, columns in (("in other units or places", rescaled), ("under other names or in other units", named)):
            if any(map(other_names, last, columns)):
                found[how] = last = columns
        return found

    @cached_property
    def under_own_names(self) -> PeopleInRelease:
        """Who stands in the datasets once their columns are written as the data are; nobody is looked for where they are so already."""
        looks, rows = list[Look](), list[RowTest]()
        for how, columns in self.respelled.items():
            released = [
                marked({one.name: one.released[at] for one in columns}, self.names) for at in range(self.looked_at)
            ]
            found = standing(self.own, released, self.subsets, self.order)
            looks += [replace(one, what=f"{one.what}, {how}", shows_copies=False) for one in found.looks]
            rows += [replace(one, what=f"{one.what}, {how}") for one in found.rows]
        return PeopleInRelease(tuple(looks), tuple(rows))

    @cached_property
    def whole_rows(self) -> list[RowTest]:
        """Tests of rows in all columns, which use no label."""
        return find_whole_rows(self.columns, self.coded, self.respelled)

    @cached_property
    def rows_alone(self) -> RowEvidence | None:
        """What rows say without the labels; None where they say nothing."""
        return strongest_rows([*self.whole_rows, *self.standing.rows, *self.under_own_names.rows])

    @property
    def scaled(self) -> list[Column]:
        """The columns that are numbers or dates."""
        return [one for one in self.columns if one.numbers is not None]

    def _looks_for_moved_people(self) -> list[Look]:
        """Return looks for people once one common change of numbers or of dates is undone."""
        if len(self.scaled) < 2:
            return []
        levels = [one for one in self.columns if one.numbers is None]
        dates = {name for name in self.names if self.case.confidential.schema[name].kind is Kind.DATE}
        names = [one.name for one in levels]
        own = rows_of({one.name: one.own for one in levels}, names, self.records)
        released = [
            rows_of({one.name: one.released[at] for one in levels}, names, len(self.scaled[0].released[at]))
            for at in range(self.looked_at)
        ]
        return moved_together(self.scaled, dates, own, released)
