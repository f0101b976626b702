"""What a release by linear regression says of a record, against integrals by other means, least squares and simulated releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import kstest, multivariate_normal, norm

from sfumato.engine.data import blocks as row_blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.release_models import IntruderGuesses, Plausibility, ReleaseModel
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.posterior.bayesian_linear_regression import LinearPosterior
from sfumato.engine.posterior.drawn_in_bounds import BoundedResponses, PosteriorGivenRelease
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis._linear_model import LinearRegressionSpec, make_regression_rows

Floats = NDArray[np.float64]


def recipe(
    kind: str = "continuous", bounds: Sequence[float] = (), measure: dict[str, Any] | None = None, **step: Any
) -> Recipe:
    made = {"kind": kind, **({"bounds": list(bounds)} if bounds else {})}
    return Recipe.from_table(
        {
            "title": "a regression",
            "variables": {"x": {"kind": "continuous"}, "y": made},
            "release": {"m": 2},
            "synthesis": [{"target": "y", "method": "linear_regression", "predictors": ["x"], **step}],
            "measure": [{"method": "risk.bayesian_posterior", "blocks": 2, **(measure or {})}],
        }
    )


def table(of: Recipe, origin: str = "confidential", **columns: Any) -> Microdata:
    return Microdata(of.schema, conform_to_schema(pd.DataFrame(columns), of.schema).frame, origin)  # type: ignore[arg-type]


def model(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> ReleaseModel:
    step = of.synthesis[0]
    assert step.method.synthesis.release_model.make_model is not None
    return step.method.synthesis.release_model.make_model(
        data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
    )


def asked(of: Recipe, data: Microdata, releases: Sequence[Microdata], record: int, guesses: Floats) -> Plausibility:
    """Guesses (g,) at y of one record, the truth first."""
    return model(of, data, releases).plausibility_of(IntruderGuesses(np.array([record]), {"y": guesses[None]}))


def log_evidence(y: Floats, design: Floats, prior_sd: float, scale: float) -> float:
    """Log p(y | x) by adaptive quadrature over log sigma of the normal density of all responses together."""
    covariance = prior_sd**2 * design @ design.T

    def log_density(s: float) -> float:
        normal = multivariate_normal.logpdf(y, np.zeros(len(y)), np.exp(2 * s) * np.eye(len(y)) + covariance)
        return float(normal + s - np.log1p(np.exp(2 * s) / scale**2) + np.log(2 / (np.pi * scale)))

    top = max(log_density(s) for s in np.linspace(-5, 4, 200))
    return top + float(np.log(quad(lambda s: np.exp(log_density(s) - top), -6, 7, limit=400)[0]))


def with_intercept(x: Floats) -> Floats:
    return np.column_stack([np.ones(len(x)), x])


def change_value(y: Floats, record: int, value: float) -> Floats:
    return np.where(np.arange(len(y)) == record, value, y)


@pytest.mark.study
@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["identity", "log"]), st.integers(0, 8))
def test_every_likelihood_and_prior_is_the_integral_over_all_parameters(seed: int, transform: str, record: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=9)
    y, *drawn = (0.5 - x + rng.normal(size=9) for _ in range(3))
    forward = np.exp if transform == "log" else np.asarray
    of = recipe(transform=transform, prior_sd=1.5, sigma_scale=0.7)
    data = table(of, x=x, y=forward(y))
    releases = [table(of, "synthetic", x=x, y=forward(z)) for z in drawn]
    guesses = np.array([y[record], -4.0, 0.1, 2.5])
    found = asked(of, data, releases, record, forward(guesses))
    design = with_intercept(x)
    alone = np.array([log_evidence(change_value(y, record, guess), design, 1.5, 0.7) for guess in guesses])
    for index, z in enumerate(drawn):
        both = [
            log_evidence(np.append(change_value(y, record, guess), z), np.vstack([design, design]), 1.5, 0.7)
            for guess in guesses
        ]
        assert np.diff(found.likelihood[0, :, index]) == pytest.approx(np.diff(np.array(both) - alone), abs=2e-6)
    others = np.arange(9) != record
    expected = alone - log_evidence(y[others], design[others], 1.5, 0.7) - (guesses if transform == "log" else 0)
    assert found.prior[0] == pytest.approx(expected, abs=2e-6)


def least_squares(y: Floats, design: Floats) -> float:
    return float(np.linalg.lstsq(design, y, rcond=None)[1][0])


@pytest.mark.parametrize("n", [20, 400])
def test_without_a_prior_it_is_a_ratio_of_sums_of_squares(n: int) -> None:
    """With flat coefficients and a flat sigma p(y) is proportional to RSS^-((n - K - 1) / 2) det(X'X)^(-1/2)."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y, z = (1 + 2 * x + rng.normal(size=n) for _ in range(2))
    y[3] = 12
    of = recipe(prior_sd=1e5, sigma_scale=1e6)
    guesses = np.array([y[3], 0.0, 5.0, y.min(), -12.0])
    found = asked(of, table(of, x=x, y=y), [table(of, "synthetic", x=x, y=z)], 3, guesses)
    design = with_intercept(x)
    both = np.vstack([design, design])

    def log_ratio(guess: float, freedom: int) -> float:
        own = change_value(y, 3, guess)
        alone, together = least_squares(own, design), least_squares(np.append(own, z), both)
        return -0.5 * (2 * n - freedom) * np.log(together) + 0.5 * (n - freedom) * np.log(alone)

    expected = np.array([log_ratio(guess, 3) for guess in guesses])
    assert np.diff(found.likelihood[0, :, 0]) == pytest.approx(np.diff(expected), rel=1e-5, abs=1e-5)
    wrong = np.array([log_ratio(guess, 6) for guess in guesses])  # other degrees of freedom
    assert np.diff(found.likelihood[0, :, 0]) != pytest.approx(np.diff(wrong), rel=1e-5, abs=1e-5)


@pytest.mark.slow
def test_fits_anew_say_the_same_and_scaled_priors_tell_their_error() -> None:
    rng = np.random.default_rng(2)
    n = 60
    x = rng.normal(10, 3, n)
    y = 1000 + 200 * x + rng.normal(0, 100, n)
    for prior, error in (("published", 1e-9), ("scaled", 0.02)):
        of = recipe(prior=prior)
        data = table(of, x=x, y=y)
        releases = execute_run(of, data, key=PUBLIC).releases
        there = model(of, data, releases)
        assert there.absolute == (prior == "published")
        assert there.approximate == (prior == "scaled")
        guesses = np.array([[y[5], y[5] + 250]])
        steps = there.plausibility_of(IntruderGuesses(np.array([5]), {"y": guesses})).likelihood[0]
        back = there.refit(table(of, x=x, y=change_value(y, 5, y[5] + 250))).plausibility_of(
            IntruderGuesses(np.array([5]), {"y": guesses[:, ::-1]})
        )
        assert (back.likelihood[0, 0] - back.likelihood[0, 1]) == pytest.approx(steps[1] - steps[0], abs=error)
        if there.absolute:
            assert back.likelihood[0, 0] == pytest.approx(steps[1], abs=1e-9)


def by_grid(
    y: Floats, z: Floats, guesses: Floats, record: int, bounds: tuple[float, float], half: float
) -> tuple[Floats, Floats]:
    """Log p(Z | D_y) and log p(y | D_-i) of an intercept alone, by a grid over it and log sigma, as records are drawn."""
    mu, s = np.meshgrid(np.linspace(-1.6, 4.2, 241), np.linspace(-1.1, 1.6, 241), indexing="ij")
    sigma = np.exp(s)
    prior = norm.logpdf(mu, 0, 2) + s - np.log1p(sigma**2)

    def log_likelihood(values: Floats) -> Floats:
        total = np.zeros_like(mu)
        for value, times in zip(*np.unique(values, return_counts=True), strict=True):
            inside = norm.cdf(bounds[1] + half, mu, sigma) - norm.cdf(bounds[0] - half, mu, sigma)
            cell = norm.cdf(value + half, mu, sigma) - norm.cdf(value - half, mu, sigma) if half else 0
            with np.errstate(divide="ignore", invalid="ignore"):
                total += times * ((np.log(cell) if half else norm.logpdf(value, mu, sigma)) - np.log(inside))
        return np.where(np.isnan(total), -np.inf, total)

    def log_joint_density(values: Floats) -> Floats:
        return prior + sum(norm.logpdf(value, mu, sigma) for value in values)  # type: ignore[no-any-return]

    release, others = log_likelihood(z), log_joint_density(np.delete(y, record))
    with_guess = [log_joint_density(change_value(y, record, guess)) for guess in guesses]
    likelihood = [logsumexp(own + release) - logsumexp(own) for own in with_guess]
    before = [logsumexp(others + log_likelihood(np.array([guess]))) - logsumexp(others) for guess in guesses]
    return np.array(likelihood), np.array(before)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bounds", "half"), [("continuous", (0.0, 3.0), 0.0), ("count", (0, 3), 0.5)])
def test_bounds_and_whole_numbers_are_weighed_as_they_are_drawn(
    kind: str, bounds: tuple[float, float], half: float
) -> None:
    """To a Monte Carlo error of 0.02; an intruder who knows of no bounds is far off."""
    rng = np.random.default_rng(4)
    n = 25
    y, z = (np.clip(rng.normal(1.0, 1.2, n), *bounds) for _ in range(2))
    if half:
        y, z = np.rint(y), np.rint(z)
    else:
        z = np.clip(rng.uniform(0, 3, n), 0.01, 2.99)
    x = np.arange(n)
    guesses = np.array([y[0], 0.0, 1.0, 3.0])
    bounded, unbounded = (recipe(kind, b, predictors=[]) for b in (bounds, ()))
    expected, prior = by_grid(y, z, guesses, 0, bounds, half)
    found = asked(bounded, table(bounded, x=x, y=y), [table(bounded, "synthetic", x=x, y=z)], 0, guesses)
    assert np.diff(found.likelihood[0, :, 0]) == pytest.approx(np.diff(expected), abs=0.02)
    assert found.prior[0] == pytest.approx(prior, abs=0.02)
    free = asked(unbounded, table(unbounded, x=x, y=y), [table(unbounded, "synthetic", x=x, y=z)], 0, guesses)
    assert np.abs(np.diff(free.likelihood[0, :, 0]) - np.diff(expected)).max() > 0.1


def test_bounds_that_are_far_change_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=200)
    y, z = (x + rng.normal(size=200) for _ in range(2))
    guesses = np.array([y[0], -2.0, 2.0])
    found = []
    for bounds in ((), (-40, 40), (-7.5, 7.5)):
        of = recipe(bounds=bounds)
        found.append(asked(of, table(of, x=x, y=y), [table(of, "synthetic", x=x, y=z)], 0, guesses))
    assert found[1].likelihood == pytest.approx(found[0].likelihood, abs=1e-12)
    assert found[2].heavy is None or np.diff(found[2].likelihood[0, :, 0]) == pytest.approx(
        np.diff(found[0].likelihood[0, :, 0]), abs=0.02
    )


