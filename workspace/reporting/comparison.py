"""Two runs side by side as tables: every number of both releases, what only one run has, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict, RunValue
from sfumato.engine.methods.labels import labels_of, measure_name
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import agreeing_word, count_noun

from .tables import Cell, Column, Table, outcome_cell
from .words import (
    FAMILIES,
    NOTHING,
    Apart,
    interval,
    limit_quantity,
    limit_text,
    method_of,
    number,
    observed_text,
    params_text,
    shortened,
    whole_name,
)

Runs = tuple[int, int]
NOTE = (
    "The difference is the second run's value minus the first's. Its interval is Welch's 95 % Monte Carlo interval over the\n"
    "datasets that each run drew, for each number by itself; where it covers 0 the runs are not distinguishable."
)


def outcome(row: ComparedNumber, runs: Runs) -> str:
    """``> run 5 better``: a sign and words, so that colour is never needed to tell."""
    if row.difference is None:
        return "? not computed"
    if row.difference == 0:
        return "= equal"
    if row.distinguishable is False:
        return "~ not distinguishable"
    unsure = "" if row.distinguishable else ", no interval"
    if row.better_run is None:
        return f"* they differ{unsure}"
    sign, run = ("<", runs[0]) if row.better_run == "first" else (">", runs[1])
    return f"{sign} run {run} better{unsure}"


def brief_outcome(row: ComparedNumber, runs: Runs) -> str:
    """``> run 5``, or the sign alone: ``outcome`` where there is little room, next to a tally that has the words."""
    said = outcome(row, runs)
    return said.partition(" better")[0] if said[0] in "<>" else said[0]


def tally(rows: Iterable[ComparedNumber], runs: Runs) -> str:
    """``24 numbers: 9 > run 5 better, 10 ~ not distinguishable``, the most frequent first."""
    counts = Counter(outcome(row, runs) for row in rows)
    parts = [f"{count} {words}" for words, count in counts.most_common()]
    return f"{counts.total()} numbers: {', '.join(parts)}" if parts else "The runs have no number in common"


def verdict_tally(rows: Sequence[ComparedVerdict]) -> str:
    """``6 thresholds: 5 have the same verdict in both runs, 1 has another in each``, and those that one run alone has."""
    both = [(row.first.outcome, row.second.outcome) for row in rows if row.first is not None and row.second is not None]
    alike = sum(first == second for first, second in both)
    counts = [
        (alike, agreeing_word(alike, "has", "have") + " the same verdict in both runs"),
        (len(both) - alike, agreeing_word(len(both) - alike, "has", "have") + " another in each"),
        (len(rows) - len(both), agreeing_word(len(rows) - len(both), "is", "are") + " of one run only"),
    ]
    parts = [f"{count} {words}" for count, words in counts if count]
    return f"{count_noun(len(rows), 'threshold')}: {', '.join(parts)}" if parts else "Neither run has thresholds"


def difference_text(runs: Runs) -> str:
    """``run 5 - run 3``: which difference is meant."""
    return f"run {runs[1]} - run {runs[0]}"


def number_columns(runs: Runs) -> tuple[Column, ...]:
    """The columns of compared numbers; ``page`` ones have no room beside the others."""
    return (
        Column("name", "number", 28, grows=1),
        Column("confidential", "confidential", 12, "right", spare=2),
        *(Column(f"run {run}", f"run {run}", 9, "right") for run in runs),
        Column("difference", difference_text(runs), max(10, len(difference_text(runs))), "right", spare=3),
        Column("interval", "95 % interval", 21, spare=1),
        Column("better", "better", 22),
    )


def number_cells(row: ComparedNumber, runs: Runs, name: str = "") -> tuple[str, ...]:
    """A compared number's cells by column; ``name`` is that of ``names_in``."""
    return (
        name,
        confidential_text(row),
        *(number(side.value if side else None) for side in (row.first, row.second)),
        number(row.difference),
        interval(row.lower, row.upper),
        outcome(row, runs),
    )


def compared_table(title: str, rows: Sequence[ComparedNumber], runs: Runs, apart: Apart = NOTHING) -> Table:
    """One line a number, with its baselines and parameters; what every line would say of these stands beside the title."""
    named = [params_text(row.params, apart.get(method_of(row.key), {})) for row in rows]
    shared = named[0] if len(set(named)) == 1 else ""
    shown = [column for column in number_columns(runs) if column.name != "name"]
    head = (Column("measure", "measure"), Column("target", "variable"), Column("level", "level", align="right"))
    columns = (
        *head, *shown[:3], Column("baseline", "baseline", align="right", spare=4), *shown[3:], Column("with", "with", spare=5),
    )  # fmt: skip
    lines = []
    for row, params in zip(rows, named, strict=True):
        cells = number_cells(row, runs)[1:]
        level = "" if row.level is None else number(row.level)
        said = "; ".join(filter(None, ("" if shared else params, row.reason)))
        lines.append([measure_name(row.key), row.target, level, *cells[:3], _baselines(row), *cells[3:], said])
    return Table(columns, lines, f"{title} ({shared})" if shared else title)


