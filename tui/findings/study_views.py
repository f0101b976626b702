"""Studies as the screen shows them: series to draw, numbers in rows, what the cursor reads; those of curves here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.engine.methods.outputs import Axis
from sfumato.engine.methods.registry import method_by_key
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import interval_text, number, params_text, percentages_text
from sfumato.workspace.views.studies import StudyCurve

from ..session.export import ExportTable

if TYPE_CHECKING:
    from textual.content import Content


@dataclass(frozen=True)
class Numbers:
    """Rows of the grid by column, with their keys."""

    columns: Sequence[DisplayColumn]
    rows: Sequence[Mapping[str, object]]
    keys: Sequence[float]
    chosen: float | None = None


class StudyView:
    """A study, one of its ``pictures`` at a time."""

    title: str
    pictures: Sequence[str]
    logarithmic = False

    @property
    def answer(self) -> Content | None:
        """What the study answers, in words; None where it answers nothing by itself."""
        return None

    def said(self, picture: int) -> Content | None:
        """What is said above a picture: the study's answer."""
        return self.answer

    def drawn(self, picture: int) -> Panel:
        raise NotImplementedError

    def numbers(self, picture: int) -> Numbers:
        raise NotImplementedError

    def reading(self, picture: int, x: float) -> str:
        """What is said at the point nearest to ``x``."""
        raise NotImplementedError

    def lines(self, picture: int) -> ExportTable:
        """What is shown, with all digits."""
        raise NotImplementedError

    def figure(self, picture: int, *, log: bool) -> Figure:
        drawn = self.drawn(picture)
        return figure_of(f"{drawn.y_label}: {self.title}" if drawn.y_label else self.title, [drawn], log=log)


def figure_of(title: str, panels: Sequence[Panel], *, log: bool = False) -> Figure:
    """What plots show, drawn for a file: what heads the values of a single plot heads it all."""
    titled = [
        replace(one, log_y=log) if one.title else replace(one, title=one.y_label, y_label="", log_y=log)
        for one in panels
        if one.series
    ]
    return Figure(title, "sweep", tuple(titled))


@dataclass(frozen=True)
class CurveView(StudyView):
    """A study of how each measure changes along the axis, confidential data beside the release; a measure at a time.

    ``over`` are the studies of other runs, by run.
    """

    measures: Sequence[Sequence[StudyCurve]]
    over: Mapping[int, Sequence[StudyCurve]]

    logarithmic = True

    @property
    def axis(self) -> Axis:
        method = method_by_key(self.measures[0][0].key)
        return (method.study.axis if method else None) or Axis("level", "the level of the study")

    @property
    def title(self) -> str:  # type: ignore[override]
        """``price, log_normal, income ±5%``: what is uncertain, how, and how near a match must be."""
        first = self.measures[0][0]
        named = [str(first.params[key]) for key in self.axis.uses if key in first.params]
        radius = params_text({key: value for key, value in first.params.items() if key == "radius"})
        return ", ".join(part for part in (*named, radius) if part) or first.key

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        return [measure[0].measure for measure in self.measures]

    def shown(self, picture: int) -> list[StudyCurve]:
        """The curves of a measure, one a dataset, those of other runs last."""
        own = self.measures[picture]
        return [*own, *laid_over(own, self.over)]

    def drawn(self, picture: int) -> Panel:
        series = [as_series(curve) for curve in self.shown(picture)]
        return Panel("", tuple(series), self.axis.label, self.pictures[picture], log_x=self.axis.log)

    def numbers(self, picture: int) -> Numbers:
        rows = numbers(self.measures[picture])
        columns = (
            DisplayColumn("level", self.axis.label, 8, "right"),
            DisplayColumn("confidential", "confidential", 14, "right"),
            DisplayColumn("released", "released", 14, "right"),
            DisplayColumn("interval", "interval", 24),
            DisplayColumn("shares", f"{shares_heading(self.measures[0][0].key)} %", 17, "right", drop_order=2),
            DisplayColumn("ratio", "released / confidential", 23, "right", drop_order=1),
        )
        levels = sorted({level for curve in self.measures[picture] for level in curve.levels})
        return Numbers(columns, rows, levels)

    def reading(self, picture: int, x: float) -> str:
        """Every curve at a level, in the measure's own unit."""
        said = (reading(curve, x) for curve in self.shown(picture))
        return "   ".join([f"{self.axis.label} = {number(x)}", *said])

    def lines(self, picture: int) -> ExportTable:
        """A row for every dataset and level."""
        return curve_lines(self.shown(picture))


