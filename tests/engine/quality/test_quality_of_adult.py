"""Data quality of Adult made 10-anonymous, through a recipe, checked by grouping with pandas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import RunResult, execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

NUMERICAL = ("age", "hours_per_week")
CATEGORICAL = ("workclass", "sex")


def recipe(**anonymisation: Any) -> Recipe:
    known = {name: {"kind": "count", "role": "quasi_identifier"} for name in NUMERICAL}
    known |= {name: {"kind": "categorical", "role": "quasi_identifier"} for name in CATEGORICAL}
    return Recipe.from_table(
        {
            "variables": {**known, "race": {"kind": "categorical", "role": "sensitive"}},
            "anonymisation": [{"method": "anonymisation.mondrian", "k": 10, **anonymisation}],
            "measure": [{"method": f"quality.{name}"} for name in ("pearson", "rilm", "nmi_v1", "non_suppressed")],
        }
    )


@pytest.fixture(scope="module")
def adult() -> Callable[[Path], Microdata]:
    return lambda path: conform_to_schema(pd.read_csv(path, nrows=8000).fillna("unknown"), recipe().schema)


def of_release(outcome: RunResult) -> dict[tuple[str, str, str], float | None]:
    return {(row.method, row.measure, row.target): row.value for row in outcome.rows if row.draw == 1}


@pytest.mark.slow
def test_measures_of_a_micro_aggregated_release(public_data: Callable[[str], Path], adult: Any) -> None:
    data = adult(public_data("adult.csv"))
    outcome = execute_run(recipe(), data, key=PUBLIC)
    found = of_release(outcome)
    classes = outcome.releases[0].classes
    assert classes is not None
    raw = data.frame.assign(of=classes, mean=outcome.releases[0].frame["age"])
    ages = raw.groupby("of")["age"].agg(["min", "max", "size"])
    loss = ((ages["max"] - ages["min"]) * ages["size"]).sum() / len(raw) / (raw["age"].max() - raw["age"].min())
    assert found["rilm", "numerical", "age"] == pytest.approx(1 - loss)
    alone = raw.groupby("of")["workclass"].transform("nunique") == 1
    assert found["rilm", "categorical", "workclass"] == pytest.approx(alone.mean())
    assert found["pearson", "rho", "age"] == pytest.approx(raw["age"].corr(raw["mean"]))
    assert found["non_suppressed", "share", ""] == 1
    assert 0.5 < (found["nmi_v1", "minimum_nmi", ""] or 0) < 1


@pytest.mark.slow
def test_generalised_numbers_have_no_correlation_but_the_same_size(
    public_data: Callable[[str], Path], adult: Any
) -> None:
    data = adult(public_data("adult.csv"))
    means, labels = (
        of_release(execute_run(recipe(output=kind), data, key=PUBLIC)) for kind in ("micro_aggregated", "generalised")
    )
    assert labels["pearson", "rho", "age"] is None
    assert labels["pearson", "minimum_rho", ""] is None
    for measure, name in (("numerical", "age"), ("categorical", "workclass"), ("categorical", "sex")):
        assert labels["rilm", measure, name] == means["rilm", measure, name]


@pytest.mark.slow
def test_smaller_classes_are_better_and_suppression_is_counted(public_data: Callable[[str], Path], adult: Any) -> None:
    data = adult(public_data("adult.csv"))
    small, large = (of_release(execute_run(recipe(k=k), data, key=PUBLIC)) for k in (2, 200))
    for key in (("pearson", "minimum_rho", ""), ("rilm", "minimum_numerical", ""), ("nmi_v1", "minimum_nmi", "")):
        assert (small[key] or 0) > (large[key] or 0)
    outcome = execute_run(recipe(max_suppressed=0.02), data, key=PUBLIC)
    share = of_release(outcome)["non_suppressed", "share", ""]
    assert share == len(outcome.releases[0]) / len(data)
    assert 0.98 <= share < 1, "the control: some are suppressed"