def compared_tables(rows: Sequence[ComparedNumber], runs: Runs, apart: Apart = NOTHING) -> list[Table]:
    """A table for every family that both runs have numbers of."""
    found = [(title, [row for row in rows if row.key.startswith(f"{key}.")]) for key, title in FAMILIES.items()]
    return [compared_table(title, own, runs, apart) for title, own in found if own]


def confidential_text(row: ComparedNumber) -> str:
    """The confidential data's own value; both where the runs do not agree on it."""
    return _one_or_both(row, lambda side: side.confidential)


def _baselines(row: ComparedNumber) -> str:
    """The baselines where they are not the confidential value over again."""
    return _one_or_both(row, lambda side: None if side.baseline == side.confidential else side.baseline)


def _one_or_both(row: ComparedNumber, of: Callable[[RunValue], float | None]) -> str:
    values = [of(side) for side in (row.first, row.second) if side is not None]
    shown = [number(value) for value in values if value is not None]
    return " / ".join(dict.fromkeys(shown))


def names_in(room: int, rows: Sequence[ComparedNumber | ComparedVerdict], apart: Apart = NOTHING) -> list[str]:
    """A human name in ``room`` cells for every row of a list, no two alike: settings where rows differ in them, limits where those alone do."""
    full = [replace(row, params={**apart.get(method_of(row.key), {}), **(row.params or {})}) for row in rows]
    names = labels_of(full)
    times = Counter(names)
    whole = [
        f"{name} ({limits_text(row)})" if times[name] > 1 and isinstance(row, ComparedVerdict) else name
        for name, row in zip(names, rows, strict=True)
    ]
    short = shortened(whole, room)
    return [short[name] for name in whole]


ONLY = (
    Column("run", "run", 4, "right"),
    Column("name", "number", 40, grows=1),
    Column("value", "value", 10, "right"),
)


def only_cells(row: ComparedNumber, place: int, run: int, apart: Apart = NOTHING) -> tuple[str, str, str]:
    """What one run alone has, by column."""
    return str(run), whole_name(row, apart), _value(row, place)


def only_lines(rows: Sequence[ComparedNumber], place: int, apart: Apart = NOTHING) -> list[str]:
    """A line for every number that one run alone has."""
    return [f"{whole_name(row, apart)} = {_value(row, place)}" for row in rows]


def _value(row: ComparedNumber, place: int) -> str:
    side = (row.first, row.second)[place]
    return number(side.value if side else None)


def verdict_columns(runs: Runs) -> tuple[Column, ...]:
    """The columns of compared verdicts."""
    sides = [
        (Column(f"run {run}", f"run {run}", 14), Column(f"{run} observed", "observed", 9, "right", spare=spare))
        for spare, run in enumerate(runs, start=1)
    ]
    head = (Column("name", "number", 26, grows=1), Column("limit", "limit", 18, spare=3))
    return *head, *sides[0], *sides[1]


def verdict_cells(verdict: ComparedVerdict, name: str = "") -> tuple[Cell | str, ...]:
    """A compared verdict's cells by column; ``name`` is that of ``names_in``."""
    sides = [cell for side in (verdict.first, verdict.second) for cell in _side(side)]
    return name, limits_text(verdict), *sides


def _side(verdict: Verdict | None) -> tuple[Cell | str, str]:
    if verdict is None:
        return "no threshold", ""
    return outcome_cell(verdict.outcome), observed_text(verdict)


def verdicts_table(verdicts: Sequence[ComparedVerdict], runs: Runs, apart: Apart = NOTHING) -> Table:
    """One line a threshold, the two runs' outcomes side by side."""
    lines = []
    for verdict, name in zip(verdicts, labels_of(verdicts), strict=True):
        _, *cells = verdict_cells(verdict)
        lines.append([Cell(name, full=whole_name(verdict, apart)), *cells])
    return Table(verdict_columns(runs), lines, "Verdicts")


def limits_text(verdict: ComparedVerdict) -> str:
    """The limit; both where the runs' limits differ."""
    limits = dict.fromkeys(
        limit_quantity(verdict.bound, side.limit, verdict.value) for side in (verdict.first, verdict.second) if side
    )
    return limit_text(verdict.bound, " / ".join(limits), verdict.value)
