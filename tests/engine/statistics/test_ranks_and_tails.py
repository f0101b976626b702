"""Ranks and tails are those of scipy.stats, bit for bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom, rankdata

from sfumato.engine.statistics.ranks_and_tails import average_ranks, binomial_tail, hypergeometric_tail

NUMBERS = st.lists(st.one_of(st.integers(0, 5), st.floats(allow_nan=False)), max_size=30)


@given(NUMBERS)
def test_ranks(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    assert np.array_equal(average_ranks(values), rankdata(values))
    pair = np.column_stack([values, values[::-1]])
    assert np.array_equal(average_ranks(pair), rankdata(pair, axis=0))


def test_ranks_of_columns_with_missing_values_are_missing() -> None:
    values = np.array([[1.0, 2.0], [np.nan, 1.0]])
    assert np.array_equal(average_ranks(values), rankdata(values, axis=0), equal_nan=True)


def test_binomial_tails() -> None:
    counts, tosses = np.arange(-2, 400)[None, :], np.array([0, 1, 5, 50, 399, 10_000])[:, None]
    for chance in (0.0, 0.01, 1 / np.e, 0.5, 1.0):
        assert np.array_equal(binomial_tail(counts, tosses, chance), binom.sf(counts, tosses, chance))


@given(st.integers(1, 5000), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_hypergeometric_tails(records: int, marked_share: float, drawn_share: float, share: float) -> None:
    marked, drawn = int(records * marked_share), int(records * drawn_share)
    for count in (-1, int(share * drawn), drawn):
        assert hypergeometric_tail(count, records, marked, drawn) == hypergeom.sf(count, records, marked, drawn)


def test_they_do_without_scipy_stats() -> None:
    code = """if True:
        import sys
        import numpy as np
        from sfumato.engine.statistics import ranks_and_tails as own
        own.average_ranks(np.arange(3)), own.binomial_tail(1, 3, .5), own.hypergeometric_tail(1, 9, 4, 3)
        sys.exit("scipy.stats" in sys.modules)"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
