"""Members and hold-out records of a run as one table, beside the datasets of some releases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sfumato.engine.data.arrays import Floats, Integers, side_by_side
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.disclosure.cells import Keys, cells_of, comparable, rows_of
from sfumato.engine.disclosure.coded import Coded, Column, as_they_are, rarest_first, rarity
from sfumato.engine.disclosure.evidence import Found
from sfumato.engine.disclosure.moved import moved_together
from sfumato.engine.disclosure.people import Standing, Subset, family, marked, standing
from sfumato.engine.disclosure.renamed import by_company, other_names, renamed_back

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
        found = []
        for name in self.names:
            cells = [one[name] for one in self.pool.cells[: self.looked_at]]
            if self.is_number(name):
                released = [
                    comparable(one, name, self.case.confidential) for one in self.pool.variable(name)[: self.looked_at]
                ]
                found.append(Column(name, self.cells(name), cells, self.numbers(name), released))
            else:
                found.append(Column(name, self.cells(name), cells))
        return found

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
    def standing(self) -> Standing:
        """Who stands in the datasets, and who often."""
        return standing(self.own, self.members, self.released, self.subsets, self.order)

    @cached_property
    def renamed(self) -> list[Coded]:
        """Every column by ranks and, of levels, by what stands beside them."""
        return by_company(self.columns)

    @cached_property
    def named_back(self) -> list[Found]:
        """Who stands in the datasets once renamed levels have their own names; nobody is looked for where none is renamed."""
        columns = [renamed_back(one, coded) for one, coded in zip(self.columns, self.renamed, strict=True)]
        if not any(map(other_names, self.columns, columns)):
            return []
        released = [marked({one.name: one.released[at] for one in columns}, self.names) for at in range(self.looked_at)]
        return list(standing(self.own, self.members, released, self.subsets, self.order).found)

    @property
    def scaled(self) -> list[Column]:
        """The columns that are numbers or dates."""
        return [one for one in self.columns if one.numbers is not None]

    @cached_property
    def moved(self) -> list[Found]:
        """Who stands in the datasets once one common change of numbers or of dates is undone."""
        levels = [one for one in self.columns if one.numbers is None]
        dates = {name for name in self.names if self.case.confidential.schema[name].kind is Kind.DATE}
        names = [one.name for one in levels]
        own = rows_of({one.name: one.own for one in levels}, names, self.records)
        released = [
            rows_of({one.name: one.released[at] for one in levels}, names, len(self.scaled[0].released[at]))
            for at in range(self.looked_at)
        ]
        return moved_together(self.scaled, dates, own, released, self.members)
