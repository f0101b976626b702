"""Steps of a recipe: uses of methods, read from their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..design.survey import survey_settings
from ..errors import BadInput
from ..methods.registry import Method, find_method, method_by_key, method_of_step
from ..methods.release_form import AnonymisationSpec
from ..methods.spec import Spec, StudySpec
from .step_tables import StepTable

MAKERS = ("synthesis", "anonymisation")
AS_A_METHOD = {"synthesis": "cart", "anonymisation": "mondrian", "studies": "studies.intruder_uncertainty"}
"""A method of a family as a step names it, for whoever has named none."""


@dataclass(frozen=True)
class RecipeStep:
    """Use of a method in a recipe.

    place: place in the recipe
    method: the method
    spec: its parameters
    targets: variables that a synthesis step makes
    table: table that it is fitted to, where units are drawn in stages; None for that of the records
    """

    place: str
    method: Method
    spec: Spec
    targets: tuple[str, ...] = ()
    table: StepTable | None = None

    @property
    def target(self) -> str:
        """Return the targets of a synthesis step as text."""
        return ", ".join(self.targets)

    @property
    def has_unit_effect(self) -> bool:
        """Return whether records of a unit share an effect that the step draws."""
        return bool(getattr(self.spec, "unit_effect", False))

    @property
    def is_private(self) -> bool:
        """Return whether its noise has an epsilon."""
        return self.method.synthesis.privacy.account is not None and getattr(self.spec, "epsilon", None) is not None

    def fitted_table(self, confidential: Microdata) -> Microdata:
        """Return the table that a synthesis step is fitted to: the confidential records, or that of its stage."""
        return confidential if self.table is None else self.table.of_data(confidential, self.place)

    def to_table(self) -> dict[str, Any]:
        """Return the recipe's table of this step."""
        of: str | list[str] = list(self.targets) if self.method.joint else self.target
        head: dict[str, Any] = {"target": of} if of else {}
        name = self.method.name if self.method.family in MAKERS else self.method.key
        return {**head, "method": name, **self.spec.to_table()}


def read_step(
    table: Mapping[str, Any], place: str, families: tuple[str, ...], schema: Schema, measures: Sequence[RecipeStep]
) -> RecipeStep:
    """Create a step of a method of one of these families, with inherited settings from ``measures``. Raises BadInput."""
    if "method" not in table:
        raise BadInput(
            place, f'needs a method, such as method = "{AS_A_METHOD.get(families[0], "risk.identification")}"'
        )
    found = find_method(str(table["method"]), f"{place}.method", families)
    rest = {key: value for key, value in table.items() if key != "method"}
    spec = found.spec.from_table({**_inherited_settings(found, rest, measures), **rest}, place)
    spec.check(schema, place)
    return RecipeStep(place, found, spec)


def _inherited_settings(found: Method, given: Mapping[str, Any], measures: Sequence[RecipeStep]) -> dict[str, Any]:
    """Return the settings that a step does not give and that another measure's step lends it."""
    values = {}
    for info in found.spec.params():
        lenders = [step for step in measures if step.method.key == info.param.inherit]
        if lenders and info.name not in given:
            values[info.name] = lenders[0].spec.to_full_table()[info.name]
    return values


def read_synthesis_step(table: Mapping[str, Any], index: int, schema: Schema) -> RecipeStep:
    """Create entry ``index`` of [[synthesis]] with its targets. Raises BadInput."""
    place = f"synthesis[{index}]"
    given = table.get("target")
    names = [name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)]
    if not names or (isinstance(given, list) and len(names) < len(given)):
        found = method_of_step("synthesis", str(table.get("method", "")))
        several = 'the variables to synthesise, such as target = ["age", "sex"]'
        one = 'the variable to synthesise, such as target = "price"'
        raise BadInput(place, f"needs a target, {several if found is not None and found.joint else one}")
    rest = {key: value for key, value in table.items() if key != "target"}
    step = read_step(_add_family(rest, "synthesis"), place, ("synthesis",), schema, ())
    if isinstance(given, list) and not step.method.joint:
        raise BadInput(
            f"{place}.target", f'{step.method.name} makes one variable a step; give each its own, target = "{names[0]}"'
        )
    for i, name in enumerate(names):
        at = f"{place}.target[{i}]" if isinstance(given, list) else f"{place}.target"
        kind = schema.require_variable(name, at).kind
        if step.method.synthesis.targets and kind not in step.method.synthesis.targets:
            raise BadInput(
                at,
                f'{step.method.name} produces {" or ".join(step.method.synthesis.targets)} variables; "{name}" is {kind}',
            )
    return RecipeStep(place, step.method, step.spec, tuple(names))


def _add_family(table: Mapping[str, Any], family: str) -> Mapping[str, Any]:
    name = str(table.get("method", ""))
    return table if method_by_key(f"{family}.{name}") is None else {**table, "method": f"{family}.{name}"}


def read_anonymisation_steps(tables: Sequence[Mapping[str, Any]], schema: Schema) -> tuple[RecipeStep, ...]:
    """Create the entries of [[anonymisation]], each on the schema that the one before leaves. Raises BadInput."""
    steps: tuple[RecipeStep, ...] = ()
    for name in schema.names_by_role(Role.IDENTIFIER) if tables else ():
        raise BadInput(f"variables.{name}.role", "an identifier undoes the anonymity; leave the column out")
    for i, table in enumerate(tables):
        after = schema_after(steps, schema)
        family = "anonymisation"
        steps = (*steps, read_step(_add_family(table, family), f"{family}[{i}]", (family,), after, ()))
    return steps


def complete_stored_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a stored run's recipe with what it lacks where an earlier version wrote it.

    Its stored tables were made by the defaults of that version, which later ones may have changed.
    """
    steps = table.get("anonymisation")
    if not isinstance(steps, list):
        return dict(table)
    return {**table, "anonymisation": [_complete_step(step) for step in steps]}


def _complete_step(step: object) -> object:
    """Return the table of an anonymisation step with the older defaults of its method."""
    if not isinstance(step, Mapping):
        return step
    found = method_by_key(str(_add_family(step, "anonymisation").get("method", "")))
    if found is None or not issubclass(found.spec, AnonymisationSpec):
        return step
    return {**found.spec.older_defaults, **step}


def anonymisation_spec(step: RecipeStep) -> AnonymisationSpec:
    """Return the settings of an anonymisation step."""
    assert isinstance(step.spec, AnonymisationSpec)
    return step.spec


def schema_after(steps: Sequence[RecipeStep], schema: Schema) -> Schema:
    """Return the schema after anonymisation steps."""
    for step in steps:
        schema = anonymisation_spec(step).released_schema(schema)
    return schema


def is_made_whole(synthesis: Sequence[RecipeStep], schema: Schema) -> bool:
    """Return whether one joint step makes every variable, identifiers aside."""
    named = set(schema.non_identifiers)
    return len(synthesis) == 1 and synthesis[0].method.joint and named <= set(synthesis[0].targets)


def with_synthesis(study: RecipeStep, synthesis: Sequence[RecipeStep]) -> RecipeStep:
    """Return a study with its references to the recipe's synthesis steps resolved."""
    assert isinstance(study.spec, StudySpec)
    made = [(step.method.key, step.targets, step.spec) for step in synthesis]
    return replace(study, spec=study.spec.of_recipe(made))


def settings_of_step(step: RecipeStep, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that the rows of a step state."""
    return {**step.spec.settings(schema, released), **survey_settings(step.method, schema)}
