"""An audit on screen: people by proven risk, and what gives one of them away."""

import shutil

import pytest

from sfumato.tui.parts.audited import AuditedTargetDialog
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.audits import read_audited_records
from sfumato.workspace.views.records import rank_records, record_measures

AUDIT = [{"method": "risk.record_audit", "targets": 3, "shadows": 40, "blocks": 2, "datasets": 1}]
LIMIT = [{"value": "risk.record_audit.values_largest_auc", "params": {"people": "vulnerable"}, "max": 0.99}]
pytestmark = pytest.mark.slow


@pytest.fixture
def audit_workspace(computed, tmp_path):
    return shutil.copytree(computed(measure=AUDIT, threshold=LIMIT), tmp_path / "workspace")


async def test_records_lists_the_targets_and_enter_says_what_gives_one_away(sit, audit_workspace):
    with Workspace.open(audit_workspace, read_only=True) as workspace:
        (measure,) = record_measures(workspace, 1)
        (first,) = rank_records(workspace, 1, measure).lines(0, 1)
        assert {first.record} <= {one.record for one in read_audited_records(workspace, measure)}
    save_state(audit_workspace, AppState(project=1, run=1, tab="records"))
    async with sit(audit_workspace, size=(140, 40)) as seat:
        assert "Audit of single records 1/1 · shadow releases" in seat.text
        assert "nan" not in seat.text.lower()
        text = await seat.press("enter")
        assert isinstance(seat.app.screen, AuditedTargetDialog)
        assert f"record {first.record:,}" in text
        assert "recognised by" in text
        assert "what to change" in text


async def explain_verdict(seat):
    """Go past what the gate finds to the first verdict, and explain it."""
    board = seat.app.screen.query_one(VerdictBoard)
    for _ in range(60):
        if board.chosen_verdict is not None:
            break
        await seat.press("j")
    assert board.chosen_verdict is not None
    return await seat.press("enter")


async def test_findings_show_a_strip_of_every_target(sit, audit_workspace):
    save_state(audit_workspace, AppState(project=1, run=1, tab="verdicts"))
    async with sit(audit_workspace, size=(140, 50)) as seat:
        text = await explain_verdict(seat)
        assert "people asked about are recognised" in text
        assert "●" in text


async def test_from_findings_two_keys_lead_to_what_gives_the_first_target_away_and_to_its_lever(sit, audit_workspace):
    with Workspace.open(audit_workspace, read_only=True) as workspace:
        (measure,) = record_measures(workspace, 1)
        targets = read_audited_records(workspace, measure)
    save_state(audit_workspace, AppState(project=1, run=1, tab="verdicts"))
    async with sit(audit_workspace, size=(80, 24)) as seat:
        text = await explain_verdict(seat)
        assert ". people recognised" in text
        text = await seat.press("full_stop")
        assert isinstance(seat.app.screen, AuditedTargetDialog)
        assert f"record {targets[0].record:,} of run 1 · 1 of {len(targets)} targets" in text
        assert "recognised by" in text
        await seat.press("end")
        assert "what to change" in seat.text
        text = await seat.press("full_stop")
        assert f"record {targets[1].record:,} of run 1 · 2 of" in text
        text = await seat.press("comma", "comma")
        assert f"record {targets[-1].record:,} of run 1" in text


async def test_a_number_of_an_audit_in_the_table_leads_there_with_enter(sit, audit_workspace):
    save_state(audit_workspace, AppState(project=1, run=1, tab="results"))
    async with sit(audit_workspace, size=(80, 24)) as seat:
        text = await seat.press("enter")
        assert "enter people recognised" in text
        await seat.press("enter")
        assert isinstance(seat.app.screen, AuditedTargetDialog)


async def test_a_number_that_no_audit_made_leads_to_nobody(sit, built_data):
    save_state(built_data, AppState(project=1, run=1, tab="verdicts"))
    async with sit(built_data, size=(80, 24)) as seat:
        assert "people recognised" not in await seat.press("enter")
        await seat.press("full_stop")
        assert not isinstance(seat.app.screen, AuditedTargetDialog)
