"""The zero-inflated Poisson posterior on a public sample of 10,000 listings, as in Guo and Hu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.methods.run import Progress
from sfumato.engine.posterior.ensemble import sample_emcee
from sfumato.engine.posterior.laplace import sample_laplace
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, draw_counts
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson

pytestmark = pytest.mark.slow

DAYS = 365


@pytest.fixture
def listings(public_data: Callable[[str], Path]) -> tuple[np.ndarray, np.ndarray]:
    """Days available (10,000,) and the design (10,000, 8): intercept, room types, boroughs, log(1 + reviews)."""
    frame = pd.read_csv(public_data("AB_NYC_2019.csv")).query("price > 0").sample(10_000, random_state=1)
    factors = [frame["room_type"], frame["neighbourhood_group"]]
    indicators = [(f == level).to_numpy(float) for f in factors for level in sorted(f.unique())[1:]]
    x = np.column_stack([np.ones(len(frame)), *indicators, np.log1p(frame["number_of_reviews"])])
    return frame["availability_365"].to_numpy(), x


def silent(progress: Progress) -> None:
    pass


def largest_difference_of_ecdf(one: np.ndarray, other: np.ndarray) -> float:
    grid = np.arange(DAYS + 1)
    shares = [np.searchsorted(np.sort(v), grid, side="right") / v.size for v in (one, other)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def test_synthetic_days_lie_as_near_as_published(listings: tuple[np.ndarray, np.ndarray]) -> None:
    """Largest ecdf difference 0.031 (Guo and Hu, Table 7), which takes each record's own effect; else near 0.077."""
    y, x = listings
    theta = sample_laplace(ZeroInflatedPoisson.from_design(y, x, DAYS), 20, np.random.default_rng(2), silent).theta
    rng = np.random.default_rng(3)
    differences = {
        effect: np.mean(
            [
                largest_difference_of_ecdf(draw_counts(PredictedRates.from_theta(t, x.dot), DAYS, effect, rng, y), y)
                for t in theta
            ]
        )
        for effect in ("record", "new")
    }
    assert differences["record"] == pytest.approx(0.031, abs=0.004)
    assert differences["new"] == pytest.approx(0.077, abs=0.006)


@pytest.mark.study
@pytest.mark.parametrize("independence", [0.5, 0.0])
def test_ensemble_and_laplace_agree_on_listings(listings: tuple[np.ndarray, np.ndarray], independence: float) -> None:
    """Also when the ensemble's moves know nothing of the mode's approximation, which takes ten times as many steps."""
    y, x = listings
    model = ZeroInflatedPoisson.from_design(y, x, DAYS)
    laplace = sample_laplace(model, 10_000, np.random.default_rng(4), silent, proposals=40_000).theta
    ensemble = sample_emcee(model, 10_000, np.random.default_rng(5), silent, independence=independence).theta
    off = (ensemble.mean(axis=0) - laplace.mean(axis=0)) / laplace.std(axis=0)
    np.testing.assert_allclose(off, 0, atol=0.1)
    np.testing.assert_allclose(ensemble.std(axis=0) / laplace.std(axis=0), 1, atol=0.06)
