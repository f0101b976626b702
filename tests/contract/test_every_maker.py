"""The contract's tests of every synthesis and anonymisation method of Sfumato, and what shows that they notice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.contract.examples import DRAWS, LACKING, SCHEMA, example_run, with_missing
from sfumato.engine.contract.makers import *  # noqa: F403
from sfumato.engine.contract.makers import add_unusual_record, smallest_class_size
from sfumato.engine.data.microdata import Microdata, conform_to_schema, to_column
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import EngineError
from sfumato.engine.methods.registry import registry


@pytest.mark.parametrize("name", [v for v in SCHEMA.names if v != "number"])
def test_a_column_comes_back_from_its_numbers(name: str, with_times: Microdata) -> None:
    """Methods give what they were given: codes, numbers, days since 1970 with their times of day."""
    for data in (with_times, with_missing(with_times, 2)):
        column = to_column(data.numbers(name), data, data.schema[name], "synthesis[0]")
        pd.testing.assert_series_equal(column, data.column(name))


@pytest.mark.parametrize("values", [[np.nan, 0.0], [1e9, 0.0], [np.inf, 0.0]])
def test_a_drawn_date_that_is_none_ends_the_run(values: list[float]) -> None:
    """Seconds for days, such as 1e9, are years of seven digits; no confidential date is missing."""
    schema = Schema((Variable("day", Kind.DATE),))
    data = conform_to_schema(pd.DataFrame({"day": ["2020-01-01", "2021-01-01"]}), schema)
    with pytest.raises(EngineError, match='1 drawn values of "day" leave its bounds'):
        to_column(np.array(values), data, schema["day"], "synthesis[0]")


@pytest.mark.parametrize("target", [*LACKING, "sex"])
def test_trees_draw_missing_values_where_there_are_some(target: str, with_times: Microdata) -> None:
    cart = registry()["synthesis.cart"]
    data = with_missing(with_times, 1)
    spec = cart.spec.from_table({"predictors": [name for name in (*LACKING, "sex") if name != target]}, "step")
    fit = cart.func(data, target, spec, example_run(), DRAWS)
    assert cart.synthesis.draw is not None
    released = with_missing(data, 5)
    values = np.asarray(cart.synthesis.draw(fit, spec, target, data, released, 0, np.random.default_rng(2)))
    column = to_column(values, data, data.schema[target], "synthesis[0]")
    assert column.dtype == data.column(target).dtype
    assert column.isna().any() == (target in LACKING)
    assert set(column.dropna()) <= set(data.column(target).dropna())


def test_a_class_that_is_too_small_is_counted(confidential: Microdata) -> None:
    assert smallest_class_size(add_unusual_record(confidential), ("region", "visits")) == 1
