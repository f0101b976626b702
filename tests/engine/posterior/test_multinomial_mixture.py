"""The mixture of products of multinomials: its steps against closed forms and enumeration, its parameters against simulated truth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from sfumato.engine.methods.run import Progress, ignore_progress
from sfumato.engine.posterior import distinct_rows
from sfumato.engine.posterior.distinct_rows import Codes, DistinctRows, VariableBlock, draw_levels_given_classes
from sfumato.engine.posterior.multinomial_mixture import (
    ChainDraws,
    ClassAllocation,
    MixtureParameters,
    MixturePrior,
    OccupiedClasses,
    _GibbsChain,
    _random_start,
    sample_mixture,
)


def simulated(
    weights: list[float], levels: list[int], n: int, sharpness: float, seed: int
) -> tuple[list[Codes], np.ndarray]:
    """Codes of records of a known mixture, and the probabilities (cells,) of all cells of their table."""
    rng = np.random.default_rng(seed)
    z = rng.choice(len(weights), size=n, p=weights)
    codes, cells = [], np.array(weights)[:, None]
    for size in levels:
        phi = rng.dirichlet(np.full(size, sharpness), size=len(weights))
        codes.append((np.cumsum(phi, axis=1)[z] <= rng.random(n)[:, None]).sum(axis=1).clip(0, size - 1))
        cells = (cells[:, :, None] * phi[:, None, :]).reshape(len(weights), -1)
    return codes, cells.sum(axis=0)


def cells_of(now: MixtureParameters, levels: list[int]) -> np.ndarray:
    """The probabilities of all cells of the table by these parameters."""
    found, start = np.exp(now.log_weights)[:, None], 0
    for size in levels:
        phi = np.exp(now.log_levels[:, start : start + size])
        found, start = (found[:, :, None] * phi[:, None, :]).reshape(len(found), -1), start + size
    return np.asarray(found.sum(axis=0))


def sample_chains(codes: list[Codes], levels: list[int], classes: int = 12, **settings: int) -> ChainDraws:
    n = len(codes[0])
    rows = DistinctRows.from_codes(codes, levels, n)
    prior = MixturePrior(classes=classes, concentration=1.0, shape=0.25, rate=0.25)
    asked = {"sweeps": 900, "burn_in": 300, "thin": 1, "chains": 2, **settings}
    return sample_mixture(rows, prior, 60, np.random.default_rng(5), ignore_progress, **asked)


@pytest.mark.parametrize("combinations", [1, 512])
@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_class_probabilities_are_those_of_bayes_rule(
    combinations: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a loop over records, with missing values left out; blocks of one variable and of all give the same."""
    monkeypatch.setattr(distinct_rows, "COMBINATIONS", combinations)
    rng, levels, n = np.random.default_rng(size), [2, 3, 5], 60
    codes = [rng.integers(-1, size + 1, size=n) for size in levels]
    rows = DistinctRows.from_codes(codes, levels, n)
    assert len(rows.counts) == len(
        {*zip(*[np.where((c >= 0) & (c < s), c, -1) for c, s in zip(codes, levels, strict=True)], strict=True)}
    )
    weights, phi = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(10), size=size)
    found, likelihood = np.empty((n, size)), np.empty(len(rows.counts))
    for chunk, chances, short in rows.class_probabilities(np.log(weights), rows.log_block_probabilities(np.log(phi))):
        each = chances.each[:, :size] / chances.row_totals[:, None]
        likelihood[chunk] = np.log(chances.row_totals) + short
        found = each[rows.place]
    for i in range(n):
        expected = weights.copy()
        for own, start, levels_of in zip(codes, (0, 2, 5), levels, strict=True):
            if 0 <= own[i] < levels_of:
                expected *= phi[:, start + own[i]]
        assert found[i] == pytest.approx(expected / expected.sum())
        assert likelihood[rows.place[i]] == pytest.approx(np.log(expected.sum()))


def test_a_row_that_no_class_is_near_has_its_probabilities_still() -> None:
    """Blocks whose best classes differ by more than a double holds: the exponentials are all 0, the logarithms are not."""
    levels = [2] * 6
    rows = DistinctRows.from_codes([np.zeros(3, dtype=np.int64)] * 6, levels, 3)
    log_levels = np.zeros((2, 12))
    log_levels[0, :6], log_levels[1, 6:] = -400.0, -401.0
    one = np.zeros(1, dtype=np.int64)
    blocks = (
        VariableBlock(one, 0, 6, np.tile([[1.0], [0.0]], (3, 1)), np.array([3.0])),
        VariableBlock(one, 6, 12, np.tile([[1.0], [0.0]], (3, 1)), np.array([3.0])),
    )
    apart = DistinctRows(rows.levels, rows.counts, rows.place, blocks)
    ((_, chances, short),) = apart.class_probabilities(np.log([0.5, 0.5]), apart.log_block_probabilities(log_levels))
    assert chances.each[0, 1] / chances.each[0, 0] == pytest.approx(np.exp(-3.0))
    assert np.log(chances.row_totals[0]) + short[0] == pytest.approx(np.log(0.5) - 1200 + np.log1p(np.exp(-3.0)))


