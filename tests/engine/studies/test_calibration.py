"""The calibration study: its labels, its scores, its summary, and the whole on simulated data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from sklearn.metrics import roc_auc_score

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import combine_rows, compute_study_point
from sfumato.engine.methods.rows import Row, row_params
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.studies._group_tests import OriginalTests
from sfumato.engine.studies.calibration import SCORES, summarise_calibration, train_generator

VARIABLES = variables_of(
    "age: count quasi_identifier",
    "hours: continuous quasi_identifier",
    "work: categorical quasi_identifier",
    "race: categorical sensitive",
)
STUDY = {
    "method": "studies.calibration",
    "generators": 2,
    "originals": 2,
    "subsets": 2,
    "ks": [2, 40],
    "sizes": [300, 500],
}


def recipe(**changes: Any) -> Recipe:
    return Recipe.from_table({"variables": VARIABLES, "release": {"seed": 5}, "study": [{**STUDY, **changes}]})


@pytest.fixture(scope="module")
def data() -> Microdata:
    """Groups differ in hours and work, not in age."""
    rng = np.random.default_rng(8)
    race = rng.choice(["a", "b", "c"], 600, p=[0.5, 0.3, 0.2])
    raw = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 600),
            "hours": rng.normal(40, 5, 600) + 4 * (race == "b"),
            "work": np.where(rng.random(600) < 0.3 + 0.4 * (race == "c"), "office", rng.choice(["farm", "mine"], 600)),
            "race": race,
        }
    )
    return conform_to_schema(raw, recipe().schema)


def simulated(data: Microdata, plan: Recipe, points: Sequence[float] | None = None) -> list[Row]:
    grid = plan.studies[0].spec.grid() if points is None else points
    return [row for point in grid for row in compute_study_point(plan, 0, point, data, [], key=PUBLIC)]


def row(level: float, score: float | None, tests: int, lost: int, measure: str = "rho", **params: Any) -> Row:
    counts = {"tests": tests, "lost": lost, "spurious": 0, "sign_flip": 0}
    where = {"generator": int(level) % 2, "size": 100, "subset": 0, "k": 2, "max_suppressed": 0.0}
    status: Any = "computed" if score is not None else "not computed"
    return Row("studies", "calibration", measure, "age", "confidential", None, level, score, status=status,
               params={**where, **counts, **params})  # fmt: skip


def test_a_table_left_as_it_is_agrees_and_a_shuffled_one_does_not(data: Microdata) -> None:
    tests = OriginalTests.from_table(data, "race", ["age", "hours", "work"], 30)
    assert {name: len(found) for name, found in tests.columns.items()} == {"age": 3, "hours": 3, "work": 3}
    for name in tests.columns:
        assert tests.compare_with_release(data, name, 0.05).errors == 0
    order = np.random.default_rng(1).permutation(len(data))
    shuffled = data.frame[["hours", "work"]].iloc[order].reset_index(drop=True)
    lost = data.with_columns({name: shuffled[name] for name in shuffled}, "anonymised")
    assert tests.compare_with_release(lost, "hours", 0.05).lost >= 2


def test_the_sign_of_a_mirrored_column_flips(data: Microdata) -> None:
    tests = OriginalTests.from_table(data, "race", ["hours"], 30)
    mirrored = data.with_columns({"hours": -data.column("hours")}, "anonymised")
    found = tests.compare_with_release(mirrored, "hours", 0.05)
    assert found.sign_flip >= 2
    assert found.lost == found.spurious == 0


def test_cells_that_a_class_does_not_share_are_not_tested(data: Microdata) -> None:
    tests = OriginalTests.from_table(data, "race", ["work"], 30)
    whole = Microdata(data.schema, data.frame, "anonymised", classes=np.zeros(len(data), dtype=np.int64))
    was = sum(found.p < 0.05 for found in tests.columns["work"])
    assert tests.compare_with_release(whole, "work", 0.05).lost == was > 0


def test_small_groups_and_constants_are_not_tested(data: Microdata) -> None:
    smallest = int((data.column("race") == "c").sum())
    assert len(OriginalTests.from_table(data, "race", ["age"], smallest + 1).groups) == 2
    flat = data.with_columns({"age": data.column("age") * 0}, "confidential")
    assert set(OriginalTests.from_table(flat, "race", ["age", "hours"], 30).columns) == {"hours"}


def test_generated_tables_are_in_the_likeness_of_the_data(data: Microdata) -> None:
    made = [
        train_generator(data, "synthesis.cart", (), tuple(VARIABLES), seed)(500, np.random.default_rng(9))
        for seed in (1, 2, 1)
    ]
    pd.testing.assert_frame_equal(made[0].frame, made[2].frame)
    assert not made[0].frame.equals(made[1].frame), "another training"
    hours = made[0].frame.groupby("race", observed=True)["hours"].mean()
    assert hours["b"] - hours["a"] == pytest.approx(4, abs=1.5)
    assert not made[0].frame.equals(data.frame.iloc[:500])


def test_the_summary_of_rows_made_by_hand() -> None:
    rows = [row(0, 0.99, 10, 0), row(1, 0.95, 10, 1), row(2, 0.50, 10, 6), row(3, None, 10, 4)]
    found = {(r.measure, *r.params.values()): r for r in summarise_calibration(rows) if r.level is None}
    scores, labels, weights = [3, 2, 1, 0] * 2, [1] * 4 + [0] * 4, [10, 9, 4, 6, 0, 1, 6, 4]
    expected = roc_auc_score(labels, scores, sample_weight=weights)
    assert found["auc", "rho", "all"].value == pytest.approx(expected)
    assert found["auc", "rho", "best"].value == pytest.approx((10 * 6 + 4 * 6 / 2) / (14 * 6))
    assert found["auc", "rho", "worst"].value == pytest.approx((9 * 4 + 9 / 2 + 6 * 4 / 2) / (15 * 5))
    assert found["good", "rho"].value == pytest.approx(29 / 40)
    assert found["suggested_threshold", "rho"].value == 0.51
    assert [found[(name,)].value for name in ("generators", "originals", "anonymisations")] == [2, 4, 4]
    assert found["lost", True, 20].value == pytest.approx(1 / 20)
    assert found["lost", False, 20].value == pytest.approx(10 / 20)
    assert found["errors", True, 20].value == pytest.approx(1 / 20)


def test_one_column_below_its_threshold_fails_the_whole_table() -> None:
    rows = [row(0, 0.99, 10, 0), row(0, 0.10, 10, 0, "rilm_categorical")]
    table = {(r.measure, *r.params.values()): r for r in summarise_calibration(rows) if "passed" in r.params}
    assert table["errors", True, 0].value is None
    unused = [row(0, 0.99, 10, 0), row(0, 0.10, 10, 0, "rilm_numerical")]
    assert [r.value for r in summarise_calibration(unused) if r.measure == "errors"] == [0.0, None], (
        "no threshold is set for it"
    )


def test_curves_run_from_all_to_none() -> None:
    rows = [row(level, level / 10, 10, 10 - int(level)) for level in range(11)]
    curve = {r.level: r.value for r in summarise_calibration(rows) if r.measure == "true_positive_rate"}
    values = [curve[level] for level in sorted(level for level in curve if level is not None)]
    assert values[0] == 1
    assert all(a is not None and b is not None and a >= b for a, b in pairwise(values))
    assert summarise_calibration([]) == []


@pytest.mark.slow
def test_a_small_study_finds_that_small_classes_keep_the_tests(data: Microdata) -> None:
    plan = recipe()
    rows = simulated(data, plan)
    assert {r.level for r in rows} == {0.0, 1.0, 2.0, 3.0}
    errors = {k: [r for r in rows if r.params["k"] == k] for k in (2, 40)}
    rate = {k: sum(r.params["lost"] for r in own) / sum(r.params["tests"] for r in own) for k, own in errors.items()}
    assert rate[2] < rate[40]
    assert all(r.value is None or r.value <= 1 for r in rows)
    auc = {
        r.params["score"]: r.value
        for r in summarise_calibration(rows)
        if r.measure == "auc" and r.params["generators"] == "all"
    }
    assert (auc["rho"] or 0) > 0.5


@pytest.mark.slow
def test_a_run_s_results_are_the_summary_and_not_the_simulations(data: Microdata) -> None:
    plan = recipe()
    rows = simulated(data, plan)
    found = combine_rows(plan, rows, release_provenance(plan, len(data)))[0]
    assert [r for r in found if r.measure in SCORES] == []
    settings = plan.settings(plan.studies[0])
    assert settings.keys() == {"generators", "originals", "sizes", "ks"}
    for row, made in zip(found, summarise_calibration(rows), strict=True):
        assert replace(row, params={}) == replace(made, params={})
        assert row.params == row_params(plan.studies[0].method, made.params, settings)


@pytest.mark.slow
def test_every_simulation_stands_alone(data: Microdata) -> None:
    plan = recipe()
    assert simulated(data, plan, [2.0]) == [r for r in simulated(data, plan) if r.level == 2.0]
    assert simulated(data, plan, [2.0]) != simulated(data, plan, [3.0])


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"generator": "synthesis.nothing"}, "generator"),
        ({"generator": "synthesis.linear_regression"}, "generator"),
        ({"anonymisation": "anonymisation.nothing"}, "anonymisation"),
        ({"sensitive": "age"}, "sensitive"),
    ],
)
def test_settings_that_do_not_suit_are_named(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput, match=place):
        recipe(**changes)
