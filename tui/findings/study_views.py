"""Base class of the views of studies, and the view of studies of curves: series, rows of numbers, and text at the
cursor.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len

from sfumato.engine.methods.labels import is_of_units, measure_name, method_and_output, quantity_of
from sfumato.engine.methods.outputs import Axis
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.recipe.outcomes import worst_outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import join_names, singular_noun
from sfumato.workspace.plots.axes import Limits
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import (
    brief_value_text,
    number,
    params_text,
    people_limit_number,
    percentages_text,
    unit_text,
    value_text,
)
from sfumato.workspace.views.studies import StudyCurve

from ..session.export import ExportTable
from ..widgets.frame import LONGEST_NAME

if TYPE_CHECKING:
    from textual.content import Content


CONFIDENTIAL = "confidential"
"""Dataset of the curves of the confidential data."""
CONFIDENTIAL_TITLE = "confidential data"
INTERVAL_TITLE = "95 % interval"
MARGIN = 0.04
"""Share of the highest value that an axis from 0 goes beyond it."""
MOST_DECIMALS = 4
"""Most decimals of the intervals of a column."""
WIDE_RANGE = 1000
"""Ratio of the largest end of the intervals of a column to the smallest from which on they have no common decimals."""
MOST_MEASURE = 40
"""Most cells of the column of measures."""
_NOUN = re.compile(r" (people|person|records?|units?)$")
_COUNTED = re.compile(r"[\d.,]+ of ([\d,]+) (\S+) \(.*\)")
"""A count of people as ``quantity_of`` has it: of how many, and what they are."""
_PEOPLE_FOUND = re.compile(r"People found (on average|for certain)(?:, (best window))?")
BOUNDS = {"max": "at most", "min": "at least"}
LIMIT_STYLE = "bold"
"""Style of the line of a limit: in the colour of text, so that it is no curve."""
FAR_APART = 20
"""Ratio of the highest value of a picture to the lowest from which on a logarithmic axis is suggested."""


@dataclass(frozen=True)
class StudyTable:
    """Numbers of a study as rows of a grid.

    columns: the columns
    rows: cells by column
    keys: key of each row
    cursor_key: key of the row for the cursor; None if there is none
    """

    columns: Sequence[DisplayColumn]
    rows: Sequence[Mapping[str, object]]
    keys: Sequence[Hashable]
    cursor_key: Hashable | None = None


class StudyView:
    """View of a study, one of its ``pictures`` at a time."""

    title: str
    pictures: Sequence[str]
    is_logarithmic = False

    @property
    def question(self) -> str:
        """Return the question that the study answers, in plain words."""
        return f"{self.title}?"

    @property
    def short_question(self) -> str:
        """Return the question where there is little room."""
        return self.question

    def picture_title(self, picture: int) -> str:
        """Return the title of a picture in words."""
        return self.pictures[picture]

    def finding_text(self, picture: int) -> str:
        """Return what the numbers of a picture show, in sentences; empty where the answer of the study says it."""
        return ""

    @property
    def settings_text(self) -> str:
        """Return the settings that the question does not name; empty for none."""
        return "" if self.title in self.question else self.title

    def suggests_log(self, picture: int) -> bool:
        """Return whether a linear axis would hide some of the curves of a picture."""
        return False

    @property
    def answer_content(self) -> Content | None:
        """Return the study's answer in words; None if it has none."""
        return None

    def picture_answer(self, picture: int) -> Content | None:
        """Return what stands above a picture: by default the study's answer."""
        return self.answer_content

    def panel_at(self, picture: int) -> Panel:
        """Return the panel of a picture."""
        raise NotImplementedError

    def study_table(self, picture: int) -> StudyTable:
        """Return the numbers of a picture."""
        raise NotImplementedError

    def reading_at(self, picture: int, x: float) -> str:
        """Return the text for the point nearest to ``x``."""
        raise NotImplementedError

    def export_rows(self, picture: int) -> ExportTable:
        """Return the shown numbers with all digits."""
        raise NotImplementedError

    def make_figure(self, picture: int, *, log: bool) -> Figure:
        """Return a picture as a figure for a file."""
        drawn = self.panel_at(picture)
        return study_figure(f"{drawn.y_label}: {self.title}" if drawn.y_label else self.title, [drawn], log=log)


