"""Two uses of one method in a recipe stay apart: in averages, intervals, thresholds, comparisons and combining rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.comparison import compare_rows
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.rows import Row, may_come_from_step, row_params
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

Make = Callable[..., Recipe]

LOGIT = {"method": "utility.propensity"}
TREE = {"method": "utility.propensity", "model": "cart", "permutations": 2}
PMSE = "utility.propensity.pmse"


def averages(recipe: Recipe, data: Microdata, key: str) -> list[Row]:
    return [
        r
        for r in execute_run(recipe, data, key=PUBLIC).rows
        if r.key == key and r.draw is None and r.dataset != "confidential"
    ]


@pytest.fixture
def bent(small_data: Microdata) -> Microdata:
    """Data whose spread of income depends on age, which a linear regression does not synthesise."""
    rng = np.random.default_rng(5)
    frame = pd.concat([small_data.frame] * 10, ignore_index=True)
    age = frame["age"].to_numpy()
    income = np.exp(7 + (0.1 + 1.5 * (np.abs(age - 54) > 20)) * rng.normal(size=len(age)))
    return Microdata(small_data.schema, frame.assign(income=income))


@pytest.mark.slow
def test_a_logit_and_a_tree_each_have_their_own_propensity_score(small_recipe: Make, bent: Microdata) -> None:
    both = averages(small_recipe(measure=[LOGIT, TREE], threshold=[]), bent, PMSE)
    assert [row.params for row in both] == [{}, {"model": "cart", "permutations": 2}]
    for step, row in zip((LOGIT, TREE), both, strict=True):
        (alone,) = averages(small_recipe(measure=[step], threshold=[]), bent, PMSE)
        assert (row.value, row.params) == (alone.value, alone.params)


@pytest.mark.slow
def test_a_threshold_is_held_against_every_use(small_recipe: Make, bent: Microdata) -> None:
    both = averages(small_recipe(measure=[LOGIT, TREE], threshold=[]), bent, PMSE)
    low, high = (row.value or 0.0 for row in both)
    assert low < high
    limit = low + 0.75 * (high - low)  # the mean of the two would pass
    outcome = execute_run(
        small_recipe(measure=[LOGIT, TREE], threshold=[{"value": PMSE, "max": limit}]), bent, key=PUBLIC
    )
    assert [verdict.outcome for verdict in outcome.verdicts] == ["met", "not met"]
    assert [verdict.params for verdict in outcome.verdicts] == [row.params for row in both]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "outcome"), [("logit", "met"), ("cart", "not met")])
def test_a_threshold_may_name_a_setting(model: str, outcome: str, small_recipe: Make, bent: Microdata) -> None:
    low, high = (r.value or 0.0 for r in averages(small_recipe(measure=[LOGIT, TREE], threshold=[]), bent, PMSE))
    named = {"value": PMSE, "max": (low + high) / 2, "params": {"model": model}}
    (verdict,) = execute_run(small_recipe(measure=[LOGIT, TREE], threshold=[named]), bent, key=PUBLIC).verdicts
    assert verdict.outcome == outcome


def test_a_threshold_of_settings_that_no_row_has_is_not_met(small_recipe: Make, small_data: Microdata) -> None:
    named = {"value": "utility.summary.quantile", "max": 1e9, "params": {"q": 0.123}}
    (verdict,) = execute_run(
        small_recipe(measure=[{"method": "utility.summary"}], threshold=[named]), small_data, key=PUBLIC
    ).verdicts
    assert (verdict.outcome, verdict.reason) == ("not computed", "the run has no such row")


def test_clusters_of_ten_and_of_fifty_stay_apart(small_recipe: Make, small_data: Microdata) -> None:
    steps = [{"method": "utility.cluster", "clusters": 5}, {"method": "utility.cluster", "clusters": 50}]
    found = averages(small_recipe(measure=steps, threshold=[]), small_data, "utility.cluster.u_c")
    assert [row.params for row in found] == [{"clusters": 5}, {"clusters": 50}]
    alone = [averages(small_recipe(measure=[s], threshold=[]), small_data, "utility.cluster.u_c")[0] for s in steps]
    assert [row.value for row in found] == [row.value for row in alone]


OVERLAP: dict[str, Any] = {"method": "utility.interval_overlap", "means": ["income"]}


def test_combined_estimates_do_not_depend_on_other_steps(small_recipe: Make, small_data: Microdata) -> None:
    others = [{**OVERLAP, "confidence": 0.9}, {**OVERLAP, "synthesis": "full"}, LOGIT]

    def ruled(measure: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        rows = averages(small_recipe(measure=measure, threshold=[]), small_data, "utility.interval_overlap.estimate")
        own = [r for r in rows if (r.params["confidence"], r.params["synthesis"]) == (0.95, "partial")]
        return [(r.value, r.lower, r.upper) for r in own]

    alone = ruled([OVERLAP])
    assert len(alone) == 1
    assert ruled([OVERLAP, *others]) == ruled([*others, OVERLAP]) == alone


@pytest.mark.parametrize(
    "step",
    [LOGIT, OVERLAP, {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}}],
    ids=lambda step: step["method"],
)
def test_the_same_step_twice_is_refused(step: dict[str, Any], small_recipe: Make) -> None:
    with pytest.raises(BadInput, match=f"measure\\[1\\]: is the same as measure\\[0\\], {step['method']}"):
        small_recipe(measure=[step, step], threshold=[])


def test_a_step_that_spells_out_what_another_leaves_out_is_the_same(small_recipe: Make) -> None:
    plain = {"method": "risk.identification", "radius": {"income": "5%"}}
    with pytest.raises(BadInput, match="is the same as"):
        small_recipe(measure=[plain, {**plain, "known": ["region", "age"]}], threshold=[])
    with pytest.raises(BadInput, match="is the same as"):
        small_recipe(measure=[{"method": "utility.propensity", "model": "logit"}, LOGIT], threshold=[])


def test_the_same_study_twice_is_refused_and_another_model_is_not(small_recipe: Make) -> None:
    study = {"method": "studies.intruder_uncertainty", "variable": "age", "radius": {"income": "5%"}, "levels": [0.0]}
    with pytest.raises(BadInput, match=r"study\[1\]: is the same as study\[0\]"):
        small_recipe(study=[study, study])
    assert len(small_recipe(study=[study, {**study, "model": "relative"}]).studies) == 2


def test_a_run_of_the_first_version_with_a_step_twice_can_be_read(small_recipe: Make) -> None:
    table = small_recipe(measure=[LOGIT], threshold=[]).to_table()
    table["measure"] = [*table["measure"], *table["measure"]]
    assert len(Recipe.from_table(table, stored=True).measures) == 2


def test_a_logit_run_is_not_compared_with_a_tree_run(small_recipe: Make, small_data: Microdata) -> None:
    runs = [
        execute_run(small_recipe(measure=[step], threshold=[]), small_data, key=PUBLIC).rows for step in (LOGIT, TREE)
    ]
    sides = [(found.first is None, found.second is None) for found in compare_rows(*runs) if found.key == PMSE]
    assert sides == [(False, True), (True, False)]


def test_runs_that_select_other_variables_are_compared_on_those_they_share(
    small_recipe: Make, small_data: Microdata
) -> None:
    steps = [{"method": "utility.ecdf"}, {"method": "utility.ecdf", "variables": ["income"]}]
    runs = [execute_run(small_recipe(measure=[step], threshold=[]), small_data, key=PUBLIC).rows for step in steps]
    found = [one for one in compare_rows(*runs) if one.key == "utility.ecdf.max_abs_difference"]
    assert {one.target: one.second is None for one in found} == {"visits": True, "income": False}
    assert next(one for one in found if one.target == "income").difference == 0


def test_a_setting_never_hides_what_tells_rows_of_one_step_apart(small_recipe: Make) -> None:
    step = small_recipe(study=[{"method": "studies.calibration", "sensitive": "region", "generators": 2}]).studies[0]
    settings = {"generators": 2}
    params = row_params(step.method, {"generators": "all"}, settings)
    assert params == {"generators": "all", "calibration.generators": 2}
    assert may_come_from_step(step.method, params, settings)
    assert not may_come_from_step(step.method, params, {"generators": 3})
