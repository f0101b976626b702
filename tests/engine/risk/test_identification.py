"""Identification risk on tables small enough to follow, and what its recipe refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.identification import IdentificationSpec, candidate_rows, identification

SCHEMA = schema_of(
    "region: categorical quasi_identifier",
    "children: count quasi_identifier",
    "since: date",
    "income: continuous sensitive",
)
RELEASED = ("income",)
RUN = Run(np.random.default_rng(0))


def data(region: str, children: list[int], income: list[float], origin="confidential") -> Microdata:
    since = [f"2019-07-{day:02d}" for day in range(1, len(region) + 1)]
    frame = pd.DataFrame({"region": list(region), "children": children, "since": since, "income": income})
    return conform_to_schema(frame, SCHEMA, origin=origin)


def spec(**table) -> IdentificationSpec:
    return IdentificationSpec.from_table(table, "measure[0]").for_release(SCHEMA, RELEASED)


def read(table, released) -> IdentificationSpec:
    """A measure's table as a recipe that releases these variables reads it."""
    chosen = IdentificationSpec.from_table(table, "measure[0]")
    chosen.check(SCHEMA, "measure[0]")
    chosen.check_release(SCHEMA, released, "measure[0]")
    return chosen


def values(measure: Measure) -> dict[str, float | None]:
    return {estimate.measure: estimate.value for estimate in measure.estimates}


def of_all_known(found: dict[str, float | None]) -> dict[str, float | None]:
    """The papers' four outputs, of an intruder who uses all that is known."""
    return {name: value for name, value in found.items() if not name.startswith("largest_")}


CONFIDENTIAL = data("aaabb", [0, 0, 1, 2, 2], [100, 104, 100, 50, 200])
SYNTHETIC = data("aaabb", [0, 0, 1, 2, 2], [105, 99, 300, 201, 199], "synthetic")


def test_by_hand() -> None:
    """105 and 99 are within 5 % of record 0's 100 and of record 1's 104; 201 and 199 are within 5 % of record 4's 200."""
    measure = identification(CONFIDENTIAL, SYNTHETIC, spec(radius={"income": "5%"}), RUN)
    assert measure.per_record["candidates"].tolist() == [2, 2, 0, 0, 2]
    assert measure.per_record["hit"].tolist() == [True, True, False, False, True]
    found = values(measure)
    assert found["expected_match_risk"] == pytest.approx(1.5)
    assert found["true_match_rate"] == 0
    assert found["unique_matches"] == 0
    assert found["false_match_rate"] is None
    assert "unique match" in next(e.reason for e in measure.estimates if e.measure == "false_match_rate")


def test_who_ignores_an_income_of_somebody_else_finds_the_single_records() -> None:
    """Two of a place and one alone, all incomes wrong: by all that is known nobody is found, by the place the third for certain."""
    people = data("aab", [0, 0, 1], [100, 200, 300])
    release = data("aab", [0, 0, 1], [900, 800, 700], "synthetic")
    measure = identification(people, release, spec(), RUN)
    assert measure.per_record["hit"].tolist() == [False, False, False]
    assert measure.per_record["best_candidates"].tolist() == [2, 2, 1]
    assert measure.per_record["best_hit"].tolist() == [True, True, True]
    assert "best_hit" not in identification(people, people, spec(), RUN).per_record


@pytest.mark.parametrize(
    ("days", "candidates"), [(0.25, [1, 0, 1]), (0.5, [2, 2, 1]), (1, [2, 3, 3]), (1.75, [3, 3, 3])]
)
def test_a_radius_in_days_heeds_the_time_of_day(days: float, candidates: list[int]) -> None:
    """Hours known 0, 24 + 0, 24 + 6 and released 6, 12, 36 from the evening of 1969-12-30."""
    start = pd.Timestamp("1969-12-30 21:00")
    schema = Schema((Variable("since", Kind.DATE, Role.QUASI_IDENTIFIER),))
    own, released = (
        conform_to_schema(pd.DataFrame({"since": start + pd.to_timedelta(hours, unit="h")}), schema, origin=origin)
        for hours, origin in (([0, 24, 30], "confidential"), ([6, 12, 36], "synthetic"))
    )
    chosen = IdentificationSpec.from_table({"known": ["since"], "radius": {"since": days}}, "measure[0]")
    measure = identification(own, released, chosen, RUN)
    assert measure.per_record["candidates"].tolist() == candidates


def test_narrower_radius_by_hand() -> None:
    """Radius 1: record 0 has 99, not its own; record 1 has 105, not its own; record 4 has 201 and 199."""
    found = values(identification(CONFIDENTIAL, SYNTHETIC, spec(radius={"income": 1}), RUN))
    assert of_all_known(found) == {
        "expected_match_risk": 0.5, "true_match_rate": 0.0, "false_match_rate": 1.0, "unique_matches": 2.0
    }  # fmt: skip


def test_a_table_against_itself() -> None:
    found = values(identification(CONFIDENTIAL, CONFIDENTIAL, spec(radius={"income": "5%"}), RUN))
    assert of_all_known(found) == {
        "expected_match_risk": 4.0, "true_match_rate": 0.6, "false_match_rate": 0.0, "unique_matches": 3.0
    }  # fmt: skip


def test_a_radius_applies_to_known_variables_too() -> None:
    wide = identification(CONFIDENTIAL, SYNTHETIC, spec(radius={"income": 1000, "children": 1}), RUN)
    assert wide.per_record["candidates"].tolist() == [3, 3, 3, 2, 2]


