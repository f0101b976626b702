"""How the fits went: every model's convergence statistics, those that break their rule first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from tui.console import number
from tui.exhibits import Exhibit, lines_of
from tui.widgets.columns import cells, fitted
from tui.widgets.line import Line
from tui.widgets.live import LiveGrid
from tui.widgets.pages import Column
from tui.words import mark
from workspace.findings import DiagnosticLine, diagnostic_lines

from .page import Pane

COLUMNS = (
    Column("target", "model of", 10),
    Column("name", "statistic", 18),
    Column("parameter", "parameter", 10),
    Column("value", "value", 9, "right"),
    Column("rule", "rule", 12),
    Column("passed", "result", 8),
)
EMPTY = "No model has been fitted in this run yet."


class Diagnostics(Pane):
    """The statistics of one run."""

    @dataclass
    class Arrived(Message):
        """The statistics were read."""

        run_id: int
        lines: list[DiagnosticLine]

    def __init__(self) -> None:
        super().__init__(id="diagnostics")
        self._lines: Sequence[DiagnosticLine] = ()

    def compose(self) -> ComposeResult:
        """A line that sums up, and the table."""
        yield Line(name="diagnostics-head")
        yield LiveGrid(empty=EMPTY)

    def load(self) -> None:
        """Read the statistics."""
        if self.line is not None:
            run_id = self.line.run.id
            self.read(lambda reader: diagnostic_lines(reader, run_id), lambda found: self.Arrived(run_id, found))

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        if self.line is None or event.run_id != self.line.run.id:
            return
        self._lines = sorted(event.lines, key=lambda line: line.passed is not False)
        self._show()

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self._show()

    def _show(self) -> None:
        width = self.size.width - 1
        more = 8 if width >= 100 else 0
        wide = [replace(c, width=c.width + more) if c.name in ("target", "name") else c for c in COLUMNS]
        columns = fitted(wide, width, ("parameter",))
        rows = [cells(columns, _values(line)) for line in self._lines]
        self.query_one(LiveGrid).show(columns, rows, list(range(len(rows))))
        self.query_one(Line).say(_summary(self._lines))

    def exhibit(self) -> Exhibit | None:
        """The statistics with all their digits."""
        lines = self._lines
        return Exhibit(self.named("diagnostics"), lambda: lines_of(DiagnosticLine, lines)) if lines else None

    def take_focus(self) -> None:
        """The table takes the keys."""
        self.query_one(LiveGrid).focus()


def _summary(lines: Sequence[DiagnosticLine]) -> str:
    if not lines:
        return ""
    judged = [line for line in lines if line.passed is not None]
    broken = [line for line in judged if not line.passed]
    models = len({line.target for line in lines})
    said = f"{len(lines):,} statistics of {models} model{'s' * (models != 1)}; "
    if not judged:
        return said + "none of them has a rule to meet"
    if broken:
        return said + f"{mark('fail')} {len(broken)} of {len(judged)} rules broken"
    return said + f"{mark('pass')} every rule met ({len(judged)})"


def _values(line: DiagnosticLine) -> dict[str, object]:
    results = {True: f"{mark('pass')} passed", False: f"{mark('fail')} FAILED", None: ""}
    return {
        "target": line.target,
        "name": line.name,
        "parameter": line.parameter,
        "value": number(line.value),
        "rule": line.rule,
        "passed": results[line.passed],
    }
