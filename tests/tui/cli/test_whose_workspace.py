"""Which workspace a command works in: the one that was named, wherever it was named, or that of this terminal session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.tui.session import places
from sfumato.tui.session.places import default_workspace, remember_workspace
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def two(home: Path) -> Path:
    """A home with two workspaces, of which ``b`` was used last."""
    for name in ("a", "b"):
        Workspace.create(home / name).close()
    remember_workspace(home / "b")
    return home


def test_a_workspace_named_before_the_command_holds(two: Path, sfumato: Command, capsys: Capture) -> None:
    assert sfumato("--workspace", "a", "runs") == 0
    assert capsys.readouterr().err == ""
    assert sfumato("--workspace", "nowhere", "runs") == 2
    assert "nowhere is not a workspace" in capsys.readouterr().err
    assert sfumato("--workspace", "nowhere", "runs", "--workspace", "a") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", [["runs"], ["audit", "list"], ["audit", "verify"], ["doctor"]])
def test_a_command_names_the_workspace_that_nobody_named(
    two: Path, sfumato: Command, capsys: Capture, command: list[str]
) -> None:
    sfumato(*command)
    printed = capsys.readouterr()
    assert printed.err.splitlines().count(f"workspace: {two / 'b'}") == 1
    assert "workspace: " not in printed.out


@pytest.mark.parametrize(
    "command", [["release", "-o", "out"], ["release", "last", "-o", "out"], ["delete", "last", "--yes"]]
)
def test_what_cannot_be_taken_back_needs_a_number_or_a_workspace(
    two: Path, sfumato: Command, capsys: Capture, command: list[str]
) -> None:
    assert sfumato(*command) == 2
    assert '"last" needs --workspace DIR here' in capsys.readouterr().err
    assert sfumato(*command, "--workspace", "a") == 2
    assert "needs --workspace" not in capsys.readouterr().err


def test_another_terminal_has_a_last_workspace_of_its_own(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = [71]
    monkeypatch.setattr(places.os, "getsid", lambda _: session[0])
    for session[0], name in ((71, "a"), (72, "b")):
        remember_workspace(two / name)
    for session[0], name in ((71, "a"), (72, "b")):
        assert default_workspace() == two / name


def test_a_process_of_another_session_does_not_see_this_one_s(two: Path) -> None:
    ask = [sys.executable, "-c", "from sfumato.tui.session.places import default_workspace as d; print(d())"]
    for alone, wanted in ((False, two / "b"), (True, two / "data" / "sfumato" / "workspace")):
        found = subprocess.run(ask, capture_output=True, text=True, check=True, start_new_session=alone)
        assert found.stdout.strip() == str(wanted)


def test_the_one_file_of_earlier_versions_makes_way(home: Path) -> None:
    (home / "state" / "sfumato").mkdir(parents=True)
    (home / "state" / "sfumato" / "last-workspace").write_text(str(home), "utf-8")
    remember_workspace(home)
    assert default_workspace() == home


@pytest.mark.slow
def test_what_is_written_is_its_user_s_alone(study: Path, sfumato: Command) -> None:
    before = os.umask(0o022)
    try:
        assert sfumato("import", "visits.csv", "--workspace", "w", "--recipe", "new.toml") == 0
        assert sfumato("run", str(study), "--workspace", "w", "--jobs", "1", "--json", "out.json", "--quiet") == 0
        assert sfumato("report", "--workspace", "w", "-o", "report.html") == 0
        assert sfumato("figures", "--workspace", "w", "--svg", "plots") == 0
        assert sfumato("release", "1", "--workspace", "w", "-o", "out", "--reason", "released for a test") == 0
    finally:
        assert os.umask(before) == 0o022
    written = [Path(name) for name in ("new.toml", "out.json", "report.html", "plots", "out", "w")]
    every = [path for top in written for path in (top, *(top.rglob("*") if top.is_dir() else ()))]
    assert len(every) > 15
    assert not [str(path) for path in every if path.stat().st_mode & 0o077]