@pytest.mark.slow
def test_a_record_alone_in_its_group_is_given_away_by_the_mean_of_the_datasets() -> None:
    """Its coefficient is y_i + N(0, sigma^2), and z_i that + N(0, sigma^2): m datasets tell y_i to sigma sqrt(2 / m)."""
    rng = np.random.default_rng(6)
    n, m, sigma = 4000, 20, 0.01
    x = (np.arange(n) == 7).astype(float)
    y = rng.normal(0, sigma, n) + 1.5 * x
    of = recipe(prior_sd=100.0)
    datasets = []
    for _ in range(m):
        z = rng.normal(0, sigma, n) + x * (y[7] + rng.normal(0, sigma))
        datasets.append(table(of, "synthetic", x=x, y=z))
    guesses = np.append(y[7], np.linspace(1.4, 1.6, 401))
    found = asked(of, table(of, x=x, y=y), datasets, 7, guesses)
    weight = np.exp(found.likelihood[0, 1:].sum(axis=1) - found.likelihood[0, 1:].sum(axis=1).max())
    weight /= weight.sum()
    mean = float(weight @ guesses[1:])
    sd = float(np.sqrt(weight @ (guesses[1:] - mean) ** 2))
    assert mean == pytest.approx(np.mean([one.numbers("y")[7] for one in datasets]), abs=1e-3)
    assert sd == pytest.approx(sigma * np.sqrt(2 / m), rel=0.03)
    prior = np.exp(found.prior[0, 1:])
    assert np.ptp(prior) < 1e-3 * prior.max()  # nothing was known of it before