def study_figure(title: str, panels: Sequence[Panel], *, log: bool = False) -> Figure:
    """Return the panels as a figure for a file; the label of a single panel becomes its title."""
    titled = [
        replace(one, log_y=log) if one.title else replace(one, title=one.y_label, y_label="", log_y=log)
        for one in panels
        if one.series
    ]
    return Figure(title, "sweep", tuple(titled))


@dataclass(frozen=True)
class CurveView(StudyView):
    """View of a study of curves along its axis, one measure at a time: the confidential data and the release.

    measures: curves by measure, one for each dataset
    other_runs: curves of other runs, by run
    unit_noun: what units are, in the plural
    records: number of confidential records; None where it is unknown
    titles: titles of variables, by name
    verdicts: verdicts on the limits of the plan
    """

    measures: Sequence[Sequence[StudyCurve]]
    other_runs: Mapping[int, Sequence[StudyCurve]]
    unit_noun: str = ""
    records: int | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()

    is_logarithmic = True

    @property
    def study_axis(self) -> Axis:
        """Return the study's axis."""
        method = method_by_key(self.measures[0][0].key)
        # This version may not have the method of an older run.
        return (method.study.axis if method else None) or Axis("level", "the level of the study")

    @property
    def title(self) -> str:  # type: ignore[override]
        """Return the title ``price, log_normal, by household, income ±5%``: uncertain variable, its distribution, what
        is counted where these are units, and match radius.
        """
        first = self.measures[0][0]
        named = [str(first.params[key]) for key in self.study_axis.uses if key in first.params]
        radius = params_text({key: value for key, value in first.params.items() if key == "radius"})
        return (
            ", ".join(part for part in (*named, unit_text(first.params, self.unit_noun), radius) if part) or first.key
        )

    @property
    def pictures(self) -> Sequence[str]:  # type: ignore[override]
        return [measure[0].measure for measure in self.measures]

    @property
    def question(self) -> str:
        """Return the question of the study, about the variable that it is uncertain of."""
        return question_text(self.measures[0][0].key, self.measures[0][0].params, self.titles)

    @property
    def short_question(self) -> str:
        """Return the question with the name of the variable in place of its title."""
        return question_text(self.measures[0][0].key, self.measures[0][0].params, {})

    def picture_title(self, picture: int) -> str:
        """Return the name of a measure, without what the question says already."""
        first = self.measures[picture][0]
        return measure_name(f"{first.key}.{first.measure}").removesuffix(", by uncertainty")

    def finding_text(self, picture: int) -> str:
        """Return from where to where the measure goes along the axis, in the release and in the confidential data."""
        own, released = (
            next((one for one in self.measures[picture] if (one.dataset == CONFIDENTIAL) is wanted), None)
            for wanted in (True, False)
        )
        texts = []
        if (change := self._change_text(released)) is not None:
            texts.append(self._less_sure_text(picture, released) or f"{self.picture_title(picture)}: {change}.")
        if (change := self._change_text(own, is_first=not texts)) is not None:
            texts.append(f"With the data released unprotected: {change}.")
        if released is not None:
            texts.insert(1, self._limit_text(released))
        return " ".join(filter(None, texts))

    def _limit_text(self, curve: StudyCurve) -> str:
        """Return in a sentence at which levels the release exceeds the limits of the plan; empty where no verdict is of
        these values, or one of another kind is.
        """
        key = f"{curve.key}.{curve.measure}"
        own = [one for one in self.verdicts if (one.value, one.target) == (key, curve.target)]
        limits = [one for one in own if is_limit_of(one, curve)]
        if not limits or len({(one.bound, one.limit) for one in own}) > 1 or len(limits) < len(own):
            return "" if own else "The plan sets no limit on it."
        bound = study_limit_text(curve, limits[0], self.records)
        values = dict(zip(curve.levels, curve.values, strict=True))
        held = {level for one in limits for level in (curve.levels if one.level is None else [one.level])}
        unknown = [level for level in held if values.get(level) is None]
        if unknown:
            return f"The plan allows {bound}; it is not known everywhere whether that is met."
        way = 1 if limits[0].bound == "max" else -1
        over = sorted(level for level in held if way * ((values[level] or 0.0) - limits[0].limit) > 1e-12)
        if not over:
            # The interval of a value decides its verdict too.
            worst = worst_outcome(one.outcome for one in limits)
            where = "every level" if len(held) > 1 else "the level that it names"
            return f"The plan allows {bound}: {f'met at {where}' if worst == 'met' else worst}."
        if len(over) == len(held):
            return f"The plan allows {bound}: not met at any level."
        within, label = sorted(held - set(over)), self.study_axis.label
        if over[-1] < within[0]:
            where = f"within that from {label} {number(within[0])} on, beyond it below"
        elif within[-1] < over[0]:
            where = f"within that up to {label} {number(within[-1])}, beyond it from {number(over[0])} on"
        else:
            where = f"beyond that at {label} {join_names([number(one) for one in over])}"
        return f"The plan allows {bound}: {where}."

    @property
    def settings_text(self) -> str:
        """Return what counts as a match, and whom the study counts, in words."""
        params = self.measures[0][0].params
        radius = params_text({key: value for key, value in params.items() if key == "radius"})
        return ", ".join(filter(None, (f"a match: {radius}" if radius else "", unit_text(params, self.unit_noun))))

    @property
    def level_unit(self) -> str:
        """Return the unit of the levels in words; empty where they have none."""
        params, axis = self.measures[0][0].params, self.study_axis
        values = {str(params[name]) for name in axis.uses if name in params}
        return next((text for value, text in axis.units if value in values), axis.unit)

    def level_meaning(self, width: int) -> str:
        """Return what the levels of the axis are, as far as ``width`` cells have room: ``uncertainty: error of the
        logarithm``; empty without room or unit.
        """
        unit = self.level_unit
        shorter = (unit.partition(mark)[0] for mark in (";", ",", " for "))
        said = [f"{self.study_axis.label}: {text}" for text in (unit, *shorter) if text]
        return next((text for text in said if cell_len(text) <= width), "")

    @property
    def name_of_zero(self) -> str:
        """Return what the level 0 is, beside the number: ``0 (sure)``; empty where it is nothing special."""
        at_zero = self.study_axis.at_zero
        return f"0 ({at_zero.rpartition(' ')[2]})" if at_zero else ""

    def suggests_log(self, picture: int) -> bool:
        """Return whether the curves lie so far apart that a linear axis shows only the highest."""
        values = [value for curve in self.shown_curves(picture) for value in curve.values if value is not None]
        return bool(values) and min(values) > 0 and max(values) >= FAR_APART * min(values)

    def _change_text(self, curve: StudyCurve | None, *, is_first: bool = True) -> str | None:
        """Return the values at both ends of a curve in words; None without values."""
        known = (
            [] if curve is None else [(x, y) for x, y in zip(curve.levels, curve.values, strict=True) if y is not None]
        )
        if curve is None or not known:
            return None
        (first, start), (last, end) = known[0], known[-1]
        key = f"{curve.key}.{curve.measure}"
        whole = [point_text(curve, value, self.records) for value in (start, end)]
        texts = list(brief_pair(*whole))
        if is_first and " of " in (text := quantity_of(key, start, self.records, curve.params)):
            # Of how many is said once.
            texts[0] = f"{texts[0]} of {text.partition(' of ')[2]}"
        if whole[0] == whole[1]:
            return f"{texts[0]}, at {self.study_axis.label} {number(first)} as at {number(last)}"
        # Where the levels are is said once too.
        ends = [f" {self._level_text(level)}" if is_first else "" for level in (first, last)]
        return f"{texts[1]}{ends[1]} instead of {texts[0]}{ends[0]}"

    def _less_sure_text(self, picture: int, curve: StudyCurve | None) -> str:
        """Return what an intruder finds who is less sure, and what a sure one finds, in a sentence; empty for a study of
        something else.
        """
        axis, variable = self.study_axis, None if curve is None else curve.params.get("variable")
        known = (
            [] if curve is None else [(x, y) for x, y in zip(curve.levels, curve.values, strict=True) if y is not None]
        )
        if curve is None or not axis.at_zero or not variable or len(known) < 2 or known[0][0] != 0:
            return ""
        (_, start), (last, end) = known[0], known[-1]
        first, then = brief_pair(*(point_text(curve, value, self.records) for value in (start, end)))
        if first == then:
            return ""
        counted = _COUNTED.fullmatch(quantity_of(f"{curve.key}.{curve.measure}", start, self.records, curve.params))
        whole, noun = ("", "") if counted is None else (f" of {counted[1]}", counted[2])
        title = self.picture_title(picture)
        people = _PEOPLE_FOUND.fullmatch(title)
        if people is None or not noun:
            noun = f" {noun}" if noun else ""
            return f"{title}: {then} instead of {first}{whole}{noun} if the intruder is less sure of {variable} ({number(last)})."
        how = f"{people[1]}{f' with the {people[2]}' if people[2] else ''}"
        noun = singular_noun(noun) if then == "1" else noun
        return (
            f"An intruder who is less sure of {variable} ({number(last)}) finds {then} {noun} {how} "
            f"instead of {first}{whole}."
        )

    def _level_text(self, level: float) -> str:
        """Return a level of the axis in words: ``if the intruder is sure``, ``at uncertainty 0.2``."""
        axis = self.study_axis
        return axis.at_zero if level == 0 and axis.at_zero else f"at {axis.label} {number(level)}"

    @property
    def axis_title(self) -> str:
        """Return the title of the axis in words: ``how unsure the intruder is of age``."""
        first, axis = self.measures[0][0], self.study_axis
        of = f" of {first.params['variable']}" if "variable" in axis.uses and "variable" in first.params else ""
        return f"{axis.meaning}{of}"

    def shown_curves(self, picture: int) -> list[StudyCurve]:
        """Return the curves of a measure, one for each dataset, those of other runs last."""
        own = self.measures[picture]
        return [*own, *overlaid_curves(own, self.other_runs)]

    def panel_at(self, picture: int) -> Panel:
        """Return the panel with the curves of a measure."""
        series = [curve_series(curve) for curve in self.shown_curves(picture)]
        return Panel("", tuple(series), self.axis_title, self.picture_title(picture), log_x=self.study_axis.log)

    def plot_series(self, picture: int) -> list[Series]:
        """Return the curves of a measure with a mark at each measured level, and the limit of the plan: people where the
        numbers count people, else per cent of shares.
        """
        first = self.measures[picture][0]
        scale = shown_scale(first, self.records)
        drawn = [scale_series(named_interval(one), scale) for one in self.panel_at(picture).series]
        curves = self.shown_curves(picture)
        own = len(self.measures[picture])
        # The numbers of other runs beside those of this one would cover each other.
        marks = [
            measured_points(one, point_labels(curve, self.records) if place < own else ())
            for place, (one, curve) in enumerate(zip(drawn, curves, strict=True))
        ]
        limits = [(one.level, scale * one.limit) for one in self.verdicts if is_limit_of(one, first)]
        levels = sorted({level for curve in self.shown_curves(picture) for level in curve.levels})
        if limits and levels:
            verdict = next(one for one in self.verdicts if is_limit_of(one, first))
            # A limit of one level is a point; one that holds at every level is a line.
            places = [(x, y) for level, y in limits for x in (levels if level is None else [level])]
            x, y = zip(*sorted(places), strict=True)
            is_point = len(set(x)) == 1
            labels = (*[""] * (len(x) - 1), f"limit: {study_limit_text(first, verdict, self.records)}")
            drawn.append(
                Series(
                    f"limit, {BOUNDS[verdict.bound]}", x, y, marker="points" if is_point else "line",
                    thin=not is_point, style=None if is_point else LIMIT_STYLE, labels=labels,
                )
            )  # fmt: skip
        return [*drawn, *marks]

    def study_table(self, picture: int) -> StudyTable:
        """Return a row for each level: confidential and released value, interval and ratio."""
        rows = level_rows(self.measures[picture], self.records)
        columns = (
            DisplayColumn("level", self.study_axis.label, 11, "right"),
            DisplayColumn("confidential", "confidential data", 17, "right"),
            DisplayColumn("released", "release", 9, "right"),
            DisplayColumn("interval", INTERVAL_TITLE, 22),
            DisplayColumn("ratio", "release / confidential", 22, "right", drop_order=1),
            DisplayColumn("shares", "what makes the interval", 48, drop_order=2),
        )
        levels = sorted({level for curve in self.measures[picture] for level in curve.levels})
        return StudyTable(columns, rows, levels)

    def every_measure_table(self, picture: int) -> StudyTable:
        """Return the rows of every measure below each other, those of ``picture`` first."""
        order = [picture, *(at for at in range(len(self.measures)) if at != picture)]
        tables = {at: self.study_table(at) for at in order}
        columns = list(tables[picture].columns)
        longest = max(cell_len(self.picture_title(at)) for at in order)
        columns.insert(0, DisplayColumn("measure", "measure", max(7, min(longest, MOST_MEASURE))))
        rows = [
            {"measure": self.picture_title(at) if first else "", **row}
            for at in order
            for first, row in zip((True, *(False,) * len(tables[at].rows)), tables[at].rows, strict=False)
        ]
        # The keys of the shown measure are its levels, as in a table of it alone.
        keys: list[Hashable] = [level if at == picture else (at, level) for at in order for level in tables[at].keys]
        return StudyTable(columns, rows, keys)

    def reading_at(self, picture: int, x: float) -> str:
        """Return the values of every curve at a level, in the measure's own unit."""
        said = (curve_reading(curve, x, self.records) for curve in self.shown_curves(picture))
        return "   ".join([f"{self.study_axis.label} {number(x)}:", *said])

    def export_rows(self, picture: int) -> ExportTable:
        """Return a row for every dataset and level."""
        return curve_rows(self.shown_curves(picture))


