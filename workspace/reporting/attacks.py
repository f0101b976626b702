"""Attacks on a release: attack, baseline, control and excess side by side, in one table and in few words.

What an attack gets right of the people says something only beside what it gets right of people whom the release has never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.engine.methods.outputs import ATTACK_PARTS
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row

from .tables import Cell, Column, Line, Table
from .words import NOTHING, Apart, interval, number, params_text, row_settings, settings_text, use_text

TITLE = "Attacks beside control records"
FULL = (
    "Attacks beside control records: how often guesses are right of the release's own records, of controls, whom it has never seen, and without it. "
    "The excess is (attack - control) / (1 - control): 0 where nothing is given away, 1 where every guess is right. Added is the excess less what it is without the release; p is the chance of as much without a leak."
)
COLUMNS = (
    Column("attack", "attack on"),
    Column("of", "of"),
    Column("dataset", "dataset"),
    Column("attack value", "attack", align="right"),
    Column("attack interval", "interval", page=True),
    Column("control value", "control", align="right"),
    Column("control interval", "interval", page=True),
    Column("baseline value", "baseline", align="right", spare=3),
    Column("baseline interval", "interval", page=True),
    Column("excess value", "excess", align="right"),
    Column("excess interval", "interval", spare=4),
    Column("detectable", "detectable", align="right", spare=4),
    Column("added value", "added", align="right", spare=5),
    Column("added interval", "interval", spare=4),
    Column("detectable added", "detectable added", align="right", spare=4),
    Column("guesses", "guesses", align="right", spare=2),
    Column("p", "p", align="right", spare=4),
    Column("with", "with", spare=1),
)
RATES = ("attack", "control", "baseline", "excess")
"""What has an interval beside it in every table of attacks."""
MOST_LINES = 4
"""Attacks that are said where there is little room."""


def is_of_attack(row: Row) -> bool:
    """Whether a row is a part of the result of an attack."""
    return row.family == "risk" and row.measure in ATTACK_PARTS


def attacks_in(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """The results of attacks: for each use, dataset and draw the rows by what they are, each with an excess."""
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        if is_of_attack(row):
            _, *series = row.series
            found.setdefault((row.method_key, *series, row.dataset, row.draw), {})[ATTACK_PARTS[row.measure]] = row
    return [parts for parts in found.values() if "excess" in parts]


def attack_table(rows: Iterable[Row], apart: Apart = NOTHING) -> Table | None:
    """Every attack on a line, of the confidential data as they are and of the release. None where there was none."""
    lines = [_line(parts, apart) for parts in attacks_in(rows)]
    return Table(COLUMNS, lines, TITLE, FULL) if lines else None


def _line(parts: Mapping[str, Row], apart: Apart) -> Line:
    row = parts["excess"]
    uses = apart.get(row.method_key, {})
    found: list[Cell | str] = [_title(row), _of(row, uses), row.dataset]
    for name in RATES:
        found += _with_interval(parts.get(name))
    found += [_number_of(parts, "detectable"), *_with_interval(parts.get("added"))]
    found += [_number_of(parts, name) for name in ("detectable_added", "guesses", "p")]
    reasons = dict.fromkeys(one.reason for one in parts.values() if one.reason)
    return [*found, Cell("; ".join(reasons), full="; ".join([*reasons, settings_text(row.params, uses)]))]


def _with_interval(row: Row | None) -> list[Cell | str]:
    """Return the cells of a value and of its interval; empty ones without a row."""
    if row is None:
        return ["", ""]
    return [Cell(_value(row), full=row.reason and f"{_value(row)}: {row.reason}"), _ends(row)]


def _number_of(parts: Mapping[str, Row], name: str) -> str:
    return number(parts[name].value) if name in parts else ""


def _title(row: Row) -> str:
    """The human name of the attack."""
    method = method_by_key(row.method_key)
    return row.method.replace("_", " ") if method is None else method.title


def _of(row: Row, uses: Mapping[str, Any]) -> str:
    return ", ".join(
        filter(None, (row.target, params_text(row_settings(row.method_key, row.params)), use_text(row.params, uses)))
    )


def _value(row: Row) -> str:
    return number(row.value) if row.value is not None else row.status


def _ends(row: Row) -> str:
    return interval(row.lower, row.upper)


def attack_lines(rows: Iterable[Row]) -> list[str]:
    """The attacks on a release in a line each, those of the largest excess first; how many more there are. Empty without any."""
    released = [parts for parts in attacks_in(rows) if parts["excess"].dataset != "confidential"]
    released.sort(key=lambda parts: -(parts["excess"].value if parts["excess"].value is not None else -2.0))
    lines = [_said(parts) for parts in released[:MOST_LINES]]
    more = len(released) - MOST_LINES
    return [*lines, *([f"and {more} more attacks"] if more > 0 else [])]


def _said(parts: Mapping[str, Row]) -> str:
    row = parts["excess"]
    name = ", ".join(filter(None, (_title(row), _of(row, {}))))
    ends = f" ({_ends(row)})" if row.lower is not None else ""
    rates = [f"{what} {_value(parts[what])}" for what in RATES if what in parts and what != "excess"]
    added = parts.get("added")
    told = f", added {_value(added)} ({_ends(added)})" if added is not None and added.value is not None else ""
    # the rates that the excess follows from stand beside it where a line is cut
    return f"{name}: excess {_value(row)}{ends}, {', '.join(rates)}{told}"


def attack_objects(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The attacks as JSON has them: a table each, of averages and of the confidential data as they are."""
    found = []
    for parts in attacks_in(row for row in rows if row.draw is None):
        row = parts["excess"]
        rates = {name: {"value": one.value, "lower": one.lower, "upper": one.upper, "reason": one.reason}
                 for name, one in parts.items() if name != "guesses"}  # fmt: skip
        head = {"method": row.method_key, "target": row.target, "dataset": row.dataset, "params": dict(row.params)}
        guesses = parts["guesses"].value if "guesses" in parts else None
        found.append({**head, **rates, "guesses": guesses})
    return found
