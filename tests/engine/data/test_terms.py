from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.data.terms import parse_term
from sfumato.engine.design.design_matrix import Design
from sfumato.engine.errors import BadInput

SCHEMA = Schema(
    (
        Variable("room", Kind.CATEGORICAL, levels=("flat", "house", "tent")),
        Variable("new", Kind.BINARY, levels=("no", "yes")),
        Variable("zone", Kind.CATEGORICAL, levels=("1", "5", "10")),
        Variable("reviews", Kind.COUNT),
        Variable("price", Kind.CONTINUOUS),
        Variable("day", Kind.DATE),
        Variable("log(odd):name", Kind.CONTINUOUS),
    )
)


def example() -> Microdata:
    return conform_to_schema(
        pd.DataFrame(
            {
                "room": ["flat", "house", "tent", "house"],
                "new": ["no", "yes", "yes", "no"],
                "zone": ["5", "10", "1", "5"],
                "reviews": [0, 1, 2, 3],
                "price": [1.0, 2.0, 4.0, 8.0],
                "day": ["1970-01-01", "1970-01-02", "1970-01-11", "1970-01-31"],
                "log(odd):name": [1.0, 2.0, 3.0, 5.0],
            }
        ),
        SCHEMA,
    )


def columns(*terms: str) -> dict[str, list[float]]:
    data = example()
    design = Design.from_terms([parse_term(text, SCHEMA, "p") for text in terms], data)
    return dict(zip(design.names, design.build_matrix(data).T.tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reviews", {"reviews": [0, 1, 2, 3]}),
        ("room", {"room=house": [0, 1, 0, 1], "room=tent": [0, 0, 1, 0]}),
        ("new", {"new=yes": [0, 1, 1, 0]}),
        ("day", {"day": [0, 1, 10, 30]}),
        ("log(price)", {"log(price)": np.log([1, 2, 4, 8])}),
        ("log1p( reviews )", {"log1p(reviews)": np.log([1, 2, 3, 4])}),
        ("sqrt(price)", {"sqrt(price)": np.sqrt([1, 2, 4, 8])}),
        ("square(reviews)", {"square(reviews)": [0, 1, 4, 9]}),
        ("code(room)", {"code(room)": [1, 2, 3, 2]}),
        ("code(zone)", {"code(zone)": [5, 10, 1, 5]}),
        ("code(room):price", {"code(room):price": [1, 4, 12, 16]}),
        ("reviews:price", {"reviews:price": [0, 2, 8, 24]}),
        ("log(price) : reviews", {"log(price):reviews": np.log([1, 2, 4, 8]) * [0, 1, 2, 3]}),
        ("room:new", {"room=house:new=yes": [0, 1, 0, 0], "room=tent:new=yes": [0, 0, 1, 0]}),
        ("new:reviews", {"new=yes:reviews": [0, 1, 2, 0]}),
        ("log(odd):name", {"log(odd):name": [1, 2, 3, 5]}),
    ],
)  # fmt: skip
def test_a_term_gives_its_columns(text: str, expected: dict[str, list[float]]) -> None:
    found = columns(text)
    assert found.pop("intercept") == [1.0] * 4
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(list(values))


def test_terms_stand_in_order() -> None:
    assert list(columns("new", "price", "room")) == ["intercept", "new=yes", "price", "room=house", "room=tent"]
    assert list(columns()) == ["intercept"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reviws", 'no column "reviws"; did you mean "reviews"?'),
        ("log(reviws)", 'did you mean "reviews"?'),
        ("exp(price)", 'no function "exp"; a term may use log, log1p, sqrt, square, code'),
        ("code(price)", '"price" has numbers, not levels; use the column itself'),
        ("log(room)", '"room" has levels, not numbers'),
        ("room:new:price", "more than two factors"),
        ("price + reviews", "is not a term"),
        ("price**2", "is not a term"),
        ("__import__('os').system('true')", "no function"),
        ("log(log(price))", 'no column "log(price)"'),
        ("", "is not a term"),
        (":", "is not a term"),
        ("log()", "is not a term"),
        ("pri\nce", "is not a term"),
    ],
)
def test_text_that_is_not_a_term_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_term(text, SCHEMA, "synthesis[0].predictors[1]")
    assert caught.value.place == "synthesis[0].predictors[1]"
    assert message in caught.value.message


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=st.text(st.sampled_from("pricelog1():. _+*'\"\n"), max_size=14))
def test_any_text_is_a_term_or_refused(text: str) -> None:
    try:
        term = parse_term(text, SCHEMA, "p")
    except BadInput:
        return
    assert set(term.columns) <= set(SCHEMA.names)
    assert parse_term(str(term), SCHEMA, "p") == term


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log(reviews)", "undefined for 1 record at or below 0; use log1p"),
        ("log1p(log(odd):name)", "undefined for 2 records at or below -1"),
        ("sqrt(log(odd):name)", "undefined for 2 records below 0"),
    ],
)
def test_a_function_outside_its_domain_is_refused_without_a_value(text: str, message: str) -> None:
    data = example()
    data = data.with_columns({"log(odd):name": pd.Series([-1.0, -7.5, 0.0, 1.0])}, "synthetic")
    design = Design.from_terms([parse_term(text, SCHEMA, "p")], data)
    with pytest.raises(BadInput) as caught:
        design.build_matrix(data)
    assert message in caught.value.message
    assert "7.5" not in str(caught.value)


def test_a_level_that_is_missing_has_no_code() -> None:
    data = example()
    holes = data.with_columns({"zone": data.column("zone").where([True, False, True, True])}, "confidential")
    matrix = Design.from_terms([parse_term("code(zone)", SCHEMA, "p")], data).build_matrix(holes)
    assert np.array_equal(matrix[:, 1], [5, np.nan, 1, 5], equal_nan=True)


def test_the_matrix_of_a_release_has_the_columns_of_the_confidential_data() -> None:
    data = example()
    design = Design.from_terms([parse_term("room", SCHEMA, "p")], data)
    only = data.column("room").where(data.column("room") == "house", "house")
    released = data.with_columns({"room": only}, "synthetic")
    assert design.build_matrix(released).tolist() == [[1.0, 1.0, 0.0]] * 4
