"""What a plan does to each variable, in words: how its values are released, who could know them, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.engine.data.schema import Role
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import method_of_step
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import count_noun

from .plan_steps import Facts, describe_step, exact_value_text
from .words import sign_for

Treatment = Literal["drawn", "changed", "unchanged", "left out", "as in the released file"]
ROLE_MEANINGS: Mapping[Role, str] = {
    Role.QUASI_IDENTIFIER: "an intruder may know it of people, and finds them by it",
    Role.SENSITIVE: "it is what an intruder wants to learn",
    Role.IDENTIFIER: "it names the person",
    Role.UNIT: "it says which records are of one unit, the one that is protected",
    Role.WEIGHT: "it says how many people a record stands for",
    Role.OTHER: "its role does not say who knows it; released unchanged, it still tells people apart",
}
"""Who could know a variable of each role."""
DRAWN_WITHOUT_ROLE = "its role does not say who knows it; only drawn values of it are released"
UNCHANGED = "everybody keeps their own value"


@dataclass(frozen=True)
class VariablePlan:
    """What a plan does to a variable.

    name: the variable
    treatment: how its values are released
    text: the same in a sentence, with the method
    reason: who could know it, by its role
    attacks: titles of the attacks in which an intruder knows it
    limits: limits on its own numbers
    """

    name: str
    treatment: Treatment
    text: str
    reason: str
    attacks: Sequence[str] = ()
    limits: Sequence[str] = ()

    @property
    def facts(self) -> Facts:
        """Return the facts in the order in which a reader asks for them."""
        facts = [
            ("in the release", self.text),
            ("who knows it", self.reason),
            ("attacks", f"known to the intruder in {', '.join(self.attacks)}" if self.attacks else ""),
            ("limits", "; ".join(self.limits)),
        ]
        return [(name, text) for name, text in facts if text]


def describe_variable_plans(table: Mapping[str, Any]) -> dict[str, VariablePlan]:
    """Return what a plan does to each of its variables, by name; empty for a plan that is no recipe."""
    try:
        recipe = Recipe.from_table(table)
    except BadInput:
        return {}
    return {
        variable.name: _describe_variable(variable.name, variable.role, recipe, table) for variable in recipe.schema
    }


def _describe_variable(name: str, role: Role, recipe: Recipe, table: Mapping[str, Any]) -> VariablePlan:
    """Describe what a recipe, written as ``table``, does to one variable."""
    treatment, text = _treatment_of(name, role, recipe, table)
    everyone = [variable.name for variable in recipe.schema if variable.role is Role.QUASI_IDENTIFIER]
    attacks = dict.fromkeys(
        describe_step(section, step, table).name
        for section in ("measure", "study")
        for step in table.get(section, [])
        # An attack without a list of its own knows all quasi-identifiers.
        if name in _known_variables(section, step, everyone)
    )
    limits = [
        f"{one.name}: {one.settings}"
        for step in table.get("threshold", [])
        if step.get("target") == name
        for one in [describe_step("threshold", {**step, "target": None}, table)]
    ]
    reason = DRAWN_WITHOUT_ROLE if role is Role.OTHER and treatment == "drawn" else ROLE_MEANINGS[role]
    return VariablePlan(name, treatment, text, reason, tuple(attacks), tuple(limits))


def _treatment_of(name: str, role: Role, recipe: Recipe, table: Mapping[str, Any]) -> tuple[Treatment, str]:
    """Return how a variable is released, and that in a sentence."""
    if role.is_identifier:
        return "left out", "left out" if role is Role.IDENTIFIER else "its own numbers are left out"
    if not recipe.makes_release:
        return "as in the released file", "as the released file has it"
    if name not in recipe.released:
        return "unchanged", f"released unchanged: {UNCHANGED}"
    for step in table.get("synthesis", []):
        target = step.get("target")
        if name == target or (isinstance(target, list) and name in target):
            others = [one for one in target if one != name] if isinstance(target, list) else []
            together = f" together with {', '.join(others)}" if others else ""
            given = exact_value_text(step.get("predictors"))
            return "drawn", f"drawn{together} by {_title_of('synthesis', step)}" + (f", given {given}" if given else "")
    titles = dict.fromkeys(_title_of("anonymisation", step) for step in table.get("anonymisation", []))
    if titles:
        return "changed", f"changed by {', '.join(titles)}"
    # What no step names is drawn with the others, as by a method that draws whole tables.
    makers = dict.fromkeys(_title_of("synthesis", step) for step in table.get("synthesis", []))
    return "drawn", " by ".join(filter(None, ("drawn", ", ".join(makers))))


def _title_of(section: str, step: Mapping[str, Any]) -> str:
    """Return the title of a step's method, its name where there is no such method."""
    name = str(step.get("method", ""))
    method = method_of_step(section, name)
    return name if method is None else method.title


def _known_variables(section: str, step: Mapping[str, Any], everyone: Sequence[str]) -> Sequence[str]:
    """Return the variables that the intruder of an attack knows; none for a step that is no attack."""
    method = method_of_step(section, str(step.get("method", "")))
    names = () if method is None else [info.name for info in method.spec.params()]
    for key in ("known", "keys"):
        if key in names:
            given = step.get(key)
            return given if isinstance(given, list) and given else everyone
    return ()


def treatment_lines(plans: Mapping[str, VariablePlan]) -> Facts:
    """Return the variables of a plan by what is released of them, those that are released unchanged first."""
    order: tuple[Treatment, ...] = ("unchanged", "drawn", "changed", "as in the released file", "left out")
    found = [(one, [plan.name for plan in plans.values() if plan.treatment == one]) for one in order]
    # Those are marked, since they are what people are found by.
    said = {"unchanged": f"{sign_for('warn')} {{}}: {UNCHANGED}"}
    return [(one, said.get(one, "{}").format(", ".join(names))) for one, names in found if names]


def unprotected_lines(plans: Mapping[str, VariablePlan]) -> Facts:
    """Return who could know each variable that is released unchanged, and in how many attacks an intruder knows it.

    Those that he knows in most attacks come first.
    """
    kept = sorted((plan for plan in plans.values() if plan.treatment == "unchanged"), key=lambda one: -len(one.attacks))
    return [
        (
            plan.name,
            f"{plan.reason}; in {count_noun(len(plan.attacks), 'attack')}" if plan.attacks else plan.reason,
        )
        for plan in kept
    ]
