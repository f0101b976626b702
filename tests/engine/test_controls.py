"""Control records: a recipe that holds some out, and who is given them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.execution.tasks import execute_run, measure_dataset
from sfumato.engine.methods import registry
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import MeasureDeclaration, Method
from sfumato.engine.methods.results import Estimate, Measure, StudyPoint
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.methods.spec import Spec, StudySpec
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.recipe import Recipe

TABLE: dict[str, Any] = {
    "data": {"file": "people.csv", "holdout": 0.25},
    "variables": {"area": {"kind": "categorical"}, "age": {"kind": "count"}},
    "release": {"m": 2, "seed": 3},
    "synthesis": [{"target": "age", "method": "cart", "predictors": ["area"]}],
    "measure": [{"method": "utility.ecdf"}, {"method": "risk.looks_at_controls"}],
}
SCHEMA = Schema((Variable("area", Kind.CATEGORICAL), Variable("age", Kind.COUNT)))


@dataclass(frozen=True, kw_only=True, slots=True)
class OnePoint(StudySpec):
    """A study of one point."""

    def grid(self) -> tuple[float, ...]:
        return (0.5,)


@dataclass(frozen=True, kw_only=True, slots=True)
class NothingAsked(Spec):
    """No parameters."""


def people(records: int, seed: int, areas: str = "ab") -> Microdata:
    rng = np.random.default_rng(seed)
    return conform_to_schema(
        pd.DataFrame({"area": rng.choice(list(areas), records), "age": rng.integers(20, 60, records)}), SCHEMA
    )


def looks_at_controls(confidential: Microdata, released: Microdata, spec: Spec, run: Run) -> Measure:
    assert released.controls is None
    assert confidential.controls is not None
    return Measure((Estimate("seen", float(len(confidential.controls))),))


def sees_nobody(confidential: Microdata, released: Microdata, spec: Spec, run: Run) -> Measure:
    assert confidential.controls is None
    return Measure((Estimate("seen", 0.0),))


def sees_nobody_either(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: OnePoint, run: Run
) -> StudyPoint:
    assert confidential.controls is None
    return StudyPoint(None, tuple(Measure((Estimate("seen", 0.0),)) for _ in releases))


@pytest.fixture(autouse=True)
def methods_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = (Output("seen", "control records seen", "none"),)
    extra = {
        f"risk.{func.__name__}": Method(
            "risk", func.__name__, "", NothingAsked, "", func, outputs, measurement=MeasureDeclaration(controls=wants)
        )
        for func, wants in ((looks_at_controls, True), (sees_nobody, False))
    }
    study = Method("studies", "sees_nobody_either", "", OnePoint, "", sees_nobody_either, outputs)
    extra[study.key] = study
    known, *others = registry.discover_methods()
    monkeypatch.setattr(registry, "discover_methods", lambda: ({**known, **extra}, *others))


@pytest.mark.parametrize("holdout", [0.2, 0.999, "is control", "refuse"])
def test_a_recipe_says_which_records_are_controls_and_reads_back(holdout: float | str) -> None:
    recipe = Recipe.from_table({**TABLE, "data": {"holdout": holdout}})
    assert recipe.data == DataSource(holdout=holdout)
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert recipe.sha256 != Recipe.from_table({**TABLE, "data": {"holdout": 0.3}}).sha256


@pytest.mark.parametrize("holdout", [0, 1, 0.0, 1.0, -0.2, 5, True, "", [0.2], float("nan")])
def test_anything_else_is_refused(holdout: object) -> None:
    with pytest.raises(BadInput, match=r"^data.holdout: .* must be a share above 0 and below 1"):
        Recipe.from_table({**TABLE, "data": {"holdout": holdout}})


def test_the_column_that_says_it_is_no_variable() -> None:
    with pytest.raises(BadInput, match=r"^variables.area: says which records are controls"):
        Recipe.from_table({**TABLE, "data": {"holdout": "area"}})


def test_a_measure_that_needs_controls_says_how_to_have_them() -> None:
    with pytest.raises(
        BadInput, match=r"^measure\[1\].method: risk.looks_at_controls .* add holdout = 0.2 under \[data\]"
    ):
        Recipe.from_table({**TABLE, "data": {}})


def test_controls_reach_the_measures_that_declare_them_and_nothing_else() -> None:
    table = {**TABLE, "measure": [*TABLE["measure"], {"method": "risk.sees_nobody"}]}
    recipe, data = Recipe.from_table(table), people(80, 1)
    found = execute_run(recipe, data.with_controls(people(20, 2)), key=PUBLIC)
    assert {row.method: row.value for row in found.rows if row.measure == "seen"} == {
        "looks_at_controls": 20.0,
        "sees_nobody": 0.0,
    }
    other = execute_run(recipe, data.with_controls(people(33, 3, "abc")), key=PUBLIC)
    for one, two in zip(found.releases, other.releases, strict=True):
        assert len(one) == 80
        pd.testing.assert_frame_equal(one.frame, two.frame)


def test_studies_and_anonymisation_see_no_controls() -> None:
    recipe = Recipe.from_table({**TABLE, "measure": [], "study": [{"method": "studies.sees_nobody_either"}]})
    found = execute_run(recipe, people(30, 1).with_controls(people(20, 2)), key=PUBLIC)
    assert [row.value for row in found.rows if row.measure == "seen" and row.draw] == [0.0, 0.0]
    table = {**{k: v for k, v in TABLE.items() if k not in ("synthesis", "measure")}, "release": {}}
    steps = Recipe.from_table(
        {**table, "anonymisation": [{"method": "mondrian", "k": 3, "quasi_identifiers": ["age"]}]}
    )
    alone, beside = (
        execute_run(steps, data, key=PUBLIC).releases[0]
        for data in (people(30, 1), people(30, 1).with_controls(people(9, 2)))
    )
    pd.testing.assert_frame_equal(alone.frame, beside.frame)
    assert beside.controls is None


def test_a_run_whose_controls_are_gone_says_so() -> None:
    recipe, data = Recipe.from_table(TABLE), people(40, 1)
    _, (row,) = measure_dataset(recipe, 1, data, replace(data, origin="synthetic"), 1, key=PUBLIC)
    assert (row.value, row.status) == (None, "not computed")
    assert "no control records were held out" in row.reason


def test_level_codes_of_controls_mean_what_they_mean_in_the_data() -> None:
    data, others = people(40, 1, "bd"), people(40, 2, "abcd")
    controls = data.with_controls(others).controls
    assert controls is not None
    assert list(controls.frame["area"].cat.categories) == ["b", "d", "a", "c"]
    assert list(controls.frame["area"]) == list(others.frame["area"])
    assert data.with_controls(others).without_controls.frame is data.frame
    with pytest.raises(EngineError, match="same variables"):
        data.with_controls(Microdata(Schema(SCHEMA.variables[:1]), others.frame[["area"]]))
