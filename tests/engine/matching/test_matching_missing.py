"""Matching where values are missing: missing matches missing and nothing else, held against a double loop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matched_records import match_records
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Variable
from sfumato.engine.execution.record_risk import count_candidates_without
from sfumato.engine.matching.intruder import draw_belief_windows
from sfumato.engine.matching.matching import ExactKey, WindowKey
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.attribute import AttributeSpec, attribute
from sfumato.engine.risk.identification import IdentificationSpec, candidate_rows, identification
from sfumato.engine.studies.intruder_uncertainty import IntruderUncertaintySpec, intruder_uncertainty

SCHEMA = schema_of(
    Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("a", "b")),
    "visits: count quasi_identifier",
    "joined: date quasi_identifier",
    "income: continuous sensitive",
)
RECORD = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from([0.0, 1.0, 2.0, 4.0, None]),
    st.sampled_from(["2020-01-01", "2020-01-03", None]),
    st.sampled_from([1.0, 1.5, 3.0, None]),
)
WHOLE = ("a", 1.0, "2020-01-01", 1.5)
RADII = {"visits": Radius.parse(1), "income": Radius.parse("50%")}


def table(records: list[tuple[object, ...]]) -> Microdata:
    """The records, and one without missing values, so that no column lacks all."""
    frame = pd.DataFrame([*records, WHOLE], columns=list(SCHEMA.names), dtype="object")
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)


def alike(name: str, ours: object, theirs: object, radius: dict[str, Radius]) -> bool:
    """The definition of a match on one variable, in plain Python."""
    if ours is None or theirs is None:
        return ours is theirs
    if name == "visits" and name in radius:
        return abs(float(theirs) - float(ours)) <= 1  # type: ignore[arg-type]
    if name == "income" and name in radius:
        return abs(float(theirs) - float(ours)) <= 0.5 * float(ours)  # type: ignore[arg-type]
    return ours == theirs


def by_hand(
    ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]], radius: dict[str, Radius]
) -> list[list[int]]:
    """For each record the released ones that match it, by a double loop."""
    return [
        [
            j
            for j, other in enumerate([*theirs, WHOLE])
            if all(alike(name, a, b, radius) for name, a, b in zip(SCHEMA.names, one, other, strict=True))
        ]
        for one in [*ours, WHOLE]
    ]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(RECORD, RECORD), min_size=1, max_size=12), st.booleans())
def test_identification_with_missing_values_is_that_of_a_double_loop(
    pairs: list[tuple[tuple[object, ...], tuple[object, ...]]], exactly: bool
) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    radius = {} if exactly else RADII
    confidential, released = table(ours), table(theirs).with_columns({}, "synthetic")
    spec = IdentificationSpec(known=("region", "visits", "joined"), synthesised=("income",), radius=radius)
    expected = by_hand(ours, theirs, radius)
    found = identification(confidential, released, spec, Run(np.random.default_rng(1)))
    assert found.per_record["candidates"].tolist() == [len(rows) for rows in expected]
    assert found.per_record["hit"].tolist() == [i in rows for i, rows in enumerate(expected)]
    everyone = list(range(len(expected)))
    assert [rows.tolist() for rows in candidate_rows(confidential, released, spec, everyone)] == expected


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(RECORD, RECORD), min_size=1, max_size=10))
def test_attribute_risk_with_missing_values_is_that_of_a_double_loop(
    pairs: list[tuple[tuple[object, ...], tuple[object, ...]]],
) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    spec = AttributeSpec(known=("region", "visits"), sensitive=("income",), radius=RADII)
    released = table(theirs).with_columns({}, "synthetic")
    found = attribute(table(ours), released, spec, Run(np.random.default_rng(1)))
    expected = []
    for one in [*ours, WHOLE]:
        known = [
            other for other in [*theirs, WHOLE] if all(alike(SCHEMA.names[v], one[v], other[v], RADII) for v in (0, 1))
        ]
        near = [other for other in known if alike("income", one[3], other[3], RADII)]
        expected.append(len(near) / len(known) if known else 0.0)
    assert found.per_record["probability"] == pytest.approx(expected)


def test_a_missing_value_that_matches_everything_would_be_noticed() -> None:
    """The negative control: plain windows, in which a missing value matches nothing, give other counts."""
    own, released = np.array([1.0, np.nan]), np.array([np.nan, 1.0])
    ends = Radius.parse(1).window(own)
    assert match_records([], [WindowKey(*ends, released)]).candidates.tolist() == [1, 0]
    assert match_records([], [WindowKey.from_windows(*ends, np.isnan(own), released)]).candidates.tolist() == [1, 1]
    assert match_records([ExactKey(own, released)]).candidates.tolist() == [1, 1]


def test_leaving_a_variable_out_counts_missing_values_alike() -> None:
    own, released = np.array([1.0, np.nan]), np.array([np.nan, 1.0, 5.0])
    keys = [
        WindowKey.from_windows(*Radius.parse(1).window(own), np.isnan(own), released),
        ExactKey(np.array(["x", "y"]), np.array(["y", "x", "x"])),
    ]
    assert count_candidates_without(keys, [0, 1]).tolist() == [[1, 2, 1], [1, 1, 1]]


@pytest.mark.parametrize("model", ["log_normal", "log_relative", "log_normal_constant", "relative", "unknown"])
@pytest.mark.parametrize("radius", [None, Radius.parse(1)])
def test_noise_leaves_missing_as_missing(model: str, radius: Radius | None) -> None:
    data = table([("a", None, None, 1.0), ("b", 2.0, None, 1.0), ("a", None, None, 3.0)])
    believed = draw_belief_windows(
        data, "visits", radius, model, 0.0 if model == "unknown" else 0.5, np.random.default_rng(2)
    )[0]  # type: ignore[arg-type]
    found = match_records([], [believed(data)])  # type: ignore[list-item]
    assert found.candidates[[0, 2]].tolist() == [2, 2]
    assert found.hit[[0, 2]].all()


def test_a_misclassified_level_is_never_made_of_a_missing_one() -> None:
    data = table([(None, 1.0, None, 1.0)] * 20 + [("b", 1.0, None, 1.0)] * 20)
    believed = draw_belief_windows(data, "region", None, "misclassification", 1.0, np.random.default_rng(3))[0](data)
    assert isinstance(believed, ExactKey)
    own, released = believed.equal_codes()
    assert (own[:20] == released[:20]).all()
    assert (own[20:] != released[20:]).all()


def test_an_intruder_who_does_not_know_a_value_cannot_exclude_the_missing_ones() -> None:
    data = table([("a", None, None, 1.0), ("b", 2.0, None, 1.0)])
    for radius in (None, Radius.parse(1)):
        believed = draw_belief_windows(data, "visits", radius, "unknown", 1.0, np.random.default_rng(4))[0]
        assert match_records([], [believed(data)]).candidates.tolist() == [3, 3, 3]  # type: ignore[list-item]


def test_without_uncertainty_the_study_gives_the_risks_themselves() -> None:
    rng = np.random.default_rng(5)
    columns = [["a", "b", None], [0.0, 1.0, 2.0, None], ["2020-01-01", None], [1.0, 1.5, 3.0, None]]
    ours, theirs = ([tuple(c[rng.integers(len(c))] for c in columns) for _ in range(150)] for _ in range(2))
    confidential, released = table(ours), table(theirs).with_columns({}, "synthetic")
    known = ("region", "visits", "joined")
    spec = IntruderUncertaintySpec(
        variable="visits", model="relative", known=known, synthesised=("income",), sensitive=("income",), radius=RADII
    )
    study = intruder_uncertainty(confidential, [released], 0.0, spec, Run(np.random.default_rng(6)))
    values = {estimate.measure: estimate.value for estimate in study.releases[0].estimates}
    run = Run(np.random.default_rng(6))
    identified = identification(
        confidential, released, IdentificationSpec(known=known, synthesised=("income",), radius=RADII), run
    )
    learnt = attribute(confidential, released, AttributeSpec(known=known, sensitive=("income",), radius=RADII), run)
    found = {e.measure: e.value for e in identified.estimates if not e.measure.startswith("largest_")}
    assert found.items() <= values.items()
    assert values["attribute_risk"] == pytest.approx(learnt.estimates[0].value)
