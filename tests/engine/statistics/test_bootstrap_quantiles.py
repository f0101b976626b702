from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.statistics.bootstrap_quantiles import bootstrap_quantile

samples = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=5).map(sorted)
probabilities = st.floats(0, 1)


def every_resample(ordered: list[float], p: float) -> np.ndarray:
    return np.quantile(np.array(list(itertools.product(ordered, repeat=len(ordered)))), p, axis=1)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(samples, probabilities)
def test_is_the_distribution_over_every_resample(ordered: list[float], p: float) -> None:
    found = bootstrap_quantile(np.array(ordered), p)
    quantiles = every_resample(ordered, p)
    assert found.probabilities.sum() == pytest.approx(1)
    assert found.sd == pytest.approx(quantiles.std(), abs=1e-7)
    for value in np.unique(quantiles):
        mass = found.probabilities[found.values <= value + 1e-9].sum()
        assert mass == pytest.approx(np.mean(quantiles <= value + 1e-9), abs=1e-8)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(samples, probabilities, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_has_equal_tails(ordered: list[float], p: float, confidence: float) -> None:
    lower, upper = bootstrap_quantile(np.array(ordered), p).interval(confidence)
    quantiles, tail = every_resample(ordered, p), (1 - confidence) / 2
    for end in (lower, upper):
        assert np.abs(quantiles - end).min() < 1e-9
    assert np.mean(quantiles < lower - 1e-9) <= tail + 1e-6
    assert np.mean(quantiles <= lower + 1e-9) >= tail - 1e-6
    assert np.mean(quantiles > upper + 1e-9) <= tail + 1e-6
    assert np.mean(quantiles >= upper - 1e-9) >= tail - 1e-6


@pytest.mark.parametrize(("shape", "p"), [("counts", 0.3), ("amounts", 0.25), ("amounts", 0.9), ("amounts", 0.999)])
def test_is_what_resampling_approaches(shape: str, p: float) -> None:
    """A neighbouring quantile is the negative control."""
    rng = np.random.default_rng(7)
    values = np.sort(rng.poisson(20, 400).astype(float) if shape == "counts" else rng.exponential(size=400))
    simulated = np.quantile(rng.choice(values, (4000, 400)), p, axis=1)
    for q, right in ((p, True), (p - 0.05, False)):
        found = bootstrap_quantile(values, q)
        mean = found.probabilities @ found.values
        assert (abs(mean - simulated.mean()) < 4 * simulated.std() / np.sqrt(4000)) == right
        if right:
            assert found.sd == pytest.approx(simulated.std(), rel=0.1)


def test_the_sd_is_the_asymptotic_one_in_large_samples() -> None:
    """The quantile of n values has variance p (1 - p) / (n f^2), f the density there: 1 for uniform values."""
    values = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert bootstrap_quantile(values, 0.3).sd == pytest.approx(np.sqrt(0.3 * 0.7 / 1_000_000), rel=1e-3)


def test_values_that_are_all_the_same_have_no_spread() -> None:
    found = bootstrap_quantile(np.full(50, 0.1), 0.37)
    assert found.sd == 0.0
    assert found.interval() == (0.1, 0.1)


def test_a_quantile_deep_inside_equal_values_does_not_move_at_all() -> None:
    values = np.repeat([0.0, 1.0], [720, 1280])
    assert bootstrap_quantile(values, 0.25).sd == 0.0
    assert bootstrap_quantile(values, 0.34).sd > 0.0
