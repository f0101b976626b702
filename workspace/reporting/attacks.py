"""Results of attacks on a release as a table: attack, control, baseline and excess side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.engine.methods.outputs import ATTACK_PARTS
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row

from .tables import DisplayCell, DisplayColumn, DisplayRow, DisplayTable
from .words import (
    NO_SETTINGS,
    SettingsByMethod,
    method_use_text,
    params_text,
    row_interval_text,
    row_settings,
    row_value_text,
    settings_text,
)

TITLE = "Attacks beside control records"
FULL_TITLE = (
    "Attacks beside control records: how often guesses are right of the release's own records, of controls, whom it has never seen, and without it. "
    "The excess is (attack - control) / (1 - control): 0 where nothing is disclosed, 1 where every guess is right. Added is the excess less what it is without the release; p is the chance of as much without a leak."
)
COLUMNS = (
    DisplayColumn("attack", "attack on"),
    DisplayColumn("of", "of"),
    DisplayColumn("dataset", "dataset"),
    DisplayColumn("attack value", "attack", align="right"),
    DisplayColumn("attack interval", "interval", page_only=True),
    DisplayColumn("control value", "control", align="right"),
    DisplayColumn("control interval", "interval", page_only=True),
    DisplayColumn("baseline value", "baseline", align="right", drop_order=3),
    DisplayColumn("baseline interval", "interval", page_only=True),
    DisplayColumn("excess value", "excess", align="right"),
    DisplayColumn("excess interval", "interval", drop_order=4),
    DisplayColumn("detectable", "detectable", align="right", drop_order=4),
    DisplayColumn("added value", "added", align="right", drop_order=5),
    DisplayColumn("added interval", "interval", drop_order=4),
    DisplayColumn("detectable added", "detectable added", align="right", drop_order=4),
    DisplayColumn("guesses", "guesses", align="right", drop_order=2),
    DisplayColumn("p", "p", align="right", drop_order=4),
    DisplayColumn("with", "with", drop_order=1),
)
PARTS_WITH_INTERVAL = ("attack", "control", "baseline", "excess")
"""Parts of an attack that have a column for their interval, in the order of display."""


def is_attack_row(row: Row) -> bool:
    """Return whether a row is one of the parts of an attack's result."""
    return row.family == "risk" and row.measure in ATTACK_PARTS


def group_attack_rows(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """Group the rows of attacks by use, dataset and draw; groups without an excess are left out.

    Each group maps a part (``attack``, ``control``, ``baseline``, ``excess`` and others of ``ATTACK_PARTS``) to its
    row.
    """
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        if is_attack_row(row):
            # the series without the measure is the same for all parts of an attack
            _, *series = row.series
            found.setdefault((row.method_key, *series, row.dataset, row.draw), {})[ATTACK_PARTS[row.measure]] = row
    return [parts for parts in found.values() if "excess" in parts]


def attack_table(rows: Iterable[Row], apart: SettingsByMethod = NO_SETTINGS) -> DisplayTable | None:
    """Return a table with a line for each attack, on the confidential data and on the release; None without attacks."""
    lines = [_attack_line(parts, apart) for parts in group_attack_rows(rows)]
    return DisplayTable(COLUMNS, lines, TITLE, FULL_TITLE) if lines else None


def _attack_line(parts: Mapping[str, Row], apart: SettingsByMethod) -> DisplayRow:
    """Return the cells of an attack, by the columns of the table."""
    row = parts["excess"]
    uses = apart.get(row.method_key, {})
    found: list[DisplayCell | str] = [_attack_title(row), _attack_subject(row, uses), row.dataset]
    for name in PARTS_WITH_INTERVAL:
        found += _value_and_interval_cells(parts.get(name))
    found += [_part_number(parts, "detectable"), *_value_and_interval_cells(parts.get("added"))]
    found += [_part_number(parts, name) for name in ("detectable_added", "guesses", "p")]
    reasons = dict.fromkeys(one.reason for one in parts.values() if one.reason)
    return [*found, DisplayCell("; ".join(reasons), full_text="; ".join([*reasons, settings_text(row.params, uses)]))]


def _value_and_interval_cells(row: Row | None) -> list[DisplayCell | str]:
    """Return the cells of a value and of its interval; empty cells without a row."""
    if row is None:
        return ["", ""]
    return [
        DisplayCell(_value_or_status(row), full_text=row.reason and f"{_value_or_status(row)}: {row.reason}"),
        _row_interval(row),
    ]


def _part_number(parts: Mapping[str, Row], name: str) -> str:
    """Return the value of a part as text; empty where the attack does not have the part."""
    return _value_or_status(parts[name]) if name in parts else ""


def _attack_title(row: Row) -> str:
    """Return the title of the attack's method."""
    method = method_by_key(row.method_key)
    return row.method.replace("_", " ") if method is None else method.title


def _attack_subject(row: Row, uses: Mapping[str, Any]) -> str:
    """Return the variable and the settings by which one use of an attack differs from others."""
    return ", ".join(
        filter(
            None, (row.target, params_text(row_settings(row.method_key, row.params)), method_use_text(row.params, uses))
        )
    )


def _value_or_status(row: Row) -> str:
    """Return the value as text, or the status in place of a missing one."""
    return row_value_text(row)


def _row_interval(row: Row) -> str:
    """Return the interval of a row as text."""
    return row_interval_text(row)


def attack_objects(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the objects that ``--json`` writes, one for each attack on the confidential data or the average release."""
    found = []
    for parts in group_attack_rows(row for row in rows if row.draw is None):
        row = parts["excess"]
        rates = {name: {"value": one.value, "lower": one.lower, "upper": one.upper, "reason": one.reason}
                 for name, one in parts.items() if name != "guesses"}  # fmt: skip
        head = {"method": row.method_key, "target": row.target, "dataset": row.dataset, "params": dict(row.params)}
        guesses = parts["guesses"].value if "guesses" in parts else None
        found.append({**head, **rates, "guesses": guesses})
    return found
