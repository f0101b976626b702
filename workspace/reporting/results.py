"""Measurements as tables: results beside the confidential data, sweeps, answers of studies, verdicts, published values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from sfumato.engine.methods.labels import labels_of, measure_name, sentence_of
from sfumato.engine.methods.outputs import Axis, Output
from sfumato.engine.methods.registry import Method, method_by_key, output_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import FigureComparison as Quoted
from sfumato.engine.recipe.published import PublishedFigure, SourceTable, published_value_for, ratio_to_published
from sfumato.engine.recipe.thresholds import Verdict

from ..plots.planes import BASELINE, DrawnPlane, curve_name, draw_planes, has_joint_curves
from .knowledge_lattice import lattice_parts
from .numbers import NumberLine, fold_number_lines, line_cells, number_lines, shared_limit, whole_name
from .tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable, outcome_cell, table_from_titles
from .words import (
    NO_SETTINGS,
    SettingsByMethod,
    brief_observed_text,
    full_row_name,
    interval_text,
    judged_interval_text,
    limit_text,
    method_use_text,
    number,
    observed_text,
    params_text,
    percentages_text,
    row_interval_text,
    row_settings,
    settings_text,
    short_value_text,
    target_text,
    unit_text,
)

STUDY_USE_PARAMETERS = ("variable", "model")
"""Parameters that distinguish uses of a study (``Axis.uses``)."""
NO_PUBLISHED_FIGURES: Mapping[int, float] = MappingProxyType({})


def joint_curve_tables(method: Method, rows: Sequence[Row]) -> list[DisplayTable]:
    """Return the tables of a study whose curves are drawn together: limits first, then measures by heading."""
    asked = study_limit_table(method, rows)
    # a plane of one measure against another has no further numbers
    planes = [one for one in draw_planes(method, rows) if not one.plane.across]
    headings = dict.fromkeys(one.plane.heading for one in planes)
    tables = [level_table(method, h, [one for one in planes if one.plane.heading == h]) for h in headings]
    return [*([asked] if asked else []), *tables]


def study_answer_text(method: Method, row: Row) -> str:
    """Return the answer of a study as a sentence: ``From epsilon 5 on it is within the limit``."""
    output = method.output(row.measure)
    return output.study.no_answer_text if row.value is None else output.study.sentence.format(value=row.value)


def study_limit_table(method: Method, rows: Iterable[Row]) -> DisplayTable | None:
    """Return for each curve and limit the point of the axis that keeps it; None where no limit was asked about."""
    axis = method.study.axis
    assert axis is not None
    told = [row for row in rows if row.level is None and "of" in row.params]
    if not told:
        return None
    columns = (
        DisplayColumn("curve", axis.curve),
        DisplayColumn("of", "measure"),
        DisplayColumn("limit", "limit", align="right"),
        DisplayColumn("answer", f"which {axis.label}"),
        DisplayColumn("reason", "but", drop_order=1),
    )
    lines: list[DisplayRow] = []
    for row in told:
        output = method.output(str(row.params["of"]))
        bound = "at least" if output.goal == "high" else "at most"
        outcome = "not computed" if row.value is None else "pass"
        limit = f"{bound} {number(row.params[axis.limit])}"
        lines.append(
            [
                curve_name(row, axis),
                output.title,
                limit,
                DisplayCell(study_answer_text(method, row), outcome),
                row.reason,
            ]
        )
    return DisplayTable(columns, lines, f"Which {axis.label} keeps a measure within its limit")


def level_table(method: Method, heading: str, planes: Sequence[DrawnPlane]) -> DisplayTable:
    """Return a line for each measure and curve, with a column for each point of the axis."""
    axis = method.study.axis
    assert axis is not None
    levels = sorted({row.level for one in planes for row in one.rows if row.level is not None})
    lines = [line for one in planes for line in _level_lines(method, one, levels)]
    columns = [
        DisplayColumn("measure", "measure"),
        DisplayColumn("curve", axis.curve),
        *(DisplayColumn(f"{level:g}", number(level), align="right") for level in levels),
    ]
    return DisplayTable(
        columns, lines, heading or axis.heading, f"{heading or axis.heading}: {axis.label} is {axis.meaning}"
    )


def _level_lines(method: Method, plane: DrawnPlane, levels: Sequence[float]) -> list[DisplayRow]:
    """Return the lines of one measure: its curves, and its baseline."""
    axis = method.study.axis
    assert axis is not None
    title = plane.panel.title
    lines: list[DisplayRow] = []
    for curve in dict.fromkeys(curve_name(row, axis) for row in plane.rows):
        at = {row.level: row for row in plane.rows if curve_name(row, axis) == curve}
        lines.append([title, curve, *(_value_with_interval_cell(at.get(level)) for level in levels)])
    for series in plane.panel.series:
        if series.name == BASELINE and series.y.any():
            known = dict(zip(series.x.tolist(), series.y.tolist(), strict=True))
            lines.append([title, BASELINE, *(number(known.get(level)) for level in levels)])
    return lines


def _value_with_interval_cell(row: Row | None) -> DisplayCell | str:
    """Return a value as a cell, on a page with its interval; empty without a row."""
    if row is None:
        return ""
    band = interval_text(row.lower, row.upper)
    return DisplayCell(
        number(row.value), full_text=f"{number(row.value)} ({band})" if band and row.value is not None else ""
    )


ROW_COLUMNS = (
    DisplayColumn("measure", "measure", 20, grow_order=1),
    DisplayColumn("of", "variable", 15),
    DisplayColumn("dataset", "dataset", 12),
    DisplayColumn("level", "level", 5, "right"),
    DisplayColumn("value", "value", 10, "right"),
    DisplayColumn("interval", "interval", 20),
    DisplayColumn("baseline", "baseline", 9, "right"),
    DisplayColumn("status", "status", 12),
)
"""How single rows are listed."""


def row_cells(row: Row, apart: SettingsByMethod = NO_SETTINGS) -> dict[str, str]:
    """Return the cells of a row by column."""
    uses = apart.get(row.method_key, {})
    # parameters that name the use stand in the title of its sweep
    hidden = () if row.level is None else STUDY_USE_PARAMETERS
    params = {name: value for name, value in row.params.items() if name in uses or name not in hidden}
    return {
        "measure": measure_name(row.key),
        "of": target_text(row.target, params, uses),
        "dataset": row.dataset if row.draw is None else f"{row.dataset[:9]} {row.draw}",
        "level": _level_text(row.level),
        "value": number(row.value),
        "interval": interval_text(row.lower, row.upper) if row.value is not None else row.status,
        "baseline": "" if row.baseline is None else number(row.baseline),
        "status": row.status,
    }


def dataset_rows_table(
    rows: Iterable[Row], apart: SettingsByMethod = NO_SETTINGS, *, keys: bool = False
) -> DisplayTable:
    """Return the rows of single datasets, with the reason where a value was not computed."""
    shown = [column for column in ROW_COLUMNS if column.name not in ("interval", "baseline", "status")]
    cells = [
        (*(values[column.name] for column in shown), row.reason, row.key if keys else "")
        for row in rows
        if row.draw is not None and (values := row_cells(row, apart))
    ]
    return DisplayTable([*shown, DisplayColumn("reason", "", drop_order=1), DisplayColumn("key", "key")], cells)


@dataclass(frozen=True)
class TableContext:
    """What a table of numbers needs of its run beside the rows.

    apart: settings in which uses of a method differ
    published: figures that the recipe quotes
    verdicts: verdicts of the run
    records: number of confidential records
    keys: whether lines end with the key of the measure
    folded: whether the settings of a measure are folded into one line
    """

    apart: SettingsByMethod = field(default_factory=lambda: NO_SETTINGS)
    published: Sequence[PublishedFigure] = ()
    verdicts: Sequence[Verdict] = ()
    records: int | None = None
    keys: bool = False
    folded: bool = False


NO_CONTEXT = TableContext()
QUOTED = ("published", "ratio")


def result_table(rows: Sequence[Row], context: TableContext = NO_CONTEXT, title: str = "") -> DisplayTable:
    """Return a line for each number: the confidential data's value, that of the release, its interval and its limit."""
    found = number_lines(rows, context.verdicts)
    lines = [_result_line(one, context) for one in (fold_number_lines(found) if context.folded else found)]
    columns = [
        DisplayColumn("measure", "measure and variable" if context.folded else "measure"),
        DisplayColumn("of", "variable"),
        DisplayColumn("confidential", "confidential", align="right"),
        *(DisplayColumn(f"confidential {name}", name, align="right") for name in QUOTED),
        DisplayColumn("release", "release", align="right"),
        *(DisplayColumn(f"release {name}", name, align="right") for name in QUOTED),
        DisplayColumn("interval", "interval", align="right", drop_order=3),
        DisplayColumn("good", "goal"),
        DisplayColumn("limit", "limit"),
        DisplayColumn("baseline", "baseline", align="right", drop_order=2),
        DisplayColumn("others", "more"),
        DisplayColumn("with", "with", drop_order=1),
        DisplayColumn("key", "key"),
    ]
    return DisplayTable(columns, lines, title)


