from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.summary import SummarySpec, summary

AIRBNB = PUBLIC_DATA / "AB_NYC_2019.csv"

SCHEMA = schema_of(
    Variable("group", Kind.CATEGORICAL, levels=("a", "b", "c")), "days: count sensitive", "price: continuous sensitive"
)
FRAME = pd.DataFrame({"group": ["a", "b", "a", "a"], "days": [0, 0, 3, 9], "price": [1.5, 2.5, 4.0, 8.0]})


def values(data: Microdata, **spec: object) -> dict[tuple[str, str, object], float | None]:
    found = summary(data, data, SummarySpec.from_table(spec, "measure[0]"), Run(np.random.default_rng(1)))
    return {(e.target, e.measure, next(iter(e.params.values()), None)): e.value for e in found.estimates}


def test_statistics_are_those_by_hand() -> None:
    found = values(conform_to_schema(FRAME, SCHEMA), variables=["group", "days", "price"], quantiles=[0.5, 0.9])
    assert found == pytest.approx(
        {
            ("group", "share", "a"): 0.75,
            ("group", "share", "b"): 0.25,
            ("group", "share", "c"): 0.0,
            ("days", "mean", None): 3.0,
            ("days", "sd", None): np.sqrt(18.0),
            ("days", "quantile", 0.5): 1.5,
            ("days", "quantile", 0.9): 7.2,
            ("days", "share_of_zeros", None): 0.5,
            ("price", "mean", None): 4.0,
            ("price", "sd", None): FRAME["price"].std(),
            ("price", "quantile", 0.5): 3.25,
            ("price", "quantile", 0.9): 6.8,
        }
    )


def test_the_release_is_summarised_not_the_confidential_data() -> None:
    confidential = conform_to_schema(FRAME, SCHEMA)
    released = confidential.with_columns({"price": confidential.column("price") + 10}, "synthetic")
    found = summary(confidential, released, SummarySpec(variables=("price",)), Run(np.random.default_rng(1)))
    assert found.estimates[0].value == 14.0


def test_means_and_quantiles_of_all_datasets_stay_between_the_bounds_of_the_variable() -> None:
    """Medians 0, 0 and 1 of a count: on their own scale the interval would begin at -1.1."""
    table = {
        "variables": {"days": {"kind": "count"}, "price": {"kind": "continuous", "bounds": ["", 10]}},
        "release": {"released": ["days", "price"], "m": 3},
        "measure": [{"method": "utility.summary", "quantiles": [0.5]}],
    }
    recipe = Recipe.from_table(table)
    made = [
        conform_to_schema(
            pd.DataFrame({"days": [0, middle, 9], "price": [1.5, price, 9.9]}), recipe.schema, origin="synthetic"
        )
        for middle, price in ((0, 9.8), (0, 9.7), (1, 2.5))
    ]
    outcome = execute_run(recipe, conform_to_schema(FRAME[["days", "price"]], recipe.schema), made, key=PUBLIC)
    found = {(row.target, row.measure): row for row in outcome.rows if row.draw is None and row.dataset == "synthetic"}
    assert {measure for _, measure in found} == {"mean", "sd", "quantile", "share_of_zeros"}
    median = found["days", "quantile"]
    assert 0 < median.lower < median.value < median.upper  # type: ignore[operator]
    assert median.value == pytest.approx(1 / 3)
    price = found["price", "quantile"]
    assert price.lower < price.value < price.upper < 10  # type: ignore[operator]
    assert found["days", "sd"].lower > 0  # type: ignore[operator]


def test_one_record_has_no_standard_deviation() -> None:
    found = summary(
        (one := conform_to_schema(FRAME.head(1), SCHEMA)),
        one,
        SummarySpec(variables=("days",)),
        Run(np.random.default_rng(1)),
    )
    sd = next(e for e in found.estimates if e.measure == "sd")
    assert (sd.value, sd.reason) == (None, "one record has no standard deviation")


def test_sensitive_variables_are_summarised_where_nothing_is_named() -> None:
    assert {target for target, _, _ in values(conform_to_schema(FRAME, SCHEMA))} == {"days", "price"}
    assert SummarySpec().for_release(SCHEMA, ("group",)).variables == ("group",)


def test_dates_alone_are_refused() -> None:
    table = {
        "variables": {"day": {"kind": "date"}},
        "release": {"released": ["day"]},
        "measure": [{"method": "utility.summary"}],
    }
    with pytest.raises(BadInput, match=r"^measure\[0\]: no released variable can be summarised"):
        Recipe.from_table(table)


@pytest.mark.skipif(not AIRBNB.exists(), reason="public data are not here")
def test_airbnb_agrees_with_the_paper() -> None:
    """Guo & Hu Table 5, for a sample of 10,000 of these records: within four standard errors."""
    schema = Schema((Variable("availability_365", Kind.COUNT), Variable("price", Kind.CONTINUOUS)))
    raw = pd.read_csv(AIRBNB)
    found = values(conform_to_schema(raw[raw["price"] > 0], schema), quantiles=[0.25, 0.5, 0.75])
    published = {"availability_365": (113.044, 0, 43, 228), "price": (152.036, 69, 105, 177)}
    tolerance = {"availability_365": (5.3, 0, 8, 12), "price": (9.7, 3, 4, 7)}
    for name, figures in published.items():
        ours = [found[name, "mean", None], *(found[name, "quantile", q] for q in (0.25, 0.5, 0.75))]
        for value, figure, within in zip(ours, figures, tolerance[name], strict=True):
            assert value == pytest.approx(figure, abs=within)


@pytest.mark.parametrize("size", [1e160, 1e-200, 1.0])
def test_the_standard_deviation_is_that_of_values_whose_squares_leave_the_range(size: float) -> None:
    found = values(conform_to_schema(FRAME.assign(price=FRAME["price"] * size), SCHEMA), variables=["price"])
    assert found["price", "sd", None] == pytest.approx(np.std(FRAME["price"], ddof=1) * size, rel=1e-14)