def test_dates_match_within_days() -> None:
    near = identification(CONFIDENTIAL, SYNTHETIC, spec(known=["since"], radius={"income": 1000, "since": 1}), RUN)
    assert near.per_record["candidates"].tolist() == [2, 3, 3, 3, 2]


def test_dates_that_lost_their_times_are_matched_within_days_or_not_at_all() -> None:
    hours = pd.to_timedelta([3, 20, 7, 15, 9], unit="h")
    timed = CONFIDENTIAL.with_columns({"since": CONFIDENTIAL.column("since") + hours}, "confidential")
    with pytest.raises(NotComputable, match="without its time of day"):
        identification(timed, SYNTHETIC, spec(known=["since"], radius={"income": 1000}), RUN)
    within = identification(timed, SYNTHETIC, spec(known=["since"], radius={"income": 1000, "since": 1}), RUN)
    assert within.per_record["hit"].all()
    same = timed.with_columns({"income": SYNTHETIC.column("income")}, "synthetic")
    exact = identification(timed, same, spec(known=["since"], radius={"income": 1000}), RUN)
    assert exact.per_record["candidates"].tolist() == [1, 1, 1, 1, 1]


def test_an_intruder_who_knows_no_synthesised_value_of_some_variable() -> None:
    chosen = spec(known=["region"], synthesised=["children"])
    assert chosen.matched_variables == ("region", "children")


def test_defaults_come_from_roles_and_from_what_is_released() -> None:
    assert spec().known == ("region", "children")
    assert spec().synthesised == ("income",)
    full = IdentificationSpec().for_release(SCHEMA, ("region", "income"))
    assert (full.known, full.synthesised) == (("children",), ("region", "income"))


def test_drill_down_names_the_candidates() -> None:
    rows = candidate_rows(CONFIDENTIAL, SYNTHETIC, spec(radius={"income": 1}), [4, 0, 2])
    assert [found.tolist() for found in rows] == [[3, 4], [1], []]


def test_a_row_says_what_the_intruder_knows_and_how_near_is_a_match() -> None:
    settings = spec(radius={"income": "5%"}).settings(CONFIDENTIAL.schema, RELEASED)
    assert settings == {"known": ["region", "children"], "synthesised": ["income"], "radius": {"income": "5%"}}


@pytest.mark.parametrize(
    ("table", "released", "place", "message"),
    [
        ({}, RELEASED, "measure[0].radius", 'income = "5%"'),
        ({"radius": {"income": -1}}, RELEASED, "measure[0].radius.income", "at least 0"),
        ({"radius": {"incme": 1}}, RELEASED, "measure[0].radius.incme", 'did you mean "income"'),
        ({"radius": {"region": 1}}, RELEASED, "measure[0].radius.region", "is categorical"),
        ({"radius": {"income": 1, "since": 1}}, RELEASED, "measure[0].radius.since", "not matched here"),
        ({"known": ["since"], "radius": {"income": 1, "since": "5%"}}, RELEASED, "measure[0].radius.since", "days"),
        ({"known": ["regoin"]}, RELEASED, "measure[0].known[0]", 'did you mean "region"'),
    ],
)
def test_refusals_name_the_place(table, released, place, message) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        read(table, released)
    assert refused.value.place == place


def test_nothing_known_is_refused() -> None:
    schema = Schema((Variable("income", Kind.CONTINUOUS, Role.OTHER),))
    with pytest.raises(BadInput, match="knows no variable"):
        IdentificationSpec().check_release(schema, (), "measure[0]")


def test_continuous_variable_that_is_not_synthesised_may_match_exactly() -> None:
    IdentificationSpec(known=("income",)).check_release(SCHEMA, (), "measure[0]")


def test_log_radius_on_negative_values_is_refused() -> None:
    check = find_method("risk.identification", "").check
    assert check is not None
    negative = data("ab", [0, 1], [-5.0, 3.0])
    with pytest.raises(BadInput, match="1 record is negative"):
        check(negative, "", spec(radius={"income": "log 5%"}), "measure[0]")
    check(negative, "", spec(radius={"income": "5%"}), "measure[0]")


def test_a_recipe_s_table_is_read_back() -> None:
    table = {"known": ["region"], "radius": {"income": "open 5%", "children": 1}}
    assert IdentificationSpec.from_table(table, "m").to_table() == table


def test_an_intruder_who_knows_kept_variables_alone_matches_on_no_synthesised_one() -> None:
    """Only record 2 is alone by region and children; the others share them with one more."""
    measure = identification(CONFIDENTIAL, SYNTHETIC, spec(kept_only=True), RUN)
    assert spec(kept_only=True).matched_variables == ("region", "children")
    assert measure.per_record["candidates"].tolist() == [2, 2, 1, 2, 2]
    assert values(measure)["expected_match_risk"] == pytest.approx(3)
    assert values(measure)["true_match_rate"] == pytest.approx(0.2)
    assert read({"kept_only": True}, RELEASED).settings(SCHEMA, RELEASED)["kept_only"] is True
    for table in (
        {"synthesised": ["income"], "radius": {"income": "5%"}},
        {"known": ["region", "income"], "radius": {"income": "5%"}},
    ):
        with pytest.raises(BadInput, match=r"^measure\[0\].kept_only: \"income\" is synthesised"):
            read({**table, "kept_only": True}, RELEASED)
