"""Intervals that include the noise contain the truth as often as they say; those that forget it do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.margins.consistency import MeasuredMargin
from sfumato.engine.margins.domain import Domain
from sfumato.engine.margins.intervals import NoisyEstimate, estimate_noisy_mean, sampling_obstacle

DOMAIN = Domain((3, 4, 2))
MIDDLES = np.array([5.0, 15.0, 25.0, 40.0])
RUNS, RECORDS = 1_500, 1_000


def population() -> np.ndarray:
    shares = np.random.default_rng(1).gamma(1.0, size=DOMAIN.sizes)
    return np.asarray(shares / shares.sum())


@pytest.mark.slow
@pytest.mark.parametrize("of_population", [True, False])
def test_coverage_of_shares_and_means_is_95_percent(of_population: bool) -> None:
    rng, shares = np.random.default_rng(2), population()
    sigmas = {(0,): 10.0, (1,): 15.0, (0, 1): 20.0, (1, 2): 30.0}
    given = np.zeros((3, 4))
    given[1, 2:] = 1.0  # the share with the second category of one and the last two of another
    covered = {"share": 0, "mean": 0, "forgetful": 0}
    for _ in range(RUNS):
        table = rng.multinomial(RECORDS, shares.ravel()).reshape(DOMAIN.sizes).astype(float)
        of = shares if of_population else table / RECORDS
        noisy = []
        for clique, sigma in sigmas.items():
            own = table.sum(axis=tuple(at for at in range(3) if at not in clique))
            noisy.append(MeasuredMargin(clique, np.rint(own + rng.normal(0, sigma, own.shape)), sigma))
        share = estimate_noisy_mean(DOMAIN, noisy, (0, 1), given, population=of_population)
        truth = float((of.sum(axis=2) * given).sum())
        covered["share"] += share.lower <= truth <= share.upper
        mean = estimate_noisy_mean(DOMAIN, noisy, (1,), MIDDLES, population=of_population)
        truth = float((of.sum(axis=(0, 2)) * MIDDLES).sum())
        covered["mean"] += mean.lower <= truth <= mean.upper
        covered["forgetful"] += abs(mean.value - truth) <= 1.96 * mean.sampling_error
    assert 0.93 <= covered["share"] / RUNS <= 0.97
    assert 0.93 <= covered["mean"] / RUNS <= 0.97
    assert covered["forgetful"] / RUNS < 0.92, "the control: an interval without the noise"


@pytest.mark.slow
@pytest.mark.parametrize("records", [50, 200, 2000])
@pytest.mark.parametrize("rho", [0.015, 3.0, 20.0])
def test_a_noisy_share_covers_with_few_records_and_with_little_noise(records: int, rho: float) -> None:
    """1,500 releases each of shares of 2 to 50 %; counts are rounded after the noise, as they are published."""
    rng, sigma = np.random.default_rng([3, records, int(rho * 1000)]), float(1 / np.sqrt(2 * rho))
    for share in (0.02, 0.1, 0.5):
        covered = sum(
            found.lower <= share <= found.upper for found in noisy_shares(share, records, sigma, rng, releases=1500)
        )
        assert covered / 1500 >= 0.93, (share, covered)


@pytest.mark.slow
def test_the_normal_interval_of_a_noisy_share_is_the_control_that_fails() -> None:
    found = noisy_shares(0.02, 50, float(1 / np.sqrt(40)), np.random.default_rng(4), releases=1500)
    covered = sum(abs(one.value - 0.02) <= 1.96 * np.hypot(one.noise_error, one.sampling_error) for one in found)
    assert covered / 1500 < 0.8


def noisy_shares(
    share: float, records: int, sigma: float, rng: np.random.Generator, *, releases: int
) -> list[NoisyEstimate]:
    """Estimates of the share of the first of three levels, by noisy counts of samples."""
    found = []
    for _ in range(releases):
        counts = rng.multinomial(records, [share, (1 - share) / 2, (1 - share) / 2])
        table = np.rint(counts + rng.normal(0, sigma, 3))
        found.append(estimate_noisy_mean(Domain((3,)), [MeasuredMargin((0,), table, sigma)], (0,), np.eye(3)[0]))
    return found


def test_the_score_limits_are_those_of_wilson_with_half_a_record_where_there_is_no_noise() -> None:
    """Newcombe's method 4 for 3 of 50, by its own formula."""
    table, z, p, n = np.array([3.0, 47.0]), norm.isf(0.025), 0.06, 50
    found = estimate_noisy_mean(Domain((2,)), [MeasuredMargin((0,), table, 1e-9)], (0,), np.array([1.0, 0.0]))
    lower = (2 * n * p + z**2 - 1 - z * np.sqrt(z**2 - 2 - 1 / n + 4 * p * (n * (1 - p) + 1))) / (2 * (n + z**2))
    upper = (2 * n * p + z**2 + 1 + z * np.sqrt(z**2 + 2 - 1 / n + 4 * p * (n * (1 - p) - 1))) / (2 * (n + z**2))
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-9)


def test_noise_as_large_as_the_records_leaves_every_share_possible() -> None:
    found = estimate_noisy_mean(
        Domain((2,)), [MeasuredMargin((0,), np.array([3.0, 4.0]), 100.0)], (0,), np.array([1.0, 0.0])
    )
    assert (found.lower, found.upper) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("more", "unit_records", "words"),
    [({}, 1, ""), ({"has_survey_design": True}, 1, "survey design"), ({}, 3, "at most 3")],
)
def test_records_that_are_no_simple_sample_have_no_interval(
    more: dict[str, Any], unit_records: int, words: str
) -> None:
    release = ReleaseProvenance("synthetic", 100, (100,), (), (), **more)
    obstacle = sampling_obstacle(release, unit_records)
    assert words in obstacle
    assert bool(obstacle) == bool(words)


def test_without_noise_the_standard_error_is_that_of_the_sample() -> None:
    table = np.array([30.0, 10.0, 60.0])
    found = estimate_noisy_mean(Domain((3,)), [MeasuredMargin((0,), table, 1e-9)], (0,), np.array([1.0, 0.0, 0.0]))
    assert found.value == pytest.approx(0.3)
    assert found.sampling_error == pytest.approx(np.sqrt(0.3 * 0.7 / 100))
    assert found.noise_error < 1e-9
    with pytest.raises(ZeroDivisionError):
        estimate_noisy_mean(Domain((3,)), [MeasuredMargin((0,), -table, 1.0)], (0,), table)
