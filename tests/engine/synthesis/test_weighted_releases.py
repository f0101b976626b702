"""What the strongest intruder makes of releases that records of less influence made, against weighted fits to every guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, expit, logsumexp
from scipy.stats import multivariate_normal

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.release_models import (
    IntruderGuesses,
    Plausibility,
    total_plausibility,
    total_refined_log_likelihoods,
)
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.weights import WEIGHTS_KNOWN
from sfumato.engine.synthesis.sequential_logistic import SequentialLogisticRelease

Floats = NDArray[np.float64]
N = 90


def recipe(step: dict[str, Any], y: dict[str, Any]) -> Recipe:
    return Recipe.from_table(
        {
            "variables": {"x": {"kind": "continuous"}, "s": {"kind": "binary", "levels": ["0", "1"]}, "y": y},
            "release": {"m": 2},
            "synthesis": [{"target": "y", "predictors": ["x", "s"], **step}],
            "measure": [{"method": "risk.bayesian_posterior"}],
        }
    )


def columns(seed: int, n: int = N) -> tuple[Floats, NDArray[np.int64], np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.integers(0, 2, n), rng


def table(of: Recipe, origin: str = "confidential", **values: Any) -> Microdata:
    frame = pd.DataFrame({name: own.astype(str) if name != "x" else own for name, own in values.items()})
    if not of.schema["y"].kind.has_levels:
        frame["y"] = values["y"]
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def some_weights(rng: np.random.Generator, n: int = N) -> Floats:
    found = rng.choice([0.0, 0.15, 0.5, 1.0], n, p=[0.1, 0.3, 0.3, 0.3])
    found[:4] = 0.5, 0.15, 1.0, 0.0
    return np.asarray(found)


def releases_of(of: Recipe, data: Microdata) -> list[Microdata]:
    fits = [fit_model(of, 0, data, key=PUBLIC)]
    return [draw_dataset(of, draw, data, fits, key=PUBLIC) for draw in (1, 2)]


def asked(
    of: Recipe,
    data: Microdata,
    releases: Sequence[Microdata],
    values: Floats,
    *,
    near: bool = False,
    steps: bool = False,
) -> Plausibility:
    """Guesses (t, g) at y of the first t records."""
    step = of.synthesis[0]
    assert step.method.synthesis.release_model.make_model is not None
    assert step.method.synthesis.release_model.is_weighted
    model = step.method.synthesis.release_model.make_model(
        data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
    )
    if steps and isinstance(model, SequentialLogisticRelease):
        model = replace(model, max_refits=0)
    assert (WEIGHTS_KNOWN in model.remarks) == (data.weights is not None)
    guesses = IntruderGuesses(np.arange(len(values)), {"y": values})
    found = total_plausibility((model,), guesses)
    return Plausibility(total_refined_log_likelihoods((model,), guesses), found.prior) if near else found


def against_the_truth(logs: Floats, truth: NDArray[np.int64]) -> Floats:
    """Sums over the datasets, less those at the truth, (t, g)."""
    summed = logs.sum(axis=2)
    return np.asarray(summed - np.take_along_axis(summed, truth[:, None], 1))


def multinomial_maximum(x: Floats, y: NDArray[np.int64], w: Floats, size: int, penalty: float) -> Floats:
    """Coefficients (size, p) by scipy's quasi-Newton method."""

    def loss(flat: Floats) -> tuple[float, Floats]:
        b = flat.reshape(size, -1)
        logs = x @ b.T - logsumexp(x @ b.T, axis=1, keepdims=True)
        residual = w[:, None] * (np.eye(size)[y] - np.exp(logs))
        held = penalty * np.append(0.0, np.ones(x.shape[1] - 1))
        return -float(w @ logs[np.arange(len(y)), y]) + 0.5 * float((held * b**2).sum()), -(
            residual.T @ x - held * b
        ).ravel()

    return np.asarray(minimize(loss, np.zeros(size * x.shape[1]), jac=True, options={"gtol": 1e-9}).x.reshape(size, -1))