def _result_line(line: NumberLine, context: TableContext) -> list[DisplayCell | str]:
    """Return the cells of a number of the confidential data and of the release, either of which may be missing."""
    row, cells = line.row, line_cells(line, context.records, context.apart)
    uses = context.apart.get(row.method_key, {})
    hidden = {*row_settings(row.method_key, row.params), *uses}
    short = params_text({name: value for name, value in row.params.items() if name not in hidden})
    whole = "; ".join(part for part in (settings_text(row.params, uses), row.reason) if part)
    outcome = line.worst_outcome
    return [
        whole_name(line, context.apart) if context.folded else measure_name(row.key),
        "" if context.folded else cells["of"],
        cells["confidential"],
        *_published_and_ratio(line.confidential, context.published),
        cells["release"],
        *_published_and_ratio(line.release, context.published),
        cells["interval"],
        cells["good"],
        DisplayCell(shared_limit(line, context.records), outcome, full_text=cells["limit"]) if outcome else "",
        cells["baseline"],
        cells["others"],
        "" if context.folded else DisplayCell("; ".join(part for part in (short, row.reason) if part), full_text=whole),
        row.key if context.keys else "",
    ]


def _level_text(level: float | None) -> str:
    """Return the level of a sweep as text; empty for None."""
    return "" if level is None else number(level)


