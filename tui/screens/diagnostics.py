"""How the fits went: every model's convergence statistics, those that break their rule first, in a table or drawn.

The chains themselves are not stored, so there are no traces to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher

from tui.console import number
from tui.exhibits import Exhibit, lines_of
from tui.widgets.columns import cells, fitted
from tui.widgets.line import Line
from tui.widgets.live import LiveGrid
from tui.widgets.pages import Column
from tui.widgets.plot import Plot
from tui.words import mark
from workspace.findings import DiagnosticLine, diagnostic_lines

from .diagnostic_plot import by_statistic, statistic_figure, statistic_series, statistic_text
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
NONE_BROKEN = "No statistic breaks its rule. Press f to see all."
NO_TRACES = "left and right move the cursor; no traces, since chains are not stored"


class Diagnostics(Pane):
    """The statistics of one run, all or those that break their rule."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "plot", "Plot", id="diagnostics.plot"),
        Binding("m", "statistic(1)", "Statistic", id="diagnostics.next_statistic"),
        Binding("M", "statistic(-1)", "Statistic before", show=False, id="diagnostics.previous_statistic"),
        Binding("f", "failed", "Failed only", id="diagnostics.failed"),
    ]

    @dataclass
    class Arrived(Message):
        """The statistics were read."""

        run_id: int
        lines: list[DiagnosticLine]

    def __init__(self) -> None:
        super().__init__(id="diagnostics")
        self._lines: Sequence[DiagnosticLine] = ()
        self._failed = False
        self._statistic = ""

    def compose(self) -> ComposeResult:
        """A line that sums up, the table or the drawing, and what the cursor of the drawing reads."""
        yield Line(name="diagnostics-head")
        with ContentSwitcher(initial="diagnostics-table"):
            yield LiveGrid(empty=EMPTY, id="diagnostics-table")
            yield Plot(id="diagnostics-plot")
        yield Line(name="diagnostics-reading")

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
        rows = [cells(columns, _values(line)) for line in self.shown]
        grid = self.query_one(LiveGrid)
        grid.set_empty(NONE_BROKEN if self._failed and self._lines else EMPTY)
        grid.show(columns, rows, list(range(len(rows))))
        self.query_one("#diagnostics-head", Line).say(
            _summary(self._lines) + (" · failed only" if self._failed else "")
        )
        self._draw()

    @property
    def shown(self) -> Sequence[DiagnosticLine]:
        """All statistics, or those that break their rule."""
        return [line for line in self._lines if line.passed is False] if self._failed else self._lines

    @property
    def drawn(self) -> Sequence[DiagnosticLine]:
        """The values of the statistic that is drawn, one a parameter."""
        found = by_statistic(self.shown)
        return found.get(self._statistic) or next(iter(found.values()), ())

    def _draw(self) -> None:
        lines, plot = self.drawn, self.query_one(Plot)
        names = [statistic_text(line) for line in lines]
        plot.set_series(
            statistic_series(lines), y_label=lines[0].name if lines else "", x_label="parameter", x_names=names
        )
        self._say(plot.cursor)

    @on(Plot.CursorMoved)
    def _moved(self, event: Plot.CursorMoved) -> None:
        self._say(event.x)

    def _say(self, x: float | None) -> None:
        """Read the parameter at the cursor."""
        text = "" if self.query_one(ContentSwitcher).current == "diagnostics-table" else NO_TRACES
        if x is not None and 0 <= round(x) < len(self.drawn):
            line = self.drawn[round(x)]
            parts = [statistic_text(line), f"{line.name} {number(line.value)}", line.rule, str(_values(line)["passed"])]
            text = " · ".join(part for part in parts if part)
        self.query_one("#diagnostics-reading", Line).say(text)

    def action_plot(self) -> None:
        """Draw one statistic of every parameter in place of the table, or show the table again."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = "diagnostics-plot" if switcher.current == "diagnostics-table" else "diagnostics-table"
        self._say(self.query_one(Plot).cursor)
        self.take_focus()

    def action_statistic(self, step: int) -> None:
        """Draw the next statistic, or the one before."""
        names = list(by_statistic(self.shown))
        if names:
            at = names.index(self.drawn[0].name)
            self._statistic = names[(at + step) % len(names)]
            self._draw()

    def action_failed(self) -> None:
        """Show the statistics that break their rule alone, or all."""
        self._failed = not self._failed
        self._show()

    def exhibit(self) -> Exhibit | None:
        """The statistics with all their digits, and the drawing of one where it is shown."""
        lines, drawn = self.shown, self.drawn
        if not lines:
            return None
        plotted = self.query_one(ContentSwitcher).current == "diagnostics-plot"
        figure = partial(statistic_figure, drawn) if plotted else None
        return Exhibit(self.named("diagnostics"), lambda: lines_of(DiagnosticLine, lines), figure)

    def take_focus(self) -> None:
        """What is shown takes the keys."""
        self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()


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
