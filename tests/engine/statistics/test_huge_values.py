"""Means and standard deviations of numbers whose squares overflow or vanish: those of the scaled numbers, scaled back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sfumato.engine.anonymisation.microaggregation import _standardise_values
from sfumato.engine.execution.comparison import welch_half_width
from sfumato.engine.risk._guess_space import _number_grid
from sfumato.engine.statistics.columns import standard_deviation
from sfumato.engine.statistics.combining import monte_carlo_mean
from sfumato.workspace.plots.column import silverman_bandwidth

NUMBERS = [0.3, 0.5, 0.45, 0.9, 0.55]
SCALES = [2.0**1023, 2.0**1000, 2.0**-1000, 1.0]


@pytest.mark.parametrize("scale", SCALES)
def test_spreads_and_intervals_grow_with_the_scale_and_nothing_else(scale: float) -> None:
    own = np.array(NUMBERS) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert standard_deviation(own, 1) == pytest.approx(float(np.std(NUMBERS, ddof=1)) * scale, rel=1e-12)
        mean, lower, upper = monte_carlo_mean(own.tolist())
        assert np.array([mean, lower, upper]) / scale == pytest.approx(np.array(monte_carlo_mean(NUMBERS)), rel=1e-12)
        half, plain = welch_half_width(own[:3].tolist(), own[3:].tolist()), welch_half_width(NUMBERS[:3], NUMBERS[3:])
        assert half is not None
        assert plain is not None
        assert half / scale == pytest.approx(plain, rel=1e-12)
        assert silverman_bandwidth(own) / scale == pytest.approx(silverman_bandwidth(np.array(NUMBERS)), rel=1e-12)
        assert _standardise_values(own) == pytest.approx(_standardise_values(np.array(NUMBERS)), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_cells_of_guesses_do_not_depend_on_the_scale(scale: float) -> None:
    """More than half of the values are equal, so that the standard deviation stands in for the quartiles."""
    numbers = np.concatenate([np.full(60, 0.25), np.linspace(0.001, 1, 30)])
    values, edges = _number_grid(numbers, 10)
    own_values, own_edges = _number_grid(numbers * scale, 10)
    assert own_values / scale == pytest.approx(values)
    assert own_edges / scale == pytest.approx(edges)