def _published_and_ratio(row: Row | None, published: Sequence[PublishedFigure]) -> tuple[str, str]:
    """Return the published figure for a row, and the ratio of the row's value to it, as texts; empty without one."""
    figure = None if row is None else published_value_for(row, published)
    return (
        ("", "") if row is None or figure is None else (number(figure), number(ratio_to_published(row.value, figure)))
    )


def row_output(row: Row) -> Output | None:
    """Return the output declaration of a row's measure; None where this version does not have it."""
    return output_by_key(row.key)


def row_axis(row: Row) -> Axis | None:
    """Return the axis of a row's study; None for other rows."""
    method = method_by_key(row.method_key)
    return None if method is None else method.study.axis


def row_title(row: Row) -> str:
    """Return the short name of a row's measure, for the heading of a column."""
    output = row_output(row)
    return (output and output.short) or measure_name(row.key)


def is_variance_share(row: Row) -> bool:
    """Return whether a row is a share of the variance behind the interval of another number."""
    return "of" in row.params


def interval_variance_shares(rows: Iterable[Row]) -> dict[tuple[str, float], tuple[float, ...]]:
    """Return the shares of the variance behind intervals of one study, by measure and level, where all are known."""
    found: dict[tuple[str, float], list[float | None]] = {}
    for row in rows:
        if is_variance_share(row) and row.level is not None:
            found.setdefault((str(row.params["of"]), row.level), []).append(row.value)
    known = {place: tuple(share for share in shares if share is not None) for place, shares in found.items()}
    # shares of a whole are misleading where one is missing
    return {place: shares for place, shares in known.items() if len(shares) == len(found[place])}


def is_of_answering_study(row: Row) -> bool:
    """Return whether a row belongs to a study that summarises its points in answers."""
    method = method_by_key(row.method_key) if row.family == "studies" else None
    return method is not None and bool(method.answer_outputs)


