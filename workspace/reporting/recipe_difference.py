"""Differences between two plans in words, and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from sfumato.engine.recipe.difference import NOTHING, STEPS, PlanDifference

from ..visible_text import replace_unprintable
from .tables import DisplayColumn, DisplayTable

NO_DIFFERENCE = "The two plans are the same"
LONGEST_VALUE = 200
"""Most characters of a value that are shown; values that differ only beyond them are marked so."""
COLUMNS = (
    DisplayColumn("where", "plan", 24, grow_order=1),
    DisplayColumn("setting", "setting", 16),
    DisplayColumn("before", "before", 18),
    DisplayColumn("now", "now", 18),
)


def difference_place(one: PlanDifference) -> str:
    """Return the step or the table in which plans differ: ``synthesis[1] price``, ``data``."""
    place = one.section if one.place is None else f"{one.section}[{one.place}]"
    return replace_unprintable(f"{place} {one.about}".strip())


def difference_sentence(one: PlanDifference) -> str:
    """Return a difference in one line, with every digit: ``synthesis[1] price: minbucket was 5, is 7``."""
    subject = f"{difference_place(one)}: " if one.place is not None or one.kind == "moved" else ""
    setting = one.key if one.place is not None else ".".join(filter(None, (one.section, one.key)))
    if one.kind == "moved":
        said = f"the order was {exact_text(one.before)}; it is {exact_text(one.now)}"
    elif not one.key and one.place is not None:
        said = f"{one.kind}{step_settings_text(one)}"
    elif one.kind == "added":
        said = f"{setting}: (not set) -> {exact_text(one.now)}"
    elif one.kind == "removed":
        said = f"{setting}: {exact_text(one.before)} -> (not set)"
    else:
        said = f"{setting} {value_change_text(one.before, one.now)}"
    return replace_unprintable(f"{subject}{said}")


def value_change_text(before: Any, now: Any) -> str:
    """Return the gained and lost items of similar lists, otherwise both values."""
    if isinstance(before, list) and isinstance(now, list):
        came, went = [one for one in now if one not in before], [one for one in before if one not in now]
        # with repeated items or another order, gained and lost items would not tell the whole difference
        unique = all(len(one) == len({repr(item) for item in one}) for one in (before, now))
        order = [one for one in before if one in now] == [one for one in now if one in before]
        if unique and order and len(came) + len(went) < max(len(before), len(now)):
            parts = [f"gains {exact_text(came)}" if came else "", f"loses {exact_text(went)}" if went else ""]
            return " and ".join(filter(None, parts))
    first, second = exact_text(before), exact_text(now)
    if first == second:
        return f"was {first}, and differs behind that"
    return f"was {first}, is {second}"


def step_settings_text(one: PlanDifference) -> str:
    """Return the settings of an added or removed step in brackets: `` (radius cost 5%, top 10)``."""
    step = one.now if one.kind == "added" else one.before
    told = ", ".join(f"{key} {exact_text(value)}" for key, value in step.items() if key not in STEPS[one.section])
    return f" ({told})" if told else ""


def exact_text(value: Any) -> str:
    """Return a value with every digit, cut where it is very long."""
    text = _spelled_value(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _spelled_value(value: Any) -> str:
    """Return a value with every digit; a text that could be overlooked in quotes."""
    if value is NOTHING:
        return "left out"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spelled_value(item)}" for key, item in value.items()) or "empty"
    if isinstance(value, list):
        return (
            ", ".join(f"[{_spelled_value(item)}]" if isinstance(item, list) else _spelled_value(item) for item in value)
            or "empty"
        )
    return f'"{value}"' if value == "" or (isinstance(value, str) and value != value.strip()) else str(value)


def difference_object(one: PlanDifference) -> dict[str, Any]:
    """Return the object that ``--json`` writes about a difference; a setting that a plan does not have is null."""
    before, now = (None if value is NOTHING else _json_value(value) for value in (one.before, one.now))
    return {"where": difference_place(one), "setting": one.key, "kind": one.kind, "before": before, "now": now}


def _json_value(value: Any) -> Any:
    """Return a value of TOML as a value of JSON."""
    if isinstance(value, Mapping):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    # JSON has no times and no infinity
    plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
    return value if plain else str(value)


def difference_cells(one: PlanDifference) -> tuple[str, str, str, str]:
    """Return the cells of a difference: place, setting, value before and value now."""
    whole = one.place is not None and not one.key
    setting = "order" if one.kind == "moved" else one.kind if whole else one.key
    before, now = (exact_text(value).strip() for value in (one.before, one.now))
    if whole:
        told = step_settings_text(one).strip(" ()")
        before, now = ("", told) if one.kind == "added" else (told, "")
    return difference_place(one), replace_unprintable(setting), replace_unprintable(before), replace_unprintable(now)


def difference_table(found: Sequence[PlanDifference], names: tuple[str, str], title: str = "") -> DisplayTable:
    """Return a line for each difference, with the plans' ``names`` as headings."""
    columns = (
        *COLUMNS[:2],
        *(DisplayColumn(c.name, name, c.width) for c, name in zip(COLUMNS[2:], names, strict=True)),
    )
    return DisplayTable(columns, [difference_cells(one) for one in found], title)
