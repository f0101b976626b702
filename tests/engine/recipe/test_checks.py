from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable, compared_variables
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.checks import check_steps, require_full_rank, require_varying
from sfumato.engine.recipe.recipe import Recipe

TABLE = {
    "variables": {
        "room": {"kind": "categorical"},
        "reviews": {"kind": "count"},
        "price": {"kind": "continuous"},
        "empty": {"kind": "categorical", "levels": ["a", "b"]},
    },
    "synthesis": [{"target": "price", "method": "linear_regression", "predictors": ["room", "reviews"]}],
}


def data(**columns: object) -> Microdata:
    plain = {
        "room": ["flat", "house", "tent", "flat", "house", "tent"],
        "reviews": [0, 1, 5, 3, 2, 2],
        "price": [10.0, 20.0, 15.0, 12.0, 31.0, 9.0],
        "empty": ["a"] * 6,
    }
    return conform_to_schema(pd.DataFrame({**plain, **columns}), Recipe.from_table(TABLE).schema)


def test_data_that_suit_the_recipe_pass() -> None:
    check_steps(Recipe.from_table(TABLE), data())


@pytest.mark.parametrize(
    ("predictors", "columns", "place", "message"),
    [
        (["room"], {"price": [1.0] * 6}, "synthesis[0].target", 'every value of "price" is the same'),
        (
            ["reviews", "room"],
            {"room": ["flat"] * 6},
            "synthesis[0].predictors[1]",
            'every value of "room" is the same',
        ),
        (["reviews", "empty"], {}, "synthesis[0].predictors[1]", 'every value of "empty" is the same'),
        (["room:reviews"], {"reviews": [4] * 6}, "synthesis[0].predictors[0]", 'every value of "reviews" is the same'),
        (["room", "log(reviews)"], {}, "synthesis[0].predictors[1]", "undefined for 1 record"),
        (["room", "room:log(reviews)"], {}, "synthesis[0].predictors[1]", "undefined for 1 record"),
        (["reviews", "reviews"], {}, "synthesis[0].predictors[1]", '"reviews" is aliased'),
    ],
)
def test_a_step_that_the_data_cannot_carry_is_refused_at_its_place(
    predictors: list[str], columns: dict[str, object], place: str, message: str
) -> None:
    step = {**TABLE["synthesis"][0], "predictors": predictors}  # type: ignore[index]
    with pytest.raises(BadInput) as caught:
        check_steps(Recipe.from_table({**TABLE, "synthesis": [step]}), data(**columns))
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_refusal_shows_no_value() -> None:
    with pytest.raises(BadInput) as caught:
        require_varying(data(price=[777.5] * 6), "price", "synthesis[0].target")
    assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    ("terms", "aliased"),
    [
        (["room", "reviews", "room:reviews"], None),
        (["reviews", "square(reviews)", "reviews:reviews"], 2),
        (["room", "reviews", "room"], 2),
        (["room", "empty"], 1),
        (["room:empty"], 0),
    ],
)
def test_the_first_aliased_term_is_named(terms: list[str], aliased: int | None) -> None:
    if aliased is None:
        require_full_rank(data(), terms, "p")
        return
    with pytest.raises(BadInput) as caught:
        require_full_rank(data(), terms, "p")
    assert caught.value.place == f"p[{aliased}]"
    assert f'"{terms[aliased]}" is aliased' in caught.value.message


SCHEMA = schema_of(
    "room: categorical sensitive", "days: count sensitive", "price: continuous", "number: count identifier"
)


@pytest.mark.parametrize(
    ("released", "kinds", "expected"),
    [
        (("price", "room"), tuple(Kind), ("room", "price")),
        (("room",), (Kind.COUNT,), ()),
        ((), tuple(Kind), ("room", "days")),
        ((), (Kind.COUNT, Kind.CONTINUOUS), ("days",)),
        ((), (Kind.CONTINUOUS,), ("price",)),
        ((), (Kind.DATE,), ()),
        (("number", "days"), tuple(Kind), ("days",)),
    ],
)
def test_released_variables_are_compared_or_else_sensitive_or_else_all(
    released: tuple[str, ...], kinds: tuple[Kind, ...], expected: tuple[str, ...]
) -> None:
    assert compared_variables(SCHEMA, released, kinds) == expected


def test_one_record_varies_in_nothing() -> None:
    one = conform_to_schema(pd.DataFrame({"x": [np.float64(3)]}), Schema((Variable("x", Kind.CONTINUOUS),)))
    with pytest.raises(BadInput, match="is the same"):
        require_varying(one, "x", "p")


def test_counts_too_large_for_a_poisson_model_are_refused() -> None:
    recipe = Recipe.from_table(
        {
            "variables": {"age": {"kind": "count"}, "pay": {"kind": "count"}},
            "synthesis": [{"target": "pay", "method": "zero_inflated_truncated_poisson", "predictors": ["age"]}],
        }
    )
    frame = pd.DataFrame({"age": [20, 30, 40, 50], "pay": [0, 0, 7, 10**9]})
    with pytest.raises(BadInput, match="1 record has") as caught:
        check_steps(recipe, conform_to_schema(frame, recipe.schema))
    assert caught.value.place == "synthesis[0].target"
    check_steps(recipe, conform_to_schema(frame.assign(pay=[0, 0, 7, 10**9 - 1]), recipe.schema))