def test_a_release_that_hardly_hangs_on_a_record_says_nothing_of_it() -> None:
    """Coefficients that the prior fixes at 0: a record enters by sigma alone, as one of 500."""
    rng = np.random.default_rng(7)
    of = recipe(prior_sd=1e-6, measure={"points": 15})
    data = table(of, x=rng.normal(size=500), y=rng.normal(size=500))
    rows = execute_run(of, data, key=PUBLIC).rows
    risk, before = (next(r for r in rows if r.measure == name) for name in ("posterior_risk", "prior_risk"))
    assert risk.value == pytest.approx(before.value, abs=0.02)
    mean = next(r for r in rows if r.measure == "posterior_of_truth")
    assert mean.value == pytest.approx(mean.baseline, abs=2e-3)


@pytest.mark.slow
def test_a_number_that_is_known_to_its_error_is_guessed_and_its_distance_told() -> None:
    rng = np.random.default_rng(8)
    for sigma, right in ((1e-3, 0.95), (10.0, 0.95)):
        of = recipe(prior="scaled", measure={"points": 20, "refits": 4})
        x = rng.uniform(0, 20, 300)
        rows = execute_run(of, table(of, x=x, y=5 * x + rng.normal(0, sigma, 300)), key=PUBLIC).rows
        risk = next(r for r in rows if r.measure == "posterior_risk")
        apart = next(r for r in rows if r.measure == "expected_difference")
        assert risk.value is not None
        assert apart.value is not None
        assert (risk.value > right) == (sigma < 1)
        assert (apart.value < 0.5) == (sigma < 1)
        if sigma > 1:
            assert next(r for r in rows if r.measure == "step_error").value < 0.05  # type: ignore[operator]