def group_sweeps(rows: Iterable[Row]) -> list[list[Row]]:
    """Group rows into sweeps, which have one method, target and settings."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # "of" names the number whose variance a row is a share of, not a setting
        settings = {key: value for key, value in row.params.items() if key != "of"}
        found.setdefault((row.method, row.target, json.dumps(settings, sort_keys=True)), []).append(row)
    return list(found.values())


def sweep_table(rows: Sequence[Row], apart: SettingsByMethod = NO_SETTINGS, unit_noun: str = "") -> DisplayTable:
    """Return a line for each level of a sweep: every measure of the confidential data and of the release.

    On a page the intervals follow, and the shares of the variance behind those of the release. ``unit_noun`` says what
    units are, in the plural.
    """
    shares, first = interval_variance_shares(rows), rows[0]
    measures = {row.measure: row_title(row) for row in rows if not is_variance_share(row)}
    cells = {(row.level, row.measure, row.dataset == "confidential"): row for row in rows}
    lines = []
    for level in sorted({row.level for row in rows if row.level is not None}):
        line = [number(level)]
        for measure in measures:
            for own in (True, False):
                row = cells.get((level, measure, own))
                line += [short_value_text(row), row_interval_text(row)] if row else ["-", ""]
            line.append(percentages_text(shares[measure, level]) if (measure, level) in shares else "")
        lines.append(line)
    axis = row_axis(first)
    columns = [DisplayColumn("level", axis.label if axis else "level", align="right")]
    for place, (measure, title) in enumerate(measures.items()):
        columns += _sweep_columns(measure, title, len(measures) - place if place else 0)
    settings = settings_text({name: value for name, value in first.params.items() if name not in ("of", "by")})
    settings = "; ".join(filter(None, (settings, unit_text(first.params, unit_noun))))
    title = f"{_sweep_title(first, apart, unit_noun)}: the confidential data, and beside it the release (rel.)"
    return DisplayTable(columns, lines, title, full_title=settings)


def _sweep_columns(measure: str, title: str, spare: int) -> list[DisplayColumn]:
    """Return the columns of one measure of a sweep."""
    return [
        DisplayColumn(f"{measure} own", title, align="right", drop_order=spare, full_title=f"{measure}, confidential"),
        DisplayColumn(f"{measure} own interval", "interval", align="right", page_only=True),
        DisplayColumn(f"{measure} released", "rel.", align="right", drop_order=spare, full_title="release"),
        DisplayColumn(f"{measure} interval", "interval", align="right", page_only=True),
        DisplayColumn(f"{measure} shares", "datasets/noise/both %", align="right", page_only=True),
    ]


def _sweep_title(row: Row, apart: SettingsByMethod, unit_noun: str) -> str:
    """Return the variable and model of a sweep, what it counts where these are units, and the settings that distinguish
    it within its run.
    """
    axis = row_axis(row)
    naming = axis.uses if axis else ()
    uses = apart.get(row.method_key, {})
    told = {name: default for name, default in uses.items() if name not in naming}
    words = (
        *(row.params.get(name, "") for name in naming),
        row.target,
        method_use_text(row.params, told),
        unit_text(row.params, unit_noun),
    )
    return ", ".join(str(word) for word in words if word) or row.method


def variance_shares_table(rows: Sequence[Row]) -> DisplayTable | None:
    """Return the shares of datasets, noise and both in the variance behind each interval of a sweep.

    None where they are unknown.
    """
    found = interval_variance_shares(rows)
    measures = list(dict.fromkeys(measure for measure, _ in found))
    lines = [
        [number(level), *(percentages_text(found[one, level]) if (one, level) in found else "-" for one in measures)]
        for level in sorted({level for _, level in found})
    ]
    titles = {row.measure: row_title(row) for row in rows}
    heads = ["S", *(titles.get(measure, measure) for measure in measures)]
    title = "Variance of the release's intervals: datasets / noise / both, in %"
    return table_from_titles(heads, lines, range(len(heads)), range(len(heads) - 1, 1, -1), title) if found else None


def method_title(key: str) -> str:
    """Return the title of a method; its key where this version does not have the method."""
    method = method_by_key(key)
    return key if method is None else method.title


class AnswerLike(Protocol):
    """Protocol of an answer of a study: a row without a level, or a ``StudyAnswer`` of a screen."""

    @property
    def measure(self) -> str: ...

    @property
    def value(self) -> float | None:
        """Return the value; None where it is missing."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the parameters that distinguish the answer from others of its measure."""
        ...


