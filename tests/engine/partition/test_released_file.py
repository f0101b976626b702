"""What one table shows by itself: closed forms, and each record compared with each."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.partition.released_file import ReleasedFileAnonymity, measure_released_file


def sensitive_data(values: list[str], kind: Kind = Kind.CATEGORICAL) -> Microdata:
    schema = Schema((Variable("disease", kind),))
    return conform_to_schema(pd.DataFrame({"disease": values}), schema, MissingPolicy.KEEP)


def measured(rows: list[tuple[str | None, ...]], values: list[str]) -> ReleasedFileAnonymity:
    columns = {f"v{j}": pd.Series([row[j] for row in rows], dtype="object", name=f"v{j}") for j in range(len(rows[0]))}
    return measure_released_file(columns, sensitive_data(values), ["disease"])


def test_two_classes_and_two_suppressed_records_by_hand() -> None:
    rows = [("<50", "81***")] * 4 + [(">=50", None)] * 2 + [(None, None)] * 2
    found = measured(rows, ["a", "a", "a", "b", "a", "b", "b", "b"])
    assert (found.records, found.suppressed_records, found.classes, found.k, found.unique_records) == (8, 2, 2, 2, 0)
    assert found.suppressed_cells == 2 + 2 + 2
    (one,) = found.sensitive
    assert one.l_distinct == 2
    # The first class has shares 3/4 and 1/4, the second is even.
    assert one.l_entropy == pytest.approx(math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)))
    # All eight records are half a: the first class is 1/4 away.
    assert one.t == pytest.approx(0.25)
    age, code = found.known
    assert (age.values, age.intervals, age.masked) == (2, 2, 0)
    assert (code.values, code.intervals, code.masked) == (1, 0, 1)


def test_a_table_without_any_known_value_has_no_class() -> None:
    found = measured([(None, None)] * 3, ["a", "b", "c"])
    assert (found.classes, found.k, found.suppressed_records, found.sensitive) == (0, None, 3, ())


def test_the_distance_of_ordered_values_is_between_ranks() -> None:
    """Li, Li & Venkatasubramanian (2007): {3k, 4k, 5k} of nine salaries is 0.375 away, {6k, 8k, 11k} 0.167."""
    known = {"zip": pd.Series(["476**"] * 3 + ["4790*"] * 3 + ["476*"] * 3)}
    schema = Schema((Variable("salary", Kind.CONTINUOUS),))
    salaries = pd.DataFrame({"salary": [3.0, 4, 5, 6, 8, 11, 7, 9, 10]})
    found = measure_released_file(known, conform_to_schema(salaries, schema), ["salary"])
    assert found.sensitive[0].t == pytest.approx(0.375)


CELLS = st.sampled_from(["x", "y", None])


@pytest.mark.slow
@seed(4)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from("abc")), min_size=1, max_size=12))
def test_classes_are_those_of_each_record_with_each(table: list[tuple[str | None, str | None, str]]) -> None:
    rows, values = [row[:2] for row in table], [row[2] for row in table]
    found = measured(list(rows), values)
    inside = [i for i, row in enumerate(rows) if row != (None, None)]
    assert found.suppressed_records == len(rows) - len(inside)
    assert found.suppressed_cells == sum(cell is None for row in rows for cell in row)
    if not inside:
        assert found.k is None
        return
    mates = {i: [j for j in inside if rows[j] == rows[i]] for i in inside}
    assert found.k == min(map(len, mates.values()))
    assert found.unique_records == sum(len(same) == 1 for same in mates.values())
    spreads = [Counter(values[j] for j in same) for same in mates.values()]
    (one,) = found.sensitive
    assert one.l_distinct == min(map(len, spreads))

    def entropy(counts: Counter[str]) -> float:
        shares = np.array(list(counts.values())) / counts.total()
        return float(-(shares * np.log(shares)).sum())

    assert one.l_entropy == pytest.approx(math.exp(min(map(entropy, spreads))))
    whole = Counter(values)
    distances = [
        0.5 * sum(abs(counts[v] / counts.total() - whole[v] / whole.total()) for v in whole) for counts in spreads
    ]
    assert one.t == pytest.approx(max(distances), abs=1e-11)
