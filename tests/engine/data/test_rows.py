"""Rows are numbered as a loop over the values numbers them, by value or as they appear, whatever fits one key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data import blocks, rows, sorting
from sfumato.engine.data.distinct_records import distinct_records, representative_records
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.rows import dense_ranks, distinct_codes, distinct_rows, number_groups
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.partition.equivalence_classes import class_extremes


def number_combinations(columns: list[tuple[Any, ...]], records: list[int]) -> tuple[list[np.ndarray], int]:
    """The definition: every column of all tables in one array, each combination numbered anew."""
    group = np.zeros(sum(records), dtype=np.int64)
    for column in columns:
        plain = [
            np.asarray(part.astype("object")) if isinstance(part.dtype, pd.CategoricalDtype) else np.asarray(part)
            for part in column
        ]
        codes = pd.factorize(np.concatenate(plain), use_na_sentinel=False)[0]
        group = pd.factorize(group * (codes.max(initial=-1) + 1) + codes)[0]
    return np.split(group, np.cumsum(records)[:-1]), int(group.max(initial=-1)) + 1


LEVELS = st.one_of(st.nothing(), st.sampled_from(["a", "b", "c", "10"]))
KINDS: dict[str, Any] = {
    "levels": LEVELS,
    "whole": st.integers(-3, 3),
    "wide": st.sampled_from([-(2**62), -1, 0, 1, 2**40, 2**62]),
    "real": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -1e300]),
    "whole or missing": st.one_of(st.integers(0, 2).map(float), st.just(float("nan"))),
    "yes or no": st.booleans(),
    "dates": st.sampled_from(["2020-01-01", "2021-05-05", "NaT"]),
}


def column_of(kind: str, values: list[Any], order: list[str]) -> Any:
    if kind == "levels":
        return pd.Series(pd.Categorical(values, categories=order))
    if kind == "dates":
        return pd.Series(np.array(values, dtype="datetime64[s]"))
    return np.array(values, dtype={"whole": np.int64, "wide": np.int64, "yes or no": bool}.get(kind, np.float64))


@st.composite
def tables(draw: Any) -> tuple[list[tuple[Any, ...]], list[int]]:
    records = draw(st.lists(st.integers(1, 8), min_size=1, max_size=2))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    columns = []
    for kind in kinds:
        parts = []
        for n in records:
            values = draw(st.lists(KINDS[kind], min_size=n, max_size=n))
            order = draw(st.permutations(["a", "b", "c", "10"]))
            parts.append(column_of(kind, values, [*order, *draw(st.lists(st.sampled_from("xyz"), unique=True))]))
        columns.append(tuple(parts))
    return columns, records


@pytest.mark.slow
@given(tables(), st.sampled_from([2**63, 2**20, 40]), st.sampled_from([1, 3, 1 << 20]))
@settings(deadline=None)
def test_groups_are_those_of_all_values_joined(
    made: tuple[list[tuple[Any, ...]], list[int]], beyond: int, narrow: int
) -> None:
    """Whatever fits one number, and whether a column of whole numbers is a digit or numbered by hashing."""
    columns, records = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "KEY_LIMIT", beyond)
        patch.setattr(rows, "NARROW", narrow)
        patch.setattr(rows, "DENSE", 1)
        found, groups = number_groups(columns, records)
    expected, count = number_combinations(columns, records)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert groups == count


def test_without_columns_there_is_one_group() -> None:
    found, groups = number_groups([], [3, 2])
    assert [part.tolist() for part in found] == [[0, 0, 0], [0, 0]]
    assert groups == 1


def test_whole_numbers_equal_the_same_numbers_written_as_fractions() -> None:
    """A count without missing values beside one with some, which is of floats."""
    (ours, theirs), groups = number_groups([(np.array([1, 2, 3]), np.array([3.0, np.nan, 1.0]))], [3, 3])
    assert ours.tolist() == [0, 1, 2]
    assert theirs.tolist() == [2, 3, 0]
    assert groups == 4


def test_more_combinations_than_64_bits_hold_stay_apart() -> None:
    """Seven columns of 2^20 values each: their product is 2^140."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 1 << 20, (50, 7))
    table[0, :], table[1, :] = 0, (1 << 20) - 1
    twice = np.vstack([table, table[::-1]])
    (found,), groups = number_groups([(column,) for column in twice.T], [100])
    assert found.tolist() == [*range(50), *range(49, -1, -1)]
    assert groups == 50


