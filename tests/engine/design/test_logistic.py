from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from sfumato.engine.design.logistic import logistic_regression
from sfumato.engine.statistics.columns import independent_columns


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


@pytest.mark.parametrize("grouped", [False, True])
def test_coefficients_and_errors_are_those_of_the_binomial_model_of_statsmodels(grouped: bool) -> None:
    """Of shares among so many records, and of single records with weights."""
    x, y = problem(300, [-0.5, 1.0, 0.3], seed=11)
    rng = np.random.default_rng(12)
    weights = rng.integers(1, 9, 300).astype(float) if grouped else rng.uniform(0.2, 4, 300)
    shares = rng.binomial(weights.astype(int), expit(x @ [-0.5, 1.0, 0.3])) / weights if grouped else y
    theirs = sm.GLM(shares, x, family=sm.families.Binomial(), var_weights=weights).fit(tol=1e-14)
    ours = logistic_regression(x, shares, weights)
    assert ours.coefficients == pytest.approx(theirs.params, rel=1e-8)
    assert ours.errors == pytest.approx(theirs.bse, rel=1e-8)
    assert ours.covariance == pytest.approx(theirs.cov_params(), rel=1e-7, abs=1e-10)
    assert ours.errors != pytest.approx(logistic_regression(x, shares).errors, rel=1e-2), "the control: without weights"


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


def test_columns_that_are_nearly_collinear_at_a_large_scale_are_fitted() -> None:
    """Gross and net pay in cents: the fit is that on gross pay and the standardised remainder, which has no such trouble."""
    rng = np.random.default_rng(1)
    gross, remainder = rng.integers(10**7, 9 * 10**7, 400).astype(float), rng.normal(size=400)
    y = (rng.random(400) < expit(remainder)).astype(float)
    for size in (1e2, 1.0, 1e-2):
        rest = 0.7 * gross + size * remainder - 0.7 * gross
        near = np.column_stack([np.ones(400), gross, 0.7 * gross + size * remainder])
        plain = np.column_stack([np.ones(400), gross / gross.std(), rest / size])
        ours, theirs = logistic_regression(near, y), sm.Logit(y, plain).fit(disp=0, tol=1e-14, maxiter=100)
        assert not ours.separated
        assert ours.probabilities == pytest.approx(theirs.predict(), abs=1e-4 if size < 1 else 1e-6)
        assert ours.coefficients[2] * size == pytest.approx(theirs.params[2], rel=1e-3)
        assert ours.errors[2] * size == pytest.approx(theirs.bse[2], rel=1e-3)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    exponents=st.lists(st.integers(-200, 200), min_size=1, max_size=5),
    kinds=st.lists(st.sampled_from(["free", "near", "constant", "separates", "outlier"]), min_size=5, max_size=5),
)
@example(seed=0, n=6, exponents=[-164], kinds=["outlier", "free", "free", "free", "free"])  # an error above 1e308
def test_any_finite_design_has_a_fit(seed: int, n: int, exponents: list[int], kinds: list[str]) -> None:
    """Probabilities are shares, they add up to the ones, and do not depend on the scale of a column."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.5).astype(float)
    columns = [np.ones(n)]
    for kind in kinds[: len(exponents)]:
        noise = rng.normal(size=n)
        column = {
            "free": noise,
            "near": columns[-1] + noise * 10.0 ** rng.integers(-16, -2),
            "constant": np.full(n, 3.0),
            "separates": y + noise * 0.01,
            "outlier": np.where(np.arange(n) == 0, 1e9, noise),
        }
        columns.append(column[kind])
    plain = np.column_stack(columns)
    scaled = plain * 2.0 ** np.round(np.array([0, *exponents]) * np.log2(10))
    kept = independent_columns(scaled)
    assert np.array_equal(kept, independent_columns(plain))
    ours, same = (logistic_regression(x[:, kept], y) for x in (scaled, plain))
    assert ((ours.probabilities >= 0) & (ours.probabilities <= 1)).all()
    assert ours.probabilities.sum() == pytest.approx(y.sum(), abs=1e-4)
    assert ours.probabilities == pytest.approx(same.probabilities, abs=1e-9)
    assert ours.separated == same.separated


def test_coefficients_and_errors_are_those_of_r() -> None:
    """summary(glm(am ~ wt + hp, binomial, mtcars, epsilon = 1e-15, maxit = 100)) in R 4.

    Its errors are those of the step before the last, 5e-8 from those at the maximum.
    """
    wt = "2.62 2.875 2.32 3.215 3.44 3.46 3.57 3.19 3.15 3.44 3.44 4.07 3.73 3.78 5.25 5.424 5.345 2.2 1.615 1.835 2.465 3.52"
    hp = "110 110 93 110 175 105 245 62 95 123 123 180 180 180 205 215 230 66 52 65 97 150 150 245 175 66 91 113 264 175 335 109"
    wt += " 3.435 3.84 3.845 1.935 2.14 1.513 3.17 2.77 3.57 2.78"
    x = np.column_stack([np.ones(32), *(np.array(values.split(), float) for values in (wt, hp))])
    ours = logistic_regression(x, np.repeat([1.0, 0.0, 1.0, 0.0, 1.0], [3, 14, 3, 5, 7]))
    assert ours.coefficients == pytest.approx([18.8662987172040957, -8.0834751824446283, 0.0362555960822165], rel=1e-8)
    assert ours.errors == pytest.approx([7.4435580602052740, 3.0686751130546961, 0.0177341536507693], rel=1e-7)
