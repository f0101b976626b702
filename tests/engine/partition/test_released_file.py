"""What one table shows by itself: closed forms, and each record compared with each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.partition.released_file import Diversity, ReleasedFileAnonymity, measure_released_file


def sensitive_data(values: Sequence[str | None], kind: Kind = Kind.CATEGORICAL) -> Microdata:
    schema = Schema((Variable("disease", kind),))
    return conform_to_schema(pd.DataFrame({"disease": values}), schema, MissingPolicy.KEEP)


def measure_rows(rows: Sequence[tuple[str | None, ...]], values: Sequence[str | None]) -> ReleasedFileAnonymity:
    columns = {f"v{j}": pd.Series([row[j] for row in rows], dtype="object", name=f"v{j}") for j in range(len(rows[0]))}
    return measure_released_file(columns, sensitive_data(values), ["disease"])


def in_classes(found: ReleasedFileAnonymity) -> Diversity:
    (variable,) = found.sensitive
    assert variable.classes is not None
    return variable.classes


def test_two_classes_and_two_suppressed_records_by_hand() -> None:
    rows = [("<50", "81***")] * 4 + [(">=50", None)] * 2 + [(None, None)] * 2
    found = measure_rows(rows, ["a", "a", "a", "b", "a", "b", "b", "b"])
    assert (found.records, found.suppressed_records, found.classes, found.k, found.unique_records) == (8, 2, 2, 2, 0)
    assert found.suppressed_cells == 2 + 2 + 2
    one = in_classes(found)
    assert one.l_distinct == 2
    # The first class has shares 3/4 and 1/4, the second is even.
    assert one.l_entropy == pytest.approx(math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)))
    # All eight records are half a: the first class is 1/4 away.
    assert one.t == pytest.approx(0.25)
    age, code = found.known
    assert (age.values, age.intervals, age.masked) == (2, 2, 0)
    assert (code.values, code.intervals, code.masked) == (1, 0, 1)


def test_a_table_without_any_known_value_has_no_class() -> None:
    found = measure_rows([(None, None)] * 3, ["a", "b", "c"])
    assert (found.classes, found.k, found.suppressed_records) == (0, None, 3)
    (one,) = found.sensitive
    assert one.classes is None
    assert one.suppressed == Diversity(3, pytest.approx(3.0), 0.0)


def test_the_distance_of_ordered_values_is_between_ranks() -> None:
    """Li, Li & Venkatasubramanian (2007): {3k, 4k, 5k} of nine salaries is 0.375 away, {6k, 8k, 11k} 0.167."""
    known = {"zip": pd.Series(["476**"] * 3 + ["4790*"] * 3 + ["476*"] * 3)}
    schema = Schema((Variable("salary", Kind.CONTINUOUS),))
    salaries = pd.DataFrame({"salary": [3.0, 4, 5, 6, 8, 11, 7, 9, 10]})
    found = measure_released_file(known, conform_to_schema(salaries, schema), ["salary"])
    assert in_classes(found).t == pytest.approx(0.375)


def test_cells_are_compared_as_they_are_written_and_only_two_hold_no_value() -> None:
    cells = ["A", "A ", "1.0", "1.00", ":", "<5", "(x)", "-8", "-9", " *", "01", "1"]
    found = measure_rows([(cell,) for cell in [*cells, "", "*", None]], ["a"] * 15)
    assert (found.classes, found.k, found.unique_records, found.suppressed_records) == (12, 1, 12, 3)
    (column,) = found.known
    assert (column.values, column.suppressed) == (12, 3)


def test_an_empty_cell_and_a_star_are_suppressed_and_not_the_same() -> None:
    found = measure_rows([("20", ""), ("20", "*"), ("20", "*")], ["a", "b", "c"])
    assert (found.classes, found.k, found.suppressed_cells, found.suppressed_records) == (2, 1, 3, 0)


def test_spellings_of_a_disease_are_one_disease() -> None:
    found = measure_rows([("x",)] * 4, ["Flu", "flu", "FLU ", "\tｆlu"])
    assert in_classes(found) == Diversity(1, 1.0, 0.0)
    assert found.sensitive[0].missing == 0


def test_a_whole_number_as_a_level_is_one_value_however_it_is_spelt() -> None:
    assert in_classes(measure_rows([("x",)] * 3, ["1", "1.0", "flu"])).l_distinct == 2


def test_missing_and_suppressed_cells_are_no_disease() -> None:
    found = measure_rows([("x",)] * 4 + [("y",)] * 2, ["flu", None, "*", "cold", "flu", None])
    one = in_classes(found)
    assert (one.l_distinct, one.l_entropy, found.sensitive[0].missing) == (1, 1.0, 3)
    assert in_classes(measure_rows([("x",)] * 4, ["flu", None, "*", "cold"])).l_entropy == 2.0
    found = measure_rows([("x",)] * 2 + [("y",)] * 2, ["flu", "cold", None, "*"])
    none = in_classes(found)
    assert (none.l_distinct, none.l_entropy, found.sensitive[0].missing) == (0, 0.0, 2)


def test_missing_numbers_are_no_value_of_a_class() -> None:
    data = conform_to_schema(
        pd.DataFrame({"income": [1.0, None, None, 3.0, 4.0, 4.0]}),
        Schema((Variable("income", Kind.CONTINUOUS),)),
        MissingPolicy.KEEP,
    )
    found = measure_released_file({"g": pd.Series(list("AAAxxx"))}, data, ["income"])
    one = in_classes(found)
    assert (one.l_distinct, one.l_entropy, found.sensitive[0].missing) == (1, 1.0, 2)


@pytest.mark.parametrize(("suppressed", "compared"), [(0, 3), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_the_compared_k_is_that_of_suppressed_records_where_they_are_fewer(suppressed: int, compared: int) -> None:
    found = measure_rows([("x",)] * 3 + [("*",)] * suppressed, ["a"] * (3 + suppressed))
    assert (found.k, found.compared_k) == (3, compared)


def test_without_a_class_no_k_is_compared() -> None:
    assert measure_rows([("*",)] * 5, ["a"] * 5).compared_k is None


MEANT = {"flu": "flu", "Flu ": "flu", "COLD": "cold", "cold": "cold", "*": None, " * ": None, None: None}


@pytest.mark.slow
@seed(5)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(list(MEANT))), min_size=1, max_size=12))
def test_diversity_counts_what_is_meant(table: list[tuple[str, str | None]]) -> None:
    table = [*table, ("z", "gout")]
    found = measure_rows([(g,) for g, _ in table], [value for _, value in table])
    one = in_classes(found)
    meant = [(g, MEANT.get(value, "gout")) for g, value in table]
    spreads = [Counter(value for h, value in meant if h == g and value) for g in {g for g, _ in meant}]
    assert found.sensitive[0].missing == sum(value is None for _, value in meant)
    assert one.l_distinct == min(map(len, spreads))
    effective = [
        math.prod((counts.total() / n) ** (n / counts.total()) for n in counts.values()) if counts else 0.0
        for counts in spreads
    ]
    assert one.l_entropy == pytest.approx(min(effective))


CELLS = st.sampled_from(["x", "y", None])


@pytest.mark.slow
@seed(4)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from("abc")), min_size=1, max_size=12))
def test_classes_are_those_of_each_record_with_each(table: list[tuple[str | None, str | None, str]]) -> None:
    rows, values = [row[:2] for row in table], [row[2] for row in table]
    found = measure_rows(list(rows), values)
    inside = [i for i, row in enumerate(rows) if row != (None, None)]
    assert found.suppressed_records == len(rows) - len(inside)
    assert found.suppressed_cells == sum(cell is None for row in rows for cell in row)
    (variable,) = found.sensitive
    whole = Counter(values)
    apart = Counter(value for row, value in zip(rows, values, strict=True) if row == (None, None))
    assert (variable.suppressed is None) == (not apart)
    if variable.suppressed is not None:
        # Whoever fits no class is one of these.
        assert variable.suppressed.l_distinct == len(apart)
        away = 0.5 * sum(abs(apart[v] / apart.total() - whole[v] / whole.total()) for v in whole)
        assert variable.suppressed.t == pytest.approx(away, abs=1e-11)
    if not inside:
        assert (found.k, variable.classes) == (None, None)
        return
    mates = {i: [j for j in inside if rows[j] == rows[i]] for i in inside}
    assert found.k == min(map(len, mates.values()))
    assert found.unique_records == sum(len(same) == 1 for same in mates.values())
    spreads = [Counter(values[j] for j in same) for same in mates.values()]
    one = in_classes(found)
    assert one.l_distinct == min(map(len, spreads))
    assert variable.compared_l == min(map(len, [*spreads, apart] if apart else spreads))

    def entropy(counts: Counter[str]) -> float:
        shares = np.array(list(counts.values())) / counts.total()
        return float(-(shares * np.log(shares)).sum())

    assert one.l_entropy == pytest.approx(math.exp(min(map(entropy, spreads))))
    distances = [
        0.5 * sum(abs(counts[v] / counts.total() - whole[v] / whole.total()) for v in whole) for counts in spreads
    ]
    assert one.t == pytest.approx(max(distances), abs=1e-11)
    assert variable.compared_t == max(group.t for group in variable.groups)
