import subprocess
import sys
import threading

import pytest

from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.app.themes import THEMES
from sfumato.tui.parts.page import WorkspaceReader
from sfumato.workspace.store.workspace import Workspace

WALK = [
    "act:results",
    "b",
    "enter",
    "q",
    "act:verdicts",
    "act:sweep",
    "right",
    "o",
    "t",
    "act:diagnostics",
    "question_mark",
    "q",
    "3",
]


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
async def test_every_screen_is_drawn_in_every_theme(sit, directory, theme):
    async with sit(directory, tab="runs") as seat:
        seat.app.theme = theme
        await seat.press("act:results", "act:verdicts", "act:sweep", "question_mark")
        assert "Keys of this place" in seat.text


@pytest.mark.slow
async def test_every_screen_is_drawn_without_colour(sit, directory, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with sit(directory, tab="runs") as seat:
        assert seat.app.no_color
        assert seat.app.theme == "ansi-dark"
        await seat.press(*WALK, "act:verdicts")
        assert "✗ not met" in seat.text
        seat.app.theme = "dark"
        await seat.press("act:results", "act:sweep", "act:verdicts")
        assert "✗ not met" in seat.text


@pytest.mark.slow
async def test_every_screen_is_drawn_in_a_tiny_terminal(sit, directory):
    async with sit(directory, tab="runs", size=(20, 6)) as seat:
        await seat.press(*WALK)
        assert seat.app.is_running


@pytest.mark.slow
async def test_a_resize_lays_everything_out_anew(sit, directory):
    async with sit(directory, tab="results", size=(80, 24)) as seat:
        assert "interval" not in seat.text
        await seat.pilot.resize_terminal(280, 60)
        await seat.press("shift")
        assert "interval" in seat.text
        await seat.press("act:verdicts")
        await seat.pilot.resize_terminal(80, 24)
        await seat.press("shift")
        assert max(map(len, seat.text.splitlines())) <= 80


@pytest.mark.parametrize("variable", ["SSH_CONNECTION", "SSH_TTY"])
def test_nothing_is_animated_over_ssh(directory, monkeypatch, variable):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.delenv("SSH_TTY", raising=False)
    assert SfumatoApp(directory).animation_level != "none"
    monkeypatch.setenv(variable, "x")
    assert SfumatoApp(directory).animation_level == "none"


def test_the_themes_are_ours_and_ansi(directory):
    assert set(SfumatoApp(directory).available_themes) == {"dark", "light", "high-contrast", "ansi-dark", "ansi-light"}


@pytest.mark.slow
def test_starting_imports_no_numerical_library():
    heavy = (
        "sfumato.engine.execution.tasks",
        "sfumato.engine.recipe.recipe",
        "pandas",
        "scipy",
        "pyarrow",
        "duckdb",
        "statsmodels",
        "sklearn",
    )
    code = f"import sys, sfumato.tui.app.app, sfumato.tui.app.project; print([name for name in {heavy!r} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.slow
async def test_the_workspace_is_read_off_the_event_loop(sit, directory, monkeypatch):
    threads = {}
    start = Workspace.__init__

    def note_thread(self, path):
        threads[self] = threading.current_thread()
        start(self, path)

    async with sit(directory, tab="runs") as seat:
        monkeypatch.setattr(Workspace, "__init__", note_thread)
        await seat.press(*WALK)
        assert len(threads) > 5
        assert threading.main_thread() not in threads.values()


@pytest.mark.slow
async def test_an_answer_that_comes_too_late_is_dropped(sit, directory):
    gate, late = threading.Event(), []

    async with sit(directory, tab="runs") as seat:
        pane = seat.app.screen.pane
        assert isinstance(pane, WorkspaceReader)
        pane.read(lambda _: gate.wait(5), lambda _: late.append(1))
        pane.read(lambda _: 0, lambda _: pane.RunChosen(1))
        gate.set()
        await seat.press("shift")
        assert seat.app.is_running


async def test_a_workspace_that_breaks_leaves_the_app_alive(sit, directory):
    async with sit(directory, tab="runs") as seat:
        (directory / "workspace.db").rename(directory / "gone.db")
        seat.app.refresh_page()
        await seat.press("shift")
        assert any("cannot be read" in notice for notice in seat.app.notices)
        assert "[3 Runs]" in seat.text


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["runs", "sweep"])
async def test_many_keys_at_once_break_nothing(sit, directory, tab):
    async with sit(directory, tab=tab) as seat:
        await seat.pilot.press(*"12344b4s4m]ot44143", "enter", "q", *"jkGg", "pagedown", "ctrl+d", "ctrl+u")
        await seat.press("3")
        assert seat.app.is_running