NUMBERS = st.one_of(
    st.integers(-5, 5).map(float),
    st.sampled_from([-0.0, 0.5, 1e-20, 1.5, 1e9, -1e300, float("inf"), -float("inf"), float("nan")]),
)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [1, 8, 4_000_000])
@pytest.mark.parametrize("many", [1, 1 << 15])
@given(st.one_of(st.lists(st.integers(-5, 5).map(float)), st.lists(NUMBERS)), st.sampled_from([1, 7, 1 << 20]))
@settings(deadline=None)
def test_codes_are_those_that_numpy_finds(cells: int, many: int, values: list[float], widest: int) -> None:
    """Whether whole numbers are counted, few values hashed, or all sorted, block by block."""
    numbers = np.array(values, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS_PER_BLOCK", cells)
        patch.setattr(sorting, "MANY_TO_SORT", many)
        patch.setattr(sorting, "SAMPLE", 1)
        patch.setattr(sorting, "WIDEST_COUNTED_RANGE", widest)
        found = distinct_codes(numbers)
    expected, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    assert np.array_equal(found.values, expected, equal_nan=True)
    assert found.codes.tolist() == places.tolist()
    assert found.counts.tolist() == counts.tolist()


def test_fractions_that_a_shift_would_lose_stay_apart() -> None:
    """1e-20 + 5 is 5 in floating point."""
    found = distinct_codes(np.array([-5.0, 0.0, 1e-20]))
    assert found.values.tolist() == [-5.0, 0.0, 1e-20]
    assert found.codes.tolist() == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 4)), min_size=1))
def test_ends_of_classes_are_their_smallest_and_largest_values(rows: list[tuple[float, int]]) -> None:
    values, classes = np.array([v for v, _ in rows]), np.array([c for _, c in rows])
    low, high = class_extremes(values, classes, 5)
    for c in range(5):
        own = values[classes == c]
        assert low[c] == own.min(initial=np.inf)
        assert high[c] == own.max(initial=-np.inf)


SCHEMA = Schema((Variable("town", Kind.CATEGORICAL), Variable("age", Kind.COUNT), Variable("pay", Kind.CONTINUOUS)))


def table(n: int, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    columns = {
        "town": pd.Categorical.from_codes(rng.integers(-1, 5, n), list("edcba")),
        "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
        "pay": np.where(rng.random(n) < 0.2, np.nan, rng.choice([-1e300, -0.5, 0.0, 7.25], n)),
    }
    return Microdata(SCHEMA, pd.DataFrame(columns))


@given(
    n=st.integers(0, 50),
    seed=st.integers(0, 2**32 - 1),
    names=st.lists(st.sampled_from(SCHEMA.names), max_size=4),
    largest=st.sampled_from([2**62, 30, 1]),
    most=st.sampled_from([0, 1, 4]),
)
def test_combinations_are_those_of_a_loop(n: int, seed: int, names: list[str], largest: int, most: int) -> None:
    data = table(n, seed)
    numbers = [np.nan_to_num(data.numbers(name), nan=np.inf) for name in names]
    combinations = list(zip(*numbers, strict=True)) if names else [()] * n
    expected = sorted(set(combinations))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "KEY_LIMIT", largest)
        patch.setattr(rows, "KEYS_A_RECORD", most)
        found = distinct_records(data, names)
    assert [expected[place] for place in found.combination_of] == combinations
    assert found.first.tolist() == [combinations.index(row) for row in expected]
    weights = np.arange(n, dtype=float)
    assert found.sum_by_combination().tolist() == [combinations.count(row) for row in expected]
    assert found.sum_by_combination(weights).tolist() == [
        sum(w for w, own in zip(weights, combinations, strict=True) if own == row) for row in expected
    ]
    assert len(representative_records(found, data)) == len(found) == len(expected)
    assert found.counts.tolist() == found.sum_by_combination().tolist()
    last_first = np.arange(len(found))[::-1]
    assert found.records_of(last_first).tolist() == [
        record for row in reversed(expected) for record, own in enumerate(combinations) if own == row
    ]


@given(keys=st.lists(st.integers(0, 100), max_size=40))
def test_ranks_are_places_among_the_keys_that_occur(keys: list[int]) -> None:
    place, size = dense_ranks(np.array(keys, dtype=np.int64), 101)
    assert place.tolist() == [sorted(set(keys)).index(key) for key in keys]
    assert size == len(set(keys))


@given(
    st.lists(st.tuples(NUMBERS, st.integers(-3, 3), st.booleans()), max_size=20),
    st.sampled_from([2**63, 30, 1]),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([1, 1 << 20]),
)
def test_rows_are_numbered_by_value_first_column_first(
    made: list[tuple[float, int, bool]], largest: int, most: int, narrow: int
) -> None:
    columns = [np.array([row[at] for row in made], dtype=kind) for at, kind in enumerate((float, int, bool))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "KEY_LIMIT", largest)
        patch.setattr(rows, "KEYS_A_RECORD", most)
        patch.setattr(rows, "NARROW", narrow)
        found = distinct_rows(columns, len(made))
    ordered = [(float("inf") if np.isnan(a) else a, np.isnan(a), b, c) for a, b, c in made]
    expected = sorted(set(ordered))
    assert [expected[place] for place in found.combination_of] == ordered
    assert found.first.tolist() == [ordered.index(row) for row in expected]


def test_rows_of_no_columns_are_one() -> None:
    assert distinct_rows([], 3).combination_of.tolist() == [0, 0, 0]
    assert distinct_rows([], 3).first.tolist() == [0]
