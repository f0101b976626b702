"""How well each measure of data quality tells good tables from bad: ROC and PR curves, and the error above a threshold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message

from sfumato.tui.console import number, table
from sfumato.tui.export import Exhibit, Lines
from sfumato.tui.messages import WorkspaceChanged
from sfumato.tui.widgets.key_line import KeyLine
from sfumato.tui.widgets.line import Line
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.scroll import Scroll
from sfumato.tui.widgets.series import Series
from sfumato.tui.words import mark
from sfumato.workspace.views.quality import CalibratedMeasure, Calibration, calibrations

from .exhibiting import Exhibits
from .page import Dialog, Reads

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure

__all__ = ["Calibrate"]

NARROW = 100
PARTS = ("calibrate-roc", "calibrate-pr", "calibrate-error", "calibrate-table")
UNIT = (0.0, 1.0)
ERROR_NAMES = {
    "lost": "lost (Type I)",
    "spurious": "spurious (Type II)",
    "sign_flip": "sign flipped",
    "errors": "any error",
}


class CurvePlot(Plot, can_focus=False):
    """A plot that leaves the keys to the threshold."""


class Calibrate(Dialog[None], Exhibits, Reads):
    """One measure at a time; left and right move the threshold. Where there is little room, ``v`` shows the parts in turn."""

    DEFAULT_CSS = """
    Calibrate > .whole { width: 100%; height: 100%; background: $background; }
    Calibrate #calibrate-body { height: 1fr; layout: grid; grid-size: 2 2; }
    Calibrate.-narrow #calibrate-body { layout: vertical; }
    Calibrate #calibrate-slider { color: $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "right,l", "threshold(1)", "Threshold", key_display="left, right", priority=True, id="calibrate.higher"
        ),
        Binding("left,h", "threshold(-1)", "Lower threshold", show=False, priority=True, id="calibrate.lower"),
        Binding("s", "suggested", "Suggested", id="calibrate.suggested"),
        Binding("m", "measure(1)", "Measure", id="calibrate.next_measure"),
        Binding("M", "measure(-1)", "Measure before", show=False, id="calibrate.previous_measure"),
        Binding("v", "part", "ROC, PR, errors", id="calibrate.part"),
        Binding("right_square_bracket", "study", "Study", show=False, id="calibrate.study"),
    ]
    AUTO_FOCUS = "Scroll"

    @dataclass
    class Arrived(Message):
        """The calibrations were read."""

        found: Sequence[Calibration]

    def __init__(self, run_id: int) -> None:
        super().__init__()
        self._run_id = run_id
        self._found: Sequence[Calibration] = ()
        self._study = self._measure = self._part = 0
        self._at: int | None = None

    def compose(self) -> ComposeResult:
        """The areas, three plots and the tables, the threshold, what it gives, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="calibrate-head")
            with Container(id="calibrate-body"):
                for part in PARTS[:3]:
                    yield CurvePlot(id=part)
                with Vertical(id=PARTS[3]):
                    yield Scroll()
            yield Line(name="calibrate-slider")
            yield Line(name="calibrate-reading")
            yield KeyLine()

    def on_mount(self) -> None:
        """Have the calibrations read."""
        self._arrange()
        self._reload()

    @on(WorkspaceChanged)
    def _reload(self) -> None:
        run_id = self._run_id
        self.read(lambda workspace: calibrations(workspace, run_id), self.Arrived)

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        if event.found != self._found:
            self._found = event.found
            self.action_suggested()

    def on_resize(self) -> None:
        """Show as many parts as there is room for."""
        self._arrange()
        self._draw()

    def _arrange(self) -> None:
        narrow = self.size.width < NARROW
        for place, part in enumerate(PARTS):
            self.query_one(f"#{part}").display = not narrow or place == self._part

    @property
    def study(self) -> Calibration | None:
        """The calibration that is shown."""
        return self._found[self._study % len(self._found)] if self._found else None

    @property
    def shown(self) -> CalibratedMeasure | None:
        """The measure that is shown."""
        study = self.study
        return study.measures[self._measure % len(study.measures)] if study and study.measures else None

    def _draw(self) -> None:
        study, shown, at = self.study, self.shown, self._at
        if study is None or shown is None or at is None:
            return
        where = f"{shown.name} {self._measure % len(study.measures) + 1}/{len(study.measures)}"
        studies = f"study {self._study % len(self._found) + 1}/{len(self._found)} · " if len(self._found) > 1 else ""
        self.query_one("#calibrate-head", Line).say(f"Run {self._run_id}  {studies}{where} · {areas_text(shown)}")
        roc, precision_recall, error = (self.query_one(f"#{part}", Plot) for part in PARTS[:3])
        roc.set_series(roc_series(shown, at), title="ROC", x_label="false positive rate", y_label="true positive rate")
        precision_recall.set_series(pr_series(shown, at), title="PR", x_label="recall", y_label="precision")
        error.set_series(error_series(shown, at), title="Error rate above the threshold", x_label="threshold")
        self.query_one(Scroll).show(tables_text(study, shown))
        self.query_one("#calibrate-slider", Line).say(slider(shown, at, max(20, self.size.width - 24)))
        self.query_one("#calibrate-reading", Line).say(reading(shown, at))

    def action_threshold(self, step: int) -> None:
        """Move the threshold by a level."""
        if self.shown is not None and self._at is not None:
            self._at = min(max(self._at + step, 0), len(self.shown.levels) - 1)
            self._draw()

    def action_suggested(self) -> None:
        """Put the threshold at the first level that is not below the suggested one; without one, in the middle."""
        if self.shown is not None:
            self._at = level_of(self.shown)
            self._draw()

    def action_measure(self, step: int) -> None:
        """Show the next measure, at the same threshold."""
        self._measure += step
        self._draw()

    def action_study(self) -> None:
        """Show the next calibration of the run."""
        self._study, self._measure = self._study + 1, 0
        self.action_suggested()

    def action_part(self) -> None:
        """Show the next part where there is room for one only."""
        self._part = (self._part + 1) % len(PARTS)
        self._arrange()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Parts are gone through only where they are not all in sight."""
        return self.size.width < NARROW if action == "part" else super().check_action(action, parameters)

    def exhibit(self) -> Exhibit | None:
        """The curves of the measure, drawn and with all digits."""
        shown = self.shown
        if shown is None:
            return None
        name = f"run-{self._run_id}-calibration-{shown.name}"
        return Exhibit(name, lambda: curve_lines(shown), lambda: curve_figure(shown))


