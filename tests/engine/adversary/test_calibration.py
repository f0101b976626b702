"""The best of many attackers without a leak: p-values, intervals and power; and with one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, kstest, norm

from sfumato.engine.adversary.calibration import (
    _count_true_positives,
    area_without_release,
    detectable_area,
    draw_first_half,
    evaluate_best_attacker,
    has_enough_people,
)
from sfumato.engine.adversary.power import FAMILY_AREA_FACTOR, detectable_family_area
from sfumato.engine.data.arrays import Booleans, Floats


def scores(people: int, attackers: int, rng: np.random.Generator) -> Floats:
    """Attackers who look at much the same, some of them with few different scores."""
    shared = rng.normal(size=(people, 3)) @ rng.normal(size=(3, attackers))
    found = np.asarray(shared + rng.normal(size=(people, attackers)))
    found[:, : attackers // 3] = np.round(found[:, : attackers // 3])
    found[:, attackers // 3] = found[:, attackers // 3] > 1.5
    return found


def simulated(
    runs: int, targets: int, controls: int, attackers: int, shift: float = 0.0, *, independent: bool = False
) -> tuple[Floats, float, Floats]:
    """P-values, coverage of 1/2 and detectable areas of so many simulations in which the last attacker sees a leak of this size."""
    p_values, covered, detectable = np.empty(runs), np.empty(runs), np.empty(runs)
    member: Booleans = np.arange(targets + controls) < targets
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        own = rng.normal(size=(len(member), attackers)) if independent else scores(len(member), attackers, rng)
        own[member, -1] += shift
        found = evaluate_best_attacker(own, member, draw_first_half(member, rng), 0.05, rng, 199)
        p_values[seed], covered[seed] = found.p_value, found.lower <= 0.5 <= found.upper
        detectable[seed] = found.detectable_area
    return p_values, float(covered.mean()), detectable


@pytest.mark.study
def test_without_a_leak_p_values_are_uniform_and_intervals_cover() -> None:
    """1,000 releases; where the attacker is chosen and judged on the same people they are not: the largest area is above 1/2 in most."""
    p_values, covered, _ = simulated(1000, 300, 200, 12)
    print(
        f"p-values: {kstest(p_values, 'uniform')}, at most .05 in {np.mean(p_values <= 0.05):.1%}; coverage {covered:.1%}"
    )
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert 0.93 <= covered <= 0.97
    leaky, misses, _ = simulated(100, 300, 200, 12, shift=2.0)
    assert kstest(leaky, "uniform").pvalue < 1e-6
    assert misses < 0.1


@pytest.mark.slow
def test_without_a_leak_small_p_values_are_rare() -> None:
    p_values, covered, _ = simulated(120, 120, 60, 6)
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert 0.88 <= covered <= 1
    assert kstest(simulated(30, 120, 60, 6, shift=1.0)[0], "uniform").pvalue < 1e-4


@pytest.mark.study
def test_a_leak_of_the_detectable_size_is_found_four_times_in_five() -> None:
    """By an attacker whose scores go with nobody else's, of two normal distributions."""
    member: Booleans = np.arange(500) < 300
    found, detectable = list[bool](), list[float]()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        own = rng.normal(size=(500, 12))
        detectable.append(
            evaluate_best_attacker(own, member, draw_first_half(member, rng), 0.05, rng, 199).detectable_area
        )
        own[member, 3] += norm.ppf(np.mean(detectable)) * np.sqrt(2)
        found.append(evaluate_best_attacker(own, member, draw_first_half(member, rng), 0.05, rng, 199).lower > 0.5)
    print(f"detectable area {np.mean(detectable):.3f}, found in {np.mean(found):.1%}")
    assert 0.74 <= np.mean(found) <= 0.86


def leaky(own: Floats, member: Booleans, area: float, kind: str, attackers: Sequence[int], seed: int) -> Floats:
    """Scores in which some attackers see a leak of this AUC: all members lean, or a share of them is known for certain."""
    found = own.copy()
    known = member & (np.random.default_rng([seed, 1]).random(len(member)) < 2 * (area - 0.5))
    for attacker in attackers:
        if kind == "shift":
            found[member, attacker] += norm.ppf(area) * np.sqrt(2)
        else:
            found[known, attacker] = 9.0
    return found


