"""How an intruder weighs datasets whose coefficients were drawn for each: against the integral itself, and against fits anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.release_models import IntruderGuesses, replace_values, total_plausibility
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.multinomial_logit import logit_log_probabilities
from sfumato.engine.synthesis._multinomial_release import MultinomialRelease, StratumRelease

LEVELS = {"place": 3, "colour": 2}
GUESSES = 6


def recipe(parameters: str = "drawn", m: int = 3, **measure: Any) -> Recipe:
    step = {"method": "multinomial_logistic", "parameters": parameters, "penalty": 1.0}
    return Recipe.from_table(
        {
            "title": "places and colours",
            "variables": {
                "age": {"kind": "count"},
                "place": {"kind": "categorical", "levels": ["a", "b", "c"]},
                "colour": {"kind": "categorical", "levels": ["red", "green"]},
            },
            "release": {"m": m},
            "synthesis": [
                {"target": "place", "predictors": ["age"], **step},
                {"target": "colour", "predictors": ["age", "place"], **step},
            ],
            "measure": [{"method": "risk.bayesian_posterior", "guesses": "all", **measure}],
        }
    )


def draw_confidential_data(of: Recipe, n: int, seed: int = 1) -> Microdata:
    rng = np.random.default_rng(seed)
    age = rng.integers(12, 22, n)
    place = np.array(["a", "b", "c"])[(rng.random(n) * (2 + age / 22)).astype(int) % 3]
    colour = np.where(rng.random(n) < np.where(place == "a", 0.75, 0.35), "red", "green")
    return conform_to_schema(pd.DataFrame({"age": age, "place": place, "colour": colour}), of.schema)


def synthesise_datasets(of: Recipe, data: Microdata) -> tuple[Microdata, ...]:
    """The datasets of a run that measures nothing: they are the same."""
    return execute_run(replace(of, measures=()), data, key=PUBLIC).releases


def models(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> tuple[MultinomialRelease, ...]:
    found = []
    for step in of.synthesis:
        assert step.method.synthesis.release_model.make_model is not None
        model = step.method.synthesis.release_model.make_model(
            data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
        )
        assert isinstance(model, MultinomialRelease)
        found.append(model)
    return tuple(found)


def every_guess(records: np.ndarray[Any, Any]) -> IntruderGuesses:
    shape = tuple(LEVELS.values())
    place, colour = (
        np.broadcast_to(c.ravel(), (len(records), GUESSES)).astype(float).copy() for c in np.indices(shape)
    )
    return IntruderGuesses(records, {"place": place, "colour": colour})


def integral(stratum: StratumRelease, draw: int, rng: np.random.Generator, draws: int = 20_000) -> float:
    """Log p(Z | D) of a dataset by importance sampling from a wide t distribution around the mode, in the coordinates that matter."""
    model, (x, places) = stratum.model, stratum.rows[draw]
    k, p = model.coefficients.shape
    zero_sum = np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1]
    basis = np.kron(zero_sum, np.eye(p))
    precision = basis.T @ (model.factor @ model.factor.T) @ basis
    mode = stratum.drawn_modes[draw]
    settled = basis.T @ mode.inverse.reshape(k * p, k * p) @ basis
    spread = multivariate_t(basis.T @ mode.offset.ravel(), 1.2 * settled, df=6, seed=rng)
    away = spread.rvs(draws)
    b = model.coefficients + (away @ basis.T).reshape(-1, k, p)
    scores = np.einsum("skp,rp->srk", b, x)
    logs = np.take_along_axis(scores, places[None, :, None], 2)[..., 0] - logsumexp(scores, axis=2)
    prior = np.linalg.slogdet(precision)[1] / 2 - np.einsum("si,ij,sj->s", away, precision, away) / 2
    prior -= len(precision) / 2 * np.log(2 * np.pi)
    return float(logsumexp(logs.sum(axis=1) + prior - spread.logpdf(away)) - np.log(draws))


@pytest.mark.study
def test_a_dataset_is_as_probable_as_the_integral_says() -> None:
    of = recipe()
    data = draw_confidential_data(of, 120)
    for model in models(of, data, synthesise_datasets(of, data)):
        (stratum,) = model.strata
        found = [integral(stratum, draw, np.random.default_rng(draw)) for draw in range(3)]
        assert stratum.fitted_likelihood == pytest.approx(found, abs=0.05)


def put_guess(
    data: Microdata, record: int, guesses: IntruderGuesses, r: int, g: int
) -> tuple[Microdata, IntruderGuesses]:
    """The data with a guess, and that guess as what they say."""
    values = {name: own[r, g : g + 1] for name, own in guesses.values.items()}
    return replace_values(data, np.array([record]), values), IntruderGuesses(
        np.array([record]), {name: value[:, None] for name, value in values.items()}
    )


def relative(found: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return found - found.mean(axis=1, keepdims=True)


@pytest.mark.study
def test_guesses_are_weighed_as_the_integrals_of_fits_anew_say() -> None:
    """The control is the weighing of coefficients at the maximum: it is far from the integrals."""
    of = recipe()
    data, records = draw_confidential_data(of, 150), np.array([0, 7, 11])
    releases = synthesise_datasets(of, data)
    fitted, guesses = models(of, data, releases), every_guess(records)
    found = relative(total_plausibility(fitted, guesses).likelihood.sum(axis=2))
    exact = np.empty(found.shape)
    for r, record in enumerate(records):
        for g in range(GUESSES):
            anew = [model.refit(put_guess(data, record, guesses, r, g)[0]) for model in fitted]
            rng = [np.random.default_rng(draw) for draw in range(3)]  # the same draws for all guesses
            exact[r, g] = sum(integral(one.strata[0], draw, rng[draw]) for one in anew for draw in range(3))
    exact = relative(exact)
    blind = relative(total_plausibility([replace(m, drawn=False, strata=tuple(replace(s, drawn=False) for s in m.strata)) for m in fitted], guesses).likelihood.sum(axis=2))  # fmt: skip
    error = np.abs(found - exact).max()
    print(f"largest {np.abs(exact).max():.3f}, error {error:.3f}, of the maximum {np.abs(blind - exact).max():.3f}")
    assert error < 0.15 * np.abs(exact).max()
    assert np.abs(blind - exact).max() > 3 * error


def step_error(n: int) -> tuple[float, float]:
    of = recipe()
    data, records = draw_confidential_data(of, n), np.arange(2)
    fitted, guesses = models(of, data, synthesise_datasets(of, data)), every_guess(records)
    found = relative(total_plausibility(fitted, guesses).likelihood.sum(axis=2))
    exact = np.empty(found.shape)
    for r, record in enumerate(records):
        for g in range(GUESSES):
            other, own = put_guess(data, record, guesses, r, g)
            exact[r, g] = total_plausibility([model.refit(other) for model in fitted], own).likelihood.sum()
    return float(np.abs(found - relative(exact)).max()), float(np.abs(relative(exact)).max())


@pytest.mark.study
def test_the_step_is_near_a_fit_anew_and_nearer_with_more_records() -> None:
    few, size = step_error(100)
    many, smaller = step_error(800)
    print(f"100 records: {few:.4f} of {size:.3f}; 800: {many:.4f} of {smaller:.3f}")
    assert few < 0.15 * size
    assert many < few / 3


def believed_truth(parameters: str, seed: int) -> float:
    """The mean posterior probability of the truth, all guesses alike before, of the first 60 records."""
    of, records = recipe(parameters, 8), np.arange(60)
    data = draw_confidential_data(of, 150, seed)
    found = total_plausibility(models(of, data, synthesise_datasets(of, data)), every_guess(records)).likelihood.sum(
        axis=2
    )
    truth = (data.numbers("place") * 2 + data.numbers("colour"))[records].astype(int)
    return float(np.exp(found - logsumexp(found, axis=1, keepdims=True))[records, truth].mean())


@pytest.mark.study
def test_drawn_coefficients_give_away_less_than_the_maximum_and_not_nothing() -> None:
    drawn, mle = (np.mean([believed_truth(parameters, seed) for seed in range(4)]) for parameters in ("drawn", "mle"))
    assert 1 / GUESSES < drawn < mle


@pytest.mark.slow
def test_log_probabilities_are_those_of_the_mode() -> None:
    """The mode is one: no coefficients nearby make the dataset and themselves more probable."""
    of = recipe(m=1)
    data = draw_confidential_data(of, 90)
    releases = synthesise_datasets(of, data)
    (model, _) = models(of, data, releases)
    (stratum,) = model.strata
    x, mode, hessian = stratum.released[0].x, stratum.drawn_modes[0], stratum.model.factor @ stratum.model.factor.T
    places = np.searchsorted(stratum.records.class_keys, releases[0].numbers(model.targets[0]))

    def value(away: np.ndarray[Any, Any]) -> float:
        logs = logit_log_probabilities(x, stratum.model.coefficients + away)[np.arange(len(x)), places].sum()
        return float(logs - away.ravel() @ hessian @ away.ravel() / 2)

    rng = np.random.default_rng(2)
    best = value(mode.offset)
    assert all(value(mode.offset + 0.01 * rng.standard_normal(mode.offset.shape)) < best for _ in range(50))
