"""The grid of guesses at a number: its cells tile the range, and stand for as much as a density says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.risk._guess_space import GuessableVariable


def guessable(values: object, kind: Kind, points: int) -> GuessableVariable:
    schema = Schema((Variable("y", kind),))
    return GuessableVariable.from_column(
        Microdata(schema, conform_to_schema(pd.DataFrame({"y": values}), schema).frame), "y", points
    )


@pytest.mark.slow
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=60), st.integers(2, 12))
def test_cells_of_counts_hold_every_whole_number_once(values: list[int], points: int) -> None:
    found = guessable(values, Kind.COUNT, points)
    assert len(found.values) <= max(points, 1)
    assert np.exp(found.log_width).sum() == pytest.approx(max(values) - min(values) + 1)
    assert set(found.values) <= set(map(float, values))
    own = np.array(values)
    for place, value in enumerate(found.values):
        inside = own[found.codes == place]
        assert inside.min() <= value <= inside.max()  # its own cell, which is an interval
        assert not ((own > inside.min()) & (own < inside.max()) & (found.codes != place)).any()


def test_few_values_are_guessed_as_they_are() -> None:
    found = guessable([3, 1, 1, 7, 9], Kind.COUNT, 5)
    assert found.values.tolist() == [1, 3, 7, 9]
    assert np.exp(found.log_width) == pytest.approx([2, 3, 3, 1])


@pytest.mark.parametrize("sigma", [0.3, 1.0, 1.5])
def test_the_density_times_the_width_is_the_probability_of_a_cell(sigma: float) -> None:
    """In the long tail of a log-normal number too, where quantiles leave one cell of most of the range."""
    values = lognorm(sigma).rvs(5000, random_state=1)
    found = guessable(values, Kind.CONTINUOUS, 25)
    probability = lognorm(sigma).pdf(found.values) * np.exp(found.log_width)
    share = np.bincount(found.codes, minlength=len(found.values)) / len(values)
    assert probability.sum() == pytest.approx(1, abs=0.05)
    assert np.abs(probability - share).max() < 0.03
    quantiles = np.quantile(values, (np.arange(25) + 0.5) / 25)
    edges = (quantiles[:-1] + quantiles[1:]) / 2
    by_quantiles = lognorm(sigma).pdf(quantiles) * np.diff([values.min(), *edges, values.max()])
    assert np.abs(by_quantiles - 1 / 25).max() > np.abs(probability - share).max()


def test_a_heap_and_a_constant_have_cells() -> None:
    found = guessable(np.append(np.zeros(900), np.arange(1, 101.0)), Kind.CONTINUOUS, 10)
    assert found.values[0] == 0
    assert np.isfinite(found.log_width).all()
    assert guessable([4.0, 4.0], Kind.CONTINUOUS, 10).log_width.tolist() == [0.0]
