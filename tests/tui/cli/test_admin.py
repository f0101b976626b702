"""The commands worker, runs RUN, audit and doctor --fix."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from terminals import APP, app_environment

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.worker_main import ENDING_SIGNALS
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.disk import DISK_ERRORS, NO_SPACE, disk_error_message
from sfumato.workspace.store.runs import list_project_summaries
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]


@pytest.fixture
def place(home: Path) -> Path:
    return home / "workspace"


@pytest.fixture
def entered(study: Path, place: Path) -> Iterator[Workspace]:
    """A workspace with a run that nobody has begun."""
    workspace = Workspace.create(place)
    prepare_run(find_recipe(str(study)), key=PUBLIC).enter(workspace)
    yield workspace
    workspace.close()


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*ENDING_SIGNALS, signal.SIGHUP)}
    environment = dict(os.environ)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    os.environ.clear()
    os.environ.update(environment)


@pytest.mark.slow
@pytest.mark.usefixtures("signals")
def test_a_worker_in_the_foreground_carries_out_what_is_there(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("worker", "--jobs", "1", "--idle", "0", "--workspace", str(place)) == 0
    assert sfumato("runs", "1", "--workspace", str(place)) == 0
    said = capsys.readouterr().out
    assert "run 1, Visits: done, 10 of 10 tasks" in said
    assert f"log: {place / 'logs' / 'run-1.log'}" in said
    table = said.splitlines()[3:]
    assert table[0].split() == ["task", "state", "phase", "time", "peak", "tried"]
    assert [line.split()[0] for line in table[2:]][:3] == ["fit/0", "fit/1", "draw/1"]
    assert all(" done " in line and " MB " in line for line in table[2:])


@pytest.mark.slow
def test_a_run_under_way_says_how_far_it_is_and_how_long_it_will_take(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    held = claim_task(entered, "me")
    assert held is not None
    finish_task(entered, held, TaskResult(seconds=4.0))
    assert sfumato("runs", "--workspace", str(place)) == 0
    assert sfumato("runs", "last", "--workspace", str(place)) == 0
    said = capsys.readouterr().out
    assert "1/10" in said
    assert "~36.0 s" in said
    assert "about 36.0 s left" in said


def test_a_run_that_nobody_works_on_says_how_to_go_on(
    entered: Workspace,
    place: Path,
    sfumato: Command,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sfumato.workspace.store.runs.WORKER_START_SECONDS", -60.0)
    assert sfumato("runs", "--workspace", str(place)) == 0
    assert "no worker; sfumato resume 1" in capsys.readouterr().out


def test_a_disk_that_stops_a_worker_has_a_status_and_a_message(
    entered: Workspace,
    place: Path,
    sfumato: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object, **__: object) -> None:
        raise SystemExit(next(status for status, text in DISK_ERRORS.items() if text == NO_SPACE))

    monkeypatch.setattr("sfumato.workspace.jobs.worker_main.run_worker_process", full)
    assert sfumato("worker", "--workspace", str(place)) == 2
    assert "disk is full" in capsys.readouterr().err
    assert disk_error_message(sqlite3.OperationalError("no code")) == ""


def test_the_audit_log_is_listed_and_verified(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("audit", "list", "--workspace", str(place)) == 0
    assert "run entered" in capsys.readouterr().out
    assert sfumato("audit", "verify", "--workspace", str(place)) == 0
    head = capsys.readouterr().out.split()[-1]
    assert sfumato("audit", "verify", "--head", head, "--workspace", str(place)) == 0
    assert sfumato("audit", "verify", "--head", "4:" + "0" * 64, "--workspace", str(place)) == 1
    assert "row 4 is not the one" in capsys.readouterr().err
    assert sfumato("audit", "verify", "--head", "four", "--workspace", str(place)) == 2


def test_a_row_that_was_changed_is_named_by_verify_and_by_doctor(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    entered.connection.execute("DROP TRIGGER audit_keeps_UPDATE")
    entered.connection.execute("UPDATE audit SET subject = 'run 2' WHERE number = 3")
    assert sfumato("audit", "verify", "--workspace", str(place)) == 1
    assert "the audit log is broken: row 3 was changed" in capsys.readouterr().err
    assert sfumato("doctor", "--workspace", str(place)) == 2
    assert "row 3 was changed" in capsys.readouterr().out


def test_a_restored_backup_is_refused_until_it_is_accepted(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ("--workspace", str(place))
    assert sfumato("audit", "accept-rollback", "--reason", "restored from a backup", *where) == 2
    assert "there is nothing to accept" in capsys.readouterr().err
    entered.close()
    shutil.copytree(place, tmp_path / "backup")
    assert sfumato("cancel", "1", *where) == 0
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    capsys.readouterr()
    assert sfumato("audit", "verify", *where) == 1
    assert "accept-rollback" in capsys.readouterr().err
    for command in (
        ("runs",),
        ("results", "1"),
        ("examine", "1"),
        ("resume", "1"),
        ("release", "1", "-o", str(tmp_path / "o")),
    ):
        assert sfumato(*command, *where) == 2
        said = capsys.readouterr().err.strip()
        assert "accept-rollback --reason TEXT" in said
        assert "\n" not in said
    assert sfumato("audit", "accept-rollback", "--reason", "\u200b 12", *where) == 2
    assert "at least 3 different words" in capsys.readouterr().err
    assert sfumato("audit", "accept-rollback", "--reason", "restored after the disk failed", *where) == 0
    assert sfumato("audit", "verify", *where) == 0
    assert "head kept outside: row" in capsys.readouterr().out
    assert sfumato("runs", *where) == 0


def test_verify_says_when_the_head_beside_the_database_is_gone(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "audit.head").unlink()
    assert sfumato("audit", "verify", "--workspace", str(place)) == 0
    assert "audit.head is gone" in capsys.readouterr().out


def test_doctor_removes_what_no_run_needs(
    entered: Workspace, place: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    left = place / "tables" / f"{'0' * 64}.parquet"
    left.write_bytes(b"x")
    os.utime(left, (0, 0))
    kept = sorted(path for path in (place / "tables").iterdir() if path != left)
    sfumato("doctor", "--workspace", str(place))
    assert "1 file that no run needs" in capsys.readouterr().out
    sfumato("doctor", "--fix", "--workspace", str(place))
    assert "1 file removed" in capsys.readouterr().err
    assert sorted((place / "tables").iterdir()) == kept


def test_doctor_fixes_nothing_where_there_is_no_workspace(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("doctor", "--fix", "--workspace", str(home / "none")) == 2
    assert "is not a workspace" in capsys.readouterr().err


def test_a_run_and_a_project_are_deleted_after_a_question(
    entered: Workspace,
    place: Path,
    sfumato: Command,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = ("--workspace", str(place))
    assert sfumato("delete", "1", "--yes", *at) == 2
    assert "run 1 is queued; interrupt it first" in capsys.readouterr().err
    assert sfumato("cancel", "1", *at) == 0
    answers = iter([False, True])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "y" if next(answers) else "n")
    assert sfumato("delete", "1", *at) == 3
    assert len(list_project_summaries(entered)) == 1
    assert list_project_summaries(entered)[0].runs == 1
    assert sfumato("delete", "1", *at) == 0
    assert list_project_summaries(entered)[0].runs == 0
    assert sfumato("delete", "--project", "Visits", "--yes", *at) == 0
    assert list_project_summaries(entered) == []
    capsys.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a run, or a project with --project"),
        (("1", "--project", "Visits"), "name a run, or a project with --project"),
        (("7", "--yes"), 'there is no run "7"'),
        (("--project", "Vists", "--yes"), "there is no project Vists"),
    ],
)
def test_what_cannot_be_deleted_is_said(
    arguments: tuple[str, ...], said: str, entered: Workspace, place: Path, sfumato: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert sfumato("delete", *arguments, "--workspace", str(place)) == 2
    assert said in capsys.readouterr().err
    assert list_project_summaries(entered)[0].runs == 1


@pytest.mark.slow
@pytest.mark.parametrize("times", [4, pytest.param(20, marks=pytest.mark.study)])
def test_doctor_ends_in_good_order_each_time(entered: Workspace, place: Path, tmp_path: Path, times: int) -> None:
    command = [*APP, "doctor", "--workspace", str(place)]
    for _ in range(times):
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=app_environment(tmp_path))
        assert (ended.returncode, ended.stderr) == (0, "")
