"""Form of a table to protect and print: its variables, what it adds up, and the rules of all tables of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe, recipe_params
from sfumato.workspace.plan.edits import PlanView, StepPlace, replace_sections, replace_step

from ..parts.fields import FormField
from ..parts.form import Form
from .plan_forms import EditPlan, FormAndHandler, column_offers, parameter_field, step_form

OF_TABLE = ("by", "value", "unit", "widths", "where", "name")
"""Keys of ``[[table]]`` in the form; others are kept as the text has them."""
OF_RULES = ("threshold", "dominance", "p_percent", "zeros")
"""Keys of ``[tables]`` in the form."""
FIRST_THRESHOLD = 10
"""Units of the smallest cell that is printed, in a plan without rules: they have to be decided, and few are too few."""
ALL_TABLES = "; for all tables of the plan"


def table_fields(step: Mapping[str, Any], table: Mapping[str, Any]) -> list[FormField]:
    """Return the fields of a table and of the rules."""
    variables, rules = table.get("variables", {}), table.get("tables", {})
    declared = {info.name: info for info in recipe_params("table")}
    fields = [parameter_field(declared[key], step.get(key), variables) for key in OF_TABLE if key != "name"]
    fields[0] = FormField(
        "by",
        "the variables: the first in rows, the last in columns",
        "list",
        step.get("by"),
        offers=column_offers(variables, ()),
    )
    of_rules = {info.name: info for info in recipe_params("tables")}
    given = dict(rules) if rules else {"threshold": FIRST_THRESHOLD}
    for key in OF_RULES:
        field = parameter_field(of_rules[key], given.get(key), {})
        fields.append(
            FormField(field.name, f"{field.help}{ALL_TABLES}", field.kind, field.value, field.default, field.choices)
        )
    # Most tables are called by what they have: the name is the last that somebody thinks of.
    fields.append(FormField("name", "what the table is called; left out, by its variables", value=step.get("name")))
    return fields


def table_sections(
    answers: Mapping[str, Any], step: Mapping[str, Any], table: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table's own section and the rules for the answers of the form; keys without a field are kept."""
    own = {key: answers[key] for key in OF_TABLE if key in answers}
    kept = {key: value for key, value in step.items() if key not in OF_TABLE}
    rules = {key: value for key, value in table.get("tables", {}).items() if key not in OF_RULES}
    name = own.pop("name", "") or proposed_name(own, step, table)
    return {"name": name, **own, **kept}, {**{key: answers[key] for key in OF_RULES if key in answers}, **rules}


def proposed_name(own: Mapping[str, Any], step: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    """Return a name for a table that no other table has: ``hours by age and sex``."""
    by = own.get("by", ())
    names = [str(name) for name in by] if isinstance(by, list | tuple) else []
    joined = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    base = " by ".join(filter(None, [str(own.get("value") or "records"), joined]))
    taken = {one.get("name") for one in table.get("table", []) if isinstance(one, Mapping) and one is not step}
    found, number = base, 1
    while found in taken:
        number += 1
        found = f"{base} {number}"
    return found


def form_of_step(view: PlanView, place: StepPlace, step: Mapping[str, Any], edit: EditPlan) -> FormAndHandler:
    """Return the form of a step of any section, and the function that puts its answer into the plan."""
    return (table_form if place.section == "table" else step_form)(view, place, step, edit)


def table_form(view: PlanView, place: StepPlace, step: Mapping[str, Any], edit: EditPlan) -> FormAndHandler:
    """Return the form of a table, and the function that puts its answer and the rules into the plan."""

    def text_with_table(toml: str, answers: Mapping[str, Any]) -> str:
        """Return the plan's text with the table and the rules."""
        own, rules = table_sections(answers, step, view.table)
        return replace_sections(replace_step(toml, place, own), {"tables": rules or None})

    def check(answers: dict[str, Any]) -> None:
        """Raise BadInput if the table or the rules are invalid; problems elsewhere in the plan are ignored."""
        try:
            Recipe.from_toml(text_with_table(view.toml, answers))
        except BadInput as error:
            for start in (str(place), "tables"):
                if error.place == start or error.place.startswith((f"{start}.", f"{start}[")):
                    field = error.place.removeprefix(start).lstrip(".").partition(".")[0].partition("[")[0]
                    raise BadInput(field, error.message) from None

    def apply_table(answers: dict[str, Any] | None) -> None:
        """Put the table and the rules into the plan."""
        if answers is not None:
            edit(lambda toml: text_with_table(toml, answers), str(place))

    fields = table_fields(step, view.table)
    return Form("Table to protect and print", fields, check, topic="tables what a recipe says"), apply_table
