"""Sheet of variables: the cells of the grid in the tab Data, and the texts about all columns and about one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from rich.cells import cell_len

from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.wording import agreeing_word, count_noun, format_percent
from sfumato.tui.parts.fields import value_text
from sfumato.tui.terminal.text import cut_words
from sfumato.tui.widgets.sparkline import sparkline
from sfumato.tui.widgets.tables import Columns, TableColumn
from sfumato.workspace.ingest.profiles import DistributionProfile
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import COLUMN_GAP, fit_columns, grid_width
from sfumato.workspace.reporting.words import number, records_and_dropped_text, role_text, sign_for, survey_weight_text
from sfumato.workspace.views.data_view import DataView, ProfiledColumn, VariableLine

MOST_BARS = 60
MOST_LISTED_LEVELS = 12
QUANTILES = "quantiles "
MOST_FREQUENT_LEVELS = 6
"""Number of levels named in the text about a variable."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEFT_OUT = "left out"
SPARKLINE_WIDTH, KIND_WIDTH = 10, 11
COLUMNS: Columns[VariableLine] = (
    TableColumn("mark", "", 1),
    TableColumn("name", "variable", 12, grow_order=2),
    TableColumn("role", "role", 16),
    TableColumn("kind", "kind", KIND_WIDTH),
    TableColumn("missing", "missing", 7, "right"),
    TableColumn("distinct", "values", 7, "right", drop_order=5),
    TableColumn("histogram", "histogram", SPARKLINE_WIDTH),
    TableColumn("levels", "levels, or 5 to 95 %", 21, drop_order=4),
    TableColumn("codes", "missing codes", 13, drop_order=1),
    TableColumn("bounds", "bounds", 12, drop_order=3),
    TableColumn("title", "label", 14, drop_order=6, grow_order=1),
)
LEAST_LEVELS_WIDTH, LEAST_NAME_WIDTH, MOST_NAME_WIDTH = 16, 8, 24
"""Least width of levels and of names beside titles, and greatest width of names at the expense of levels, in cells."""
FoundByReading = Mapping[tuple[object, ...], ProfiledColumn]
"""Profiles of columns, by ``VariableLine.reading_key``."""


def sheet_columns(
    width: int,
    longest: int,
    *,
    titled: bool = True,
    lacking: bool = True,
    faulty: bool = True,
    longest_title: int = 0,
    is_told_below: bool = False,
) -> tuple[TableColumn[VariableLine], ...]:
    """Return the columns in ``width`` cells; a name of ``longest`` letters takes what levels can spare.

    titled: whether a variable has a title, which has a column then
    lacking: whether a variable has missing values, which have a column then
    faulty: whether a variable cannot be read as the plan declares it, which has a column then
    longest_title: cells of the longest title, for which columns that the text below the list repeats make room
    is_told_below: whether there is such a text, which names the kind of a variable
    """
    left_out = {
        *(() if titled else ("title",)),
        *(() if lacking else ("missing",)),
        *(() if faulty else ("mark",)),
    }
    wanted = [column for column in COLUMNS if column.name not in left_out]
    if titled:
        # A title that is whole says more than levels that the picture beside it shows, or than an empty column.
        name_width = max(LEAST_NAME_WIDTH, min(longest, max(one.width for one in wanted if one.name == "name")))
        wanted = [replace(one, width=name_width) if one.name == "name" else one for one in wanted]
        least = max(one.width for one in wanted if one.name == "title")
        room = _title_room(wanted, width)
        if is_told_below and room < longest_title:
            wanted = [one for one in wanted if one.name != "kind"]
            room = _title_room(wanted, width)
        whole = max(least, min(longest_title, room))
        wanted = [replace(one, width=whole) if one.name == "title" else one for one in wanted]
    columns = fit_columns(wanted, width)
    by_name = {column.name: column.width for column in columns}
    lack = min(longest, MOST_NAME_WIDTH) - by_name["name"]
    taken = max(0, min(lack, by_name.get("levels", 0) - LEAST_LEVELS_WIDTH))
    other = {"name": taken, "levels": -taken}
    columns = tuple(replace(column, width=column.width + other.get(column.name, 0)) for column in columns)
    # A label without its last words reads better than one that ends in a word.
    return tuple(replace(one, cell=partial(short_title, one.width)) if one.name == "title" else one for one in columns)