@pytest.mark.parametrize("many", [3, 200])
def test_records_are_in_a_class_as_often_as_its_probability_says(many: int) -> None:
    """Rows of few records draw class by class, rows of many a multinomial: both have the shares of Bayes' rule."""
    codes = [np.repeat([0, 1], many), np.repeat([0, 2], many)]
    rows = DistinctRows.from_codes(codes, [2, 3], 2 * many)
    rng = np.random.default_rng(3)
    weights, phi = np.array([0.2, 0.5, 0.3]), rng.dirichlet(np.ones(5), size=3)
    now = MixtureParameters(np.log(weights), np.log(phi), 1.0)
    times = 4000 // many
    records, levels = np.zeros(3), np.zeros((3, 5))
    for _ in range(times):
        found, _ = ClassAllocation.from_parameters(rows, now, rng)
        assert found.levels.sum() == 4 * many
        records, levels = records + found.records, levels + found.levels
    first, second = weights * phi[:, 0] * phi[:, 2], weights * phi[:, 1] * phi[:, 4]
    expected = np.stack([first / first.sum(), second / second.sum()]) * times * many
    assert stats.chisquare(levels[:, 0], expected[0]).pvalue > 1e-4
    assert stats.chisquare(levels[:, 4], expected[1]).pvalue > 1e-4
    assert stats.chisquare(levels[:, 0], expected[1]).pvalue < 1e-6, "the negative control"
    assert records == pytest.approx(levels[:, :2].sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("many", [3, 200])
def test_classes_without_records_are_drawn_as_often_as_their_probabilities_say(many: int) -> None:
    """Three of four classes are bounded together, one of them far above its probability in one row: shares are those of Bayes' rule."""
    rows = DistinctRows.from_codes([np.repeat([0, 1], many), np.repeat([0, 2], many)], [2, 3], 2 * many)
    weights = np.array([0.2, 0.5, 0.2, 0.1])
    phi = np.hstack([np.random.default_rng(3).dirichlet(np.ones(size), size=4) for size in (2, 3)])
    near = np.array([False, True, False, False])
    now, times = MixtureParameters(np.log(weights), np.log(phi), 1.0, near), 12_000 // many
    rng, levels = np.random.default_rng(4), np.zeros((4, 5))
    for _ in range(times):
        levels += ClassAllocation.from_parameters(rows, now, rng)[0].levels
    first, second = weights * phi[:, 0] * phi[:, 2], weights * phi[:, 1] * phi[:, 4]
    expected = np.stack([first / first.sum(), second / second.sum()]) * times * many
    assert stats.chisquare(levels[:, 0], expected[0]).pvalue > 1e-4
    assert stats.chisquare(levels[:, 4], expected[1]).pvalue > 1e-4
    bounded = OccupiedClasses.from_parameters(rows, now)
    bound = np.exp(bounded.log_weights[-1] + sum(log[-1] for log in bounded.bounds))[:, None]
    as_bounded = np.hstack([expected[:, ~near] / expected[:, ~near].sum(axis=1, keepdims=True)]) * bound
    near_share = np.stack([first, second])[:, near]
    wrong = np.hstack([as_bounded, near_share]) / (bound + near_share)
    assert stats.chisquare(levels[[0, 2, 3, 1], 0], wrong[0] * times * many).pvalue < 1e-6, (
        "the negative control: the bound is no probability"
    )


def test_the_log_likelihood_is_that_of_the_classes_with_records() -> None:
    rows = DistinctRows.from_codes([np.array([0, 1, 1]), np.array([0, 2, 1])], [2, 3], 3)
    weights, phi = np.array([0.2, 0.5, 0.3]), np.random.default_rng(3).dirichlet(np.ones(5), size=3)
    for near in (None, np.array([True, True, False])):
        used = slice(None) if near is None else near
        cells = [(weights * phi[:, a] * phi[:, 2 + b])[used].sum() for a, b in ((0, 0), (1, 2), (1, 1))]
        now = MixtureParameters(np.log(weights), np.log(phi), 1.0, near)
        assert ClassAllocation.from_parameters(rows, now, np.random.default_rng(1))[1] == pytest.approx(
            np.log(cells).sum()
        )


def log_labels(records: tuple[int, ...], alpha: float) -> float:
    """Log p(z | alpha) by which records are in which class, V integrated over, as it is defined."""
    found, size = 0.0, len(records)
    for k in range(size - 1):
        after = sum(records[k + 1 :])
        found += np.log(alpha) + gammaln(1 + records[k]) + gammaln(alpha + after)
        found -= gammaln(1 + alpha + records[k] + after)
    return float(found)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.4, 3.0])