def share_found(targets: int, controls: int, attackers: int, kind: str, runs: int) -> tuple[float, float, float]:
    """Share of simulated leaks of the detectable size that are found: seen by one attacker, by one and of the size that is significant half of the time, by all."""
    member: Booleans = np.arange(targets + controls) < targets
    detectable = simulated(20, targets, controls, attackers, independent=True)[2].mean()
    # Without the allowance for power: the critical value alone, at 1.96 of 1.96 + .84 standard errors.
    half_as_often = 0.5 + (detectable - 0.5) * 1.96 / (1.96 + norm.ppf(0.8))
    found = np.zeros((runs, 3))
    for seed in range(runs):
        rng = np.random.default_rng([seed, targets, controls, attackers])
        own = rng.normal(size=(len(member), attackers))
        own_one, everyone = [seed % attackers], list(range(attackers))
        for at, (area, who) in enumerate(
            ((detectable, own_one), (half_as_often, own_one), (detectable, everyone))[: 3 if attackers > 1 else 2]
        ):
            some = leaky(own, member, area, kind, who, seed)
            found[seed, at] = (
                evaluate_best_attacker(some, member, draw_first_half(member, rng), 0.05, rng, 199).lower > 0.5
            )
    one, half, everyone_sees = found.mean(axis=0)
    print(
        f"{targets} members, {controls} controls, {attackers} attackers, {kind}: {one:.1%}, {half:.1%}, {everyone_sees:.1%}"
    )
    return float(one), float(half), float(everyone_sees)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shift", "certain"])
def test_a_leak_that_one_attacker_sees_is_found_four_times_in_five_and_one_that_all_see_more_often(kind: str) -> None:
    runs = 70
    one, half, everyone = share_found(100, 100, 6, kind, runs)
    assert binomtest(round(one * runs), runs, 0.8).pvalue > 0.001
    # The negative control: the critical value without the allowance for power.
    assert binomtest(round(half * runs), runs, 0.8).pvalue < 0.001
    assert everyone > one
    assert everyone > 0.85


@pytest.mark.study
@pytest.mark.parametrize("kind", ["shift", "certain"])
@pytest.mark.parametrize(("targets", "controls"), [(50, 50), (100, 100), (300, 200), (500, 500), (1000, 1000)])
@pytest.mark.parametrize("attackers", [1, 12])
def test_the_detectable_area_has_its_power_from_fifty_to_a_thousand_controls(
    targets: int, controls: int, attackers: int, kind: str
) -> None:
    """A hold-out of 100 to 2,000 records, of which half are scored; two standard errors of 400 runs beside .75 to .87."""
    one, half, _ = share_found(targets, controls, attackers, kind, 400)
    assert 0.75 - 0.04 <= one <= 0.87 + 0.04
    assert half < 0.65


@pytest.mark.slow
def test_the_best_of_a_family_detects_about_what_a_draft_expects() -> None:
    for targets, controls in ((300, 200), (600, 400)):
        expected = detectable_family_area(targets, controls)
        member: Booleans = np.arange(targets + controls) < targets
        rng = np.random.default_rng(targets)
        own = scores(len(member), 24, rng)
        found = evaluate_best_attacker(own, member, draw_first_half(member, rng), 0.05, rng, 199).detectable_area
        assert found - 0.5 == pytest.approx(expected - 0.5, rel=0.2)
        assert found - 0.5 > 1.2 * (expected - 0.5) / FAMILY_AREA_FACTOR


def test_one_attacker_detects_what_its_standard_error_says() -> None:
    rng = np.random.default_rng(1)
    halves = 0.5 + 0.02 * np.sqrt(2) * rng.normal(size=(2, 20_000, 1))
    assert detectable_area(*halves, 1.96 * 0.02) == pytest.approx(0.5 + (1.96 + 0.8416) * 0.02, abs=0.001)


