"""The gate's check that released records keep to the constraints of the recipe."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engine.constraints.constraints import columns_of_constraint
from sfumato.engine.constraints.evaluation import count_compliance, schema_with_levels

from .checks import CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, Status


def _check_constraints(case: ExaminedRelease) -> CheckResult:
    """Check that released records keep to the rules of the recipe.

    A replaced variable that breaks a rule blocks; rules that unchanged variables break are broken in the confidential data too and only
    warn.
    """
    rules = case.recipe.schema.constraints
    if not rules:
        raise CheckNotApplicable("the recipe declares no constraints")
    schema = replace(schema_with_levels(case.confidential), constraints=rules)
    made = {one.name for one in rules if not set(columns_of_constraint(one, schema)).isdisjoint(case.recipe.released)}
    worst: dict[str, tuple[int, int, int]] = {}
    unknown: set[str] = set()
    for draw, released in enumerate(case.released_datasets, start=1):
        for one in count_compliance(released, schema):
            name = one.constraint.name
            unknown |= {name} if one.unknown else set()
            if one.broken > worst.get(name, (0, 0, 0))[0]:
                worst[name] = (one.broken, one.records, draw)
    said = "; ".join(
        f"constraint {name}: {broken:,} of {records:,} records of dataset {draw}"
        for name, (broken, records, draw) in worst.items()
    )
    said = (
        f"broken: {said}" if worst else f"no record of {case.plan.datasets} datasets breaks one of {len(rules)} rules"
    )
    if unknown:
        said += f"; for some records it is unknown whether they keep to {', '.join(sorted(unknown))}"
    at_most: Status = "block" if made & worst.keys() else "warn"
    return CheckResult(said, max((count for count, _, _ in worst.values()), default=0), at_most=at_most)


CONSTRAINT_CHECKS = (
    GateCheck(
        "constraints", "records that break a constraint of the recipe", "records of a dataset", 0, 0,
        "a record that cannot be is of no use, and says that a model did not know the rule", "let synthesis keep to it ([release] redraws, "
        "another order or model), or fix the rule", _check_constraints, "edit rules: Fellegi & Holt (1976)",
    ),
)  # fmt: skip
