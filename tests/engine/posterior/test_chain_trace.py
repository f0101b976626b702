from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.posterior.ensemble import (
    MOST_CHAINS,
    MOST_POINTS,
    RANK_BINS,
    VALUE_BINS,
    chain_trace,
    joint_autocorrelation,
)

STEPS, CHAINS, BURN_IN = 1301, 12, 260
RNG = np.random.default_rng(1)
THETA = RNG.normal(size=(STEPS, CHAINS, 2)) * [1.0, 5.0]
LOG_DENSITY = -0.5 * (THETA**2 / [1.0, 25.0]).sum(axis=2) - 1000.0
TRACE = chain_trace(THETA, LOG_DENSITY, ("a", "b"), BURN_IN)


def test_points_are_evenly_spaced_and_end_with_the_last_step() -> None:
    assert TRACE.step.size <= MOST_POINTS
    assert TRACE.step[-1] == STEPS
    assert np.unique(np.diff(TRACE.step)).tolist() == [3]


def test_kept_chains_are_the_chains_themselves_with_the_log_posterior_last() -> None:
    assert TRACE.parameters == ("a", "b", "log posterior")
    assert TRACE.values.shape == (MOST_CHAINS, TRACE.step.size, 3)
    for row, number in zip(TRACE.values, TRACE.chain, strict=True):
        np.testing.assert_allclose(row[:, :2], THETA[TRACE.step - 1, number - 1], rtol=1e-6)
        own = LOG_DENSITY[TRACE.step - 1, number - 1] - LOG_DENSITY.max()
        np.testing.assert_allclose(row[:, 2], own, rtol=1e-5, atol=1e-6)


def test_the_band_has_the_quantiles_of_all_chains() -> None:
    at = 100
    expected = np.quantile(THETA[TRACE.step[at] - 1], [0.05, 0.5, 0.95], axis=0)
    np.testing.assert_allclose(TRACE.band[:, at, :2], expected, rtol=1e-6)


def test_a_chain_left_behind_is_among_those_kept() -> None:
    theta, density = THETA.copy(), LOG_DENSITY.copy()
    theta[:, 7] += 20
    density[:, 7] -= 300
    assert 8 in chain_trace(theta, density, ("a", "b"), BURN_IN).chain


def test_counts_are_those_of_every_draw_after_the_burn_in() -> None:
    settled = THETA[BURN_IN:, :, 1]
    assert TRACE.counts.shape == (4, VALUE_BINS, 3)
    edges = np.linspace(TRACE.low[1], TRACE.high[1], VALUE_BINS + 1)
    np.testing.assert_array_equal(TRACE.counts[..., 1].sum(axis=0), np.histogram(settled, edges)[0])
    second_early = settled[: settled.shape[0] // 2, 1::2]
    assert TRACE.group[2] == "2 early"
    np.testing.assert_array_equal(TRACE.counts[2, :, 1], np.histogram(second_early, edges)[0])
    np.testing.assert_allclose(
        TRACE.autocorrelation[:, 0], joint_autocorrelation(THETA[BURN_IN:, :, 0].T, 200), atol=1e-6
    )


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_ranks_of_a_group_that_is_apart_are_uneven(shift: float) -> None:
    """Without a shift, the control, they are even."""
    theta = THETA.copy()
    theta[:, ::2] += shift
    ranks = chain_trace(theta, LOG_DENSITY, ("a", "b"), BURN_IN).ranks[..., 0]
    assert ranks.shape == (4, RANK_BINS)
    assert np.ptp(ranks.sum(axis=0)) <= 1
    expected = ranks[0].sum() / RANK_BINS
    assert (np.abs(ranks[0] / expected - 1).max() > 0.5) == bool(shift)


def test_few_steps_and_chains_will_do() -> None:
    trace = chain_trace(np.zeros((4, 2, 1)), np.zeros((4, 2)), ("a",), 0)
    assert trace.values.shape == (2, 4, 2)
    assert trace.group == ("1 early", "1 late", "2 early", "2 late")
    assert trace.counts.sum() == 2 * 8


def test_same_chains_same_bytes() -> None:
    again = chain_trace(THETA, LOG_DENSITY, ("a", "b"), BURN_IN)
    for name in ("values", "band", "ranks", "counts", "autocorrelation"):
        assert getattr(TRACE, name).tobytes() == getattr(again, name).tobytes()
