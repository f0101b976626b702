"""Levers of a verdict as changes of a plan: an advice such as ``release fewer datasets (m)`` applied to its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods.labels import method_and_output
from sfumato.engine.methods.levers import Advice, Turn
from sfumato.workspace.plan.edits import StepPlace, parse_plan, replace_sections, replace_step, step_targets
from sfumato.workspace.plan.hierarchies import QUASI_IDENTIFIER_ROLES

from ..session.command_lines import changed_lines

if TYPE_CHECKING:
    from sfumato.engine.recipe.thresholds import Verdict

Change = Callable[[Any], Any]
MAKERS = ("synthesis", "anonymisation")
FIRST_WIDTHS = {"count": 5, "date": 7}
"""First widths by kind of variable for a quasi-identifier that was not recoded: whole numbers of 5, days of a week."""


def _double(value: Any) -> Any:
    return value * 2


def _halve(value: Any) -> Any:
    """Return half the value, of a whole number rounded up and at least 1."""
    # Counts of datasets, classes or draws below 1 are not valid.
    return max(1, -(-value // 2)) if isinstance(value, int) else value / 2


def _turn_on(_: Any) -> bool:
    return True


def _keep_value(value: Any) -> Any:
    """Return the value: for settings without an order of their values, a person has to decide."""
    return value


CHANGES: Mapping[Turn, Change] = {"more": _double, "less": _halve, "on": _turn_on, "other": _keep_value}


@dataclass(frozen=True)
class PlanLever:
    """Change of the plan that may fix a verdict.

    text: what to change, in words
    toml: plan with the change; empty if a person has to decide how
    lines: difference of the plans
    """

    text: str
    toml: str = ""
    lines: tuple[str, ...] = ()


def find_levers(verdict: Verdict, toml: str) -> list[PlanLever]:
    """Return the levers of a verdict that is not met, those with a setting in the plan first, the strongest first."""
    if verdict.outcome == "met":
        return []
    _, output = method_and_output(verdict.value)
    found = [_make_lever(text, verdict.target, toml) for text in output.label.levers]
    # The sort is stable, so the order by strength stays within both groups.
    return sorted(found, key=lambda one: not one.toml)


def _make_lever(text: str, target: str, toml: str) -> PlanLever:
    """Return the lever of an advice: with the changed plan if the change is possible and valid, otherwise in words
    alone.
    """
    view = parse_plan(toml)
    if view.lines is None:
        return PlanLever(text)
    changed = toml
    for setting, turn in (text.turns if isinstance(text, Advice) else {}).items():
        changed = _change_setting(changed, setting, CHANGES[turn], target, view.table)
    # A change that breaks the plan is left to the user.
    if changed == toml or parse_plan(changed).problem:
        return PlanLever(text)
    return PlanLever(text, changed, tuple(changed_lines(toml, changed)))


def _change_setting(toml: str, setting: str, change: Change, target: str, table: Mapping[str, Any]) -> str:
    """Return the plan with one setting changed, in the release or in the steps that make the target."""
    if setting == "m":
        release = dict(table.get("release", {}))
        now = release.get("m")
        return replace_sections(toml, {"release": {**release, "m": change(now)}}) if isinstance(now, int) else toml
    if setting == "recode":
        return replace_sections(toml, {"release": _widen_recoding(table)})
    # Steps that do not have the setting are left unchanged, as for a lever of one method among several.
    for place, step in _matching_steps(table, target):
        value = step.get(setting, _default_setting(place, step, setting))
        if value is not None and (after := change(value)) != value:
            toml = replace_step(toml, place, {**step, setting: after})
    return toml


def _widen_recoding(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``[release]`` table with kept quasi-identifiers recoded in intervals twice as wide, or for the first
    time.

    Which levels to join is left to a person or a search.
    """
    release = dict(table.get("release", {}))
    made = {name for step in table.get("synthesis", []) for name in step_targets(step)}
    rules = dict(release.get("recode", {}))
    for name, said in table.get("variables", {}).items():
        # A variable that a step synthesises is not released as it is, so recoding it lowers no risk.
        known = said.get("role") in QUASI_IDENTIFIER_ROLES and name not in made
        if isinstance(rules.get(name), int | float):
            rules[name] = _double(rules[name])
        elif known and name not in rules and said.get("kind") in FIRST_WIDTHS and table.get("synthesis"):
            rules[name] = FIRST_WIDTHS[said["kind"]]
    return {**release, **({"recode": rules} if rules else {})}


def _matching_steps(table: Mapping[str, Any], target: str) -> Sequence[tuple[StepPlace, Mapping[str, Any]]]:
    """Return the synthesis and anonymisation steps; those of the ``target`` alone if there are any."""
    found = [(StepPlace(part, at), step) for part in MAKERS for at, step in enumerate(table.get(part, []))]
    return [(place, step) for place, step in found if step.get("target") == target] or found


def _default_setting(place: StepPlace, step: Mapping[str, Any], setting: str) -> Any:
    """Return the default of a setting that a step leaves out; None if its method has no such setting."""
    from sfumato.engine.methods.registry import method_by_key

    # The key of a method has its family, which steps of synthesis and anonymisation leave out.
    method = method_by_key(f"{place.section}.{step.get('method')}")
    info = next((one for one in method.spec.params() if one.name == setting), None) if method else None
    return None if info is None or info.is_required else info.default
