"""Names, titles and values that others chose: none of them commands the terminal, from whichever command or screen."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from keyed_workspace import KEY
from prepared_workspaces import finished_workspace, reseal
from terminals import APP, Pty, app_environment

import sfumato.tui.cli
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.plots.markup import escape_text
from sfumato.workspace.release.report import report_page
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

EVIL = "\x1b]52;c;b3duZWQ=\x07\x1b[8m\x9b5m\u202edaer\u2066\u200b\r\x08"
"""Fills the clipboard, hides what follows, turns the direction around, has no width, goes back."""
CLIPBOARD = b"\x1b]52;c;b3duZWQ="
RECIPE = {
    "title": f"Survey{EVIL}",
    "variables": {
        f"region{EVIL}": {"kind": "categorical", "role": "quasi_identifier"},
        f"visits{EVIL}": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": []}],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "risk.identification", "known": [f"region{EVIL}", f"visits{EVIL}"], "radius": {"income": "5%"}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.9}],
}


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two runs of a recipe in which every name is hostile, and so is every other stored text."""
    rng = np.random.default_rng(20)
    region = rng.choice([f"north{EVIL}", "south"], 90)
    frame = pd.DataFrame(
        {f"region{EVIL}": region, f"visits{EVIL}": rng.poisson(4, 90), "income": rng.lognormal(7, 0.4, 90)}
    )
    directory = tmp_path_factory.mktemp("hostile") / "workspace"
    finished_workspace(directory, (RECIPE, RECIPE), frame, f"survey{EVIL}.csv", key=KEY)
    connection = sqlite3.connect(directory / "workspace.db")
    for statement in (
        "UPDATE run SET error = 'failed' || ?",
        "UPDATE task SET key = key || ?1, error = ?1, what = ?1",
        "UPDATE worker SET id = id || ?",
        "UPDATE result SET unit = unit || ?1, reason = reason || ?1",
        "UPDATE diagnostic SET parameter = parameter || ?1",
        "UPDATE verdict SET verdict = json_set(verdict, '$.reason', json_extract(verdict, '$.reason') || ?1)",
    ):
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement, (EVIL,))
    connection.commit()
    connection.close()
    with Workspace.open(directory) as opened:
        reseal(opened)
    return directory


def unseen(printed: str) -> set[str]:
    """What of a text is not there to be read, but for its lines."""
    return {c for c in printed if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"}


COMMANDS = [
    ["runs"],
    ["runs", "1"],
    ["results", "2", "--draws"],
    ["results", "2", "--json", "-"],
    ["compare", "1", "2"],
    ["records", "2", "--values"],
    ["figures", "2", "--width", "70"],
    ["audit", "list"],
    ["audit", "verify"],
    ["release", "2", "-o", f"out{EVIL}"],
    ["release", "2", "-o", f"out{EVIL}", "--reason", f"so{EVIL}"],
    ["report", "2", "-o", f"report{EVIL}.html"],
    ["delete", "--project", f"nobody{EVIL}"],
    ["results", f"7{EVIL}"],
    ["run", f"no-such{EVIL}"],
    ["import", f"no-such{EVIL}.csv"],
    [f"no-such-command{EVIL}"],
    ["runs", f"--no-such-option{EVIL}"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: re.sub(r"\W+", "-", " ".join(command))[:40])
def test_no_command_prints_what_commands_the_terminal(
    hostile_run: Path, home: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    directed = (
        [] if command[0] in ("run", "import") or command[0].startswith("no-such") else ["--workspace", str(hostile_run)]
    )
    sfumato(*command, *directed)
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not unseen(printed.out + printed.err)
    assert "internal error" not in printed.err


def test_the_words_are_hostile_where_nothing_is_done_to_them(hostile_run: Path) -> None:
    """The control: they are stored as they came."""
    with Workspace.open(hostile_run, read_only=True) as workspace:
        stored = workspace.connection.execute("SELECT title FROM run").fetchone()[0]
    assert unseen(stored) >= {"\x1b", "\u202e", "\u200b", "\x9b"}


def test_the_report_hides_and_turns_nothing(hostile_run: Path) -> None:
    with Workspace.open(hostile_run, read_only=True) as workspace:
        assert not re.findall(r".{30}[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066\u200b].{8}", report_page(workspace, 2))
    assert escape_text("a\u202eb\u200bc\x1bd") == "a\ufffdb\ufffdc\ufffdd"
    assert escape_text("naïve ✓ 5 €") == "naïve ✓ 5 €"


@pytest.mark.parametrize("plain", ["", pytest.param("1", marks=pytest.mark.study)])
def test_no_screen_writes_what_commands_the_terminal(hostile_run: Path, tmp_path: Path, plain: str) -> None:
    save_state(hostile_run, AppState(project=1, run=2, tab="runs"))
    environment = app_environment(tmp_path, SFUMATO_PLAIN_TEXTUAL=plain)
    at = Pty([*APP, "--workspace", str(hostile_run)], environment)
    try:
        at.see("Survey").until_quiet(1.0)
        for key in (*"444441", "enter", "escape", "2", "escape", "?", "/"):
            at.press(key).until_quiet(0.6)
        at.type("audit log").press("enter", "enter").see("sha256").until_quiet(0.6)
        for key in ("escape", "q"):
            at.press(key).until_quiet(0.6)
    finally:
        at.close()
    received = at.received
    assert CLIPBOARD not in received
    assert b"\x1b[8m" not in received
    written = received.decode("utf-8", "replace")
    assert not re.findall(r".{20}[\x9b\u202e\u2066\u200b].{8}", written)


def test_commands_speak_through_one_place() -> None:
    """So that no new command forgets it."""
    folder = Path(sfumato.tui.cli.__path__[0])
    loose = [
        p.name
        for p in folder.glob("*.py")
        if p.name != "speech.py" and re.search(r"click\.s?echo|(?<![\w.])print\(", p.read_text("utf-8"))
    ]
    assert not loose
