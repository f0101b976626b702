"""The sheet of variables: what the grid of the tab Data says of a column, and what is said of all and of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.wording import agreeing_word, count_noun, format_percent
from sfumato.tui.parts.fields import shown_value
from sfumato.tui.widgets.sparkline import sparkline
from sfumato.tui.widgets.tables import Columns, TableColumn
from sfumato.workspace.ingest.profiles import Profile
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import fitted
from sfumato.workspace.reporting.words import mark, number, records_text, role_text, weight_text
from sfumato.workspace.views.data_view import DataView, FoundColumn, VariableLine

MOST_BARS = 60
FIRST_LEVELS = 12
MOST_FREQUENT = 6
"""With more levels the others are not named in the grid, whatever its width."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEFT_OUT = "left out"
SPARK = 10
COLUMNS: Columns[VariableLine] = (
    TableColumn("mark", "", 1),
    TableColumn("name", "variable", 12, grows=2),
    TableColumn("role", "role", 16),
    TableColumn("kind", "kind", 11),
    TableColumn("missing", "missing", 7, "right"),
    TableColumn("distinct", "values", 7, "right", spare=5),
    TableColumn("histogram", "histogram", SPARK),
    TableColumn("levels", "levels, or 5 to 95 %", 21, spare=4),
    TableColumn("codes", "missing codes", 13, spare=1),
    TableColumn("bounds", "bounds", 12, spare=3),
    TableColumn("title", "label", 24, spare=2, grows=1),
)
LEAST_OF_LEVELS, MOST_OF_NAME = 16, 24
"""Cells that levels keep, and that names may have of theirs."""
Found = Mapping[tuple[object, ...], FoundColumn]
"""What was found of columns, by ``VariableLine.reading``."""


def sheet_columns(width: int, longest: int) -> tuple[TableColumn[VariableLine], ...]:
    """The columns in ``width`` cells; a name of ``longest`` letters takes what it needs of what the levels can spare."""
    columns = fitted(COLUMNS, width)
    by_name = {column.name: column.width for column in columns}
    lack = min(longest, MOST_OF_NAME) - by_name["name"]
    taken = max(0, min(lack, by_name.get("levels", 0) - LEAST_OF_LEVELS))
    other = {"name": taken, "levels": -taken}
    return tuple(replace(column, width=column.width + other.get(column.name, 0)) for column in columns)


def row_values(line: VariableLine, found: FoundColumn | None) -> dict[str, object]:
    variable, profile = line.variable, found.profile if found else None
    missing = line.missing if found is None or found.missing is None else found.missing
    return {
        "mark": mark("fail") if problem_of(line, found) else "",
        "name": variable.name,
        "role": role_text(variable.role.value) if line.planned else LEFT_OUT,
        "kind": variable.kind.value,
        "missing": None if missing is None else f"{missing:.1%}",
        "distinct": None if profile is None else f"{profile.distinct:,}",
        "histogram": sparkline(profile.counts, SPARK) if profile else "",
        "levels": _levels(variable, profile) if profile else "",
        "codes": shown_value(variable.missing),
        "bounds": _bounds(variable),
        "title": variable.title,
    }


def sifted_fields(line: VariableLine) -> dict[str, object]:
    """What words are looked for in, known before any values are read."""
    variable = line.variable
    role = f"{variable.role.value} {role_text(variable.role.value)} {'' if line.planned else LEFT_OUT}"
    return {
        "variable": variable.name,
        "name": variable.name,
        "role": role,
        "kind": variable.kind.value,
        "label": variable.title,
        "codes": shown_value(variable.missing),
    }


def problem_of(line: VariableLine, found: FoundColumn | None) -> str:
    """Why a column cannot be read as the plan has it; empty where it can, or is left out."""
    return line.problem or (found.problem if found and line.planned else "")


def _bounds(variable: Variable) -> str:
    if variable.bounds is None:
        return ""
    return " .. ".join("" if end is None else number(end) for end in variable.bounds)


