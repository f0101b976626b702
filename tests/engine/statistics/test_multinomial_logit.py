"""Multinomial logit against statsmodels and scikit-learn, and its Newton steps against exact refits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from sfumato.engine.errors import EngineError
from sfumato.engine.statistics.multinomial_logit import (
    MultinomialLogit,
    NoMaximumError,
    fit_multinomial_logit,
    logit_log_probabilities,
)


def problem(n: int, p: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records with an intercept, p - 1 numbers and classes that depend on them."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
    scores = x @ rng.normal(size=(p, classes)) * 0.7
    y = (scores + rng.gumbel(size=(n, classes))).argmax(axis=1)
    return x, y


@pytest.mark.parametrize(("n", "p", "classes"), [(300, 3, 2), (600, 4, 3), (2000, 6, 5)])
def test_without_a_penalty_it_is_the_maximum_and_covariance_of_statsmodels(n: int, p: int, classes: int) -> None:
    x, y = problem(n, p, classes, seed=n)
    ours = fit_multinomial_logit(x, y, np.arange(classes), 0.0)
    theirs = sm.MNLogit(y, x).fit(method="newton", disp=0, tol=1e-14, maxiter=100)
    against_the_first = ours.coefficients[1:] - ours.coefficients[0]
    assert against_the_first == pytest.approx(theirs.params.T, abs=1e-8)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    assert np.exp(ours.class_log_probabilities(x)) == pytest.approx(theirs.predict(), abs=1e-9)
    contrast = np.kron(np.column_stack([-np.ones(classes - 1), np.eye(classes - 1)]), np.eye(p))
    covariance = contrast @ np.linalg.inv(ours.factor @ ours.factor.T) @ contrast.T
    assert covariance == pytest.approx(np.asarray(theirs.cov_params()), abs=1e-8)
    assert ours.is_converged
    assert ours.coefficients.sum(axis=0) == pytest.approx(np.zeros(p), abs=1e-10)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_with_a_penalty_it_is_the_maximum_of_scikit_learn(penalty: float) -> None:
    x, y = problem(500, 5, 4, seed=1)
    weights = np.random.default_rng(2).random(500) + 0.2
    ours = fit_multinomial_logit(x, y, np.arange(4), penalty, weights)
    theirs = LogisticRegression(C=1 / penalty, solver="newton-cg", tol=1e-12, max_iter=1000)
    theirs.fit(x[:, 1:], y, sample_weight=weights)
    assert ours.coefficients[:, 1:] == pytest.approx(theirs.coef_, abs=1e-6)
    assert np.exp(ours.class_log_probabilities(x)) == pytest.approx(theirs.predict_proba(x[:, 1:]), abs=1e-6)


def test_penalties_of_single_columns_are_those_of_a_general_optimiser() -> None:
    x, y = problem(150, 3, 3, seed=3)
    penalties = np.array([0.5, 0.1, 4.0])

    def loss(flat: np.ndarray) -> float:
        b = flat.reshape(3, 3)
        return 0.5 * float((penalties * b**2).sum()) - float(logit_log_probabilities(x, b)[np.arange(150), y].sum())

    theirs = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-9}).x.reshape(3, 3)
    assert fit_multinomial_logit(x, y, np.arange(3), penalties).coefficients == pytest.approx(theirs, abs=1e-5)


def test_classes_have_their_own_numbers_and_a_weight_of_two_is_a_record_twice() -> None:
    x, y = problem(200, 3, 3, seed=4)
    codes = np.array([7, 30, 31])
    whole = np.random.default_rng(5).integers(0, 3, 200)
    weighted = fit_multinomial_logit(x, codes[y], codes, 0.1, whole.astype(float))
    repeated = fit_multinomial_logit(np.repeat(x, whole, axis=0), np.repeat(codes[y], whole), codes, 0.1)
    assert weighted.coefficients == pytest.approx(repeated.coefficients, abs=1e-9)
    assert weighted.class_keys.tolist() == [7, 30, 31]
    with pytest.raises(EngineError, match="none of the classes"):
        fit_multinomial_logit(x, y, codes, 0.1)


def test_the_mean_probabilities_are_the_shares_since_nothing_holds_the_intercept() -> None:
    x, y = problem(400, 4, 3, seed=6)
    ours = fit_multinomial_logit(x, y, np.arange(3), 5.0)
    assert np.exp(ours.class_log_probabilities(x)).mean(axis=0) == pytest.approx(np.bincount(y) / 400, abs=1e-9)


def separated() -> tuple[np.ndarray, np.ndarray]:
    """Class 2 has all records above 1 and no other."""
    x, y = problem(120, 2, 2, seed=7)
    return x, np.where(x[:, 1] > 1, 2, y)


def test_separated_classes_have_no_maximum_without_a_penalty_and_a_finite_one_with_it() -> None:
    x, y = separated()
    with pytest.raises(NoMaximumError):
        fit_multinomial_logit(x, y, np.arange(3), 0.0)
    with pytest.raises(NoMaximumError, match="no record"):
        fit_multinomial_logit(x, np.minimum(y, 1), np.arange(3), 0.1)
    found = [fit_multinomial_logit(x, y, np.arange(3), penalty) for penalty in (1e-3, 1e-1)]
    assert all(one.is_converged for one in found)
    assert np.abs(found[0].coefficients).max() > 2 * np.abs(found[1].coefficients).max()
    assert np.abs(found[1].coefficients).max() < 30


def test_the_start_does_not_move_the_maximum() -> None:
    x, y = problem(300, 4, 4, seed=8)
    one = fit_multinomial_logit(x, y, np.arange(4), 0.1)
    far = fit_multinomial_logit(x, y, np.arange(4), 0.1, start=np.random.default_rng(9).normal(scale=5, size=(4, 4)))
    assert far.coefficients == pytest.approx(one.coefficients, abs=1e-8)


def moved(model: MultinomialLogit, x: np.ndarray, y: np.ndarray, i: int, guess: int) -> np.ndarray:
    """One Newton step from the fit, after record i became of class ``guess``."""
    change = model.record_gradients(x[[i]], np.array([guess])) - model.record_gradients(x[[i]], y[[i]])
    return model.coefficients + model.newton_step(change)[0]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_a_step_for_a_changed_record_is_near_the_refit_and_nearer_than_no_step(seed: int) -> None:
    x, y = problem(400, 3, 3, seed)
    rng = np.random.default_rng(seed)
    if len(np.unique(y)) < 3 or np.bincount(y).min() < 20:
        return
    model = fit_multinomial_logit(x, y, np.arange(3), 0.1)
    i, guess = int(rng.integers(400)), int(rng.integers(3))
    changed = y.copy()
    changed[i] = guess
    exact = fit_multinomial_logit(x, changed, np.arange(3), 0.1).coefficients
    stepped = moved(model, x, y, i, guess)
    if guess == y[i]:
        assert stepped == pytest.approx(model.coefficients, abs=1e-12)
        return
    assert np.abs(stepped - exact).max() < 0.2 * np.abs(model.coefficients - exact).max() + 1e-9
    against = moved(model, x, changed, i, int(y[i]))
    assert np.abs(against - exact).max() > np.abs(model.coefficients - exact).max(), "a step the other way"


def test_a_record_left_out_moves_the_coefficients_by_the_step_of_its_gradient() -> None:
    x, y = problem(500, 3, 3, seed=10)
    model = fit_multinomial_logit(x, y, np.arange(3), 0.1)
    steps = model.newton_step(model.record_gradients(x, y))
    assert steps.shape == (500, 3, 3)
    for i in range(0, 500, 50):
        kept = np.arange(500) != i
        exact = fit_multinomial_logit(x[kept], y[kept], np.arange(3), 0.1).coefficients
        assert np.abs(model.coefficients - steps[i] - exact).max() < 0.1 * np.abs(steps[i]).max() + 1e-9


def test_drawn_coefficients_are_normal_with_the_inverse_of_the_hessian() -> None:
    x, y = problem(300, 2, 3, seed=11)
    model = fit_multinomial_logit(x, y, np.arange(3), 0.3)
    drawn = model.draw_coefficients(4000, np.random.default_rng(12))
    assert drawn.shape == (4000, 3, 2)
    assert drawn.sum(axis=1) == pytest.approx(np.zeros((4000, 2)), abs=1e-10)
    hessian = hessian_by_differences(model, x, y)
    contrast = np.kron(np.column_stack([-np.ones(2), np.eye(2)]), np.eye(2))
    covariance = contrast @ np.linalg.pinv(hessian) @ contrast.T
    standard = np.linalg.solve(
        np.linalg.cholesky(covariance), contrast @ (drawn - model.coefficients).reshape(4000, 6).T
    )
    squared = (standard**2).sum(axis=0)
    assert stats.kstest(squared, "chi2", (4,)).pvalue > 1e-3
    assert stats.kstest(1.2 * squared, "chi2", (4,)).pvalue < 1e-6, "the negative control"
    assert model.coefficient_variances() == pytest.approx(drawn.var(axis=0), rel=0.1)


def hessian_by_differences(model: MultinomialLogit, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The negative Hessian in the coefficients read row by row, from differences of the gradient."""

    def gradient(flat: np.ndarray) -> Any:
        b = flat.reshape(model.coefficients.shape)
        residuals = np.eye(len(b))[y] - np.exp(logit_log_probabilities(x, b))
        return (residuals.T @ x - model.penalties * b).ravel()

    flat, size = model.coefficients.ravel(), model.coefficients.size
    steps = 1e-5 * np.eye(size)
    return np.array([(gradient(flat - step) - gradient(flat + step)) / 2e-5 for step in steps])


@pytest.mark.slow
def test_thirty_five_classes_and_forty_five_columns_take_seconds() -> None:
    """As in the Survey of Youth in Custody: 1,575 coefficients, some 50 records a class, indicators that separate classes."""
    rng = np.random.default_rng(13)
    x = np.column_stack([np.ones(1740), rng.normal(size=(1740, 14)), rng.random((1740, 30)) < 0.2]).astype(float)
    y = (x @ rng.normal(size=(45, 35)) * 0.4 + rng.gumbel(size=(1740, 35))).argmax(axis=1)
    with threadpool_limits(limits=1):
        start = time.process_time()
        model = fit_multinomial_logit(x, y, np.unique(y), 0.1)
    assert model.is_converged
    assert time.process_time() - start < 10
