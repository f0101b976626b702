"""Tab with the rows of the project's data: a grid that is read a page at a time, with its values hidden until v."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.wording import count_noun, count_records
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.pages import ListPages, TableRow
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.store.runs import RunSummary
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.rows import StoredRows, find_stored_rows

from ..parts.dialogs import ConfirmDialog
from ..parts.page import RunPane
from ..parts.revealing import CONSEQUENCE

HIDDEN = "····"
"""What stands for a value that is hidden."""
NONE = "This project has no data yet. Press I in Projects to import a file."
LEAST_WIDTH, MOST_WIDTH = 6, 24
NUMBER_KINDS = frozenset({Kind.COUNT, Kind.CONTINUOUS})


@dataclass(frozen=True, eq=False)
class RowPages:
    """Rows of a dataset as pages of a grid, with hidden values unless they are ``revealed``."""

    rows_of: StoredRows
    revealed: bool

    @property
    def columns(self) -> Sequence[DisplayColumn]:
        """Return a column for the number of the record, and one for each variable."""
        digits = max(len("record"), len(f"{self.rows_of.records:,}"))
        return (DisplayColumn("", "record", digits, "right"), *map(_variable_column, self.rows_of.variables))

    def count(self) -> int:
        """Return the number of records."""
        return self.rows_of.records

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Return a page of rows; hidden values are not read."""
        last = min(offset + limit, self.rows_of.records)
        if not self.revealed:
            hidden = (HIDDEN,) * len(self.rows_of.variables)
            return [(f"{number + 1:,}", *hidden) for number in range(offset, last)]
        found = self.rows_of.read_page(offset, limit)
        return [(f"{number:,}", *values) for number, values in enumerate(found, offset + 1)]


def _variable_column(variable: Variable) -> DisplayColumn:
    """Return the column of a variable, as wide as its name and its levels need."""
    longest = max((len(str(level)) for level in variable.levels[:50]), default=10)
    width = min(MOST_WIDTH, max(LEAST_WIDTH, len(variable.name), longest))
    return DisplayColumn(variable.name, variable.name, width, "right" if variable.kind in NUMBER_KINDS else "left")


class RowGrid(Grid):
    """Grid of the rows of a dataset, which has nothing to open."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable opening a row."""
        return False if action == "select" else super().check_action(action, parameters)


class RowsPane(RunPane):
    """Tab with the rows of a project's data; a key reveals their values after a question, or hides them."""

    manual = "app Rows"
    needs_engine = True
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("reveal", "values", "Values", show=True)]

    def __init__(self, project_id: int) -> None:
        """Create the tab of a project."""
        super().__init__(id="rows")
        self._project_id = project_id
        self._stored: StoredRows | None = None
        self._revealed = False

    def compose(self) -> ComposeResult:
        """Yield what the columns are, and the rows."""
        yield Line(name="rows-head")
        yield RowGrid(empty="…")

    def show_run(self, line: RunSummary | None) -> None:
        """Read the data again; the rows do not depend on the run."""
        self.line = line
        self.reload()

    def read_query(self) -> Callable[[Workspace], StoredRows | None]:
        """Return the query for the data of the project's plan; None for a project without data."""
        return partial(_read_stored_rows, self._project_id, self._stored)

    def show_answer(self, answer: StoredRows | None) -> None:
        """Show the rows from the first, with hidden values; rows that are shown already stay."""
        if answer is None:
            self._stored = None
            self.query_one("#rows-head", Line).set_text("")
            self.query_one(RowGrid).set_source(ListPages((), ()), empty=NONE)
            return
        if answer != self._stored:
            self._stored, self._revealed = answer, False
            self._show_pages(keep_cursor=False)

    def _show_pages(self, *, keep_cursor: bool) -> None:
        """Show the rows with their values as they are revealed."""
        if self._stored is None:
            return
        self.query_one(RowGrid).set_source(RowPages(self._stored, self._revealed), keep_cursor=keep_cursor)
        state = "confidential values are shown; v hides them" if self._revealed else "values are hidden; v shows them"
        self.query_one("#rows-head", Line).set_text(
            f"{count_records(self._stored.records)} of {self._stored.name} · {state}"
        )
        self.set_heading_count(count_noun(self._stored.records, "record"))

    async def action_values(self) -> None:
        """Hide the values, or ask and show them."""
        if self._revealed:
            self._set_revealed(False)
        elif self._stored is not None:
            question = f"Show the values of {count_records(self._stored.records)}?"
            await self.sfumato.open(ConfirmDialog(question, CONSEQUENCE, "Show"), self._set_revealed)

    def _set_revealed(self, yes: bool | None) -> None:
        """Show values, or hide them; pages with values are discarded with their source."""
        self._revealed = bool(yes)
        self._show_pages(keep_cursor=True)

    def take_focus(self) -> None:
        self.query_one(RowGrid).focus()


def _read_stored_rows(project_id: int, known: StoredRows | None, workspace: Workspace) -> StoredRows | None:
    """Find the rows of a project's data, ``known`` if these are they; None for a project without data."""
    draft = find_draft(workspace, project_id)
    if draft is None or (known is not None and known.dataset_id == draft.dataset_id):
        return None if draft is None else known
    return find_stored_rows(workspace, draft.dataset_id)
