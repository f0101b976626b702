"""Names and notes of runs on the command line: given, used in place of a number, and never in a public file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def entered(study: Path) -> None:
    """Two runs in workspace w, not begun."""
    with Workspace.create(Path("w")) as workspace:
        for _ in range(2):
            prepare_run(find_recipe(str(study)), key=PUBLIC).enter(workspace)


@pytest.mark.usefixtures("entered")
def test_a_name_stands_for_the_number_of_a_run(sfumato: Command, capsys: Printed) -> None:
    assert sfumato("runs", "1", "--name", "Reference", "--note", "for the board", "--workspace", "w") == 0
    said = capsys.readouterr().out
    assert 'run 1, "Reference", Visits: queued' in said
    assert "note: for the board" in said
    assert "fit/0" not in said, "who names a run does not ask for its tasks"
    assert sfumato("runs", "reference", "--workspace", "w") == 0
    assert "run 1, " in capsys.readouterr().out
    assert sfumato("runs", "--workspace", "w") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [("Reference · Visits" in line) for line in lines[-2:]] == [False, True]
    assert sfumato("cancel", "REFERENCE", "--workspace", "w") == 0
    assert "run 1 is cancelled" in capsys.readouterr().out
    assert sfumato("runs", "1", "--name", "", "--workspace", "w") == 0
    assert sfumato("runs", "reference", "--workspace", "w") == 2
    assert 'there is no run "reference"' in capsys.readouterr().err
    assert sfumato("audit", "list", "--workspace", "w") == 0
    said = capsys.readouterr().out
    assert "run named" in said
    assert "board" not in said


@pytest.mark.usefixtures("entered")
def test_a_name_that_is_refused_says_why_and_changes_nothing(sfumato: Command, capsys: Printed) -> None:
    assert sfumato("runs", "--name", "a", "--workspace", "w") == 2
    assert "need the RUN" in capsys.readouterr().err
    assert sfumato("runs", "1", "--name", "2", "--workspace", "w") == 2
    assert '"2" is a number' in capsys.readouterr().err
    assert sfumato("runs", "1", "--name", "a", "--workspace", "w") == 0
    assert sfumato("runs", "2", "--name", "A", "--note", "x", "--workspace", "w") == 2
    assert 'run 1 is called "A" already' in capsys.readouterr().err
    assert sfumato("runs", "2", "--workspace", "w") == 0
    assert "note" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("entered")
def test_a_name_is_in_the_report_and_in_no_public_file(sfumato: Command, home: Path) -> None:
    run_worker(Path("w").resolve(), idle=0)
    assert sfumato("runs", "1", "--name", "Qwertz", "--note", "asdfgh", "--workspace", "w") == 0
    assert sfumato("report", "qwertz", "-o", "r.html", "--workspace", "w") == 0
    assert sfumato("report", "qwertz", "-o", "p.html", "--public", "--workspace", "w") == 0
    assert sfumato("release", "qwertz", "-o", "out", "--reason", "for the test", "--workspace", "w") == 0
    report = (home / "r.html").read_text("utf-8")
    assert "Qwertz" in report
    assert "asdfgh" in report
    public = [home / "p.html", *(path for path in (home / "out" / "public").rglob("*") if path.is_file())]
    assert len(public) > 3
    for path in public:
        text = path.read_bytes()
        assert b"Qwertz" not in text, path
        assert b"asdfgh" not in text, path
