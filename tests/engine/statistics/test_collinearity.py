from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.statistics.columns import independent_columns


def test_finds_the_columns_that_earlier_ones_determine() -> None:
    a, b = np.array([1.0, 0, 0, 1, 0]), np.array([0.0, 1, 0, 0, 1])
    x = np.column_stack([np.ones(5), a, b, 1 - a - b, np.zeros(5), [1.0, 2, 3, 4, 5]])
    assert independent_columns(x).tolist() == [True, True, True, False, False, True]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), k=st.integers(1, 10), rank=st.integers(1, 6))
def test_keeps_a_basis(seed: int, n: int, k: int, rank: int) -> None:
    """As many columns as the rank, and greedily from the left: each prefix keeps its own rank."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, k))).astype(float)
    kept = independent_columns(x)
    for columns in range(1, k + 1):
        assert kept[:columns].sum() == np.linalg.matrix_rank(x[:, :columns])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_scales_do_not_matter(scale: float) -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(50), rng.normal(size=50) * scale, rng.uniform(0, 1, 50)])
    assert independent_columns(x).all()
    doubled = np.column_stack([x, 2 * x[:, 1] + 3 * x[:, 0] * scale])
    assert independent_columns(doubled).tolist() == [True, True, True, False]


def test_a_narrow_column_far_from_zero_is_independent() -> None:
    years = 2000.0 + np.arange(20)
    assert independent_columns(np.column_stack([np.ones(20), years, years**2])).all()
