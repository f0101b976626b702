"""Records at risk where they are in units: a row for each household, most at risk first, and its records below it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from households import SCHEMA, as_microdata, draw_households
from hypothesis import given
from hypothesis import strategies as st
from prepared_workspaces import run_recipe

from sfumato.engine.data.units import Units
from sfumato.engine.execution.record_risk import RecordRisk
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.summary import records_at_risk_object, records_at_risk_text
from sfumato.tui.findings.records import record_table
from sfumato.tui.plain.findings import record_lines
from sfumato.workspace.store.rankings import RecordRanking
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.audits import read_audited_record
from sfumato.workspace.views.most_at_risk import RecordsAtRisk, read_records_at_risk
from sfumato.workspace.views.records import (
    RankedRecords,
    RankedUnits,
    RecordMeasure,
    find_unit_match,
    find_unit_matches,
    rank_records,
    read_record_risks,
    record_measures,
)
from sfumato.workspace.views.results import read_result_rows


def ranked(risk: RecordRisk, units: Units, most: int | None = None) -> RankedRecords:
    places = risk.ranking(most)
    ranking = RecordRanking(places.astype(np.int64), risk.select(places), None, int(risk.is_examined.sum()), len(risk))
    measure = RecordMeasure(0, "risk.identification", {}, {1: "", 2: ""}, None)
    return RankedRecords(1, measure, None, ranking, RankedUnits.from_ranking(ranking, units, "households"))


def test_units_and_records_are_counted_by_their_probability() -> None:
    single = np.array([1.0, 0.4, 0.4, np.nan, 0.0])
    ones = np.ones(5)
    risk = RecordRisk(single, ones, None, 2, None, np.array([0.0, 0.0, 0.6, 0.6, 0.0]), ones)
    found = ranked(risk, Units.from_codes(np.array([0, 0, 1, 1, 2])))
    bounds = (1.0, 0.5, 0.2, 0.0)
    assert found.count_by_probability(bounds) == [1, 1, 0, 1], "of units"
    assert replace(found, units=None).count_by_probability(bounds) == [1, 0, 2, 1], "of records that were attacked"


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from((0.0, 0.25, 0.5, 1.0, None))), min_size=1, max_size=16),
    st.lists(st.sampled_from((0.0, 0.3, 1.0)), min_size=6, max_size=6),
)
def test_units_come_by_their_worst_number_with_all_their_records(rows: list[Any], of_units: list[float]) -> None:
    home = np.array([row[0] for row in rows])
    single = np.array([np.nan if row[1] is None else row[1] for row in rows])
    if np.isnan(single).all():
        return
    units = Units.from_codes(home)
    whole = np.array(of_units)[home]
    ones = np.ones(len(rows))
    risk = RecordRisk(single, ones, None, 2, None, whole, 3 * ones)
    found = ranked(risk, units)
    lines = found.lines(0, len(found))
    heads = [line for line in lines if line.is_unit]
    assert found.fold(()).lines(0, len(found)) == heads or np.isnan(single).any()
    opened = found.fold({heads[-1].unit}).lines(0, len(found))
    assert [line.unit for line in opened if line.is_unit] == [line.unit for line in heads]
    assert [line.unit for line in opened if not line.is_unit] == [heads[-1].unit] * heads[-1].members
    worst = {
        int(h): max(v for v in [*single[home == h], *whole[home == h]] if not np.isnan(v))
        for h in np.unique(home)
        if not np.isnan(single[home == h]).all()
    }
    assert [line.probability for line in heads] == sorted(worst.values(), reverse=True)
    assert {home[line.record - 1]: line.probability for line in heads} == worst
    assert all(line.candidates == 3 for line in heads)
    number = {int(h): place + 1 for place, h in enumerate(dict.fromkeys(home.tolist()))}
    for place, line in enumerate(lines):
        assert line.unit == number[int(home[line.record - 1])]
        if line.members is not None:
            below = lines[place + 1 : place + 1 + line.members]
            assert sorted(one.record - 1 for one in below) == np.flatnonzero(home == home[line.record - 1]).tolist()
            known = [one.probability for one in below if not np.isnan(one.probability)]
            assert known == sorted(known, reverse=True)
            for one in below:
                np.testing.assert_equal(one.probability, single[one.record - 1])
    # pages are parts of the same list
    assert [found.lines(k, 1)[0].record for k in range(len(found))] == [line.record for line in lines]
    for most in range(1, len(heads) + 1):
        few = lines[: found.units.count_rows(most)] if found.units else []
        assert sum(line.is_unit for line in few) == most


@pytest.fixture
def own(workspace: Workspace) -> tuple[Workspace, int]:
    """A run in which income is drawn and the rest of each person is kept."""
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA}
    known = ["region", "sex", "age"]
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "release": {"m": 2, "seed": 3},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
            "measure": [{"method": "risk.identification", "known": known, "synthesised": ["income"], "radius": {"income": "20%"}}],
        }
    )  # fmt: skip
    data = as_microdata(draw_households(np.random.default_rng(4), 60), recipe.schema)
    return workspace, run_recipe(workspace, recipe, data, "people.csv", b"people")


@pytest.mark.slow
def test_command_plain_mode_and_json_list_households_with_their_people(own: tuple[Workspace, int]) -> None:
    workspace, run = own
    (measure,) = record_measures(workspace, run)
    risk = read_record_risks(workspace, measure)
    assert risk.unit_probability is not None
    home = draw_households(np.random.default_rng(4), 60)["household"].to_numpy()
    # whoever knows all people of a household finds it where each of them alone has a double
    assert (risk.worse_probability > risk.probability + 1e-9).any()
    found = read_records_at_risk(workspace, run, "", 3, None, with_values=True)
    assert sum(line.is_unit for line in found.lines) == 3
    assert found.values is not None
    assert len(found.values) == len(found.record_lines) == len(found.lines) - 3
    text = records_at_risk_text(found)
    assert f"The 3 most at risk of 60 households ({len(home):,} records)" in text
    assert "household: its number in the order of the file, from 1" in text
    written = records_at_risk_object(found)
    assert (written["unit_noun"], written["total_units"], len(written["units"])) == ("households", 60, 3)
    for one in written["units"]:
        rows = np.flatnonzero(home == one["unit"] - 1)
        assert sorted(one["records"]) == (rows + 1).tolist()
        assert one["probability"] == pytest.approx(np.nanmax(risk.worse_probability[rows]))
    assert [one["unit"] for one in written["records"]] == [line.unit for line in found.record_lines]
    for place, one in enumerate(found.record_lines):
        assert found.values[place]["household"] == home[one.record - 1]
    spoken = record_lines(found)
    assert sum(line.startswith("Household ") for line in spoken) == 3
    first = found.lines[0]
    assert spoken[0].startswith(f"Household {first.unit} of {first.members} record")


@pytest.mark.slow
def test_one_record_is_asked_about_by_its_number(own: tuple[Workspace, int], tmp_path: Path) -> None:
    workspace, run = own
    found: RecordsAtRisk = read_records_at_risk(workspace, run, "", 3, None, 7, with_values=False)
    assert [line.record for line in found.lines] == [7]
    assert "household" in records_at_risk_text(found)


@pytest.mark.slow
def test_a_table_whose_every_record_is_a_unit_is_listed_as_before(workspace: Workspace) -> None:
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA}
    measures = [{"method": "risk.identification", "known": ["region", "sex"], "synthesised": ["income"], "radius": {"income": "20%"}}]  # fmt: skip
    table = {"release": {"m": 1, "seed": 3}, "measure": measures}
    table["synthesis"] = [{"target": "income", "method": "linear_regression", "predictors": ["age"]}]
    frame = draw_households(np.random.default_rng(4), 60).drop_duplicates("household").reset_index(drop=True)
    with_units = Recipe.from_table({**table, "variables": variables})
    run = run_recipe(workspace, with_units, as_microdata(frame, with_units.schema), "people.csv", b"people")
    (measure,) = record_measures(workspace, run)
    records = rank_records(workspace, run, measure)
    assert records.units is None
    assert read_record_risks(workspace, measure).unit_probability is None
    assert all(line.unit is None for line in records.lines(0, 60))
    found = read_records_at_risk(workspace, run, "", 3, None, with_values=False)
    assert "units" not in records_at_risk_object(found)
    assert "household" not in records_at_risk_text(found)


@pytest.mark.slow
def test_the_page_of_the_app_has_a_row_for_each_household_and_below_it_its_people(own: tuple[Workspace, int]) -> None:
    workspace, run = own
    (measure,) = record_measures(workspace, run)
    records = rank_records(workspace, run, measure)
    assert records.units is not None
    (head,) = records.lines(0, 1)
    folded = record_table(records, {}).columns
    assert folded[-1].title == "by one record", "no column is empty as long as no household shows its people"
    heads = records.fold(()).lines(0, 60)
    assert all(line.alone is not None and line.alone <= line.probability + 1e-9 for line in heads)
    matches = find_unit_matches(workspace, records, [line.record for line in heads])
    assert {one: find_unit_match(workspace, records, one) for one in list(matches)[:5]} == dict(
        list(matches.items())[:5]
    )
    assert len(matches) == len(heads)
    one = next(iter(matches))
    same = {number: replace(matches[number], used=("region",), n_found=matches[one].n_datasets) for number in matches}
    assert "found by" not in [column.title for column in record_table(records, {}, (), same).columns]
    other = {**same, one: replace(same[one], used=("region", "sex"))}
    assert record_table(records, {}, (), other).columns[-1].title == "found by", "where it tells them apart"
    table = record_table(records, {1: "age (4)"}, {head.unit})
    titles = [column.title for column in table.columns]
    assert titles[:2] == ["household", "records"]
    first, *below = [table.row_cells(table.columns, line) for line in records.lines(0, 3)]
    assert first[0]
    assert not first[-1]  # a household has no driver
    assert all(not cells[0] for cells in below)
    assert records.listing_text.startswith("60 households (")
    assert len(records) == 60 + records.n_records


@pytest.mark.slow
def test_an_audit_lists_the_households_that_it_left_out(workspace: Workspace) -> None:
    recipe = Recipe.from_table(
        {
            "variables": {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA},
            "release": {"m": 1, "seed": 3},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
            "measure": [{"method": "risk.record_audit", "targets": 2, "people": ["random"], "shadows": 40, "blocks": 1}],
        }
    )  # fmt: skip
    frame = draw_households(np.random.default_rng(4), 60)
    run = run_recipe(workspace, recipe, as_microdata(frame, recipe.schema), "people.csv", b"people")
    rows = [row for row in read_result_rows(workspace, run) if row.measure == "given_away"]
    assert [(row.params.get("by"), row.unit) for row in rows] == [("unit", "units")]
    found = read_records_at_risk(workspace, run, "", 5, None, with_values=False)
    homes = frame["household"].to_numpy()
    listed = [line for line in found.lines if line.is_unit]
    assert len(listed) == len(found.audit_targets) == 2
    assert {homes[one.record - 1] for one in found.audit_targets} == {homes[line.record - 1] for line in listed}
    text = records_at_risk_text(found)
    assert "of 2 households asked about are recognised" in text
    # whoever of a household is named, it is the household that was left out
    for line in found.record_lines:
        one = read_audited_record(workspace, found.records.measure, line.record)
        assert homes[one.record - 1] == homes[line.record - 1]
        assert one.title == f"household of record {one.record:,}"
