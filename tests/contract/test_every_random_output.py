"""What samples, permutations or noise change is declared an estimate, also with the settings that make a method draw; an exact one would be noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.contract.examples import example_data_for, example_run, example_spec
from sfumato.engine.contract.measures import assert_declared_estimated
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Estimate

DRAWING: list[Any] = [
    ("utility.propensity", {"model": "cart", "minbucket": 8}),
    ("utility.cluster", {"limit": 60, "clusters": 40}),
    ("utility.cluster", {"limit": 60, "clusters": 40, "samples": 5}),
    ("risk.identification", {"targets": 40}),
    ("risk.identification", {"coverage": 0.5, "errors": {"visits": 0.4}}),
    ("risk.record_linkage", {}),
    pytest.param("risk.attribute_inference", {"records": 40, "vulnerable": 20}, marks=pytest.mark.slow),
    pytest.param("risk.linkability", {"records": 40, "vulnerable": 20}, marks=pytest.mark.slow),
    ("risk.singling_out", {"most": 40, "vulnerable": 20}),
]


def measure_estimates(
    key: str, changes: dict[str, Any], confidential: Microdata, released: Microdata, seed: int
) -> list[Estimate]:
    method = registry()[key]
    spec = replace(example_spec(method, confidential.schema), **changes)
    return list(method.measure(example_data_for(method, confidential), released, spec, example_run(seed)).estimates)


@pytest.mark.parametrize(("key", "changes"), DRAWING, ids=str)
def test_what_is_drawn_is_declared_estimated(
    key: str, changes: dict[str, Any], confidential: Microdata, releases: list[Microdata]
) -> None:
    first, *others = (measure_estimates(key, changes, confidential, releases[0], seed) for seed in (1, 2, 3))
    for other in others:
        assert_declared_estimated(registry()[key], first, other)
    if changes:
        assert any(one.value != two.value for other in others for one, two in zip(first, other, strict=False)), (
            "else nothing is drawn"
        )


def test_a_value_that_changes_without_being_declared_is_noticed(
    confidential: Microdata, releases: list[Microdata]
) -> None:
    method = registry()["risk.attribute"]
    with pytest.raises(AssertionError, match="declare it estimated"):
        assert_declared_estimated(method, [Estimate("risk", 1.0)], [Estimate("risk", 2.0)])
    rows = [[Estimate("true_match_rate", value, "", value, value)] for value in (0.1, 0.2)]
    with pytest.raises(AssertionError, match="exact"):
        assert_declared_estimated(registry()["risk.identification"], *rows)
