"""The acts of Release about a population, by keys alone: its ledger, and that other people were asked."""

import pytest
from prepared_populations import PROJECT, REASON, WEAK_REASON, charged_workspace

from sfumato.tui.parts.form import Form
from sfumato.tui.release.release import LedgerDialog, ReleaseScreen
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.audit import AuditAct, audit_rows, user
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
SMALL = (80, 24)


@pytest.fixture
def charged(tmp_path):
    """A workspace with a release that is charged; the run that is not released is the open one."""
    directory = charged_workspace(tmp_path / "charged")
    save_state(directory, AppState(project=1, run=2, tab="verdicts"))
    return directory


def statements(directory):
    """The statements of other people in the audit log."""
    with Workspace.open(directory) as workspace:
        rows = [one for one in audit_rows(workspace.connection) if one.act == AuditAct.POPULATION_BEGUN]
    return [one.details_table for one in rows]


def keys_of_text(text):
    return ["space" if sign == " " else sign for sign in text]


async def choose_act(seat, title):
    """Choose an act in the palette by its title."""
    await seat.press("ctrl+p", *keys_of_text(title), "enter")
    for _ in range(200):
        # a dialog is laid out for its text a moment after it is there
        before = seat.text
        await seat.pilot.pause(0.05)
        if seat.text == before:
            break
    await seat.press("shift")


def words(seat):
    """What the terminal shows, on one line."""
    return " ".join(seat.text.split())


async def test_the_ledger_is_whole_in_the_smallest_terminal(sit, charged):
    async with sit(charged, "w", size=SMALL) as seat:
        await choose_act(seat, "privacy ledger")
        assert isinstance(seat.app.screen, LedgerDialog)
        for sentence in (
            f'The population "{PROJECT}": 1 release charged, epsilon 2, delta 1e-09.',
            "Of the budget of epsilon 3, 1 is left.",
            "Run 1, ",
            ": epsilon 2.",
        ):
            assert sentence in words(seat)
        await seat.press("q")
        assert isinstance(seat.app.screen, ReleaseScreen)


async def test_keys_alone_state_that_other_people_were_asked(sit, charged):
    """The release is examined again, and its epsilon is then the first of a new budget."""
    async with sit(charged, "w", size=SMALL) as seat:
        await seat.press("shift")
        assert "1.333" in seat.text
        await choose_act(seat, "other people")
        assert isinstance(seat.app.screen, Form)
        assert "the ledger of these people begins with the whole budget" in words(seat)
        await seat.press(*keys_of_text("Spring 2026"), "tab", *keys_of_text(REASON), "enter")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert seat.app.notices[-1] == "Run 2 is charged to Spring 2026 from now on"
        assert "1.333" not in seat.text
        await choose_act(seat, "privacy ledger")
        assert 'The population "Spring 2026": no release is charged yet.' in words(seat)
        assert f"{user()} stated on" in words(seat)
        assert "Of the budget of epsilon 3, 3 is left." in words(seat)
        await seat.press("q", "q", "at")
        assert f"sfumato population '{PROJECT}' --others 'Spring 2026'" in words(seat)
    (statement,) = statements(charged)
    assert (statement["population"], statement["previous"]) == ("Spring 2026", PROJECT)
    assert (statement["reason"], statement["user"]) == (REASON, user())


async def test_a_name_in_use_and_a_weak_reason_are_asked_for_again(sit, charged):
    async with sit(charged, "w", size=SMALL) as seat:
        await choose_act(seat, "other people")
        await seat.press(*keys_of_text(PROJECT.upper()), "tab", *keys_of_text(REASON), "enter")
        assert isinstance(seat.app.screen, Form)
        assert f'"{PROJECT.upper()}" is in use in this workspace; choose a new name' in words(seat)
        await seat.press(
            "shift+tab", "ctrl+u", *keys_of_text("Spring 2026"), "tab", "ctrl+u", *keys_of_text(WEAK_REASON), "enter"
        )
        assert isinstance(seat.app.screen, Form)
        assert "reason: needs at least 3 different words that say who was asked, and when" in words(seat)
        assert statements(charged) == []
        await seat.press("ctrl+u", *keys_of_text(REASON), "enter")
        assert isinstance(seat.app.screen, ReleaseScreen)
    assert [one["reason"] for one in statements(charged)] == [REASON]


async def test_a_form_that_is_left_states_nothing(sit, charged):
    async with sit(charged, "w", size=SMALL) as seat:
        await choose_act(seat, "other people")
        await seat.press(*keys_of_text("Spring 2026"), "tab", *keys_of_text(REASON), "escape")
        assert isinstance(seat.app.screen, ReleaseScreen)
    assert statements(charged) == []
