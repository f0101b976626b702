"""What was found: verdicts, measures beside the confidential data and their baselines, sweeps, published figures."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods import registry
from sfumato.engine.published import Cell, Line, Published, SourceTable, figure_beside, ratio
from sfumato.engine.rows import Row
from sfumato.engine.thresholds import Verdict

from ..plots.markup import Markup, element
from ..views.studies import band_shares
from .numbers import number, percentages
from .parts import Section, definitions, interval, section, settings, table
from .uses import NOTHING, Apart

__all__ = ["published_section", "result_tables", "sweep_section", "verdict_table"]

SIGNS = {"pass": "✓ pass", "fail": "✗ fail", "not computed": "? not computed"}
BOUNDS = {"max": "at most {}", "min": "at least {}", "max_ratio": "at most {} × the confidential data's"}
DIRECTIONS = {"low": "lower is better", "high": "higher is better", "none": "neither direction is better"}
FAMILIES = {"utility": "Utility", "quality": "Data quality", "risk": "Disclosure risk", "studies": "Studies"}


def verdict_table(verdicts: Sequence[Verdict], apart: Apart = NOTHING) -> Markup:
    """Every threshold, what was observed, and how far inside the bound it lies."""
    if not verdicts:
        return element("p", "The recipe has no thresholds.")
    rows = [
        [
            v.value,
            ", ".join(
                part for part in (v.target, settings(v.params or {}, apart.get(v.value.rpartition(".")[0]))) if part
            ),
            number(v.level) if v.level is not None else "",
            SIGNS[v.outcome],
            number(v.observed),
            BOUNDS[v.bound].format(number(v.limit)),
            number(v.margin),
            v.reason,
        ]
        for v in verdicts
    ]
    heads = ("threshold", "of", "S", "verdict", "observed", "bound", "margin", "")
    return table("", heads, rows, numeric=(2, 4, 6))


def result_tables(
    rows: Sequence[Row], published: Sequence[Published], apart: Apart = NOTHING
) -> list[tuple[str, Markup]]:
    """Heading and table of every family that was measured: the averages over the datasets, outside sweeps."""
    found = [(heading, [row for row in rows if row.family == family]) for family, heading in FAMILIES.items()]
    return [(heading, _results(own, published, apart)) for heading, own in found if own]


def _results(rows: Sequence[Row], published: Sequence[Published], apart: Apart) -> Markup:
    series: dict[tuple[object, ...], dict[bool, Row]] = {}
    for row in rows:
        series.setdefault(row.series, {})[row.dataset == "confidential"] = row
    lines = [_result(pair.get(True), pair.get(False), published, apart) for pair in series.values()]
    quoted = ("published", "ratio")
    heads = ("measure", "variable", "confidential", *quoted, "release", *quoted, "interval", "baseline", "with")
    keys = dict.fromkeys((f"{row.family}.{row.method}", row.measure) for row in rows)
    return element("div", table("", heads, lines, numeric=range(2, 10)), _meanings(list(keys)))


def _result(own: Row | None, released: Row | None, published: Sequence[Published], apart: Apart) -> list[str]:
    row = released or own
    assert row is not None
    return [
        f"{row.method}.{row.measure}",
        row.target,
        *_value(own, published),
        *_value(released, published),
        interval(released.lower, released.upper) if released else "",
        number(row.baseline) if own is None and row.baseline is not None else "",
        "; ".join(part for part in (settings(row.params, apart.get(f"{row.family}.{row.method}")), row.reason) if part),
    ]


def _value(row: Row | None, published: Sequence[Published]) -> tuple[str, str, str]:
    if row is None:
        return "", "", ""
    value = number(row.value) if row.value is not None else row.status
    figure = figure_beside(row, published)
    return (value, "", "") if figure is None else (value, number(figure), number(ratio(row.value, figure)))


def _meanings(keys: Sequence[tuple[str, str]]) -> Markup:
    """What each measure means and which way is better."""
    known = [(registry().get(key), measure) for key, measure in keys]
    return definitions(
        (f"{found.name}.{measure}", f"{found.output(measure).meaning}; {DIRECTIONS[found.output(measure).goal]}")
        for found, measure in known
        if found is not None
    )


def sweep_section(rows: Sequence[Row], of: str = "") -> Section | None:
    """The risks at every level of the intruder's uncertainty, confidential data first, then the release."""
    sweeps: dict[tuple[str, str, str], list[Row]] = {}
    summed_up = {row.method for row in rows if row.family == "studies" and row.level is None}
    swept = [row for row in rows if row.level is not None and row.method not in summed_up]
    for row in swept:
        params = {key: value for key, value in row.params.items() if key != "of"}
        sweeps.setdefault((row.method, row.target, settings(params)), []).append(row)
    if not sweeps:
        return None
    keys = list(dict.fromkeys((f"{row.family}.{row.method}", row.measure) for row in swept))
    return section(
        f"Intruder's knowledge{of}", [_sweep(words, own) for (_, _, words), own in sweeps.items()], _meanings(keys)
    )


def _sweep(words: str, rows: Sequence[Row]) -> Markup:
    measures = list(dict.fromkeys(row.measure for row in rows if "of" not in row.params))
    shares = band_shares(rows)
    cells = {(row.level, row.measure, row.dataset == "confidential"): row for row in rows}
    lines = []
    for level in sorted({row.level for row in rows if row.level is not None}):
        line = [number(level)]
        for measure in measures:
            own, released = cells.get((level, measure, True)), cells.get((level, measure, False))
            for one in (own, released):
                line += [number(one.value), interval(one.lower, one.upper)] if one else ["", ""]
            line.append(percentages(shares[measure, level]) if (measure, level) in shares else "")
        lines.append(line)
    more = ("interval", "release", "interval", "datasets/noise/both %")
    heads = ["S", *(head for measure in measures for head in (f"{measure}, confidential", *more))]
    return table(words, heads, lines, numeric=range(len(heads)))


def published_section(tables: Sequence[SourceTable]) -> Section | None:
    """Our values beside those that the recipes quote from a publication."""
    return section("Published figures", [_source(one) for one in tables]) if tables else None


def _source(quoted: SourceTable) -> Markup:
    heads = [
        "measure",
        "variable",
        "S",
        *(head for name in quoted.columns for head in (name, "published", "ratio")),
        "with",
    ]
    return table(quoted.source, heads, [_line(line) for line in quoted.lines], numeric=range(2, len(heads) - 1))


def _line(line: Line) -> list[str]:
    cells = [text for cell in line.cells for text in _cell(cell)]
    note = "; ".join(part for part in (settings(line.params), line.note) if part)
    return [line.value.partition(".")[2], line.target, "" if line.level is None else number(line.level), *cells, note]


def _cell(cell: Cell) -> tuple[str, str, str]:
    ours = "" if cell.ours is None else number(cell.ours)
    return (ours, "", "") if cell.published is None else (ours or "-", number(cell.published), number(cell.ratio))