def by_study(found: Sequence[StudyCurve]) -> list[list[list[StudyCurve]]]:
    """Curves by study, measure and dataset, the confidential data first."""
    studies: dict[str, dict[str, list[StudyCurve]]] = {}
    for curve in found:
        study = json.dumps([curve.key, curve.target, dict(curve.params)], sort_keys=True)
        studies.setdefault(study, {}).setdefault(curve.measure, []).append(curve)
    return [
        [sorted(measure, key=lambda curve: curve.dataset != "confidential") for measure in study.values()]
        for study in studies.values()
    ]


def laid_over(shown: Sequence[StudyCurve], over: Mapping[int, Sequence[StudyCurve]]) -> list[StudyCurve]:
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


def _identity(curve: StudyCurve) -> tuple[object, ...]:
    return curve.key, curve.measure, curve.target, dict(curve.params)


def as_series(curve: StudyCurve) -> Series:
    """A curve to draw, called by its dataset."""
    known = [
        [math.nan if value is None else value for value in column]
        for column in (curve.values, curve.lower, curve.upper)
    ]
    banded = any(not math.isnan(value) for value in known[1])
    return Series(curve.dataset, curve.levels, known[0], *(known[1:] if banded else ()))


def curve_lines(shown: Sequence[StudyCurve]) -> ExportTable:
    """A row for every dataset and level, with all digits."""
    rows = [
        (curve.key, curve.measure, curve.target, json.dumps(dict(curve.params), sort_keys=True), curve.dataset, *point)
        for curve in shown
        for point in zip(curve.levels, curve.values, curve.lower, curve.upper, *share_columns(curve), strict=True)
    ]
    heads = ("method", "measure", "target", "params", "dataset", "level", "value", "lower", "upper")
    return (*heads, *share_names(shown[0].key)), rows


def share_columns(curve: StudyCurve) -> list[tuple[float | None, ...]]:
    """What makes the variance behind the intervals: for each share a column of a value a level, or None."""
    known = curve.variance_shares or (None,) * len(curve.levels)
    return [
        tuple(None if shares is None else shares[i] for shares in known) for i in range(len(share_names(curve.key)))
    ]


def share_names(key: str) -> list[str]:
    """What a study calls the shares of the variance behind its intervals."""
    method = method_by_key(key)
    return [output.name for output in method.outputs if output.study.variance_share_of] if method else []


def shares_heading(key: str) -> str:
    """``data/noise/both``: the shares of the variance behind a study's intervals."""
    method = method_by_key(key)
    return "/".join(output.title for output in method.outputs if output.study.variance_share_of) if method else ""


def reading(curve: StudyCurve, x: float) -> str:
    """What a curve says at a level: ``synthetic 0.0181 (0.0093 .. 0.0269; data/noise/both 30/61/9 %)``."""
    at = min(range(len(curve.levels)), key=lambda i: abs(curve.levels[i] - x))
    band = interval_text(curve.lower[at], curve.upper[at])
    if band and curve.variance_shares and (shares := curve.variance_shares[at]):
        band += f"; {shares_heading(curve.key)} {percentages_text(shares)} %"
    return f"{curve.dataset} {number(curve.values[at])}" + (f" ({band})" if band else "")


def numbers(measure: Sequence[StudyCurve]) -> list[dict[str, object]]:
    """A row a level: the confidential value, the released one with its interval, and their ratio."""
    points = {
        (curve.dataset == "confidential", level): (
            curve.values[i],
            curve.lower[i],
            curve.upper[i],
            curve.variance_shares[i : i + 1],
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
                "interval": interval_text(lower, upper),
                "shares": percentages_text(shares[0]) if shares and shares[0] else "",
                "ratio": number(ratio),
            }
        )
    return rows