def test_labels_move_as_often_as_their_probabilities_say(alpha: float) -> None:
    """The chain of label moves alone, against all orders of four classes enumerated."""
    sizes = (0.0, 1.0, 2.0, 5.0)
    orders = list(itertools.permutations(range(4)))
    logs = np.array([log_labels(tuple(int(sizes[i]) for i in order), alpha) for order in orders])
    expected = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    rng, state, seen = np.random.default_rng(8), ClassAllocation(np.array(sizes), np.eye(4)), dict.fromkeys(orders, 0)
    for step in range(15_000):
        state = state.relabel_neighbours(alpha, rng)
        if step % 5 == 0:
            seen[tuple(int(i) for i in state.levels.argmax(axis=1))] += 1
    shares = np.array(list(seen.values())) / 3000
    assert np.abs(shares - expected).max() < 0.03
    assert np.abs(shares - 1 / 24).max() > 0.04, "the negative control: not every order is as likely"


@pytest.mark.slow
def test_the_posterior_of_a_tiny_table_is_that_of_enumeration() -> None:
    """Four records, three classes: the predictive probability of each cell, all 81 allocations summed over, alpha by quadrature."""
    levels, codes = [2, 2], [np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])]
    prior = MixturePrior(classes=3, concentration=1.0, shape=2.0, rate=1.0)
    alphas = np.linspace(0.005, 14, 700)
    weight, expected = 0.0, np.zeros(4)
    density = stats.gamma(2.0, scale=1.0).pdf(alphas)
    for z in itertools.product(range(3), repeat=4):
        records = tuple(z.count(k) for k in range(3))
        logs, shares = 0.0, []
        for k in range(3):
            own = []
            for column, size in zip(codes, levels, strict=True):
                counts = np.bincount(column[np.array(z) == k], minlength=size) + 1.0
                logs += gammaln(counts).sum() - gammaln(counts.sum()) + gammaln(size)
                own.append(counts / counts.sum())
            shares.append(np.outer(*own).ravel())
        each = density * np.exp(logs + np.array([log_labels(records, float(a)) for a in alphas]))
        left, pi = np.ones(len(alphas)), []
        for k in range(3):
            v = (1 + records[k]) / (1 + records[k] + alphas + sum(records[k + 1 :])) if k < 2 else 1.0
            pi.append(left * v)
            left = left * (1 - v)
        expected += sum((each * p).sum() * share for p, share in zip(pi, shares, strict=True))
        weight += each.sum()
    expected /= weight
    rows = DistinctRows.from_codes(codes, levels, 4)
    sampled = sample_mixture(
        rows, prior, 4000, np.random.default_rng(2), ignore_progress, sweeps=4200, burn_in=200, thin=1, chains=2
    )
    found = np.mean([cells_of(now, levels) for now in sampled.kept], axis=0)
    assert found == pytest.approx(expected, abs=0.01)
    assert np.abs(found - 0.25).max() > 0.05, "the negative control: not the prior's"


@pytest.mark.slow
def test_cells_of_a_simulated_mixture_are_recovered_and_those_of_another_are_not() -> None:
    weights, levels = [0.5, 0.3, 0.2], [2, 3, 2, 4]
    codes, truth = simulated(weights, levels, 4000, 0.5, 1)
    _, other = simulated(weights, levels, 10, 0.5, 2)
    sampled = sample_chains(codes, levels)
    cells = np.array([cells_of(now, levels) for now in sampled.kept])
    wrong = np.array(
        [
            cells_of(now, levels)
            for now in sample_chains(
                [np.random.default_rng(j).permutation(c) for j, c in enumerate(codes)], levels
            ).kept
        ]
    )
    assert np.abs(cells.mean(axis=0) - truth).sum() / 2 < 0.025
    assert np.abs(cells.mean(axis=0) - other).sum() / 2 > 0.2, "the negative control"
    assert np.abs(wrong.mean(axis=0) - truth).sum() / 2 > 0.1, "with each variable shuffled alone nothing goes together"


