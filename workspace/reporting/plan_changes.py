"""Changes from one plan to another in words that name variables and methods, for people who have not read the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import method_of_step
from sfumato.engine.recipe.difference import PlanDifference

from ..visible_text import replace_unprintable
from .recipe_difference import exact_text, step_settings_text, value_change_text


def differences_in_words(
    found: Sequence[PlanDifference], before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[str]:
    """Return differences by variable and method, a line for equal changes of several steps.

    ``before`` and ``now`` are the tables of the two plans. Example: ``hlthf, hlthp (Classification and regression
    trees): minbucket was 5, is 250``.
    """
    subjects: dict[tuple[str, str], list[str]] = {}
    for one in found:
        subject, kind = _subject_in_words(one, before, now)
        subjects.setdefault((kind, _change_in_words(one)), []).append(subject)
    return [
        replace_unprintable(
            f"{', '.join(filter(None, names))}{f' ({kind})' if kind and any(names) else kind}: {change}"
        )
        for (kind, change), names in subjects.items()
    ]


def _subject_in_words(one: PlanDifference, before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a difference is about, and by which method: a variable, a measured number, or a part of the plan."""
    if one.place is None:
        # a setting of a variable is about the variable
        name, _, rest = one.key.rpartition(".")
        return ("", f"variable {name}") if one.section == "variables" and rest and name else ("", one.section)
    step = (before if one.kind == "removed" else now).get(one.section, [])[one.place]
    target = exact_text(step["target"]) if step.get("target") else ""
    if one.section == "threshold":
        return target, f"limit on {measure_name(str(step.get('value', '')))}"
    method = method_of_step(one.section, str(step.get("method", "")))
    return target, method.title if method is not None else one.about


def _change_in_words(one: PlanDifference) -> str:
    """Return what a difference changes, with the values before and now."""
    if one.kind == "moved":
        return f"the order was {exact_text(one.before)}; it is {exact_text(one.now)}"
    if one.place is not None and not one.key:
        return f"{'new' if one.kind == 'added' else 'left out'}{step_settings_text(one)}"
    key = one.key.rpartition(".")[2] if one.section == "variables" else one.key
    name = key.replace("_", " ").replace(".", " ")
    if one.kind == "added":
        return f"{name} is now {exact_text(one.now)}, it was not set before".strip()
    if one.kind == "removed":
        return f"{name} {exact_text(one.before)} is left out".strip()
    return f"{name} {value_change_text(one.before, one.now)}".strip()