def level_of(shown: CalibratedMeasure) -> int:
    """The place of the first level that is not below the suggested threshold; the middle where none is suggested."""
    suggested = shown.suggested[0]
    if suggested is None:
        return len(shown.levels) // 2
    return next((i for i, level in enumerate(shown.levels) if level >= suggested), len(shown.levels) - 1)


def areas_text(shown: CalibratedMeasure) -> str:
    """``AUC 0.98 (0.96 .. 0.99) · AP 0.99``, the generators by themselves in brackets, or why there is none."""
    parts = []
    for name, title in (("auc", "AUC"), ("average_precision", "AP")):
        value, reason = shown.areas.get((name, "all"), (None, ""))
        ends = [shown.areas[name, end][0] for end in ("worst", "best") if (name, end) in shown.areas]
        band = f" ({' .. '.join(map(number, ends))})" if ends else ""
        parts.append(f"{title} not computed: {reason}" if value is None else f"{title} {number(value)}{band}")
    return " · ".join(parts)


def _points(shown: CalibratedMeasure, x: str, y: str) -> tuple[list[float], list[float]]:
    """Two rates against each other, from the highest threshold down."""
    pairs = zip(reversed(shown.rates[x]), reversed(shown.rates[y]), strict=True)
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return [a for a, _ in known], [b for _, b in known]


def _here(shown: CalibratedMeasure, at: int, x: str, y: str) -> list[Series]:
    across, up = shown.rates[x][at], shown.rates[y][at]
    if across is None or up is None:
        return []
    return [Series(f"at {shown.levels[at]:.2f}", [across], [up], marker="points")]


def roc_series(shown: CalibratedMeasure, at: int) -> list[Series]:
    """The curve from (0, 0), where nothing passes; what a guess would give; and the threshold."""
    x, y = _points(shown, "false_positive_rate", "true_positive_rate")
    if not x:
        return []
    here = _here(shown, at, "false_positive_rate", "true_positive_rate")
    return [Series(shown.name, [0.0, *x], [0.0, *y]), Series("a guess", UNIT, UNIT), *here]


