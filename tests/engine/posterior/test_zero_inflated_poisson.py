from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import gamma, norm

from sfumato.engine.data import blocks
from sfumato.engine.errors import BadInput, NotConverged
from sfumato.engine.posterior import zero_inflated_poisson
from sfumato.engine.posterior.gamma_prior import GammaPrior
from sfumato.engine.posterior.laplace import PosteriorDraws, find_mode, sample_laplace
from sfumato.engine.posterior.poisson_lognormal import mode_and_curvature, rate_quadrature
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson


def simulated(n: int, bound: int | None, seed: int, tau: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Counts and design: an intercept, a two-level factor, and a number that repeats."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.integers(0, 2, n), rng.integers(0, 4, n) / 2])
    rate = np.exp(x @ [1.0, 0.6, -0.4] + rng.normal(0, tau, n))
    y = np.where(rng.random(n) < 0.3, 0, rng.poisson(rate))
    return (y if bound is None else np.minimum(y, bound)), x


def plain_log_density(
    theta: np.ndarray, y: np.ndarray, x: np.ndarray, bound: int | None, prior_sd_of_tau: bool
) -> float:
    """The posterior record by record, as the paper writes it."""
    k = x.shape[1]
    tau, p = np.exp(theta[-1]), expit(x @ theta[k : 2 * k])
    mass = np.exp(rate_quadrature(y.astype(float), x @ theta[:k], tau, bound).log_mass)
    likelihood = np.sum(np.log(np.where(y == 0, p, 0.0) + (1 - p) * mass))
    if prior_sd_of_tau:
        log_prior = gamma.logpdf(tau, 0.001, scale=1000) + theta[-1]
    else:
        log_prior = gamma.logpdf(tau**-2, 0.001, scale=1000) + np.log(2) - 2 * theta[-1]
    return float(likelihood + norm.logpdf(theta[:-1]).sum() + log_prior)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    bound=st.sampled_from([None, 1, 6, 40]),
    log_tau=st.floats(-4, 1.2),
    on_tau=st.booleans(),
)
def test_collapsed_density_is_the_plain_one(seed: int, bound: int | None, log_tau: float, on_tau: bool) -> None:
    y, x = simulated(50, bound, seed)
    theta = np.append(np.random.default_rng(seed).normal(0, 0.7, 6), log_tau)
    model = ZeroInflatedPoisson.from_design(y, x, bound, "standard_deviation" if on_tau else "precision")
    assert model.y.size < y.size
    assert model.log_density(theta) == pytest.approx(plain_log_density(theta, y, x, bound, on_tau), rel=1e-10)


def test_order_and_type_of_the_records_do_not_matter() -> None:
    y, x = simulated(80, 9, 3)
    theta = np.array([0.5, 0.2, -0.1, -1.0, 0.3, 0.2, -0.4])
    turned = np.random.default_rng(0).permutation(80)
    one, other = (
        ZeroInflatedPoisson.from_design(y, x, 9),
        ZeroInflatedPoisson.from_design(y[turned].astype(float), x[turned], 9),
    )
    assert one.log_density(theta) == other.log_density(theta)


