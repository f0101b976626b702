"""Distances of mixed records against their definition pair by pair, and what must not change them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import MIXED_DISTANCE, mixed_places, schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.statistics.gower import GowerDistance, SubsetGowerDistances

SCHEMA = schema_of(
    Variable("sex", Kind.BINARY, levels=("f", "m")),
    Variable("town", Kind.CATEGORICAL, levels=("a", "b", "c")),
    "age: count",
    "pay: continuous",
)


def table(rows: dict[str, list[Any]] | pd.DataFrame) -> Microdata:
    return conform_to_schema(pd.DataFrame(rows), SCHEMA, MissingPolicy.KEEP)


def distances(own: Microdata, other: Microdata) -> Any:
    gower = GowerDistance.from_tables([other], SCHEMA.names)
    return gower.pairwise_distances(gower.record_places(own), gower.record_places(other)) / gower.unit_distance


FOUR = {"sex": list("fmfm"), "town": list("aabc"), "age": [20, 30, 30, 50], "pay": [1.0, 2.0, 4.0, 800.0]}


def test_four_records_by_hand() -> None:
    """Ages lie at 1/8, 1/2, 1/2 and 7/8 of the way, pay at 1/8, 3/8, 5/8 and 7/8, whatever the 800 is."""
    found = distances(table(FOUR), table(FOUR))
    assert found[0].tolist() == [0, 1 + 0 + 3 / 8 + 1 / 4, 0 + 1 + 3 / 8 + 1 / 2, 1 + 1 + 3 / 4 + 3 / 4]
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()


def test_a_value_between_two_is_between_them_and_one_beyond_all_at_the_end() -> None:
    own = table({"sex": list("ff"), "town": list("aa"), "age": [25, 20], "pay": [3.0, 9999.0]})
    gower = GowerDistance.from_tables([table(FOUR)], ("age", "pay"))
    places = gower.record_places(own) / gower.unit_distance
    assert places[0] == pytest.approx([(1 / 8 + 1 / 2) / 2, 1 / 2])
    assert places[1].tolist() == [1 / 8, 1]


def test_a_missing_value_is_near_a_missing_one_alone() -> None:
    rows = {"sex": ["f", None, "f", "m"], "town": list("aaaa"), "age": [20.0, 20.0, None, None], "pay": [1.0, 1, 1, 1]}
    found = distances(table(rows), table(rows))
    assert found[0].tolist() == [0, 1, 1, 2]
    assert found[2, 3] == 1


def test_a_level_that_no_table_has_is_near_none() -> None:
    gower = GowerDistance.from_tables([table(FOUR)], ("town",))
    wider = Schema((Variable("town", Kind.CATEGORICAL, levels=("c", "d", "a")),))
    own = conform_to_schema(pd.DataFrame({"town": ["d", "a"]}), wider)
    assert gower.pairwise_distances(gower.record_places(own), gower.record_places(table(FOUR))).tolist() == [
        [8, 8, 8, 8],
        [0, 0, 8, 8],
    ]


def test_means_of_levels_cannot_be_compared() -> None:
    means = Schema((Variable("sex", Kind.CONTINUOUS),))
    with pytest.raises(NotComputable, match="class means"):
        GowerDistance.from_tables([table(FOUR)], ("sex",)).record_places(
            conform_to_schema(pd.DataFrame({"sex": [0.5]}), means)
        )


records = st.lists(
    st.tuples(
        st.sampled_from(["f", "m", None]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 2, 5, None]),
        st.sampled_from([-1.5, 0.0, 2.5, 1e300]),
    ),
    min_size=1,
    max_size=8,
)


def usable(rows: list[tuple[Any, ...]]) -> Microdata:
    """The records and two more, so that no variable lacks all its values."""
    columns = dict(zip(SCHEMA.names, zip(*rows, ("f", "a", 1, 0.0), ("m", "c", 9, 3.0), strict=True), strict=True))
    frame = {
        v.name: pd.Categorical(columns[v.name], v.levels)
        if v.kind.has_levels
        else np.array(columns[v.name], dtype=float)
        for v in SCHEMA
    }
    return Microdata(SCHEMA, pd.DataFrame(frame))


@pytest.mark.slow
@settings(max_examples=30)
@given(records, records)
def test_every_distance_is_the_sum_of_its_definition(own: list[Any], other: list[Any]) -> None:
    ours, theirs = usable(own), usable(other)
    expected = np.zeros((len(ours), len(theirs)))
    for name in SCHEMA.names:
        a, b = ([None if pd.isna(v) else v for v in one.frame[name]] for one in (ours, theirs))
        present = sorted(v for v in b if v is not None)
        for i, j in np.ndindex(*expected.shape):
            expected[i, j] += _one(a[i], b[j], None if SCHEMA[name].kind.has_levels else present)
    assert distances(ours, theirs) == pytest.approx(expected, abs=1e-6)


def _one(a: Any, b: Any, present: list[float] | None) -> float:
    if a is None or b is None or present is None:
        return float(a != b)
    return abs(_place(present, a) - _place(present, b))


def _place(values: list[float], value: float) -> float:
    if value in values:
        return (sum(v < value for v in values) + sum(v <= value for v in values)) / 2 / len(values)
    below, above = [v for v in values if v < value], [v for v in values if v > value]
    if not below or not above:
        return float(bool(below))
    low, high = _place(values, below[-1]), _place(values, above[0])
    return low + (high - low) * (value - below[-1]) / (above[0] - below[-1])


@pytest.mark.slow
@settings(max_examples=30)
@given(records, records, st.permutations(SCHEMA.names), st.sampled_from([0.001, 1024.0]))
def test_order_of_variables_and_unit_of_numbers_change_nothing(
    own: list[Any], other: list[Any], names: list[str], unit: float
) -> None:
    ours, theirs = usable(own), usable(other)
    gower = GowerDistance.from_tables([theirs], names)
    assert (
        gower.pairwise_distances(gower.record_places(ours), gower.record_places(theirs)) / gower.unit_distance
        == distances(ours, theirs)
    ).all()
    scaled = [Microdata(SCHEMA, one.frame.assign(pay=one.frame["pay"] * unit)) for one in (ours, theirs)]
    assert distances(*scaled) == pytest.approx(distances(ours, theirs), abs=1e-6)


def test_subsets_add_up_the_distances_of_their_variables() -> None:
    own, other = mixed_places(70, 1), mixed_places(90, 2)
    subsets = np.array([[True, True, True], [True, False, False], [False, True, True]])
    rough = SubsetGowerDistances.from_gower(MIXED_DISTANCE)
    found = np.empty((3, 70, 90))
    for rows, k, apart in rough.iterate_blocks(rough.round_places(own), rough.round_places(other), subsets):
        found[k, rows] = apart
    for k, chosen in enumerate(subsets):
        names = tuple(n for n, inside in zip(MIXED_DISTANCE.names, chosen, strict=True) if inside)
        exact = GowerDistance(names, 50, MIXED_DISTANCE.levels, {}).pairwise_distances(own[:, chosen], other[:, chosen])
        assert found[k] * MIXED_DISTANCE.unit_distance == pytest.approx(exact, abs=0.01)
