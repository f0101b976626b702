"""Order statistics of blocks are those of all values, found between bounds that hold few of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.statistics import ordered_blocks
from sfumato.engine.statistics.ordered_blocks import (
    bounds_of_rank,
    count_values,
    cut_values,
    cuts_of_counts,
    merge_counts,
    quantile_of_neighbours,
    range_edges,
    rank_of_quantile,
)

NUMBERS = st.integers(-20, 20).map(float)
BLOCKS = st.lists(st.lists(NUMBERS, max_size=60), min_size=1, max_size=6).filter(lambda blocks: any(blocks))


@pytest.fixture(autouse=True)
def few_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_blocks, "CUTS", 4)


@settings(max_examples=200, deadline=None)
@given(BLOCKS, st.floats(0, 1))
def test_the_values_around_a_quantile_lie_between_its_bounds(blocks: list[list[float]], q: float) -> None:
    arrays = [np.array(block) for block in blocks]
    values = np.sort(np.concatenate(arrays))
    rank = rank_of_quantile(len(values), q)
    low, high = bounds_of_rank([cut_values(one) for one in arrays], [len(one) for one in arrays], rank)
    after = values[min(rank + 1, len(values) - 1)]
    assert low <= values[rank] <= after <= high
    assert quantile_of_neighbours(values[rank], after, len(values), q) == float(np.quantile(values, q))


@settings(max_examples=200, deadline=None)
@given(BLOCKS, st.integers(1, 50))
def test_ranges_hold_all_values_once(blocks: list[list[float]], most: int) -> None:
    arrays = [np.array(block) for block in blocks]
    counts = [count_values(one) for one in arrays]
    assert all(np.array_equal(cuts_of_counts(one), cut_values(own)) for one, own in zip(counts, arrays, strict=True))
    edges = range_edges([cuts_of_counts(one) for one in counts], [len(one) for one in arrays], most)
    assert edges[0] == -np.inf
    assert edges[-1] == np.inf
    assert (np.diff(edges) > 0).all()
    whole = count_values(np.concatenate(arrays))
    assert all(np.array_equal(a, b) for a, b in zip(merge_counts(counts), whole, strict=True))


def test_bounds_and_ranges_hold_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_blocks, "CUTS", 1024)
    arrays = list(np.random.default_rng(3).lognormal(size=(8, 20_000)))
    values = np.concatenate(arrays)
    cuts, records = [cut_values(one) for one in arrays], [len(one) for one in arrays]
    for q in (0.0, 0.25, 0.5, 0.9, 1.0):
        low, high = bounds_of_rank(cuts, records, rank_of_quantile(len(values), q))
        assert ((values >= low) & (values <= high)).sum() <= 4 * len(values) / 1024
    edges = range_edges(cuts, records, 50_000)
    held = np.histogram(values, np.nan_to_num(edges))[0]
    assert len(held) == 4
    assert held.max() <= 1.02 * 40_000


def test_counts_and_weights_of_blocks_are_added() -> None:
    (values, weights), (_, counts) = (
        merge_counts([(np.array([1.0, 2.0]), np.array(one)), (np.array([2.0]), np.array(other))])
        for one, other in (([0.5, 0.25], [1.5]), ([5, 2], [1]))
    )
    assert (values.tolist(), weights.tolist()) == ([1.0, 2.0], [0.5, 1.75])
    assert (counts.tolist(), counts.dtype) == ([5, 3], np.int64)