def group_by_study(curves: Sequence[StudyCurve]) -> list[list[list[StudyCurve]]]:
    """Group curves by study, measure and dataset, the confidential data first; studies that count units come before the
    same of records.
    """
    studies: dict[str, dict[str, list[StudyCurve]]] = {}
    for curve in curves:
        # Settings are dicts, which have no hash; sorted JSON is the same for equal settings.
        study = json.dumps([curve.key, curve.target, dict(curve.params)], sort_keys=True)
        studies.setdefault(study, {}).setdefault(curve.measure, []).append(curve)
    made = [
        [sorted(measure, key=lambda curve: curve.dataset != CONFIDENTIAL) for measure in study.values()]
        for study in studies.values()
    ]
    # The gate counts units, such as people, where records are of units; so does what is read first here.
    places = {one[0][0].key: at for at, one in reversed(list(enumerate(made)))}
    return sorted(made, key=lambda one: (places[one[0][0].key], not is_of_units(one[0][0].params)))


def overlaid_curves(shown: Sequence[StudyCurve], over: Mapping[int, Sequence[StudyCurve]]) -> list[StudyCurve]:
    """Return the released curves of other runs for the shown study and measure, named by their run."""
    if not shown:
        return []
    wanted = _curve_identity(shown[0])
    return [
        replace(curve, dataset=f"release of run {run_id}")
        for run_id, found in over.items()
        for curve in found
        if curve.dataset != CONFIDENTIAL and _curve_identity(curve) == wanted
    ]


