"""Large tables are matched in parts of whole groups and in blocks of rows: with the counts of a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data import blocks as row_blocks
from sfumato.engine.data import sorting
from sfumato.engine.matching import matching
from sfumato.engine.matching.matching import CachedMatcher, ExactKey, RecordMatcher, WindowKey
from sfumato.engine.matching.radius import Radius

MISSING = float("nan")


def by_loops(exact: list[ExactKey], within: list[WindowKey], n: int, m: int) -> tuple[list[int], list[bool]]:
    matches = [
        [
            all(key.confidential[i] == key.released[j] for key in exact)
            and all(window.lower[i] <= window.released[j] <= window.upper[i] for window in within)
            for j in range(m)
        ]
        for i in range(n)
    ]
    return [sum(row) for row in matches], [i < m and matches[i][i] for i in range(n)]


@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 25), st.integers(1, 25)),
    windows=st.integers(0, 4),
    keys=st.integers(0, 2),
    at_once=st.sampled_from([1, 2, 7, 30]),
    cells=st.sampled_from([1, 3, 4, 1000]),
    few=st.sampled_from([0, 4096]),
    per_key=st.sampled_from([0, 4]),
    stay=st.integers(0, 2),
)
@settings(deadline=None)
def test_parts_and_blocks_change_no_count(
    seed: int,
    shape: tuple[int, int],
    windows: int,
    keys: int,
    at_once: int,
    cells: int,
    few: int,
    per_key: int,
    stay: int,
) -> None:
    rng = np.random.default_rng(seed)
    n, m = shape
    exact = [ExactKey(rng.integers(0, 3, n), rng.integers(0, 3, m)) for _ in range(keys)]
    within = []
    for _ in range(windows):
        centre, released = (rng.integers(-5, 6, size).astype(np.float64) for size in (n, m))
        width = rng.integers(-1, 5, n)
        for values in (centre, released):
            values[rng.random(len(values)) < 0.1] = MISSING
        within.append(WindowKey(centre - width, centre + width, released))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "AT_ONCE", at_once)
        patch.setattr(sorting, "FEW_TO_SEARCH", few)
        patch.setattr(matching, "CELLS_PER_KEY", per_key)
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", cells)
        matcher = RecordMatcher.from_keys(exact, (n, m))
        found = matcher.match_windows(within)
        held = CachedMatcher(matcher, within[:stay])
        first, again = (held.match_windows(more) for more in ([], within[stay:]))
    candidates, hits = by_loops(exact, within, n, m)
    for matches in (found, again):
        assert matches.candidates.tolist() == candidates
        assert matches.hit.tolist() == hits
    assert first.candidates.tolist() == by_loops(exact, within[:stay], n, m)[0], "what stayed, without the others"


def test_other_windows_beside_those_that_stay_count_others() -> None:
    """The negative control: nothing of an earlier belief is left."""
    rng = np.random.default_rng(1)
    sure, first, second = (
        WindowKey(centre - 1, centre + 1, rng.integers(0, 9, 40).astype(float))
        for centre in rng.integers(0, 9, (3, 40))
    )
    held = CachedMatcher(RecordMatcher.from_keys([], (40, 40)), [sure])
    counts = [held.match_windows([belief]).candidates.tolist() for belief in (first, second, first)]
    assert counts == [by_loops([], [sure, belief], 40, 40)[0] for belief in (first, second, first)]
    assert counts[0] != counts[1]


@pytest.mark.parametrize("written", ["5%", 3, "log 5%"])
def test_windows_of_blocks_are_those_of_the_whole(written: str | int) -> None:
    values = np.append(np.exp(np.random.default_rng(3).normal(3, 3, 200)), [MISSING, 0.0, -0.0, np.inf])
    radius = Radius.parse(written)
    whole = radius.window(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "CELLS_PER_BLOCK", 28)
        blocks = radius.window(values)
    assert [end.tobytes() for end in blocks] == [end.tobytes() for end in whole]


@pytest.mark.parametrize("at_once", [1, 12, 1 << 20])
@pytest.mark.parametrize("wide", [0.0, 1.0])
def test_beliefs_that_share_the_ranks_of_a_release_find_what_a_loop_finds(
    at_once: int, wide: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    n, m = 40, 30
    exact = [ExactKey(rng.integers(0, 3, n), rng.integers(0, 3, m))]
    centre, income, age = rng.normal(0, 2, n), rng.normal(0, 2, m), rng.integers(0, 6, m).astype(np.float64)
    stay = WindowKey(centre - 1, centre + 1, income)
    held, ranked = CachedMatcher(RecordMatcher.from_keys(exact, (n, m)), [stay]), matching.RankedPoints.from_points(age)
    for _ in range(3):
        believed = np.where(rng.random(n) < 0.1, MISSING, rng.integers(-1, 8, n).astype(np.float64))
        ends = (believed, believed) if not wide else (believed - wide, believed + wide)
        found = held.match_windows([WindowKey(*ends, age, ranked)])
        counts, hits = by_loops(exact, [stay, WindowKey(*ends, age)], n, m)
        assert (found.candidates.tolist(), found.hit.tolist()) == (counts, hits)
