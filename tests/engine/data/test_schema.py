from __future__ import annotations

from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

SCHEMA = Schema(
    (
        Variable("room", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER),
        Variable("reviews", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("price", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ("count", "v", "must be a table"),
        (
            {},
            "v.kind",
            "must be given: the scale that it is measured on; one of categorical, ordinal, binary, count, continuous, date",
        ),
        ({"kind": "cout"}, "v.kind", 'did you mean "count"?'),
        ({"kind": "count", "role": "senstive"}, "v.role", 'did you mean "sensitive"?'),
        ({"kind": "count", "bound": [0, 1]}, "v.bound", 'unknown key; did you mean "bounds"?'),
        ({"kind": "count", "colour": 1}, "v.colour", "unknown key; known: kind"),
        ({"kind": "date", "bounds": [0, 1]}, "v.bounds", "bounds of dates are written"),
        ({"kind": "count", "bounds": ["2020-01-01", ""]}, "v.bounds", "a date is no bound of a variable that is count"),
        (
            {"kind": "date", "bounds": ["2020-01-01", "2019-01-01"]},
            "v.bounds",
            "2020-01-01, is above the largest, 2019-01-01",
        ),
        ({"kind": "count", "bounds": 5}, "v.bounds", "must be a list"),
        ({"kind": "count", "bounds": [1]}, "v.bounds", "must be two numbers"),
        ({"kind": "count", "bounds": [True, 3]}, "v.bounds[0]", "True is not a number"),
        ({"kind": "count", "bounds": [0, float("inf")]}, "v.bounds[1]", "an empty string leaves an end open"),
        ({"kind": "continuous", "bounds": [float("nan"), 1]}, "v.bounds[0]", "is not a number"),
        ({"kind": "continuous", "bounds": ["low", 1]}, "v.bounds[0]", "'low' is not a number"),
        ({"kind": "continuous", "bounds": [2, 1]}, "v.bounds", "2, is above the largest, 1"),
        ({"kind": "count", "bounds": [-1, 3]}, "v.bounds", "start at 0"),
        ({"kind": "ordinal", "levels": "abc"}, "v.levels", "must be a list"),
        ({"kind": "ordinal", "levels": ["a", "b", "a"]}, "v.levels[2]", '"a" is listed twice'),
        ({"kind": "ordinal", "levels": [1, 1.0]}, "v.levels[1]", '"1" is listed twice'),
        ({"kind": "binary", "levels": ["a", "b", "c"]}, "v.levels", 'use kind = "categorical"'),
        ({"kind": "count", "levels": ["1"]}, "v.levels", "only categorical, ordinal and binary variables have levels"),
        ({"kind": "count", "labels": ["a"]}, "v.labels", "must be a table"),
        ({"kind": "count", "missing": -9}, "v.missing", "must be a list"),
        ({"kind": "count", "missing": [True]}, "v.missing[0]", "neither text nor a number"),
        ({"kind": "count", "missing": [float("nan")]}, "v.missing[0]", "neither text nor a number"),
    ],
)
def test_a_variable_that_cannot_be_is_refused_at_its_place(table: Any, place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Variable.from_table("x", table, "v")
    assert caught.value.place == place
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("kind", "bounds", "lower", "upper"),
    [
        (Kind.COUNT, None, 0.0, None),
        (Kind.COUNT, (None, 5.0), 0.0, 5.0),
        (Kind.COUNT, (2.0, None), 2.0, None),
        (Kind.CONTINUOUS, None, None, None),
        (Kind.CONTINUOUS, (-1.5, None), -1.5, None),
    ],
)
def test_ends_of_a_variable(kind: Kind, bounds: Any, lower: float | None, upper: float | None) -> None:
    variable = Variable("x", kind, bounds=bounds)
    assert (variable.lower, variable.upper) == (lower, upper)


text = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
ends = st.one_of(st.nothing(), st.integers(0, 9), st.floats(0, 9))


@st.composite
def variables(draw: Any) -> Variable:
    kind = draw(st.sampled_from(Kind))
    bounds, levels = None, ()
    if kind in (Kind.COUNT, Kind.CONTINUOUS) and draw(st.booleans()):
        low, high = draw(ends), draw(ends)
        if low is not None and high is not None:
            low, high = sorted((low, high))
        bounds = tuple(None if end is None else float(end) for end in (low, high))
    if kind.has_levels:
        levels = tuple(draw(st.lists(text, max_size=2, unique=True)))
    return Variable(
        draw(text),
        kind,
        draw(st.sampled_from(Role)),
        bounds,
        levels,
        draw(st.dictionaries(text, text, max_size=2)),
        tuple(draw(st.lists(st.one_of(text, st.integers(-99, 99), st.floats(-9, 9)), max_size=2))),
        draw(st.one_of(st.just(""), text)),
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(variable=variables())
def test_a_variable_comes_back_the_same_through_toml(variable: Variable) -> None:
    table = read_toml(tomli_w.dumps({"variables": {variable.name: variable.to_table()}}))["variables"]
    assert Variable.from_table(variable.name, table[variable.name], "v") == variable


def test_numbers_as_levels_are_text_without_a_point() -> None:
    assert Variable.from_table("x", {"kind": "ordinal", "levels": [1, 2.0, 2.5, "b"]}, "v").levels == (
        "1",
        "2",
        "2.5",
        "b",
    )


def test_a_schema_finds_variables_by_name() -> None:
    assert SCHEMA["price"].kind is Kind.CONTINUOUS
    assert "price" in SCHEMA
    assert "prices" not in SCHEMA
    assert (len(SCHEMA), SCHEMA.names) == (3, ("room", "reviews", "price"))
    assert SCHEMA.names_by_role(Role.QUASI_IDENTIFIER) == ("room", "reviews")
    assert SCHEMA.names_by_role(Role.IDENTIFIER) == ()
    with pytest.raises(KeyError):
        SCHEMA["prices"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reviws", 'no column "reviws"; did you mean "reviews"?'),
        ("zzz", 'no column "zzz"; columns: room, reviews, price'),
    ],
)
def test_a_missing_column_names_the_near_miss_or_all(name: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        SCHEMA.require_variable(name, "p")
    assert (caught.value.place, caught.value.message) == ("p", message)


def test_the_older_word_for_a_quasi_identifier_is_read_and_the_field_s_word_is_written() -> None:
    variable = Variable.from_table("age", {"kind": "count", "role": "known"}, "variables.age")
    assert variable.role is Role.QUASI_IDENTIFIER
    assert variable.to_table()["role"] == "quasi_identifier"
    with pytest.raises(BadInput, match="quasi_identifier"):
        Variable.from_table("age", {"kind": "count", "role": "knwon"}, "variables.age")
