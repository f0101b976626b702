"""The log of a run: what happened to its tasks, no value of the data, and never larger than it may be."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store import run_log as runs
from sfumato.workspace.store.run_log import LOG_TAIL_BYTES, MAX_LINE_LENGTH, append_to_run_log, log_task, read_run_log
from sfumato.workspace.store.runs import list_tasks
from sfumato.workspace.store.workspace import Workspace


@pytest.mark.slow
def test_every_task_of_a_run_is_in_its_own_log(workspace: Workspace, enter: Callable[..., int]) -> None:
    run_ids = [enter(), enter()]
    run_worker(workspace.directory, idle=0)
    for run_id in run_ids:
        lines = runs.run_log_path(workspace.directory, run_id).read_text().splitlines()
        keys = [task.key for task in list_tasks(workspace, run_id)]
        for words in (": begun", ": done in "):
            assert [line.split()[1] for line in lines if words in line] == keys
        assert all(" MB" in line for line in lines if ": done in " in line)
        entries = read_run_log(workspace.directory, run_id)
        assert [(one.task, one.attempt, one.lines[0]) for one in entries if one.lines == ("begun",)] == [
            (key, 1, "begun") for key in keys
        ]


def test_the_log_is_for_its_owner_alone_and_holds_no_value(
    workspace: Workspace, enter: Callable[..., int], small_data: Microdata
) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    path = runs.run_log_path(workspace.directory, run_id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = path.read_text()
    assert not [value for value in small_data.column("income") if str(value)[:8] in text]


def test_a_log_that_grows_too_large_is_set_aside_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.rotate_log, "__defaults__", (1000,))
    for number in range(200):
        append_to_run_log(tmp_path, 1, f"line {number:03} of a log")
    path = runs.run_log_path(tmp_path, 1)
    assert sorted(file.name for file in path.parent.iterdir()) == ["run-1.log", "run-1.log.1"]
    assert all(file.stat().st_size < 1100 for file in path.parent.iterdir())
    assert path.read_text().splitlines()[-1].endswith("line 199 of a log")


def test_entries_are_read_back_with_their_further_lines(tmp_path: Path) -> None:
    log_task(tmp_path, 1, "fit/0", 2, "1-ab", "failed: no\n  File x.py\nfit/0 (attempt 3, w): begun")
    append_to_run_log(tmp_path, 1, "words of no task")
    first, second = read_run_log(tmp_path, 1)
    assert (first.task, first.attempt, first.lines) == (
        "fit/0", 2, ("failed: no", "File x.py", "fit/0 (attempt 3, w): begun")
    )  # fmt: skip
    assert (second.task, second.attempt, second.lines) == ("", 0, ("words of no task",))
    assert "" < first.time <= second.time
    assert read_run_log(tmp_path, 2) == ()


def test_a_long_or_hostile_log_is_read_from_its_end_and_commands_nothing(tmp_path: Path) -> None:
    append_to_run_log(tmp_path, 1, "first")
    path = runs.run_log_path(tmp_path, 1)
    with path.open("ab") as file:
        file.write(
            b"\x1b]52;c;eA==\x07 \xff\n"
            + b"x" * (LOG_TAIL_BYTES + 10)
            + b"\n2026T1 a/b (attempt 99999999999999, w): y\n"
        )
    found = read_run_log(tmp_path, 1)
    assert len(found) == 1, "what is cut off at its beginning is left out"
    assert found[0].attempt == 0
    with path.open("ab") as file:
        file.write(b"\x1b]52;c;eA==\x07\xe2\x80\xae\n" + b"z" * 10_000 + b"\n")
    lines = [line for one in read_run_log(tmp_path, 1) for line in one.lines]
    assert all(line.isprintable() and len(line) <= MAX_LINE_LENGTH for line in lines)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = runs.run_log_path(tmp_path, 1)
    path.parent.mkdir(mode=0o700)
    path.symlink_to("/etc/passwd") if kind == "link" else os.mkfifo(path)
    with pytest.raises(StrangeFile):
        read_run_log(tmp_path, 1)
