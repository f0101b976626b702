"""The best strategy of an attack: chosen and judged on different people, so that the best of many is no better by chance."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.matching.strategies import make_strategy
from sfumato.engine.risk._best_strategy import (
    MAX_STRATEGIES,
    cross_fit_strategies,
    largest_excess_estimates,
    subsets_to_try,
)


def chances(success: float, strategies: int, people: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((strategies, people)) < success).astype(float)


def test_each_half_meets_the_strategy_that_is_best_on_the_other() -> None:
    rng = np.random.default_rng(1)
    for seed in range(20):
        own, controls = chances(0.4, 5, 11, rng), chances(0.3, 5, 8, rng)
        best = cross_fit_strategies(own, controls, np.random.default_rng(seed))
        again = np.random.default_rng(seed)
        halves = [set(again.permutation(number)[: number // 2].tolist()) for number in (11, 8)]
        for inside, other, place in ((True, False, 0), (False, True, 1)):
            scores = []
            for s in range(5):
                a = np.mean([own[s, i] for i in range(11) if (i in halves[0]) is other])
                c = np.mean([controls[s, i] for i in range(8) if (i in halves[1]) is other])
                scores.append((a - c) / (1 - c) if c < 1 else -np.inf)
            chosen = next(s for s in range(5) if scores[s] >= max(scores) - 1e-12)
            assert best.chosen[place] == chosen
            assert all(best.own[i] == own[chosen, i] for i in range(11) if (i in halves[0]) is inside)
            assert all(best.controls[i] == controls[chosen, i] for i in range(8) if (i in halves[1]) is inside)


def test_the_best_of_many_useless_strategies_finds_nothing_and_the_plain_largest_would() -> None:
    """The control is the largest excess of the same strategies on all people, which is large by chance."""
    rng = np.random.default_rng(2)
    fitted, largest = [], []
    for _ in range(200):
        own, controls = chances(0.1, MAX_STRATEGIES, 100, rng), chances(0.1, MAX_STRATEGIES, 100, rng)
        best = cross_fit_strategies(own, controls, rng)
        fitted.append(best.own.mean() - best.controls.mean())
        largest.append((own.mean(axis=1) - controls.mean(axis=1)).max())
    spread = np.std(fitted) / np.sqrt(len(fitted))
    assert abs(np.mean(fitted)) < 3 * spread
    assert np.mean(largest) > 10 * spread


def test_a_strategy_that_works_is_found_and_named() -> None:
    rng = np.random.default_rng(3)
    own, controls = chances(0.1, 3, 400, rng), chances(0.1, 3, 400, rng)
    own[2] = rng.random(400) < 0.55
    strategies = [make_strategy("ab", used) for used in ("ab", "a", "b")]
    nothing = np.zeros(own.shape[1]), np.zeros(controls.shape[1])
    found, added, *_ = largest_excess_estimates(
        own, controls, strategies, rng, n_strategies=4, without=nothing, params={}
    )
    assert found.value == pytest.approx(0.5, abs=0.08)
    assert found.lower > 0.35  # type: ignore[operator]
    assert found.reason == "the best intruder compares b; ignores a (3 of 4 choices are tried)"
    assert added.value == pytest.approx(found.value, abs=0.02), "where nothing is guessed without the release"
    assert added.reason == found.reason


def test_one_person_has_no_halves_and_equal_strategies_use_all_that_is_known() -> None:
    rng = np.random.default_rng(4)
    assert cross_fit_strategies(np.array([[0.0], [1.0]]), np.zeros((2, 5)), rng).chosen == (0, 0)
    same = np.full((3, 10), 0.3)
    assert cross_fit_strategies(same, same, rng).chosen == (0, 0)


def test_every_subset_is_tried_of_few_variables_and_the_same_kinds_of_many() -> None:
    few = subsets_to_try([["a", "b"], ["c", "d"]])
    assert few[0] == set("abcd")
    assert len(few) == len(set(few)) == 16
    many = subsets_to_try([["a", "b", "c"], ["d", "e"]])
    assert many[:4] == [set("abcde"), set(), set("abc"), set("de")]
    assert {frozenset("abcde") - {one} for one in "abcde"} | set(map(frozenset, "abcde")) <= set(many)
    assert len(subsets_to_try([[f"x{k}" for k in range(30)], []])) == MAX_STRATEGIES


@pytest.mark.parametrize("sure", [0, 1])
def test_a_strategy_that_is_always_right_about_controls_is_never_the_best(sure: int) -> None:
    """Nothing is left that the release could add, however often it is right about the people."""
    own, controls = np.full((2, 10), 0.4), np.full((2, 8), 0.3)
    own[sure], controls[sure] = 1.0, 1.0
    assert cross_fit_strategies(own, controls, np.random.default_rng(5)).chosen == (1 - sure, 1 - sure)


def test_what_is_guessed_without_the_release_is_not_added_by_it() -> None:
    strategies = [make_strategy("ab", used) for used in ("ab", "a")]
    own, controls = np.full((2, 40), 0.9), np.full((2, 30), 0.2)
    own[1], controls[1] = 0.5, 0.1
    for people, others in ((0.9, 0.2), (0.4, 0.2), (0.0, 0.0), (0.9, 0.0)):
        without = np.full(40, people), np.full(30, others)
        _, found, *_ = largest_excess_estimates(
            own, controls, strategies, np.random.default_rng(6), n_strategies=2, without=without, params={}
        )
        added = ((0.9 - people) - (0.2 - others)) / (1 - 0.2)
        assert found.value == pytest.approx(added, abs=1e-9), "by the best strategy, which uses both"
