"""The order of the variables changes no measure, not even by its random numbers: with a key and without one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import measure_dataset
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk import record_linkage

KEY = bytes(range(32))
RECORDS = 300
KINDS: dict[str, dict[str, Any]] = {
    "age": {"kind": "count", "role": "quasi_identifier"},
    "visits": {"kind": "count", "role": "quasi_identifier"},
    "region": {"kind": "categorical", "role": "quasi_identifier", "levels": ["x", "y", "z"]},
    "pay": {"kind": "continuous", "role": "quasi_identifier"},
    "ill": {"kind": "binary", "role": "sensitive", "levels": ["no", "yes"]},
    "size": {"kind": "count", "role": "sensitive"},
}
ORDERS = [tuple(KINDS), tuple(KINDS)[::-1], ("pay", "ill", "age", "size", "region", "visits")]
NEEDING_CONTROLS = ("risk.attribute_inference", "risk.linkability", "risk.singling_out")
STEPS: dict[str, dict[str, Any]] = {
    "quality.nmi_v1": {},
    "quality.nmi_v2": {},
    "quality.pearson": {},
    "quality.rilm": {},
    "utility.cluster": {},
    "utility.distribution_distance": {},
    "utility.margin_distance": {},
    "utility.propensity": {},
    "risk.attribute_inference": {"radius": {"size": 1}},
    "risk.linkability": {"known": ["age", "region"], "other": ["visits", "pay"]},
    "risk.record_linkage": {},
    "risk.singling_out": {},
    "risk.correct_attribution": {},
    "risk.population_uniqueness": {"fraction": 0.1},
    "risk.special_uniques": {},
}


def tables() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Confidential, released and control records with many ties, which random numbers break."""

    def draw(rng: np.random.Generator) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "age": rng.integers(0, 40, RECORDS),
                "visits": rng.integers(0, 9, RECORDS),
                "region": rng.choice(["x", "y", "z"], RECORDS),
                "pay": np.round(rng.normal(size=RECORDS), 1),
                "ill": rng.choice(["no", "yes"], RECORDS),
                "size": rng.integers(0, 5, RECORDS),
            }
        )

    rng = np.random.default_rng(1)
    ours, controls = draw(rng), draw(rng)
    theirs = ours.apply(lambda column: np.where(rng.random(RECORDS) < 0.3, rng.permutation(column), column))
    return ours, theirs, controls


def values(method: str, order: tuple[str, ...], key: bytes) -> dict[tuple[Any, ...], list[float]]:
    step = {"method": method, **STEPS[method]}
    recipe = Recipe.from_table(
        {
            "variables": {name: KINDS[name] for name in order},
            "data": {"holdout": 0.5} if method in NEEDING_CONTROLS else {},
            "measure": [step],
            "release": {"m": 1, "seed": 3},
        }
    )
    ours, theirs, others = tables()
    confidential = conform_to_schema(ours, recipe.schema)
    confidential = confidential.with_controls(conform_to_schema(others, recipe.schema, origin="confidential"))
    released: Microdata = replace(conform_to_schema(theirs, recipe.schema, origin="synthetic"), linked=True)
    measure, _ = measure_dataset(recipe, 0, confidential, released, 1, key=key)
    found = {}
    for one in measure.estimates:
        params = tuple(sorted((name, str(sorted(str(value)))) for name, value in one.params.items()))
        numbers = [np.nan if value is None else value for value in (one.value, one.lower, one.upper)]
        found[one.measure, *sorted([one.target, *map(str, params)])] = numbers
    return found


def assert_same(method: str, key: bytes) -> None:
    first = values(method, ORDERS[0], key)
    assert not all(np.isnan(value) for value, _, _ in first.values())
    for order in ORDERS[1:]:
        other = values(method, order, key)
        assert sorted(map(len, first)) == sorted(map(len, other))
        for name in set(first) & set(other):
            assert other[name] == pytest.approx(first[name], rel=1e-9, abs=1e-12, nan_ok=True), name


@pytest.mark.slow
@pytest.mark.parametrize("key", [PUBLIC, KEY], ids=["public", "keyed"])
@pytest.mark.parametrize("method", list(STEPS))
def test_the_order_of_the_variables_changes_no_measure(
    method: str, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few pairs are tried that linkage takes a part of the records.
    monkeypatch.setattr(record_linkage, "MAX_TRAINING_PAIRS", 20_000)
    if method == "risk.record_linkage":
        monkeypatch.setitem(STEPS[method], "pairs", 20_000)
    assert_same(method, key)


def test_streams_that_go_by_place_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Microdata, "sha256_in_any_order", property(lambda data: data.sha256))
    with pytest.raises(AssertionError):
        assert_same("quality.nmi_v1", KEY)
