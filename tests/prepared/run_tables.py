"""Protected tables of a run to be looked at: axes, groupings, and of each cell what it is, why, and what a reader learns.

Everything here is as confidential as the data: values of hidden cells, and which are hidden for their own sake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sfumato.engine.data.arrays import Floats
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.tables.system import EMPTY, PrintedTable
from sfumato.workspace.store.protected_tables import StoredTables, read_run_protected_tables
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.table_files.printed_tables import PRIMARY, PUBLISHED, SECONDARY

CellStanding = Literal["published", "primary", "secondary"]
Safety = Literal["", "yes", "no", "not checked"]
"""Whether a hidden cell is shown to be safe for every reader; empty where nothing was to be shown."""
OUTSIDE, ZEROS_SHOWN, CONTRIBUTOR = "outside", "zeros_shown", "contributor"


@dataclass(frozen=True, slots=True)
class RunCell:
    """A cell of a table.

    place: its place along each axis, from 0
    number: number of the cell in the system of all tables; ``EMPTY`` where it has no records
    labels: grouping and label by variable; the label ``TOTAL`` is all together
    value: its true value
    text: the value as a table prints it
    units: people, households or enterprises in it
    standing: whether it is published, hidden because it is unsafe, or hidden for others' sake
    frozen: whether it is printed whatever follows, since an earlier release printed it or the recipe says so
    rules: keys of the rules that find it unsafe, such as ``threshold``; empty where only the recipe hides it
    level: how far above its value it must stay possible; 0 where any other value is enough
    lowest, highest: values between which it was shown to be possible; None where that was not looked at
    exact_for: readers for whom it follows exactly: ``outside``, ``zeros_shown``, ``contributor``
    is_short: whether it cannot be as large as it must stay possible
    safety: whether it is shown to be safe
    """

    place: tuple[int, ...]
    number: int
    labels: Mapping[str, tuple[str, str]]
    value: float
    text: str
    units: int
    standing: CellStanding
    frozen: bool = False
    rules: tuple[str, ...] = ()
    level: float = 0.0
    lowest: float | None = None
    highest: float | None = None
    exact_for: tuple[str, ...] = ()
    is_short: bool = False
    safety: Safety = ""

    @property
    def is_hidden(self) -> bool:
        """Return whether a public file has a mark in its place."""
        return self.standing != PUBLISHED


@dataclass(frozen=True, eq=False)
class RunTable:
    """One protected table of a run.

    name: its name
    value_name: what it adds up: ``count``, or a variable
    is_whole: whether its values are numbers of records
    printed: its axes, the grouping and label of each place, and the cell of each place
    stored: all tables of the run
    """

    name: str
    value_name: str
    is_whole: bool
    printed: PrintedTable
    stored: StoredTables

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variable of each axis."""
        return self.printed.variables

    @property
    def options(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return grouping and label of each place of each axis; the total has neither."""
        return self.printed.options

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many places each axis has."""
        return tuple(self.printed.cells.shape)

    @property
    def groupings(self) -> tuple[tuple[str, ...], ...]:
        """Return the groupings of each axis, in the order of its places; a variable's own values have the name ""."""
        return tuple(
            tuple(dict.fromkeys(grouping for grouping, label in axis if label != TOTAL)) for axis in self.options
        )

    @cached_property
    def cell_count(self) -> int:
        """Return how many cells the table has."""
        return int(self.printed.cells.size)

    @cached_property
    def hidden_count(self) -> int:
        """Return how many of its cells are hidden."""
        cells = self.printed.cells.ravel()
        empty = int((cells == EMPTY).sum()) if self.stored.are_zeros_hidden else 0
        return int((~self.stored.audit.published[cells[cells != EMPTY]]).sum()) + empty

    def cell_at(self, place: Sequence[int]) -> RunCell:
        """Return the cell at a place along each axis. Raises IndexError."""
        at = tuple(int(one) for one in place)
        number = int(self.printed.cells[at])
        labels = {name: axis[here] for name, axis, here in zip(self.variables, self.options, at, strict=True)}
        statuses, audit = self.stored.statuses, self.stored.audit
        text, standing = statuses.format_value(number), _standing_of(statuses.status_of(number))
        if number == EMPTY:
            rules = ("zeros",) if self.stored.are_zeros_hidden else ()
            return RunCell(at, number, labels, 0.0, text, 0, standing, rules=rules)
        value = float(self.stored.system.values[number])
        ends = (value - float(audit.fall[number]), value + float(audit.rise[number]))
        lowest, highest = (None if np.isnan(end) else end for end in ends)
        return RunCell(
            at,
            number,
            labels,
            value,
            text,
            int(self.stored.system.unit_counts[number]),
            standing,
            bool(self.stored.frozen[number]),
            tuple(rule for rule, cells in audit.by_rule.items() if cells[number]),
            float(audit.levels[number]),
            lowest,
            highest,
            _exact_readers(self.stored, number),
            bool(audit.short_of_level[number]),
            _safety_of(self.stored, number),
        )

    def cells(self) -> list[RunCell]:
        """Return all cells, the last axis fastest."""
        return [self.cell_at(place) for place in np.ndindex(*self.printed.cells.shape)]

    def hidden_places(self) -> list[tuple[int, ...]]:
        """Return the places of hidden cells, the last axis fastest."""
        cells = self.printed.cells
        known = cells != EMPTY
        hidden = np.full(cells.shape, self.stored.are_zeros_hidden)
        hidden[known] = ~self.stored.audit.published[cells[known]]
        return [tuple(int(one) for one in place) for place in np.argwhere(hidden)]


@dataclass(frozen=True, eq=False)
class RunTables:
    """The protected tables of a run.

    run_id: the run
    tables: the tables in the order of its recipe
    stored: cells, and what becomes of them, of all tables as one system
    counts: numbers of all tables together: cells, primary, secondary, exact_outside, ... ; NaN where not examined
    warnings: sentences on what was not looked at, or cannot be protected
    """

    run_id: int
    tables: tuple[RunTable, ...]
    stored: StoredTables
    counts: Mapping[str, float]
    warnings: tuple[str, ...]

    def find_table(self, name_or_number: str | int) -> RunTable | None:
        """Return a table by its name, or its number from 1; None if there is none."""
        named = next((one for one in self.tables if one.name == str(name_or_number)), None)
        if named is not None or not str(name_or_number).isdecimal():
            return named
        at = int(name_or_number) - 1
        return self.tables[at] if 0 <= at < len(self.tables) else None

    def certificate_of(self, number: int) -> Floats | None:
        """Return the values of all cells in another table that fits everything printed, in which the hidden cell
        ``number`` has another value, (cells,); None where none is known.
        """
        row = int(self.stored.audit.certificate[number])
        if row < 0:
            return None
        changed: Any = self.stored.system.columns.T @ self.stored.audit.tables[row]
        return np.asarray(self.stored.system.values + changed, dtype=np.float64)


def _standing_of(status: str) -> CellStanding:
    """Return the status of a cell as one of the three."""
    return "primary" if status == PRIMARY else "secondary" if status == SECONDARY else "published"


def _exact_readers(stored: StoredTables, number: int) -> tuple[str, ...]:
    """Return the readers for whom an unsafe cell follows exactly."""
    audit = stored.audit
    found = (
        (OUTSIDE, audit.exact_outside),
        (ZEROS_SHOWN, audit.exact_zeros_shown),
        (CONTRIBUTOR, audit.exact_contributor),
    )
    return tuple(reader for reader, cells in found if cells[number])


def _safety_of(stored: StoredTables, number: int) -> Safety:
    """Return whether an unsafe cell is shown to be safe; empty for the others."""
    audit = stored.audit
    if not audit.primary[number]:
        return ""
    if stored.unprotected[number] or audit.short_of_level[number] or _exact_readers(stored, number):
        return "no"
    return "not checked" if audit.undecided[number] or not stored.are_contributors_examined else "yes"


def list_run_tables(workspace: Workspace, run_id: int | str) -> RunTables | None:
    """Return the protected tables of a run; None where it has none, or has not protected them yet.

    Raises NotFound and DamagedTable.
    """
    run = find_run(workspace, run_id)
    stored = read_run_protected_tables(workspace, run.id)
    if stored is None:
        return None
    planned = {one.name: one for one in run.recipe.tables}
    tables = tuple(
        RunTable(one.name, planned[one.name].measure, planned[one.name].measure == "count", one, stored)
        for one in stored.printed
    )
    return RunTables(run.id, tables, stored, stored.counts, stored.warnings)