def short_title(width: int, line: VariableLine) -> str:
    """Return the title of a variable in ``width`` cells, without its last words where it is longer."""
    return cut_words(line.variable.title, width)


def _title_room(wanted: Sequence[TableColumn[VariableLine]], width: int) -> int:
    """Return the cells of a title beside the columns that are never left out."""
    return width - grid_width([one for one in wanted if not one.drop_order]) - COLUMN_GAP


def whole_sheet_width(longest_title: int) -> int:
    """Return the cells of the grid in which every title, the longest of so many cells, is whole."""
    base = [column for column in COLUMNS if not column.drop_order]
    return grid_width(base) + COLUMN_GAP + longest_title


def row_values(line: VariableLine, found: ProfiledColumn | None) -> dict[str, object]:
    """Return the cells of a variable by column."""
    variable, profile = line.variable, found.profile if found else None
    missing = line.missing if found is None or found.missing is None else found.missing
    return {
        "mark": sign_for("fail") if column_problem(line, found) else "",
        "name": variable.name,
        "role": role_text(variable.role.value) if line.is_planned else LEFT_OUT,
        "kind": variable.kind.value,
        "missing": None if missing is None else f"{missing:.1%}",
        "distinct": None if profile is None else f"{profile.distinct:,}",
        "histogram": sparkline(profile.counts, SPARKLINE_WIDTH) if profile else "",
        "levels": _levels_text(variable, profile) if profile else "",
        "codes": value_text(variable.missing),
        "bounds": bounds_text(variable),
        "title": variable.title,
    }


def filter_fields(line: VariableLine) -> dict[str, object]:
    """Return the texts that filters search, which are known before any values are read."""
    variable = line.variable
    role = f"{variable.role.value} {role_text(variable.role.value)} {'' if line.is_planned else LEFT_OUT}"
    return {
        "variable": variable.name,
        "name": variable.name,
        "role": role,
        "kind": variable.kind.value,
        "label": variable.title,
        "codes": value_text(variable.missing),
    }


def column_problem(line: VariableLine, found: ProfiledColumn | None) -> str:
    """Return why a column cannot be read as the plan declares it; empty if it can, or is excluded."""
    return line.problem or (found.problem if found and line.is_planned else "")


def bounds_text(variable: Variable) -> str:
    """Return the bounds of a variable as text; an open end is empty."""
    if variable.bounds is None:
        return ""
    show = _date_text if variable.kind is Kind.DATE else number
    return " .. ".join("" if end is None else show(end) for end in variable.bounds)


def _levels_text(variable: Variable, profile: DistributionProfile) -> str:
    """Return the first levels that are not withheld; of numbers and dates the range of the middle nine tenths."""
    if profile.levels:
        # Levels with few records are withheld: their count is 0 here.
        shown = [level for level, count in zip(profile.levels, profile.counts, strict=True) if count]
        return ", ".join(variable.labels.get(level, level) for level in shown[:MOST_LISTED_LEVELS])
    if not profile.quantiles:
        return ""
    ends = (profile.quantiles[0][1], profile.quantiles[-1][1])
    return " .. ".join(_date_text(end) if variable.kind is Kind.DATE else number(end) for end in ends)


def sheet_summary(view: DataView, found: FoundByReading, marked: int, hidden: int) -> str:
    """Describe the data: the file, its records, and columns that are left out, have problems or are marked.

    The heading of the page has the number of columns.
    """
    out = sum(not line.is_planned for line in view.lines)
    wrong = sum(bool(column_problem(line, found.get(line.reading_key))) for line in view.lines)
    stored = view.stored
    misfits = f"{wrong} variable{'s do' if wrong > 1 else ' does'} not fit the plan"
    parts = [
        f"{sign_for('fail')} {view.problem}" if view.problem else "",
        f"{sign_for('fail')} {misfits}" if wrong else "",
        f"{marked} marked" + (f", {hidden} of them not shown" if hidden else "") if marked else "",
        f"{count_noun(len(view.lines) - out, 'variable')}, {out} left out" if out else "",
        f"{stored.name}: {records_and_dropped_text(stored.records, stored.dropped)}",
    ]
    return " · ".join(part for part in parts if part)