def _levels(variable: Variable, profile: Profile) -> str:
    """The first levels that are not withheld; of numbers and dates where nine tenths lie."""
    if profile.levels:
        shown = [level for level, count in zip(profile.levels, profile.counts, strict=True) if count]
        return ", ".join(variable.labels.get(level, level) for level in shown[:FIRST_LEVELS])
    if not profile.quantiles:
        return ""
    ends = (profile.quantiles[0][1], profile.quantiles[-1][1])
    return " .. ".join(_day(end) if variable.kind is Kind.DATE else number(end) for end in ends)


def sheet_summary(view: DataView, found: Found, marked: int, hidden: int) -> str:
    """What the data are, how many columns are in and out, how many do not fit, and what is marked."""
    out = sum(not line.planned for line in view.lines)
    wrong = sum(bool(problem_of(line, found.get(line.reading))) for line in view.lines)
    stored = view.stored
    misfits = f"{wrong} variable{'s do' if wrong > 1 else ' does'} not fit the plan"
    parts = [
        f"{mark('fail')} {view.problem}" if view.problem else "",
        f"{mark('fail')} {misfits}" if wrong else "",
        f"{marked} marked" + (f", {hidden} of them not shown" if hidden else "") if marked else "",
        f"{count_noun(len(view.lines) - out, 'variable')}" + (f", {out} left out" if out else ""),
        f"{stored.name}: {records_text(stored.records, stored.dropped)}",
    ]
    return " · ".join(part for part in parts if part)


def variable_series(variable: Variable, profile: Profile) -> tuple[Series, dict[str, Any]]:
    """A bar a bin or level, of many levels the most frequent ones; and what names the places of the axis."""
    if not profile.levels:
        centres = [start + profile.width / 2 for start in profile.starts]
        return Series("records", centres, profile.counts, marker="bars"), {}
    order = range(len(profile.levels))
    if len(profile.levels) > MOST_BARS:
        order = sorted(order, key=lambda i: -profile.counts[i])[:MOST_BARS]  # type: ignore[assignment]
    names = [variable.labels.get(profile.levels[i], profile.levels[i]) if profile.counts[i] else "" for i in order]
    return Series("records", range(len(names)), [profile.counts[i] for i in order], marker="bars"), {"x_names": names}


def reading_of(line: VariableLine, found: FoundColumn | None) -> tuple[str, str]:
    """What the picture of a column cannot say: what is wrong, or how many values; quantiles or what was withheld."""
    problem, name = problem_of(line, found), line.variable.name
    profile = found.profile if found else None
    if problem:
        return f"{mark('fail')} {problem}", "" if profile is None else _quantiles(line.variable, profile)
    if profile is None:
        said = (
            "its values are being read" if line.stored else "its values are not stored: a run reads them from the file"
        )
        return f"{name}: {said}", ""
    withheld = (
        f"{count_noun(profile.withheld, 'bar')} of one or two records {agreeing_word(profile.withheld, 'is', 'are')} not shown"
        if profile.withheld
        else ""
    )
    counts = f"{name}: {count_noun(profile.records, 'record')}, {profile.distinct:,} different values"
    codes = f"missing: {shown_value(line.variable.missing)}" if line.variable.missing else ""
    return " · ".join(part for part in (counts, codes, withheld) if part), _quantiles(line.variable, profile)


def _quantiles(variable: Variable, profile: Profile) -> str:
    """Quantiles and moments; of levels the most frequent ones, none that is withheld."""
    if profile.levels:
        order = sorted(range(len(profile.levels)), key=lambda i: -profile.counts[i])
        names = [
            variable.labels.get(profile.levels[i], profile.levels[i])
            for i in order[:MOST_FREQUENT]
            if profile.counts[i]
        ]
        shares = [format_percent(profile.counts[i] / profile.records) for i in order[: len(names)]]
        return (
            f"most often {', '.join(f'{name} ({share})' for name, share in zip(names, shares, strict=True))}"
            if names
            else ""
        )
    if not profile.quantiles:
        return ""
    dated = variable.kind is Kind.DATE
    shares = [f"{p * 100:.0f} % {_day(q) if dated else number(q)}" for p, q in profile.quantiles]
    moments = "" if dated else f" · mean {number(profile.mean)}, sd {number(profile.sd)}"
    people = f"{weight_text(profile.total, profile.design_effect)} · " if variable.role is Role.WEIGHT else ""
    return f"{people}quantiles {'  '.join(shares)}{moments}"


def _day(days: float) -> str:
    return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")
