"""The exact privacy loss of the whole mechanism on a tiny domain, its choice of margins included, and a wrong sigma that exceeds the claim.

Three variables of two categories; two of the three pairs are chosen and measured. All whole counts that the first three margins may show
are listed with their probabilities; for each of them the model is known, and so are the scores of the pairs and the probability of every
choice in its order. What the two measurements add is the loss of two rounded normal numbers, whichever pairs they are of.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.margins import private, soft_records
from sfumato.engine.margins.domain import Clique, Domain
from sfumato.engine.margins.private import PrivacyBudget, measure_margins
from sfumato.engine.margins.zcdp import epsilon_of_rho

DOMAIN = Domain((2, 2, 2))
PAIRS: list[Clique] = [(0, 1), (0, 2), (1, 2)]
RECORDS = np.array([[0, 0, 0]] * 14 + [[1, 1, 0]] * 12 + [[0, 1, 1]] * 9 + [[1, 0, 1]] * 13)
MORE = np.vstack([RECORDS, [[0, 0, 1]]])
RHO, DELTA = 8.0, 0.01
BUDGET = PrivacyBudget.from_total(RHO, 3, "aim")
REACH = 3.5
"""Standard deviations of noise that are listed; the rest counts as a failed promise."""


def likelihood(count: np.ndarray, mean: float, sigma: float) -> np.ndarray:
    """The probability of whole counts whose noise was rounded."""
    return np.asarray(norm.cdf(count + 0.5, mean, sigma) - norm.cdf(count - 0.5, mean, sigma))


def choices(tables: np.ndarray, shares: np.ndarray, total: np.ndarray, noise: float, epsilon: float) -> np.ndarray:
    """The probability of each ordered choice of two pairs, (outputs, 6), given the pairs' counts (3, 4) and the outputs' models."""
    scores = []
    for at, (a, b) in enumerate(PAIRS):
        model = (shares[:, a, :, None] * shares[:, b, None, :]).reshape(-1, 4) * total[:, None]
        scores.append(np.abs(model - tables[at]).sum(axis=1))  # all pairs have four cells: what noise adds is alike
    weights = np.exp(epsilon / 2 * (np.array(scores).T - np.max(scores, axis=0)[:, None]))
    whole = weights.sum(axis=1)
    found = [
        weights[:, i] / whole * weights[:, j] / (whole - weights[:, i]) for i, j in itertools.permutations(range(3), 2)
    ]
    return np.stack(found, axis=1)


def counts(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ones = np.array([DOMAIN.count_records(codes, (at,)) for at in range(3)])
    return ones, np.array([DOMAIN.count_records(codes, pair).ravel() for pair in PAIRS])


def exact_delta(epsilon: float, wrong: float = 1.0) -> float:
    """The least delta at ``epsilon`` for ``MORE`` beside ``RECORDS``, the larger of both directions; ``wrong`` multiplies every sigma."""
    sigma = wrong * math.sqrt(3 / (2 * BUDGET.single_margins))
    noise = wrong * math.sqrt(2 / (2 * BUDGET.joint_margins))
    each = math.sqrt(8 * BUDGET.choices / 2)
    (first, first_pairs), (second, second_pairs) = counts(RECORDS), counts(MORE)
    reach = math.ceil(REACH * sigma)
    axes = [np.arange(first[at, c] - reach, first[at, c] + reach + 2) for at in range(3) for c in range(2)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3, 2)
    total = np.maximum(grid.sum(axis=2).mean(axis=1), 1.0)
    rest = (grid[:, :, 0] - grid[:, :, 1]) / (2 * total[:, None])  # the nearest shares of two numbers
    shares = np.clip(np.stack([0.5 + rest, 0.5 - rest], axis=2), 0, 1)
    logs = []
    for ones, tables in ((first, first_pairs), (second, second_pairs)):
        log = sum(np.log(likelihood(grid[:, at, c], ones[at, c], sigma)) for at in range(3) for c in range(2))
        logs.append(log[:, None] + np.log(choices(tables, shares, total, noise, each)))
    pair_loss, pair_mass = rounded_loss(noise)
    worst = 0.0
    for mine, other, sign in ((logs[0], logs[1], -1), (logs[1], logs[0], 1)):
        mass, loss = np.exp(mine).ravel(), (mine - other).ravel()
        steps, size = np.floor(loss / 1e-3).astype(int) + 1, 1e-3  # upwards: never less loss than there is
        start = steps.min()
        binned = np.bincount(steps - start, mass)
        values = (start + np.arange(len(binned))) * size
        own_loss, own_mass = (pair_loss, pair_mass[0]) if sign > 0 else (-pair_loss, pair_mass[1])
        both = (own_loss[:, None] + own_loss[None, :]).ravel()
        weights = (own_mass[:, None] * own_mass[None, :]).ravel()
        found = 1 - mass.sum() + 1 - weights.sum()
        for one, weight in zip(both, weights, strict=True):
            found += weight * float((binned * np.maximum(0, -np.expm1(epsilon - values - one))).sum())
        worst = max(worst, found)
    return worst


def rounded_loss(noise: float) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The log ratio of every whole count with one record more and without it, and its probability in both cases."""
    count = np.arange(-math.ceil(6 * noise), math.ceil(6 * noise) + 2)
    more, less = likelihood(count, 1, noise), likelihood(count, 0, noise)
    some = (more > 0) & (less > 0)
    return np.log(more[some] / less[some]), (more[some], less[some])


