"""What was measured, as tables: numbers beside the confidential data, sweeps, verdicts, published figures, rows of datasets.

Studies whose curves are drawn together, as tables: every measure of each curve along the axis, and what the limits ask for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

from sfumato.engine.methods.labels import labels_of, measure_name, sentence_of
from sfumato.engine.methods.outputs import Axis, Output
from sfumato.engine.methods.registry import Method, method_by_key, output_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import FigureComparison as Quoted
from sfumato.engine.recipe.published import PublishedFigure, SourceTable, published_value_for, ratio_to_published
from sfumato.engine.recipe.thresholds import Verdict

from ..plots.planes import BASELINE, DrawnPlane, curve_of, drawn_planes, together
from .knowledge_lattice import lattice_parts
from .tables import Cell, Column, Line, Table, outcome_cell, table
from .words import (
    NOTHING,
    Apart,
    interval,
    judged_interval,
    limit_text,
    measured,
    number,
    observed_text,
    params_text,
    percentages,
    row_settings,
    settings_text,
    use_text,
    whole_name,
)

NAMING = ("variable", "model")
"""Parameters that name a use of a study (``Axis.uses``)."""
NONE_BESIDE: Mapping[int, float] = MappingProxyType({})


def together_tables(method: Method, rows: Sequence[Row]) -> list[Table]:
    """What the limits ask for, then a table for every heading under which measures are drawn along the axis."""
    asked = limit_table(method, rows)
    planes = [one for one in drawn_planes(method, rows) if not one.plane.across]
    headings = dict.fromkeys(one.plane.heading for one in planes)
    tables = [level_table(method, h, [one for one in planes if one.plane.heading == h]) for h in headings]
    return [*([asked] if asked else []), *tables]


def answered(method: Method, row: Row) -> str:
    """What an answer says, in its own words: ``From epsilon 5 on it is within the limit``."""
    output = method.output(row.measure)
    return output.study.no_answer_text if row.value is None else output.study.sentence.format(value=row.value)


def limit_table(method: Method, rows: Iterable[Row]) -> Table | None:
    """A line for every curve and limit: which point of the axis keeps to it, and what speaks against that. None without limits."""
    axis = method.study.axis
    assert axis is not None
    told = [row for row in rows if row.level is None and "of" in row.params]
    if not told:
        return None
    columns = (
        Column("curve", axis.curve),
        Column("of", "measure"),
        Column("limit", "limit", align="right"),
        Column("answer", f"which {axis.label}"),
        Column("reason", "but", spare=1),
    )
    lines: list[Line] = []
    for row in told:
        output = method.output(str(row.params["of"]))
        bound = "at least" if output.goal == "high" else "at most"
        outcome = "not computed" if row.value is None else "pass"
        limit = f"{bound} {number(row.params[axis.limit])}"
        lines.append([curve_of(row, axis), output.title, limit, Cell(answered(method, row), outcome), row.reason])
    return Table(columns, lines, f"Which {axis.label} keeps a measure within its limit")


def level_table(method: Method, heading: str, planes: Sequence[DrawnPlane]) -> Table:
    """A line for every measure and curve, a column a point of the axis; on a page the intervals too."""
    axis = method.study.axis
    assert axis is not None
    levels = sorted({row.level for one in planes for row in one.rows if row.level is not None})
    lines = [line for one in planes for line in _lines(method, one, levels)]
    columns = [
        Column("measure", "measure"),
        Column("curve", axis.curve),
        *(Column(f"{level:g}", number(level), align="right") for level in levels),
    ]
    return Table(columns, lines, heading or axis.heading, f"{heading or axis.heading}: {axis.label} is {axis.meaning}")


def _lines(method: Method, plane: DrawnPlane, levels: Sequence[float]) -> list[Line]:
    axis = method.study.axis
    assert axis is not None
    title = plane.panel.title
    lines: list[Line] = []
    for curve in dict.fromkeys(curve_of(row, axis) for row in plane.rows):
        at = {row.level: row for row in plane.rows if curve_of(row, axis) == curve}
        lines.append([title, curve, *(_cell(at.get(level)) for level in levels)])
    for series in plane.panel.series:
        if series.name == BASELINE and series.y.any():
            known = dict(zip(series.x.tolist(), series.y.tolist(), strict=True))
            lines.append([title, BASELINE, *(number(known.get(level)) for level in levels)])
    return lines


def _cell(row: Row | None) -> Cell | str:
    if row is None:
        return ""
    band = interval(row.lower, row.upper)
    return Cell(number(row.value), full=f"{number(row.value)} ({band})" if band and row.value is not None else "")


ROW_COLUMNS = (
    Column("measure", "measure", 20, grows=1),
    Column("of", "variable", 15),
    Column("dataset", "dataset", 12),
    Column("level", "level", 5, "right"),
    Column("value", "value", 10, "right"),
    Column("interval", "interval", 20),
    Column("baseline", "baseline", 9, "right"),
    Column("status", "status", 12),
)
"""How single rows are listed."""


def row_cells(row: Row, apart: Apart = NOTHING) -> dict[str, str]:
    """A row's cells by column; what a study says of all its rows is left out."""
    uses = apart.get(row.method_key, {})
    hidden = () if row.level is None else NAMING
    params = {name: value for name, value in row.params.items() if name in uses or name not in hidden}
    return {
        "measure": measure_name(row.key),
        "of": measured(row.target, params, uses),
        "dataset": row.dataset if row.draw is None else f"{row.dataset[:9]} {row.draw}",
        "level": _level(row.level),
        "value": number(row.value),
        "interval": interval(row.lower, row.upper) if row.value is not None else row.status,
        "baseline": "" if row.baseline is None else number(row.baseline),
        "status": row.status,
    }


