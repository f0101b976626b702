"""Combinations that cannot be: slices against enumeration, lost records against their distribution, the posterior against importance sampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.run import ignore_progress
from sfumato.engine.posterior import structural_zeros
from sfumato.engine.posterior.distinct_rows import Codes, DistinctRows
from sfumato.engine.posterior.multinomial_mixture import ChainDraws, MixturePrior, sample_mixture
from sfumato.engine.posterior.structural_zeros import (
    MixtureSupport,
    SupportTruncation,
    TooManySlices,
    fulfilled_conditions,
)

LEVELS = (2, 3, 2)
CELLS = np.array(list(itertools.product(*map(range, LEVELS))))
STARTS = np.array([0, 2, 5, 7])


def condition(**sets: tuple[int, ...]) -> np.ndarray:
    """A mask (D,) of variables a, b, c; one that is not named has all levels."""
    parts = [
        np.isin(np.arange(size), sets.get(name, tuple(range(size)))) for name, size in zip("abc", LEVELS, strict=True)
    ]
    return np.concatenate(parts)


def inside(slices: np.ndarray) -> np.ndarray:
    """Which slices hold which cells, (slices, cells), cell by cell."""
    return np.array(
        [[all(one[STARTS[j] + level] for j, level in enumerate(cell)) for cell in CELLS] for one in slices], dtype=bool
    ).reshape(-1, len(CELLS))


def cells_of(log_weights: np.ndarray, log_levels: np.ndarray) -> np.ndarray:
    """The probability by f of every cell."""
    logs = log_weights[:, None] + sum(log_levels[:, STARTS[j] + CELLS[:, j]] for j in range(3))
    return np.asarray(np.exp(logs).sum(axis=0))


def parameters(seed: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    phi = np.hstack([rng.dirichlet(np.ones(size), size=classes) for size in LEVELS])
    return np.log(rng.dirichlet(np.ones(classes))), np.log(phi)


conditions = st.lists(st.lists(st.booleans(), min_size=7, max_size=7).map(np.array), min_size=1, max_size=4)


@given(conditions)
def test_slices_are_disjoint_and_hold_what_the_conditions_hold(asked: list[np.ndarray]) -> None:
    support, wanted = MixtureSupport.from_conditions(np.array(asked), LEVELS), inside(np.array(asked)).any(axis=0)
    assert np.array_equal(inside(support.zeros).sum(axis=0), wanted)
    assert np.array_equal(inside(support.possible).sum(axis=0), ~wanted)
    found = fulfilled_conditions(np.array(asked), STARTS, list(CELLS.T))
    assert np.array_equal(found, inside(np.array(asked)))


@given(conditions, st.integers(0, 5))
def test_the_probability_of_what_cannot_be_is_the_sum_over_its_cells(asked: list[np.ndarray], seed: int) -> None:
    support, (log_weights, log_levels) = MixtureSupport.from_conditions(np.array(asked), LEVELS), parameters(seed)
    chances = support.slice_probabilities(support.zeros, np.exp(log_weights), np.exp(log_levels))
    expected = cells_of(log_weights, log_levels)[inside(np.array(asked)).any(axis=0)].sum()
    assert chances.sum() == pytest.approx(expected, abs=1e-12)


def test_a_value_that_is_missing_is_in_the_set_of_all_levels_alone() -> None:
    asked = np.array([condition(a=(1,)), condition(b=(0, 1))])
    codes = [np.array([2, 2, 1]), np.array([0, 3, 3]), np.array([0, 0, 2])]
    assert fulfilled_conditions(asked, STARTS, codes).tolist() == [[False, False, True], [True, False, False]]


def test_conditions_that_cut_each_other_too_often_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structural_zeros, "MOST_SLICES", 2)
    with pytest.raises(TooManySlices):
        MixtureSupport.from_conditions(np.array([condition(a=(0,)), condition(b=(0,)), condition(c=(0,))]), LEVELS)


@pytest.mark.slow
def test_lost_records_are_as_many_as_fall_on_what_cannot_be() -> None:
    """Their number has mean n omega / (1 - omega) and variance n omega / (1 - omega)^2; their cells have f's shares of S."""
    support = MixtureSupport.from_conditions(np.array([condition(a=(1,), b=(0, 2)), condition(b=(0,), c=(1,))]), LEVELS)
    log_weights, log_levels = parameters(1)
    cells, impossible = cells_of(log_weights, log_levels), inside(support.zeros).any(axis=0)
    omega, rng = cells[impossible].sum(), np.random.default_rng(2)
    drawn = [support.draw_lost_records(log_weights, log_levels, 50, rng) for _ in range(3000)]
    counts = np.array([records.sum() for records, _, _ in drawn])
    assert drawn[0][2] == pytest.approx(np.log1p(-omega))
    sd = np.sqrt(50 * omega) / (1 - omega)
    assert counts.mean() == pytest.approx(50 * omega / (1 - omega), abs=4 * sd / np.sqrt(3000))
    assert counts.std() == pytest.approx(sd, rel=0.06)
    levels = sum(found for _, found, _ in drawn)
    assert levels[:, :2].sum() == counts.sum() == levels[:, 2:5].sum()
    for j in range(3):
        own = np.array([cells[impossible & (CELLS[:, j] == level)].sum() for level in range(LEVELS[j])])
        seen = levels[:, STARTS[j] : STARTS[j + 1]].sum(axis=0)
        assert (seen[own == 0] == 0).all()
        assert stats.chisquare(seen[own > 0], (own / own.sum() * counts.sum())[own > 0]).pvalue > 1e-4
    every = np.array([cells[CELLS[:, 0] == level].sum() for level in range(2)])
    assert stats.chisquare(levels[:, :2].sum(axis=0), every * counts.sum()).pvalue < 1e-6, "the negative control"