def _curve_identity(curve: StudyCurve) -> tuple[object, ...]:
    """Return what must agree for curves of two runs to be comparable: method, measure, target and settings."""
    return curve.key, curve.measure, curve.target, dict(curve.params)


def curve_series(curve: StudyCurve) -> Series:
    """Return a curve as a series, named by its dataset."""
    known = [
        [math.nan if value is None else value for value in column]
        for column in (curve.values, curve.lower, curve.upper)
    ]
    banded = any(not math.isnan(value) for value in known[1])
    return Series(curve_title(curve), curve.levels, known[0], *(known[1:] if banded else ()))


def is_limit_of(verdict: Verdict, curve: StudyCurve) -> bool:
    """Return whether a verdict is on a limit for the values of a curve, with the same settings."""
    params = verdict.params or {}
    return (
        verdict.bound in ("max", "min")
        and (verdict.value, verdict.target) == (f"{curve.key}.{curve.measure}", curve.target)
        and all(curve.params.get(name) == value for name, value in params.items())
    )


def range_from_zero(series: Sequence[Series]) -> Limits | None:
    """Return the range of y from 0 to a little above the highest point, bands included; None for values below 0 or none."""
    ends = [bound for one in series for bound in (one.y, one.lower, one.upper) if bound is not None]
    values = np.concatenate([np.asarray(bound, dtype=np.float64) for bound in ends]) if ends else np.empty(0)
    values = values[np.isfinite(values)]
    if not values.size or values.min() < 0 or values.max() <= 0:
        return None
    return 0.0, float(values.max()) * (1 + MARGIN)


