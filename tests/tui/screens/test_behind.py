"""From a number of a run to what stands behind it: records, values, a board, a curve; or what the number is."""

import pytest
from textual.widgets import ContentSwitcher

from sfumato.tui.findings.behind import POINT, NumberBasis, find_basis
from sfumato.tui.findings.distribution import DistributionsDialog
from sfumato.tui.findings.records import RecordsPane
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import record_measures
from sfumato.workspace.views.risk_utility import MapAxis, read_risk_utility_map

DONE = 1


def axis_of(directory, key, target=None, level=None):
    with Workspace.open(directory, read_only=True) as workspace:
        found = read_risk_utility_map(workspace, 1).axes
    return next(one for one in found if one.key == key and one.level == level and target in (None, one.target))


def ground(directory, axis):
    with Workspace.open(directory) as workspace:
        return find_basis(workspace, DONE, axis)


@pytest.mark.slow
def test_every_number_of_a_run_has_something_behind_it_or_says_what_it_is(built_data):
    with Workspace.open(built_data) as workspace:
        axes = read_risk_utility_map(workspace, 1).axes
        for axis in axes:
            found = find_basis(workspace, DONE, axis)
            family = axis.key.partition(".")[0]
            assert found.kind == {"studies": "study", "risk": "records", "utility": "values"}[family]
            assert found.variable == (axis.target if found.kind == "values" else "")
        whole = MapAxis("utility.propensity.pmse", "", "{}", None, "low", "")
        said = find_basis(workspace, DONE, whole).message
    assert "utility.propensity.pmse of run 1" in said
    assert "no records, groups or values" in said


@pytest.mark.slow
def test_of_two_uses_the_one_that_the_number_is_of(built_data, monkeypatch):
    """Records of the other would be taken for those behind the number; where neither is it, nothing is shown."""
    axis = axis_of(built_data, "risk.identification.true_match_rate")
    with Workspace.open(built_data) as workspace:
        (own,) = record_measures(workspace, DONE)
    from dataclasses import replace

    other = replace(own, position=own.position + 1, params={**own.params, "radius": {"income": "20%"}})
    views = "sfumato.workspace.views.records.record_measures"
    for measures, place in (([own, other], 0), ([other, own], 1)):
        monkeypatch.setattr(views, lambda *_, found=measures: found)
        assert ground(built_data, axis) == NumberBasis("records", measure=place)
    monkeypatch.setattr(views, lambda *_: [other, replace(other, params={**own.params, "radius": {"income": "9%"}})])
    assert ground(built_data, axis).kind == "nothing"


@pytest.mark.slow
async def test_b_leads_from_a_point_of_the_map_to_the_records(sit, built_data):
    risk, gap = (
        axis_of(built_data, "risk.identification.true_match_rate"),
        axis_of(built_data, "utility.ecdf.max_abs_difference"),
    )
    save_state(built_data, AppState(project=1, run=DONE, tab="map", across=risk.ident, up=gap.ident))
    async with sit(built_data, size=(120, 40)) as seat:
        await seat.press("act:behind")
        assert seat.app.notices[-1].startswith("Move the cursor to a run first")
        await seat.press("right", "act:behind")
        assert seat.app.screen.pane.id == "records"
        assert "Identification risk 1/1 · average over 3 datasets" in seat.text
        await seat.press("act:map", "act:behind_up")
        assert isinstance(seat.app.screen, DistributionsDialog)
        assert f"run 1 · {gap.target}" in seat.text
        await seat.press("q", "t", "act:behind")
        assert seat.app.screen.pane.id == "records"


@pytest.mark.slow
async def test_b_leads_from_a_level_of_a_study_to_its_curve(sit, built_data):
    sweep = axis_of(built_data, "studies.intruder_uncertainty.expected_match_risk", level=0.1)
    save_state(built_data, AppState(project=1, run=DONE, tab="map", across=sweep.ident))
    async with sit(built_data, "right", "act:behind", size=(120, 40)) as seat:
        assert seat.app.screen.pane.id == "sweep"
        for key in ("enter", "t", "enter"):
            said = len(seat.app.notices)
            await seat.press(key)
            assert key == "t" or seat.app.notices[said:] == [POINT]
        assert seat.app.screen.pane.query_one(ContentSwitcher).current == "study-numbers"


@pytest.mark.slow
async def test_the_records_of_another_measure_are_asked_for_though_the_run_is_the_same(sit, built_data):
    async with sit(built_data, tab="records", size=(120, 40)) as seat:
        records = seat.app.screen.pane
        assert isinstance(records, RecordsPane)
        await seat.press(".")
        records.show_by_measure(DONE, 0)
        await seat.press("shift")
        assert "average over 3 datasets" in seat.text
        assert records._wanted is None