def places_of_truths(copies: int, simulations: int = 120) -> Floats:
    """Where the truth lies in its posterior, as a probability; parameters, data and releases are drawn from the model.

    The intruder takes each dataset for so many that say the same.
    """
    rng = np.random.default_rng(9)
    of = recipe(prior_sd=2.0, sigma_scale=0.5)
    found = []
    for _ in range(simulations):
        x = rng.normal(size=8)
        design = with_intercept(x)
        sigma = abs(0.5 * np.tan(np.pi / 2 * rng.random()))
        y = design @ rng.normal(0, 2, 2) + sigma * rng.normal(size=8)
        coefficients, drawn = LinearPosterior.from_records(y, design, 2.0, 0.5).draw_parameters(2, rng)
        datasets = [
            table(of, "synthetic", x=x, y=design @ own + sd * rng.normal(size=8))
            for own, sd in zip(coefficients, drawn, strict=True)
        ]
        own, error = float(design[0] @ coefficients[0]), float(np.abs(y - design @ coefficients[0]).max())
        guesses = np.append(y[0], own + np.linspace(-12, 12, 801) * error)
        told = asked(of, table(of, x=x, y=y), datasets, 0, guesses)
        log_weight = told.prior[0, 1:] + copies * told.likelihood[0, 1:].sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        below = guesses[1:] < y[0]
        found.append(float(weight[below].sum() / weight.sum()))
    return np.array(found)


@pytest.mark.study
def test_truths_lie_in_their_posteriors_as_often_as_these_say() -> None:
    assert kstest(places_of_truths(1), "uniform").pvalue > 0.01


@pytest.mark.study
def test_truths_do_not_in_those_of_a_wrong_model() -> None:
    assert kstest(places_of_truths(20), "uniform").pvalue < 1e-4