def measured_points(one: Series, labels: tuple[str, ...] = ()) -> Series:
    """Return the points of a curve alone, in its looks and without an entry of their own in the legend."""
    return Series(one.name, one.x, one.y, marker="points", thin=True, labels=labels)


def point_labels(curve: StudyCurve, records: int | None) -> tuple[str, ...]:
    """Return the values of a curve in few cells, to stand beside its points; empty for a missing one."""
    return tuple("" if value is None else round_text(point_text(curve, value, records), 3) for value in curve.values)


def round_text(text: str, digits: int) -> str:
    """Return the text of a value with at most ``digits`` significant digits, whole ones all kept: ``0.59``, ``844``.

    A percentage stays, because 99.98 % is not 100 %, and so does what is no number.
    """
    if "." not in text or not re.fullmatch(r"-?[\d,]*\.\d+", text):
        return text
    value = float(text.replace(",", ""))
    if value == 0 or abs(value) < 10 ** -(digits + 3):
        return text
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = f"{value:,.{decimals}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def brief_pair(first: str, second: str) -> tuple[str, str]:
    """Return the texts of two values with as few digits as tell them apart, two or more."""
    for digits in (2, 3):
        texts = round_text(first, digits), round_text(second, digits)
        if texts[0] != texts[1]:
            return texts
    return first, second


