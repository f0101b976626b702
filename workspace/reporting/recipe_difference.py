"""What differs between two plans in words, and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from sfumato.engine.recipe.difference import NOTHING, STEPS, PlanDifference

from ..visible_text import replace_unprintable
from .tables import Column, Table

SAME = "The two plans are the same"
LONGEST = 200
"""Of a value so many characters are shown; two that differ only beyond them are said to."""
COLUMNS = (
    Column("where", "plan", 24, grows=1),
    Column("setting", "setting", 16),
    Column("before", "before", 18),
    Column("now", "now", 18),
)


def where(one: PlanDifference) -> str:
    """``synthesis[1] price``, ``data``: the step or the table that differs."""
    place = one.section if one.place is None else f"{one.section}[{one.place}]"
    return replace_unprintable(f"{place} {one.about}".strip())


def sentence(one: PlanDifference) -> str:
    """``synthesis[1] price: minbucket was 5, is 7``; one line, exact to the last digit."""
    subject = f"{where(one)}: " if one.place is not None or one.kind == "moved" else ""
    setting = one.key if one.place is not None else ".".join(filter(None, (one.section, one.key)))
    if one.kind == "moved":
        said = f"the order was {exact(one.before)}; it is {exact(one.now)}"
    elif not one.key and one.place is not None:
        said = f"{one.kind}{settings(one)}"
    elif one.kind == "added":
        said = f"{setting}: (not set) -> {exact(one.now)}"
    elif one.kind == "removed":
        said = f"{setting}: {exact(one.before)} -> (not set)"
    else:
        said = f"{setting} {_moved(one.before, one.now)}"
    return replace_unprintable(f"{subject}{said}")


def _moved(before: Any, now: Any) -> str:
    """What came and went, of lists that have much in common; else both values."""
    if isinstance(before, list) and isinstance(now, list):
        came, went = [one for one in now if one not in before], [one for one in before if one not in now]
        unique = all(len(one) == len({repr(item) for item in one}) for one in (before, now))
        order = [one for one in before if one in now] == [one for one in now if one in before]
        if unique and order and len(came) + len(went) < max(len(before), len(now)):
            parts = [f"gains {exact(came)}" if came else "", f"loses {exact(went)}" if went else ""]
            return " and ".join(filter(None, parts))
    first, second = exact(before), exact(now)
    if first == second:
        return f"was {first}, and differs behind that"
    return f"was {first}, is {second}"


def settings(one: PlanDifference) -> str:
    """`` (radius cost 5%, top 10)``: the settings of a step that is new or gone, beside what it is about."""
    step = one.now if one.kind == "added" else one.before
    told = ", ".join(f"{key} {exact(value)}" for key, value in step.items() if key not in STEPS[one.section])
    return f" ({told})" if told else ""


def exact(value: Any) -> str:
    """A value with every digit, so that two that differ look different; cut where it is very long."""
    text = _spelled(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _spelled(value: Any) -> str:
    if value is NOTHING:
        return "left out"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spelled(item)}" for key, item in value.items()) or "empty"
    if isinstance(value, list):
        return (
            ", ".join(f"[{_spelled(item)}]" if isinstance(item, list) else _spelled(item) for item in value) or "empty"
        )
    return f'"{value}"' if value == "" or (isinstance(value, str) and value != value.strip()) else str(value)


def difference_object(one: PlanDifference) -> dict[str, Any]:
    """The object that ``--json`` writes; what a plan leaves out is null, and ``kind`` says which one does."""
    before, now = (None if value is NOTHING else _json(value) for value in (one.before, one.now))
    return {"where": where(one), "setting": one.key, "kind": one.kind, "before": before, "now": now}


def _json(value: Any) -> Any:
    """A value of TOML as one of JSON, which has no times and no infinity."""
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    plain = value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
    return value if plain else str(value)


def difference_cells(one: PlanDifference) -> tuple[str, str, str, str]:
    """Where, which setting, and its value before and now."""
    whole = one.place is not None and not one.key
    setting = "order" if one.kind == "moved" else one.kind if whole else one.key
    before, now = (exact(value).strip() for value in (one.before, one.now))
    if whole:
        told = settings(one).strip(" ()")
        before, now = ("", told) if one.kind == "added" else (told, "")
    return where(one), replace_unprintable(setting), replace_unprintable(before), replace_unprintable(now)


def difference_table(found: Sequence[PlanDifference], names: tuple[str, str], title: str = "") -> Table:
    """One line a difference, the plans called by their ``names``."""
    columns = (*COLUMNS[:2], *(Column(c.name, name, c.width) for c, name in zip(COLUMNS[2:], names, strict=True)))
    return Table(columns, [difference_cells(one) for one in found], title)
