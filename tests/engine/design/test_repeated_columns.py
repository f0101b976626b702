from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.block_sums import add_sums
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.utility import propensity as module


class BothTables:
    """Two tables in memory that are asked for sums together, in blocks of some records."""

    def __init__(self, ours: list[np.ndarray], theirs: list[np.ndarray], rows: int) -> None:
        names = [f"x{i}" for i in range(len(ours))]
        schema = schema_of(*(f"{name}: continuous" for name in names))
        self.names = tuple(names)
        self.tables = [Microdata(schema, pd.DataFrame(dict(zip(names, own, strict=True)))) for own in (ours, theirs)]
        starts = range(0, max(map(len, self.tables)), rows)
        self.blocks = [[one.select_rows(slice(start, start + rows)) for one in self.tables] for start in starts]

    def ask_sums(self, work: Any, join: Any = add_sums, names: Any = None) -> Any:
        return join([work(*block) for block in self.blocks])


def repeated(ours: list[np.ndarray], theirs: list[np.ndarray], rows: int = 100) -> list[bool]:
    both = BothTables(ours, theirs, rows)
    _, found = both.ask_sums(partial(module._facts_of_variables, both.names, {}), partial(module._join_facts, {}))
    return module.find_repeated(found, both)  # type: ignore[arg-type]


def by_sorting(ours: list[np.ndarray], theirs: list[np.ndarray]) -> list[bool]:
    """The definition: one after another, whether the records of all that were found, and of this one, are the same."""
    found: list[bool] = []
    for k in range(len(ours)):
        chosen = [i for i in range(k) if found[i]] + [k]
        records = [
            sorted(tuple("missing" if np.isnan(v) else str(v + 0.0) for v in row) for row in zip(*table, strict=True))
            for table in ([ours[i].tolist() for i in chosen], [theirs[i].tolist() for i in chosen])
        ]
        found.append(records[0] == records[1])
    return found


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    n=st.integers(1, 6),
    columns=st.integers(1, 3),
    how=st.sampled_from(["as it is", "shuffled", "some"]),
)
def test_is_what_sorted_records_say(data: st.DataObject, n: int, columns: int, how: str) -> None:
    ours = [np.array(data.draw(st.lists(VALUES, min_size=n, max_size=n))) for _ in range(columns)]
    order = np.array(data.draw(st.permutations(range(n)))) if how == "shuffled" else np.arange(n)
    theirs = [column[order] for column in ours]
    if how == "some":
        theirs[-1] = np.array(data.draw(st.lists(VALUES, min_size=n, max_size=n)))
    for rows in (100, 2):
        assert repeated(ours, theirs, rows) == by_sorting(ours, theirs)


def test_columns_with_the_same_values_in_other_records_are_not_repeated_together() -> None:
    one, two = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    assert repeated([one, two], [one, one]) == [True, False]
    assert repeated([one, two], [two, two]) == [True, False]
    assert repeated([one, two], [two, one]) == [True, True]


def test_tables_of_other_sizes_repeat_nothing() -> None:
    assert repeated([np.zeros(3)], [np.zeros(4)]) == [False]


def test_only_hashes_tell_records_in_another_order_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with a hash that is the same for all, other records in another order pass for the same ones."""
    one = np.array([3.0, 1.0, 2.0])
    assert repeated([one], [one[::-1]]) == [True]
    assert repeated([one], [one + 1]) == [False]
    monkeypatch.setattr(module, "hash_records", lambda columns, rows: np.zeros(rows.stop - rows.start, np.uint64))
    assert repeated([one], [one + 1]) == [True]
