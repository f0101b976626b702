"""What nobody foresaw is told without the words of the error, which may hold values."""

import pytest

from sfumato.tui.parts.page import unexpected_error
from sfumato.tui.session import jobs
from sfumato.tui.session.state import AppState, save_state

SECRET = "731954"


def breaking(*_, **__):
    raise RuntimeError(SECRET)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "tab"),
    [
        ("sfumato.workspace.views.records.record_measures", "records"),
        ("sfumato.tui.findings.verdicts.read_verdicts", "verdicts"),
    ],
)
async def test_a_pane_that_cannot_be_read_says_so(sit, built_data, no_worker, monkeypatch, what, tab):
    monkeypatch.setattr(what, breaking)
    async with sit(built_data, tab=tab) as seat:
        assert seat.app.notices[-1].startswith("Unexpected RuntimeError in test_worker_errors.py, line ")
        assert SECRET not in seat.app.notices[-1]


async def test_a_dialog_that_cannot_be_read_says_so(sit, built_data, no_worker, monkeypatch):
    monkeypatch.setattr("sfumato.workspace.recipes.shipped_recipes", breaking)
    async with sit(built_data, "n") as seat:
        assert seat.app.notices[-1].startswith("Unexpected RuntimeError in test_worker_errors.py")


async def test_a_job_that_breaks_says_so(sit, built_data, no_worker, monkeypatch):
    monkeypatch.setattr(jobs, "run_again", breaking)
    save_state(built_data, AppState())
    async with sit(built_data) as seat:
        seat.app.run_again(1)
        await seat.press("shift")
        assert seat.app.notices[-1].startswith("Unexpected RuntimeError in test_worker_errors.py")


@pytest.mark.slow
async def test_a_pane_that_can_be_read_says_nothing(sit, built_data, no_worker):
    async with sit(built_data, tab="records") as seat:
        assert seat.app.notices == []


def test_an_error_that_was_never_raised_has_no_place():
    assert unexpected_error(KeyError(SECRET)) == "Unexpected KeyError: what is shown here may be incomplete"
