"""Studies whose curves are drawn together, as the screen shows them: a plane at a time, a line a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from textual.content import Content

from sfumato.engine.methods.rows import Row
from sfumato.workspace.plots.figure import Panel
from sfumato.workspace.plots.planes import DrawnPlane, curve_of, drawn_planes
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import interval, mark, number
from sfumato.workspace.views.studies import Study

from .export import Lines
from .study_views import Numbers, StudyView

NAME, LEVEL = 26, 9
"""Cells of a curve's name and of a point of the axis."""


@dataclass(frozen=True)
class TogetherView(StudyView):
    """A study of curves along an axis, all of them in one picture: measures along it, then against each other."""

    study: Study

    logarithmic = True

    @cached_property
    def drawn_planes(self) -> Sequence[DrawnPlane]:
        """The planes that something was measured for."""
        return drawn_planes(self.study.method, self.study.rows)

    @property
    def title(self) -> str:  # type: ignore[override]
        """What the study is called, and how many records its datasets have."""
        told = ", ".join(f"{name} = {value}" for name, value in self.study.settings.items())
        return f"{self.study.method.title}{f' ({told})' if told else ''}"

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        """The planes."""
        return [one.panel.title for one in self.drawn_planes] or [self.study.method.title]

    def said(self, picture: int) -> Content | None:
        """What the limit of the measure that is drawn asks for, curve by curve in a line; None where it has none."""
        told = self._told(picture)
        if not told:
            return None
        axis = self.study.axis
        bound = "at least" if self.study.method.output(self._measure(picture)).goal == "high" else "at most"
        parts = [
            Content.assemble(
                (f"{_short(curve_of(row, axis))} {self._answer(row)}", "$success" if row.value else "$error")
            )
            for row in told
        ]
        return Content.assemble(
            f"{bound} {number(told[0].params[axis.limit])} at {axis.label}: ", Content(", ").join(parts)
        )

    def _told(self, picture: int) -> list[Row]:
        """The answers for the measure that is drawn."""
        measure = self._measure(picture)
        return [row for row in self.study.rows if row.level is None and row.params.get("of") == measure]

    def _answer(self, row: Row) -> str:
        """``≥ 5``, ``≤ 10``, or that there is none."""
        if row.value is None:
            return f"{mark('not computed')} none"
        sign = mark("at most" if self.study.method.output(row.measure).goal == "high" else "at least")
        return f"{sign} {number(row.value)}"

    def _measure(self, picture: int) -> str:
        return self.drawn_planes[picture].measure if self.drawn_planes else ""

    def drawn(self, picture: int) -> Panel:
        """The plane."""
        if not self.drawn_planes:
            return Panel("", ())
        return self.drawn_planes[picture].panel

    def numbers(self, picture: int) -> Numbers:
        """A row a curve, a column a point of the axis; of a measure against another its own values."""
        axis, rows = self.study.axis, self.drawn_planes[picture].rows if self.drawn_planes else ()
        levels = sorted({row.level for row in rows if row.level is not None})
        told = {curve_of(row, axis): row for row in self._told(picture)}
        within = (Column("within", "within", 8), Column("but", "but", 40)) if told else ()
        columns = (
            Column("curve", axis.curve, NAME),
            *within[:1],
            *(Column(f"{level:g}", number(level), LEVEL, "right") for level in levels),
            *within[1:],
        )
        curves = list(dict.fromkeys(curve_of(row, axis) for row in rows))
        cells = [
            {
                "curve": curve,
                "within": self._answer(told[curve]) if curve in told else "",
                "but": told[curve].reason if curve in told else "",
                **{f"{level:g}": "" for level in levels},
                **{f"{row.level:g}": number(row.value) for row in rows if curve_of(row, axis) == curve},
            }
            for curve in curves
        ]
        return Numbers(columns, cells, [float(place) for place in range(len(curves))], ())

    def reading(self, picture: int, x: float) -> str:
        """Every line at the point nearest to ``x``."""
        series = self.drawn(picture).series
        if any(one.stops for one in series):
            return "   ".join(_stop(one, x, self.study.axis.label) for one in series if one.stops)
        levels = sorted({value for one in series for value in one.x.tolist()})
        at = min(levels, key=lambda level: abs(math.log(level / x) if self.study.axis.log else level - x))
        said = [_value(one, at) for one in series]
        return "   ".join([f"{self.study.axis.label} = {number(at)}", *filter(None, said)])

    def lines(self, picture: int) -> Lines:
        """A row for every curve and point, with all digits."""
        axis, measure = self.study.axis, self._measure(picture)
        rows = self.drawn_planes[picture].rows if self.drawn_planes else ()
        heads = (axis.curve, axis.label, measure, "lower", "upper", "baseline", axis.limit)
        return heads, [
            (curve_of(row, axis), row.level, row.value, row.lower, row.upper, row.baseline, row.params.get(axis.limit))
            for row in rows
        ]


def _short(curve: str) -> str:
    """A curve's name without what follows a colon."""
    return curve.partition(":")[0]


def _value(series: Series, at: float) -> str:
    places = [i for i, x in enumerate(series.x.tolist()) if x == at]
    if not places or not math.isfinite(float(series.y[places[0]])):
        return ""
    place = places[0]
    band = "" if series.lower is None or series.upper is None else interval(*_ends(series, place))
    return f"{series.name} {number(float(series.y[place]))}{f' ({band})' if band else ''}"


def _ends(series: Series, place: int) -> tuple[float | None, float | None]:
    assert series.lower is not None
    assert series.upper is not None
    low, high = float(series.lower[place]), float(series.upper[place])
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def _stop(series: Series, x: float, label: str) -> str:
    """The point of a path that is nearest to ``x``: ``step 0.0058, epsilon 1``."""
    place = min(range(len(series.stops)), key=lambda i: abs(float(series.x[i]) - x))
    stop = series.stops[place]
    return f"{series.name} {number(float(series.y[place]))}{f', {label} {stop}' if stop else ''}"
