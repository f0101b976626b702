"""Anonymity and uniqueness of tables, counted by hand, by pandas on random tables, and on anonymised ones."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

VARIABLES: dict[str, Any] = variables_of(
    "zip: categorical quasi_identifier",
    "age: count quasi_identifier",
    "illness: categorical sensitive",
    "income: count sensitive",
)
MEASURES = [{"method": "risk.anonymity"}, {"method": "risk.uniqueness", "sizes": [1, 2]}]
ROWS = pd.DataFrame(
    {
        "zip": ["a", "a", "a", "b", "b", "c"],
        "age": [30, 30, 30, 40, 40, 50],
        "illness": ["flu", "flu", "cold", "flu", "flu", "cold"],
        "income": [1, 2, 3, 1, 3, 3],
    }
)


def recipe(**sections: Any) -> Recipe:
    return Recipe.from_table({"variables": VARIABLES, "measure": MEASURES, **sections})


def values_by_measure(
    rows: pd.DataFrame, released: pd.DataFrame | None = None, **sections: Any
) -> dict[tuple[Any, ...], float | None]:
    plan = recipe(**sections)
    data = conform_to_schema(rows, plan.schema)
    given_ones = [] if released is None else [conform_to_schema(released, plan.schema, origin="synthetic")]
    return {
        (row.dataset, row.measure, row.target, row.params.get("size")): row.value
        for row in execute_run(plan, data, given_ones, key=PUBLIC).rows
        if row.draw is None
    }


def test_a_table_counted_by_hand() -> None:
    values = values_by_measure(ROWS)
    own = {key[1:]: value for key, value in values.items() if key[0] == "confidential"}
    assert own["k", "", None] == 1
    assert own["classes", "", None] == 3
    assert own["p", "", None] == 1
    assert own["l_distinct", "income", None] == 1
    assert own["sample_uniques", "", None] == 1
    assert own["replicated_uniques", "", None] == pytest.approx(1 / 6)
    assert own["share_in_small_groups", "", 1] == pytest.approx(1 / 6)
    assert own["share_in_small_groups", "", 2] == pytest.approx(3 / 6)
    assert own["t", "illness", None] == pytest.approx(4 / 6), "class c has only colds, the table 2 in 6"
    # Incomes 1, 2, 3 have shares 2/6, 1/6, 3/6; class c has 3 alone: (|0 - 2/6| + |0 - 3/6|) / 2
    assert own["t", "income", None] == pytest.approx(5 / 12)


def test_recursive_diversity_needs_as_many_values_in_every_class() -> None:
    """Class a has incomes 1, 2, 3; class b 1, 3, 3: its most frequent twice, the second most frequent once."""
    two = ROWS.assign(zip=["a", "a", "a", "b", "b", "b"], age=1)

    def c(l: int) -> Any:  # noqa: E741
        plan = recipe(measure=[{"method": "risk.anonymity", "l": l}])
        rows = execute_run(plan, conform_to_schema(two, plan.schema), key=PUBLIC).rows
        return next((r.value, r.reason) for r in rows if (r.measure, r.target) == ("c_recursive", "income"))

    assert c(2) == (2.0, ""), "b has income 3 twice and 1 once"
    assert c(3) == (None, "1 of 2 classes have fewer than l = 3 different values: no c holds")


def test_a_release_is_counted_by_its_own_records() -> None:
    values = values_by_measure(ROWS, ROWS.assign(age=[30, 30, 30, 40, 40, 40], zip=["a", "a", "a", "b", "b", "b"]))
    assert values["synthetic", "k", "", None] == 3
    assert values["synthetic", "l_entropy", "illness", None] == pytest.approx(
        math.exp(-(math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3))
    )
    assert values["synthetic", "sample_uniques", "", None] == 0
    assert values["synthetic", "replicated_uniques", "", None] == 0


def test_a_unique_record_is_replicated_only_under_its_own_key() -> None:
    elsewhere = ROWS.assign(age=[30, 30, 30, 40, 40, 51])
    assert values_by_measure(ROWS, elsewhere)["synthetic", "replicated_uniques", "", None] == 0
    assert values_by_measure(ROWS, ROWS)["synthetic", "replicated_uniques", "", None] == pytest.approx(1 / 6)


def test_a_release_may_have_many_uniques_of_which_few_are_anybodys() -> None:
    """Four records are unique in the release; of its six, one has the key of the one confidential person that is unique."""
    elsewhere = ROWS.assign(zip=["a", "a", "b", "c", "c", "c"], age=[30, 30, 99, 50, 51, 52])
    values = values_by_measure(ROWS, elsewhere)
    assert values["synthetic", "sample_uniques", "", None] == 4
    assert values["synthetic", "population_uniques", "", None] == pytest.approx(1 / 6)
    assert values["synthetic", "replicated_uniques", "", None] == pytest.approx(1 / 6)
    twice = ROWS.assign(zip=["c"] * 6, age=50)
    assert values_by_measure(ROWS, twice)["synthetic", "population_uniques", "", None] == 1, (
        "six records are one person's likeness"
    )
    assert values_by_measure(ROWS, twice)["synthetic", "replicated_uniques", "", None] == 0


def test_a_key_in_bins_is_shared_by_more_records() -> None:
    released = ROWS.assign(age=[31, 34, 38, 44, 45, 59])
    plain, binned = (
        values_by_measure(ROWS, released, measure=[{"method": "risk.uniqueness", "sizes": [1, 2], **bins}])
        for bins in ({}, {"bins": {"age": "width 10"}})
    )
    assert plain["synthetic", "sample_uniques", "", None] == 6
    assert plain["synthetic", "replicated_uniques", "", None] == 0
    assert binned["synthetic", "sample_uniques", "", None] == 1
    assert binned["synthetic", "replicated_uniques", "", None] == pytest.approx(1 / 6)
    with pytest.raises(BadInput, match=r'measure\[0\]\.bins\.income: "income" is not used here'):
        recipe(measure=[{"method": "risk.uniqueness", "bins": {"income": "width 10"}}])


def test_a_key_that_equals_no_confidential_value_is_not_said_to_be_safe() -> None:
    """Dates without their times of day, and class means, repeat nobody whoever they are of."""
    variables = {"born": {"kind": "date", "role": "quasi_identifier"}}
    plan = Recipe.from_table({"variables": variables, "release": {"released": ["born"]}, "measure": MEASURES[1:]})
    born = pd.DataFrame({"born": pd.to_datetime(["2001-02-03 04:05:06", "2001-02-04 04:05:06", "2001-02-05 04:05:06"])})
    data = conform_to_schema(born, plan.schema)
    days = conform_to_schema(born.assign(born=born["born"].dt.normalize()), plan.schema, origin="synthetic")
    rows = {
        r.measure: r
        for r in execute_run(plan, data, [days], key=b"").rows
        if r.dataset == "synthetic" and r.draw is None
    }
    for name in ("population_uniques", "replicated_uniques"):
        assert rows[name].value is None
        assert "without its time of day" in rows[name].reason
    assert rows["sample_uniques"].value == 3


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(1, 25))
    columns = {
        "zip": st.sampled_from("ab"), "age": st.integers(0, 3), "illness": st.sampled_from(["flu", "cold"]),
        "income": st.integers(0, 4),
    }  # fmt: skip
    return pd.DataFrame({name: draw(st.lists(values, min_size=n, max_size=n)) for name, values in columns.items()})


@pytest.mark.slow
@seed(1)
@settings(max_examples=50, deadline=None)
@given(tables(), tables())
def test_random_tables_counted_by_pandas(rows: pd.DataFrame, released: pd.DataFrame) -> None:
    values = values_by_measure(rows, released)
    groups = released.groupby(["zip", "age"])
    assert values["synthetic", "k", "", None] == groups.size().min()
    assert values["synthetic", "p", "", None] == min(groups[name].nunique().min() for name in ("illness", "income"))
    for name in ("illness", "income"):
        assert values["synthetic", "l_distinct", name, None] == groups[name].nunique().min()
        counts = [sorted(group.value_counts(), reverse=True) for _, group in groups[name]]
        ratios = [r[0] / sum(r[1:]) if len(r) > 1 else None for r in counts]
        smallest = None if None in ratios else max(ratios)
        assert values["synthetic", "c_recursive", name, None] == smallest
    ours, theirs = (Counter(zip(table["zip"], table["age"], strict=True)) for table in (rows, released))
    replicated = sum(ours[key] == theirs[key] == 1 for key in ours)
    assert values["synthetic", "replicated_uniques", "", None] == pytest.approx(replicated / len(rows))
    single = sum(ours[key] == 1 for key in theirs.elements())
    assert values["synthetic", "population_uniques", "", None] == pytest.approx(single / len(released))
    assert values["synthetic", "sample_uniques", "", None] == sum(count == 1 for count in theirs.values())


@pytest.mark.parametrize("output", ["generalised", "micro_aggregated"])
def test_an_anonymised_table_has_the_k_it_was_made_with(output: str) -> None:
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(
        {
            "zip": rng.choice(list("abcd"), 300),
            "age": rng.integers(0, 90, 300),
            "illness": rng.choice(["flu", "cold"], 300),
            "income": rng.integers(0, 9, 300),
        }
    )
    plan = recipe(anonymisation=[{"method": "p_sensitive", "k": 4, "p": 2, "output": output}])
    outcome = execute_run(plan, conform_to_schema(rows, plan.schema), key=PUBLIC)
    values = {(r.dataset, r.measure): r.value for r in outcome.rows if r.draw is None and r.target in ("", "illness")}
    assert values["anonymised", "k"] is not None
    assert values["anonymised", "k"] >= 4
    assert values["anonymised", "p"] == 2
    assert values["confidential", "k"] == 1
    reasons = {r.measure: r.reason for r in outcome.rows if r.draw == 1 and r.value is None}
    assert reasons.keys() == {"population_uniques", "replicated_uniques"}
    assert ("class means" in reasons["replicated_uniques"]) == (output == "micro_aggregated")


def test_class_sizes_are_kept_for_every_confidential_record() -> None:
    plan = recipe(anonymisation=[{"method": "suppression", "k": 2}])
    data = conform_to_schema(ROWS, plan.schema)
    released = execute_run(plan, data, key=PUBLIC).releases[0]
    step = plan.measures[0]
    spec = step.spec.for_release(plan.schema, plan.released)
    for table, sizes in ((released, [3, 3, 3, 2, 2, 0]), (data, [3, 3, 3, 2, 2, 1])):
        measure = step.method.func(data, table, spec, None)
        assert measure.per_record["class_size"].tolist() == sizes


def test_a_variable_cannot_be_key_and_sensitive() -> None:
    measure = {"method": "risk.anonymity", "quasi_identifiers": ["zip"], "sensitive": ["zip"]}
    with pytest.raises(BadInput, match=r"measure\[0\]\.sensitive: \"zip\" is among the quasi-identifiers"):
        recipe(measure=[measure])


def test_the_confidential_data_are_microdata_as_before(small_data: Microdata) -> None:
    assert small_data.linked_records.tolist() == list(range(len(small_data)))
    assert not small_data.generalised
