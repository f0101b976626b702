"""The summary of a run in plain text: utility, disclosure risk, sweeps, verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sfumato.engine.methods import Method
from sfumato.engine.published import Cell, Line, Published, SourceTable, figure_beside, ratio
from sfumato.engine.results import Diagnostic
from sfumato.engine.rows import Row
from sfumato.engine.thresholds import Verdict
from sfumato.workspace.jobs.runs import Run, RunState
from sfumato.workspace.plan.companions import published_tables
from sfumato.workspace.reporting.numbers import percentages
from sfumato.workspace.reporting.uses import NOTHING, Apart, settings_apart
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import diagnostics_of, result_rows, verdicts_of
from sfumato.workspace.views.studies import band_shares

from ..console import duration, fits, number, table
from ..widgets.text import printable
from ..words import use_text
from .calibration_table import calibration_table

__all__ = ["exit_code", "published_text", "result_table", "source_text", "summarise", "verdict_table"]

HEADINGS = {"utility": "Utility", "quality": "Data quality", "risk": "Disclosure risk", "studies": "Intruder knowledge"}
SIGNS = {"pass": "+ PASS", "fail": "x FAIL", "not computed": "? NOT COMPUTED"}
HOW = ("confidence", "synthesis")
"""Parameters that say how an interval was made, not what it speaks of."""
BOUNDS = {"max": "at most", "min": "at least", "max_ratio": "at most, as a share of the confidential"}


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 when every threshold is met; 1 when one failed or could not be judged."""
    return 0 if all(verdict.outcome == "pass" for verdict in verdicts) else 1


def summarise(workspace: Workspace, run: Run) -> str:
    """Everything a reader needs first."""
    rows = [row for row in result_rows(workspace, run.id) if row.draw is None]
    dataset = workspace.dataset(run.dataset_id)
    recipe, apart = run.recipe, settings_apart(run.recipe_toml)
    head = (
        f"{run.title}: run {run.id}, {dataset.records:,} records of {dataset.name}, "
        f"m = {recipe.m}, seed {run.seed}, {duration(run.seconds)}"
    )
    parts = [printable(head)]
    summed_up = {method_of(row) for row in rows if row.family == "studies" and row.level is None}
    for family, heading in HEADINGS.items():
        chosen = [row for row in rows if row.family == family and method_of(row) not in summed_up]
        if chosen:
            make = sweep_table if family == "studies" else result_table
            parts.append(f"{heading}\n{make(chosen, recipe.published, apart)}")
    for step in recipe.studies:
        own = [
            row for row in rows if method_of(row) in summed_up and recipe.step_of(method_of(row), row.params) is step
        ]
        if own:
            use = use_text(recipe.settings(step), apart.get(step.method.key, {}))
            title, text = study_summary(step.method, own, recipe.published)
            parts.append(f"{title}{f' ({use})' if use else ''}\n{text}")
    if doubts := doubt_lines(diagnostics_of(workspace, run.id)):
        parts.append("\n".join(["Rules that models break", *doubts]))
    verdicts = verdicts_of(workspace, run.id)
    if verdicts:
        parts.append(f"Verdicts\n{verdict_table(verdicts, apart)}")
    return "\n\n".join(parts)


def study_summary(method: Method, rows: Sequence[Row], published: Sequence[Published] = ()) -> tuple[str, str]:
    """Heading and text of a study that sums up its points: its answers first, then what each point gave."""
    if method.name == "calibration":
        return "How well measures of data quality tell", calibration_table(rows, published)
    answers = [_answer(method, row, published) for row in rows if row.level is None]
    points = points_table([row for row in rows if row.level is not None])
    return method.title, "\n\n".join(filter(None, ["\n".join(answers), points]))


def _answer(method: Method, row: Row, published: Sequence[Published]) -> str:
    """What all points of a study together say, in a sentence."""
    meaning = method.output(row.measure).meaning
    if row.value is None:
        return f"{meaning}: {row.reason}"
    figure, share = _quoted(row, published)
    said = [f"{number(row.value)} {row.unit}".rstrip(), _interval(row), figure and f"published {figure}, ratio {share}"]
    return f"{meaning}: {', '.join(filter(None, said))}"


