"""Cross-fitted areas against refits by scikit-learn and counts of pairs; level and power of the largest area, with DeLong's errors as the control that must fail."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import Ridge
from statsmodels.stats.proportion import proportion_confint

from sfumato.engine.adversary.cross_fitted import (
    TargetEvaluations,
    _area_variance,
    cross_fitted_smoother,
    draw_folds,
    evaluate_targets,
)


@pytest.mark.parametrize("features", [7, 40])
def test_scores_are_those_of_a_ridge_regression_on_the_other_parts(features: int) -> None:
    rng = np.random.default_rng(1)
    x, y, part = rng.normal(size=(30, features)), rng.choice([-1.0, 1.0], 30), draw_folds(30, rng)
    x[:, 3] = 2.0
    scores = cross_fitted_smoother(x, part, 0.7) @ y
    for fold in range(5):
        train, test = part != fold, part == fold
        spread = np.where(x[train].std(axis=0) > 0, x[train].std(axis=0), 1)
        own, others = ((x[rows] - x[train].mean(axis=0)) / spread for rows in (train, test))
        model = Ridge(alpha=0.7 * features).fit(own, y[train])
        assert scores[test] == pytest.approx(model.predict(others) - y[train].mean())


def test_an_area_is_the_share_of_pairs_within_the_parts() -> None:
    rng = np.random.default_rng(2)
    scores, label, part = np.round(rng.normal(size=40), 1), rng.random(40) < 0.5, draw_folds(40, rng)
    found = evaluate_targets([scores], [label], [part], 0.05, [np.stack([rng.permutation(40) for _ in range(9)])])
    wins = pairs = 0.0
    for fold in range(5):
        own, others = scores[(part == fold) & label], scores[(part == fold) & ~label]
        wins += sum(float(a > b) + 0.5 * float(a == b) for a in own for b in others)
        pairs += len(own) * len(others)
    assert found.areas[0, 0] == pytest.approx(wins / pairs)
    limit = np.sort(scores[~label])[::-1][1]
    assert found.true_positive_rates[0] == pytest.approx(np.mean(scores[label] > limit))
    hits = [hits_by_other_half(scores, label, kind) for kind in (True, False)]
    assert (found.hit_rates[0], found.false_hit_rates[0]) == pytest.approx(hits)
    fitted = evaluate_targets(
        [np.diag(scores)], [label], [part], 0.05, [np.stack([rng.permutation(40) for _ in range(9)])]
    )
    own = scores * np.where(label, 1, -1)
    assert fitted.hit_rates[0] == pytest.approx(np.mean(own[label] > 0)), "a regression of the label has its cut at 0"


def hits_by_other_half(scores: np.ndarray, label: np.ndarray, kind: bool) -> float:
    """The share of releases of a kind above the cut that is best on the other half, by trying every cut."""
    hits = 0
    for chooses, judges in ((slice(0, 20), slice(20, 40)), (slice(20, 40), slice(0, 20))):
        values = sorted(set(scores[chooses].tolist()))
        cuts = [(a + b) / 2 for a, b in itertools.pairwise(values)]
        own, there = scores[chooses], label[chooses]
        gains = [np.mean(own[there] > cut) - np.mean(own[~there] > cut) for cut in cuts]
        error = np.sqrt(1 / there.sum() + 1 / (~there).sum()) / 2
        best = [cut for cut, gain in zip(cuts, gains, strict=True) if gain >= max(gains) - error]
        hits += int((scores[judges][label[judges] == kind] > best[len(best) // 2]).sum())
    return hits / int((label == kind).sum())


def gaussian(count: int, mu: float, shadows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noisy counts of ``count`` others, with one record more in about half of them; noise of 1 / mu."""
    there = rng.random(shadows) < 0.5
    return count + there + rng.normal(size=shadows) / mu, there


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 12, 200])
def test_the_advantage_of_noisy_counts_covers_that_of_the_best_test_and_a_cut_at_0_does_not(count: int) -> None:
    """Of normal noise of sigma the best test has 2 Phi(1 / (2 sigma)) - 1; a cut at 0 is far below counts of 12 and 200 and loses half at 1."""
    rng = np.random.default_rng(count)
    for mu in (0.5, 1.0, 1.89):
        right = 2 * norm.cdf(mu / 2) - 1
        covered, naive = [], []
        for _ in range(300):
            scores, there = gaussian(count, mu, 500, rng)
            found = evaluate_targets([scores], [there], [np.zeros(500, dtype=np.int64)], 0.01, [np.arange(500)[None]])
            _, low, high = found.mean_advantage(np.ones(1, dtype=np.bool_))
            covered.append(low <= right <= high)
            at_0 = np.mean(scores[there] > 0) - np.mean(scores[~there] > 0)
            naive.append(at_0 + high - low > right)
        assert np.mean(covered) > 0.89, "95 %, less what a cut chosen from 250 releases costs and three standard errors"
        if count > 1:
            assert np.mean(naive) < 0.5 if mu < 1 else np.mean(naive) == 0


def audit(leak: float, rng: np.random.Generator, targets: int = 6, shadows: int = 80) -> TargetEvaluations:
    """Targets whose features lean by ``leak`` towards the label in the first of them; shadows are shared."""
    labels = rng.random((targets, shadows)) < 0.5
    x = rng.normal(size=(targets, shadows, 10)) + rng.normal(size=(1, shadows, 10))
    x[0, :, :3] += leak * labels[0][:, None]
    part, permuted = draw_folds(shadows, rng), np.stack([rng.permutation(shadows) for _ in range(99)])
    return evaluate_targets(
        [cross_fitted_smoother(one, part) for one in x], list(labels), [part] * targets, 0.01, [permuted] * targets
    )


