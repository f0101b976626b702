"""Plots of whom an intruder finds: by how many variables he knows, and by how unsure he is of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from sfumato.engine.wording import format_number
from sfumato.workspace.plots.series import Series

from ..widgets.plot import Plot

if TYPE_CHECKING:
    from sfumato.workspace.reporting.intruder_dial import DialLine, DialVariable, IntruderDial

BESIDE_FROM = 100
"""Columns of a terminal from which two plots stand beside each other."""
LEAST_LINES = 8
"""Lines below which there is no plot."""
COUNTING = "counting …"
MARGIN = 0.04
"""Share of the highest value that the axis goes beyond it."""


class QuietPlot(Plot, can_focus=False):
    """Plot without keys of its own."""

    has_dotted_bounds = True


class DialCurves(Horizontal):
    """Two plots of a dial; in a narrow terminal that of certainty, or the other where a variable has none."""

    DEFAULT_CSS = "DialCurves { height: 1fr; display: none; } DialCurves Plot { width: 1fr; }"
    NAMES: ClassVar[tuple[str, str]] = "known", "unsure"

    def compose(self) -> ComposeResult:
        yield from (QuietPlot(id=f"curve-{name}") for name in self.NAMES)

    def draw_dial(self, dial: IntruderDial, variable: DialVariable) -> None:
        """Draw what the dial counts for the number that decides, and for the variable at its cursor."""
        main = dial.main_line
        known, unsure = (self.query_one(f"#curve-{name}", Plot) for name in self.NAMES)
        both = self.app.size.width >= BESIDE_FROM
        unsure.display = variable.is_numeric
        known.display = both or not variable.is_numeric
        if main is None:
            return
        label = f"{dial.numbers.noun} {main.title}"
        by_number, by_certainty = dial.found_by_number_known(main.name), []
        if variable.is_numeric:
            by_certainty = dial.found_by_certainty(main.name, variable)
        # Both plots have one axis from 0, so that a small change looks small, and the two compare.
        highest = max([1.0, *(y for _, y in (*by_number, *by_certainty)), main.limit or 0.0])
        _draw_points(
            known,
            by_number,
            f"{label}, by how many variables he knows",
            "variables that he knows, those that find most",
            highest,
            main,
        )
        if variable.is_numeric:
            unit = " in days" if variable.is_date else ""
            _draw_points(
                unsure,
                by_certainty,
                f"{label}, by how surely he knows {variable.name}",
                f"half width of {variable.name}{unit}",
                highest,
                main,
            )


def _draw_points(
    plot: Plot,
    points: Sequence[tuple[float, float]],
    title: str,
    x_label: str,
    highest: float,
    line: DialLine,
) -> None:
    """Draw points with a line through them, their numbers beside them, and the limit of a number, from 0 to the highest
    value; without two points say that they are being counted.
    """
    if len(points) < 2:
        plot.set_series([], title=title, empty=COUNTING)
        return
    x, y = zip(*points, strict=True)
    # The title names the one curve.
    series = [Series("", x, y)]
    if line.limit is not None:
        label = f"limit: {line.limit_texts[-2]}"
        ends, limit = (x[0], x[-1]), (line.limit, line.limit)
        series.append(Series("limit", ends, limit, marker="line", thin=True, style="bold", labels=("", label)))
    series.append(Series("", x, y, marker="points", thin=True, labels=tuple(map(format_number, y))))
    plot.set_series(series, title=title, x_label=x_label, y_range=(0.0, highest * (1 + MARGIN)))