@pytest.mark.parametrize("tries", [0, 1, 8])
def test_what_a_record_lacks_is_as_probable_as_f_says_outside_what_cannot_be(
    tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By trial, among the possible slices, and by both: b = 0 is kept, a and c are drawn."""
    monkeypatch.setattr(structural_zeros, "TRIES", tries)
    support = MixtureSupport.from_conditions(np.array([condition(a=(1,), b=(0, 2)), condition(b=(1,), c=(1,))]), LEVELS)
    log_weights, log_levels = parameters(4)
    kept, n = np.repeat([0, 1, 3], 3000), 9000
    codes = [np.full(n, 2), kept, np.full(n, 2)]
    rows = DistinctRows.from_codes(codes, LEVELS, n)
    classes, found = support.complete_records(rows, codes, log_weights, log_levels, np.random.default_rng(5))
    cells = cells_of(log_weights, log_levels)
    can = ~inside(support.zeros).any(axis=0)
    assert not fulfilled_conditions(support.zeros, STARTS, found).any()
    for value in (0, 1, 3):
        own = can & ((CELLS[:, 1] == value) | (value == 3))
        at = np.stack(found)[:, kept == value].T
        seen = np.array([(at == cell).all(axis=1).sum() for cell in CELLS[own]])
        assert stats.chisquare(seen, cells[own] / cells[own].sum() * 3000).pvalue > 1e-4
    assert np.array_equal(found[1][kept < 3], kept[kept < 3])
    expected = np.exp(log_weights + log_levels[:, 0] + log_levels[:, 2] + log_levels[:, 5])
    mine = (kept == 0) & (found[2] == 0)
    assert (
        stats.chisquare(np.bincount(classes[mine], minlength=3), expected / expected.sum() * mine.sum()).pvalue > 1e-4
    )


def test_a_record_that_what_it_keeps_makes_impossible_is_refused() -> None:
    support = MixtureSupport.from_conditions(np.array([condition(b=(1,))]), LEVELS)
    codes = [np.array([2, 2]), np.array([0, 1]), np.array([2, 2])]
    with pytest.raises(NotComputable, match="no combination that can be"):
        support.complete_records(
            DistinctRows.from_codes(codes, LEVELS, 2), codes, *parameters(1), np.random.default_rng(1)
        )


def sampled(
    codes: list[Codes], levels: tuple[int, ...], support: MixtureSupport | None, prior: MixturePrior, **settings: int
) -> ChainDraws:
    """A chain; records that lack a value of what a condition asks about are drawn."""
    n, truncation = len(codes[0]), None
    lacks = np.zeros(n, dtype=bool)
    if support is not None:
        lacks = np.any([codes[j] >= levels[j] for j in support.condition_variables], axis=0)
        lacking = tuple(own[lacks] for own in codes)
        truncation = SupportTruncation(support, n, DistinctRows.from_codes(lacking, levels, int(lacks.sum())), lacking)
    rows = DistinctRows.from_codes([own[~lacks] for own in codes], levels, n - int(lacks.sum()))
    given = {"sweeps": 3200, "burn_in": 200, "thin": 1, "chains": 1} | settings
    return sample_mixture(rows, prior, 1000, np.random.default_rng(3), ignore_progress, **given, truncation=truncation)


@pytest.mark.study
@pytest.mark.parametrize("missing", [False, True])
def test_the_posterior_of_a_small_table_is_that_of_importance_sampling(missing: bool) -> None:
    """Draws from the prior, weighted by the likelihood f(x) / (1 - omega) of each record, a missing value summed over what can be."""
    prior = MixturePrior(classes=2, concentration=1.0, shape=2.0, rate=1.0)
    support = MixtureSupport.from_conditions(np.array([condition(a=(1,), b=(0,)), condition(a=(1,), c=(1,))]), LEVELS)
    data = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 1], [1, 2, 0], [0, 0, 0]])
    if missing:
        data = np.vstack([data, [2, 0, 1], [2, 1, 0], [2, 2, 0], [1, 3, 0], [0, 1, 2]])
    can = ~inside(support.zeros).any(axis=0)
    rng, times = np.random.default_rng(6), 100_000
    v = rng.beta(1.0, rng.gamma(2.0, size=times))
    weights = np.stack([v, 1 - v], axis=1)
    cells = np.zeros((times, len(CELLS)))
    for k in range(2):
        phi = [rng.dirichlet(np.ones(size), size=times) for size in LEVELS]
        cells += weights[:, k, None] * np.prod([phi[j][:, CELLS[:, j]] for j in range(3)], axis=0)
    cells *= can
    cells /= cells.sum(axis=1, keepdims=True)
    logs = np.zeros(times)
    for record in data:
        fits = np.all((record == CELLS) | (record >= np.array(LEVELS)), axis=1)
        logs += np.log(cells[:, fits].sum(axis=1))
    importance = np.exp(logs - logs.max())
    assert importance.sum() ** 2 / (importance**2).sum() > 2000, "effective draws"
    expected = importance @ cells / importance.sum()
    codes = list(data.T.astype(np.int64))
    chain = sampled(codes, LEVELS, support, prior, sweeps=3200)
    found = np.array([cells_of(now.log_weights, now.log_levels) * can for now in chain.kept])
    assert (found / found.sum(axis=1, keepdims=True)).mean(axis=0) == pytest.approx(expected, abs=0.015)
    assert chain.lost.mean() > 0.5
    ignoring = sampled(codes, LEVELS, None, prior, sweeps=3200)
    wrong = np.array([cells_of(now.log_weights, now.log_levels) * can for now in ignoring.kept])
    assert np.abs((wrong / wrong.sum(axis=1, keepdims=True)).mean(axis=0) - expected).max() > 0.02, "the control"


@pytest.mark.slow
def test_a_simulated_mixture_is_recovered_where_ignoring_what_cannot_be_is_biased() -> None:
    """One class of six independent variables, much of its mass impossible: its margins are found with the slices, and others without."""
    rng, levels = np.random.default_rng(7), (2,) * 6
    share = np.array([0.6, 0.5, 0.7, 0.4, 0.5, 0.6])
    drawn = (rng.random((8000, 6)) < share).astype(np.int64)
    impossible = (drawn[:, 0] == 1) & (drawn[:, 1] == 1) | (drawn[:, 2] == 0) & (drawn[:, 3] == 1)
    every = [True, True]
    support = MixtureSupport.from_conditions(
        np.array([[*[False, True] * 2, *every * 4], [*every * 2, True, False, False, True, *every * 2]]), levels
    )
    prior = MixturePrior(classes=10, concentration=1.0, shape=0.25, rate=0.25)
    codes = list(drawn[~impossible].T)
    chain, ignoring = (sampled(codes, levels, one, prior, sweeps=1500, burn_in=500) for one in (support, None))

    def margins(found: ChainDraws) -> np.ndarray:
        each = [np.exp(now.log_weights) @ np.exp(now.log_levels[:, 1::2]) for now in found.kept]
        return np.asarray(np.mean(each, axis=0))

    assert margins(chain) == pytest.approx(share, abs=0.03)
    assert np.abs(margins(ignoring) - share).max() > 0.1, "the control"
    assert chain.lost[500:].mean() == pytest.approx(impossible.sum(), rel=0.1)