@pytest.mark.slow
def test_the_exact_loss_of_the_whole_mechanism_is_within_the_claim() -> None:
    epsilon = epsilon_of_rho(RHO, DELTA)
    kept, broken = exact_delta(epsilon), exact_delta(epsilon, 0.7)
    assert kept <= DELTA
    assert broken > 3 * DELTA, "the control: three tenths less noise"


def one_run(codes: np.ndarray, seed: int, **given: Any) -> private.MarginMeasurements:
    return measure_margins(
        DOMAIN,
        lambda clique: DOMAIN.count_records(codes, clique),
        BUDGET,
        "aim",
        np.random.default_rng(seed),
        components=1,
        steps=0,
    )


@pytest.mark.slow
def test_the_mechanism_chooses_and_measures_as_its_list_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fit the model is the product of the noisy shares, as in the list: choices come as often, and noise is as large."""
    monkeypatch.setattr(soft_records, "SPREAD", 0.0)
    monkeypatch.setattr(private, "BORNE", 0.0)
    monkeypatch.setattr(private, "ROUNDS", 1)
    monkeypatch.setattr(private, "RARE", -math.inf)
    monkeypatch.setattr(private, "FLOOR", 0.0)
    each = math.sqrt(8 * BUDGET.choices / 2)
    ones, pairs = counts(RECORDS)
    seen: Counter[tuple[Clique, ...]] = Counter()
    expected = np.zeros(6)
    off: list[list[float]] = [[], []]
    runs = 1_500
    for seed in range(runs):
        found = one_run(RECORDS, seed)
        singles = np.array([one.table for one in found.margins[:3]])
        total = np.array([max(singles.sum(axis=1).mean(), 1.0)])
        rest = (singles[:, 0] - singles[:, 1]) / (2 * total)
        shares = np.clip(np.stack([0.5 + rest, 0.5 - rest], axis=1), 0, 1)[None]
        expected += choices(pairs, shares, total, found.margins[3].sigma, each)[0]
        seen[tuple(one.clique for one in found.margins[3:])] += 1
        off[0] += [*(singles - ones).ravel()]
        off[1] += [*(found.margins[3].table - DOMAIN.count_records(RECORDS, found.margins[3].clique)).ravel()]
    observed = np.array([seen[PAIRS[i], PAIRS[j]] for i, j in itertools.permutations(range(3), 2)])
    distance = float(((observed - expected) ** 2 / expected).sum())
    assert distance < 20.5, "chi-square with 5 degrees of freedom: 0.1 %"
    even = np.full(6, runs / 6)
    assert float(((observed - even) ** 2 / even).sum()) > 20.5, "the control: not every choice is alike"
    for noises, one in zip(off, (found.margins[0], found.margins[3]), strict=True):
        steps = np.arange(-12, 13)
        assert np.var(noises) == pytest.approx(float((steps**2 * likelihood(steps, 0, one.sigma)).sum()), rel=0.08)
    assert found.margins[0].sigma == pytest.approx(math.sqrt(3 / (2 * BUDGET.single_margins)))
    assert found.margins[3].sigma == pytest.approx(math.sqrt(2 / (2 * BUDGET.joint_margins)))


def test_the_budget_is_spent_whole_and_never_more() -> None:
    for choice in ("given", "pairs", "mst", "aim"):
        for variables in (1, 2, 14):
            assert PrivacyBudget.from_total(0.3, variables, choice).total_cost == pytest.approx(0.3)


@pytest.mark.parametrize("choice", ["mst", "aim", "pairs"])
def test_what_is_measured_costs_what_the_budget_says(choice: Any) -> None:
    rng = np.random.default_rng(1)
    domain, codes = Domain((3, 4, 2, 5)), rng.integers(0, 2, (500, 4))
    budget = PrivacyBudget.from_total(0.5, 4, choice)
    found = measure_margins(
        domain, lambda clique: domain.count_records(codes, clique), budget, choice, rng, components=20, steps=30
    )
    noise = sum(1 / (2 * one.sigma**2) for one in found.margins)
    spent = noise + (0 if len(found.margins) == 10 else budget.choices)
    assert spent == pytest.approx(budget.total_cost)
    assert all(one.table.sum() == np.rint(one.table.sum()) for one in found.margins)
    if choice == "mst":
        assert len(found.margins) == 4 + 3


def test_nothing_but_answers_is_read_of_the_records() -> None:
    """The same noise and the same answers give the same measurements, whatever else the records are."""
    domain = Domain((2, 2))
    first = np.array([[0, 0], [1, 1], [0, 1]] * 20)
    tables = {
        (0,): domain.count_records(first, (0,)),
        (1,): domain.count_records(first, (1,)),
        (0, 1): domain.count_records(first, (0, 1)),
    }
    asked: list[Clique] = []

    def answer(clique: Clique) -> np.ndarray:
        asked.append(clique)
        return tables[clique]

    found = measure_margins(
        domain, answer, PrivacyBudget.from_total(1.0, 2, "aim"), "aim", np.random.default_rng(3), components=5, steps=10
    )
    again = measure_margins(
        domain,
        tables.__getitem__,
        PrivacyBudget.from_total(1.0, 2, "aim"),
        "aim",
        np.random.default_rng(3),
        components=5,
        steps=10,
    )
    assert all((a.table == b.table).all() for a, b in zip(found.margins, again.margins, strict=True))
    assert sorted(set(asked)) == [(0,), (0, 1), (1,)]
