"""Wrong matches of units against loops over households, and against those of records where each record is a unit."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.wrong_matches import WrongMatches, count_wrong_matches, count_wrong_unit_matches

SCHEMA = Schema(
    (Variable("household", Kind.COUNT, Role.UNIT), Variable("kept", Kind.COUNT), Variable("drawn", Kind.COUNT))
)
Rows = list[tuple[int, int, int]]


def table(rows: Rows, **more: Any) -> Microdata:
    columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
    return Microdata(SCHEMA, pd.DataFrame({name: np.array(own) for name, own in columns.items()}), **more)


def released(rows: Rows, drawn: list[int]) -> Microdata:
    return table([(*row[:2], new) for row, new in zip(rows, drawn, strict=False)], origin="synthetic", linked=True)


def members(rows: Rows, part: slice) -> list[tuple[Any, ...]]:
    of: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        of[row[0]].append(row[part])
    return [tuple(sorted(one)) for one in of.values()]


def codes_of(compositions: list[tuple[Any, ...]]) -> np.ndarray[Any, Any]:
    return np.array([hash(one) for one in compositions])


rows_of_households = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=14
)
values = st.lists(st.integers(0, 3), min_size=14, max_size=14)


@given(rows_of_households, values)
def test_own_and_wrong_units_are_those_of_loops(rows: Rows, drawn: list[int]) -> None:
    own, made = table(rows), released(rows, drawn)
    kept = members(rows, slice(1, 2))
    ours, theirs = (
        members(rows, slice(1, 3)),
        members([(*r[:2], d) for r, d in zip(rows, drawn, strict=False)], slice(1, 3)),
    )
    candidates = np.array([float(theirs.count(one)) for one in ours])
    found = count_wrong_unit_matches(
        own,
        [made],
        ["kept", "drawn"],
        {},
        groups=codes_of(kept),
        order=np.arange(len(kept)),
        candidates=[candidates],
        beyond=0.9,
    )
    shared = [kept.count(one) > 1 for one in kept]
    assert found.own == sum(
        s and a == b and c == 1 for s, a, b, c in zip(shared, ours, theirs, candidates, strict=True)
    )
    # a unit with one candidate is found in the records of that unit alone; if it is of the same group it is in its block
    small = all(kept.count(one) <= 5 for one in kept)
    if small:
        wrong = sum(
            1 / kept.count(kept[u])
            for u, one in enumerate(ours)
            for v, other in enumerate(theirs)
            if shared[u] and candidates[u] == 1 and one == other and kept[u] == kept[v]
        )
        assert found.wrong == pytest.approx(wrong)
    assert 0 <= found.p_value <= 1


@given(rows_of_households, values)
def test_of_one_record_each_they_are_those_of_records(rows: Rows, drawn: list[int]) -> None:
    alone = [(place, *row[1:]) for place, row in enumerate(rows)]
    own, made = table(alone), released(alone, drawn)
    theirs = [(row[1], new) for row, new in zip(alone, drawn, strict=False)]
    settings: dict[str, Any] = {
        "groups": np.array([row[1] for row in alone]),
        "order": np.arange(len(alone)),
        "candidates": [np.array([float(theirs.count(row[1:])) for row in alone])],
        "beyond": 0.4,
    }
    by_unit: WrongMatches = count_wrong_unit_matches(own, [made], ["kept", "drawn"], {}, **settings)
    assert by_unit == count_wrong_matches(own, [made], ["kept", "drawn"], {}, **settings)


def test_a_release_of_other_units_is_refused() -> None:
    rows = [(1, 0, 0), (1, 0, 1), (2, 0, 0)]
    made = released([(1, 0, 0), (2, 0, 1), (2, 0, 0)], [0, 1, 0])
    with pytest.raises(NotComputable, match="units of the data"):
        count_wrong_unit_matches(
            table(rows),
            [made],
            ["kept"],
            {},
            groups=np.zeros(2),
            order=np.arange(2),
            candidates=[np.ones(2)],
            beyond=0.4,
        )
