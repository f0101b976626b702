"""Anonymisation in a recipe: what is refused, what is released, and what measures make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import TaskKind, anonymise_data, execute_run, plan_tasks
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

MONDRIAN = {"method": "mondrian", "k": 5}
MEASURES = [{"method": "utility.ecdf"}, {"method": "risk.identification"}]


@pytest.fixture
def anonymising(small_recipe: Callable[..., Recipe]) -> Callable[..., Recipe]:
    def make(**sections: Any) -> Recipe:
        return small_recipe(
            **{"synthesis": [], "release": {"seed": 7}, "anonymisation": [MONDRIAN], "measure": MEASURES, **sections}
        )

    return make


def test_a_recipe_comes_back_the_same(anonymising: Callable[..., Recipe]) -> None:
    steps = [
        {"method": "generalisation", "quasi_identifiers": ["age"], "levels": {"age": 1}, "widths": {"age": [5, 10]}},
        {
            **MONDRIAN,
            "quasi_identifiers": ["age", "region"],
            "hierarchies": {"region": [["north", "*"], ["south", "*"], ["west", "*"]]},
        },
        {"method": "anonymisation.suppression", "k": 5},
    ]
    recipe = anonymising(anonymisation=steps)
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert recipe.released == ("region", "age")
    assert (recipe.m, recipe.generalised) == (1, {"age"})


def test_the_released_schema_says_what_the_table_holds(anonymising: Callable[..., Recipe]) -> None:
    means = anonymising().released_schema
    assert (means["age"].kind, means["age"].bounds, means["region"].kind) == (
        Kind.CONTINUOUS,
        (0, None),
        Kind.CATEGORICAL,
    )
    labels = anonymising(anonymisation=[{**MONDRIAN, "output": "generalised"}]).released_schema
    assert (labels["age"].kind, labels["region"].levels) == (Kind.CATEGORICAL, ())
    assert labels["income"] == anonymising().schema["income"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"release": {"m": 2}}, r"release\.m: an anonymised release is one table"),
        ({"release": {"released": ["age"]}}, r"release\.released: the anonymisation steps already"),
        (
            {"synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}]},
            r"anonymisation\[0\]: a recipe has",
        ),
        (
            {"anonymisation": [{"method": "mondrain"}]},
            r'anonymisation\[0\]\.method: no method "mondrain"; known: .*anonymisation\.mondrian',
        ),
        ({"anonymisation": [{**MONDRIAN, "k": 1}]}, r"anonymisation\[0\]\.k: 1 must be at least 2"),
        (
            {"anonymisation": [{**MONDRIAN, "quasi_identifiers": ["agee"]}]},
            r'\[0\]: no column "agee"; did you mean "age"',
        ),
        (
            {"variables": {"age": {"kind": "count"}}, "measure": [], "threshold": []},
            "no variable is a quasi-identifier",
        ),
        (
            {
                "variables": {"age": {"kind": "count"}, "name": {"kind": "categorical", "role": "identifier"}},
                "measure": [],
                "threshold": [],
            },
            r"variables\.name\.role: an identifier undoes the anonymity",
        ),
    ],
)
def test_what_is_refused(anonymising: Callable[..., Recipe], sections: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        anonymising(**sections)


def test_the_steps_are_one_task_that_makes_the_table(anonymising: Callable[..., Recipe]) -> None:
    tasks = {task.key: task for task in plan_tasks(anonymising(anonymisation=[MONDRIAN, {"method": "suppression"}]))}
    assert (tasks["draw/1"].kind, tasks["draw/1"].draw, tasks["draw/1"].needs) == (TaskKind.ANONYMISE, 1, ())
    assert tasks["measure/0/1"].needs == ("draw/1",)
    assert not [key for key in tasks if key.startswith("fit")]


def test_rows_are_of_the_anonymised_table(anonymising: Callable[..., Recipe], small_data: Microdata) -> None:
    outcome = execute_run(anonymising(), small_data, key=PUBLIC)
    assert {(row.dataset, row.draw) for row in outcome.rows} == {
        ("confidential", None),
        ("anonymised", None),
        ("anonymised", 1),
    }
    assert [note.name for note in outcome.notes] == ["classes", "smallest_class", "mean_class", "suppressed_records"]
    assert outcome.releases[0].origin == "anonymised"


def test_generalised_values_are_not_compared(anonymising: Callable[..., Recipe], small_data: Microdata) -> None:
    released = anonymise_data(
        anonymising(anonymisation=[{**MONDRIAN, "output": "generalised"}]), small_data, key=PUBLIC
    ).data
    for read in (released.column, released.numbers):
        with pytest.raises(NotComputable, match='"age" is generalised'):
            read("age")
    assert np.array_equal(released.numbers("income"), small_data.numbers("income"))
    measures = [{"method": "utility.propensity"}, {"method": "utility.ecdf", "variables": ["income"]}]
    recipe = anonymising(anonymisation=[{**MONDRIAN, "output": "generalised"}], measure=measures, threshold=[])
    rows = [row for row in execute_run(recipe, small_data, key=PUBLIC).rows if row.draw == 1]
    for row in rows:
        assert (row.status, "generalised" in row.reason) == (
            ("computed", False) if row.target == "income" else ("not computed", True)
        )
    assert len(rows) == 5


def test_a_study_of_suppressed_records_says_why_it_has_no_values(
    anonymising: Callable[..., Recipe], small_data: Microdata
) -> None:
    study = {"method": "studies.intruder_uncertainty", "variable": "age", "model": "log_normal", "levels": [0.0, 0.1]}
    step = {"method": "suppression", "k": 2}
    rows = execute_run(
        anonymising(anonymisation=[step], study=[study], measure=[], threshold=[]), small_data, key=PUBLIC
    ).rows
    assert rows
    assert {(row.status, "records are suppressed" in row.reason) for row in rows} == {("not computed", True)}


def test_every_anonymisation_method_has_a_short_name_in_recipes(anonymising: Callable[..., Recipe]) -> None:
    assert anonymising().to_table()["anonymisation"] == [{"method": "mondrian", "means": "rounded"}], "k = 5 by default"
    assert {name for name in registry() if name.startswith("anonymisation.")} == {
        f"anonymisation.{name}"
        for name in (
            "generalisation",
            "local_suppression",
            "microaggregation",
            "mondrian",
            "optimal_recoding",
            "p_sensitive",
            "suppression",
        )
    }


@pytest.mark.parametrize(
    ("step", "means"),
    [
        ({"method": "mondrian"}, "exact"),
        ({"method": "anonymisation.p_sensitive"}, "exact"),
        ({"method": "microaggregation", "quasi_identifiers": ["age"]}, "exact"),
        ({"method": "mondrian", "means": "rounded"}, "rounded"),
        ({"method": "mondrian", "output": "generalised"}, None),
    ],
)
def test_runs_of_versions_that_wrote_no_means_had_exact_ones(
    anonymising: Callable[..., Recipe], step: dict[str, Any], means: str | None
) -> None:
    """A run of this version states its means, so that a stored recipe without them is of an earlier one."""
    table = {**anonymising().to_table(), "anonymisation": [step], "measure": [], "threshold": []}
    stored = Recipe.from_table(table, stored=True)
    assert stored.to_table()["anonymisation"][0].get("means") == means
    entered = Recipe.from_table(table)
    assert entered.to_table()["anonymisation"][0].get("means") == (means and "rounded")
    assert Recipe.from_table(entered.to_table(), stored=True).to_table() == entered.to_table()


def test_missing_quasi_identifiers_are_refused_and_missing_sensitive_values_kept(
    anonymising: Callable[..., Recipe], small_data: Microdata
) -> None:
    def lacking(name: str) -> Microdata:
        gone = small_data.frame[name].astype("float64").mask(np.arange(len(small_data)) < 3)
        return small_data.with_columns({name: gone}, "confidential")

    for step in (MONDRIAN, {"method": "microaggregation", "quasi_identifiers": ["age"]}):
        with pytest.raises(BadInput, match=r'quasi_identifiers: 3 of 80 records have no value of "age"'):
            anonymise_data(anonymising(anonymisation=[step]), lacking("age"), key=PUBLIC)
    found = anonymise_data(
        anonymising(anonymisation=[{**MONDRIAN, "l": 2, "sensitive": ["income"]}]), lacking("income"), key=PUBLIC
    )
    assert found.data.missing_mask("income").sum() == 3


def test_class_means_are_matched_within_a_radius_only(
    anonymising: Callable[..., Recipe], small_data: Microdata
) -> None:
    measures = [{"method": "risk.identification"}, {"method": "risk.identification", "radius": {"age": 20}}]
    rows = execute_run(anonymising(measure=measures, threshold=[]), small_data, key=PUBLIC).rows
    found = [row for row in rows if row.draw == 1 and row.measure == "expected_match_risk"]
    assert [row.status for row in found] == ["not computed", "computed"]
    assert '"age" is released as class means' in found[0].reason
    assert found[1].value is not None
    assert 0 < found[1].value <= 80 / 5, "at least five records share the values of any"