@pytest.mark.slow
def test_the_largest_area_keeps_its_level_and_a_leak_is_found_while_delongs_errors_raise_false_alarms() -> None:
    rng = np.random.default_rng(3)
    every = np.ones(6, dtype=np.bool_)
    null = [audit(0.0, rng) for _ in range(150)]
    assert np.mean([one.p_value(every) <= 0.05 for one in null]) < 0.11  # 5 %, three standard errors
    alarms = np.mean([bool((one.area_limits(simultaneous=True)[0] > 0.5).any()) for one in null])
    assert alarms < 0.11
    areas = np.concatenate([one.areas[0] for one in null])
    assert abs(areas.mean() - 0.5) < 0.02
    de_long = np.sqrt(81 / (12 * 40 * 40))
    assert np.mean(np.abs(areas - 0.5) > 1.96 * de_long) > 0.1  # the control: twice the alarms that it promises
    assert np.mean([audit(1.2, rng).p_value(every) <= 0.05 for _ in range(20)]) > 0.6


@pytest.mark.study
def test_level_of_the_simultaneous_interval_over_many_null_audits() -> None:
    rng = np.random.default_rng(4)
    alarms = [bool((audit(0.0, rng).area_limits(simultaneous=True)[0] > 0.5).any()) for _ in range(400)]
    print(f"simultaneous 95 % intervals miss 1/2 from above in {np.mean(alarms):.3f} of 400 null audits")
    assert np.mean(alarms) <= 0.05  # 2.5 %, three standard errors


def evaluations(rng: np.random.Generator, targets: int = 5, permutations: int = 40) -> TargetEvaluations:
    areas = 0.5 + rng.normal(0, 0.08, (1 + permutations, targets))
    areas[0] += 0.2
    some = rng.integers(20, 40, (2, targets))
    hits = rng.integers(0, 20, (2, targets)) / some
    return TargetEvaluations(
        areas, rng.uniform(0.02, 0.06, targets), hits[0], np.full(targets, 0.1), hits[0], hits[1], some[0], some[1]
    )


def test_limits_of_areas_are_those_that_the_largest_and_smallest_of_permuted_ones_reach() -> None:
    for seed in range(5):
        found = evaluations(np.random.default_rng(seed))
        permuted = [[(a - 0.5) / e for a, e in zip(row, found.standard_errors, strict=True)] for row in found.areas[1:]]
        above = max(norm.ppf(0.975), float(np.quantile([max(row) for row in permuted], 0.975)))
        below = max(norm.ppf(0.975), float(np.quantile([-min(row) for row in permuted], 0.975)))
        assert found.critical_deviations == pytest.approx((above, below))
        for together, (up, down) in ((True, (above, below)), (False, (norm.ppf(0.975),) * 2)):
            low, high = found.area_limits(together)
            assert low == pytest.approx(np.maximum(found.areas[0] - up * found.standard_errors, 0))
            assert high == pytest.approx(np.minimum(found.areas[0] + down * found.standard_errors, 1))


def test_figures_over_targets_are_means_largest_ones_and_quantiles() -> None:
    found = evaluations(np.random.default_rng(7))
    some = np.array([True, False, True, True, False])
    mean = found.areas[:, some].mean(axis=1)
    spread = max(np.std(mean[1:]), math.sqrt(sum(found.standard_errors[some] ** 2)) / 3)
    reach = norm.ppf(0.975) * spread
    assert found.mean_area(some) == pytest.approx((mean[0], mean[0] - reach, min(1.0, mean[0] + reach)))
    largest = [max(row) for row in found.areas[:, some].tolist()]
    assert found.p_value(some) == pytest.approx(sum(a >= largest[0] for a in largest) / len(largest))
    expected = np.quantile(largest[1:], 0.95) + norm.ppf(0.8) * np.median(found.standard_errors[some])
    assert found.detectable_area(some) == pytest.approx(min(1.0, expected), abs=1e-5)
    value, below, above = [], 0.0, 0.0
    for at in np.flatnonzero(some):
        hit, false = found.hit_rates[at], found.false_hit_rates[at]
        ends = proportion_confint(round(hit * found.n_with_target[at]), found.n_with_target[at], method="wilson")
        others = proportion_confint(
            round(false * found.n_without_target[at]), found.n_without_target[at], method="wilson"
        )
        value.append(hit - false)
        below += (hit - ends[0]) ** 2 + (others[1] - false) ** 2
        above += (ends[1] - hit) ** 2 + (false - others[0]) ** 2
    middle = float(np.mean(value))
    limits = max(-1.0, middle - math.sqrt(below) / 3), min(1.0, middle + math.sqrt(above) / 3)
    assert found.mean_advantage(some) == pytest.approx((middle, *limits))


def test_one_score_on_a_side_has_the_variance_of_all_orders() -> None:
    places = [sum(one > other for other in range(4) if other != one) / 3 for one in range(4)]
    assert _area_variance(np.zeros(1), np.zeros(3)) == pytest.approx(np.var(places))
    assert _area_variance(np.zeros(3), np.zeros(1)) == pytest.approx(np.var(places))
