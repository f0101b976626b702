"""Records whose quasi-identifiers are all suppressed: counted apart, and in no number left out in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.anonymity import AnonymitySpec, anonymity

Record = tuple[str | None, str | None, str]
SCHEMA = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in ("age", "zip", "illness")))


def measure_anonymity(
    records: Sequence[Record], missing: Literal["value", "anything"] = "value"
) -> dict[str, float | None]:
    frame = pd.DataFrame(records, columns=["age", "zip", "illness"], dtype="object")
    data = conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)
    spec = AnonymitySpec(quasi_identifiers=("age", "zip"), sensitive=("illness",), missing=missing)
    return {one.measure: one.value for one in anonymity(data, data, spec, Run(np.random.default_rng(0))).estimates}


PEOPLE: list[Record] = [("<50", "81", "flu"), ("<50", "81", "cold"), ("<50", "81", "flu")]


@pytest.mark.parametrize("cell", [None, "*"])
@pytest.mark.parametrize(("suppressed", "k"), [(1, 1), (2, 2), (3, 3), (6, 3)])
def test_suppressed_records_are_no_class_and_k_is_not_better_than_their_number(
    cell: str | None, suppressed: int, k: int
) -> None:
    found = measure_anonymity([*PEOPLE, *([(cell, cell, "gout")] * suppressed)])
    assert (found["classes"], found["suppressed_records"], found["k_without_suppressed"]) == (1, suppressed, 3)
    # Whoever fits no class is among the suppressed, and has gout.
    assert (found["k"], found["l_distinct"]) == (k, 1)


def test_without_suppressed_records_both_are_k() -> None:
    found = measure_anonymity([*PEOPLE, ("<50", None, "flu")])
    assert (found["k"], found["k_without_suppressed"], found["suppressed_records"], found["classes"]) == (1, 1, 0, 2)


def test_a_table_of_suppressed_records_has_no_class() -> None:
    found = measure_anonymity([("*", None, "flu"), ("*", "*", "cold")])
    assert (found["classes"], found["suppressed_records"], found["k_without_suppressed"]) == (0, 2, None)


def test_suppressed_records_make_no_set_of_matches_larger_apart() -> None:
    """Where a missing value matches anything, three of them make three single people a set of four each."""
    records: list[Record] = [("<50", "81", "flu"), ("<50", "82", "flu"), (">=50", "81", "flu")]
    found = measure_anonymity([*records, *([(None, None, "flu")] * 3)], "anything")
    assert (found["k"], found["k_without_suppressed"], found["suppressed_records"]) == (4, 1, 3)


CELLS = st.sampled_from(["x", "y", "*", None])


@pytest.mark.slow
@seed(7)
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS, st.sampled_from("abc")), min_size=1, max_size=12),
    st.sampled_from(["value", "anything"]),
)
def test_each_record_compared_with_each(records: list[Record], missing: Literal["value", "anything"]) -> None:
    # A column has to have some value.
    records = [*records, ("z", "z", "a")]
    found = measure_anonymity(records, missing)
    keys = [record[:2] for record in records]
    everyone = range(len(keys))
    suppressed = {i for i in everyone if all(cell in (None, "*") for cell in keys[i])}

    def agree(i: int, j: int) -> bool:
        anything = missing == "anything"
        return all(a == b or (anything and None in (a, b)) for a, b in zip(keys[i], keys[j], strict=True))

    mates = [[j for j in everyone if agree(i, j)] for i in everyone]
    assert found["suppressed_records"] == len(suppressed)
    assert found["k"] == min(map(len, mates))
    rest = [sum(j not in suppressed for j in mates[i]) for i in everyone if i not in suppressed]
    assert found["k_without_suppressed"] == min(rest, default=None)
    if missing == "value":
        assert found["classes"] == len({keys[i] for i in everyone if i not in suppressed})
    # l and t are those of every set, the sets of suppressed records among them.
    whole = Counter(record[2] for record in records)
    spreads = [Counter(records[j][2] for j in some) for some in mates]
    assert found["l_distinct"] == min(map(len, spreads))
    distances = [
        0.5 * sum(abs(counts[value] / counts.total() - whole[value] / whole.total()) for value in whole)
        for counts in spreads
    ]
    assert found["t"] == pytest.approx(max(distances), abs=1e-11)
