"""Forms for variables: all settings of one, the missing codes of several, and lists of kinds and roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.schema import DesignPart, Kind, Role, Variable
from sfumato.engine.recipe.recipe import recipe_params
from sfumato.engine.wording import count_noun
from sfumato.tui.parts.fields import FormField
from sfumato.tui.parts.offers import OfferedValue
from sfumato.workspace.reporting.words import role_text

from ..parts.dialogs import LetterDialog
from ..parts.form import Form
from ..plan.plan_forms import field_kind

if TYPE_CHECKING:
    from sfumato.workspace.ingest.profiles import DistributionProfile

SCALES = {
    Kind.CATEGORICAL: "levels without an order",
    Kind.ORDINAL: "levels in an order",
    Kind.BINARY: "two levels",
    Kind.COUNT: "whole numbers from 0",
    Kind.CONTINUOUS: "any numbers",
    Kind.DATE: "days, or moments of days",
}
ROLES = {
    Role.QUASI_IDENTIFIER: ("i", "an intruder may know it"),
    Role.SENSITIVE: ("s", "an intruder wants to learn it"),
    Role.IDENTIFIER: ("d", "names a person; never released"),
    Role.UNIT: ("u", "numbers a household or patient"),
    Role.WEIGHT: ("w", "weights of a survey"),
    Role.OTHER: ("o", "neither"),
}
"""Letter and meaning of each role that a variable can be given."""


def choose_kind(what: str, now: Kind) -> LetterDialog[Kind]:
    """Return the list that asks for a kind."""
    offers = [(str(place), kind, kind.value, SCALES[kind]) for place, kind in enumerate(Kind, 1)]
    return LetterDialog(f"Kind of {what}", offers, now)


EXCLUDE, NEXT = "exclude", "next"
"""Answers other than roles: the variable is excluded, or stays unchanged."""


@dataclass(frozen=True)
class RoleAnswer:
    """Answer to the question for a role.

    role: a role, ``EXCLUDE`` or ``NEXT``
    is_for_rest: whether the variables below get it too
    """

    role: str
    is_for_rest: bool = False


def choose_role(what: str, now: str, *, several: bool) -> LetterDialog[RoleAnswer]:
    """Return the list that asks for a role; for one variable with a choice to leave it unchanged, and capital letters
    for a role of all variables from it on.
    """
    offers = [(letter, RoleAnswer(role.value), role_text(role.value), text) for role, (letter, text) in ROLES.items()]
    offers.append(("x", RoleAnswer(EXCLUDE), "exclude", "not in the project"))
    if several:
        return LetterDialog(f"Role of {what}", offers, RoleAnswer(now))
    capitals = {letter.upper(): replace(answer, is_for_rest=True) for letter, answer, *_ in offers}
    offers.append((" ", RoleAnswer(NEXT), "space", "leave it, next variable"))
    hint = "a capital: all below too"
    return LetterDialog(f"Role of {what}", offers, RoleAnswer(now), capitals=capitals, capitals_hint=hint)


def variable_form(variable: Variable, planned: bool, profile: DistributionProfile | None = None) -> Form:
    """Return the form of a variable; its ``profile`` has the levels to choose from, in their order in the data."""

    def check(table: dict[str, Any]) -> None:
        """Raise BadInput if the settings are invalid."""
        Variable.from_table(variable.name, with_open_ends(table), variable.name)

    took = "" if planned else ", left out so far: accepting takes it in"
    return Form(f"Variable {variable.name}{took}", variable_fields(variable, profile), check, topic="recipe variables")


def variable_fields(variable: Variable, profile: DistributionProfile | None = None) -> list[FormField]:
    """Return the fields of a variable's form."""
    table = variable.to_table()
    found = zip(profile.levels, profile.counts, strict=True) if profile and profile.levels else ()
    levels = tuple(
        # A count of one or two records is withheld, and 0 here.
        OfferedValue(level, f"{count_noun(count, 'record')}" if count else "few records")
        for level, count in found
    )
    # An empty item would vanish from the typed list, so an open end is typed as dots.
    bounds = [".." if end == "" else end for end in table.get("bounds", [])]
    return [
        _recipe_field("kind", table, choices=tuple(Kind)),
        _recipe_field("role", table, choices=tuple(Role)),
        _recipe_field(
            "bounds",
            {"bounds": bounds},
            help="smallest and largest value allowed, such as 0, 365; .. leaves an end open",
        ),
        _recipe_field("levels", table, offers=levels),
        _recipe_field("labels", table),
        _recipe_field("missing", table),
        _recipe_field("may_be_missing", table, words=("true",)),
        _recipe_field("format", table),
        _recipe_field("title", table),
        _recipe_field("design", table, words=tuple(DesignPart)),
    ]


def _recipe_field(key: str, table: Mapping[str, Any], **changes: Any) -> FormField:
    """Return the field for a key of a variable, as the recipe declares it."""
    info = next(one for one in recipe_params("variables") if one.name == key)
    return replace(FormField(key, info.param.help, field_kind(info.type)[0], table.get(key)), **changes)


def with_open_ends(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers of a form with open ends of bounds written as in recipes."""
    bounds = table.get("bounds")
    return dict(table) if bounds is None else {**table, "bounds": ["" if end == ".." else end for end in bounds]}


def missing_codes_form(variables: Sequence[Variable]) -> Form:
    """Return the form for the missing codes of some variables, at first those that all of them have."""

    def check(table: dict[str, Any]) -> None:
        """Raise BadInput if a variable cannot have the codes."""
        for variable in variables:
            Variable.from_table(variable.name, with_missing_codes(variable, table), variable.name)

    own = [variable.missing for variable in variables]
    shared = list(own[0]) if own and all(codes == own[0] for codes in own) else []
    what = variables[0].name if len(variables) == 1 else f"{count_noun(len(variables), 'variable')}"
    return Form(
        f"Missing codes of {what}", [_recipe_field("missing", {"missing": shared})], check, topic="recipe variables"
    )


def with_missing_codes(variable: Variable, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a variable's table with the missing codes of a form in place of its own."""
    table = variable.to_table()
    table.pop("missing", None)
    return {**table, **answer}
