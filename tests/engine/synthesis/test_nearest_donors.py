"""Donors by Gower's distance, against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.engine.synthesis.ctgan import draw_nearest_donors

Floats = NDArray[np.float64]
MIXED = np.array([True, False])


def table(values: list[tuple[int, int]]) -> Floats:
    return np.array(values, dtype=np.float64)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), min_size=1, max_size=12).map(table)


def distances(records: Floats, donors: Floats) -> Floats:
    """Gower's distance of every pair, one pair at a time."""
    spread = np.ptp(np.concatenate([records[:, 1], donors[:, 1]])) or 1.0
    found = np.empty((len(records), len(donors)))
    for i, j in product(range(len(records)), range(len(donors))):
        found[i, j] = (records[i, 0] != donors[j, 0]) + abs(records[i, 1] - donors[j, 1]) / spread
    return found


@pytest.mark.slow
@given(records=ROWS, donors=ROWS, seed=st.integers(0, 99))
def test_no_other_donor_is_nearer(records: Floats, donors: Floats, seed: int) -> None:
    chosen = draw_nearest_donors(records, donors, MIXED, np.random.default_rng(seed))
    found = distances(records, donors)
    np.testing.assert_allclose(found[np.arange(len(records)), chosen], found.min(axis=1))


def test_of_donors_alike_each_is_as_likely_and_no_other_is_taken() -> None:
    donors = table([(0, 1), (1, 1), (0, 1), (0, 1), (0, 3)])
    records = table([(0, 1)] * 6000)
    chosen = draw_nearest_donors(records, donors, MIXED, np.random.default_rng(4))
    shares = np.bincount(chosen, minlength=5) / len(records)
    assert shares[[1, 4]].tolist() == [0, 0]
    np.testing.assert_allclose(shares[[0, 2, 3]], 1 / 3, atol=4 * np.sqrt(2 / 9 / len(records)))


def test_records_are_taken_in_blocks_with_the_same_answer() -> None:
    rng = np.random.default_rng(5)
    records, donors = (np.column_stack([rng.integers(0, 3, n), rng.normal(size=n)]) for n in (3000, 3000))
    chosen = draw_nearest_donors(records, donors, MIXED, np.random.default_rng(6))
    some = rng.choice(3000, 20, replace=False)
    spread = np.ptp(np.concatenate([records[:, 1], donors[:, 1]]))
    for i in some:
        apart = (records[i, 0] != donors[:, 0]) + np.abs(records[i, 1] - donors[:, 1]) / spread
        assert apart[chosen[i]] == apart.min()