def study_parts(
    method: Method, rows: Sequence[Row], published: Sequence[PublishedFigure] = ()
) -> list[DisplayTable | str]:
    """Return the sentences and tables that summarise a study."""
    if has_joint_curves(method):
        return [*joint_curve_tables(method, rows)]
    if method.study.lattice is not None:
        return lattice_parts(method, rows)
    found = [row for row in rows if row.level is None]
    # by identity, since a row has parameters that cannot be hashed
    beside = {id(row): figure for row in found if (figure := published_value_for(row, published)) is not None}
    curve, by = (
        method.study.axis.curve if method.study.axis else "",
        method.study.split.by if method.study.split else "",
    )
    single = [row for row in found if not (curve and curve in row.params) and not (by and by in row.params)]
    parts = [
        "\n".join(_answer_sentence(row, published) for row in single),
        curve_answers_table(method, found, beside),
        split_answers_table(method, found, beside),
        None if curve else study_points_table(rows),
    ]
    return [part for part in parts if part]


def curve_answers_table(
    method: Method, found: Sequence[AnswerLike], beside: Mapping[int, float] = NO_PUBLISHED_FIGURES
) -> DisplayTable | None:
    """Return a line of answers for each curve of a study; None without answers by curve.

    ``beside`` has published figures by the ``id`` of the answer.
    """
    curve = method.study.axis.curve if method.study.axis else ""
    spread = {output.name: output.study.spread for output in method.answer_outputs}
    placed = {
        (str(one.params[curve]), one.measure, str(one.params.get(spread.get(one.measure, ""), ""))): one
        for one in found
        if curve and curve in one.params
    }
    columns = [
        ((name, kind), " ".join(part for part in (method.output(name).title, kind if kind != "all" else "") if part))
        for name, kind in dict.fromkeys((name, kind) for _, name, kind in placed)
    ]
    lines = dict.fromkeys(line for line, _, _ in placed)
    told = [(line, [placed.get((line, *place)) for place, _ in columns]) for line in lines]
    if not placed:
        return None
    made = _answers_table([curve, *(title for _, title in columns)], told, beside)
    parts = [(name, kind == "all") for (name, kind), _ in columns for _ in ("told", "published")]
    order = list(dict.fromkeys(reversed(parts)))  # the best leaves with the worst: it would flatter alone
    spare = [order.index(part) + 1 if part != parts[0] else 0 for part in parts]
    return replace(made, columns=[made.columns[0], *map(_with_drop_order, made.columns[1:], spare)])


def _with_drop_order(column: DisplayColumn, spare: int) -> DisplayColumn:
    """Return a column with another drop order."""
    return replace(column, drop_order=spare)


def split_answers_table(
    method: Method, found: Sequence[AnswerLike], beside: Mapping[int, float] = NO_PUBLISHED_FIGURES
) -> DisplayTable | None:
    """Return the answers of a study by the values of the parameter that splits it, with the number of records of each.

    None where the study has no such answers.
    """
    split = method.study.split
    if split is None:
        return None
    placed = {(one.measure, one.params[split.by]): one for one in found if split.by in one.params}
    outputs = [output for output in method.answer_outputs if any(name == output.name for name, _ in placed)]
    told = [(output.title, [placed.get((output.name, value)) for value, _ in split.columns]) for output in outputs]
    if not told:
        return None
    made = _answers_table([split.heading, *(title for _, title in split.columns)], told, beside, split.title)
    counts = [f"{one.params.get(split.count, 0):,}" if one else "0" for one in told[0][1]] if split.count else []
    first = [split.count, *(cell for each in counts for cell in (each, ""))]
    return replace(made, rows=[first, *made.rows]) if counts else made


def _answers_table(
    titles: Sequence[str],
    told: Sequence[tuple[str, Sequence[AnswerLike | None]]],
    beside: Mapping[int, float],
    title: str = "",
) -> DisplayTable:
    """Return named lines of answers as a table, each answer with its published figure."""
    heads = [titles[0], *(head for each in titles[1:] for head in (each, "published"))]
    lines = []
    for name, answers in told:
        pairs = [
            (number(one.value) if one else "", number(beside[id(one)]) if id(one) in beside else "") for one in answers
        ]
        lines.append([name, *(cell for pair in pairs for cell in pair)])
    return table_from_titles(heads, lines, range(1, len(heads)), range(len(heads) - 1, 2, -1), title)


def _answer_sentence(row: Row, published: Sequence[PublishedFigure]) -> str:
    """Return an answer of a study as a sentence, with its interval and its published figure."""
    if row.value is None:
        return sentence_of(row)
    figure, share = _published_and_ratio(row, published)
    said = [interval_text(row.lower, row.upper), figure and f"published {figure}, ratio {share}"]
    beside = ", ".join(filter(None, said))
    return sentence_of(row).removesuffix(".") + (f"; {beside}." if beside else ".")