def draw_table(rows: Iterable[Row], apart: Apart = NOTHING, *, keys: bool = False) -> Table:
    """Every dataset's own rows, and why one was not computed."""
    shown = [column for column in ROW_COLUMNS if column.name not in ("interval", "baseline", "status")]
    cells = [
        (*(values[column.name] for column in shown), row.reason, row.key if keys else "")
        for row in rows
        if row.draw is not None and (values := row_cells(row, apart))
    ]
    return Table([*shown, Column("reason", "", spare=1), Column("key", "key")], cells)


def result_table(
    rows: Sequence[Row],
    published: Sequence[PublishedFigure] = (),
    apart: Apart = NOTHING,
    title: str = "",
    *,
    keys: bool = False,
) -> Table:
    """One line a number by its human name: the confidential data's value beside the release's, with its interval and baseline.

    Each is beside the published figure, where the recipe quotes one, and its ratio to it. With ``keys`` its key ends the line.
    """
    pairs: dict[tuple[object, ...], dict[bool, Row]] = {}
    for row in rows:
        pairs.setdefault(row.series, {})[row.dataset == "confidential"] = row
    quoted = ("published", "ratio")
    titles = (
        "measure",
        "variable",
        "level",
        "confidential",
        *quoted,
        "release",
        *quoted,
        "interval",
        "baseline",
        "with",
        "key",
    )
    lines = [
        [*_result(pair.get(True), pair.get(False), published, apart), next(iter(pair.values())).key if keys else ""]
        for pair in pairs.values()
    ]
    return table(titles, lines, right=range(2, 11), spare=(11, 10, 9), title=title)


def _result(
    own: Row | None, released: Row | None, published: Sequence[PublishedFigure], apart: Apart
) -> list[Cell | str]:
    row = released or own
    assert row is not None
    uses = apart.get(row.method_key, {})
    method = method_by_key(row.method_key)
    naming = row_settings(row.method_key, row.params) if method and method.measurement.beliefs else ("q",)
    named = params_text({name: row.params[name] for name in naming if name in row.params})
    short = params_text({name: value for name, value in row.params.items() if name not in (*naming, *uses)})
    whole = "; ".join(part for part in (settings_text(row.params, uses), row.reason) if part)
    return [
        measure_name(row.key),
        ", ".join(part for part in (row.target, named, use_text(row.params, uses)) if part),
        _level(row.level),
        *_value(own, published),
        *_value(released, published),
        interval(released.lower, released.upper) if released else "",
        number(row.baseline) if own is None and row.baseline is not None else "",
        Cell("; ".join(part for part in (short, row.reason) if part), full=whole),
    ]


