from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import genpareto

from sfumato.engine.posterior.laplace import fit_generalised_pareto, smooth_weights, weights_sample_size


@pytest.mark.parametrize("degrees", [1.5, 3.0, 30.0])
@pytest.mark.parametrize("n", [300, 2000])
def test_smoothed_weights_and_shape_agree_with_arviz(degrees: float, n: int) -> None:
    log_ratios = np.abs(np.random.default_rng(n).standard_t(degrees, n)) * 0.6
    weights, shape = smooth_weights(log_ratios)
    log_weights, khat = array_stats.psislw(-log_ratios)
    assert shape == pytest.approx(float(khat), rel=1e-9)
    np.testing.assert_allclose(weights, np.exp(log_weights), rtol=1e-9)


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.7, 1.1])
def test_shape_of_a_generalised_pareto_sample_is_found(shape: float) -> None:
    excess = np.sort(genpareto(shape, scale=2.0).rvs(4000, random_state=np.random.default_rng(3)))
    found, scale = fit_generalised_pareto(excess)
    assert found == pytest.approx(shape, abs=0.08)
    assert scale == pytest.approx(2.0, rel=0.1)


def test_importance_ratios_whose_tail_is_known() -> None:
    """Exponential(1) proposals for an Exponential(rate) target: the ratios are Pareto with shape 1 - rate."""
    draws = np.random.default_rng(5).exponential(size=8000)
    for rate in (0.15, 0.6):
        _, shape = smooth_weights((1 - rate) * draws)
        assert shape == pytest.approx(1 - rate, abs=0.1)


def test_ratios_that_tie_are_smoothed_in_their_order() -> None:
    """The sort of arviz-stats is not stable: which of equal ratios it takes for larger is left to the machine."""
    log_ratios = np.round(np.random.default_rng(9).normal(0, 1, 2000))
    weights, _ = smooth_weights(log_ratios)
    largest = np.argsort(log_ratios, kind="stable")[-134:]
    assert np.all(np.diff(weights[largest]) >= 0)


def test_ratios_whose_weights_vanish_still_have_a_shape() -> None:
    """arviz-stats divides by zero: beside the largest ratio all others are 0 in floating point."""
    weights, shape = smooth_weights(np.random.default_rng(0).normal(0, 1e4, 2000))
    assert np.isfinite(shape)
    assert shape > 0.7
    assert weights.sum() == pytest.approx(1.0)


def test_weights_sum_to_one_and_keep_their_order() -> None:
    log_ratios = np.random.default_rng(6).normal(0, 3, 500) + 700
    weights, _ = smooth_weights(log_ratios)
    assert weights.sum() == pytest.approx(1.0)
    assert np.all(np.diff(weights[np.argsort(log_ratios)]) >= -1e-15)


def test_equal_weights_have_the_full_sample_size_and_no_tail() -> None:
    weights, shape = smooth_weights(np.zeros(400))
    assert weights_sample_size(weights) == pytest.approx(400)
    assert shape == -np.inf
    assert weights_sample_size(np.array([1.0, 0, 0])) == pytest.approx(1)
    assert smooth_weights(np.arange(12.0))[1] == np.inf
