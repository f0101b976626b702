"""What every synthesis method must satisfy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from conftest import SCHEMA
from method_contract import DRAWS, LACKING, every_synthesis, every_target, run_of, spec_of, target_of, with_missing

from sfumato.engine.errors import EngineError
from sfumato.engine.methods import Method, registry
from sfumato.engine.microdata import Microdata, as_column, conform
from sfumato.engine.results import Fit
from sfumato.engine.run import Run
from sfumato.engine.schema import Kind, Schema, Variable


@pytest.fixture
def confidential(confidential: Microdata) -> Microdata:
    """With times of day in the dates, some of them before 1970."""
    seconds = np.random.default_rng(3).integers(0, 86_400, len(confidential))
    moments = confidential.column("joined") - pd.Timedelta(18_262, "D") + pd.to_timedelta(seconds, unit="s")
    return confidential.with_columns({"joined": moments.astype("datetime64[s]")}, "confidential")


def fitted(method: Method, data: Microdata, run: Run, kind: Kind | None = None) -> Fit:
    fit: Fit = method.func(data, target_of(method, data.schema, kind), spec_of(method, data.schema, kind), run, DRAWS)
    return fit


def drawn(method: Method, data: Microdata, fit: Fit, index: int, seed: int, kind: Kind | None = None) -> np.ndarray:
    assert method.draw is not None
    released = Microdata(data.schema, data.frame, "synthetic")
    rng = np.random.default_rng(seed)
    target = target_of(method, data.schema, kind)
    return np.asarray(method.draw(fit, spec_of(method, data.schema, kind), target, data, released, index, rng))


@every_synthesis
def test_fit_is_sound(method: Method, confidential: Microdata) -> None:
    fit = fitted(method, confidential, run_of())
    assert fit.arrays
    for name, array in fit.arrays.items():
        assert array.dtype != object, name
        assert array.dtype.kind not in "fc" or np.isfinite(array).all(), name
    for diagnostic in fit.diagnostics:
        assert np.isfinite(diagnostic.value), diagnostic
        assert diagnostic.parameter
        assert (diagnostic.passed is None) == (not diagnostic.rule), diagnostic


@pytest.mark.slow
@every_target
def test_drawn_values_keep_to_the_variable(method: Method, kind: Kind, confidential: Microdata) -> None:
    fit, target = fitted(method, confidential, run_of(), kind), target_of(method, confidential.schema, kind)
    variable, own = confidential.schema[target], confidential.column(target)
    for index in range(DRAWS):
        values = drawn(method, confidential, fit, index, index, kind)
        assert values.shape == (len(confidential),)
        column = as_column(values, confidential, variable, "synthesis[0]")
        assert column.dtype == confidential.column(target).dtype
        assert not column.isna().any()
        if kind.has_levels:
            assert set(column) <= set(own)
        if kind is Kind.DATE:
            days = confidential.numbers(target)
            assert days.min() <= values.min() <= values.max() <= days.max(), "not in days since 1970"
            assert own.min() <= column.min() <= column.max() <= own.max()
        if variable.kind is Kind.COUNT:
            assert np.array_equal(values, np.rint(values))


@pytest.mark.parametrize("name", [v for v in SCHEMA.names if v != "number"])
def test_a_column_comes_back_from_its_numbers(name: str, confidential: Microdata) -> None:
    """Methods give what they were given: codes, numbers, days since 1970 with their times of day."""
    for data in (confidential, with_missing(confidential, 2)):
        column = as_column(data.numbers(name), data, data.schema[name], "synthesis[0]")
        pd.testing.assert_series_equal(column, data.column(name))


@pytest.mark.parametrize("values", [[np.nan, 0.0], [1e9, 0.0], [np.inf, 0.0]])
def test_a_drawn_date_that_is_none_ends_the_run(values: list[float]) -> None:
    """Seconds for days, such as 1e9, are years of seven digits; no confidential date is missing."""
    schema = Schema((Variable("day", Kind.DATE),))
    data = conform(pd.DataFrame({"day": ["2020-01-01", "2021-01-01"]}), schema)
    with pytest.raises(EngineError, match='1 drawn values of "day" leave its bounds'):
        as_column(np.array(values), data, schema["day"], "synthesis[0]")


@pytest.mark.slow
@every_synthesis
def test_synthesis_answers_the_same_twice(method: Method, confidential: Microdata) -> None:
    first, second = (fitted(method, confidential, run_of()) for _ in range(2))
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert first.diagnostics == second.diagnostics
    assert np.array_equal(drawn(method, confidential, first, 0, 5), drawn(method, confidential, second, 0, 5))


@every_synthesis
def test_draws_differ(method: Method, confidential: Microdata) -> None:
    fit = fitted(method, confidential, run_of())
    values = [drawn(method, confidential, fit, 0, seed).tolist() for seed in (5, 6)]
    assert values[0] != values[1], "another seed gives the same dataset"
    assert values[0] != confidential.numbers(target_of(method, confidential.schema)).tolist()


@pytest.mark.slow
@every_synthesis
def test_synthesis_answers_the_same_in_a_pool(method: Method, confidential: Microdata) -> None:
    alone = fitted(method, confidential, run_of())
    with ThreadPoolExecutor(2) as pool:
        together = fitted(method, confidential, run_of(pool=pool.map))
    for name, array in alone.arrays.items():
        assert np.array_equal(array, together.arrays[name]), name


@every_synthesis
def test_synthesis_leaves_its_inputs_and_the_global_generator_alone(method: Method, confidential: Microdata) -> None:
    before = confidential.frame.copy(deep=True)
    state = np.random.get_state()  # noqa: NPY002
    fit = fitted(method, confidential, run_of())
    kept = {name: array.copy() for name, array in fit.arrays.items()}
    drawn(method, confidential, fit, 1, seed=3)
    pd.testing.assert_frame_equal(confidential.frame, before)
    for name, array in fit.arrays.items():
        assert np.array_equal(array, kept[name]), name
    after = np.random.get_state()  # noqa: NPY002
    assert state[2] == after[2]
    assert np.array_equal(state[1], after[1])


@pytest.mark.parametrize("target", [*LACKING, "sex"])
def test_trees_draw_missing_values_where_there_are_some(target: str, confidential: Microdata) -> None:
    cart = registry()["synthesis.cart"]
    data = with_missing(confidential, 1)
    spec = cart.spec.from_table({"predictors": [name for name in (*LACKING, "sex") if name != target]}, "step")
    fit = cart.func(data, target, spec, run_of(), DRAWS)
    assert cart.draw is not None
    released = with_missing(data, 5)
    values = np.asarray(cart.draw(fit, spec, target, data, released, 0, np.random.default_rng(2)))
    column = as_column(values, data, data.schema[target], "synthesis[0]")
    assert column.dtype == data.column(target).dtype
    assert column.isna().any() == (target in LACKING)
    assert set(column.dropna()) <= set(data.column(target).dropna())
