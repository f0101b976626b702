"""What a release by the zero-inflated Poisson regression says of a record, against grids over all parameters and simulated releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import kstest

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.terms import parse_term
from sfumato.engine.design.design_matrix import Design
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.release_models import IntruderGuesses, Plausibility
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.posterior.paired_counts import PairedCountsPosterior, log_pair_probabilities
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, draw_counts
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis.zero_inflated_truncated_poisson import ZeroInflatedRelease

Floats = NDArray[np.float64]
BOUND = 6


def recipe(effect: str = "new", predictors: Sequence[str] = (), **measure: Any) -> Recipe:
    return Recipe.from_table(
        {
            "title": "counts",
            "variables": {"x": {"kind": "continuous"}, "y": {"kind": "count", "bounds": [0, BOUND]}},
            "release": {"m": 2},
            "synthesis": [
                {
                    "target": "y",
                    "method": "zero_inflated_truncated_poisson",
                    "predictors": list(predictors),
                    "random_effect": effect,
                }
            ],
            "measure": [{"method": "risk.bayesian_posterior", "blocks": 2, **measure}],
        }
    )


def table(of: Recipe, y: Floats, origin: str = "confidential") -> Microdata:
    frame = pd.DataFrame({"x": np.linspace(-1, 1, len(y)), "y": y})
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def asked(of: Recipe, data: Microdata, releases: Sequence[Microdata], record: int, guesses: Floats) -> Plausibility:
    step = of.synthesis[0]
    assert step.method.synthesis.release_model.make_model is not None
    there = step.method.synthesis.release_model.make_model(
        data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
    )
    return there.plausibility_of(IntruderGuesses(np.array([record]), {"y": guesses[None]}))


def by_hand(y: int, z: int | None, eta: float, p: float, tau: float) -> float:
    """P(y), or P(y, z) of two counts with one effect, by adaptive quadrature of the definition."""

    def count(k: int, g: float) -> float:
        terms = np.arange(BOUND + 1) * g - gammaln(np.arange(BOUND + 1) + 1)
        return p * (k == 0) + (1 - p) * float(np.exp(terms[k] - logsumexp(terms)))

    def both(e: float) -> float:
        own = np.exp(-0.5 * (e / tau) ** 2) / (tau * np.sqrt(2 * np.pi))
        return float(own * count(y, eta + e) * (1 if z is None else count(z, eta + e)))

    return float(quad(both, -10 * tau, 10 * tau, limit=200)[0])


@pytest.mark.slow
@pytest.mark.parametrize("z", [0, 2, BOUND])
def test_two_counts_of_one_effect_have_the_probability_of_their_definition(z: int) -> None:
    y = np.array([0.0, 1, 3, BOUND])
    eta, p, tau = np.array([-1.0, 1.5, 4.0]), np.array([0.3, 0.05, 0.6]), np.array([0.2, 1.0, 2.5])
    found = log_pair_probabilities(y, z, eta, np.log(p / (1 - p)), tau, BOUND)
    expected = [[np.log(by_hand(int(k), z, *own)) for k in y] for own in zip(eta, p, tau, strict=True)]
    assert found == pytest.approx(np.array(expected), abs=1e-7)


def test_large_counts_without_a_bound_keep_their_precision() -> None:
    """With hardly any effect two counts are two Poisson counts."""
    y, rate = np.array([1900.0, 2000.0]), 2000.0
    found = log_pair_probabilities(y, 2050.0, np.log([rate]), np.array([-40.0]), np.array([1e-4]), None)
    log_poisson = [k * np.log(rate) - rate - gammaln(k + 1) for k in (*y, 2050.0)]
    assert found[0] == pytest.approx([one + log_poisson[2] for one in log_poisson[:2]], abs=5e-3)


GRID = np.linspace(-2.2, 3.2, 28), np.linspace(-3.6, 2.4, 25), np.linspace(-4.5, 1.8, 32)
"""Intercepts of the log rate and of the logit of an inflated zero, and log tau."""


def cells(effect: str) -> tuple[Floats, Floats]:
    """P(y) (7, grid) and P(y, z) (7, 7, grid) of every parameter."""
    a, b, s = (one.ravel() for one in np.meshgrid(*GRID, indexing="ij"))
    tau = np.exp(s)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    g = a[:, None] + tau[:, None] * nodes
    k = np.arange(BOUND + 1)[:, None, None]
    terms = k * g - gammaln(k + 1)
    f = np.exp(terms - logsumexp(terms, axis=0)) * (1 - expit(b))[:, None]
    f[0] += expit(b)[:, None]
    weights = weights / weights.sum()
    single = f @ weights
    pair = np.einsum("ysn,zsn,n->yzs", f, f, weights, optimize=True)
    return single, pair if effect == "record" else single[:, None] * single[None]


def log_prior() -> Floats:
    a, b, s = (one.ravel() for one in np.meshgrid(*GRID, indexing="ij"))
    precision = np.exp(-2 * s)
    return np.asarray(-0.5 * (a**2 + b**2) + 0.001 * np.log(precision) - 0.001 * precision)


@pytest.mark.study
@pytest.mark.parametrize("effect", ["new", "record"])
def test_every_likelihood_and_prior_is_the_sum_over_a_grid_of_parameters(effect: str) -> None:
    """To a Monte Carlo error of 0.03; an intruder who takes one kind of effect for the other is far off."""
    rng = np.random.default_rng(3)
    y = draw_counts(
        PredictedRates.from_theta(np.array([0.7, -1.0, -0.5]), np.ones((30, 1)).dot), BOUND, "new", rng
    ).astype(float)
    z = draw_counts(
        PredictedRates.from_theta(np.array([0.7, -1.0, -0.5]), np.ones((30, 1)).dot), BOUND, "record", rng, y
    ).astype(float)
    y[0], z[0] = 5, 4
    guesses = np.array([5.0, 0, 1, 2, 6])
    single, pair = cells(effect)
    log_single, log_pair, prior = np.log(single), np.log(pair), log_prior()
    others = prior + log_single[y[1:].astype(int)].sum(axis=0)
    drawn = (log_pair - log_single[:, None])[y[1:].astype(int), z[1:].astype(int)].sum(axis=0)
    expected, before = [], []
    for guess in guesses.astype(int):
        own = others + log_single[guess]
        own_drawn = drawn + (log_pair - log_single[:, None])[guess, int(z[0])]
        expected.append(logsumexp(own + own_drawn) - logsumexp(own))
        before.append(logsumexp(own) - logsumexp(others))
    found = {}
    for which in ("new", "record"):
        of = recipe(which)
        found[which] = asked(of, table(of, y), [table(of, z, "synthetic")], 0, guesses)
    assert found[effect].prior[0] == pytest.approx(before, abs=0.03)
    assert np.diff(found[effect].likelihood[0, :, 0]) == pytest.approx(np.diff(expected), abs=0.03)
    other = found["new" if effect == "record" else "record"]
    assert np.abs(np.diff(other.likelihood[0, :, 0]) - np.diff(expected)).max() > 0.3


@pytest.mark.slow
def test_effects_of_records_need_links_and_kept_predictors() -> None:
    of = recipe("record")
    y = np.array([0.0, 1, 2, 0, 3, 1, 0, 2, 4, 0, 1, 2])
    loose = table(of, y, "synthetic")
    loose = Microdata(loose.schema, loose.frame, "synthetic", linked=False)
    with pytest.raises(NotComputable, match="whose"):
        asked(of, table(of, y), [loose], 0, np.array([0.0, 1]))


def grouped(of: Recipe, rng: np.random.Generator, origin: str = "confidential") -> Microdata:
    """Seventy records of few values, and -0.0 beside 0.0."""
    frame = pd.DataFrame({"x": rng.choice([-0.0, 0.0, 0.5, 2.0], 70), "y": rng.integers(0, BOUND + 1, 70)})
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def test_models_of_distinct_records_are_those_of_whole_designs_to_the_last_bit() -> None:
    """Another release has another model."""
    rng = np.random.default_rng(3)
    of = recipe("record", ["x", "square(x)"])
    data, release, other = grouped(of, rng), grouped(of, rng, "synthetic"), grouped(of, rng, "synthetic")
    step = of.synthesis[0]
    assert step.method.synthesis.release_model.make_model is not None
    there = step.method.synthesis.release_model.make_model(data, step.targets, step.spec, [release], Run(rng))
    assert isinstance(there, ZeroInflatedRelease)
    design = Design.from_terms([parse_term(text, of.schema, "") for text in ("x", "square(x)")], data)
    x, y, z = design.build_matrix(data), data.numbers("y"), release.numbers("y")

    def of_both(second: Microdata) -> ZeroInflatedPoisson:
        counts = np.append(y, second.numbers("y"))
        return ZeroInflatedPoisson.from_design(
            counts, np.vstack([x, design.build_matrix(second)]), BOUND, columns=design.names
        )

    found, expected = there._posterior_given(release), of_both(release)
    for name in ("rows", "row", "y", "weight"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
    assert (found.bound, found.prior, found.columns) == (expected.bound, expected.prior, expected.columns)
    assert found.weight.tobytes() != of_both(other).weight.tobytes()
    paired = there._paired_posterior(release)
    alone = ZeroInflatedPoisson.from_design(y, x, BOUND, columns=design.names)
    whole = PairedCountsPosterior.from_records(alone, x, np.arange(70), y, z)
    for name in ("row", "y", "z", "weight"):
        assert getattr(paired, name).tobytes() == getattr(whole, name).tobytes()


@pytest.mark.slow
def test_effects_of_records_need_predictors_that_stay_in_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 20)
    rng = np.random.default_rng(3)
    of = recipe("record", ["x"])
    data = grouped(of, rng)
    moved = data.frame.assign(x=data.frame["x"].where(np.arange(70) < 69, 0.5))
    asked(of, data, [Microdata(of.schema, data.frame, "synthetic")], 0, np.array([0.0, 1]))
    with pytest.raises(NotComputable, match="are synthesised"):
        asked(of, data, [Microdata(of.schema, moved, "synthetic")], 0, np.array([0.0, 1]))


@pytest.mark.study
def test_the_own_effect_of_a_record_gives_more_away() -> None:
    rng = np.random.default_rng(5)
    y = np.minimum(rng.poisson(np.exp(rng.normal(0.3, 1.2, 60))), BOUND).astype(float)
    risks = {}
    for effect in ("new", "record"):
        of = recipe(effect, ["x"], prior="uniform")
        rows = execute_run(of, table(of, y), key=PUBLIC).rows
        risks[effect] = {
            r.measure: r for r in rows if r.draw is None and r.measure in ("posterior_of_truth", "posterior_risk")
        }
    for measure in ("posterior_of_truth", "posterior_risk"):
        assert risks["record"][measure].value > risks["new"][measure].value + 0.02  # type: ignore[operator]


def places_of_truths(copies: int, simulations: int = 50, n: int = 40) -> Floats:
    """Where truths lie in their posteriors, blurred within the probability of each; the intruder takes a dataset for so many of it."""
    rng = np.random.default_rng(6)
    found = []
    single = cells("new")[0]
    prior = log_prior()
    weight = np.exp(prior - prior.max()) * (np.abs(GRID[2][np.arange(prior.size) % len(GRID[2])]) < 0.7)
    thetas = np.column_stack([one.ravel() for one in np.meshgrid(*GRID, indexing="ij")])
    of = recipe("record")
    for _ in range(simulations):
        y = np.zeros(n)
        while not 0 < (y == 0).sum() < n:
            theta = thetas[rng.choice(len(thetas), p=weight / weight.sum())]
            y = draw_counts(PredictedRates.from_theta(theta, np.ones((n, 1)).dot), BOUND, "new", rng).astype(float)
        posterior = prior + np.log(single)[y.astype(int)].sum(axis=0)
        share = np.exp(posterior - posterior.max())
        releases = []
        for index in rng.choice(len(thetas), 2, p=share / share.sum()):
            z = draw_counts(PredictedRates.from_theta(thetas[index], np.ones((n, 1)).dot), BOUND, "record", rng, y)
            releases.append(table(of, z.astype(float), "synthetic"))
        record = int(rng.integers(n))
        told = asked(of, table(of, y), releases, record, np.arange(BOUND + 1.0))
        log_weight = told.prior[0] + copies * told.likelihood[0].sum(axis=1)
        probability = np.exp(log_weight - logsumexp(log_weight))
        truth = int(y[record])
        found.append(float(probability[:truth].sum() + rng.random() * probability[truth]))
    return np.array(found)


@pytest.mark.study
def test_truths_lie_in_their_posteriors_as_often_as_these_say() -> None:
    assert kstest(places_of_truths(1), "uniform").pvalue > 0.01


@pytest.mark.study
def test_truths_do_not_in_those_of_an_intruder_who_takes_two_datasets_for_twenty() -> None:
    assert kstest(places_of_truths(10), "uniform").pvalue < 1e-3