def variable_series(variable: Variable, profile: DistributionProfile) -> tuple[Series, dict[str, Any]]:
    """Return a bar for each bin or level, of many levels the most frequent ones, and the labels of the axis."""
    if not profile.levels:
        centres = [start + profile.width / 2 for start in profile.starts]
        return Series("records", centres, profile.counts, marker="bars"), {}
    order = range(len(profile.levels))
    if len(profile.levels) > MOST_BARS:
        # Hundreds of bars could not be told apart; the frequent levels say most.
        order = sorted(order, key=lambda i: -profile.counts[i])[:MOST_BARS]  # type: ignore[assignment]
    # A level of one or two records is withheld, and its name with it.
    names = [variable.labels.get(profile.levels[i], profile.levels[i]) if profile.counts[i] else "" for i in order]
    return Series("records", range(len(names)), [profile.counts[i] for i in order], marker="bars"), {"x_names": names}


def profile_texts(line: VariableLine, found: ProfiledColumn | None) -> tuple[str, str]:
    """Return two texts about a column: the problem or the number of values; quantiles or frequent levels."""
    problem, name = column_problem(line, found), line.variable.name
    profile = found.profile if found else None
    if problem:
        return f"{sign_for('fail')} {problem}", "" if profile is None else _quantiles_text(line.variable, profile)
    if profile is None:
        said = (
            "its values are being read"
            if line.is_stored
            else "its values are not stored: a run reads them from the file"
        )
        return f"{name}: {said}", ""
    withheld = (
        f"{count_noun(profile.n_withheld, 'bar')} of one or two records {agreeing_word(profile.n_withheld, 'is', 'are')} not shown"
        if profile.n_withheld
        else ""
    )
    counts = f"{name}: {count_noun(profile.records, 'record')}, {profile.distinct:,} different values"
    codes = f"missing: {value_text(line.variable.missing)}" if line.variable.missing else ""
    return " · ".join(part for part in (counts, codes, withheld) if part), _quantiles_text(line.variable, profile)


def whole_items(text: str, width: int) -> str:
    """Return a list of levels in ``width`` cells, without the last ones that do not fit; other texts unchanged."""
    parts = text.split("), ")
    tried = ("), ".join(parts[:most]) + ") …" for most in range(len(parts) - 1, 0, -1))
    return text if cell_len(text) <= width else next((one for one in tried if cell_len(one) <= width), text)


def whole_clauses(text: str, width: int | None) -> str:
    """Return a text in ``width`` cells, without the last of its clauses that do not fit; None for any width."""
    parts = text.split(" · ")
    tried = (" · ".join(parts[:most]) for most in range(len(parts), 0, -1))
    return text if width is None else next((one for one in tried if cell_len(one) <= width), text)


def _quantiles_text(variable: Variable, profile: DistributionProfile) -> str:
    """Return quantiles and moments; of levels the most frequent ones that are not withheld."""
    if profile.levels:
        order = sorted(range(len(profile.levels)), key=lambda i: -profile.counts[i])
        names = [
            variable.labels.get(profile.levels[i], profile.levels[i])
            for i in order[:MOST_FREQUENT_LEVELS]
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
    shares = [f"{p * 100:.0f} % {_date_text(q) if dated else number(q)}" for p, q in profile.quantiles]
    moments = "" if dated else f" · mean {number(profile.mean)}, sd {number(profile.sd)}"
    people = f"{survey_weight_text(profile.total, profile.design_effect)} · " if variable.role is Role.WEIGHT else ""
    return f"{people}{QUANTILES}{'  '.join(shares)}{moments}"


def aligned_quantiles(text: str) -> str:
    """Return quantiles and moments, as the line below a plot has them, with a line each and their values below each
    other; other texts unchanged.
    """
    head, mark, rest = text.rpartition(QUANTILES)
    if not mark:
        return text
    shares, _, moments = rest.partition(" · ")
    pairs = [one.rpartition(" ")[::2] for one in (*shares.split("  "), *filter(None, moments.split(", ")))]
    named = max(len(name) for name, _ in pairs)
    valued = max(len(value) for _, value in pairs)
    lead = " " * len(QUANTILES)
    rows = [f"{name:<{named}}  {value:>{valued}}" for name, value in pairs]
    lines = [f"{lead if place else QUANTILES}{row}" for place, row in enumerate(rows)]
    return "\n".join([*([head.removesuffix(" · ")] if head else []), *lines])


def _date_text(days: float) -> str:
    """Return the date of a number of days since 1970."""
    return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")
