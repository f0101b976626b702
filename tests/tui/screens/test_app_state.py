import json

import pytest

from sfumato.tui.app.app import launch_app
from sfumato.tui.session.state import AppState, load_state, save_state
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.errors import NotAWorkspace, NotFound
from sfumato.workspace.store.workspace import Workspace

FILE = "app-state.json"


@pytest.mark.slow
async def test_what_was_open_is_open_again(sit, directory):
    async with sit(directory, "enter", "j", "j", "j", "enter", "act:results", "s", "s", "b") as seat:
        before = seat.text
    async with sit(directory) as seat:
        # What is known of the gate's answer is of a session.
        now, then = (text.splitlines()[:3] for text in (seat.text, before))
        assert now[1:] == then[1:]
        assert now[0].partition("  not ")[0] == then[0].partition("  not ")[0]
        assert "by target" in seat.text
        assert "all rows" in seat.text


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["runs", "results", "records", "data"])
async def test_the_cursor_is_on_its_row_again(sit, built_data, monkeypatch, tab):
    monkeypatch.setattr("sfumato.tui.app.project.REST_SECONDS", 0.01)
    async with sit(built_data, "j", "j", tab=tab) as seat:
        await seat.press("k")
        before = seat.app.screen.pane.query(Grid).first().cursor_place
        await seat.until(lambda: load_state(built_data).row == before)
    async with sit(built_data) as seat:
        assert seat.app.screen.pane.query(Grid).first().cursor_place == before
        assert seat.app.screen.pane.query(Grid).first().cursor > 0


@pytest.mark.slow
async def test_the_row_of_another_project_is_not_looked_for(sit, directory):
    save_state(directory, AppState(project=1, row="3"))
    async with sit(directory, "q"):
        assert load_state(directory).project is None
    async with sit(directory, "enter") as seat:
        assert seat.app.screen.pane.query(Grid).first().cursor == 0


@pytest.mark.slow
async def test_state_is_written_on_every_change(sit, directory):
    async with sit(directory, "enter", "act:sweep", "o"):
        state = load_state(directory)
        assert (state.project, state.tab, state.log) == (1, "sweep", True)
        assert ((directory / FILE).stat().st_mode & 0o777) == 0o600
        assert not list(directory.glob(f"{FILE}.*"))


@pytest.mark.slow
async def test_leaving_the_project_is_remembered(sit, directory):
    async with sit(directory, "enter", "q"):
        assert load_state(directory).project is None


async def test_a_theme_is_remembered(sit, directory):
    async with sit(directory) as seat:
        seat.app.theme = "high-contrast"
        await seat.press("shift")
    async with sit(directory) as seat:
        assert seat.app.theme == "high-contrast"


@pytest.mark.slow
@pytest.mark.parametrize("run_id", [1, 2, 4])
async def test_a_run_that_is_asked_for_is_shown(sit, directory, run_id):
    async with sit(directory, run_id=run_id) as seat:
        assert f"run {run_id}" in seat.text.splitlines()[0]
        tab = {1: "[Verdicts]", 2: "[Numbers]", 4: "[3 Runs]"}[run_id]
        assert tab in seat.text


def test_launching_without_such_a_run_or_workspace_is_refused(directory, tmp_path):
    with pytest.raises(NotFound, match='no run "99"'):
        launch_app(directory, 99)
    with pytest.raises(NotAWorkspace):
        launch_app(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"project": "one", "tab": 3, "draws": 1, "filter": null, "sort": "gone", "unknown": 1}'],
)
def test_a_damaged_state_is_no_obstacle(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert load_state(tmp_path) == AppState()


@pytest.mark.slow
async def test_a_tab_of_another_version_is_not_believed(sit, directory):
    save_state(directory, AppState(project=1, tab="gone"))
    async with sit(directory) as seat:
        assert "[3 Runs]" in seat.text


async def test_a_project_that_is_gone_is_not_opened(sit, directory):
    save_state(directory, AppState(project=77, run=5))
    async with sit(directory) as seat:
        assert "Second project" in seat.text


def test_a_state_comes_back_as_it_was(tmp_path):
    state = AppState(3, 4, "sweep", True, "risk !known", "value", True, theme="light", row="7")
    save_state(tmp_path, state)
    assert load_state(tmp_path) == state
    assert json.loads((tmp_path / FILE).read_text())["filter"] == "risk !known"


def test_a_directory_that_cannot_be_written_is_no_obstacle(tmp_path):
    save_state(tmp_path / "gone", AppState())
    assert load_state(tmp_path / "gone") == AppState()


async def test_a_look_at_the_workspace_while_the_app_ends_does_no_harm(sit, directory):
    async with sit(directory) as seat:
        app = seat.app
    assert not app.screen_stack
    app.refresh_page()


async def test_a_run_that_ends_rings_the_bell_once_and_the_way_is_remembered(sit, directory, monkeypatch):
    sent = []
    monkeypatch.setattr("sfumato.tui.app.app.send_to_terminal", lambda _, text: sent.append(text))
    monkeypatch.delenv("SFUMATO_NOTIFY", raising=False)
    monkeypatch.delenv("TMUX", raising=False)
    async with sit(directory) as seat:
        seat.app._poll_workspace()
        with Workspace.open(directory) as workspace:
            workspace.connection.execute("UPDATE run SET state = 'done', finished = created + 60 WHERE id = 4")
        seat.app._poll_workspace()
        seat.app._poll_workspace()
        assert [text for text in sent if text] == ["\a"]
        seat.app.action_when_run_ends()
        assert "message of the desktop" in seat.app.notices[-1]
        with Workspace.open(directory) as workspace:
            workspace.connection.execute("UPDATE run SET state = 'running' WHERE id = 4")
            seat.app._poll_workspace()
            workspace.connection.execute("UPDATE run SET state = 'failed' WHERE id = 4")
        seat.app._poll_workspace()
        assert sent[-1] == "\a\x1b]9;Sfumato: run 4 has failed\x1b\\"
    assert load_state(directory).notify == "osc9"


@pytest.mark.slow
async def test_garbage_is_looked_for_when_nobody_presses_a_key(sit, directory, monkeypatch):
    collected = []
    monkeypatch.setattr("sfumato.tui.app.app.gc.collect", lambda: collected.append(1))
    monkeypatch.setattr("sfumato.tui.app.app.gc.freeze", lambda: None)
    async with sit(directory, "enter", *"jkjkjkjkjkjk") as seat:
        seat.app.owns_process = True
        seat.app._keys_seen = seat.app._keys_collected = 0
        seat.app._poll_workspace()
        assert collected == [], "keys have just been pressed"
        seat.app._poll_workspace()
        seat.app._poll_workspace()
        assert collected == [1], "once for these keys"
        await seat.press("j")
        seat.app._poll_workspace()
        seat.app._poll_workspace()
        assert collected == [1], "one key is not worth it"
