"""Two runs side by side as tables: every number of both releases, what only one run has, and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sfumato.engine.execution.comparison import Compared, ComparedVerdict, Side
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import agree, counted

from .tables import Cell, Column, Table, outcome_cell
from .words import (
    FAMILIES,
    NOTHING,
    Apart,
    interval,
    limit_text,
    measured,
    method_of,
    name_of,
    names_of,
    number,
    params_text,
)

Runs = tuple[int, int]
LEAST_OF_NAME = 6
"""Letters of a measure that are left where what tells it from others takes the room."""
NOTE = (
    "The difference is the second run's value minus the first's. Its interval is Welch's 95 % Monte Carlo interval over the\n"
    "datasets that each run drew, for each number by itself; where it covers 0 the runs are not distinguishable."
)


def outcome(row: Compared, runs: Runs) -> str:
    """``> run 5 better``: a sign and words, so that colour is never needed to tell."""
    if row.difference is None:
        return "? not computed"
    if row.difference == 0:
        return "= equal"
    if row.distinguishable is False:
        return "~ not distinguishable"
    unsure = "" if row.distinguishable else ", no interval"
    if row.better is None:
        return f"* they differ{unsure}"
    sign, run = ("<", runs[0]) if row.better == "first" else (">", runs[1])
    return f"{sign} run {run} better{unsure}"


def tally(rows: Iterable[Compared], runs: Runs) -> str:
    """``24 numbers: 9 > run 5 better, 10 ~ not distinguishable``, the most frequent first."""
    counts = Counter(outcome(row, runs) for row in rows)
    parts = [f"{count} {words}" for words, count in counts.most_common()]
    return f"{counts.total()} numbers: {', '.join(parts)}" if parts else "The runs have no number in common"


def verdict_tally(rows: Sequence[ComparedVerdict]) -> str:
    """``6 thresholds: 5 have the same verdict in both runs, 1 has another in each``, and those that one run alone has."""
    both = [(row.first.outcome, row.second.outcome) for row in rows if row.first is not None and row.second is not None]
    alike = sum(first == second for first, second in both)
    counts = [
        (alike, agree(alike, "has", "have") + " the same verdict in both runs"),
        (len(both) - alike, agree(len(both) - alike, "has", "have") + " another in each"),
        (len(rows) - len(both), agree(len(rows) - len(both), "is", "are") + " of one run only"),
    ]
    parts = [f"{count} {words}" for count, words in counts if count]
    return f"{counted(len(rows), 'threshold')}: {', '.join(parts)}" if parts else "Neither run has thresholds"


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


def number_cells(row: Compared, runs: Runs, name: str = "") -> tuple[str, ...]:
    """A compared number's cells by column; ``name`` is that of ``names_in``."""
    return (
        name,
        confidential_text(row),
        *(number(side.value if side else None) for side in (row.first, row.second)),
        number(row.difference),
        interval(row.lower, row.upper),
        outcome(row, runs),
    )


def compared_table(title: str, rows: Sequence[Compared], runs: Runs, apart: Apart = NOTHING) -> Table:
    """One line a number, with its baselines and parameters; what every line would say of these stands beside the title."""
    named = [params_text(row.params, apart.get(method_of(row.key), {})) for row in rows]
    shared = named[0] if len(set(named)) == 1 else ""
    shown = [column for column in number_columns(runs) if column.name != "name"]
    head = (Column("measure", "measure"), Column("target", "variable"), Column("level", "S", align="right"))
    columns = (
        *head, *shown[:3], Column("baseline", "baseline", align="right", spare=4), *shown[3:], Column("with", "with", spare=5),
    )  # fmt: skip
    lines = []
    for row, params in zip(rows, named, strict=True):
        cells = number_cells(row, runs)[1:]
        level = "" if row.level is None else number(row.level)
        said = "; ".join(filter(None, ("" if shared else params, row.reason)))
        lines.append([row.key.partition(".")[2], row.target, level, *cells[:3], _baselines(row), *cells[3:], said])
    return Table(columns, lines, f"{title} ({shared})" if shared else title)


