from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from engine.statistics.logistic import logistic_regression


def problem(n: int, beta: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, len(beta) - 1))])
    return x, (rng.random(n) < expit(x @ np.array(beta))).astype(float)


@pytest.mark.parametrize(
    ("n", "beta"), [(60, [0.2, 1.0]), (400, [-2.0, 0.5, 0.0, 1.5]), (5000, [-4.0, 2.0, -3.0]), (300, [0.0])]
)
def test_is_the_maximum_that_statsmodels_finds(n: int, beta: list[float]) -> None:
    x, y = problem(n, beta, seed=n)
    theirs = sm.Logit(y, x).fit(disp=0, tol=1e-14, maxiter=100)
    ours = logistic_regression(x, y)
    assert ours.coefficients == pytest.approx(theirs.params, abs=1e-8)
    assert ours.probabilities == pytest.approx(theirs.predict(), abs=1e-8)
    assert not ours.separated


def test_the_score_vanishes_whatever_the_scales() -> None:
    x, y = problem(800, [0.5, 1.0, -1.0], seed=1)
    scale = np.array([1.0, 1e6, 1e-6])
    ours = logistic_regression(x * scale, y)
    assert x.T @ (y - ours.probabilities) == pytest.approx(0, abs=1e-7)
    assert ours.coefficients * scale == pytest.approx(logistic_regression(x, y).coefficients, rel=1e-6)


def test_a_saturated_fit_has_the_shares_of_the_groups() -> None:
    group = np.repeat([0.0, 1.0], [10, 20])
    y = np.concatenate([np.repeat([0.0, 1.0], [7, 3]), np.repeat([0.0, 1.0], [5, 15])])
    ours = logistic_regression(np.column_stack([np.ones(30), group]), y)
    assert ours.probabilities == pytest.approx(np.where(group == 1, 0.75, 0.3), abs=1e-12)


def test_complete_separation_is_said_and_its_probabilities_reach_their_limits() -> None:
    x = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)])
    y = (x[:, 1] > 0).astype(float)
    ours = logistic_regression(x, y)
    assert ours.separated
    assert ours.probabilities == pytest.approx(y, abs=1e-6)


def test_separation_in_one_group_only_is_said_too() -> None:
    group = np.repeat([0.0, 1.0], 20)
    y = np.concatenate([np.tile([0.0, 1.0], 10), np.ones(20)])
    ours = logistic_regression(np.column_stack([np.ones(40), group]), y)
    assert ours.separated
    assert ours.probabilities == pytest.approx(np.where(group == 1, 1.0, 0.5), abs=1e-6)
