"""Thresholds on the anonymity of the table: held against the anonymised one, never against the confidential."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict

VARIABLES = variables_of(
    "age: count quasi_identifier", "smokes: binary quasi_identifier", "illness: categorical sensitive"
)


@pytest.fixture(scope="module")
def data() -> Microdata:
    rng = np.random.default_rng(3)
    rows = {"age": rng.integers(0, 60, 200), "smokes": rng.integers(0, 2, 200), "illness": rng.choice(list("abc"), 200)}
    return conform_to_schema(pd.DataFrame(rows), recipe([]).schema)


def recipe(thresholds: list[dict[str, Any]], **step: Any) -> Recipe:
    return Recipe.from_table(
        {
            "variables": VARIABLES,
            "anonymisation": [{"method": "mondrian", "k": 5, **step}],
            "measure": [{"method": "risk.anonymity"}, {"method": "risk.uniqueness"}],
            "threshold": thresholds,
        }
    )


def judged(data: Microdata, value: str, bound: str, limit: float, **step: Any) -> Verdict:
    (verdict,) = execute_run(recipe([{"value": value, bound: limit}], **step), data, key=PUBLIC).verdicts
    return verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "bound", "passed", "failed"),
    [
        ("risk.anonymity.k", "min", {"k": 5}, {"k": 2}),
        ("risk.anonymity.p", "min", {"l": 2.0}, {"k": 2}),
        ("risk.anonymity.l_distinct", "min", {"l": 2.0}, {"k": 2}),
        ("risk.anonymity.l_entropy", "min", {"l": 1.5, "diversity": "entropy"}, {"k": 2}),
        ("risk.anonymity.t", "max", {"t": 0.4}, {"k": 2}),
        ("risk.uniqueness.sample_uniques", "max", {"k": 5}, None),
    ],
)
def test_the_anonymised_table_decides(
    data: Microdata, value: str, bound: str, passed: dict[str, Any], failed: dict[str, Any] | None
) -> None:
    limit = {"k": 5.0, "p": 2.0, "l_distinct": 2.0, "l_entropy": 1.5, "t": 0.4, "sample_uniques": 0.0}
    own = limit[value.rpartition(".")[2]]
    verdict = judged(data, value, bound, own, **passed)
    assert verdict.outcome == "met"
    rows = execute_run(recipe([], **passed), data, key=PUBLIC).rows
    (confidential,) = [row.value for row in rows if row.key == value and row.dataset == "confidential"]
    assert confidential is not None
    assert (confidential < own) if bound == "min" else (confidential > own), "the confidential data fail the threshold"
    if failed:
        assert judged(data, value, bound, own, **failed).outcome == "not met"


def test_recursive_diversity_passes_where_it_was_asked_and_is_no_pass_without_values_enough(data: Microdata) -> None:
    asked = {"l": 2.0, "diversity": "recursive", "c": 1.5}
    assert judged(data, "risk.anonymity.c_recursive", "max", 1.5, **asked).outcome == "met"
    assert judged(data, "risk.anonymity.c_recursive", "max", 1.5, l=2.0).outcome == "not met"
    verdict = judged(data, "risk.anonymity.c_recursive", "max", 1.5, k=2)
    assert verdict.outcome == "not computed"
    assert verdict.reason.endswith("fewer than l = 2 different values: no c holds")


def test_it_is_judged_once_and_with_what_makes_the_classes(data: Microdata) -> None:
    verdict = judged(data, "risk.anonymity.k", "min", 5)
    assert (verdict.target, verdict.level, verdict.params) == ("", None, {"quasi_identifiers": ["age", "smokes"]})


def test_a_ratio_is_to_the_confidential_tables_own_anonymity(data: Microdata) -> None:
    rows = execute_run(recipe([]), data, key=PUBLIC).rows
    by = {row.dataset: row.value for row in rows if row.measure == "classes" and row.draw is None}
    assert by["confidential"] is not None
    assert by["anonymised"] is not None
    verdict = judged(data, "risk.anonymity.classes", "max_ratio", 0.9)
    assert verdict.observed == pytest.approx(by["anonymised"] / by["confidential"])


def test_without_a_sensitive_variable_p_is_no_pass(data: Microdata) -> None:
    table = recipe([{"value": "risk.anonymity.p", "min": 2}]).to_table()
    table["variables"]["illness"]["role"] = "other"
    (verdict,) = execute_run(Recipe.from_table(table), data, key=PUBLIC).verdicts
    assert (verdict.outcome, verdict.reason) == ("not computed", "no variable is sensitive")


def test_a_value_of_another_name_is_refused_with_the_measures_of_its_method() -> None:
    with pytest.raises(BadInput) as caught:
        recipe([{"value": "risk.anonymity.smallest_size", "min": 5}])
    assert caught.value.place == "threshold[0].value"
    assert "measured: risk.anonymity.k, risk.anonymity.classes" in caught.value.message
    assert "uniqueness" not in caught.value.message
    with pytest.raises(BadInput, match=r'did you mean "risk\.anonymity\.l_distinct"'):
        recipe([{"value": "risk.anonymity.l_distnct", "min": 2}])