@pytest.mark.parametrize("bound", [None, 9])
@pytest.mark.parametrize("cells", [10, 4_000_000])
def test_a_large_model_says_the_same(bound: int | None, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of a row are added before they are multiplied by it, in blocks of rows: that changes the rounding alone."""
    y, x = simulated(80, bound, 3)
    weights = np.random.default_rng(1).uniform(0.1, 1, 80)
    theta = np.array([0.5, 0.2, -0.1, -1.0, 0.3, 0.2, -0.4])
    thetas = np.stack([theta, theta / 2])
    model = ZeroInflatedPoisson.from_design(y, x, bound, weights=weights)
    masses = np.random.default_rng(2).normal(-2, 1, (2, model.y.size))
    found = []
    for largest in (500_000, 0):
        monkeypatch.setattr(zero_inflated_poisson, "_LARGEST_DESIGN", largest)
        assert model.has_large_design == (largest == 0)
        found.append(
            (*model.derivatives(theta), model.start(), model.log_likelihood(model.linear_predictors(thetas)[1], masses))
        )
        monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", cells)
    for plain, large in zip(*found, strict=True):
        assert large == pytest.approx(plain, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_records_given_by_their_rows_are_the_same_model(weighted: bool) -> None:
    """Rows may repeat, have no record and stand in any order: to the last bit."""
    y, x = simulated(80, 9, 3)
    weights = np.random.default_rng(1).uniform(0.1, 1, 80) if weighted else None
    whole = ZeroInflatedPoisson.from_design(y, x, 9, weights=weights)
    turned = np.random.default_rng(0).permutation(80)
    rows = np.vstack([x[turned], x[:7]])
    row = np.empty(80, dtype=np.intp)
    row[turned] = np.arange(80)
    row[:3] = 80 + np.arange(3)
    found = ZeroInflatedPoisson.from_rows(y, rows, row, 9, GammaPrior(), weights=weights)
    for one, other in (
        (found.rows, whole.rows),
        (found.row, whole.row),
        (found.y, whole.y),
        (found.weight, whole.weight),
    ):
        assert one.tobytes() == other.tobytes()
    pairs = {(tuple(a), int(b)) for a, b in zip(x, y, strict=True)}
    assert len(found.y) == len(pairs)
    assert {(tuple(found.rows[a]), int(b)) for a, b in zip(found.row, found.y, strict=True)} == pairs


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["precision", "standard_deviation"])
@pytest.mark.parametrize("bound", [None, 6])
@pytest.mark.parametrize("log_tau", [-3.0, -0.2, 0.9])
def test_gradient_and_hessian_are_those_of_the_density(prior: str, bound: int | None, log_tau: float) -> None:
    y, x = simulated(60, bound, 5)
    model = ZeroInflatedPoisson.from_design(y, x, bound, prior, gamma_shape=2.0, gamma_rate=3.0)
    theta = np.append(np.random.default_rng(2).normal(0, 0.5, 6), log_tau)
    value, gradient, hessian = model.derivatives(theta)
    step = 1e-4 * np.eye(theta.size)
    slopes = [(model.log_density(theta + h) - model.log_density(theta - h)) / 2e-4 for h in step]
    bends = [(model.value_and_gradient(theta + h)[1] - model.value_and_gradient(theta - h)[1]) / 2e-4 for h in step]
    assert value == pytest.approx(model.log_density(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(hessian, np.array(bends), rtol=1e-5, atol=2e-5)


def test_no_bound_is_a_large_bound() -> None:
    y, x = simulated(60, None, 7)
    theta = np.array([0.5, 0.2, -0.1, -1.0, 0.3, 0.2, -0.4])
    free, bounded = (ZeroInflatedPoisson.from_design(y, x, bound).log_density(theta) for bound in (None, 50_000))
    assert free == pytest.approx(bounded, rel=1e-10)


@pytest.mark.parametrize("on", ["precision", "standard_deviation"])
def test_prior_of_log_tau_is_a_density_with_its_jacobian(on: str) -> None:
    prior = GammaPrior(on, 2.0, 3.0)
    total, _ = quad(lambda s: np.exp(prior.log_density(np.array(s))), -20, 20, points=[0], epsabs=1e-12)
    assert total == pytest.approx(1.0, abs=1e-9)
    below = gamma.sf(0.7**-2, 2.0, scale=1 / 3) if on == "precision" else gamma.cdf(0.7, 2.0, scale=1 / 3)
    share, _ = quad(lambda s: np.exp(prior.log_density(np.array(s))), -20, np.log(0.7), epsabs=1e-12)
    assert share == pytest.approx(below, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "bound", "tau"), [(60, 6, 0.8), (400, None, 0.8), (400, 30, 0.05), (60, 300, 2.0)])
def test_local_density_is_the_density(n: int, bound: int | None, tau: float) -> None:
    """Within its region and outside, for few records and many, for a random effect that is small and large."""
    y, x = simulated(n, bound, 11, tau)
    model = ZeroInflatedPoisson.from_design(y, x, bound, gamma_shape=4.0, gamma_rate=4.0)
    mode = find_mode(model)
    near = model.density_around(mode.theta, mode.covariance)
    factor = np.linalg.cholesky(mode.covariance)
    white = np.random.default_rng(1).normal(size=(60, 7)) * np.repeat([1.0, 2.0, 6.0], 20)[:, None]
    thetas = mode.theta + white @ factor.T
    exact = np.array([model.log_density(theta) for theta in thetas])
    np.testing.assert_allclose(near(thetas), exact, rtol=0, atol=1e-6)
    np.testing.assert_allclose(near(thetas[5:9]), near(thetas)[5:9], rtol=1e-13)


def test_density_is_nil_outside_its_support() -> None:
    y, x = simulated(30, 6, 1)
    model = ZeroInflatedPoisson.from_design(y, x, 6)
    theta = np.append(np.zeros(6), 3.5)
    assert model.log_density(theta) == -np.inf
    assert model.derivatives(theta)[0] == -np.inf


def test_wild_parameters_are_answered() -> None:
    y, x = simulated(30, 6, 1)
    for bound in (None, 6):
        model = ZeroInflatedPoisson.from_design(y, x, bound)
        for scale in (1.0, 30.0, 300.0):
            for log_tau in (-9.0, 0.0, 2.9):
                assert np.isfinite(model.log_density(np.append(np.full(6, scale), log_tau)))
                assert np.isfinite(model.log_density(np.append(np.full(6, -scale), log_tau)))


def test_names_say_what_the_parameters_are() -> None:
    y, x = simulated(30, 6, 1)
    assert ZeroInflatedPoisson.from_design(y, x[:, :1], 6, columns=["Intercept"]).names == (
        "alpha[Intercept]",
        "beta[Intercept]",
        "log_tau",
    )


@pytest.mark.parametrize(
    ("y", "x", "message"),
    [
        ([0, -1], np.ones((2, 1)), "whole numbers"),
        ([0, 1.5], np.ones((2, 1)), "whole numbers"),
        ([0, np.nan], np.ones((2, 1)), "whole numbers"),
        ([0, 7], np.ones((2, 1)), "above its bound 6"),
        ([0, 1], [[1.0], [np.inf]], "not finite"),
        ([0, 1, 2], np.ones((2, 1)), "do not fit"),
        ([], np.ones((0, 1)), "do not fit"),
    ],
)
def test_what_cannot_be_counts_is_refused(y: list[float], x: np.ndarray, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ZeroInflatedPoisson.from_design(y, x, 6)


def test_inputs_are_left_alone() -> None:
    y, x = simulated(30, 6, 1)
    y_before, x_before, theta = y.copy(), x.copy(), np.zeros(7)
    model = ZeroInflatedPoisson.from_design(y, x, 6)
    model.density_around(theta, 0.01 * np.eye(7))(np.zeros((3, 7)))
    model.derivatives(theta)
    np.testing.assert_array_equal(y, y_before)
    np.testing.assert_array_equal(x, x_before)
    np.testing.assert_array_equal(theta, np.zeros(7))


def mostly_zeros(n: int, above: int, bound: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Counts of which ``above`` are not 0, and a design of an intercept, an indicator and two numbers that never repeat."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.integers(0, 2, n), rng.normal(size=(n, 2))])
    y = np.zeros(n)
    chosen = rng.choice(n, above, replace=False)
    rates = np.exp(x[chosen] @ [2.0, 0.4, 0.3, 0.3] + rng.normal(0, 0.8, above))
    y[chosen] = np.clip(rng.poisson(rates), 1, bound)
    return y, x


@pytest.mark.slow
def test_local_density_of_mostly_zeros_is_the_density_of_every_record_by_itself() -> None:
    """Tables stand in for 1,994 integrals; theta is as far out as the samplers' proposals go."""
    y, x = mostly_zeros(2000, 6, 365)
    model = ZeroInflatedPoisson.from_design(y, x, 365)
    mode = find_mode(model)
    near = model.density_around(mode.theta, mode.covariance)
    white = np.random.default_rng(1).normal(size=(24, 9)) * np.repeat([0.5, 1.0, 2.0], 8)[:, None]
    thetas = mode.theta + white @ np.linalg.cholesky(mode.covariance).T
    thetas = thetas[model.is_in_support(thetas)]
    exact = [plain_log_density(theta, y, x, 365, False) for theta in thetas]
    np.testing.assert_allclose(near(thetas), exact, rtol=0, atol=2e-6)


@pytest.mark.study
def test_a_posterior_of_999_zeros_in_1000_needs_no_integral_for_every_record_and_theta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every record's own integral wherever theta is out of the rules' reach: 9,508,000 of them, eleven minutes."""
    y, x = mostly_zeros(4000, 4, 365)
    integrals = 0

    def counted(of: np.ndarray, *others: object) -> object:
        nonlocal integrals
        integrals += of.size
        return mode_and_curvature(of, *others)

    monkeypatch.setattr("sfumato.engine.posterior.poisson_lognormal.mode_and_curvature", counted)
    posterior = sample_laplace(
        ZeroInflatedPoisson.from_design(y, x, 365), 20, np.random.default_rng(1), lambda progress: None
    )
    assert integrals < 1_000_000
    assert next(found for found in posterior.diagnostics if found.name == "pareto_k").value < 0.7


HARD = {
    "half of them zeros": (600, 300, 365),
    "one record that is not zero": (700, 1, 30),
    "one record that is not zero, no bound": (700, 1, None),
    "twenty records": (20, 10, 365),
    "twenty records, one zero": (20, 19, 365),
    "a bound of a million": (700, 150, 1_000_000),
    "all that are not zero at the bound": (700, 550, 1),
}


VERY_HARD = {
    "one record that is not zero",
    "one record that is not zero, no bound",
    "all that are not zero at the bound",
}
"""What takes longest, tried among the studies; twenty records, one of them zero, lie at the edge as well."""


def draws_or_failure(model: ZeroInflatedPoisson) -> PosteriorDraws | NotConverged:
    """Twenty draws, or why there are none."""
    try:
        return sample_laplace(model, 20, np.random.default_rng(1), lambda progress: None)
    except NotConverged as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.study) if case in VERY_HARD else case for case in HARD],
)
def test_hard_data_are_fitted_or_the_parameter_that_does_not_converge_is_named(case: str) -> None:
    n, above, bound = HARD[case]
    y, x = mostly_zeros(n, above, bound or 10**9)
    model = ZeroInflatedPoisson.from_design(y, x, bound)
    found = draws_or_failure(model)
    if isinstance(found, NotConverged):
        assert found.parameter in (*model.names, "all parameters")
    else:
        assert np.all(np.isfinite(found.theta))
        assert np.all(model.is_in_support(found.theta))
