"""What an intruder believes of one record: the most likely guesses, after the release and before. Values only on request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.tui.export import Exportable
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.workspace.reporting.beliefs import belief_lines, guess_table
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import number
from sfumato.workspace.visible_text import printable

from .page import Exports, grid_exportable
from .revealing import Revealing

if TYPE_CHECKING:
    from sfumato.workspace.reporting.beliefs import RecordGuesses
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import Records as OpenRecords

RANK, SHARE, VERDICT, VALUE = 5, 10, 11, 14
NONE_KEPT = "No guess was kept."


class Guesses(Revealing, Exports):
    """The guesses at a record, the most likely first; the values of guesses and record are hidden until the user says otherwise."""

    DEFAULT_CSS = """
    Guesses #guesses-why { height: auto; max-height: 50%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "values", "Values", id="guesses.values")]
    AUTO_FOCUS = "Grid"

    def __init__(self, records: OpenRecords, record: int) -> None:
        super().__init__()
        self._records, self._record = records, record
        self._found: RecordGuesses | None = None

    def compose(self) -> ComposeResult:
        """Which record, what is believed of it, the guesses, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="guesses-head")
            yield Static("…", id="guesses-why", markup=False)
            yield LiveGrid(empty="…")
            yield KeyLine()

    @property
    def question(self) -> str:
        """What is asked before values are shown."""
        return f"Show the values of record {self._record:,} and of the guesses at it?"

    def on_mount(self) -> None:
        self.read_values()

    def read_values(self) -> None:
        """Read the guesses, with values where they are to be shown."""
        records, record, shown = self._records, self._record, self.revealed

        def query(workspace: Workspace) -> RecordGuesses:
            from sfumato.workspace.views.beliefs import guesses_of

            return guesses_of(workspace, records.run_id, records.measure, record, with_values=shown)

        self.compute(query, partial(self._take, shown))

    def _take(self, shown: bool, found: RecordGuesses) -> None:
        if shown != self.revealed:
            return
        self._found = found
        self._show()

    def forget_values(self) -> None:
        """What was read goes, and with it what is shown."""
        self._found = None
        self.query_one("#guesses-why", Static).update("…")
        self.query_one(LiveGrid).show((), [], [])

    def _show(self) -> None:
        found, measure = self._found, self._records.measure
        if found is None:
            return
        head = (
            f"record {found.record:,} of run {self._records.run_id} · {measure.key} · all {len(measure.draws)} datasets"
        )
        self.query_one(Line).say(head)
        self.query_one("#guesses-why", Static).update(explanation(found))
        made = guess_table(found)
        widths = (RANK, SHARE, SHARE, 15, VERDICT)
        named = [*widths, *(VALUE for _ in made.columns[len(widths) :])]
        columns = [
            Column(f"{place}", printable(column.title), width, column.align)
            for place, (column, width) in enumerate(zip(made.columns, named, strict=True))
        ]
        rows = [[printable(str(cell)) for cell in row] for row in made.rows]
        self.query_one(LiveGrid).show(columns, rows, list(range(len(rows))))

    def exportable(self) -> Exportable | None:
        """The guesses, with values only where they are shown."""
        return grid_exportable(self.query_one(Grid), f"run-{self._records.run_id}-guesses-{self._record}")


def explanation(found: RecordGuesses) -> Content:
    """What is believed of the record, how much of belief the guesses below have, and its values where they are asked for."""
    share = sum(one.posterior for one in found.guesses)
    listed = f"The {len(found.guesses)} most likely guesses, which have {number(share)} of all belief:"
    own = [f"{printable(name)} {printable(str(value))}" for name, value in (found.own or {}).items()]
    lines = [*belief_lines(found), *([f"The record: {' · '.join(own)}."] if own else []), "", listed]
    return Content("\n".join(lines))
