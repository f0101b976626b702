from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm, truncnorm

from sfumato.engine.data import blocks
from sfumato.engine.posterior.bayesian_linear_regression import draw_truncated_normal

CASES = [
    (0.0, 1.0, -np.inf, np.inf),
    (100.0, 15.0, 0.0, 365.0),
    (1.0, 2.0, 0.0, np.inf),
    (1.0, 2.0, -np.inf, 0.0),
    (0.0, 1.0, 5.0, np.inf),
    (0.0, 1.0, -np.inf, -5.0),
    (0.0, 1.0, 20.0, 20.5),
    (0.0, 1.0, -20.5, -20.0),
    (50.0, 3.0, 0.0, 1.0),
]


def draws(mean: float, sd: float, lower: float, upper: float) -> np.ndarray:
    return draw_truncated_normal(np.full(20_000, mean), sd, lower, upper, np.random.default_rng(2))


def reference(mean: float, sd: float, lower: float, upper: float) -> truncnorm:
    return truncnorm((lower - mean) / sd, (upper - mean) / sd, mean, sd)


@pytest.mark.parametrize(("mean", "sd", "lower", "upper"), CASES)
def test_draws_have_the_truncated_distribution(mean: float, sd: float, lower: float, upper: float) -> None:
    found = draws(mean, sd, lower, upper)
    assert kstest(found, reference(mean, sd, lower, upper).cdf).pvalue > 1e-3


def test_another_distribution_is_noticed() -> None:
    clipped = np.clip(np.random.default_rng(2).normal(1, 2, 20_000), 0, None)
    assert kstest(clipped, reference(1.0, 2.0, 0.0, np.inf).cdf).pvalue < 1e-6
    assert kstest(draws(1.0, 2.0, 0.0, np.inf), reference(1.0, 2.1, 0.0, np.inf).cdf).pvalue < 1e-3


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    mean=st.floats(-1e6, 1e6),
    sd=st.floats(1e-3, 1e4),
    lower=st.floats(-1e6, 1e6),
    width=st.floats(0, 1e6),
)
def test_draws_never_leave_the_interval(mean: float, sd: float, lower: float, width: float) -> None:
    found = draw_truncated_normal(np.full(20, mean), sd, lower, lower + width, np.random.default_rng(1))
    assert np.all((found >= lower) & (found <= lower + width))


def test_far_tail_is_nearly_exponential() -> None:
    """Beyond a >> 1 standard deviations, (z - a) a has nearly the exponential distribution of mean 1."""
    found = (draws(0.0, 1.0, 1000.0, np.inf) - 1000.0) * 1000.0
    assert kstest(found, "expon").pvalue > 1e-3


def test_each_record_has_its_own_mean() -> None:
    mean = np.repeat([-3.0, 0.0, 3.0], 4000)
    found = draw_truncated_normal(mean, 0.5, -10.0, 10.0, np.random.default_rng(9))
    assert kstest((found - mean) / 0.5, norm.cdf).pvalue > 1e-3


def test_blocks_of_draws_have_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, sd = np.linspace(-4.0, 4.0, 1001), np.linspace(0.1, 2.0, 1001)
    settings = [(mean, sd, -1.0, 2.0), (mean, 0.5, -np.inf, 1.0), (mean, 3.0, -1e300, 1e300)]
    whole = [draw_truncated_normal(*own, np.random.default_rng(2)) for own in settings]
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64 * 13)
    for own, expected in zip(settings, whole, strict=True):
        assert draw_truncated_normal(*own, np.random.default_rng(2)).tobytes() == expected.tobytes()
