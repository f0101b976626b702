"""Protected tables of a run as grids, with what a person asks of one of their cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.engine.data.schema import Schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.table_sections import PlannedTable, TableProtection
from sfumato.engine.wording import unit_noun

from ..reporting.cell_reasons import CellExplanation, explain_cell
from ..reporting.table_grids import OPEN_LETTERS, AuditedTables, TableGrid, table_grids
from ..store.protected_tables import StoredTables, read_run_protected_tables
from ..store.runs import find_run
from ..store.workspace import Workspace

RECORDS = "records"


@dataclass(frozen=True, eq=False)
class RunGrids:
    """Protected tables of a run, to be looked at.

    run_id: the run
    grids: its tables in the order of its recipe
    audited: all of them as one system, with what readers find out
    protection: rules of the recipe
    unit_nouns: plural of what each table protects, by the table's name
    warnings: sentences on what was not looked at, or cannot be protected
    """

    run_id: int
    grids: tuple[TableGrid, ...]
    audited: AuditedTables = field(repr=False)
    protection: TableProtection
    unit_nouns: Mapping[str, str]
    warnings: tuple[str, ...]

    @classmethod
    def from_stored(cls, run_id: int, recipe: Recipe, stored: StoredTables) -> RunGrids:
        """Build from the stored tables of a run, or from those of a trial."""
        assert recipe.table_protection is not None, "a recipe with tables has rules for them"
        nouns = {table.name: protected_noun(table, recipe.schema) for table in recipe.tables}
        grids = table_grids(stored, recipe.tables)
        return cls(run_id, grids, stored, recipe.table_protection, nouns, stored.warnings)

    def explain_place(
        self, grid: TableGrid, row: int, column: int, *, with_intervals: bool = True, with_numbers: bool = True
    ) -> CellExplanation:
        """Return why the cell at a place of a table is printed or hidden, and what readers compute of it."""
        return explain_cell(
            self.audited,
            self.protection,
            grid,
            row,
            column,
            self.unit_nouns[grid.name],
            with_intervals=with_intervals,
            with_numbers=with_numbers,
        )

    def find_named_place(self, text: str) -> tuple[int, int, int] | None:
        """Return the table, row and column of the first cell that a text names, as a finding of the gate does.

        Of a text that names none, the first cell that is not protected, else None.
        """
        system = self.audited.system
        # "region=a, sex=f" contains "region=a": the longest name at the first place is the one that is meant.
        named = sorted(
            (text.find(name), -len(name), cell) for cell, name in enumerate(system.cell_names) if name in text
        )
        for _, _, cell in named:
            for grid in self.grids:
                for row, column in np.argwhere(grid.cells == cell):
                    return grid.number, int(row), int(column)
        for grid in self.grids:
            for row, column in np.argwhere(np.isin(grid.letters, OPEN_LETTERS)):
                return grid.number, int(row), int(column)
        return None


def protected_noun(table: PlannedTable, schema: Schema) -> str:
    """Return the plural of what the rules protect in a table: ``households``, or ``records``."""
    name = table.unit or schema.unit
    if name is None:
        return RECORDS
    return unit_noun(schema[name].title or name)


def read_run_grids(workspace: Workspace, run_id: int | str) -> RunGrids | None:
    """Read the protected tables of a run; None where its recipe has none, or they are not protected yet.

    Raises NotFound and DamagedTable.
    """
    run = find_run(workspace, run_id)
    stored = read_run_protected_tables(workspace, run.id)
    return None if stored is None else RunGrids.from_stored(run.id, run.recipe, stored)