def study_limit_text(curve: StudyCurve, verdict: Verdict, records: int | None) -> str:
    """Return a limit on the values of a curve, in people with their share: ``at most 41 people (1 %)``."""
    key = f"{curve.key}.{curve.measure}"
    text = quantity_of(key, verdict.limit, records, curve.params)
    found = re.fullmatch(r"[\d.,]+ of ([\d,]+) (\S+) (\(.*\))", text)
    if found is None:
        return f"{BOUNDS[verdict.bound]} {point_text(curve, verdict.limit, records)}"
    whole, noun, share = found.groups()
    people = verdict.limit * (int(whole.replace(",", "")) if method_and_output(key)[1].unit == "share" else 1)
    number = people_limit_number(people, verdict.bound)
    return f"{BOUNDS[verdict.bound]} {number} {singular_noun(noun) if number == '1' else noun} {share}"


def named_interval(one: Series) -> Series:
    """Return a curve with its dotted ends named in the legend, if it has an interval and its name leaves room."""
    name = f"{one.name}, {INTERVAL_TITLE}"
    return one if one.lower is None or len(name) > LONGEST_NAME else replace(one, name=name)


def curve_title(curve: StudyCurve) -> str:
    """Return what a curve is of, in words: the confidential data, the release, or that of another run."""
    if curve.dataset == CONFIDENTIAL:
        return CONFIDENTIAL_TITLE
    return curve.dataset if curve.dataset.startswith("release of run") else "release"


def question_text(key: str, params: Mapping[str, object], titles: Mapping[str, str]) -> str:
    """Return the question that a study declares, with the titles of the variables of its use; else its title."""
    method = method_by_key(key)
    axis = method.study.axis if method else None
    if method is None or axis is None or not axis.question:
        return f"{method.title if method else key}"
    values = {name: titles.get(str(params.get(name)), str(params.get(name, ""))) for name in axis.uses}
    return axis.question.format(**values)


def curve_rows(shown: Sequence[StudyCurve]) -> ExportTable:
    """Return a row for every dataset and level, with all digits."""
    rows = [
        (curve.key, curve.measure, curve.target, json.dumps(dict(curve.params), sort_keys=True), curve.dataset, *point)
        for curve in shown
        for point in zip(
            curve.levels, curve.values, curve.lower, curve.upper, *variance_share_columns(curve), strict=True
        )
    ]
    heads = ("method", "measure", "target", "params", "dataset", "level", "value", "lower", "upper")
    return (*heads, *variance_share_names(shown[0].key)), rows


def variance_share_columns(curve: StudyCurve) -> list[tuple[float | None, ...]]:
    """Return a column for each share of the variance behind the intervals: a share, or None, for each level."""
    known = curve.variance_shares or (None,) * len(curve.levels)
    return [
        tuple(None if shares is None else shares[i] for shares in known)
        for i in range(len(variance_share_names(curve.key)))
    ]


def variance_share_names(key: str) -> list[str]:
    """Return the names of the shares of variance that a study reports for its intervals."""
    method = method_by_key(key)
    return [output.name for output in method.outputs if output.study.variance_share_of] if method else []


def variance_shares_text(key: str, shares: Sequence[float]) -> str:
    """Return what makes an interval, in words: ``datasets 30 %, noise 61 %, both together 9 %``."""
    method = method_by_key(key)
    titles = [output.title for output in method.outputs if output.study.variance_share_of] if method else []
    percentages = percentages_text(shares).split("/")
    return ", ".join(f"{title} {share} %" for title, share in zip(titles, percentages, strict=False))


