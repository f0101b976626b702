"""Sorting by buckets and by counting gives what NumPy's own functions give, whatever the numbers; and in less time where there are many."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.engine.data import sorting
from sfumato.engine.data.rows import distinct_codes
from sfumato.engine.data.sorting import sort_order, sort_with_order, sorted_search, sorted_unique, sorted_values

N = 3 * sorting.MANY_TO_SORT
RNG = np.random.default_rng(5)


def with_missing(values: NDArray[np.float64]) -> NDArray[np.float64]:
    found = values.copy()
    found[RNG.random(len(found)) < 0.1] = np.nan
    return found


TABLES: dict[str, NDArray[np.generic]] = {
    "keys": RNG.integers(0, 2**64, N, dtype=np.uint64),
    "few keys": RNG.integers(0, 2**64, 8, dtype=np.uint64)[RNG.integers(0, 8, N)],
    "whole": RNG.negative_binomial(1, 0.02, N).astype(np.float64),
    "whole, missing": with_missing(RNG.negative_binomial(1, 0.02, N) - 7.0),
    "wide": np.round(RNG.lognormal(20, 3, N)),
    "signed": RNG.normal(0, 1e3, N),
    "signed, missing": with_missing(RNG.normal(-1e6, 1, N).round(2)),
    "zeros of both signs": np.where(RNG.random(N) < 0.5, -0.0, RNG.integers(-1, 2, N) / 2),
    "infinite": np.where(RNG.random(N) < 0.1, np.inf, RNG.normal(size=N)),
    "one": np.full(N, 3.5),
    "all missing": np.full(N, np.nan),
    "nearly whole": np.append(np.arange(N - 1.0), 0.5),
    "codes": RNG.integers(-(2**63), 2**63 - 1, N),
    "negative codes": RNG.integers(-5, 5, N),
    "short": RNG.normal(size=50),
    "none": np.zeros(0),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_answers_are_numpys(name: str) -> None:
    values = TABLES[name]
    order, ascending = sort_with_order(values)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(ascending, np.sort(values))
    np.testing.assert_array_equal(sorted_values(values), np.sort(values))
    expected, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    found = distinct_codes(values)
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_array_equal(found.counts, counts)
    present = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    np.testing.assert_array_equal(sorted_unique(present), np.unique(present))


@pytest.mark.parametrize("side", ["left", "right"])
def test_needles_are_found_in_whatever_order_they_come(side: str) -> None:
    table, needles = np.sort(TABLES["keys"]), RNG.permutation(TABLES["keys"])[: N // 2]
    found = sorted_search(table, needles, side)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.searchsorted(table, needles, side))  # type: ignore[call-overload]
    given = sorted_search(table, needles, side, sort_order(needles))  # type: ignore[arg-type]
    np.testing.assert_array_equal(given, found)


def test_a_table_is_left_as_it_is() -> None:
    values = np.array(TABLES["signed, missing"])
    sort_with_order(values), sorted_values(values), distinct_codes(values)
    np.testing.assert_array_equal(values, TABLES["signed, missing"])


@pytest.mark.slow
def test_a_million_keys_are_ordered_in_less_time_than_by_numpy() -> None:
    keys = RNG.integers(0, 2**64, 1_000_000, dtype=np.uint64)

    def seconds(compute: Callable[[], object]) -> float:
        taken = []
        for _ in range(3):
            started = time.process_time()
            compute()
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(lambda: sort_order(keys)) < 0.8 * seconds(lambda: np.argsort(keys, kind="stable"))
