"""Tab with the protected tables of a run: a list of them, and one as a grid of cells with a letter for each hidden one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.tui.widgets.cell_grid import CellGrid, CellSheet
from sfumato.tui.widgets.facts import fact_lines
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import DialogBox
from sfumato.tui.widgets.tables import Columns, GridTable, TableColumn
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import ConfirmDialog
from ..parts.page import Dialog, RunPane
from ..parts.revealing import CONSEQUENCE

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafts import PlanDraft
    from sfumato.workspace.reporting.cell_reasons import CellExplanation
    from sfumato.workspace.reporting.table_grids import TableGrid
    from sfumato.workspace.service.table_decisions import CellDecision
    from sfumato.workspace.views.run_grids import RunGrids

NONE = "This run has no tables. a in Plan adds one: a table to protect and print."
INKS: Mapping[str, str] = {
    "P": "doubt", "S": "fixed", "!": "bad", "<": "bad", "?": "bad", "F": "plain", "Z": "muted", ".": "plain",
}  # fmt: skip
"""Ink of each letter; the letter itself stands in the cell, so that nothing hangs on a colour."""
MOST_LISTED = 6
"""Lines that the list of tables takes at most, with its head."""
LEAST_LISTED = 2
LONGEST_NAME = 40


@dataclass
class CellDecided(Message):
    """Message that the user wants the plan changed such that a cell is published or hidden."""

    text: str
    changed: PlanDraft


def _letter_counter(*letters: str) -> Callable[[TableGrid], str]:
    """Return a function that counts the cells of a table with these letters."""
    return lambda grid: f"{grid.count_letters(*letters):,}"


COLUMNS: Columns[TableGrid] = (
    TableColumn("number", "", 2, "right", cell=lambda grid: str(grid.number)),
    TableColumn("name", "table", 20, grow_order=1, cell=lambda grid: grid.name),
    TableColumn("adds", "adds up", 18, drop_order=1, cell=lambda grid: grid.measure),
    TableColumn("cells", "cells", 7, "right", drop_order=3, cell=lambda grid: f"{grid.cell_count:,}"),
    TableColumn("rule", "by a rule P", 11, "right", cell=_letter_counter("P")),
    TableColumn("other", "for others S", 12, "right", drop_order=4, cell=_letter_counter("S")),
    TableColumn("follows", "follow !", 8, "right", cell=_letter_counter("!", "<")),
    TableColumn("unknown", "not known ?", 11, "right", drop_order=2, cell=_letter_counter("?")),
)
TABLE_LIST: GridTable[TableGrid] = GridTable(COLUMNS, lambda grid: grid.number)


class TableList(LiveGrid):
    """List of tables; the grid below shows the one under the cursor."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable opening a row: the table is shown already."""
        return False if action == "select" else super().check_action(action, parameters)


class CellDialog(Dialog[None]):
    """Dialog with why a cell is printed or hidden, and what readers compute of it."""

    AUTO_FOCUS = "Scroll"
    needs_engine = True
    DEFAULT_CSS = "CellDialog Scroll { height: auto; max-height: 18; } CellDialog KeyLine { dock: none; }"

    def __init__(self, found: RunGrids, grid: TableGrid, place: tuple[int, int], *, revealed: bool) -> None:
        """Create the dialog for the cell at a place of a table."""
        super().__init__()
        self._found, self._grid, self._place, self._revealed = found, grid, place, revealed

    def compose(self) -> ComposeResult:
        """Yield what is known at once."""
        with DialogBox("Why this cell"):
            yield Scroll("")
            yield KeyLine()

    def on_mount(self) -> None:
        """Show what is known, and compute what readers find."""
        self.query_one(Scroll).styles.height = "auto"
        self._show_facts(self._found.explain_place(self._grid, *self._place, with_intervals=False), waiting=True)
        self.reload()

    def read_query(self) -> Callable[[Workspace], CellExplanation]:
        """Return the query for the intervals of readers, which takes programs."""
        return lambda _: self._found.explain_place(self._grid, *self._place)

    def show_answer(self, answer: CellExplanation) -> None:
        """Show what readers compute."""
        self._show_facts(answer, waiting=False)

    def _show_facts(self, found: CellExplanation, *, waiting: bool) -> None:
        """Show the explanation in lines."""
        facts = found.facts(revealed=self._revealed)
        if waiting and found.is_hidden:
            facts.append(("readers", "…"))
        self.query_one(Scroll).show_text(Content("\n").join(fact_lines(facts, 54)))