def curve_reading(curve: StudyCurve, x: float, records: int | None = None) -> str:
    """Return a curve's value at the nearest level: ``release 0.0181 (0.0093 .. 0.0269)``."""
    at = min(range(len(curve.levels)), key=lambda i: abs(curve.levels[i] - x))
    band = points_text(curve, curve.lower[at], curve.upper[at], records)
    return f"{curve_title(curve)} {point_text(curve, curve.values[at], records)}" + (f" ({band})" if band else "")


def point_text(curve: StudyCurve, value: float | None, records: int | None = None) -> str:
    """Return a value of a curve as the table of numbers has it: ``80`` people, ``2.7 %``, ``0.13``; a dash for none."""
    text = value_text(f"{curve.key}.{curve.measure}", value, records, curve.params)
    return _NOUN.sub("", brief_value_text(text.partition(" of the ")[0]))


def points_text(curve: StudyCurve, lower: float | None, upper: float | None, records: int | None = None) -> str:
    """Return an interval of a curve in the unit of its values: ``73 .. 105``, ``0.36 .. 0.52 %``; empty without one."""
    if lower is None or upper is None or lower == upper:
        return ""
    return f"{point_text(curve, lower, records).removesuffix(' %')} .. {point_text(curve, upper, records)}"


def shown_scale(curve: StudyCurve, records: int | None) -> float:
    """Return by what the values of a curve are multiplied to be shown: the people of a share, 100 for per cent, else 1."""
    text = value_text(f"{curve.key}.{curve.measure}", 0.5, records, curve.params)
    counted = text.partition(" of ")[2].partition(" ")[0].replace(",", "")
    _, output = method_and_output(f"{curve.key}.{curve.measure}")
    if counted.isdigit():
        return float(counted) if output.unit == "share" else 1.0
    return 100.0 if "%" in text else 1.0


def scale_series(one: Series, scale: float) -> Series:
    """Return a curve with its values multiplied."""
    if scale == 1:
        return one
    lower, upper = (None if ends is None else scale * np.asarray(ends) for ends in (one.lower, one.upper))
    return replace(one, y=scale * np.asarray(one.y), lower=lower, upper=upper)


def level_rows(measure: Sequence[StudyCurve], records: int | None = None) -> list[dict[str, object]]:
    """Return a row for each level: the confidential value, the released one with its interval, and their ratio."""
    first = measure[0]
    points = {
        (curve.dataset == CONFIDENTIAL, level): (
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
                "confidential": point_text(first, own, records),
                "released": point_text(first, released, records),
                "interval": points_text(first, lower, upper, records),
                "shares": variance_shares_text(first.key, shares[0]) if shares and shares[0] else "",
                "ratio": number(ratio),
            }
        )
    for row, text in zip(rows, aligned_intervals([str(row["interval"]) for row in rows]), strict=True):
        row["interval"] = text
    return rows


def aligned_intervals(texts: Sequence[str]) -> list[str]:
    """Return the texts of intervals one below the other: with as many decimals, and both ends to the right.

    The smallest end keeps two significant digits. Percentages keep their own digits.
    """
    ends = [text.split(" .. ") if text else ["", ""] for text in texts]
    flat = [end for pair in ends for end in pair if end]
    if flat and all(re.fullmatch(r"-?[\d,]+(\.\d+)?", end) for end in flat):
        values = [float(end.replace(",", "")) for end in flat]
        least = min((abs(value) for value in values if value), default=1.0)
        has_decimals = any("." in end for end in flat)
        decimals = min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(least)))) if has_decimals else 0
        if max(values) >= WIDE_RANGE * least:
            # The decimals of the smallest end would be digits of the largest that say nothing.
            ends = [[round_text(end, 3) for end in pair] for pair in ends]
        elif least >= 10**-MOST_DECIMALS:
            ends = [[f"{float(end.replace(',', '')):,.{decimals}f}" if end else "" for end in pair] for pair in ends]
    sizes = [max((cell_len(pair[at]) for pair in ends), default=0) for at in (0, 1)]
    return [f"{low:>{sizes[0]}} .. {high:>{sizes[1]}}" if low else "" for low, high in ends]
