from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, halfcauchy, kstest

from sfumato.engine.posterior.bayesian_linear_regression import LinearPosterior


def problem(n: int, scales: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), *(rng.normal(size=n) * scale for scale in scales)])
    coefficients = np.array([1.0, *(0.7 / scale for scale in scales)])
    return x @ coefficients + 0.6 * rng.normal(size=n), x


def normal_log_density(y: np.ndarray, covariance: np.ndarray) -> float:
    """Log density of Normal(0, covariance) at y, up to a constant."""
    return float(-0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=st.integers(6, 25),
    scales=st.lists(st.sampled_from([0.01, 1.0, 30.0, 100.0]), max_size=3),
    prior_sd=st.sampled_from([0.3, 2.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_density_of_sigma_is_the_marginal_normal_times_its_prior(
    n: int, scales: list[float], prior_sd: float, seed: int
) -> None:
    """y given sigma is Normal(0, sigma^2 I + s^2 X X'); the prior of sigma is half-Cauchy; log sigma adds its Jacobian."""
    y, x = problem(n, scales, seed)
    posterior = LinearPosterior.from_records(y, x, prior_sd, sigma_scale=1.5)
    log_sigma = np.linspace(-1.0, 1.5, 7)
    direct = np.array(
        [
            normal_log_density(y, np.exp(2 * s) * np.eye(n) + prior_sd**2 * x @ x.T)
            + halfcauchy(scale=1.5).logpdf(np.exp(s))
            + s
            for s in log_sigma
        ]
    )
    ours = posterior.log_sigma_density(log_sigma)
    assert ours - ours[3] == pytest.approx(direct - direct[3], abs=3e-6)


def brute_force_moments(y: np.ndarray, x: np.ndarray, prior_sd: float) -> tuple[float, float, float, float]:
    """Moments of one coefficient and sigma on a dense two-dimensional grid of the joint posterior."""
    gamma = np.linspace(-4, 6, 1501)
    log_sigma = np.linspace(-3, 3, 1201)
    rss = ((y[:, None] - x @ gamma[None, :]) ** 2).sum(0)
    sigma = np.exp(log_sigma)[:, None]
    log_joint = -len(y) * np.log(sigma) - rss / (2 * sigma**2) - gamma**2 / (2 * prior_sd**2)
    log_joint = log_joint + np.log(sigma) - np.log1p(sigma**2)
    weight = np.exp(log_joint - log_joint.max())
    weight /= weight.sum()
    by_gamma, by_sigma = weight.sum(0), weight.sum(1)
    mean, sigma_mean = by_gamma @ gamma, by_sigma @ sigma[:, 0]
    return (
        mean,
        np.sqrt(by_gamma @ (gamma - mean) ** 2),
        sigma_mean,
        np.sqrt(by_sigma @ (sigma[:, 0] - sigma_mean) ** 2),
    )


def test_moments_are_those_of_the_joint_posterior_on_a_grid() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 1))
    y = 1.3 * x[:, 0] + 0.8 * rng.normal(size=9)
    moments = LinearPosterior.from_records(y, x, prior_sd=0.9).posterior_moments()
    found = (moments.mean[0], moments.sd[0], moments.sigma_mean, moments.sigma_sd)
    assert found == pytest.approx(brute_force_moments(y, x, 0.9), rel=1e-4)


def test_draws_follow_the_grid_posterior() -> None:
    y, x = problem(14, [1.0], seed=5)
    posterior = LinearPosterior.from_records(y, x)
    coefficients, sigma = posterior.draw_parameters(40_000, np.random.default_rng(6))
    points, cdf = posterior.sigma_grid()
    assert kstest(np.log(sigma), lambda v: np.interp(v, points, cdf)).pvalue > 1e-3
    assert kstest(np.log(sigma) + 0.02, lambda v: np.interp(v, points, cdf)).pvalue < 1e-3
    moments = posterior.posterior_moments()
    error = (coefficients.mean(0) - moments.mean) / (moments.sd / np.sqrt(len(coefficients)))
    assert np.abs(error).max() < 4
    assert coefficients.std(0) == pytest.approx(moments.sd, rel=0.03)


def test_scales_of_columns_do_not_matter_under_a_wide_prior() -> None:
    """With a flat prior, scaling a column scales its coefficient and nothing else, over 16 orders of magnitude."""
    y, x = problem(200, [1.0, 1.0], seed=7)
    scale = np.array([1.0, 1e8, 1e-8])
    plain = LinearPosterior.from_records(y, x, prior_sd=1e12).posterior_moments()
    scaled = LinearPosterior.from_records(y, x * scale, prior_sd=1e12).posterior_moments()
    assert scaled.mean * scale == pytest.approx(plain.mean, rel=1e-7)
    assert scaled.sd * scale == pytest.approx(plain.sd, rel=1e-7)
    assert scaled.sigma_mean == pytest.approx(plain.sigma_mean, rel=1e-9)


def test_many_records_give_least_squares() -> None:
    y, x = problem(20_000, [600.0], seed=8)
    moments = LinearPosterior.from_records(y, x).posterior_moments()
    beta, residual = np.linalg.lstsq(x, y)[:2]
    sigma = np.sqrt(residual[0] / (len(y) - 2))
    assert moments.mean == pytest.approx(beta, rel=1e-4)
    assert moments.sd == pytest.approx(sigma * np.sqrt(np.diag(np.linalg.inv(x.T @ x))), rel=1e-3)
    assert moments.sigma_mean == pytest.approx(sigma, rel=1e-4)


@pytest.mark.parametrize("n", [3, 4, 50, 3000])
def test_grid_is_fine_and_covers_the_posterior(n: int) -> None:
    y, x = problem(n, [10.0], seed=n)
    posterior = LinearPosterior.from_records(y, x)
    points, cdf = posterior.sigma_grid()
    density = posterior.log_sigma_density(points)
    assert max(density[0], density[-1]) < density.max() - 35
    assert np.diff(cdf).max() < 0.02
    assert np.all(np.diff(cdf) >= 0)


@pytest.mark.parametrize(
    ("y", "x", "message"),
    [
        (np.arange(2.0), np.ones((2, 2)), "2 records"),
        (np.arange(5.0), np.column_stack([np.ones(5), np.arange(5.0)]), "linear function"),
        (np.zeros(5), np.ones((5, 1)), "linear function"),
    ],
)
def test_refuses_what_has_no_posterior(y: np.ndarray, x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearPosterior.from_records(y, x)


def calibration_ranks(datasets: int, draws: int, prior_sd: float = 1.5, inflate: float = 1.0) -> np.ndarray:
    """Ranks (datasets, 5) of the parameters that made the data, and of their log likelihood, among posterior draws.

    Parameters come from Normal(0, 1.5) and half-Cauchy(1); the columns differ in scale as 1, 1 and 600. The posterior
    is told ``prior_sd`` and its sigma is multiplied by ``inflate``: both wrong in the negative controls.
    """
    rng = np.random.default_rng(41)
    x = np.column_stack([np.ones(12), rng.normal(size=12), rng.uniform(0, 600, 12)])
    ranks = np.empty((datasets, 5))
    for i in range(datasets):
        gamma, sigma = rng.normal(0, 1.5, 3), np.abs(rng.standard_cauchy())
        y = x @ gamma + sigma * rng.normal(size=12)
        coefficients, sigmas = LinearPosterior.from_records(y, x, prior_sd).draw_parameters(draws, rng)
        sigmas = sigmas * inflate

        def log_likelihood(g: np.ndarray, s: np.ndarray, y: np.ndarray = y) -> np.ndarray:
            return -12 * np.log(s) - ((y - g @ x.T) ** 2).sum(-1) / (2 * s**2)

        theta = np.column_stack([coefficients, sigmas, log_likelihood(coefficients, sigmas)])
        truth = np.append(gamma, [sigma, log_likelihood(gamma, np.float64(sigma))])
        ranks[i] = (theta < truth).sum(0)
    return ranks


def smallest_p_value(ranks: np.ndarray, draws: int, bins: int = 20) -> float:
    """Bonferroni-corrected chi-square p-value of uniform ranks in 0..draws over the parameters."""
    counts = [np.bincount((column * bins // (draws + 1)).astype(int), minlength=bins) for column in ranks.T]
    return min(1.0, ranks.shape[1] * min(chisquare(count).pvalue for count in counts))


@pytest.mark.slow
def test_posterior_is_calibrated() -> None:
    """Simulation-based calibration (Talts et al. 2018)."""
    assert smallest_p_value(calibration_ranks(1000, 99), 99) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("prior_sd", "inflate"), [(0.8, 1.0), (1.5, 1.15), (1.5, 0.85)])
def test_calibration_notices_a_wrong_posterior(prior_sd: float, inflate: float) -> None:
    assert smallest_p_value(calibration_ranks(1000, 99, prior_sd, inflate), 99) < 1e-3


def raw_scale_prior(y: np.ndarray, x: np.ndarray, prior_sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean (K,) and covariance (K, K) of the coefficients under the scaled prior, written out in the variables' units.

    Independent slopes with standard deviation s sd(y) / sd(x_j); given them the intercept is what is left of the level
    at the means of the predictors, Normal(mean(y), s sd(y)).
    """
    means, slopes = x[:, 1:].mean(0), (prior_sd * y.std() / x[:, 1:].std(0)) ** 2
    covariance = np.diag(np.append((prior_sd * y.std()) ** 2 + means**2 @ slopes, slopes))
    covariance[0, 1:] = covariance[1:, 0] = -means * slopes
    return np.append(y.mean(), np.zeros(len(slopes))), covariance


def dense_moments(
    y: np.ndarray, x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, sigma_scale: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Means and standard deviations of the coefficients, and the mean of sigma, by normal equations over a grid of sigma."""
    n, sigmas = len(y), y.std() * np.exp(np.linspace(-3, 2.5, 301))
    prior = np.linalg.inv(covariance)
    weights, centres, squares = [], [], []
    for sigma in sigmas:
        log_density = normal_log_density(y - x @ mean, sigma**2 * np.eye(n) + x @ covariance @ x.T)
        weights.append(log_density + halfcauchy(scale=sigma_scale).logpdf(sigma) + np.log(sigma))
        given = np.linalg.inv(x.T @ x / sigma**2 + prior)
        centres.append(given @ (x.T @ y / sigma**2 + prior @ mean))
        squares.append(np.diag(given) + centres[-1] ** 2)
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    centre = weight @ np.array(centres)
    return centre, np.sqrt(weight @ np.array(squares) - centre**2), float(weight @ sigmas)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "unit", "level"), [(7, 1.0, 0.0), (12, 5e4, 3e5), (12, 1e-3, -1.0)])
def test_the_scaled_posterior_is_the_one_written_out_in_the_units_of_the_variables(
    n: int, unit: float, level: float
) -> None:
    y, x = problem(n, [3.0, 200.0], seed=n)
    x[:, 1:] += [1.0, 500.0]
    y = level + unit * y
    posterior = LinearPosterior.from_records_scaled(y, x, 0.4, 1.5)
    moments = posterior.posterior_moments()
    mean, covariance = raw_scale_prior(y, x, 0.4)
    centre, sd, sigma = dense_moments(y, x, mean, covariance, 1.5 * y.std())
    assert np.abs(moments.mean - centre).max() < 1e-4 * np.abs(sd).max()
    assert (moments.mean - centre) / sd == pytest.approx(0, abs=1e-3)
    assert moments.sd == pytest.approx(sd, rel=1e-3)
    assert moments.sigma_mean == pytest.approx(sigma, rel=1e-3)
    assert posterior.prior_sds == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-12)
    wrong = dense_moments(y, x, mean, np.diag(np.diag(covariance)), 1.5 * y.std())
    assert np.abs((moments.mean - wrong[0]) / sd).max() > 0.01


def test_draws_of_the_scaled_posterior_have_its_moments() -> None:
    y, x = problem(14, [30.0], seed=9)
    x[:, 1] += 70.0
    posterior = LinearPosterior.from_records_scaled(1e5 + 4e4 * y, x, 1.0)
    coefficients, sigma = posterior.draw_parameters(40_000, np.random.default_rng(6))
    moments = posterior.posterior_moments()
    assert np.abs((coefficients.mean(0) - moments.mean) / moments.sd).max() < 4 / 200
    assert coefficients.std(0) == pytest.approx(moments.sd, rel=0.03)
    assert abs(sigma.mean() - moments.sigma_mean) < 4 * moments.sigma_sd / 200
    assert (
        np.abs(
            (coefficients.mean(0) - LinearPosterior.from_records(1e5 + 4e4 * y, x).posterior_moments().mean)
            / moments.sd
        ).max()
        > 1
    )


@pytest.mark.parametrize("scaled", [False, True])
def test_least_squares_are_those_of_the_normal_equations(scaled: bool) -> None:
    y, x = problem(30, [10.0, 0.1], seed=4)
    found = (LinearPosterior.from_records_scaled if scaled else LinearPosterior.from_records)(
        y, x, 0.01
    ).least_squares()
    beta, rss = np.linalg.lstsq(x, y)[:2]
    assert found[0] == pytest.approx(beta, rel=1e-9)
    assert found[1] == pytest.approx(np.sqrt(rss[0] / 27 * np.diag(np.linalg.inv(x.T @ x))), rel=1e-9)


def test_the_scaled_posterior_refuses_a_constant_response() -> None:
    with pytest.raises(ValueError, match="linear function"):
        LinearPosterior.from_records_scaled(np.full(5, 7.0), np.column_stack([np.ones(5), np.arange(5.0)]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_triangle_alone_gives_the_same_posterior(scaled: bool, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    y, x = problem(40, [10.0, 0.1], seed=4)
    x[:, 1] += 5e4
    weights = rng.uniform(0.2, 1, 40) if weighted else None
    root = np.ones(40) if weights is None else np.sqrt(weights)
    triangle = np.linalg.qr(np.column_stack([x, y]) * root[:, None], mode="r")
    n = 40.0 if weights is None else float(weights.sum())
    if scaled:
        found, expected = (
            LinearPosterior.from_triangle_scaled(triangle, n, 0.7),
            LinearPosterior.from_records_scaled(y, x, 0.7, weights=weights),
        )
    else:
        found, expected = (
            LinearPosterior.from_triangle(triangle, n, 0.7),
            LinearPosterior.from_records(y, x, 0.7, weights=weights),
        )
    points = np.linspace(-1, 1, 9)
    assert found.log_sigma_density(points) == pytest.approx(expected.log_sigma_density(points), rel=1e-9)
    one, other = found.posterior_moments(), expected.posterior_moments()
    assert one.mean == pytest.approx(other.mean, rel=1e-7, abs=1e-9)
    assert one.sd == pytest.approx(other.sd, rel=1e-7)
    assert (one.sigma_mean, one.sigma_sd) == pytest.approx((other.sigma_mean, other.sigma_sd), rel=1e-9)
    assert found.prior_sds == pytest.approx(expected.prior_sds, rel=1e-9)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_triangle_whose_response_is_linear_is_refused(scaled: bool) -> None:
    x = np.column_stack([np.ones(9), np.arange(9.0)])
    triangle = np.linalg.qr(np.column_stack([x, 4 - 3 * x[:, 1]]), mode="r")
    with pytest.raises(ValueError, match="linear function"):
        (LinearPosterior.from_triangle_scaled if scaled else LinearPosterior.from_triangle)(triangle, 9.0)
