"""Audits of private steps by a record that stands out most: bounds are below what is claimed and above half of it, and too little noise is caught.

The worst case is a canary: the only record of its category in a table that is constant otherwise, or empty. The steps are told what they may spend; the noise of
a margin, and how often a drawn record is uniform, are theirs. ``faulty`` makes them keep less noise than they account for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sfumato.engine.adversary.audit_bounds import (
    PrivacyLossBound,
    best_bound_thresholds,
    bounds_at_thresholds,
    epsilon_from_mu,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.margins import private
from sfumato.engine.margins.domain import Domain
from sfumato.engine.margins.zcdp import largest_rho
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe

SCHEMA = Schema((Variable("place", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("a", "b")),))
DELTA = 1e-5
AUDITS = 200


def table(others: int, canaries: int) -> Microdata:
    frame = pd.DataFrame({"place": pd.Categorical(["a"] * others + ["b"] * canaries, ["a", "b"])})
    return Microdata(SCHEMA, frame)


def rows_of(step: dict[str, Any], data: Microdata, seed: int, shadows: int, records: int = 1) -> dict[str, Row]:
    """The numbers of one audit whose intruder knows all other records."""
    audit = {"targets": 1, "people": ["vulnerable"], "shadows": shadows, "background": "all", "blocks": 1}
    recipe = Recipe.from_table(
        {
            "title": "audited",
            "variables": {"place": SCHEMA["place"].to_table()},
            "release": {"m": 1, "seed": 1, "records": records},
            "synthesis": [{"target": ["place"], **step}],
            "measure": [{"method": "risk.record_audit", **audit}],
        }
    )
    data = conform_to_schema(data.frame, recipe.schema)
    return {row.measure: row for row in execute_run(recipe, data, key=bytes([seed]) * 32).rows}


def values(rows: dict[str, Row]) -> tuple[float, float, float, float]:
    """Epsilon and mu, what was proved of each and what is claimed."""
    found = [(rows[name].value, rows[name].baseline) for name in ("epsilon_lower", "mu_lower")]
    (epsilon, claim), (mu, most) = ((math.nan if v is None else v, math.nan if b is None else b) for v, b in found)
    return epsilon, claim, mu, most


@contextmanager
def faulty(share: float) -> Iterator[None]:
    """Margins with so much less noise than is accounted for."""
    right = private._add_noise

    def noisy(counts: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
        return right(counts, share * sigma, rng)

    private._add_noise = noisy
    try:
        yield
    finally:
        private._add_noise = right


def noisy_margin(epsilon: float) -> dict[str, Any]:
    return {"method": "margins", "epsilon": epsilon, "delta": DELTA}


def test_the_epsilon_of_a_mu_is_that_of_two_normal_distributions() -> None:
    for mu, delta in ((0.5, 1e-3), (1.9, 1e-5), (4.0, 1e-9)):
        epsilon = epsilon_from_mu(mu, delta)

        def excess(x: float, mu: float = mu, epsilon: float = epsilon) -> float:
            return max(0.0, float(norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x)))

        start = epsilon / mu + mu / 2
        assert quad(excess, start, start + 12, epsabs=0, epsrel=1e-9)[0] == pytest.approx(delta, rel=1e-5)
    assert epsilon_from_mu(0.0, 1e-5) == epsilon_from_mu(1e-7, 1e-5) == 0.0


def area_of_rounded(sigma: float) -> float:
    """The chance that a count with a record more is the larger one, ties by half: whole numbers of normal noise."""
    count = np.arange(-15, 17)
    more, less = (np.diff(norm.cdf(np.append(count - 0.5, 16.5), mean, sigma)) for mean in (1, 0))
    return float(more @ (np.cumsum(less) - less / 2))


@pytest.mark.slow
def test_a_canary_in_a_noisy_margin_proves_most_of_what_is_claimed_and_too_little_noise_is_caught() -> None:
    data = table(20, 1)
    rows = rows_of(noisy_margin(10.0), data, 1, 1000)
    epsilon, claim, mu, most = values(rows)
    assert (claim, most) == pytest.approx((10.0, math.sqrt(2 * largest_rho(10.0, DELTA))))
    assert "noisy counts" in rows["auc"].reason
    assert most / 2 < mu < most
    assert claim / 2 < epsilon < claim
    area = area_of_rounded(1 / most)
    assert rows["auc"].value == pytest.approx(area, abs=3 * math.sqrt(area * (1 - area) / 500))
    with faulty(0.7):
        epsilon, _, mu, _ = values(rows_of(noisy_margin(10.0), data, 2, 1000))
    assert mu > most
    assert epsilon > claim


@pytest.mark.slow
def test_a_canary_alone_in_a_rounded_cell_is_hidden_and_one_that_completes_a_half_is_not() -> None:
    step = {"method": "margins", "limit": 10, "selection": "pairs"}
    hidden, seen = (rows_of(step, table(others, own), 3, 60, records=30) for others, own in ((30, 1), (30, 5)))
    assert hidden["auc"].value == pytest.approx(0.5, abs=0.2)
    assert hidden["given_away"].value == 0
    assert seen["auc"].value == 1
    assert seen["epsilon_lower"].baseline is None, "rounding claims no epsilon"


def of_margins(epsilon: float, cases: int, rng: np.random.Generator) -> PrivacyLossBound:
    """The bounds of measurements of a margin in which a thousand cells have a canary of their own, and a thousand are empty: of so many ``cases`` each."""
    budget, there = (
        private.PrivacyBudget.from_total(largest_rho(epsilon, DELTA), 1, "pairs"),
        np.repeat([0.0, 1.0], 1000),
    )
    domain = Domain((len(there),))
    found = [
        private.measure_margins(domain, lambda _: there, budget, "pairs", rng, components=1, steps=0).margins[0].table
        for _ in range(cases // 1000)
    ]
    return proved(np.concatenate([one.reshape(2, 1000) for one in found], axis=1), DELTA)


def of_gibbs(epsilon: float, cases: int, rng: np.random.Generator, others: int, spent: float = 0.0) -> PrivacyLossBound:
    """The bounds of so many drawn records with the canary and without it, each of which costs epsilon; ``spent`` is what the step really spends."""
    method = method_by_key("synthesis.perturbed_gibbs")
    assert method is not None
    spec = method.spec.from_table({"epsilon": spent or epsilon}, "step")
    scores = []
    for there in (0, 1):
        data = table(others, there)
        fit = method.fit(data, ("place",), spec, Run(rng), 1)
        scores.append(method.draw_targets(fit, spec, ("place",), data, data, 0, rng, cases)["place"].astype(np.float64))
    return proved(np.stack(scores), 0.0)


def proved(scores: np.ndarray, delta: float) -> PrivacyLossBound:
    """The bounds of ``scores`` (2, cases) without and with the canary: thresholds by the first half, counted on the second."""
    half = scores.shape[1] // 2
    there = np.repeat([False, True], half)
    first, second = scores[:, :half].ravel(), scores[:, half : 2 * half].ravel()
    return bounds_at_thresholds(second, there, best_bound_thresholds(first, there, delta=delta), delta=delta)


GIBBS = [(1.0, 5), (10.0, 1)]
"""Claims, and how many other records make the bound tightest: a record that is drawn often enough to be counted."""


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "others"), GIBBS)
def test_a_canary_in_an_empty_row_of_the_gibbs_sampler_proves_more_than_half_of_its_epsilon(
    epsilon: float, others: int
) -> None:
    rng = np.random.default_rng(11)
    found = [of_gibbs(epsilon, 40_000, rng, others).epsilon for _ in range(10)]
    assert max(found) <= epsilon
    assert min(found) > epsilon / 2
    assert of_gibbs(2.0, 40_000, rng, 5, spent=4.0).epsilon > 2.0, "the control: twice the epsilon that is claimed"


def run_audits(
    name: str, epsilon: float, one: Callable[[int], PrivacyLossBound], claim: PrivacyLossBound
) -> list[PrivacyLossBound]:
    found = [one(seed) for seed in range(AUDITS)]
    epsilons, mus = (np.array(side) for side in zip(*found, strict=True))
    within, half = int((epsilons <= claim.epsilon).sum()), int((epsilons > claim.epsilon / 2).sum())
    print(
        f"{name}, epsilon {epsilon:g}: at most the claim in {within} of {AUDITS}, above half of it in {half}; median epsilon {np.median(epsilons):.2f} "
        f"of {claim.epsilon:g}, mu {np.median(mus):.3f} of {claim.mu:.3f}, at most {mus.max():.3f}"
    )
    return found


@pytest.mark.study
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_two_hundred_audits_of_noisy_margins(epsilon: float) -> None:
    mu = math.sqrt(2 * largest_rho(epsilon, DELTA))

    def one(seed: int) -> PrivacyLossBound:
        direct = of_margins(epsilon, 40_000 if epsilon < 2 else 2_000, np.random.default_rng([seed, 1]))
        return PrivacyLossBound(max(direct.epsilon, epsilon_from_mu(direct.mu, DELTA)), direct.mu)

    claim = PrivacyLossBound(epsilon, mu)
    found = run_audits("Gaussian margin, by its cell", epsilon, one, claim)
    assert all(bound.epsilon <= epsilon for bound in found)
    assert np.mean([bound.mu > mu / 2 for bound in found]) > 0.95
    assert np.median([bound.mu for bound in found]) > 0.65 * mu
    with faulty(0.7):
        broken = run_audits("with .7 of the noise (must be caught)", epsilon, one, claim)
    assert np.mean([bound.mu > mu for bound in broken]) > 0.95


@pytest.mark.study
@pytest.mark.parametrize(("epsilon", "others"), GIBBS)
def test_two_hundred_audits_of_drawn_records(epsilon: float, others: int) -> None:
    claim = PrivacyLossBound(epsilon, math.nan)
    found = run_audits(
        "Gibbs sampler, one drawn record", epsilon, lambda s: of_gibbs(epsilon, 40_000, np.random.default_rng([s, 2]), others), claim
    )  # fmt: skip
    assert all(epsilon / 2 < bound.epsilon <= epsilon for bound in found)


@pytest.mark.study
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("method", ["margins", "perturbed_gibbs"])
def test_two_hundred_whole_audits_of_shadow_releases(method: str, epsilon: float) -> None:
    step = noisy_margin(epsilon) if method == "margins" else {"method": method, "epsilon": epsilon}
    data = table(20 if method == "margins" else 5, 1)

    def one(seed: int) -> PrivacyLossBound:
        bound, _, mu, _ = values(rows_of(step, data, seed, 200))
        return PrivacyLossBound(bound, mu)

    claim = PrivacyLossBound(epsilon, math.sqrt(2 * largest_rho(epsilon, DELTA)) if method == "margins" else math.nan)
    found = run_audits(f"{method}, 200 shadows each", epsilon, one, claim)
    assert all(bound.epsilon <= epsilon for bound in found)