def _level(level: float | None) -> str:
    return "" if level is None else number(level)


def _value(row: Row | None, published: Sequence[PublishedFigure]) -> tuple[str, str, str]:
    """A row's value, the published figure that belongs beside it, and its ratio to that."""
    if row is None:
        return "", "", ""
    value = row.status if row.value is None else number(row.value)
    figure = published_value_for(row, published)
    return (value, "", "") if figure is None else (value, number(figure), number(ratio_to_published(row.value, figure)))


def output_of(row: Row) -> Output | None:
    """What the row's method declares of its measure; None where this version does not have them."""
    return output_by_key(row.key)


def axis_of(row: Row) -> Axis | None:
    """The levels along which the row's study goes."""
    method = method_by_key(row.method_key)
    return None if method is None else method.study.axis


def title_of(row: Row) -> str:
    """The row's measure by the name that the head of a column has room for."""
    output = output_of(row)
    return (output and output.short) or measure_name(row.key)


def is_share(row: Row) -> bool:
    """Whether the row says what the interval of another number is made of, ``of`` which it is."""
    return "of" in row.params


def band_shares(rows: Iterable[Row]) -> dict[tuple[str, float], tuple[float, ...]]:
    """For each measure and level of one study's rows the shares of the variance behind its interval, where all are known."""
    found: dict[tuple[str, float], list[float | None]] = {}
    for row in rows:
        if is_share(row) and row.level is not None:
            found.setdefault((str(row.params["of"]), row.level), []).append(row.value)
    known = {place: tuple(share for share in shares if share is not None) for place, shares in found.items()}
    return {place: shares for place, shares in known.items() if len(shares) == len(found[place])}


def sums_up(row: Row) -> bool:
    """Whether the row is of a study that sums its points up in answers."""
    method = method_by_key(row.method_key) if row.family == "studies" else None
    return method is not None and bool(method.answer_outputs)


