"""Combinations of values are those that a loop over the records finds, in the order of the values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design import distinct_records as module
from sfumato.engine.design.distinct_records import dense_ranks, distinct_records

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
    rows = list(zip(*numbers, strict=True)) if names else [()] * n
    expected = sorted(set(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LARGEST_KEY", largest)
        patch.setattr(module, "_KEYS_A_RECORD", most)
        found = distinct_records(data, names)
    assert [expected[place] for place in found.combination_of] == rows
    assert found.first.tolist() == [rows.index(row) for row in expected]
    weights = np.arange(n, dtype=float)
    assert found.sum_by_combination().tolist() == [rows.count(row) for row in expected]
    assert found.sum_by_combination(weights).tolist() == [
        sum(w for w, own in zip(weights, rows, strict=True) if own == row) for row in expected
    ]
    assert len(found.representatives(data)) == len(found) == len(expected)


@given(keys=st.lists(st.integers(0, 100), max_size=40))
def test_ranks_are_places_among_the_keys_that_occur(keys: list[int]) -> None:
    place, size = dense_ranks(np.array(keys, dtype=np.int64), 101)
    assert place.tolist() == [sorted(set(keys)).index(key) for key in keys]
    assert size == len(set(keys))
