"""Attribute risk against the definition, pair by pair, and on tables small enough to follow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.attribute import AttributeSpec, attribute

SCHEMA = schema_of(
    "group: categorical quasi_identifier",
    "reviews: count quasi_identifier",
    "days: count sensitive",
    "kind: categorical sensitive",
)
RELEASED = ("days", "kind")
RUN = Run(np.random.default_rng(0))
LEVELS = st.sampled_from("ab")
RECORD = st.tuples(LEVELS, st.integers(0, 3), st.integers(0, 12), LEVELS)


def data(records, origin="confidential") -> Microdata:
    frame = pd.DataFrame(records, columns=["group", "reviews", "days", "kind"])
    return conform_to_schema(frame, SCHEMA, origin=origin)


def spec(**table) -> AttributeSpec:
    return AttributeSpec.from_table(table, "measure[0]").for_release(SCHEMA, RELEASED)


def read(table, released) -> AttributeSpec:
    """A measure's table as a recipe that releases these variables reads it."""
    chosen = AttributeSpec.from_table(table, "measure[0]")
    chosen.check(SCHEMA, "measure[0]")
    chosen.check_release(SCHEMA, released, "measure[0]")
    return chosen


def figures(measure: Measure) -> dict[str, float | None]:
    return {estimate.measure: estimate.value for estimate in measure.estimates}


def by_definition(confidential, released, reviews: int, days: int, exclude_self: bool) -> list[float]:
    """p_i = share of M_i whose sensitive values are similar (Guo & Hu §4.1), one pair of records at a time."""
    shares = []
    for i, (group, review, day, kind) in enumerate(confidential):
        members = [j for j, r in enumerate(released) if r[0] == group and abs(r[1] - review) <= reviews]
        if exclude_self and members != [i]:
            members = [j for j in members if j != i]
        alike = [j for j in members if abs(released[j][2] - day) <= days and released[j][3] == kind]
        shares.append(len(alike) / len(members) if members else 0.0)
    return shares


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(RECORD, RECORD), min_size=1, max_size=12), st.integers(0, 2), st.integers(0, 6))
def test_equals_the_definition(pairs, reviews: int, days: int) -> None:
    confidential, synthetic = ([pair[k] for pair in pairs] for k in (0, 1))
    given_radii = spec(radius={"reviews": reviews, "days": days})
    for released, origin in ((synthetic, "synthetic"), (confidential, "confidential")):
        expected = by_definition(confidential, released, reviews, days, exclude_self=False)
        measure = attribute(data(confidential), data(released, origin), given_radii, RUN)
        np.testing.assert_allclose(measure.per_record["probability"], expected)
        assert measure.estimates[0].value == pytest.approx(sum(expected))
    excluding = by_definition(confidential, confidential, reviews, days, exclude_self=True)
    assert figures(measure)["risk_excluding_self"] == pytest.approx(sum(excluding))


SHARED = [("a", 1, 0, "a"), ("a", 1, 9, "a"), ("b", 1, 5, "a")]
"""Records 0 and 1 share keys with different days, so that without themselves neither is given away; 2 is alone."""


def test_releasing_the_confidential_data_unchanged_scores_as_they_do() -> None:
    own = attribute(data(SHARED), data(SHARED), spec(), RUN)
    release = attribute(data(SHARED), data(SHARED, "synthetic"), spec(), RUN)
    assert own.per_record["probability"].tolist() == release.per_record["probability"].tolist() == [0.5, 0.5, 1.0]
    assert figures(own) == {"risk": 2.0, "risk_excluding_self": 1.0, "largest_risk": 2.0}
    assert figures(release) == {"risk": 2.0, "largest_risk": 2.0}, "a release is never scored without the record itself"


def test_nobody_like_the_target_gives_nothing_away() -> None:
    probability = attribute(data([("a", 1, 0, "a")]), data([("b", 1, 0, "a")], "synthetic"), spec(), RUN)
    assert probability.per_record["matched"].tolist() == [0]
    assert probability.estimates[0].value == 0.0


def test_defaults_come_from_roles_and_from_what_is_released() -> None:
    assert (spec().known, spec().sensitive) == (("group", "reviews"), RELEASED)


@pytest.mark.parametrize(
    ("table", "released", "place", "message"),
    [
        ({"sensitive": ["reviews"]}, RELEASED, "measure[0].sensitive", "among the known"),
        ({}, (), "measure[0].sensitive", "nothing is synthesised"),
        ({}, ("group", "reviews"), "measure[0].known", "knows no variable"),
        ({"radius": {"kind": 1}}, RELEASED, "measure[0].radius.kind", "categorical"),
    ],
)
def test_refusals_name_the_place(table, released, place, message) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        read(table, released)
    assert refused.value.place == place