def sweeps_in(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each sweep: those that share method, target and every setting."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        settings = {key: value for key, value in row.params.items() if key != "of"}
        found.setdefault((row.method, row.target, json.dumps(settings, sort_keys=True)), []).append(row)
    return list(found.values())


def sweep_table(rows: Sequence[Row], apart: Apart = NOTHING) -> Table:
    """One sweep: a line a level, confidential data and release side by side for every measure.

    On a page their intervals too, and what the variance behind the release's is made of.
    """
    shares, first = band_shares(rows), rows[0]
    measures = {row.measure: title_of(row) for row in rows if not is_share(row)}
    cells = {(row.level, row.measure, row.dataset == "confidential"): row for row in rows}
    lines = []
    for level in sorted({row.level for row in rows if row.level is not None}):
        line = [number(level)]
        for measure in measures:
            for own in (True, False):
                row = cells.get((level, measure, own))
                line += [number(row.value), interval(row.lower, row.upper)] if row else ["-", ""]
            line.append(percentages(shares[measure, level]) if (measure, level) in shares else "")
        lines.append(line)
    axis = axis_of(first)
    columns = [Column("level", axis.label if axis else "level", align="right")]
    for place, (measure, title) in enumerate(measures.items()):
        columns += _sweep_columns(measure, title, len(measures) - place if place else 0)
    settings = settings_text({name: value for name, value in first.params.items() if name != "of"})
    title = f"{_sweep_name(first, apart)}: the confidential data, and beside it the release (rel.)"
    return Table(columns, lines, title, full=settings)


def _sweep_columns(measure: str, title: str, spare: int) -> list[Column]:
    return [
        Column(f"{measure} own", title, align="right", spare=spare, full=f"{measure}, confidential"),
        Column(f"{measure} own interval", "interval", align="right", page=True),
        Column(f"{measure} released", "rel.", align="right", spare=spare, full="release"),
        Column(f"{measure} interval", "interval", align="right", page=True),
        Column(f"{measure} shares", "datasets/noise/both %", align="right", page=True),
    ]


def _sweep_name(row: Row, apart: Apart) -> str:
    """What names a sweep, its variable and its model, and what else tells it from others of its run."""
    axis = axis_of(row)
    naming = axis.uses if axis else ()
    uses = apart.get(row.method_key, {})
    told = {name: default for name, default in uses.items() if name not in naming}
    words = (*(row.params.get(name, "") for name in naming), row.target, use_text(row.params, told))
    return ", ".join(str(word) for word in words if word) or row.method


def shares_table(rows: Sequence[Row]) -> Table | None:
    """What datasets, noise and both make of the variance behind each interval of a sweep; None where nothing says."""
    found = band_shares(rows)
    measures = list(dict.fromkeys(measure for measure, _ in found))
    lines = [
        [number(level), *(percentages(found[one, level]) if (one, level) in found else "-" for one in measures)]
        for level in sorted({level for _, level in found})
    ]
    titles = {row.measure: title_of(row) for row in rows}
    heads = ["S", *(titles.get(measure, measure) for measure in measures)]
    title = "Variance of the release's intervals: datasets / noise / both, in %"
    return table(heads, lines, range(len(heads)), range(len(heads) - 1, 1, -1), title) if found else None


def method_title(key: str) -> str:
    """The title of a method; its key where this version does not have it."""
    method = method_by_key(key)
    return key if method is None else method.title


class Told(Protocol):
    """An answer of a study: a row without a level, or what a screen keeps of one."""

    @property
    def measure(self) -> str: ...

    @property
    def value(self) -> float | None:
        """None where there is none."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """What tells it from others of its measure."""
        ...


def study_parts(method: Method, rows: Sequence[Row], published: Sequence[PublishedFigure] = ()) -> list[Table | str]:
    """What a study says that sums its points up: its answers, a sentence each or in tables, and its points."""
    if together(method):
        return [*together_tables(method, rows)]
    if method.study.lattice is not None:
        return lattice_parts(method, rows)
    found = [row for row in rows if row.level is None]
    beside = {id(row): figure for row in found if (figure := published_value_for(row, published)) is not None}
    curve, by = (
        method.study.axis.curve if method.study.axis else "",
        method.study.split.by if method.study.split else "",
    )
    single = [row for row in found if not (curve and curve in row.params) and not (by and by in row.params)]
    parts = [
        "\n".join(_answer(row, published) for row in single),
        curve_table(method, found, beside),
        split_table(method, found, beside),
        None if curve else points_table(rows),
    ]
    return [part for part in parts if part]


def curve_table(method: Method, found: Sequence[Told], beside: Mapping[int, float] = NONE_BESIDE) -> Table | None:
    """The answers of every curve of a study, a line each; published figures ``beside`` them by the answer's identity."""
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
    made = _told_table([curve, *(title for _, title in columns)], told, beside)
    parts = [(name, kind == "all") for (name, kind), _ in columns for _ in ("told", "published")]
    order = list(dict.fromkeys(reversed(parts)))  # the best leaves with the worst: it would flatter alone
    spare = [order.index(part) + 1 if part != parts[0] else 0 for part in parts]
    return replace(made, columns=[made.columns[0], *map(_with_spare, made.columns[1:], spare)])


def _with_spare(column: Column, spare: int) -> Column:
    return replace(column, spare=spare)


def split_table(method: Method, found: Sequence[Told], beside: Mapping[int, float] = NONE_BESIDE) -> Table | None:
    """The answers that a study splits by a parameter, its values in columns, and of how many each column speaks."""
    split = method.study.split
    if split is None:
        return None
    placed = {(one.measure, one.params[split.by]): one for one in found if split.by in one.params}
    outputs = [output for output in method.answer_outputs if any(name == output.name for name, _ in placed)]
    told = [(output.title, [placed.get((output.name, value)) for value, _ in split.columns]) for output in outputs]
    if not told:
        return None
    made = _told_table([split.heading, *(title for _, title in split.columns)], told, beside, split.title)
    counts = [f"{one.params.get(split.count, 0):,}" if one else "0" for one in told[0][1]] if split.count else []
    first = [split.count, *(cell for each in counts for cell in (each, ""))]
    return replace(made, rows=[first, *made.rows]) if counts else made


def _told_table(
    titles: Sequence[str],
    told: Sequence[tuple[str, Sequence[Told | None]]],
    beside: Mapping[int, float],
    title: str = "",
) -> Table:
    heads = [titles[0], *(head for each in titles[1:] for head in (each, "published"))]
    lines = []
    for name, answers in told:
        pairs = [
            (number(one.value) if one else "", number(beside[id(one)]) if id(one) in beside else "") for one in answers
        ]
        lines.append([name, *(cell for pair in pairs for cell in pair)])
    return table(heads, lines, range(1, len(heads)), range(len(heads) - 1, 2, -1), title)


def _answer(row: Row, published: Sequence[PublishedFigure]) -> str:
    if row.value is None:
        return sentence_of(row)
    _, figure, share = _value(row, published)
    said = [interval(row.lower, row.upper), figure and f"published {figure}, ratio {share}"]
    beside = ", ".join(filter(None, said))
    return sentence_of(row).removesuffix(".") + (f"; {beside}." if beside else ".")


def points_table(rows: Sequence[Row]) -> Table | None:
    """One line a point of a study: its level, the parameters that go with it, and its measures, of every dataset that has
    them. None without rows.
    """
    rows = [row for row in rows if row.level is not None]
    if not rows:
        return None
    differing = {name: {json.dumps(row.params.get(name)) for row in rows} for row in rows for name in row.params}
    names = [name for name, values in differing.items() if len(values) > 1]
    computed = {row.measure for row in rows if row.value is not None}
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
    heads = {row.measure: title_of(row) for row in rows}
    titles = [
        "level",
        *names,
        *(f"{heads[measure]} ({dataset})" if several else heads[measure] for measure, dataset in columns),
    ]
    return table(titles, lines, range(len(titles)), range(1 + len(names), len(titles) - 1))


def verdict_table(
    verdicts: Sequence[Verdict], apart: Apart = NOTHING, records: int | None = None, *, keys: bool = False
) -> Table:
    """One line a verdict: its outcome, the number by its human name, its value in people or its unit, and the limit in words.

    ``records`` is how many confidential records there are. On a page the name has every setting, those ``apart`` with their defaults.
    With ``keys`` the key stands beside it.
    """
    columns = (
        Column("verdict", "verdict"),
        Column("name", "number"),
        Column("value", "value", align="right"),
        Column("interval", "interval", spare=2),
        Column("limit", "limit"),
        Column("reason", "reason", spare=1),
        Column("key", "key"),
    )
    lines: list[Line] = [
        [
            outcome_cell(verdict.outcome),
            Cell(name, full=whole_name(verdict, apart)),
            observed_text(verdict, records),
            judged_interval(verdict),
            limit_text(verdict.bound, verdict.limit, verdict.value),
            verdict.reason,
            verdict.value if keys else "",
        ]
        for verdict, name in zip(verdicts, labels_of(verdicts), strict=True)
    ]
    return Table(columns, lines)


def source_table(quoted: SourceTable) -> Table:
    """The figures of one source: our value, the published figure and their ratio, for the confidential data and each run."""
    titles = [
        "measure",
        "variable",
        "level",
        *(title for name in quoted.columns for title in (name, "published", "ratio")),
        "with",
    ]
    lines: list[Line] = []
    for line in quoted.lines:
        note = "; ".join(part for part in (settings_text(line.params), line.note) if part)
        lines.append(
            [
                measure_name(line.value),
                line.target,
                _level(line.level),
                *(text for cell in line.cells for text in _quoted(cell)),
                Cell(line.note or params_text(line.params), full=note),
            ]
        )
    return table(titles, lines, range(2, len(titles) - 1), title=quoted.source)


def _quoted(cell: Quoted) -> tuple[str, str, str]:
    ours = "" if cell.ours is None else number(cell.ours)
    return (ours, "", "") if cell.published is None else (ours or "-", number(cell.published), number(cell.ratio))
