"""Views of studies with answers: measures compared with limits, curves drawn together, or planes of measures against
each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from textual.content import Content

from sfumato.engine.methods.outputs import Output, Plane
from sfumato.engine.methods.rows import Row
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.planes import DrawnPlane, curve_name, draw_planes, has_joint_curves
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.knowledge_lattice import KnowledgeLattice
from sfumato.workspace.reporting.results import curve_answers_table, split_answers_table
from sfumato.workspace.reporting.tables import DisplayColumn, format_table
from sfumato.workspace.reporting.words import interval_text, number, sign_for
from sfumato.workspace.views.studies import StudyResult

from ..session.export import ExportTable
from ..terminal.glyphs import find_glyphs
from .study_lattice import LatticeView
from .study_views import LIMIT_STYLE, StudyTable, StudyView, measured_points, question_text, study_figure

NAME, LEVEL = 26, 9
"""Cells of a curve's name, and of the value at a point of the axis."""
NOWHERE = float("nan")
UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class CombinedCurvesView(StudyView):
    """View of a study of curves along an axis, all of them in one picture: measures along it, then against each
    other.
    """

    study: StudyResult

    is_logarithmic = True

    @property
    def question(self) -> str:
        return question_text(self.study.method.key, self.study.settings, {})

    @cached_property
    def drawn_planes(self) -> Sequence[DrawnPlane]:
        """Return the planes for which something was measured."""
        return draw_planes(self.study.method, self.study.rows)

    @property
    def title(self) -> str:  # type: ignore[override]
        """Return the name of the study and its settings."""
        told = ", ".join(f"{name} = {value}" for name, value in self.study.settings.items())
        return f"{self.study.method.title}{f' ({told})' if told else ''}"

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        """Return the titles of the pictures."""
        return [one.panel.title for one in self.drawn_planes] or [self.study.method.title]

    def picture_answer(self, picture: int) -> Content | None:
        """Return the answers for the limit of the drawn measure, for all curves in a line; None if it has none."""
        told = self._measure_answers(picture)
        if not told:
            return None
        axis = self.study.axis
        bound = "at least" if self.study.method.output(self._drawn_measure(picture)).goal == "high" else "at most"
        parts = [
            Content.assemble(
                (
                    f"{_before_colon(curve_name(row, axis))} {self._row_answer(row)}",
                    "$success" if row.value else "$error",
                )
            )
            for row in told
        ]
        return Content.assemble(
            f"{bound} {number(told[0].params[axis.limit])} at {axis.label}: ", Content(", ").join(parts)
        )

    def _measure_answers(self, picture: int) -> list[Row]:
        """Return the rows with the answers for the drawn measure."""
        measure = self._drawn_measure(picture)
        return [row for row in self.study.rows if row.level is None and row.params.get("of") == measure]

    def _row_answer(self, row: Row) -> str:
        """Return an answer as text: ``≥ 5``, ``≤ 10``, or that there is none."""
        if row.value is None:
            return f"{sign_for('not computed')} none"
        sign = sign_for("at most" if self.study.method.output(row.measure).goal == "high" else "at least")
        return f"{sign} {number(row.value)}"

    def _drawn_measure(self, picture: int) -> str:
        """Return the name of the measure that a picture draws; empty without a picture."""
        return self.drawn_planes[picture].measure if self.drawn_planes else ""

    def panel_at(self, picture: int) -> Panel:
        """Return the panel of a picture."""
        if not self.drawn_planes:
            return Panel("", ())
        return self.drawn_planes[picture].panel

    def study_table(self, picture: int) -> StudyTable:
        """Return a row for each curve and a column for each point of the axis, with the answer if there is one."""
        axis, rows = self.study.axis, self.drawn_planes[picture].rows if self.drawn_planes else ()
        levels = sorted({row.level for row in rows if row.level is not None})
        told = {curve_name(row, axis): row for row in self._measure_answers(picture)}
        within = (DisplayColumn("within", "within", 8), DisplayColumn("but", "but", 40)) if told else ()
        columns = (
            DisplayColumn("curve", axis.curve, NAME),
            *within[:1],
            *(DisplayColumn(f"{level:g}", number(level), LEVEL, "right") for level in levels),
            *within[1:],
        )
        curves = list(dict.fromkeys(curve_name(row, axis) for row in rows))
        cells = [
            {
                "curve": curve,
                "within": self._row_answer(told[curve]) if curve in told else "",
                "but": told[curve].reason if curve in told else "",
                **{f"{level:g}": "" for level in levels},
                **{f"{row.level:g}": number(row.value) for row in rows if curve_name(row, axis) == curve},
            }
            for curve in curves
        ]
        return StudyTable(columns, cells, [float(place) for place in range(len(curves))])

    def reading_at(self, picture: int, x: float) -> str:
        """Return the values of every curve at the point nearest to ``x``."""
        series = self.panel_at(picture).series
        # Points of a path have no order along x, so each path is read at its own nearest point.
        if any(one.stops for one in series):
            return "   ".join(_nearest_stop_text(one, x, self.study.axis.label) for one in series if one.stops)
        levels = sorted({value for one in series for value in one.x.tolist()})
        # On a logarithmic axis the nearest point is the nearest by ratio.
        at = min(levels, key=lambda level: abs(math.log(level / x) if self.study.axis.log else level - x))
        said = [_value_at(one, at) for one in series]
        return "   ".join([f"{self.study.axis.label} = {number(at)}", *filter(None, said)])

    def export_rows(self, picture: int) -> ExportTable:
        """Return a row for every curve and point, with all digits."""
        axis, measure = self.study.axis, self._drawn_measure(picture)
        rows = self.drawn_planes[picture].rows if self.drawn_planes else ()
        heads = (axis.curve, axis.label, measure, "lower", "upper", "baseline", axis.limit)
        return heads, [
            (
                curve_name(row, axis),
                row.level,
                row.value,
                row.lower,
                row.upper,
                row.baseline,
                row.params.get(axis.limit),
            )
            for row in rows
        ]