def standardised(x: Floats, s: NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
    own = x[counted]
    return np.column_stack([np.ones(len(x)), (x - own.mean()) / own.std(), s])


@pytest.mark.slow
def test_a_weighted_multinomial_logit_is_weighed_as_by_weighted_fits_of_every_guess() -> None:
    of = recipe({"method": "multinomial_logistic"}, {"kind": "categorical", "levels": ["a", "b", "c"]})
    x, s, rng = columns(1)
    y = np.array([rng.choice(3, p=p / p.sum()) for p in np.exp(np.outer(x, [0, 0.7, -0.5]) + s[:, None] * [0, 0, 1])])
    w = some_weights(rng)
    names = np.array(["a", "b", "c"])
    plain = table(of, x=x, s=s, y=names[y])
    data = plain.with_weights(w)
    releases = releases_of(of, data)
    guesses = np.broadcast_to(np.arange(3.0), (5, 3))
    design = standardised(x, s, w > 0)
    exact = np.empty((5, 3, 2))
    for r in range(5):
        for g in range(3):
            own = multinomial_maximum(design, np.where(np.arange(N) == r, g, y), w, 3, 0.1)
            logs = design @ own.T - logsumexp(design @ own.T, axis=1, keepdims=True)
            exact[r, g] = [logs[np.arange(N), release.numbers("y").astype(int)].sum() for release in releases]
    expected = against_the_truth(exact, y[:5])
    assert against_the_truth(asked(of, data, releases, guesses).likelihood, y[:5]) == pytest.approx(
        expected, rel=0.15, abs=0.05
    )
    near = against_the_truth(asked(of, data, releases, guesses, near=True).likelihood, y[:5])
    assert near == pytest.approx(expected, abs=0.02)
    assert (expected[3] == 0).all()  # of weight 0
    assert (near[3] == 0).all()
    wrong = against_the_truth(asked(of, plain, releases, guesses, near=True).likelihood, y[:5])
    assert np.abs(wrong - expected).max() > 0.2  # who ignores the weights is far off
    # what is believed before comes from all other records, whatever their weights
    full = asked(of, plain, releases, guesses).prior
    assert asked(of, data, releases, guesses).prior == pytest.approx(full, abs=1e-9)


def weighted_logit(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """The maximum and the information there, by scipy."""

    def loss(b: Floats) -> tuple[float, Floats]:
        eta = x @ b
        return float(w @ (np.logaddexp(0, eta) - y * eta)), -x.T @ (w * (y - expit(eta)))

    b = minimize(loss, np.zeros(x.shape[1]), jac=True, options={"gtol": 1e-9}).x
    p = expit(x @ b)
    return b, (x * (w * p * (1 - p))[:, None]).T @ x


def log_of_logit(x: Floats, z: Floats, b: Floats, information: Floats, drawn: bool) -> float:
    """Log p(z), of drawn coefficients by a grid of the normal distribution."""
    if not drawn:
        eta = x @ b
        return float((z * eta - np.logaddexp(0, eta)).sum())
    axis = np.linspace(-5, 5, 21)
    grid = np.stack(np.meshgrid(*[axis] * len(b), indexing="ij"), axis=-1).reshape(-1, len(b))
    eta = (b + grid @ np.linalg.inv(np.linalg.cholesky(information))) @ x.T
    return float(logsumexp(eta @ z - np.logaddexp(0, eta).sum(axis=1) - 0.5 * (grid**2).sum(axis=1)))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["mle", "drawn"])
@pytest.mark.parametrize("anew", [True, False])
def test_a_weighted_logistic_regression_is_weighed_as_by_weighted_fits_of_every_guess(
    parameters: str, anew: bool
) -> None:
    of = recipe({"method": "sequential_logistic", "parameters": parameters}, {"kind": "binary", "levels": ["0", "1"]})
    x, s, rng = columns(2)
    x = np.round(x)
    y = (rng.random(N) < expit(x - s)).astype(float)
    w = some_weights(rng)
    plain = table(of, x=x, s=s, y=y.astype(int))
    data = plain.with_weights(w)
    releases = releases_of(of, data)
    guesses = np.broadcast_to(np.arange(2.0), (5, 2))
    design = np.column_stack([np.ones(N), x, s])
    exact = np.empty((5, 2, 2))
    for r in range(5):
        for g in range(2):
            own = weighted_logit(design, np.where(np.arange(N) == r, float(g), y), w)
            exact[r, g] = [log_of_logit(design, one.numbers("y"), *own, parameters == "drawn") for one in releases]
    truth = y[:5].astype(int)
    expected = against_the_truth(exact, truth)
    found = against_the_truth(asked(of, data, releases, guesses, steps=not anew).likelihood, truth)
    assert np.abs(found[3]).max() < 1e-9
    wrong = against_the_truth(asked(of, plain, releases, guesses).likelihood, truth)
    ignoring = np.abs(wrong - expected).max()
    assert np.abs(found - expected).max() < (5e-3 if anew else ignoring / 3)
    assert ignoring > 0.2
    full = asked(of, plain, releases, guesses).prior
    assert asked(of, data, releases, guesses).prior == pytest.approx(full, abs=1e-9)


@pytest.mark.parametrize("parameters", ["mle", "drawn"])
def test_a_weighted_share_is_that_of_the_weights(parameters: str) -> None:
    """The first target without predictors: a beta-binomial of the weighted counts."""
    step = {"method": "sequential_logistic", "parameters": parameters, "predictors": []}
    of = recipe(step, {"kind": "binary", "levels": ["0", "1"]})
    x, s, rng = columns(3, 12)
    y, w = np.array([0, 1] * 6), some_weights(rng, 12)
    data = table(of, x=x, s=s, y=y).with_weights(w)
    release = table(of, "synthetic", x=x, s=s, y=np.array([0, 1, 1, 1] * 3))
    found = against_the_truth(asked(of, data, [release], np.broadcast_to([0.0, 1.0], (4, 2))).likelihood, y[:4])
    for r in range(4):
        logs = []
        for g in (0, 1):
            own = np.where(np.arange(12) == r, g, y)
            ones, zeros = float(w @ own), float(w @ (1 - own))
            if parameters == "mle":
                logs.append(9 * np.log(ones / (ones + zeros)) + 3 * np.log(zeros / (ones + zeros)))
            else:
                logs.append(betaln(ones + 10, zeros + 4) - betaln(ones + 1, zeros + 1))
        assert found[r, 1 - y[r]] == pytest.approx(logs[1 - y[r]] - logs[y[r]], abs=1e-9)


def log_evidence(y: Floats, design: Floats, w: Floats, prior_sd: float, scale: float) -> float:
    """The logarithm of the integral of the prior times every record's likelihood to the power of its weight, by the trapezoidal rule over log sigma."""
    y, design, w = y[w > 0], design[w > 0], w[w > 0]
    covariance = prior_sd**2 * design @ design.T

    def log_density(s: float) -> float:
        variance = np.exp(2 * s)
        normal = multivariate_normal.logpdf(y, np.zeros(len(y)), np.diag(variance / w) + covariance)
        power = 0.5 * (np.log(2 * np.pi * variance / w) - w * np.log(2 * np.pi * variance)).sum()
        return float(normal + power + s - np.log1p(variance / scale**2))

    return float(logsumexp([log_density(s) for s in np.linspace(-4, 4, 81)]))


@pytest.mark.slow
def test_a_weighted_linear_regression_is_weighed_as_by_the_integral_over_all_parameters() -> None:
    of = recipe({"method": "linear_regression", "prior_sd": 1.5, "sigma_scale": 0.7}, {"kind": "continuous"})
    x, s, rng = columns(4, 14)  # of the first five records three are asked about by brute force
    y, *drawn = (0.5 - x + s + rng.normal(size=14) for _ in range(3))
    w = np.where(np.arange(14) > 7, 1.0, some_weights(rng, 14))
    plain = table(of, x=x, s=s, y=y)
    data = plain.with_weights(w)
    releases = [table(of, "synthetic", x=x, s=s, y=z) for z in drawn]
    guesses = np.column_stack([y[:5], np.full(5, -3.0), np.full(5, 0.2), np.full(5, 4.0)])
    own = asked(of, data, releases, guesses).likelihood
    found = against_the_truth(own, np.zeros(5, dtype=int))
    design = np.column_stack([np.ones(14), x, s])
    expected = np.zeros((5, 4))
    for r in (0, 1, 3):
        for g in range(4):
            own = np.where(np.arange(14) == r, guesses[r, g], y)
            alone = log_evidence(own, design, w, 1.5, 0.7)
            for z in drawn:
                both = np.append(own, z), np.vstack([design, design]), np.append(w, np.ones(14))
                expected[r, g] += log_evidence(*both, 1.5, 0.7) - alone
    expected -= expected[:, :1]
    some = [0, 1, 3]
    assert found[some] == pytest.approx(expected[some], abs=1e-5)
    assert np.abs(found[3]).max() < 1e-12
    wrong = against_the_truth(asked(of, plain, releases, guesses).likelihood, np.zeros(5, dtype=int))
    assert np.abs(wrong - expected)[some].max() > 0.2
    full = asked(of, plain, releases, guesses).prior
    assert asked(of, data, releases, guesses).prior == pytest.approx(full, abs=1e-9)


@pytest.mark.slow
def test_a_weighted_linear_release_in_bounds_far_away_is_weighed_as_without_bounds() -> None:
    """By draws here, in closed form there."""
    step = {"method": "linear_regression", "prior_sd": 1.5, "sigma_scale": 0.7}
    x, s, rng = columns(5, 40)
    y, z = (0.5 - x + s + rng.normal(size=40) for _ in range(2))
    w = some_weights(rng, 40)
    found = []
    for bounds in ({}, {"bounds": [-3.2, 5.2]}):
        of = recipe(step, {"kind": "continuous", **bounds})
        data = table(of, x=x, s=s, y=np.clip(y, -3, 5)).with_weights(w)
        release = table(of, "synthetic", x=x, s=s, y=np.clip(z, -3, 5))
        guesses = np.column_stack([np.clip(y[:6], -3, 5), np.full(6, -1.0), np.full(6, 2.0)])
        own = asked(of, data, [release], guesses)
        found.append(against_the_truth(own.likelihood, np.zeros(6, dtype=int)))
    assert found[1] == pytest.approx(found[0], abs=0.1)
    assert np.abs(found[0]).max() > 0.2
    assert not np.array_equal(*found)  # bounds were weighed by draws