def points_table(rows: Sequence[Row]) -> str:
    """One line a point of a study: its level, the parameters that go with it, and its measures, of every dataset that has
    them. Empty without rows.
    """
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
            number(level) if level else "0",
            *(str(next(iter(found.values())).params.get(name, "")) for name in names),
            *(number(found[column].value) if column in found else "" for column in columns),
        ]
        for level, found in sorted(points.items())
    ]
    heads = ["level", *names, *(f"{measure} ({dataset})" if several else measure for measure, dataset in columns)]
    spare = range(1 + len(names), len(heads) - 1)
    return _without_empty_columns(heads, lines, right=range(len(heads)), spare=spare) if rows else ""


def doubt_lines(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """For each model and statistic that breaks its rule, how many parameters do and the value farthest from it."""
    broken: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for found in diagnostics:
        if found.passed is False:
            broken.setdefault((found.target, found.name, found.rule), []).append(found)
    lines = []
    for (target, name, rule), own in broken.items():
        sign = -1 if rule.startswith("at least") else 1
        worst = max(own, key=lambda one: math.inf if one.value is None else sign * one.value)
        others = f", and {len(own) - 1} more" if len(own) > 1 else ""
        lines.append(
            f"{printable(target)}: {name} of {printable(worst.parameter)} is {number(worst.value)}, {rule}{others}"
        )
    return lines


def method_of(row: Row) -> str:
    """``family.method``."""
    return f"{row.family}.{row.method}"


def _of(row: Row, apart: Apart) -> str:
    """What a row speaks of: its variable, and which use of the method."""
    q = f"q {row.params['q']}" if "q" in row.params else ""
    return ", ".join(part for part in (row.target, q, use_text(row.params, apart.get(method_of(row), {}))) if part)


def _params(params: Mapping[str, Any], said: Collection[str] = ()) -> str:
    """Short parameters and radii, without what is ``said`` elsewhere in the line."""
    radius = {} if "radius" in said else params.get("radius")
    short = {k: v for k, v in params.items() if _is_short(k, v) and k not in said}
    shown = {**(radius if isinstance(radius, dict) else {}), **short}
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def _is_short(key: str, value: Any) -> bool:
    return key not in ("radius", *HOW) and isinstance(value, (str, int, float)) and not isinstance(value, bool)


def result_table(rows: Sequence[Row], published: Sequence[Published] = (), apart: Apart = NOTHING) -> str:
    """One line a measure: the confidential data's value beside the release's, with its interval and baseline.

    Each is beside the published figure, where the recipe quotes one, and its ratio to it.
    """
    series: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        series.setdefault(row.series, {})["confidential" if row.dataset == "confidential" else "release"] = row
    lines = []
    for pair in series.values():
        row = pair.get("release", next(iter(pair.values())))
        own, released = pair.get("confidential"), pair.get("release")
        lines.append(
            [
                f"{row.method}.{row.measure}",
                _of(row, apart),
                number(own.value) if own else "",
                *_quoted(own, published),
                number(released.value) if released else "",
                *_quoted(released, published),
                _interval(released),
                number(row.baseline) if own is None and row.baseline is not None else "",
                row.reason or _params(row.params, ("q", *apart.get(method_of(row), ()))),
            ]
        )
    quoted = ("published", "ratio")
    heads = ("measure", "variable", "confidential", *quoted, "release", *quoted, "interval", "baseline", "")
    return _without_empty_columns(heads, lines, right=range(2, 10), spare=(10, 9, 8))


def _quoted(row: Row | None, published: Sequence[Published]) -> tuple[str, str]:
    """The published figure that belongs beside a row, and the row's ratio to it."""
    figure = None if row is None else figure_beside(row, published)
    return ("", "") if row is None or figure is None else (number(figure), number(ratio(row.value, figure)))


def _interval(row: Row | None) -> str:
    return f"{number(row.lower)} .. {number(row.upper)}" if row is not None and row.lower is not None else ""


def _without_empty_columns(
    heads: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[int], spare: Sequence[int] = ()
) -> str:
    """A table of the columns that say something; ``spare`` ones are left out, in turn, where the terminal is too narrow."""
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    while True:
        flush = [kept.index(i) for i in right if i in kept]
        text = table([heads[i] for i in kept], [[line[i] for i in kept] for line in lines], flush)
        too_many = [i for i in spare if i in kept]
        if not too_many or fits(text):
            return text
        kept.remove(too_many[0])


def sweep_table(rows: Sequence[Row], published: Sequence[Published] = (), apart: Apart = NOTHING) -> str:
    """A sweep: one line a level, confidential and release side by side for every measure; then the published figures."""
    sweeps: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        sweeps.setdefault(_sweep(row), []).append(row)
    parts = [
        _one_sweep(", ".join(filter(None, (variable, model, _use(own[0], apart)))), own)
        for (variable, model, _), own in sweeps.items()
    ]
    quoted = {row.series for row in rows if figure_beside(row, published) is not None}
    if quoted:
        parts.append(_published_sweep([row for row in rows if row.series in quoted], published))
    return "\n\n".join(parts)


def _sweep(row: Row) -> tuple[str, str, str]:
    """The variable, the model and all the settings of the sweep that a row belongs to."""
    settings = {key: value for key, value in row.params.items() if key != "of"}
    return str(row.params.get("variable", "")), str(row.params.get("model", "")), json.dumps(settings, sort_keys=True)


def _published_sweep(rows: Sequence[Row], published: Sequence[Published]) -> str:
    pairs: dict[tuple[Any, ...], dict[bool, Row]] = {}
    for row in rows:
        pairs.setdefault(row.series, {})[row.dataset == "confidential"] = row
    lines = []
    for pair in pairs.values():
        row, own, released = next(iter(pair.values())), pair.get(True), pair.get(False)
        line = [row.measure, number(row.level)]
        for one in (own, released):
            line += [number(one.value) if one else "", *_quoted(one, published)]
        lines.append([*line, _params(row.params)])
    heads = ("measure", "S", "confidential", "published", "ratio", "release", "published", "ratio", "")
    return f"Beside the published figures\n{_without_empty_columns(heads, lines, right=range(1, 8))}"


def published_text(workspace: Workspace, runs: Sequence[Run]) -> list[str]:
    """A table for every source that the recipes of these runs quote figures from."""
    return [source_text(table) for table in published_tables(workspace, runs)]


def source_text(quoted: SourceTable) -> str:
    """The figures of one source: our value, the published figure and their ratio, for the confidential data and each run."""
    heads = [
        "measure",
        "variable",
        "S",
        *(head for name in quoted.columns for head in (name, "published", "ratio")),
        "",
    ]
    lines = [_source_line(line) for line in quoted.lines]
    return f"{printable(quoted.source)}\n{_without_empty_columns(heads, lines, right=range(2, len(heads) - 1))}"


def _source_line(line: Line) -> list[str]:
    cells = [text for cell in line.cells for text in _cell_texts(cell)]
    level = "" if line.level is None else number(line.level)
    return [line.value.partition(".")[2], line.target, level, *cells, line.note or _params(line.params)]


def _cell_texts(cell: Cell) -> tuple[str, str, str]:
    if cell.published is None:
        return ("" if cell.ours is None else number(cell.ours), "", "")
    return number(cell.ours), number(cell.published), number(cell.ratio)


def _use(row: Row, apart: Apart) -> str:
    """What else tells the sweep of a row from others of its run."""
    told = {
        name: default for name, default in apart.get(method_of(row), {}).items() if name not in ("variable", "model")
    }
    return use_text(row.params, told)


def _one_sweep(name: str, rows: Sequence[Row]) -> str:
    values = [row for row in rows if "of" not in row.params]
    measures = list(dict.fromkeys(row.measure for row in values))
    text = _levels_table(measures, values)
    while len(measures) > 1 and not fits(text):
        measures = measures[:-1]
        text = _levels_table(measures, values)
    text = f"{name}: the confidential data, and beside it the release (rel.)\n{text}"
    shares = _shares_table(measures, rows)
    return f"{text}\n{shares}" if shares else text


def _shares_table(measures: Sequence[str], rows: Sequence[Row]) -> str:
    """What datasets, noise and both make of the variance behind each interval; empty where nothing says."""
    found = band_shares(rows)
    if not found:
        return ""
    levels = sorted({level for _, level in found})
    lines = [
        [
            number(level) if level else "0",
            *(percentages(found[measure, level]) if (measure, level) in found else "-" for measure in measures),
        ]
        for level in levels
    ]
    heads = ["S", *map(_short, measures)]
    text = table(heads, lines, right=range(len(heads)))
    return f"Variance of the release's intervals: datasets / noise / both, in %\n{text}"


def _levels_table(measures: Sequence[str], rows: Sequence[Row]) -> str:
    cells = {(row.level, row.measure, row.dataset == "confidential"): row for row in rows}
    lines = []
    for level in sorted({row.level for row in rows if row.level is not None}):
        line = [number(level) if level else "0"]
        for measure in measures:
            own, released = cells.get((level, measure, True)), cells.get((level, measure, False))
            line += [number(own.value if own else None), number(released.value if released else None)]
        lines.append(line)
    heads = ["S", *(name for measure in measures for name in (_short(measure), "rel."))]
    return table(heads, lines, right=range(len(heads)))


def _short(measure: str) -> str:
    names = {
        "expected_match_risk": "EMR",
        "true_match_rate": "TMR",
        "false_match_rate": "FMR",
        "unique_matches": "unique",
        "attribute_risk": "AR",
    }
    return names.get(measure, measure)


def verdict_table(verdicts: Sequence[Verdict], apart: Apart = NOTHING) -> str:
    """One line a number that a threshold is held against."""

    def of(v: Verdict) -> str:
        use = use_text(v.params, apart.get(v.value.rpartition(".")[0], {}))
        return ", ".join(part for part in (v.target, use) if part)

    lines = [
        [
            SIGNS[v.outcome],
            v.value.partition(".")[2]
            + (f" ({of(v)})" if of(v) else "")
            + (f" at S = {v.level:g}" if v.level is not None else ""),
            number(v.observed),
            f"{BOUNDS[v.bound]} {number(v.limit)}" if v.bound != "max_ratio" else f"at most {number(v.limit)} of conf.",
            number(v.margin),
            v.reason,
        ]
        for v in verdicts
    ]
    return _without_empty_columns(
        ("", "threshold", "observed", "bound", "margin", ""), lines, right=(2, 4), spare=(4, 5)
    )


def run_lines(runs: Sequence[Run], outcomes: Sequence[str]) -> str:
    """The runs of a workspace, one a line."""
    lines = [
        [
            str(run.id),
            run.title,
            run.state.value,
            f"{run.tasks_done}/{run.tasks_total}",
            duration(run.seconds),
            "" if run.seconds_left is None else f"~{duration(run.seconds_left)}",
            outcome,
            run.error,
        ]
        for run, outcome in zip(runs, outcomes, strict=True)
    ]
    return _without_empty_columns(
        ("run", "title", "state", "tasks", "time", "left", "verdicts", ""), lines, right=(0, 3, 4, 5)
    )


def outcome_in_words(workspace: Workspace, run: Run) -> str:
    """``all 7 pass``, ``2 of 7 fail``; nothing before the run is done."""
    verdicts = verdicts_of(workspace, run.id)
    if run.state is not RunState.DONE or not verdicts:
        return ""
    failed = sum(verdict.outcome != "pass" for verdict in verdicts)
    return f"{failed} of {len(verdicts)} fail" if failed else f"all {len(verdicts)} pass"


def draw_table(rows: Sequence[Row], apart: Apart = NOTHING) -> str:
    """Every dataset's own rows."""
    lines = [
        [
            f"{r.method}.{r.measure}",
            _of(r, apart),
            str(r.draw),
            "" if r.level is None else number(r.level),
            number(r.value),
            r.reason or _params(r.params),
        ]
        for r in rows
        if r.draw is not None
    ]
    return _without_empty_columns(("measure", "variable", "dataset", "S", "value", ""), lines, right=(2, 3, 4))
