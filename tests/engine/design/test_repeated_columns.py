from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.utility import propensity as module
from sfumato.engine.utility.propensity import are_columns_repeated


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
    assert are_columns_repeated(ours, theirs) == by_sorting(ours, theirs)


def test_columns_with_the_same_values_in_other_records_are_not_repeated_together() -> None:
    one, two = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    assert are_columns_repeated([one, two], [one, one]) == [True, False]
    assert are_columns_repeated([one, two], [two, two]) == [True, False]
    assert are_columns_repeated([one, two], [two, one]) == [True, True]


def test_tables_of_other_sizes_repeat_nothing() -> None:
    assert are_columns_repeated([np.zeros(3)], [np.zeros(4)]) == [False]


def test_records_that_share_a_hash_are_compared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with a hash that is the same for all, nothing is excluded by it and nothing found by it alone."""
    monkeypatch.setattr(module, "hash_records", lambda columns, rows: np.zeros(rows.stop - rows.start, np.uint64))
    one = np.array([3.0, 1.0, 2.0])
    assert are_columns_repeated([one], [one[::-1]]) == [True]
    assert are_columns_repeated([one], [one + 1]) == [False]