def _before_colon(curve: str) -> str:
    """Return the part of a curve's name before the colon."""
    return curve.partition(":")[0]


def _value_at(series: Series, at: float) -> str:
    """Return the name and value of a series at a point, with its interval; empty if it has no value there."""
    places = [i for i, x in enumerate(series.x.tolist()) if x == at]
    if not places or not math.isfinite(float(series.y[places[0]])):
        return ""
    place = places[0]
    band = "" if series.lower is None or series.upper is None else interval_text(*_band_at(series, place))
    return f"{series.name} {number(float(series.y[place]))}{f' ({band})' if band else ''}"


def _band_at(series: Series, place: int) -> tuple[float | None, float | None]:
    """Return the interval at a point; None for both ends if one is missing."""
    assert series.lower is not None
    assert series.upper is not None
    low, high = float(series.lower[place]), float(series.upper[place])
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def _nearest_stop_text(series: Series, x: float, label: str) -> str:
    """Return the values at the point of a path that is nearest to ``x``: ``step 0.0058, epsilon 1``."""
    place = min(range(len(series.stops)), key=lambda i: abs(float(series.x[i]) - x))
    stop = series.stops[place]
    return f"{series.name} {number(float(series.y[place]))}{f', {label} {stop}' if stop else ''}"


@dataclass(frozen=True)
class LimitView(StudyView):
    """View of a study whose measures are compared with limits, drawn all together or one at a time.

    Limits are horizontal lines, the answer is a vertical one.
    """

    study: StudyResult

    @property
    def title(self) -> str:  # type: ignore[override]
        """Return the settings, ``k = 5, subsamples = 5``; without settings the study's title."""
        told = ", ".join(f"{name} = {value}" for name, value in self.study.settings.items())
        return told or self.study.method.title

    @property
    def question(self) -> str:
        return question_text(self.study.method.key, self.study.settings, {})

    @property
    def measure_titles(self) -> Mapping[str, str]:
        """Return the short titles of the measures with a limit; of all measures if none has one."""
        outputs = self.study.curve_outputs()
        limited = [output for output in outputs if output.name in self.study.least_values]
        return {output.name: output.title for output in limited or outputs}

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        """Return the names of the pictures: all measures, then each alone."""
        values = f", {self.study.axis.values}" if self.study.axis.values else ""
        return [f"{name}{values}" for name in ("all measures", *self.measure_titles.values())]

    @property
    def answer_content(self) -> Content | None:
        """Return the answer in words, such as ``✓ 1,250 records are enough``, and later points that fail."""
        return answer_text(self.study)

    def drawn_measures(self, picture: int) -> Sequence[str]:
        """Return the names of the measures in a picture."""
        return list(self.measure_titles) if not picture else [list(self.measure_titles)[picture - 1]]

    def panel_at(self, picture: int) -> Panel:
        """Return the measures with their limits and the answer."""
        axis = self.study.axis
        series = tuple(study_limit_series(self.study, self.drawn_measures(picture)))
        meaning = f"{axis.meaning.removeprefix('the ')}, in {axis.unit}" if axis.unit else axis.label
        return Panel("", series, meaning, axis.values, log_x=axis.log)

    def plot_series(self, picture: int) -> list[Series]:
        """Return the measures with a mark at each point; limits and the answer have their names beside their lines."""
        drawn = self.panel_at(picture).series
        curves, lines = ([one for one in drawn if is_line(one) is wanted] for wanted in (False, True))
        named = [
            replace(one, marker="line", thin=True, style=LIMIT_STYLE, labels=(*[""] * (one.x.size - 1), one.name))
            for one in lines
        ]
        return [*curves, *named, *map(measured_points, curves)]

    def study_table(self, picture: int) -> StudyTable:
        """Return a row for each point with all measures, whatever is drawn."""
        study = self.study
        others = [output for output in study.curve_outputs() if output.name not in self.measure_titles]
        columns = (
            DisplayColumn("point", study.axis.label, 9, "right"),
            *(DisplayColumn(name, title, 14) for name, title in self.measure_titles.items()),
            *(
                DisplayColumn(one.name, one.title, 15, "right", drop_order=place)
                for place, one in enumerate(others, start=1)
            ),
        )
        found = study.answer_on_axis()
        chosen = None if found is None else found.value
        rows = point_rows(study)
        return StudyTable(columns, rows, study.points, chosen)

    def reading_at(self, picture: int, x: float) -> str:
        """Describe the point nearest to ``x``: ``1,250 records (40% passing): rho ✓ 0.95  nmi ✗ 0.7``."""
        study = self.study
        place = min(range(len(study.points)), key=lambda i: abs(study.points[i] - x))
        row = point_rows(study)[place]
        others = [f"{row[one.name]} {one.name}" for one in study.curve_outputs() if one.name not in self.measure_titles]
        said = "  ".join(f"{title} {row[name]}" for name, title in self.measure_titles.items())
        beside = f" ({', '.join(others)})" if others else ""
        return f"{_point_text(study.points[place])} {study.axis.label}{beside}: {said}"

    def export_rows(self, picture: int) -> ExportTable:
        """Return a row for each point; that of the answer is marked."""
        study, found = self.study, self.study.answer_on_axis()
        names = [output.name for output in study.curve_outputs()]
        rows = [
            (point, *(study.values["", name][i] for name in names), "answer" if found and point == found.value else "")
            for i, point in enumerate(study.points)
        ]
        return (study.axis.label, *names, "answer"), rows