def ranks(power: float, times: int) -> np.ndarray:
    """Ranks (times, 2) of the true probabilities of two cells among 39 draws, truth and 150 records drawn by the model itself.

    ``power`` is that of the records given to the sampler: 1 for the model, 2 for one that sees every record twice.
    """
    levels, prior = [2, 3, 2], MixturePrior(classes=4, concentration=1.0, shape=2.0, rate=1.0)
    found, rng = np.empty((times, 2)), np.random.default_rng(12)
    for t in range(times):
        v = np.append(rng.beta(1.0, rng.gamma(2.0), size=3), 1.0)
        weights = v * np.append(1.0, np.cumprod(1 - v[:-1]))
        z, codes, logs = rng.choice(4, size=150, p=weights), [], []
        for size in levels:
            phi = rng.dirichlet(np.ones(size), size=4)
            codes.append(
                np.repeat(
                    (np.cumsum(phi, axis=1)[z] <= rng.random(150)[:, None]).sum(axis=1).clip(0, size - 1), int(power)
                )
            )
            logs.append(np.log(phi))
        truth = cells_of(MixtureParameters(np.log(weights), np.hstack(logs), 1.0), levels)[[0, 7]]
        rows = DistinctRows.from_codes(codes, levels, len(codes[0]))
        sampled = sample_mixture(rows, prior, 39, rng, ignore_progress, sweeps=500, burn_in=110, thin=10, chains=1)
        found[t] = np.sum([cells_of(now, levels)[[0, 7]] < truth for now in sampled.kept], axis=0)
    return found


