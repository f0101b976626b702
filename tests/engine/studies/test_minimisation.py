"""The smallest sufficient sample: sizes, verdicts, and the answer found by looking at every size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import compute_study_point, execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.studies.minimisation import MinimisationSpec, smallest_size

VARIABLES = variables_of("age: count quasi_identifier", "town: categorical quasi_identifier", "visits: count sensitive")


def recipe(**changes: Any) -> Recipe:
    study = {"method": "studies.minimisation", "step": 0.25, "subsamples": 3, "k": 5, **changes}
    return Recipe.from_table({"variables": VARIABLES, "release": {"seed": 6}, "study": [study]})


@pytest.fixture(scope="module")
def data() -> Microdata:
    rng = np.random.default_rng(10)
    raw = pd.DataFrame(
        {"age": rng.integers(20, 400, 1600), "town": rng.choice(["x", "y"], 1600), "visits": rng.poisson(3, 1600)}
    )
    return conform_to_schema(raw, recipe().schema)


def rows_of(data: Microdata, plan: Recipe) -> list[Row]:
    return [
        row
        for point in plan.studies[0].spec.grid()
        for row in compute_study_point(plan, 0, point, data, [], key=PUBLIC)
    ]


def passing(level: float, value: float) -> Row:
    params = {"size": round(100 * level), "subsamples": 4, "k": 5}
    return Row("studies", "minimisation", "passing", "", "confidential", None, level, value, params=params)


def test_sizes_go_from_n_to_2n_in_steps_of_5_percent() -> None:
    spec = MinimisationSpec(n=200)
    assert len(spec.grid()) == 21
    assert [spec.sample_size(point, 1000) for point in (spec.grid()[0], spec.grid()[1], spec.grid()[-1])] == [
        200,
        210,
        400,
    ]
    assert MinimisationSpec().sample_size(1.0, 1001) == 500


def test_the_answer_is_the_smallest_size_that_always_passes() -> None:
    found = smallest_size([passing(1.0, 0.5), passing(1.1, 1.0), passing(1.2, 0.75), passing(1.3, 1.0)])
    assert [(row.value, row.level, row.unit) for row in found] == [(110, None, "records")]
    other = replace(passing(1.2, 1.0), params={"size": 120, "subsamples": 4, "k": 10})
    assert [row.value for row in smallest_size([passing(1.0, 1.0), other])] == [100, 120], "studies of two k"
    none = smallest_size([passing(1.0, 0.5), passing(1.1, 0.99)])
    assert none[0].value is None
    assert none[0].status == "not computed"
    assert "no size" in none[0].reason


@pytest.mark.slow
def test_measures_rise_with_the_sample_and_the_answer_agrees_with_every_row(data: Microdata) -> None:
    plan = recipe(rho=0.5, nmi=0.5, rilm_categorical=0.5)
    rows = rows_of(data, plan)
    rho = [row.value for row in rows if row.measure == "rho"]
    assert (rho[-1] or 0) > (rho[0] or 0)
    least = {name: [r.value for r in rows if r.measure == name] for name in ("rho", "nmi", "rilm_categorical")}
    shares = [r for r in rows if r.measure == "passing"]
    for place, share in enumerate(shares):
        meets = all((values[place] or 0) >= 0.5 for values in least.values())
        assert (share.value == 1) == meets
    expected = [share.params["size"] for share in shares if share.value == 1]
    assert smallest_size(rows)[0].value == (min(expected) if expected else None)


@pytest.mark.slow
def test_thresholds_that_ask_for_nothing_or_for_all_decide(data: Microdata) -> None:
    nothing = recipe(rho=0, nmi=0, rilm_categorical=0, non_suppressed=0)
    assert smallest_size(rows_of(data, nothing))[0].value == 800
    everything = recipe(rho=1.0)
    assert smallest_size(rows_of(data, everything))[0].value is None


@pytest.mark.slow
def test_every_size_stands_alone_and_answers_the_same_twice(data: Microdata) -> None:
    plan = recipe()
    alone = compute_study_point(plan, 0, 1.5, data, [], key=PUBLIC)
    assert alone == [row for row in rows_of(data, plan) if row.level == 1.5]


def test_samples_that_the_data_cannot_give_are_refused(data: Microdata) -> None:
    with pytest.raises(BadInput, match=r"study\[0\]\.n"):
        check_steps(recipe(n=801), data)
    with pytest.raises(BadInput, match=r"study\[0\]\.k"):
        check_steps(recipe(n=4), data)
    check_steps(recipe(n=800), data)


@pytest.mark.slow
def test_a_run_gives_the_answer_beside_the_sizes(data: Microdata) -> None:
    found = execute_run(recipe(), data, key=PUBLIC).rows
    assert [row.measure for row in found].count("smallest_size") == 1
    assert {row.level for row in found if row.measure == "passing"} == set(recipe().studies[0].spec.grid())