def compared_tables(rows: Sequence[Compared], runs: Runs, apart: Apart = NOTHING) -> list[Table]:
    """A table for every family that both runs have numbers of."""
    found = [(title, [row for row in rows if row.key.startswith(f"{key}.")]) for key, title in FAMILIES.items()]
    return [compared_table(title, own, runs, apart) for title, own in found if own]


def confidential_text(row: Compared) -> str:
    """The confidential data's own value; both where the runs do not agree on it."""
    return _one_or_both(row, lambda side: side.confidential)


def _baselines(row: Compared) -> str:
    """The baselines where they are not the confidential value over again."""
    return _one_or_both(row, lambda side: None if side.baseline == side.confidential else side.baseline)


def _one_or_both(row: Compared, of: Callable[[Side], float | None]) -> str:
    values = [of(side) for side in (row.first, row.second) if side is not None]
    shown = [number(value) for value in values if value is not None]
    return " / ".join(dict.fromkeys(shown))


def names_in(room: int, rows: Sequence[Compared | ComparedVerdict], apart: Apart) -> list[str]:
    """A name in ``room`` cells for every row of a list, no two alike where there is any room for it.

    With its family, else its method, else the measure alone, at last without parameters; where rows would then have one name, each
    has what it differs in from the others.
    """
    names = [_name_in(room, row, apart) for row in rows]
    alike: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        alike.setdefault(name, []).append(place)
    for places in alike.values():
        same = [rows[place] for place in places]
        for place, row, told in zip(places, same, _told_apart(same, apart), strict=True):
            names[place] = _name_with(room, row, told) if len(places) > 1 else names[place]
    return names


def _key(row: Compared | ComparedVerdict) -> str:
    return row.value if isinstance(row, ComparedVerdict) else row.key


def _name_in(room: int, row: Compared | ComparedVerdict, apart: Apart) -> str:
    own = {name: value for name, value in (row.params or {}).items() if name != "radius"}
    keys = names_of(_key(row))
    of = measured(row.target, own, apart.get(method_of(_key(row)), {}))
    names = [name_of(name, of, row.level) for name in keys] + [name_of(keys[-1], row.target, row.level)]
    return next((name for name in names if len(name) <= room), f"{names[-1][: room - 1]}…")


def _name_with(room: int, row: Compared | ComparedVerdict, told: str) -> str:
    """A name with what tells it from others, to which its measure gives way."""
    keys = names_of(_key(row))
    whole = [name_of(name, of, row.level) for name in keys for of in _several(row.target, told)]
    fitting = next((name for name in whole if len(name) <= room), None)
    bare = len(name_of("", "-", row.level)) - 1
    rest = name_of("", _without_middle(told, room - LEAST_OF_NAME - bare), row.level)
    return fitting or f"{keys[-1][: room - len(rest) - 1]}…{rest}"


def _without_middle(text: str, room: int) -> str:
    """A text in ``room`` letters, of which its beginning and its end are left: settings often differ in their ends."""
    room = max(LEAST_OF_NAME, room)
    return text if len(text) <= room else f"{text[: room // 2]}…{text[-(room - room // 2 - 1) :]}"


def _several(target: str, told: str) -> list[str]:
    """What stands in brackets, with the variable where there is room for it."""
    return [told] if not target or told.startswith(target) else [f"{target}, {told}", told]


