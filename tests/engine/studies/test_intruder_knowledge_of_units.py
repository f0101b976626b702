"""The lattice of an intruder's knowledge by unit: every subset equals the measure of identification by unit with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from households import SCHEMA, as_microdata, draw_households
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.labels import quantity_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold, judge_thresholds

KEY = bytes(32)
KNOWN, DRAWN = ["sex", "age"], "income"


def rows_of(seed: int, **study: Any) -> list[Row]:
    """A run that draws incomes, measures identification by all that is known, and looks at every subset."""
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA}
    knowledge = {"known": KNOWN, "synthesised": [DRAWN], "radius": {DRAWN: "30%"}}
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "release": {"m": 2, "seed": 3},
            "synthesis": [{"target": DRAWN, "method": "linear_regression", "predictors": ["age"]}],
            "measure": [{"method": "risk.identification", **knowledge}],
            "study": [{"method": "studies.intruder_knowledge", **knowledge, **study}],
        }
    )
    data = as_microdata(draw_households(np.random.default_rng(seed), 40), recipe.schema)
    return [row for row in execute_run(recipe, data, key=KEY).rows if row.draw is None]


@given(seed=st.integers(0, 5))
@pytest.mark.slow
def test_each_subset_finds_the_units_that_the_measure_finds(seed: int) -> None:
    rows = rows_of(seed, of="units")
    for dataset in {row.dataset for row in rows}:
        measured = {
            row.measure: row.value
            for row in rows
            if row.method == "identification" and row.dataset == dataset and row.params.get("by") == "unit" and "unit_size" not in row.params
        }  # fmt: skip
        lattice = [row for row in rows if row.method == "intruder_knowledge" and row.dataset == dataset]
        every = {tuple(row.params["variables"]): row.value for row in lattice if row.measure == "expected_match_risk"}
        assert len(every) == 8
        assert every[*KNOWN, DRAWN] == pytest.approx(measured["expected_match_risk"])
        (largest,) = [row for row in lattice if row.measure == "largest_risk"]
        if dataset == "confidential":
            assert largest.value == pytest.approx(measured["largest_expected_match_risk"])
        assert largest.unit == "units"
        assert quantity_of(largest.key, 12.0, 90, largest.params, unit=largest.unit) == "12 units"


@pytest.mark.slow
def test_a_threshold_names_the_lattice_of_units() -> None:
    rows = rows_of(1, of="units")
    limit = Threshold("studies.intruder_knowledge.largest_risk", "max", 1.0, params={"of": "units"})
    (verdict,) = judge_thresholds([limit], rows)
    assert verdict.outcome == "not met"
    assert verdict.observed is not None
    assert verdict.observed <= 40


@pytest.mark.slow
def test_without_units_the_lattice_of_records_is_as_it_was() -> None:
    rows = [row for row in rows_of(1) if row.method == "intruder_knowledge"]
    assert all("of" not in row.params and row.unit != "units" for row in rows)
