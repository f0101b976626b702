"""The intruder who chooses what to match on: the best of all subsets by brute force, and what is not tried."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matched_records import match_records

from sfumato.engine.matching.matching import ExactKey, MatchResults, WindowKey
from sfumato.engine.matching.strategies import (
    MAX_EXHAUSTIVE,
    MatchTargets,
    _finds_and_true_rate,
    all_subsets,
    find_best_matches,
    find_best_subsets,
    make_strategy,
    search_subsets,
)

Keys = dict[str, ExactKey | WindowKey]


def drawn_keys(rng: np.random.Generator, n: int, levels: int, windows: int, kept: int) -> Keys:
    """Keys of which half of the values of replaced variables are another record's."""
    keys: Keys = {}
    for at in range(levels):
        own = rng.integers(0, 4, n)
        keys[f"level{at}"] = ExactKey(own, np.where(rng.random(n) < 0.5, own, rng.integers(0, 4, n)))
    for at in range(windows):
        own = rng.normal(size=n)
        keys[f"number{at}"] = WindowKey(own - 0.3, own + 0.3, own + rng.normal(size=n) * 0.5)
    for at in range(kept):
        own = rng.integers(0, 5, n)
        keys[f"kept{at}"] = ExactKey(own, own.copy())
    return keys


@pytest.mark.parametrize(
    ("candidates", "hit", "finds", "rate"),
    [
        ([1], [True], 1, 1),
        ([4], [True], 0.25, 0),
        ([1], [False], 0, 0),
        ([1, 2, 1], [True, True, False], 1.5, 1 / 3),
        ([], [], 0, 0),
    ],
)
def test_finds_are_one_in_so_many_candidates_and_certain_ones_a_share_of_the_targets(
    candidates: list[int], hit: list[bool], finds: float, rate: float
) -> None:
    found = _finds_and_true_rate(MatchResults(np.array(candidates, dtype=np.int64), np.array(hit, dtype=np.bool_)))
    assert found == pytest.approx((finds, rate))


def by_loops(keys: Keys, chosen: tuple[str, ...], rows: list[int]) -> tuple[float, float]:
    """Expected finds and true match rate of some targets, pair by pair."""
    expected, certain = 0.0, 0
    n = len(next(iter(keys.values())).released)
    for i in rows:
        candidates = [j for j in range(n) if all(agrees(keys[name], i, j) for name in chosen)]
        expected += 1 / len(candidates) if i in candidates else 0
        certain += candidates == [i]
    return expected, certain / len(rows)


def agrees(key: ExactKey | WindowKey, i: int, j: int) -> bool:
    if isinstance(key, ExactKey):
        return bool(key.confidential[i] == key.released[j])
    return bool(key.lower[i] <= key.released[j] <= key.upper[i])


@pytest.mark.parametrize("seed", range(8))
def test_the_best_strategy_is_the_best_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 14
    keys = drawn_keys(rng, n, int(rng.integers(0, 3)), int(rng.integers(0, 4)), int(rng.integers(0, 2)))
    rows = np.sort(rng.choice(n, int(rng.integers(3, n)), replace=False))
    every = [by_loops(keys, chosen, list(rows)) for size in range(len(keys) + 1) for chosen in combinations(keys, size)]
    expected, certain = find_best_matches(keys, (n, n), MatchTargets(rows, rows))
    assert expected.value == pytest.approx(max(one[0] for one in every))
    assert certain.value == pytest.approx(max(one[1] for one in every))
    for found, place in ((expected, 0), (certain, 1)):
        assert by_loops(keys, found.strategy.used, list(rows))[place] == pytest.approx(found.value)
        assert not any(name.startswith("kept") for name in found.strategy.ignored)


