"""What a method answers on the tables of ``tables``, by output and series."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from oracles import TELLING_APART, Answers, Case, series
from tables import SCHEMA, SYNTHESISED

from sfumato.engine.contract.examples import example_run
from sfumato.engine.data.schema import Schema
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.registry import Method
from sfumato.engine.methods.results import Estimate


def spec_of(method: Method, table: Mapping[str, Any], schema: Schema = SCHEMA) -> Any:
    """The parameters as a run hands them to the method; the variables are named where it would take all."""
    spec = method.spec.from_table(table, "step")
    spec.check(schema, "step")
    spec.check_release(schema, SYNTHESISED, "step")
    spec = spec.for_release(schema, SYNTHESISED)
    if method.key in ("utility.cluster", "utility.propensity") and not spec.variables:
        return dataclasses.replace(spec, variables=schema.names)
    return spec


def answers_of(method: Method, case: Case, level: float | None) -> dict[str, Answers]:
    try:
        if level is None:
            data = case.confidential if method.measurement.controls else case.confidential.without_controls
            estimates: Sequence[Estimate] = method.func(
                data, case.released.without_controls, case.spec, example_run()
            ).estimates
        else:
            itself = case.released.origin == "confidential"
            releases = [] if itself else [case.released.without_controls]
            point = method.func(case.confidential.without_controls, releases, level, case.spec, example_run())
            estimates = (point.confidential if itself else point.releases[0]).estimates
    except NotComputable as error:
        estimates = [Estimate.not_computed(output.name, error.reason) for output in method.result_outputs]
    found: dict[str, Answers] = {}
    for estimate in estimates:
        if method.output(estimate.measure).intermediate:
            continue
        told = {name: estimate.params[name] for name in TELLING_APART if name in estimate.params}
        assert estimate.value is not None or estimate.reason
        found.setdefault(estimate.measure, {})[series(estimate.target, **told)] = estimate.value
    return found
