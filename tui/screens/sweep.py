"""What an intruder who knows less would find: a measure along the levels of a study, confidential beside released."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher

from sfumato.tui.console import number
from sfumato.tui.export import Exhibit, Lines
from sfumato.tui.widgets.columns import cells, fitted
from sfumato.tui.widgets.line import Line
from sfumato.tui.widgets.live import LiveGrid
from sfumato.tui.widgets.pages import Column
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.series import Series
from sfumato.tui.words import interval, params_text
from sfumato.workspace.reporting.numbers import percentages
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import BAND_SHARES, Curve, curves

from .page import Pane

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure

__all__ = ["Sweep"]

NONE = "This run has no study. Add [[study]] tables to its recipe to sweep what an intruder knows."
COLUMNS = (
    Column("level", "S", 8, "right"),
    Column("confidential", "confidential", 14, "right"),
    Column("released", "released", 14, "right"),
    Column("interval", "interval", 24),
    Column("shares", "data/noise/both %", 17, "right"),
    Column("ratio", "released / confidential", 23, "right"),
)


class Sweep(Pane):
    """One measure of one study at a time, drawn or in numbers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure(1)", "Measure", id="sweep.next_measure"),
        Binding("M", "measure(-1)", "Measure before", show=False, id="sweep.previous_measure"),
        Binding("right_square_bracket", "study(1)", "Study", key_display="]", id="sweep.next_study"),
        Binding("left_square_bracket", "study(-1)", "Study before", show=False, id="sweep.previous_study"),
        Binding("y", "log", "Log scale", id="sweep.log"),
        Binding("t", "numbers", "Numbers", id="sweep.numbers"),
    ]

    @dataclass
    class Arrived(Message):
        """The curves were read, those of the runs to lay over them too, by run."""

        run_id: int
        curves: list[Curve]
        over: Mapping[int, list[Curve]]

    def __init__(self) -> None:
        super().__init__(id="sweep")
        self._studies: list[list[list[Curve]]] = []
        self._study = self._measure = 0
        self._drawn_run: int | None = None
        self._marked: tuple[int, ...] = ()
        self._over: Mapping[int, list[Curve]] = {}

    def compose(self) -> ComposeResult:
        """What is drawn, the drawing or its numbers, and what the cursor reads."""
        yield Line(name="sweep-head")
        with ContentSwitcher(initial="sweep-plot"):
            yield Plot(id="sweep-plot")
            yield LiveGrid(empty=NONE, id="sweep-numbers")
        yield Line(name="sweep-reading")

    def load(self) -> None:
        """Read the curves."""
        if self.line is not None:
            run_id, marked = self.line.run.id, self._marked

            def query(workspace: Workspace) -> tuple[list[Curve], Mapping[int, list[Curve]]]:
                return curves(workspace, run_id), {
                    other: curves(workspace, other) for other in marked if other != run_id
                }

            self.read(query, lambda found: self.Arrived(run_id, *found))

    def lay_over(self, run_ids: tuple[int, ...]) -> None:
        """Draw the releases of these runs too, from the next time that the sweep is shown."""
        self._marked, self.line = run_ids, None

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        if self.line is None or event.run_id != self.line.run.id:
            return
        self._studies, self._over = by_study(event.curves), event.over
        if event.run_id != self._drawn_run:
            self._study = self._measure = 0
        self._draw(keep_view=event.run_id == self._drawn_run)
        self._drawn_run = event.run_id

    @property
    def shown(self) -> list[Curve]:
        """The curves of the measure that is shown, one a dataset."""
        return self._studies[self._study][self._measure] if self._studies else []

    @property
    def drawn(self) -> list[Curve]:
        """What is shown, and the same sweep of the releases of the runs laid over it."""
        return [*self.shown, *laid_over(self.shown, self._over)]

    def _draw(self, *, keep_view: bool = False) -> None:
        log = self.sfumato.state.log
        series = [as_series(curve) for curve in self.drawn]
        plot = self.query_one(Plot)
        if not series:
            plot.set_series([])
            self.query_one("#sweep-head", Line).say(NONE)
            return
        first = self.shown[0]
        plot.set_series(series, x_label="S", y_label=first.measure, log_y=log, keep_view=keep_view)
        self.query_one("#sweep-head", Line).say(self._heading(first, log=log))
        self._fill_numbers()
        self._say(plot.cursor)

    def _heading(self, first: Curve, *, log: bool) -> str:
        studies, measures = len(self._studies), len(self._studies[self._study])
        parts = [
            f"study {self._study + 1}/{studies}: {_study_name(first)}",
            f"{first.measure} {self._measure + 1}/{measures}",
            "log scale" if log else "linear scale",
        ]
        if self._over:
            parts.append(f"{len(self.drawn) - len(self.shown)} of {len(self._over)} marked runs laid over it")
        return " · ".join(parts)

    def _fill_numbers(self) -> None:
        rows = numbers(self.shown)
        columns = fitted(COLUMNS, self.size.width - 1, (), ("ratio", "shares"))
        self.query_one(LiveGrid).show(columns, [cells(columns, row) for row in rows], [row["level"] for row in rows])

    @on(Plot.CursorMoved)
    def _moved(self, event: Plot.CursorMoved) -> None:
        self._say(event.x)

    def _say(self, x: float | None) -> None:
        """Read every curve at the cursor, in the measure's own unit whatever the scale."""
        if x is None:
            text = "left and right move the cursor, + - zoom, z Z zoom up and down, 0 shows all"
        else:
            text = "   ".join([f"S = {number(x)}", *(reading(curve, x) for curve in self.drawn)])
        self.query_one("#sweep-reading", Line).say(text)

    def on_resize(self) -> None:
        """Give the columns of the numbers their new widths."""
        if self.shown:
            self._fill_numbers()

    def exhibit(self) -> Exhibit | None:
        """The measure of the study that is shown, drawn and in all its digits."""
        drawn = self.drawn
        if not drawn:
            return None
        log = self.sfumato.state.log
        return Exhibit(self.named(drawn[0].measure), lambda: curve_lines(drawn), lambda: curve_figure(drawn, log=log))

    def take_focus(self) -> None:
        """What is shown takes the keys."""
        current = self.query_one(ContentSwitcher).current
        self.query_one(f"#{current}").focus()

    def action_measure(self, step: int) -> None:
        """Show the next measure of the study, or the one before."""
        if self._studies:
            self._measure = (self._measure + step) % len(self._studies[self._study])
            self._draw(keep_view=True)

    def action_study(self, step: int) -> None:
        """Show the next study, or the one before, with the same measure where it has one."""
        if self._studies:
            name = self.shown[0].measure
            self._study = (self._study + step) % len(self._studies)
            names = [measure[0].measure for measure in self._studies[self._study]]
            self._measure = names.index(name) if name in names else 0
            self._draw()

    def action_log(self) -> None:
        """Draw on a logarithmic axis, or on a linear one."""
        self.sfumato.remember(log=not self.sfumato.state.log)
        self._draw(keep_view=True)

    def action_numbers(self) -> None:
        """Show the numbers in place of the drawing, or the drawing again."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = "sweep-numbers" if switcher.current == "sweep-plot" else "sweep-plot"
        self.take_focus()


def _study_name(curve: Curve) -> str:
    """``price, log_normal, income ±5%``: what is uncertain, how, and how near a match must be."""
    named = [str(curve.params[key]) for key in ("variable", "model") if key in curve.params]
    radius = params_text({key: value for key, value in curve.params.items() if key == "radius"})
    return ", ".join(part for part in (*named, radius) if part) or curve.key


def by_study(found: Sequence[Curve]) -> list[list[list[Curve]]]:
    """Curves by study, measure and dataset, the confidential data first."""
    studies: dict[str, dict[str, list[Curve]]] = {}
    for curve in found:
        study = json.dumps([curve.key, curve.target, dict(curve.params)], sort_keys=True)
        studies.setdefault(study, {}).setdefault(curve.measure, []).append(curve)
    return [
        [sorted(measure, key=lambda curve: curve.dataset != "confidential") for measure in study.values()]
        for study in studies.values()
    ]


def laid_over(shown: Sequence[Curve], over: Mapping[int, Sequence[Curve]]) -> list[Curve]:
    """The released curves of other runs for the study and the measure that are shown, called by their run."""
    if not shown:
        return []
    wanted = _identity(shown[0])
    return [
        replace(curve, dataset=f"run {run_id} {curve.dataset}")
        for run_id, found in over.items()
        for curve in found
        if curve.dataset != "confidential" and _identity(curve) == wanted
    ]


def _identity(curve: Curve) -> tuple[object, ...]:
    return curve.key, curve.measure, curve.target, dict(curve.params)


def as_series(curve: Curve) -> Series:
    """A curve to draw, called by its dataset."""
    known = [
        [math.nan if value is None else value for value in column]
        for column in (curve.values, curve.lower, curve.upper)
    ]
    banded = any(not math.isnan(value) for value in known[1])
    return Series(curve.dataset, curve.levels, known[0], *(known[1:] if banded else ()))


def curve_lines(shown: Sequence[Curve]) -> Lines:
    """A row for every dataset and level, with all digits."""
    rows = [
        (curve.key, curve.measure, curve.target, json.dumps(dict(curve.params), sort_keys=True), curve.dataset, *point)
        for curve in shown
        for point in zip(curve.levels, curve.values, curve.lower, curve.upper, *share_columns(curve), strict=True)
    ]
    return ("method", "measure", "target", "params", "dataset", "level", "value", "lower", "upper", *BAND_SHARES), rows


def share_columns(curve: Curve) -> list[tuple[float | None, ...]]:
    """What datasets, noise and both make of the variance behind the intervals: three columns of a value a level, or None."""
    known = curve.shares or (None,) * len(curve.levels)
    return [tuple(None if shares is None else shares[i] for shares in known) for i in range(len(BAND_SHARES))]


def curve_figure(shown: Sequence[Curve], *, log: bool = False) -> Figure:
    """The curves, drawn for a file, on the scale that is shown."""
    from sfumato.workspace.plots.figure import Figure, Panel
    from sfumato.workspace.plots.figure import Series as FigureSeries

    drawn = [as_series(curve) for curve in shown]
    series = tuple(FigureSeries.of(one.name, one.x, one.y, one.lower, one.upper) for one in drawn)
    first = shown[0]
    return Figure(f"{first.measure}: {_study_name(first)}", "sweep", (Panel(first.measure, series, "S", log_y=log),))


def reading(curve: Curve, x: float) -> str:
    """What a curve says at a level: ``synthetic 0.0181 (0.0093 .. 0.0269; data/noise/both 30/61/9 %)``."""
    at = min(range(len(curve.levels)), key=lambda i: abs(curve.levels[i] - x))
    band = interval(curve.lower[at], curve.upper[at])
    if band and curve.shares and (shares := curve.shares[at]):
        band += f"; data/noise/both {percentages(shares)} %"
    return f"{curve.dataset} {number(curve.values[at])}" + (f" ({band})" if band else "")


def numbers(measure: Sequence[Curve]) -> list[dict[str, object]]:
    """A row a level: the confidential value, the released one with its interval, and their ratio."""
    points = {
        (curve.dataset == "confidential", level): (
            curve.values[i],
            curve.lower[i],
            curve.upper[i],
            curve.shares[i : i + 1],
        )
        for curve in measure
        for i, level in enumerate(curve.levels)
    }
    rows: list[dict[str, object]] = []
    for level in sorted({level for _, level in points}):
        own = points.get((True, level), (None, None, None, ()))[0]
        released, lower, upper, shares = points.get((False, level), (None, None, None, ()))
        ratio = released / own if released is not None and own else None
        rows.append(
            {
                "level": number(level),
                "confidential": number(own),
                "released": number(released),
                "interval": interval(lower, upper),
                "shares": percentages(shares[0]) if shares and shares[0] else "",
                "ratio": number(ratio),
            }
        )
    return rows
