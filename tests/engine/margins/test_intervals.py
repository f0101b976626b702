"""Intervals that include the noise contain the truth as often as they say; those that forget it do not."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.margins.consistency import MeasuredMargin
from sfumato.engine.margins.domain import Domain
from sfumato.engine.margins.intervals import estimate_noisy_mean

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


def test_without_noise_the_standard_error_is_that_of_the_sample() -> None:
    table = np.array([30.0, 10.0, 60.0])
    found = estimate_noisy_mean(Domain((3,)), [MeasuredMargin((0,), table, 1e-9)], (0,), np.array([1.0, 0.0, 0.0]))
    assert found.value == pytest.approx(0.3)
    assert found.sampling_error == pytest.approx(np.sqrt(0.3 * 0.7 / 100))
    assert found.noise_error < 1e-9
    with pytest.raises(ZeroDivisionError):
        estimate_noisy_mean(Domain((3,)), [MeasuredMargin((0,), -table, 1.0)], (0,), table)
