"""Numbers of records that break the constraints of the recipe, in every dataset and in the confidential data.

A record is counted where it certainly breaks a rule: what depends on a missing value is unknown, and so is what the
label of a generalised value leaves open (``sfumato.engine.constraints.evaluation``); unknown records are counted too. A
recipe with ``[constraints]`` has this measure by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

from ..constraints.constraints import read_constraints
from ..constraints.evaluation import count_compliance
from ..data.conditions import RecordConstraint
from ..data.microdata import Microdata, schema_with_levels
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.levers import CONSTRAINTS
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec

COUNT = (0.0, None)


RulesByName = Annotated[
    Mapping[str, str],
    Param('rules by name, such as { total = "income = wage + rent" }; those of the recipe if empty', filters_rows=True),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstraintViolationsSpec(Spec):
    """Rules whose violations are counted."""

    implied: ClassVar[bool] = True

    rules: RulesByName = field(default_factory=dict)

    def read_rules(self, schema: Schema, place: str) -> tuple[RecordConstraint, ...]:
        """Parse the rules that are evaluated. Raises BadInput."""
        return read_constraints(self.rules, schema, f"{place}.rules") if self.rules else schema.constraints

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput for an invalid rule, or where there are no rules."""
        if not self.read_rules(schema, place):
            raise BadInput(place, "neither the recipe nor this step has rules; add [constraints], or leave it out")

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the recipe's own rules where none is given."""
        return replace(self, rules=self.rules or {one.name: one.text for one in schema.constraints})


@measure_method(
    "Records that break constraints",
    spec=ConstraintViolationsSpec,
    source="edit rules: Fellegi & Holt (1976); three-valued truth: Kleene (1938)",
    outputs=(
        Output("broken_records", "records that are known to break the rule", "low", unit="records", range=COUNT, short="broken", label=Label("Records that break a rule", "In the release, {value} break the rule {variable}.", "Fewer are better; at 0 every record keeps to the rule.", "Too many released records are impossible by the rule.", CONSTRAINTS, bad="more than in the data: users of the release meet records that cannot be"),),
        Output(
            "unknown_records", "records for which the rule cannot be evaluated: a value is missing, or generalised",
            "none", unit="records", range=COUNT, short="unknown", label=Label("Records that a rule cannot judge", "In the release, {value} cannot be judged by the rule {variable}: a value is missing or generalised.", bad="more than in the data: the release then hides values that the rule needs"),),
    ),
    confidential=True,
)  # fmt: skip
def constraint_violations(
    confidential: Microdata, released: Microdata, spec: ConstraintViolationsSpec, run: Run
) -> Measure:
    """Count the records that break each rule, and those for which it is unknown; the rule's name is the target."""
    schema = schema_with_levels(confidential)
    rules = spec.read_rules(confidential.schema, "constraints")
    if not rules:
        raise NotComputable("there is no rule to keep to")
    found = count_compliance(released, replace(schema, constraints=rules))
    return Measure(
        tuple(
            Estimate(name, float(count), one.constraint.name)
            for one in found
            for name, count in (("broken_records", one.broken), ("unknown_records", one.unknown))
        )
    )