def pr_series(shown: CalibratedMeasure, at: int) -> list[Series]:
    """The curve, the precision of a guess (the share of good labels), and the threshold."""
    x, y = _points(shown, "true_positive_rate", "precision")
    if not x:
        return []
    guess = [] if shown.good is None else [Series("a guess", UNIT, [shown.good] * 2)]
    return [Series(shown.name, x, y), *guess, *_here(shown, at, "true_positive_rate", "precision")]


def error_series(shown: CalibratedMeasure, at: int) -> list[Series]:
    """The rate of error above each threshold, the threshold, and the one suggested."""
    rates = shown.rates["error_rate"]
    known = [one for one in rates if one is not None]
    if not known:
        return []
    rate, level = rates[at], shown.levels[at]
    here = [] if rate is None else [Series(f"at {level:.2f}", [level], [rate], marker="points")]
    curve = Series("error rate", shown.levels, [float("nan") if one is None else one for one in rates])
    suggested = shown.suggested[0]
    upright = (
        [] if suggested is None else [Series(f"suggested {number(suggested)}", [suggested] * 2, [0.0, max(known)])]
    )
    return [curve, *upright, *here]


def slider(shown: CalibratedMeasure, at: int, width: int) -> str:
    """``threshold 0.85  0 ────S──●─ 1``: S stands at the suggested threshold."""
    track = ["-" if os.environ.get("SFUMATO_GLYPHS") == "ascii" else "─"] * width
    if shown.suggested[0] is not None:
        track[round(shown.suggested[0] * (width - 1))] = "S"
    track[round(shown.levels[at] * (width - 1))] = mark("running")
    return f"threshold {shown.levels[at]:.2f}  0 {''.join(track)} 1"


def reading(shown: CalibratedMeasure, at: int) -> str:
    """What passes at the threshold, and how much of it is wrong; then the suggested one."""
    names = {"error_rate": "error rate", "true_positive_rate": "recall", "false_positive_rate": "false positives"}
    rates = [f"{name} {number(shown.rates[key][at])}" for key, name in names.items()]
    suggested, reason = shown.suggested
    said = f"suggested {number(suggested)}" if suggested is not None else f"none suggested: {reason}"
    return " · ".join([*rates, said])


def tables_text(study: Calibration, shown: CalibratedMeasure) -> str:
    """The table of errors, and the areas of every measure."""
    kinds = [
        [title, *(number(study.errors.get((kind, passed))) for passed in (True, False))]
        for kind, title in ERROR_NAMES.items()
    ]
    tests = ["tests", *(f"{study.tests.get(passed, 0):,}" for passed in (True, False))]
    errors = table(("share of tests", "tables that pass", "the others"), [tests, *kinds], right=(1, 2))
    measures = [
        [
            f"{mark('into') if one is shown else ' '} {one.name}",
            *(number(one.areas.get((area, "all"), (None, ""))[0]) for area in ("auc", "average_precision")),
            number(one.suggested[0]),
        ]
        for one in study.measures
    ]
    areas = table(("  measure", "AUC", "AP", "suggested"), measures, right=(1, 2, 3))
    return f"Errors of the tests, by whether tables meet all limits\n{errors}\n\nMeasures\n{areas}"


def curve_lines(shown: CalibratedMeasure) -> Lines:
    """A row a threshold, with all digits."""
    rows = [
        (shown.name, level, *(shown.rates[rate][place] for rate in shown.rates))
        for place, level in enumerate(shown.levels)
    ]
    return ("measure", "threshold", *shown.rates), rows


def curve_figure(shown: CalibratedMeasure) -> Figure:
    """ROC and PR, drawn for a file."""
    from sfumato.workspace.plots.figure import Figure, Panel
    from sfumato.workspace.plots.figure import Series as FigureSeries

    at = level_of(shown)
    panels = (
        ("ROC", roc_series(shown, at)[:2], "false positive rate", "true positive rate"),
        ("PR", pr_series(shown, at)[:2], "recall", "precision"),
    )
    drawn = [
        Panel(title, tuple(FigureSeries.of(one.name, one.x, one.y) for one in series), x_label, y_label)
        for title, series, x_label, y_label in panels
        if series
    ]
    return Figure(f"Calibration of {shown.name}: {areas_text(shown)}", "sweep", tuple(drawn))