def _told_apart(rows: Sequence[Compared | ComparedVerdict], apart: Apart) -> list[str]:
    """What each of several rows differs in from the others: variable, settings, at last the limit."""
    defaults = apart.get(method_of(_key(rows[0])), {})
    given = [{**defaults, **(row.params or {})} for row in rows]
    names = [name for name in dict.fromkeys(name for one in given for name in one) if _differ(given, name)]
    told = [[_setting(name, given, one) for name in names] for one in given]
    if len({row.target for row in rows}) > 1:
        told = [[row.target, *parts] for row, parts in zip(rows, told, strict=True)]
    texts = [", ".join(filter(None, parts)) for parts in told]
    if len(set(texts)) < len(rows):
        limits = [limits_text(row) if isinstance(row, ComparedVerdict) else "" for row in rows]
        texts = [", ".join(filter(None, both)) for both in zip(texts, limits, strict=True)]
    return texts


def _differ(tables: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(table.get(name) != tables[0].get(name) for table in tables)


def _setting(name: str, given: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> str:
    """A setting that differs; of one with a value for each variable, those that differ."""
    value = own.get(name)
    if value in (None, [], {}, ""):
        return f"{name} by default"
    if isinstance(value, Mapping):
        tables = [table.get(name) or {} for table in given]
        told = {key: one for key, one in value.items() if _differ(tables, key)}
        value = told or value
    return params_text({name: value}, {name: None})


ONLY = (
    Column("run", "run", 4, "right"),
    Column("name", "number", 40, grows=1),
    Column("value", "value", 10, "right"),
)


def only_cells(row: Compared, place: int, run: int, apart: Apart = NOTHING) -> tuple[str, str, str]:
    """What one run alone has, by column."""
    name, params, value = _only(row, place, apart)
    return str(run), f"{name} ({params})" if params else name, value


def only_lines(rows: Sequence[Compared], place: int, apart: Apart = NOTHING) -> list[str]:
    """A line for every number that one run alone has."""
    found = [_only(row, place, apart) for row in rows]
    return [f"{name} = {value}" + (f" ({params})" if params else "") for name, params, value in found]


def _only(row: Compared, place: int, apart: Apart) -> tuple[str, str, str]:
    side = (row.first, row.second)[place]
    params = params_text(row.params, apart.get(method_of(row.key), {}))
    return name_of(row.key, row.target, row.level), params, number(side.value if side else None)


def verdict_columns(runs: Runs) -> tuple[Column, ...]:
    """The columns of compared verdicts."""
    sides = [
        (Column(f"run {run}", f"run {run}", 14), Column(f"{run} observed", "observed", 9, "right", spare=spare))
        for spare, run in enumerate(runs, start=1)
    ]
    head = (Column("name", "threshold", 26, grows=1), Column("limit", "limit", 18, spare=3))
    return *head, *sides[0], *sides[1]


def verdict_cells(verdict: ComparedVerdict, name: str = "") -> tuple[Cell | str, ...]:
    """A compared verdict's cells by column; ``name`` is that of ``names_in``."""
    sides = [cell for side in (verdict.first, verdict.second) for cell in _side(side)]
    return name, limits_text(verdict), *sides


def _side(verdict: Verdict | None) -> tuple[Cell | str, str]:
    if verdict is None:
        return "no threshold", ""
    return outcome_cell(verdict.outcome), number(verdict.observed)


def verdicts_table(verdicts: Iterable[ComparedVerdict], runs: Runs, apart: Apart = NOTHING) -> Table:
    """One line a threshold, the two runs' outcomes side by side."""
    lines = []
    for verdict in verdicts:
        _, *cells = verdict_cells(verdict)
        params = params_text(verdict.params, apart.get(method_of(verdict.value), {}))
        lines.append([name_of(verdict.value, verdict.target, verdict.level), *cells, params])
    return Table([*verdict_columns(runs), Column("with", "with", spare=4)], lines, "Verdicts")


def limits_text(verdict: ComparedVerdict) -> str:
    """The limit; both where the runs' limits differ."""
    limits = dict.fromkeys(number(side.limit) for side in (verdict.first, verdict.second) if side)
    return limit_text(verdict.bound, " / ".join(limits), verdict.value)
