"""No bar and no stretch of a curve is drawn that fewer than three confidential records make up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.plots.column import LEAST_RECORDS, is_sparse_at, suppress_small_counts, trimmed_range

numbers = st.lists(st.integers(-30, 30).map(float), min_size=0, max_size=25)


@pytest.mark.slow
@given(st.lists(st.integers(0, 6), min_size=1))
def test_counts_below_three_look_like_none(counts: list[int]) -> None:
    shown = suppress_small_counts(np.array(counts))
    for count, found in zip(counts, shown.tolist(), strict=True):
        assert found == count if count >= LEAST_RECORDS else np.isnan(found)


@given(numbers)
def test_at_least_two_values_lie_at_or_beyond_each_end_of_the_range_with_the_end_itself(values: list[float]) -> None:
    found = trimmed_range(np.array(values))
    if len(values) < 3:
        assert found is None
        return
    assert found is not None
    low, high = found
    assert low <= high
    assert sum(v <= max(low, sorted(values)[2]) for v in values) >= 3
    assert {low, high} <= {sorted(values)[2], sorted(values)[-3]}


@given(numbers, st.floats(-35, 35), st.floats(0, 10))
def test_a_point_is_sparse_when_fewer_than_three_values_are_near(
    values: list[float], point: float, reach: float
) -> None:
    near = sum(point - reach <= v <= point + reach for v in values)
    assert is_sparse_at(np.array(values), np.array([point]), reach).tolist() == [near < 3]
