"""What anonymised tables show, on small tables written out, and on random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.anonymisation._partition import numbers_as_labelled
from sfumato.engine.anonymisation.microaggregation import mdav_groups
from sfumato.engine.anonymisation.mondrian import MondrianSpec
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import anonymise_data
from sfumato.engine.methods.release_form import Anonymised
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.partition.hierarchies import lies_outside_label
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

VARIABLES: dict[str, Any] = {
    "city": {"kind": "categorical", "role": "quasi_identifier", "levels": ["foo", "bar", "test"]},
    "size": {"kind": "ordinal", "role": "quasi_identifier", "levels": ["small", "medium", "large"]},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "joined": {"kind": "date", "role": "quasi_identifier"},
    "illness": {"kind": "categorical", "role": "sensitive"},
}
ROWS = pd.DataFrame(
    {
        "city": ["foo", "foo", "bar", "test", "test", "test"],
        "size": ["small", "medium", "large", "small", "small", "large"],
        "age": [20, 22, 29, 60, 61, 64],
        "joined": ["2020-01-01", "2020-01-02", "2020-01-04", "2021-03-01", "2021-03-01", "2021-03-01"],
        "illness": ["a", "b", "a", "a", "b", "b"],
    }
)
TREE = {
    "rows": [["foo", "foobar", "*"], ["bar", "foobar", "*"], ["test", "test", "*"]],
    "sizes": {"foobar": 10, "*": 100},
}


def data_of(rows: pd.DataFrame = ROWS) -> Microdata:
    names = [name for name in VARIABLES if name in rows.columns]
    return conform_to_schema(rows, Recipe.from_table({"variables": {name: VARIABLES[name] for name in names}}).schema)


def anonymise_table(*steps: dict[str, Any], data: Microdata | None = None) -> Anonymised:
    data = data_of() if data is None else data
    variables = {v.name: v.to_table() for v in data.schema}
    recipe = Recipe.from_table({"variables": variables, "anonymisation": list(steps)})
    check_steps(recipe, data)
    return anonymise_data(recipe, data, key=PUBLIC)


def shown(found: Anonymised) -> dict[str, list[Any]]:
    return {name: [str(v) if name != "age" else v for v in found.data.frame[name]] for name in found.data.schema.names}


@pytest.mark.parametrize(
    ("means", "ages"), [("exact", [pytest.approx(71 / 3), pytest.approx(185 / 3)]), ("rounded", [24, 62])]
)
def test_micro_aggregated_classes_show_means_medians_and_modes(means: str, ages: list[Any]) -> None:
    assert shown(anonymise_table({"method": "mondrian", "k": 3, "means": means})) == {
        "city": ["foo"] * 3 + ["test"] * 3,
        "size": ["medium"] * 3 + ["small"] * 3,
        "age": [ages[0]] * 3 + [ages[1]] * 3,
        "joined": ["2020-01-02 00:00:00"] * 3 + ["2021-03-01 00:00:00"] * 3,
        "illness": ["a", "b", "a", "a", "b", "b"],
    }


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([2, 3], 2),
        ([3, 4], 4),
        ([-3, -2], -2),
        ([1, 1, 2], 1),
        ([1000, 2000, 2000], 1667),
        ([8.1, 8.2], 8.2),
        ([0.1, 0.2], 0.2),
        ([0.2, 0.3], 0.2),
        ([1, 2.5], 1.8),
        ([12.25, 12.26, 12.26], 12.26),
        ([-0.5, 0.5], 0),
        ([1e300, 1e300, 1e300], 1e300),
        ([1 / 3, 2 / 3], 0.5),
        ([0.1, 0.1, 0.1], 0.1),
    ],
)
@pytest.mark.parametrize("method", ["mondrian", "microaggregation", "p_sensitive"])
def test_means_have_the_decimals_of_their_column_half_to_even(method: str, values: list[float], mean: float) -> None:
    """Computed by hand: 8.15, whose double lies below it, is half way between 8.1 and 8.2 all the same."""
    variables = {"age": {"kind": "continuous", "role": "quasi_identifier"}, "illness": {"kind": "categorical"}}
    variables["illness"]["role"] = "sensitive"
    step = {"method": method, "k": len(values)}
    recipe = Recipe.from_table({"variables": variables, "anonymisation": [step]})
    rows = pd.DataFrame({"age": values, "illness": list("abc")[: len(values)]})
    released = anonymise_data(recipe, conform_to_schema(rows, recipe.schema), key=PUBLIC)
    assert released.data.frame["age"].tolist() == [mean] * len(values)


def test_generalised_classes_show_intervals_and_common_nodes() -> None:
    found = anonymise_table({"method": "mondrian", "k": 3, "output": "generalised", "hierarchies": {"city": TREE}})
    assert shown(found) == {
        "city": ["foobar"] * 3 + ["test"] * 3,
        "size": ["[small, large]"] * 6,
        "age": ["[20, 29]"] * 3 + ["[60, 64]"] * 3,
        "joined": ["[2020-01-01, 2020-01-04]"] * 3 + ["2021-03-01"] * 3,
        "illness": ["a", "b", "a", "a", "b", "b"],
    }
    flat = anonymise_table({"method": "mondrian", "k": 3, "output": "generalised"})
    assert shown(flat)["city"] == ["*"] * 3 + ["test"] * 3


def test_global_recoding_shows_the_nodes_of_a_level() -> None:
    step = {
        "method": "generalisation",
        "levels": {"city": 1, "age": 2, "joined": 1, "size": 1},
        "hierarchies": {"city": TREE},
        "widths": {"age": [10, 50], "joined": [100]},
    }
    found = shown(anonymise_table(step))
    assert found["city"] == ["foobar"] * 3 + ["test"] * 3
    assert found["size"] == ["*"] * 6
    assert found["age"] == ["[0, 50)"] * 3 + ["[50, 100)"] * 3
    first = np.datetime64(18262 // 100 * 100, "D")
    assert found["joined"][0] == f"[{first}, {first + 100})"


@pytest.mark.parametrize("method", ["mondrian", "generalisation"])
def test_labels_of_dates_are_days_that_hold_the_moments_they_stand_for(method: str) -> None:
    """Hours before and after the first of 1970 too, where days cut towards zero would move."""
    moments = pd.Timestamp("1969-12-30 18:00") + pd.to_timedelta(np.arange(12) * 7, unit="h")
    step = {
        "mondrian": {"k": 3, "output": "generalised"},
        "generalisation": {"levels": {"joined": 1}, "widths": {"joined": [2]}},
    }[method]
    variables = {"joined": {"kind": "date", "role": "quasi_identifier"}}
    recipe = Recipe.from_table({"variables": variables, "anonymisation": [{"method": method, **step}]})
    data = conform_to_schema(pd.DataFrame({"joined": moments}), recipe.schema)
    labels = anonymise_data(recipe, data, key=PUBLIC).data.frame["joined"].astype("object").to_numpy()
    assert len(set(labels)) > 1
    assert not lies_outside_label(labels, numbers_as_labelled(data, "joined"), Kind.DATE).any()
    assert not any(":" in label for label in labels), "a time of day"


def test_suppression_leaves_the_rest_as_it_is() -> None:
    found = anonymise_table({"method": "suppression", "k": 3, "quasi_identifiers": ["city"]})
    assert found.suppressed.tolist() == [True] * 3 + [False] * 3
    assert found.class_keys.tolist() == [-1] * 3 + [0] * 3
    assert shown(found)["age"] == [60, 61, 64]
    with pytest.raises(
        BadInput, match=r"max_suppressed: 3 of 6 records are in classes of fewer than 3, and at most 1 may"
    ):
        anonymise_table({"method": "suppression", "k": 3, "quasi_identifiers": ["city"], "max_suppressed": 0.2})


def test_the_kind_of_diversity_alone_asks_for_nothing() -> None:
    spec = MondrianSpec(diversity="entropy")
    assert not spec.has_value_limits
    assert MondrianSpec(diversity="entropy", l=1.5).has_value_limits


def test_suppression_after_recoding_sees_the_recoded_values() -> None:
    recode = {
        "method": "generalisation",
        "quasi_identifiers": ["city"],
        "levels": {"city": 1},
        "hierarchies": {"city": TREE},
    }
    found = anonymise_table(recode, {"method": "suppression", "k": 3, "quasi_identifiers": ["city"]})
    assert not found.suppressed.any()
    assert [note.parameter for note in found.notes[::4]] == ["release, anonymisation[0]", "release, anonymisation[1]"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"method": "mondrian", "k": 7}, r"anonymisation\[0\]\.k: 6 records cannot make a class of 7"),
        ({"method": "microaggregation", "k": 7, "quasi_identifiers": ["age"]}, r"\[0\]\.k: 6 records"),
        ({"method": "suppression", "k": 7}, r"\[0\]\.k: 6 records"),
        ({"method": "microaggregation"}, '"city" is categorical, which has no distances'),
        ({"method": "mondrian", "l": 3}, r'\[0\]\.l: "illness" is not 3-diverse \(distinct\) even in the whole table'),
        (
            {"method": "mondrian", "l": 1.99, "diversity": "entropy", "sensitive": ["age"]},
            '"age" is a quasi-identifier too',
        ),
        ({"method": "mondrian", "l": 2, "diversity": "recursive"}, r"\[0\]\.c: recursive diversity needs it"),
        ({"method": "mondrian", "l": 1.5, "diversity": "recursive", "c": 2}, r"\[0\]\.l: must be a whole number"),
        ({"method": "mondrian", "diversity": "recursive", "c": 2}, r"\[0\]\.l: must be a whole number of at least 2"),
        ({"method": "mondrian", "l": 2, "c": 2}, r"\[0\]\.c: belongs to recursive diversity"),
        (
            {"method": "mondrian", "l": 2, "diversity": "recursive", "c": 0.5},
            r'\[0\]\.c: "illness" is not \(0\.5, 2\)-diverse \(recursive\) even in the whole table; take more',
        ),
        ({"method": "p_sensitive", "p": 3}, r'\[0\]\.p: "illness" has 2 different values, fewer than p = 3'),
        ({"method": "p_sensitive", "p": 6}, r"\[0\]\.p: must be at most k = 5"),
        (
            {"method": "mondrian", "hierarchies": {"city": [["foo", "*"], ["bar", "*"]]}},
            r"hierarchies\.city: 1 of 3 values",
        ),
        ({"method": "mondrian", "quasi_identifiers": ["age"], "hierarchies": {"city": TREE}}, "is no quasi-identifier"),
        ({"method": "mondrian", "quasi_identifiers": ["age", "age"]}, r'\[1\]: "age" is listed twice'),
        ({"method": "mondrian", "cuts": "relaxed", "max_suppressed": 0.1}, "relaxed cuts never need suppression"),
        ({"method": "generalisation"}, "nothing is recoded"),
        ({"method": "generalisation", "levels": {"city": 2}}, r"levels\.city: 2 is above the root, which is level 1"),
        ({"method": "generalisation", "levels": {"age": 1}, "widths": {"age": [10, 15]}}, r"widths\.age: each width"),
    ],
)
def test_what_cannot_be_done_is_said_at_its_place(step: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        anonymise_table(step)


@st.composite
def raw_tables(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(2, 30))
    ages = st.integers(0, draw(st.sampled_from([0, 2, 90])))
    columns = {
        "city": st.sampled_from(["foo", "bar", "test"]), "size": st.sampled_from(["small", "medium", "large"]), "age": ages,
        "joined": st.sampled_from(["2020-01-01", "2020-01-02"]), "illness": st.sampled_from(["a", "b"]),
    }  # fmt: skip
    return pd.DataFrame({name: draw(st.lists(values, min_size=n, max_size=n)) for name, values in columns.items()})


@pytest.mark.slow
@seed(6)
@settings(max_examples=60, deadline=None)
@given(
    raw_tables(),
    st.integers(2, 5),
    st.sampled_from(["strict", "relaxed"]),
    st.sampled_from(["micro_aggregated", "generalised"]),
)
def test_any_table_becomes_k_anonymous_or_is_refused(rows: pd.DataFrame, k: int, cuts: str, output: str) -> None:
    step = {"method": "mondrian", "k": k, "cuts": cuts, "output": output}
    if len(rows) < k:
        with pytest.raises(BadInput, match="cannot make a class"):
            anonymise_table(step, data=data_of(rows))
        return
    found = anonymise_table(step, data=data_of(rows))
    keys = ["city", "size", "age", "joined"]
    assert found.data.frame.groupby(keys, observed=True).size().min() >= k
    assert found.data.frame["illness"].astype(str).tolist() == rows["illness"].tolist()


@pytest.mark.slow
@seed(7)
@settings(max_examples=40, deadline=None)
@given(raw_tables(), st.integers(2, 4))
def test_classes_of_p_sensitive_keep_to_the_bound_of_truta_and_vinay(rows: pd.DataFrame, k: int) -> None:
    if len(rows) < k or rows["illness"].nunique() < 2:
        return
    found = anonymise_table({"method": "p_sensitive", "k": k, "p": 2}, data=data_of(rows))
    assert found.data.frame.groupby(found.class_keys)["illness"].nunique().min() >= 2
    commonest = rows["illness"].value_counts().max()
    assert found.class_keys.max() + 1 <= len(rows) - commonest, "Theorem 2: at most n - cf_1 groups"


def test_mdav_groups_equal_points_too() -> None:
    assert sorted(np.bincount(mdav_groups(np.zeros((11, 2)), 2))) == [2, 2, 2, 2, 3]


def test_groups_by_mdav_are_tighter_than_groups_at_random() -> None:
    rng = np.random.default_rng(8)
    data = data_of(pd.DataFrame({"age": rng.integers(0, 90, 200), "illness": ["a", "b"] * 100}))
    found = anonymise_table({"method": "microaggregation", "k": 5}, data=data)
    age = data.numbers("age")
    within = float(np.mean((age - found.data.numbers("age")) ** 2))
    random = age.reshape(-1, 5)
    assert within < 0.05 * np.var(age)
    assert np.mean((random - random.mean(axis=1, keepdims=True)) ** 2) > 0.5 * np.var(age)


BINARY = {
    "smokes": {"kind": "binary", "role": "quasi_identifier", "levels": ["no", "yes"], "labels": {"yes": "Yes, daily"}},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "illness": {"kind": "categorical", "role": "sensitive"},
}


@pytest.mark.parametrize("method", ["mondrian", "microaggregation", "p_sensitive"])
@pytest.mark.parametrize(("yes", "shown"), [(5, "yes"), (4, "yes"), (3, "no")])
def test_a_binary_variable_shows_its_most_frequent_level_and_keeps_its_labels(
    method: str, yes: int, shown: str
) -> None:
    """Of four yes and four no the first in the order of the levels, which is not that of the letters."""
    variables = {**BINARY, "smokes": {**BINARY["smokes"], "levels": ["yes", "no"]}}
    recipe = Recipe.from_table({"variables": variables, "anonymisation": [{"method": method, "k": 8}]})
    smokes = ["no"] * (8 - yes) + ["yes"] * yes
    rows = pd.DataFrame({"smokes": smokes, "age": range(8), "illness": list("abcdabcd")})
    released = anonymise_data(recipe, conform_to_schema(rows, recipe.schema), key=PUBLIC)
    assert released.class_keys.tolist() == [0] * 8, "the control: one class"
    assert released.data.frame["smokes"].tolist() == [shown] * 8
    assert released.data.schema["smokes"] == recipe.schema["smokes"]


@pytest.mark.parametrize("method", ["mondrian", "microaggregation", "p_sensitive"])
def test_with_exact_means_a_binary_variable_shows_the_share_of_its_second_level(method: str) -> None:
    """Lighthouse data quality §3.1: "the 0/1 values may be micro-aggregated under anonymization to be in [0, 1]"."""
    step = {"method": method, "k": 3, "means": "exact"}
    recipe = Recipe.from_table({"variables": BINARY, "anonymisation": [step]})
    rows = pd.DataFrame(
        {"smokes": ["yes", "no", "no", "yes", "yes", "yes"], "age": [1, 2, 3, 90, 91, 92], "illness": list("abcabc")}
    )
    released = anonymise_data(recipe, conform_to_schema(rows, recipe.schema), key=PUBLIC).data
    assert released.frame["smokes"].tolist() == [pytest.approx(1 / 3)] * 3 + [1.0] * 3
    variable = released.schema["smokes"]
    assert (variable.kind, variable.bounds, variable.levels, variable.labels) == ("continuous", (0.0, 1.0), (), {})
    generalised = Recipe.from_table(
        {"variables": BINARY, "anonymisation": [{"method": "mondrian", "k": 3, "output": "generalised"}]}
    )
    shown = anonymise_data(generalised, conform_to_schema(rows, recipe.schema), key=PUBLIC).data
    assert shown.frame["smokes"].astype(str).tolist() == ["*"] * 3 + ["yes"] * 3