class TablesPane(RunPane):
    """Tab with the protected tables of one run."""

    manual = "app Tables"
    command_name = "tables"
    needs_engine = True
    DEFAULT_CSS = """
    TablesPane TableList { height: 3; }
    TablesPane #tables-cell { height: 3; padding: 0 1; border-top: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("next_other", "hidden(1)", "Hidden", show=True),
        bind_act("previous_other", "hidden(-1)", "Previous hidden cell"),
        bind_act("exclude", "decide", "Publish, hide", show=True),
        bind_act("reveal", "values", "Values", show=True),
        bind_act("next", "table(1)", "Next table", show=True),
        bind_act("previous", "table(-1)", "Previous table"),
    ]

    def __init__(self) -> None:
        """Create the tab, without a run."""
        super().__init__(id="tables")
        self._found: RunGrids | None = None
        self._grid: TableGrid | None = None
        self._revealed = False
        self._wanted = ""

    def compose(self) -> ComposeResult:
        """Yield what the tables hide, their list, the grid of one, and the text about the cell under the cursor."""
        yield Line(name="tables-head")
        yield TableList(empty="…")
        yield CellGrid(id="tables-cells")
        yield Static("", id="tables-cell", markup=False)

    def take_focus(self) -> None:
        """Focus the grid of cells."""
        self.query_one(CellGrid).focus()

    def load_run(self) -> None:
        """Hide values of another run, and read the tables."""
        if self.line is None or self._found is None or self._found.run_id != self.line.run.id:
            self._revealed = False
        self.reload()

    def read_query(self) -> Callable[[Workspace], RunGrids | None] | None:
        """Return the query for the tables of the run."""
        if self.line is None:
            return None
        run_id = self.line.run.id

        def query(workspace: Workspace) -> RunGrids | None:
            """Read the tables, which imports the engine."""
            from sfumato.workspace.views.run_grids import read_run_grids

            return read_run_grids(workspace, run_id)

        return query

    def show_answer(self, answer: RunGrids | None) -> None:
        """Show the list, and the table that was shown before or the first."""
        self._found = answer
        listed, head = self.query_one(TableList), self.query_one("#tables-head", Line)
        if answer is None:
            self._grid = None
            listed.set_empty_text(self.empty_text("tables", NONE))
            listed.styles.height = "1fr"
            listed.show_table(TABLE_LIST, [])
            head.set_text("")
            self.query_one(CellGrid).display = self.query_one("#tables-cell", Static).display = False
            self.set_heading_count("")
            return
        from sfumato.workspace.reporting.table_texts import tables_sentence

        warned = f" · {answer.warnings[0]}" if answer.warnings else ""
        head.set_text(replace_unprintable(f"{tables_sentence(answer.grids)}{warned}"))
        self._divide_lines()
        listed.show_table(TABLE_LIST, answer.grids)
        self.query_one(CellGrid).display = self.query_one("#tables-cell", Static).display = True
        self.set_heading_count(count_noun(len(answer.grids), "table"))
        known = self._grid.number if self._grid is not None else 1
        self._show_table(answer.grids[min(known, len(answer.grids)) - 1])
        if self.app.focused is None or self.app.focused is listed:
            self.take_focus()
        self._go_to_wanted()

    def show_named_cell(self, text: str) -> None:
        """Go to the cell that a text names, such as a finding of the gate; now, or as soon as the tables are read."""
        self._wanted = text
        self._go_to_wanted()

    def _go_to_wanted(self) -> None:
        """Go to the cell that is waited for, if the tables are there."""
        if self._found is None or not self._wanted:
            return
        found, self._wanted = self._found.find_named_place(self._wanted), ""
        if found is None:
            return
        number, row, column = found
        self._show_table(self._found.grids[number - 1])
        self.query_one(TableList).cursor = number - 1
        self.query_one(CellGrid).go_to(row, column)
        self.take_focus()

    def on_resize(self) -> None:
        """Divide the lines between list and grid."""
        self._divide_lines()

    def _divide_lines(self) -> None:
        """Give the list the lines that it needs, but no more than a part of them."""
        if self._found is not None:
            most = min(MOST_LISTED, max(LEAST_LISTED, self.size.height // 4))
            self.query_one(TableList).styles.height = min(len(self._found.grids) + 1, most)

    @on(Grid.RowHighlighted, "TableList")
    def _follow_list(self) -> None:
        """Show the table under the cursor of the list."""
        grid = self.query_one(TableList).current_row
        if grid is not None and grid is not self._grid:
            self._show_table(grid)

    def _show_table(self, grid: TableGrid) -> None:
        """Show a table in the grid of cells, at the place where the cursor was if it is the same one."""
        cells = self.query_one(CellGrid)
        same = self._grid is not None and self._grid.name == grid.name and self._grid.cells.shape == grid.cells.shape
        self._grid = grid
        cells.show_sheet(sheet_of_grid(grid, revealed=self._revealed), cells.place if same else (0, 0))
        self._show_cell_text()
        self.refresh_bindings()

    @on(CellGrid.CellHighlighted)
    def _show_cell_text(self) -> None:
        """Show the text about the cell under the cursor."""
        if self._found is None or self._grid is None:
            return
        explained = self._found.explain_place(
            self._grid, *self.query_one(CellGrid).place, with_intervals=False, with_numbers=self._revealed
        )
        self.query_one("#tables-cell", Static).update(
            replace_unprintable(cell_sentence(explained, revealed=self._revealed))
        )

    @on(CellGrid.CellSelected)
    async def _explain_cell(self, event: CellGrid.CellSelected) -> None:
        """Show why the cell is printed or hidden, and what readers compute."""
        if self._found is not None and self._grid is not None:
            place = (event.row, event.column)
            await self.sfumato.open(CellDialog(self._found, self._grid, place, revealed=self._revealed))

    def action_hidden(self, step: int) -> None:
        """Move the cursor to the next hidden cell of this table."""
        from sfumato.workspace.reporting.table_grids import HIDDEN_LETTERS

        cells = self.query_one(CellGrid)
        found = None if self._grid is None else self._grid.next_place(*cells.place, HIDDEN_LETTERS, step)
        if found is None:
            self.sfumato.say("This table hides no other cell")
        else:
            cells.go_to(*found)

    def action_table(self, step: int) -> None:
        """Show the next table."""
        if self._found is None or self._grid is None:
            return
        if len(self._found.grids) == 1:
            self.sfumato.say("The run has one table")
            return
        at = (self._grid.number - 1 + step) % len(self._found.grids)
        self.query_one(TableList).cursor = at

    async def action_values(self) -> None:
        """Hide the values of hidden cells, or ask and show them."""
        if self._revealed:
            self._set_revealed(False)
        elif self._found is not None:
            hidden = sum(int((~grid.published).sum()) for grid in self._found.grids)
            question = f"Show the values of {count_noun(hidden, 'hidden cell')}?"
            await self.sfumato.open(ConfirmDialog(question, CONSEQUENCE, "Show"), self._set_revealed)

    def _set_revealed(self, yes: bool | None) -> None:
        """Show the values of hidden cells, or letters alone."""
        self._revealed = bool(yes)
        if self._grid is not None:
            self._show_table(self._grid)

    def action_decide(self) -> None:
        """Protect and audit the tables again with this cell published, or hidden, and ask whether to change the plan."""
        if self._found is None or self._grid is None:
            return
        grid, place = self._grid, self.query_one(CellGrid).place
        status = "hidden" if grid.published[place] else "published"
        act = "Hide" if status == "hidden" else "Publish"
        self.sfumato.say(f"{act} {grid.describe_place(*place)}: the tables are audited with it …")
        arguments = (self.sfumato.directory, self._found.run_id, grid.name, grid.keys_at(*place), status)

        def ask(call: Callable[..., CellDecision]) -> CellDecision:
            """Protect and audit again, outside of the app's thread."""
            from sfumato.workspace.service.table_decisions import try_cell_decision

            return call(try_cell_decision, *arguments, what="The audit of the tables")

        self.compute_in_processes(ask, partial(self._offer_decision, act))

    async def _offer_decision(self, act: str, found: CellDecision) -> None:
        """Show what follows from a decision, and ask whether to put it into the plan."""
        lead = "" if found.is_safe else "With this, the tables do not pass. "
        audited = replace_unprintable(f"{lead}{' '.join(found.sentences)}")
        text = f"{audited}\n\nThis changes the plan; run it to make the tables again."

        def change_plan(yes: bool | None) -> None:
            """Post the changed plan."""
            if yes:
                done = "published" if found.status == "published" else "hidden"
                self.post_message(CellDecided(f"{found.place} is {done} in the plan (u undoes)", found.changed))

        await self.sfumato.open(
            ConfirmDialog(replace_unprintable(f"{act} {found.place}?"), text, "Change the plan"),
            change_plan,
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable what needs a table, where there is none."""
        if action in ("hidden", "table", "decide", "values"):
            return self._grid is not None
        return super().check_action(action, parameters)

    def command_words(self) -> tuple[str, ...]:
        """Return the command that prints the table."""
        words = super().command_words()
        revealed = ("--reveal",) if self._revealed else ()
        return (*words, str(self._grid.number), *revealed) if words and self._grid is not None else words

    def make_exportable(self) -> ScreenExport | None:
        """Return the table as it is shown."""
        grid = self._grid
        if grid is None:
            return None
        return ScreenExport(
            self.export_file_name(f"table-{grid.number}"), partial(_export_table, grid, revealed=self._revealed)
        )


def sheet_of_grid(grid: TableGrid, *, revealed: bool) -> CellSheet:
    """Return a table as the content of a grid of cells."""
    return CellSheet(
        grid.row_names,
        grid.column_name,
        [[label.indented for label in row] for row in grid.rows],
        [label.text for label in grid.columns],
        lambda row, column: grid.cell_text(row, column, revealed=revealed),
        lambda row, column: INKS[str(grid.letters[row, column])],
    )


def cell_sentence(found: CellExplanation, *, revealed: bool) -> str:
    """Return a cell in one or two lines: place, status and why."""
    facts = found.facts(revealed=revealed)
    value = f": {found.value}" if not found.is_hidden or revealed else ""
    status = next(text for name, text in facts if name == "status")
    why = "; ".join(text for name, text in facts if name in ("why", "") and text != "no rule finds it")
    return f"{found.place}{value} · {found.letter} {status}" + (f" · {why}" if why else "")


def _export_table(grid: TableGrid, *, revealed: bool) -> ExportTable:
    """Return a table for export, as it is shown."""
    heads: Sequence[str] = (*grid.row_names, *(label.text for label in grid.columns))
    rows = (
        [
            *(label.text for label in labels),
            *(grid.cell_text(row, at, revealed=revealed) for at in range(len(grid.columns))),
        ]
        for row, labels in enumerate(grid.rows)
    )
    return list(heads), ([*row] for row in rows)