def _point_text(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else number(value)


def answer_text(study: StudyResult) -> Content:
    """Return each answer in words, ``✓ 1,250 records are enough: …`` or why it is missing, and later points that
    fail.
    """
    said: list[Content] = []
    for output in study.method.answer_outputs:
        found = study.find_answer(output.name)
        if found is None:
            continue
        if found.value is None:
            without = (f"{sign_for('fail')} {output.study.no_answer_text or output.meaning}: ", "$error bold")
            said.append(Content.assemble(without, found.reason))
            continue
        told = (
            output.study.sentence.format(value=found.value)
            if output.study.sentence
            else f"{output.meaning}: {number(found.value)}"
        )
        bold, colon, rest = told.partition(":")
        said.append(
            Content.assemble(
                (f"{sign_for('pass')} {bold}", "$success bold"),
                f"{colon}{rest}{_failing_points_text(study, output.study.criterion, found.value)}",
            )
        )
    return Content(" · ").join(said)


def _failing_points_text(study: StudyResult, criterion: str, answer: float) -> str:
    """Return the remark that points above the answer fail nevertheless; empty if none does."""
    # The answer is the smallest point that passes; that larger ones fail must not be hidden.
    held = study.values.get(("", criterion), ())
    failing = [point for point, value in zip(study.points, held, strict=False) if point > answer and value != 1]
    if not failing:
        return ""
    return f", but {len(failing)} larger {study.axis.point or 'level'}s did not always pass (first {_point_text(failing[0])})"


def study_limit_series(study: StudyResult, measures: Sequence[str]) -> list[Series]:
    """Return a line for each measure, a horizontal one for every limit, and a vertical one at the answer."""
    if not study.points:
        return []
    titles = {output.name: output.title for output in study.curve_outputs()}
    values = {name: study.values["", name] for name in measures}
    lines = [Series(titles[name], study.points, _none_to_nan(values[name])) for name in measures]
    # Measures with the same limit share its line, whose name lists them.
    limits: dict[float, list[str]] = {}
    for name in measures:
        if name in study.least_values:
            limits.setdefault(study.least_values[name], []).append(titles[name])
    ends = study.points[0], study.points[-1]
    level = [Series(f"limit {number(at)}: {', '.join(names)}", ends, [at, at]) for at, names in limits.items()]
    known = [v for one in values.values() for v in one if v is not None] + list(limits)
    found = study.answer_on_axis()
    if found is None or found.value is None or not known:
        return [*lines, *level]
    upright = Series(f"answer {_point_text(found.value)}", [found.value] * 2, [min(known), max(known)])
    # The answer comes before the limits, so that a short legend has it.
    return [*lines, upright, *level]


def is_line(one: Series) -> bool:
    """Return whether a series of a picture is a limit or the answer."""
    return one.name.startswith(("limit ", "answer ")) and one.x.size == 2


def _none_to_nan(values: Sequence[float | None]) -> list[float]:
    return [NOWHERE if value is None else value for value in values]


def point_rows(study: StudyResult) -> list[Mapping[str, object]]:
    """Return a row for each point: every measure, with the outcome if it has a limit; shares in per cent."""
    found = study.answer_on_axis()
    rows: list[Mapping[str, object]] = []
    for place, point in enumerate(study.points):
        row: dict[str, object] = {}
        for output in study.curve_outputs():
            value, limit = study.values["", output.name][place], study.least_values.get(output.name)
            if limit is not None:
                row[output.name] = _judge_value(value, limit)
            else:
                row[output.name] = "-" if value is None else f"{value:.0%}" if output.unit == "share" else number(value)
        mine = found is not None and point == found.value
        rows.append({"point": f"{sign_for('into')} {_point_text(point)}" if mine else _point_text(point), **row})
    return rows


def _judge_value(value: float | None, limit: float) -> str:
    """Return a value with the sign of whether it meets its limit."""
    if value is None:
        return f"{sign_for('not computed')} not computed"
    return f"{sign_for('pass' if value >= limit else 'fail')} {number(value)}"


@dataclass(frozen=True)
class PlaneView(StudyView):
    """View of a study whose measures are drawn against each other, a curve at a time, with a movable place on the
    axis.
    """

    study: StudyResult

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.study.method.title

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        return self.study.curve_names

    @property
    def question(self) -> str:
        return question_text(self.study.method.key, self.study.settings, {})

    @property
    def settings_text(self) -> str:
        return ""

    def finding_text(self, picture: int) -> str:
        """Return which curve has the best answer over the whole axis, and that of the shown one."""
        spread = next((one for one in self.study.method.answer_outputs if one.study.spread), None)
        if spread is None:
            return ""
        values = {
            name: found.value
            for name in self.pictures
            if (found := self.study.find_answer(spread.name, name, **{spread.study.spread: "all"}))
            and found.value is not None
        }
        if not values:
            return ""
        best, shown = max(values, key=lambda name: values[name]), self.pictures[picture]
        title = spread.label.name or spread.title
        text = f"{best} does it best: {title} {number(values[best])}; 0.5 is chance."
        return (
            text
            if best == shown or shown not in values
            else f"{text} The score shown, {shown}, has {number(values[shown])}."
        )

    def plane_panels(self, picture: int, at: int) -> list[Panel]:
        """Return the panel of each plane, with the place ``at`` on the axis."""
        return [draw_plane(self.study, self.pictures[picture], plane, at) for plane in self.study.method.study.planes]

    def export_rows(self, picture: int) -> ExportTable:
        """Return a row for each point of the curve with all digits."""
        name = self.pictures[picture]
        outputs = [output.name for output in self.study.curve_outputs(name)]
        rows = [
            (name, point, *(self.study.values[name, output][i] for output in outputs))
            for i, point in enumerate(self.study.points)
        ]
        return ("measure", self.study.axis.label, *outputs), rows

    def make_figure(self, picture: int, *, log: bool) -> Figure:
        """Return the planes of two measures as a figure, without the place on the axis."""
        name, at = self.pictures[picture], suggested_place(self.study, self.pictures[picture])
        drawn = [
            replace(one, series=one.series[:2])
            for plane, one in zip(self.study.method.study.planes, self.plane_panels(picture, at), strict=True)
            if plane.across
        ]
        return study_figure(f"{self.title}, {name}: {spread_text(self.study, name)}", drawn)


def suggested_place(study: StudyResult, name: str) -> int:
    """Return the index of the first point not below the curve's answer on the axis; the middle one without an
    answer.
    """
    found = study.answer_on_axis(name)
    if found is None or found.value is None:
        return len(study.points) // 2
    value = found.value
    return next((i for i, point in enumerate(study.points) if point >= value), len(study.points) - 1)


def spread_text(study: StudyResult, name: str) -> str:
    """Return the answers over the whole axis: ``AUC 0.98 (0.96 .. 0.99) · AP 0.99``.

    Brackets have the worst and the best alone. A missing answer has its reason.
    """
    parts = []
    for output in (output for output in study.method.answer_outputs if output.study.spread):
        whole, worst, best = (
            study.find_answer(output.name, name, **{output.study.spread: end}) for end in ("all", "worst", "best")
        )
        ends = [one.value for one in (worst, best) if one is not None]
        band = f" ({' .. '.join(map(number, ends))})" if ends else ""
        if whole is None or whole.value is None:
            parts.append(f"{output.title} not computed: {whole.reason if whole else ''}{band}")
        else:
            parts.append(f"{output.title} {number(whole.value)}{band}")
    return " · ".join(parts)


def draw_plane(study: StudyResult, name: str, plane: Plane, at: int) -> Panel:
    """Return the panel of a plane: the curve, the guess or the answer, and the place on the axis."""
    across = study.points if not plane.across else study.values.get((name, plane.across), ())
    up = study.values.get((name, plane.up), ())
    known = (
        [(x, y) for x, y in zip(across, up, strict=True) if x is not None and y is not None] if across and up else []
    )
    words = {output.name: _rate_text(output) for output in study.method.curve_outputs}
    up_label = words[plane.up].partition(" (")[0]
    x_label = plane.label or (words[plane.across] if plane.across else study.axis.label)
    if not known:
        return Panel(plane.title, (), x_label, up_label)
    x, y = across[at], up[at]
    place = f"{study.axis.label} {study.points[at]:.2f}"
    here = [] if x is None or y is None else [Series(place, [x], [y], marker="points")]
    if not plane.across:
        curve = Series(up_label, study.points, _none_to_nan(up))
        found = study.answer_on_axis(name)
        if found is None or found.value is None:
            return Panel(plane.title, (curve, *here), x_label, log_x=study.axis.log)
        title = study.method.output(found.measure).title
        upright = Series(f"{title} {number(found.value)}", [found.value] * 2, [0.0, max(value for _, value in known)])
        return Panel(plane.title, (curve, upright, *here), x_label, log_x=study.axis.log)
    # Points rise along the axis, and with a higher threshold rates fall, so the curve is drawn from its end to rise.
    downward = [*([(0.0, 0.0)] if plane.chance == "diagonal" else []), *reversed(known)]
    series = [Series(name, [a for a, _ in downward], [b for _, b in downward]), *_chance_series(study, name, plane)]
    return Panel(plane.title, (*series, *here), x_label, up_label)


def _rate_text(output: Output) -> str:
    """Return a rate of a threshold in words: ``good labels that pass (true positive rate)``."""
    name, words = output.name.replace("_", " "), output.label.name.removesuffix(", by threshold")
    return f"{words[:1].lower()}{words[1:]} ({name})" if words else name


def _chance_series(study: StudyResult, name: str, plane: Plane) -> list[Series]:
    """Return the line of a guess by chance: the diagonal, or the level that the study computed."""
    if plane.chance == "diagonal":
        return [Series("by chance", UNIT, UNIT)]
    found = study.find_answer(plane.chance, name) if plane.chance else None
    return [] if found is None or found.value is None else [Series("by chance", UNIT, [found.value] * 2)]


def axis_slider(study: StudyResult, name: str, at: int, width: int) -> str:
    """Return the axis as text, ``threshold 0.85  0 ────|──●─ 1``, where the bar is the suggested point."""
    low, high = study.points[0], study.points[-1]

    def cell_of(point: float) -> int:
        """Return the cell of a point on the track."""
        first, last, at = (math.log(value) if study.axis.log else value for value in (low, high, point))
        # With a single point both ends are equal; 1.0 avoids a division by 0.
        return round((at - first) / ((last - first) or 1.0) * (width - 1))

    track = ["-" if find_glyphs().name == "ascii" else "─"] * width
    found = study.answer_on_axis(name)
    if found is not None and found.value is not None and low <= found.value <= high:
        track[cell_of(found.value)] = "|"
    track[cell_of(study.points[at])] = sign_for("running")
    return f"{study.axis.label} {study.points[at]:.2f}  {number(low)} {''.join(track)} {number(high)}"


def place_text(study: StudyResult, name: str, at: int) -> str:
    """Describe every measure at a place of the axis, those along the axis first, then the suggested place."""
    along = [plane.up for plane in study.method.study.planes if not plane.across]
    outputs = sorted(study.curve_outputs(name), key=lambda output: output.name not in along)
    said = [f"{output.title} {number(study.values[name, output.name][at])}" for output in outputs]
    if found := study.answer_on_axis(name):
        title = study.method.output(found.measure).title
        said.append(f"{title} {number(found.value)}" if found.value is not None else f"none {title}: {found.reason}")
    return " · ".join(said)


def tables_text(study: StudyResult, shown: str, width: int | None = None) -> str:
    """Return the table of answers and that of every curve, with the ``shown`` curve marked, within ``width`` cells."""
    split, curves = split_answers_table(study.method, study.answers), curve_answers_table(study.method, study.answers)
    if curves is not None:
        rows = [[f"{sign_for('into') if row[0] == shown else ' '} {row[0]}", *row[1:]] for row in curves.rows]
        curves = replace(curves, rows=rows)
    return "\n\n".join(format_table(one, width) for one in (split, curves) if one is not None)


def make_study_view(
    study: StudyResult, records: int | None = None, titles: Mapping[str, str] | None = None
) -> StudyView:
    """Create the view that fits the study: combined curves, lattice, planes or limits.

    records, titles: number of confidential records, and titles of variables by name, where they are known
    """
    if has_joint_curves(study.method):
        return CombinedCurvesView(study)
    if study.method.study.lattice is not None:
        return LatticeView.from_lattice(KnowledgeLattice.from_rows(study.method, study.rows), records, titles)
    return PlaneView(study) if study.method.study.planes and study.points else LimitView(study)