def test_who_sees_everything_is_chosen_and_right_of_everybody() -> None:
    rng = np.random.default_rng(2)
    member: Booleans = np.arange(120) < 70
    own = rng.normal(size=(120, 5))
    own[:, 4] = member
    found = evaluate_best_attacker(own, member, draw_first_half(member, rng), 0.05, rng)
    assert (found.area, found.upper, found.true_positives, found.selected_attackers) == (1, 1, 1, (4, 4))
    assert found.p_value <= 2 / 500
    assert found.lower > 0.8


def test_true_positives_by_every_way_to_let_equal_scores_in() -> None:
    """Scores 3, 2, 2, 2, 1: of the three equal ones as many are let in as pass the allowed controls, averaged over all orders."""
    ranks = np.array([5.0, 3, 3, 3, 1])
    for labels in product([True, False], repeat=5):
        member = np.array(labels)
        if member.all() or not member.any():
            continue
        allowed = 1
        first, ties = int(member[0]), member[1:4]
        controls = int(not member[0])
        if controls + (~ties).sum() + (not member[4]) <= allowed:
            expected = float(member.sum())
        elif controls + (~ties).sum() <= allowed:
            expected = float(first + ties.sum())
        else:
            expected = first + ties.sum() * (allowed - controls) / (~ties).sum()
        assert _count_true_positives(ranks, member[None], allowed)[0] == pytest.approx(expected), labels


@pytest.mark.parametrize("allowed", [1, 5, 40])
def test_true_positives_of_long_rankings_by_loops(allowed: int) -> None:
    """Members rank first in some labellings, so that few controls are met late; in others controls rank first."""
    rng = np.random.default_rng(allowed)
    ranks = np.sort(rng.integers(0, 700, 1000).astype(float))
    labels = np.stack([np.arange(1000) >= 400, np.arange(1000) < 600, *(rng.random((4, 1000)) < 0.6)])
    found = _count_true_positives(ranks, labels, allowed)
    for own, value in zip(labels, found, strict=True):
        expected, left = 0.0, allowed
        for score in np.unique(ranks)[::-1]:
            here = own[ranks == score]
            controls = int((~here).sum())
            if controls > left:
                expected += here.sum() * left / controls
                break
            expected, left = expected + here.sum(), left - controls
        assert value == pytest.approx(expected)


def test_halves_have_half_of_each_side() -> None:
    member: Booleans = np.arange(31) < 20
    first = draw_first_half(member, np.random.default_rng(3))
    assert (int(first[member].sum()), int(first[~member].sum())) == (10, 5)
    assert not has_enough_people(member)
    assert has_enough_people(np.arange(40) < 20)


def test_people_who_differ_without_a_release_count_from_a_half_upwards() -> None:
    """The attacker that is best on the other half, by pairs of one half each; less than a half is a half."""
    rng = np.random.default_rng(9)
    member, first = np.arange(120) % 2 == 0, np.arange(120) < 60
    for shift in (0.8, 0.0, -0.8):
        scores = rng.normal(size=(120, 3)) + shift * member[:, None] * [1.0, 0.5, 0.7]
        areas = [
            [np.mean(scores[half & member, k][:, None] > scores[half & ~member, k][None, :]) for k in range(3)]
            for half in (first, ~first)
        ]
        crossed = (areas[1][int(np.argmax(areas[0]))] + areas[0][int(np.argmax(areas[1]))]) / 2
        assert area_without_release(scores, member, first) == pytest.approx(max(0.5, crossed))
        assert (crossed > 0.6) == (shift > 0)
    assert area_without_release(scores[:, :0], member, first) == 0.5


def test_a_single_permutation_has_limits_and_a_p_value_of_a_half_at_least() -> None:
    rng = np.random.default_rng(9)
    member = np.arange(40) < 20
    found = evaluate_best_attacker(scores(40, 3, rng), member, draw_first_half(member, rng), 0.1, rng, 1)
    assert found.p_value in (0.5, 1.0)
    assert 0 <= found.lower <= found.area <= found.upper <= 1