def test_who_uses_all_that_is_known_misses_people_whom_the_best_strategy_finds() -> None:
    """The control of the test above: all keys together are not the best."""
    keys = drawn_keys(np.random.default_rng(5), 200, 2, 1, 2)
    rows = np.arange(200)
    expected, _ = find_best_matches(keys, (200, 200), MatchTargets(rows, rows))
    exact = [key for key in keys.values() if isinstance(key, ExactKey)]
    within = [key for key in keys.values() if isinstance(key, WindowKey)]
    found = match_records(exact, within)
    assert np.sum(1 / found.candidates[found.hit]) < 0.7 * expected.value


def test_who_knows_nothing_finds_one_person_on_average() -> None:
    rows = np.arange(50)
    expected, certain = find_best_matches({}, (50, 50), MatchTargets(rows, rows))
    assert (expected.value, certain.value) == (pytest.approx(1), 0)
    assert expected.strategy.description == "the best intruder compares no variable"


def test_a_target_without_a_released_record_is_never_found_and_hinders_no_kept_variable() -> None:
    own = np.arange(6) % 3
    keys: Keys = {"kept": ExactKey(own, own.copy())}
    expected, _ = find_best_matches(keys, (6, 6), MatchTargets(np.arange(6), np.array([0, 1, 2, 3, -1, -1])))
    assert expected.value == pytest.approx(4 / 2)
    assert expected.strategy.ignored == ()


def test_small_groups_are_counted_pair_by_pair_as_large_ones_are() -> None:
    """Three windows in groups of few records take another way; the numbers are the same."""
    keys = drawn_keys(np.random.default_rng(8), 300, 1, 3, 2)
    rows = np.arange(300)
    expected, _ = find_best_matches(keys, (300, 300), MatchTargets(rows, rows))
    used = [keys[name] for name in expected.strategy.used]
    found = match_records([k for k in used if isinstance(k, ExactKey)], [k for k in used if isinstance(k, WindowKey)])
    assert (found.candidates == expected.result.candidates).all()


def test_subsets_are_each_yielded_once_and_the_whole_first() -> None:
    found = list(all_subsets("abcd"))
    assert len(found) == len(set(found)) == 16
    assert found[0] == frozenset("abcd")


def test_beyond_twelve_variables_kept_all_singles_and_pairs_are_tried_and_the_row_says_so() -> None:
    names = [f"v{at}" for at in range(MAX_EXHAUSTIVE + 1)]
    tried: list[frozenset[str]] = []

    def value_of(chosen: frozenset[str]) -> dict[str, float]:
        tried.append(chosen)
        return {"risk": float(len(chosen & {"v1", "v4", "v9"})) - 0.1 * len(chosen)}

    value, strategy = find_best_subsets(names, value_of)["risk"]
    assert (value, strategy.used) == (pytest.approx(2.7), ("v1", "v4", "v9"))
    assert "not all subsets are tried" in strategy.description
    assert len(tried) == len(set(tried)) < 400
    needed = {frozenset(), frozenset(names), *(frozenset(pair) for pair in combinations(names, 2))}
    assert needed | {frozenset([name]) for name in names} <= set(tried)


def test_the_search_beyond_twelve_variables_may_miss_the_best() -> None:
    """What the words warn of: a set of four that pays only as a whole is not found."""
    names = [f"v{at}" for at in range(MAX_EXHAUSTIVE + 1)]
    best = frozenset(names[:4])
    assert best not in search_subsets(names, lambda chosen: float(chosen == best))


@pytest.mark.slow
def test_matches_beyond_twelve_replaced_variables_are_searched() -> None:
    keys = drawn_keys(np.random.default_rng(2), 60, MAX_EXHAUSTIVE + 1, 0, 1)
    rows = np.arange(60)
    expected, _ = find_best_matches(keys, (60, 60), MatchTargets(rows, rows))
    pairs = max(by_loops(keys, ("kept0", *pair), list(rows))[0] for pair in combinations(list(keys)[:-1], 2))
    assert expected.value >= pairs - 1e-9
    assert expected.strategy.is_searched


def test_a_strategy_is_named_in_the_order_of_what_is_known() -> None:
    found = make_strategy(["sex", "age", "income"], {"age", "sex"})
    assert found.description == "the best intruder compares sex, age; ignores income"
