from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data import blocks
from sfumato.engine.data.block_sums import TableInMemory
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.design.estimation import RegressionModel
from sfumato.engine.errors import BadInput, NotComputable

SCHEMA = schema_of(
    Variable("room", Kind.CATEGORICAL, levels=("flat", "house", "tent")),
    "smoker: binary",
    "age: count",
    "price: continuous",
    "born: date",
)
names = st.sampled_from(["age", "log(price)", "room:age", "sqrt(age)", "number of rooms"])


def frame(n: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    return pd.DataFrame(
        {
            "room": rng.choice(["flat", "house", "tent"], n),
            "smoker": np.where(rng.random(n) < 1 / (1 + np.exp(2 - age / 30)), "yes", "no"),
            "age": age,
            "price": np.exp(3 + 0.01 * age + 0.3 * rng.normal(size=n)),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


def data(**columns: object) -> Microdata:
    return conform_to_schema(frame().assign(**columns), SCHEMA)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("log(price) ~ room + age", RegressionModel("log(price)", ("room", "age"))),
        ("  linear :price~age ", RegressionModel("price", ("age",))),
        ("logit: smoker ~ room:age + sqrt(age)", RegressionModel("smoker", ("room:age", "sqrt(age)"), "logit")),
    ],
)
def test_a_model_is_read_as_it_is_written(text: str, model: RegressionModel) -> None:
    assert RegressionModel.parse(text) == model
    assert RegressionModel.parse(model) == model


@settings(derandomize=True, deadline=None)
@given(names, st.lists(names, min_size=1, unique=True), st.sampled_from(["linear", "logit"]))
def test_a_model_comes_back_from_what_it_writes(response: str, terms: list[str], family: str) -> None:
    model = RegressionModel(response, tuple(terms), family)  # type: ignore[arg-type]
    assert RegressionModel.parse(model.written) == model


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("price", "is not a model"),
        ("price ~ age ~ room", "is not a model"),
        (5, "is not a model"),
        (["price", "age"], "is not a model"),
        ("price ~ age + ", "lacks a response or a term"),
        ("price ~ ", "lacks a response or a term"),
        (" ~ age", "lacks a response or a term"),
        ("price ~ age + room + age", 'has the term "age" twice'),
    ],
)
def test_what_is_not_a_model_is_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RegressionModel.parse(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prize ~ age", 'no column "prize"; did you mean "price"?'),
        ("price ~ agee", 'no column "agee"; did you mean "age"?'),
        ("exp(price) ~ age", 'no function "exp"'),
        ("price ~ __import__('os').system('x')", 'no function "__import__"'),
        ("price:age ~ room", "must be a column, or a function of one"),
        ("smoker ~ age", 'write "logit: smoker ~ age"'),
        ("born ~ age", 'the response "born" is date; this needs count or continuous'),
        ("logit: price ~ age", 'the response "price" is continuous; this needs binary'),
        ("log(price) ~ room + price:age", '"price" is the response'),
    ],
)
def test_what_does_not_suit_the_variables_is_refused_at_its_place(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        RegressionModel.parse(text).check_schema(SCHEMA, "measure[0].models[1]")
    assert caught.value.place == "measure[0].models[1]"
    assert message in caught.value.message


def test_a_function_outside_its_domain_is_refused_for_response_and_terms() -> None:
    for text in ("log(price) ~ age", "age ~ log(price)"):
        RegressionModel.parse(text).check_domains(data(), "place")
        with pytest.raises(BadInput, match=r"^place: log\(price\) is undefined for 200 records"):
            RegressionModel.parse(text).check_domains(data(price=0.0), "place")


@pytest.mark.parametrize(
    ("text", "formula", "fit"),
    [
        ("log(price) ~ room + age", "np.log(price) ~ C(room) + age", smf.ols),
        (
            "age ~ room:log(price) + smoker",
            "age ~ I((room == 'house') * np.log(price)) + I((room == 'tent') * np.log(price)) + C(smoker)",
            smf.ols,
        ),
        ("logit: smoker ~ sqrt(age) + room", "I(1 * (smoker == 'yes')) ~ np.sqrt(age) + C(room)", smf.logit),
    ],
)
def test_coefficients_are_those_of_statsmodels(text: str, formula: str, fit: Callable[..., Any]) -> None:
    """Of two factors with levels the reference has no slope of its own: terms are coded one by one, without a formula."""
    options = {"disp": 0} if fit is smf.logit else {}
    result = fit(formula, frame()).fit(**options).conf_int().sort_values(0).to_numpy()
    answers = RegressionModel.parse(text).coefficients_of(data(), TableInMemory(data())).values()
    ours = sorted(answer.interval for answer in answers if not isinstance(answer, NotComputable))
    assert np.array(ours) == pytest.approx(result, abs=1e-5)


def test_coefficients_have_the_names_of_the_levels() -> None:
    found = RegressionModel.parse("price ~ room + smoker:age").coefficients_of(data(), TableInMemory(data()))
    assert list(found) == ["intercept", "room=house", "room=tent", "smoker=yes:age"]


def test_a_level_that_a_release_has_lost_has_no_coefficient_and_leaves_the_others() -> None:
    model = RegressionModel.parse("price ~ room + age")
    lost = frame().replace({"room": {"tent": "flat"}})
    found = model.coefficients_of(data(), TableInMemory(conform_to_schema(lost, SCHEMA, origin="synthetic")))
    answer = found["room=tent"]
    assert isinstance(answer, NotComputable)
    assert "no record has the level" in answer.reason
    assert sum(not isinstance(answer, NotComputable) for answer in found.values()) == 3


@pytest.mark.parametrize(
    ("text", "columns", "reason"),
    [
        ("log(price) ~ age", {"price": -1.0}, "undefined for 200 records"),
        ("logit: smoker ~ age", {"smoker": np.where(frame()["age"] > 40, "yes", "no")}, "separates"),
        ("price ~ age", {"price": frame()["age"] * 2.0}, "without error"),
    ],
)
def test_a_regression_that_a_release_does_not_allow_says_why(
    text: str, columns: dict[str, object], reason: str
) -> None:
    released = data(**columns)
    for answer in RegressionModel.parse(text).coefficients_of(data(), TableInMemory(released)).values():
        assert isinstance(answer, NotComputable)
        assert reason in answer.reason


@pytest.mark.parametrize("gap", [1000.0, 0.1, 0.01, 1e-4, 1e-8, 0.0])
def test_predictors_that_are_nearly_collinear_at_a_large_scale_do_not_end_a_run(gap: float) -> None:
    """Gross and net pay in cents; net pay is aliased, which is said, where the gap is below 1e-10 of it."""
    rng = np.random.default_rng(1)
    gross = rng.integers(10**7, 9 * 10**7, 400).astype(float)
    net = 0.7 * gross + gap * rng.normal(size=400)
    schema = Schema(
        (Variable("gross", Kind.CONTINUOUS), Variable("net", Kind.CONTINUOUS), Variable("ill", Kind.BINARY))
    )
    table = pd.DataFrame({"gross": gross, "net": net, "ill": np.where(rng.random(400) < 0.3, "yes", "no")})
    found = RegressionModel.parse("logit: ill ~ gross + net").coefficients_of(
        conform_to_schema(table, schema), TableInMemory(conform_to_schema(table, schema))
    )
    alone = RegressionModel.parse("logit: ill ~ gross").coefficients_of(
        conform_to_schema(table, schema), TableInMemory(conform_to_schema(table, schema))
    )
    if gap < 1e-3:
        assert isinstance(found["net"], NotComputable)
        assert "aliased" in found["net"].reason
        assert found["gross"] == alone["gross"]
    else:
        assert not isinstance(found["net"], NotComputable)
        assert found["net"].standard_error * gap == pytest.approx(1 / np.sqrt(400 * 0.21), rel=0.15)


def some_missing(seed: int) -> Microdata:
    """Records of which one in ten lacks a room, and one an age; nobody who smokes has a tent."""
    rng = np.random.default_rng(seed)
    columns = frame(200, seed)
    columns["room"] = columns["room"].where(columns["smoker"] == "no", "flat").where(rng.random(200) < 0.9)
    columns["age"] = columns["age"].astype(float).where(rng.random(200) < 0.9)
    return conform_to_schema(columns, SCHEMA, MissingPolicy.KEEP)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    text=st.sampled_from(
        [
            "log(price) ~ room + age",
            "price ~ room:smoker + sqrt(age) + born",
            "price ~ age:room + room + smoker:born",
            "price ~ room + room:age + smoker:age + age",
            "logit: smoker ~ age + price",
            "logit: smoker ~ born + log(price) + age:price",
            "logit: price > 25 ~ room + age + smoker:age",
            "logit: price > 25 ~ room:age + age + room:smoker",
            "logit: smoker ~ room + age",
        ]
    ),
    cells=st.integers(1, 700),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_regression_in_blocks_is_that_of_all_records(text: str, cells: int, seed: int) -> None:
    """Of as many columns, with the same reasons where there is none; others for other records."""
    own, model = some_missing(seed), RegressionModel.parse(text)
    whole, other = (
        model.coefficients_of(own, TableInMemory(own)),
        model.coefficients_of(own, TableInMemory(some_missing(seed + 1))),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS_PER_BLOCK", cells)
        found = model.coefficients_of(own, TableInMemory(own))
    assert list(found) == list(whole)
    same = []
    for name, answer in found.items():
        expected, control = whole[name], other[name]
        if isinstance(answer, NotComputable) or isinstance(expected, NotComputable):
            assert isinstance(answer, NotComputable)
            assert isinstance(expected, NotComputable)
            assert answer.reason == expected.reason
            continue
        near = pytest.approx(expected.value, rel=1e-6, abs=1e-6 * expected.standard_error)
        assert answer.value == near
        assert answer.standard_error == pytest.approx(expected.standard_error, rel=1e-6)
        assert answer.interval == pytest.approx(expected.interval, rel=1e-6, abs=1e-6 * expected.standard_error)
        same.append(not isinstance(control, NotComputable) and control.value == near)
    assert not any(same)
