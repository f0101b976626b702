"""The survey weight and design of a recipe: what is refused, and what population uniqueness makes of the role."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.design.survey import SurveyDesign
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

WEIGHT = {"kind": "continuous", "role": "weight"}
AREA = {"kind": "categorical", "role": "quasi_identifier", "design": "strata"}
SCHOOL = {"kind": "count", "design": "clusters"}
SCHOOLS = {"kind": "count", "design": "population"}
SEX = {"kind": "binary", "role": "quasi_identifier"}
INCOME = {"kind": "continuous", "role": "sensitive"}


def variables(**others: dict[str, Any]) -> dict[str, Any]:
    return {"weight": WEIGHT, "sex": SEX, "income": INCOME, **others}


def table(of: dict[str, Any], *measures: dict[str, Any], **rest: Any) -> dict[str, Any]:
    found = {"title": "survey", "variables": of, "release": {"m": 3}, "measure": list(measures), **rest}
    return {"synthesis": [{"target": "income", "method": "cart", "predictors": ["sex"]}], **found}


def frame(n: int = 80) -> pd.DataFrame:
    i = np.arange(n)
    return pd.DataFrame(
        {
            "weight": 1.0 + i % 5,
            "sex": i % 2,
            "income": np.exp(((i * 37) % 41) / 10),
            "area": np.where(i % 4 < 2, "n", "s"),
            "school": (i // 4) % 5,
            "schools": 12,
        }
    )


def data_of(recipe: Recipe, raw: pd.DataFrame | None = None) -> Microdata:
    return conform_to_schema(frame() if raw is None else raw, recipe.schema, recipe.data.missing)


def test_the_design_is_written_and_read_again() -> None:
    recipe = Recipe.from_table(table(variables(area=AREA, school=SCHOOL, schools=SCHOOLS)))
    again = Recipe.from_toml(recipe.to_toml())
    assert again.schema == recipe.schema
    assert (
        str(SurveyDesign.from_schema(again.schema)) == "weight weight, strata area, clusters school, population schools"
    )
    assert SurveyDesign.from_schema(Recipe.from_table(table({"sex": SEX, "income": INCOME})).schema) is None


@pytest.mark.parametrize(
    ("of", "place", "said"),
    [
        (variables(other=WEIGHT), "variables.other.role", '"weight" is that already'),
        (variables(area=AREA, place=AREA), "variables.place.design", '"area" is that already'),
        (variables(weight={"kind": "binary", "role": "weight"}), "variables.weight.kind", "count or continuous"),
        ({"sex": SEX, "income": INCOME, "area": AREA}, "variables.area.design", "needs a survey weight"),
        (variables(weight=WEIGHT | {"design": "strata"}), "variables.weight.design", "role weight"),
        (variables(area=AREA | {"role": "identifier"}), "variables.area.design", "role identifier"),
        (variables(schools={"kind": "categorical", "design": "population"}), "variables.schools.kind", "clusters"),
        (variables(area=AREA | {"design": "stratum"}), "variables.area.design", 'did you mean "strata"'),
    ],
)
def test_a_design_that_cannot_be_is_refused_where_it_stands(of: dict[str, Any], place: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        Recipe.from_table(table(of))
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("column", "values", "place", "said"),
    [
        ("weight", 0.0, "variables.weight", "3 records have the survey weight 0, so they represent no people"),
        ("weight", -1.0, "variables.weight", "3 records have a survey weight below 0"),
        ("weight", np.nan, "variables.weight", "3 records have no survey weight"),
        ("school", np.nan, "variables.schools", 'records have no value of "school"'),
        ("area", "x", "variables.schools", "1 stratum has a single cluster"),
        ("schools", 2, "variables.schools", "disagree on how many clusters"),
    ],
)
def test_records_that_the_design_cannot_use_are_refused(column: str, values: Any, place: str, said: str) -> None:
    recipe = Recipe.from_table(table(variables(area=AREA, school=SCHOOL, schools=SCHOOLS), data={"missing": "keep"}))
    raw = frame().astype({"area": "object", "weight": "float", "school": "float"})
    raw.loc[[0, 20, 40], column] = values
    with pytest.raises(BadInput, match=said) as refused:
        check_steps(recipe, data_of(recipe, raw))
    assert refused.value.place == place
    check_steps(recipe, data_of(recipe))


@pytest.mark.slow
def test_weighted_rows_of_a_run_say_so_and_speak_of_the_population() -> None:
    measures = ({"method": "utility.interval_overlap", "means": ["income"]}, {"method": "utility.propensity"})
    recipe = Recipe.from_table(table(variables(area=AREA, school=SCHOOL), *measures))
    data = data_of(recipe)
    rows = execute_run(recipe, data, key=PUBLIC).rows
    own = next(r for r in rows if r.measure == "estimate" and r.dataset == "confidential")
    weights = data.numbers("weight")
    assert own.value == pytest.approx(np.average(data.numbers("income"), weights=weights), rel=1e-12)
    assert own.params["survey"] == "weight weight, strata area, clusters school"
    assert "design_degrees" not in {row.measure for row in rows}
    others = [row for row in rows if row.method == "propensity"]
    assert others
    assert all("unweighted" in row.reason and "survey" not in row.params for row in others if row.value is not None)


def test_without_a_weight_no_row_speaks_of_weights() -> None:
    of = {"sex": SEX, "income": INCOME}
    recipe = Recipe.from_table(table(of, {"method": "utility.summary"}, {"method": "utility.propensity"}))
    rows = execute_run(recipe, data_of(recipe), key=PUBLIC).rows
    assert all("weight" not in row.reason and "survey" not in row.params for row in rows)
    assert not {"population", "design_effect"} & {row.measure for row in rows}


def test_a_synthesised_weight_shows_the_population_that_it_makes() -> None:
    steps = [{"target": "weight", "method": "cart", "predictors": ["sex"]}]
    recipe = Recipe.from_table(table(variables(), {"method": "utility.summary", "variables": ["sex"]}, synthesis=steps))
    rows = [r for r in execute_run(recipe, data_of(recipe), key=PUBLIC).rows if r.measure == "population"]
    totals = {row.dataset: row.value for row in rows if row.draw is None}
    assert totals["confidential"] == frame()["weight"].sum()
    assert totals["synthetic"] != totals["confidential"]
    assert all(row.baseline == totals["confidential"] for row in rows if row.dataset == "synthetic")


@pytest.mark.slow
def test_population_uniqueness_takes_the_role_unless_a_fraction_is_said() -> None:
    uniqueness = {"method": "risk.population_uniqueness", "keys": ["area", "sex"]}
    of = variables(area={"kind": "categorical", "role": "quasi_identifier"})

    def rows(people: dict[str, Any], **said: Any) -> dict[str, Any]:
        recipe = Recipe.from_table(table(of | {"weight": people}, uniqueness | said))
        check_steps(recipe, data_of(recipe))
        found = execute_run(recipe, data_of(recipe), key=PUBLIC).rows
        return {f"{r.dataset} {r.draw} {r.measure} {r.params.get('fitted')}": (r.value, r.params) for r in found}

    by_role, by_name = rows(WEIGHT), rows({"kind": "continuous"}, weight="weight")
    assert by_role == by_name
    assert all(params["weight"] == "weight" for _, params in by_role.values())
    assert all("weight" not in params for _, params in rows(WEIGHT, fraction=0.1).values())
    scaled = Recipe.from_table(table(of, uniqueness))
    with pytest.raises(BadInput, match="say the fraction instead"):
        check_steps(scaled, data_of(scaled, frame().assign(weight=0.5)))