def study_points_table(rows: Sequence[Row]) -> DisplayTable | None:
    """Return a line for each point of a study: level, parameters, and measures by dataset. None without points."""
    rows = [row for row in rows if row.level is not None]
    if not rows:
        return None
    differing = {name: {json.dumps(row.params.get(name)) for row in rows} for row in rows for name in row.params}
    names = [name for name, values in differing.items() if len(values) > 1]
    computed = {row.measure for row in rows if row.value is not None}
    # a measure that was computed in some rows needs no column for those without a value
    shown = [row for row in rows if row.value is not None or row.measure not in computed]
    columns = list(dict.fromkeys((row.measure, row.dataset) for row in shown))
    several = len({dataset for _, dataset in columns}) > 1
    points: dict[float, dict[tuple[str, str], Row]] = {}
    for row in rows:
        points.setdefault(row.level or 0.0, {})[row.measure, row.dataset] = row
    lines = [
        [
            number(level),
            *(str(next(iter(found.values())).params.get(name, "")) for name in names),
            *(number(found[column].value) if column in found else "" for column in columns),
        ]
        for level, found in sorted(points.items())
    ]
    heads = {row.measure: row_title(row) for row in rows}
    titles = [
        "level",
        *names,
        *(f"{heads[measure]} ({dataset})" if several else heads[measure] for measure, dataset in columns),
    ]
    return table_from_titles(titles, lines, range(len(titles)), range(1 + len(names), len(titles) - 1))


def verdict_table(
    verdicts: Sequence[Verdict],
    apart: SettingsByMethod = NO_SETTINGS,
    records: int | None = None,
    *,
    keys: bool = False,
) -> DisplayTable:
    """Return a line for each verdict: outcome, name of the number, observed value, and limit.

    ``records`` is the number of confidential records. On a page the names have all settings, those in ``apart`` with
    their defaults. With ``keys`` the line ends with the measure's key.
    """
    columns = (
        DisplayColumn("verdict", "verdict"),
        DisplayColumn("name", "number"),
        DisplayColumn("value", "value", align="right"),
        DisplayColumn("interval", "interval", drop_order=2),
        DisplayColumn("limit", "limit"),
        DisplayColumn("reason", "reason", drop_order=1),
        DisplayColumn("key", "key"),
    )
    lines: list[DisplayRow] = [
        [
            outcome_cell(verdict.outcome),
            DisplayCell(name, full_text=full_row_name(verdict, apart)),
            _observed_cell(verdict, records),
            judged_interval_text(verdict),
            limit_text(verdict.bound, verdict.limit, verdict.value),
            verdict.reason,
            verdict.value if keys else "",
        ]
        for verdict, name in zip(verdicts, labels_of(verdicts), strict=True)
    ]
    return DisplayTable(columns, lines)


def _observed_cell(verdict: Verdict, records: int | None) -> DisplayCell | str:
    """Return the number that a verdict judges; a ratio names what it is a share of on a page, and in the limit beside it."""
    observed = observed_text(verdict, records)
    if verdict.bound != "max_ratio":
        return observed
    return DisplayCell(brief_observed_text(verdict), full_text=observed)


def published_source_table(quoted: SourceTable) -> DisplayTable:
    """Return the figures of one published source, with our value and the ratio for each run and the confidential data."""
    titles = [
        "measure",
        "variable",
        "level",
        *(title for name in quoted.columns for title in (name, "published", "ratio")),
        "with",
    ]
    lines: list[DisplayRow] = []
    for line in quoted.lines:
        note = "; ".join(part for part in (settings_text(line.params), line.note) if part)
        lines.append(
            [
                measure_name(line.value),
                line.target,
                _level_text(line.level),
                *(text for cell in line.cells for text in _published_cells(cell)),
                DisplayCell(line.note or params_text(line.params), full_text=note),
            ]
        )
    return table_from_titles(titles, lines, range(2, len(titles) - 1), title=quoted.source)


def _published_cells(cell: Quoted) -> tuple[str, str, str]:
    """Return our value, the published figure and their ratio, as texts."""
    ours = "" if cell.ours is None else number(cell.ours)
    return (ours, "", "") if cell.published is None else (ours or "-", number(cell.published), number(cell.ratio))
