"""The plan of a project on the command line, and a run once more."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_a_plan_is_printed_written_and_run_and_a_run_repeated(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("run", str(study), "--workspace", "w", "--quiet") == 0
    with Workspace.open(Path("w"), read_only=True) as reader:
        draft = find_draft(reader, 1)
        name = reader.connection.execute("SELECT name FROM project").fetchone()[0]
    assert draft is not None
    capsys.readouterr()
    assert sfumato("plan", name, "--workspace", "w") == 0
    assert capsys.readouterr().out == draft.toml
    assert sfumato("plan", name, "--workspace", "w", "--json") == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["project"], written["recipe"]) == (name, tomllib.loads(draft.toml))
    assert sfumato("plan", name, "-o", "p.toml", "--workspace", "w") == 0
    assert Path("p.toml").read_text() == draft.toml
    assert sfumato("plan", name, "-o", "p.toml", "--workspace", "w") == 2
    assert "exists; name another file" in capsys.readouterr().err
    assert sfumato("plan", name, "--run", "--workspace", "w", "--quiet") == 0
    assert sfumato("again", "1", "--workspace", "w", "--quiet") == 0
    with Workspace.open(Path("w"), read_only=True) as reader:
        runs = list_runs(reader)
        assert [run.id for run in runs] == [3, 2, 1]
        rows = [
            reader.connection.execute("SELECT measure, value FROM result WHERE run_id = ?", (run.id,)).fetchall()
            for run in runs
        ]
    assert len({tuple(map(tuple, found)) for found in rows}) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "nobody"), "there is no project nobody"),
        (("plan", "x", "--run", "-o", "y.toml"), "either run it"),
        (("again", "7"), 'there is no run "7"'),
    ],
)
def test_what_cannot_be_done_is_said(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    sfumato("init", "w")
    assert sfumato(*arguments, "--workspace", "w") == 2
    assert said in capsys.readouterr().err
