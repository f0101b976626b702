"""Pareto efficiency against its definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.search.dominance import is_non_dominated


def beats(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@pytest.mark.slow
@seed(4)
@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, 4)] * k), min_size=1, max_size=9)))
def test_the_marked_are_those_that_nothing_beats(rows: list[tuple[int, ...]]) -> None:
    expected = [not any(beats(other, row) for other in rows) for row in rows]
    assert is_non_dominated(np.array(rows, dtype=np.float64)).tolist() == expected
    assert any(expected)


def test_a_missing_value_takes_no_part() -> None:
    costs = np.array([[0.0, np.nan], [1.0, 1.0], [2.0, 2.0]])
    assert is_non_dominated(costs).tolist() == [False, True, False]


def test_a_chain_has_one_that_is_not_beaten_and_a_staircase_has_all() -> None:
    steps = np.arange(5.0)
    assert is_non_dominated(np.column_stack([steps, steps])).sum() == 1
    assert is_non_dominated(np.column_stack([steps, -steps])).all()
