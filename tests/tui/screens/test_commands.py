"""What was done in the app is done again by the command that it names."""

import json
import shlex
import subprocess
import sys

import pytest
from textual.widgets import Input

from sfumato.tui.app.commands import EquivalentCommands
from sfumato.workspace.store.runs import find_run, list_runs
from sfumato.workspace.store.workspace import Workspace

DONE = 1


def lines(seat):
    return [text for _, text in seat.app.screen._lines]


def paste(text):
    """Run a command line as a shell would, with this installation's ``sfumato``."""
    command = f"sfumato() {{ {shlex.quote(sys.executable)} -c 'from sfumato.tui.cli.main import main; main()' \"$@\"; }}; {text}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "keys", "words"),
    [
        ("runs", (), "runs"),
        ("results", (), "results 1"),
        ("results", ("b",), "results 1 --draws"),
        ("verdicts", (), "results 1"),
        ("sweep", (), "figures 1"),
        ("records", (), "records 1 --measure 'measure[2]'"),
        ("records", ("full_stop",), "records 1 --measure 'measure[2]' --draw 1"),
        ("plan", (), "plan survey.csv"),
        ("runs", ("act:audit",), "audit list"),
        ("runs", ("act:doctor",), "doctor"),
        ("runs", ("G", "act:distributions"), "figures 1"),
    ],
)
async def test_what_is_shown_has_its_command(sit, built_data, tab, keys, words):
    async with sit(built_data, *keys, "at", tab=tab, size=(80, 24)) as seat:
        name = seat.app.screen_stack[1]._title
        expected = words.replace("survey.csv", shlex.quote(name))
        assert lines(seat)[0] == f"sfumato {expected} --workspace {shlex.quote(str(built_data))}"
        assert "Equivalent commands" in seat.text


@pytest.mark.slow
async def test_a_command_is_copied_by_its_key(sit, built_data):
    async with sit(built_data, "at", "enter", tab="results") as seat:
        assert (built_data / "copied.txt").read_text() == f"sfumato results 1 --workspace {built_data}"
        assert "sfumato results 1" in seat.app.notices[-1]
        assert isinstance(seat.app.screen, EquivalentCommands)


@pytest.mark.slow
async def test_acts_are_remembered_and_work_when_they_are_pasted(sit, built_data, no_worker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # the run that was started is the current one: G goes back to the one that has a report
    async with sit(built_data, "G", "R", "y", "G", "P", "enter", tab="runs") as seat:
        await seat.press("at")
        shown = lines(seat)
        assert [line.split()[1] for line in shown] == ["runs", "report", "again"]
        again, report = shown[2], shown[1].replace("run-1-report.html", "pasted.html")
    listed = paste(shown[0])
    assert listed.returncode == 0, listed.stderr
    assert "Household survey" in listed.stdout
    assert paste(report).returncode == 0
    assert (tmp_path / "pasted.html").read_text() == (tmp_path / "run-1-report.html").read_text()
    done = paste(f"{again} --quiet")
    assert done.returncode == 1, done.stderr
    with Workspace.open(built_data, read_only=True) as reader:
        newest, first = list_runs(reader)[0], find_run(reader, DONE)
        assert (newest.recipe_sha256, newest.dataset_id) == (first.recipe_sha256, first.dataset_id)
        assert newest.state.value == "done"


@pytest.mark.slow
async def test_an_edit_of_the_plan_shows_the_line_that_it_changed(sit, built_data):
    async with sit(built_data, "g", "G", "k", "k", "enter", tab="plan", size=(160, 40)) as seat:
        field = next(one for one in seat.app.screen.query(Input) if one.value == "0.9")
        field.value = "0.8"
        await seat.press("shift", "enter")
        assert "max = 0.8   (was max = 0.9)" in seat.text
        await seat.press("at")
        assert lines(seat)[1] == "- max = 0.9; + max = 0.8"
        await seat.press("q", "u")
        assert "max = 0.9   (was max = 0.8)" in seat.text


@pytest.mark.slow
async def test_what_is_shown_is_shown_by_the_command_too(sit, built_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with sit(built_data, "at", tab="results") as seat:
        (copied,) = lines(seat)
    assert paste(f"{copied} --json numbers.json").returncode == 0
    assert json.loads((tmp_path / "numbers.json").read_text())["run"] == DONE


async def test_a_session_without_acts_says_so(sit, empty_workspace):
    async with sit(empty_workspace, "at") as seat:
        assert "Nothing has been done yet" in seat.text
        await seat.press("enter")