def in_groups(rng: np.random.Generator, kind: str, far: float, transform: str) -> tuple[Recipe, dict[str, Any], Recipe]:
    """A recipe with levels, a number far from 0 and their product, columns for it, and the same recipe with scaled priors."""
    x, group = far + rng.normal(size=90), rng.integers(0, 4, 90)
    y = 4 + group + 0.5 * (x - far) + rng.normal(size=90)
    made = np.exp(y / 3) if transform == "log" else np.rint(np.maximum(y, 0)) if kind == "count" else y
    kinds = {"g": {"kind": "categorical"}, "x": {"kind": "continuous"}, "y": {"kind": kind}}
    step = {"target": "y", "method": "linear_regression", "predictors": ["g", "x", "g:x"], "transform": transform}
    whole = {"title": "groups", "variables": kinds, "release": {"m": 2}, "synthesis": [step]}
    scaled = {**whole, "synthesis": [{**step, "prior": "scaled"}]}
    return Recipe.from_table(whole), {"g": np.array(list("abcd"))[group], "x": x, "y": made}, Recipe.from_table(scaled)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cells=st.integers(20, 700),
    transform=st.sampled_from(["identity", "log"]),
    scaled=st.booleans(),
    weighted=st.booleans(),
    far=st.sampled_from([0.0, 1e3]),
)
def test_tables_of_many_blocks_are_weighed_as_whole_ones(
    seed: int, cells: int, transform: str, scaled: bool, weighted: bool, far: float
) -> None:
    """To rounding; another dataset in the place of one says something else."""
    rng = np.random.default_rng(seed)
    published, columns, other = in_groups(rng, "continuous", far, transform)
    of = other if scaled else published
    data = table(of, **columns)
    data = data.with_weights(np.where(np.arange(90) % 7 == 0, 0.0, rng.uniform(0.1, 1, 90))) if weighted else data
    releases = [table(of, "synthetic", **{**columns, "y": rng.permuted(columns["y"])}) for _ in range(2)]
    records = np.array([0, 1, 33, 89])
    own = columns["y"][records, None] * np.array([1.0, 1.2, 0.5])
    guesses = IntruderGuesses(records, {"y": own})
    whole = model(of, data, releases).plausibility_of(guesses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        found = model(of, data, releases).plausibility_of(guesses)
        moved = model(of, data, [releases[0], data]).plausibility_of(guesses)
    assert found.likelihood == pytest.approx(whole.likelihood, rel=1e-8, abs=1e-8 * (1 + far))
    assert found.prior == pytest.approx(whole.prior, rel=1e-8, abs=1e-8 * (1 + far))
    assert np.abs(moved.likelihood - whole.likelihood).max() > 1e-3


@pytest.mark.parametrize("kind", ["count", "continuous"])
def test_a_release_in_bounds_of_many_blocks_has_the_density_of_a_whole_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    of, columns, _ = in_groups(rng, kind, 0.0, "identity")
    step = of.synthesis[0]
    assert isinstance(step.spec, LinearRegressionSpec)
    rows = make_regression_rows(table(of, **columns), "y", step.spec)
    assert rows.single_block is not None
    posterior = LinearPosterior.from_records(rows.single_block[1], rows.single_block[0])
    half = 0.5 if kind == "count" else 0.0
    drawn = BoundedResponses(columns["y"] - half, columns["y"] + half, 0.0, 9.0)
    whole = PosteriorGivenRelease(posterior, rows, drawn)
    thetas = whole.start() + 0.1 * rng.normal(size=(7, len(whole.start())))
    near, at = whole.density_around(thetas[0], np.eye(1))(thetas), whole.derivatives(thetas[0])
    monkeypatch.setattr(row_blocks, "CELLS_PER_BLOCK", 100)
    blocks = PosteriorGivenRelease(posterior, make_regression_rows(table(of, **columns), "y", step.spec), drawn)
    assert blocks.rows.single_block is None
    assert blocks.density_around(thetas[0], np.eye(1))(thetas) == pytest.approx(near, rel=1e-11)
    for one, other in zip(blocks.derivatives(thetas[0]), at, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    assert whole.derivatives(thetas[1])[0] != pytest.approx(at[0], rel=1e-6)
