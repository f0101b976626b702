"""Comparison of two runs as tables: numbers of both runs, numbers of one run only, and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict, RunValue
from sfumato.engine.methods.labels import labels_of, measure_name, method_and_output
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import agreeing_word, count_noun, format_percent

from .tables import DisplayCell, DisplayColumn, DisplayTable, outcome_cell
from .words import (
    FAMILY_HEADINGS,
    NO_SETTINGS,
    SettingsByMethod,
    full_row_name,
    interval_text,
    limit_quantity,
    limit_text,
    method_key_of_measure,
    number,
    observed_text,
    params_text,
    shorten_names,
    unit_interval_text,
)

RunNumbers = tuple[int, int]
NOTE = (
    "The difference is the second run's value minus the first's. Its interval is Welch's 95 % Monte Carlo interval over the\n"
    "datasets that each run drew, for each number by itself; where it covers 0 the runs are not distinguishable."
)


def difference_outcome(row: ComparedNumber, runs: RunNumbers) -> str:
    """Return which run is better, with a sign, so that no colour is needed: ``> run 5 better``."""
    if row.difference is None:
        return "? not computed"
    if row.difference == 0:
        return "= equal"
    if row.distinguishable is False:
        return "~ not distinguishable"
    # None, unlike False: there is no interval by which to distinguish the runs
    unsure = "" if row.distinguishable else ", no interval"
    if row.better_run is None:
        return f"* they differ{unsure}"
    sign, run = ("<", runs[0]) if row.better_run == "first" else (">", runs[1])
    return f"{sign} run {run} better{unsure}"


def brief_difference_outcome(row: ComparedNumber, runs: RunNumbers) -> str:
    """Return which run is better in few cells: ``> run 5``, or the sign alone where neither is."""
    said = difference_outcome(row, runs)
    return said.partition(" better")[0] if said[0] in "<>" else said[0]


def outcome_counts_text(rows: Iterable[ComparedNumber], runs: RunNumbers) -> str:
    """Return the outcomes by frequency: ``24 numbers: 9 > run 5 better, 10 ~ not distinguishable``."""
    counts = Counter(difference_outcome(row, runs) for row in rows)
    parts = [f"{count} {words}" for words, count in counts.most_common()]
    return f"{counts.total()} numbers: {', '.join(parts)}" if parts else "The runs have no number in common"


def verdict_counts_text(rows: Sequence[ComparedVerdict]) -> str:
    """Return how many verdicts agree: ``6 thresholds: 5 have the same verdict in both runs, 1 has another ...``."""
    both = [(row.first.outcome, row.second.outcome) for row in rows if row.first is not None and row.second is not None]
    alike = sum(first == second for first, second in both)
    counts = [
        (alike, agreeing_word(alike, "has", "have") + " the same verdict in both runs"),
        (len(both) - alike, agreeing_word(len(both) - alike, "has", "have") + " another in each"),
        (len(rows) - len(both), agreeing_word(len(rows) - len(both), "is", "are") + " of one run only"),
    ]
    parts = [f"{count} {words}" for count, words in counts if count]
    return f"{count_noun(len(rows), 'threshold')}: {', '.join(parts)}" if parts else "Neither run has thresholds"


def difference_heading(runs: RunNumbers) -> str:
    """Return the heading that shows the direction of differences: ``run 5 - run 3``."""
    return f"run {runs[1]} - run {runs[0]}"


def compared_number_columns(runs: RunNumbers) -> tuple[DisplayColumn, ...]:
    """Return the columns of the table of compared numbers."""
    return (
        DisplayColumn("name", "number", 28, grow_order=1),
        DisplayColumn("confidential", "confidential", 12, "right", drop_order=2),
        *(DisplayColumn(f"run {run}", f"run {run}", 9, "right") for run in runs),
        DisplayColumn(
            "difference", difference_heading(runs), max(10, len(difference_heading(runs))), "right", drop_order=3
        ),
        DisplayColumn("interval", "95 % interval", 21, drop_order=1),
        DisplayColumn("better", "better", 22),
    )


def compared_number_cells(row: ComparedNumber, runs: RunNumbers, name: str = "") -> tuple[str, ...]:
    """Return the cells of a compared number by column; ``name`` comes from ``shortened_row_names``."""
    return (
        name,
        confidential_values_text(row),
        *(compared_value_text(row, side.value if side else None) for side in (row.first, row.second)),
        difference_text(row),
        difference_interval_text(row),
        difference_outcome(row, runs),
    )


def compared_value_text(row: ComparedNumber, value: float | None) -> str:
    """Return a value of a compared number: in per cent where it is a share, as all tables have it; a dash for none."""
    return format_percent(value) if value is not None and _is_share(row) else number(value)


def difference_text(row: ComparedNumber) -> str:
    """Return the difference of two runs: of shares in percentage points, ``-1.3 points``."""
    if row.difference is None or not _is_share(row):
        return number(row.difference)
    return f"{format_percent(row.difference).removesuffix(' %')} points"


def difference_interval_text(row: ComparedNumber) -> str:
    """Return the interval of a difference in its unit: ``-2.1 .. -0.4 points``; empty without one."""
    if not _is_share(row) or not interval_text(row.lower, row.upper):
        return interval_text(row.lower, row.upper)
    assert row.lower is not None
    return unit_interval_text(row.lower, row.upper, in_percent=True).replace(" %", " points")


def _is_share(row: ComparedNumber) -> bool:
    """Return whether the values of a compared number are shares."""
    return row.unit == "share" or method_and_output(row.key)[1].in_percent


def comparison_table(
    title: str, rows: Sequence[ComparedNumber], runs: RunNumbers, apart: SettingsByMethod = NO_SETTINGS
) -> DisplayTable:
    """Return a line for each compared number; parameters that all lines share are in the title."""
    named = [params_text(row.params, apart.get(method_key_of_measure(row.key), {})) for row in rows]
    shared = named[0] if len(set(named)) == 1 else ""
    shown = [column for column in compared_number_columns(runs) if column.name != "name"]
    head = (
        DisplayColumn("measure", "measure"),
        DisplayColumn("target", "variable"),
        DisplayColumn("level", "level", align="right"),
    )
    columns = (
        *head, *shown[:3], DisplayColumn("baseline", "baseline", align="right", drop_order=4), *shown[3:], DisplayColumn("with", "with", drop_order=5),
    )  # fmt: skip
    lines = []
    for row, params in zip(rows, named, strict=True):
        cells = compared_number_cells(row, runs)[1:]
        level = "" if row.level is None else number(row.level)
        said = "; ".join(filter(None, ("" if shared else params, row.reason)))
        lines.append([measure_name(row.key), row.target, level, *cells[:3], _baselines_text(row), *cells[3:], said])
    return DisplayTable(columns, lines, f"{title} ({shared})" if shared else title)


def comparison_tables(
    rows: Sequence[ComparedNumber], runs: RunNumbers, apart: SettingsByMethod = NO_SETTINGS
) -> list[DisplayTable]:
    """Return a table for each family of measures of which both runs have numbers."""
    found = [(title, [row for row in rows if row.key.startswith(f"{key}.")]) for key, title in FAMILY_HEADINGS.items()]
    return [comparison_table(title, own, runs, apart) for title, own in found if own]


def confidential_values_text(row: ComparedNumber) -> str:
    """Return the value of the confidential data; both values where the runs do not agree."""
    return _side_values_text(row, lambda side: side.confidential)


def _baselines_text(row: ComparedNumber) -> str:
    """Return the baselines of both runs, without those that equal the confidential value."""
    # the confidential value has a column of its own
    return _side_values_text(row, lambda side: None if side.baseline == side.confidential else side.baseline)


def _side_values_text(row: ComparedNumber, of: Callable[[RunValue], float | None]) -> str:
    """Return a value of both runs, once where they agree: ``0.2 / 0.3``."""
    values = [of(side) for side in (row.first, row.second) if side is not None]
    shown = [compared_value_text(row, value) for value in values if value is not None]
    return " / ".join(dict.fromkeys(shown))


def shortened_row_names(
    room: int, rows: Sequence[ComparedNumber | ComparedVerdict], apart: SettingsByMethod = NO_SETTINGS
) -> list[str]:
    """Return a human name of at most ``room`` cells for each row, all different.

    Settings are added where rows differ in them, limits where only these differ.
    """
    full = [
        replace(row, params={**apart.get(method_key_of_measure(row.key), {}), **(row.params or {})}) for row in rows
    ]
    names = labels_of(full)
    times = Counter(names)
    # thresholds of one number that differ in their limits only would have one name
    whole = [
        f"{name} ({compared_limits_text(row)})" if times[name] > 1 and isinstance(row, ComparedVerdict) else name
        for name, row in zip(names, rows, strict=True)
    ]
    short = shorten_names(whole, room)
    return [short[name] for name in whole]


SINGLE_RUN_COLUMNS = (
    DisplayColumn("run", "run", 4, "right"),
    DisplayColumn("name", "number", 40, grow_order=1),
    DisplayColumn("value", "value", 10, "right"),
)


def single_run_cells(
    row: ComparedNumber, place: int, run: int, apart: SettingsByMethod = NO_SETTINGS
) -> tuple[str, str, str]:
    """Return the cells of a number that only one run has."""
    return str(run), full_row_name(row, apart), _side_value_text(row, place)


def single_run_lines(rows: Sequence[ComparedNumber], place: int, apart: SettingsByMethod = NO_SETTINGS) -> list[str]:
    """Return a line for each number that only one run has."""
    return [f"{full_row_name(row, apart)} = {_side_value_text(row, place)}" for row in rows]


def _side_value_text(row: ComparedNumber, place: int) -> str:
    """Return the value of one of the two runs."""
    side = (row.first, row.second)[place]
    return compared_value_text(row, side.value if side else None)


def compared_verdict_columns(runs: RunNumbers) -> tuple[DisplayColumn, ...]:
    """Return the columns of compared verdicts."""
    sides = [
        (
            DisplayColumn(f"run {run}", f"run {run}", 14),
            DisplayColumn(f"{run} observed", "observed", 9, "right", drop_order=spare),
        )
        for spare, run in enumerate(runs, start=1)
    ]
    head = (DisplayColumn("name", "number", 26, grow_order=1), DisplayColumn("limit", "limit", 18, drop_order=3))
    return *head, *sides[0], *sides[1]


def compared_verdict_cells(verdict: ComparedVerdict, name: str = "") -> tuple[DisplayCell | str, ...]:
    """Return the cells of a compared verdict by column; ``name`` comes from ``shortened_row_names``."""
    sides = [cell for side in (verdict.first, verdict.second) for cell in _verdict_side_cells(side)]
    return name, compared_limits_text(verdict), *sides


def _verdict_side_cells(verdict: Verdict | None) -> tuple[DisplayCell | str, str]:
    """Return the outcome and the observed value of one run's verdict."""
    if verdict is None:
        return "no threshold", ""
    return outcome_cell(verdict.outcome), observed_text(verdict)


def compared_verdicts_table(
    verdicts: Sequence[ComparedVerdict], runs: RunNumbers, apart: SettingsByMethod = NO_SETTINGS
) -> DisplayTable:
    """Return a line for each threshold, with the outcomes of both runs side by side."""
    lines = []
    for verdict, name in zip(verdicts, labels_of(verdicts), strict=True):
        _, *cells = compared_verdict_cells(verdict)
        lines.append([DisplayCell(name, full_text=full_row_name(verdict, apart)), *cells])
    return DisplayTable(compared_verdict_columns(runs), lines, "Verdicts")


def compared_limits_text(verdict: ComparedVerdict) -> str:
    """Return the limit of a threshold in words; both limits where the runs have different ones."""
    limits = dict.fromkeys(
        limit_quantity(verdict.bound, side.limit, verdict.value) for side in (verdict.first, verdict.second) if side
    )
    return limit_text(verdict.bound, " / ".join(limits), verdict.value)
