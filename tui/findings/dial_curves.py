"""Plots of whom an intruder finds: by how many variables he knows, and by how unsure he is of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from sfumato.workspace.plots.series import Series

from ..widgets.plot import Plot

if TYPE_CHECKING:
    from sfumato.workspace.reporting.intruder_dial import DialVariable, IntruderDial

BESIDE_FROM = 100
"""Columns of a terminal from which two plots stand beside each other."""
LEAST_LINES = 8
"""Lines below which there is no plot."""
COUNTING = "counting …"


class QuietPlot(Plot, can_focus=False):
    """Plot without keys of its own."""


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
        _draw_points(
            known,
            dial.found_by_number_known(main.name),
            f"{label}, by how many variables he knows",
            "variables that he knows, those that find most",
        )
        if variable.is_numeric:
            unit = " in days" if variable.is_date else ""
            points = dial.found_by_certainty(main.name, variable)
            _draw_points(
                unsure,
                points,
                f"{label}, by how surely he knows {variable.name}",
                f"half width of {variable.name}{unit}",
            )


def _draw_points(
    plot: Plot, points: list[tuple[float, float]] | list[tuple[int, float]], title: str, x_label: str
) -> None:
    """Draw points with a line through them; without two of them say that they are being counted."""
    if len(points) < 2:
        plot.set_series([], title=title, empty=COUNTING)
        return
    x, y = zip(*points, strict=True)
    plot.set_series([Series("", x, y), Series("", x, y, marker="points", thin=True)], title=title, x_label=x_label)
