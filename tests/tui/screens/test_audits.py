"""An audit on screen: people by proven risk, and what gives one of them away."""

import shutil

import pytest

from sfumato.tui.screens.audited import Audited
from sfumato.tui.state import AppState, save_state
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.audits import audited
from sfumato.workspace.views.records import open_records, record_measures

AUDIT = [{"method": "risk.record_audit", "targets": 3, "shadows": 40, "blocks": 2, "datasets": 1}]
LIMIT = [{"value": "risk.record_audit.values_largest_auc", "params": {"people": "vulnerable"}, "max": 0.99}]
pytestmark = pytest.mark.slow


@pytest.fixture
def made(computed, tmp_path):
    return shutil.copytree(computed(measure=AUDIT, threshold=LIMIT), tmp_path / "workspace")


async def test_records_lists_the_targets_and_enter_says_what_gives_one_away(sit, made):
    with Workspace.open(made, read_only=True) as workspace:
        (measure,) = record_measures(workspace, 1)
        (first,) = open_records(workspace, 1, measure).lines(0, 1)
        assert {first.record} <= {one.record for one in audited(workspace, measure)}
    save_state(made, AppState(project=1, run=1, tab="records"))
    async with sit(made, size=(140, 40)) as seat:
        assert "risk.record_audit 1/1 · shadow releases" in seat.text
        assert "nan" not in seat.text.lower()
        text = await seat.press("enter")
        assert isinstance(seat.app.screen, Audited)
        assert f"record {first.record:,}" in text
        assert "what gives away" in text
        assert "what to change" in text


async def test_findings_show_a_strip_of_every_target(sit, made):
    save_state(made, AppState(project=1, run=1, tab="verdicts"))
    async with sit(made, size=(140, 50)) as seat:
        text = await seat.press("enter")
        assert "people asked about are given away" in text
        assert "●" in text