@pytest.mark.study
def test_the_truth_is_at_any_rank_among_the_draws() -> None:
    """Simulation-based calibration (Talts et al. 2018); records seen twice, with their intervals too short, must fail it."""
    found = ranks(1, 120)
    for own in found.T:
        assert stats.chisquare(np.bincount((own // 5).astype(int), minlength=8)).pvalue > 0.001
    wrong = ranks(2, 120)
    assert min(stats.chisquare(np.bincount((own // 5).astype(int), minlength=8)).pvalue for own in wrong.T) < 0.001


@pytest.mark.study
def test_chains_from_different_starts_occupy_as_many_classes() -> None:
    codes, _ = simulated([0.5, 0.3, 0.2], [2, 3, 2, 4, 3, 2], 3000, 0.3, 4)
    sampled = sample_chains(codes, [2, 3, 2, 4, 3, 2], classes=16, sweeps=1500, burn_in=500)
    occupied = sampled.quantities[500:, :, 0].mean(axis=0)
    assert abs(occupied[0] - occupied[1]) < 1.0
    assert occupied.min() >= 3
    early = sampled.quantities[:3, :, 0].mean(axis=0)
    assert early[0] - early[1] > 2, "they started apart"


def test_rows_in_another_order_give_the_same_draws() -> None:
    codes, _ = simulated([0.6, 0.4], [2, 3, 2], 300, 0.5, 3)
    order = np.random.default_rng(1).permutation(300)
    one, other = (
        sample_mixture(
            DistinctRows.from_codes(own, [2, 3, 2], 300),
            MixturePrior(classes=6, concentration=1.0, shape=0.25, rate=0.25),
            5,
            np.random.default_rng(7),
            ignore_progress,
            sweeps=60,
            burn_in=20,
            thin=1,
            chains=1,
        )
        for own in (codes, [c[order] for c in codes])
    )
    assert np.array_equal(one.log_likelihood, other.log_likelihood)
    assert all(np.array_equal(a.log_levels, b.log_levels) for a, b in zip(one.kept, other.kept, strict=True))


def test_draws_come_from_sweeps_spread_over_all_chains() -> None:
    codes, _ = simulated([0.6, 0.4], [2, 3], 50, 0.5, 3)
    sampled = sample_mixture(
        DistinctRows.from_codes(codes, [2, 3], 50),
        MixturePrior(classes=4, concentration=1.0, shape=0.25, rate=0.25),
        4,
        np.random.default_rng(7),
        ignore_progress,
        sweeps=60,
        burn_in=20,
        thin=2,
        chains=2,
    )
    assert sampled.chain.tolist() == [1, 1, 2, 2]
    assert sampled.sweep.tolist() == [32, 52, 32, 52]


def sampled(codes: list[Codes], *, draws: int = 6, **settings: Any) -> ChainDraws:
    """By two chains of this table, of two and three levels."""
    prior = MixturePrior(classes=6, concentration=1.0, shape=0.25, rate=0.25)
    asked = {"sweeps": 60, "burn_in": 20, "thin": 2, "chains": 2, "split_every": 1} | settings
    return sample_mixture(
        DistinctRows.from_codes(codes, [2, 3], 50), prior, draws, np.random.default_rng(7), ignore_progress, **asked
    )


def same(one: ChainDraws, other: ChainDraws) -> bool:
    """Whether every number of two samples agrees to the last bit."""
    arrays = ("quantities", "log_likelihood", "lost", "sweep", "chain")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays) and all(
        np.array_equal(a.log_levels, b.log_levels) and np.array_equal(a.log_weights, b.log_weights)
        for a, b in zip(one.kept, other.kept, strict=True)
    )


@pytest.mark.slow
def test_chains_continue_from_their_state_and_keep_their_second_half() -> None:
    """Chains that continue twice are the chains that would have run four times as long, with half of that for burn-in."""
    codes, _ = simulated([0.6, 0.4], [2, 3], 50, 0.5, 3)
    seen: list[int] = []
    found = sampled(codes, max_sweeps=260, converged=lambda so_far: bool(seen.append(len(so_far.lost))))
    assert seen == [60, 120, 240]
    assert (found.burn_in, len(found.lost)) == (120, 240)
    assert found.sweep.min() > 120
    assert same(found, sampled(codes, sweeps=240, burn_in=120))
    assert not same(found, sampled(codes, sweeps=240, burn_in=20)), "the negative control"


@pytest.mark.slow
def test_chains_that_converge_at_once_are_those_without_a_limit_to_the_last_bit() -> None:
    codes, _ = simulated([0.6, 0.4], [2, 3], 50, 0.5, 3)
    at_once = sampled(codes, max_sweeps=10_000, converged=lambda _: True)
    assert same(at_once, sampled(codes))


def test_progress_of_chains_that_continue_never_falls_and_ends_at_the_whole() -> None:
    codes, _ = simulated([0.6, 0.4], [2, 3], 50, 0.5, 3)
    prior = MixturePrior(classes=6, concentration=1.0, shape=0.25, rate=0.25)
    seen: list[Progress] = []
    sample_mixture(
        DistinctRows.from_codes(codes, [2, 3], 50), prior, 2, np.random.default_rng(7), seen.append,
        sweeps=60, burn_in=20, thin=1, chains=2, max_sweeps=120, converged=lambda _: False,
    )  # fmt: skip
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert (seen[-1].done, seen[-1].total) == (240, 240)
    assert seen[-1].what == "Gibbs sweeps of chains that continue"


def test_levels_are_drawn_by_the_class() -> None:
    rng = np.random.default_rng(1)
    phi = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    classes = np.repeat([0, 1], 3000)
    found = draw_levels_given_classes(classes, np.log(phi), rng)
    for k in (0, 1):
        seen = np.bincount(found[classes == k], minlength=3)
        assert stats.chisquare(seen, phi[k] * 3000).pvalue > 1e-4
        assert stats.chisquare(seen, phi[1 - k] * 3000).pvalue < 1e-6, "the negative control"


@pytest.mark.slow
def test_a_chain_continues_from_the_most_probable_of_its_starts() -> None:
    """The chain that is chosen has the largest mean score; one start alone has the same draws as a version without starts."""
    rng = np.random.default_rng(11)
    z = rng.integers(3, size=300)
    codes = [np.where(rng.random(300) < 0.15, rng.integers(3, size=300), z) for _ in range(5)]
    rows = DistinctRows.from_codes(codes, (3,) * 5, 300)
    prior = MixturePrior(classes=10, concentration=1.0, shape=0.25, rate=0.25)
    lengths = {"sweeps": 80, "burn_in": 40, "thin": 1, "chains": 2, "split_every": 1}

    def sampled(**more: int) -> ChainDraws:
        return sample_mixture(rows, prior, 4, np.random.default_rng(5), lambda _: None, **lengths, **more)

    one, several = sampled(starts=1), sampled(starts=3)
    assert np.array_equal(one.log_likelihood, sampled().log_likelihood)
    assert several.log_likelihood.shape == one.log_likelihood.shape == (80, 2)
    assert not np.array_equal(several.log_likelihood, one.log_likelihood)
    assert several.burn_in == 40
    begun = [np.random.default_rng(5).spawn(2)[0].spawn(3)[place] for place in range(3)]
    chains = [_GibbsChain(_random_start(rows, prior, 1, own), own, scores=[]) for own in begun]
    for chain in chains:
        chain.run_to(5, (), rows, prior, 1, None, lambda _: None)
    best = max(chains, key=_GibbsChain.mean_score)
    assert np.array_equal(several.log_likelihood[:5, 0], best.log_likelihood)
