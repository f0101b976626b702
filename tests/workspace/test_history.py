"""Who may write the database and does not use the key: whatever they do to the history is refused wherever it decides something."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from keyed_workspace import KEY

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import (
    RUNS_BEFORE_DETAIL,
    AuditAct,
    AuditHead,
    append_act,
    audit_rows,
    read_head,
    read_head_file,
    write_head_file,
)
from sfumato.workspace.errors import BrokenHistory, WorkspaceError
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import requeue_run, stop_run
from sfumato.workspace.jobs.runs import enter_run, result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.database import DATABASE, open_database
from sfumato.workspace.store.heads import HeadsFile, HeadsFolder, audit_log_identity
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.integrity import verify_run, verify_workspace
from sfumato.workspace.upkeep.maintenance import accept_rollback, check_workspace_health

SOURCE = SourceFile("simulated.csv", b"simulated")


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """A workspace with a key of its own, and one run that is done."""
    directory = tmp_path_factory.mktemp("history") / "workspace"
    with Workspace.create(directory, KEY) as workspace:
        enter_run(workspace, small[0], SOURCE, small[1])
    run_worker(directory, idle=0)
    return directory


@pytest.fixture
def directory(built_workspace: Path, tmp_path: Path) -> Path:
    """A copy of it, whose head this machine knows."""
    shutil.copytree(built_workspace, tmp_path / "workspace")
    Workspace.open(tmp_path / "workspace").close()
    return tmp_path / "workspace"


@contextlib.contextmanager
def unguarded_database(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database as somebody who knows our source writes it: without its guards, which are put back."""
    with contextlib.closing(open_database(directory / DATABASE)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)


def chained(connection: sqlite3.Connection, directory: Path) -> None:
    """Give each row the hash that it must have, and note the head in the database and beside it."""
    previous = ""
    for row in audit_rows(connection):
        bare = replace(row, previous=previous, hash="")
        connection.execute(
            "UPDATE audit SET previous = ?, hash = ? WHERE number = ?", (previous, bare.compute_hash(), row.number)
        )
        previous = bare.compute_hash()
    number = connection.execute("SELECT max(number) FROM audit").fetchone()[0]
    connection.execute("UPDATE audit_head SET number = ?, hash = ?", (number, previous))
    write_head_file(directory, AuditHead(number, previous))


EDIT = (
    "UPDATE result SET value = 0 WHERE measure = 'true_match_rate'",
    "UPDATE verdict SET verdict = replace(verdict, 'fail', 'pass')",
)
LATER = ("DROP TABLE seal", "DROP TABLE audit_seal", "DROP TABLE releasing", "DROP TABLE run_name",
    "DROP TABLE tombstone_table", "DROP TABLE tombstone", "DROP TABLE look", "DROP TABLE search")  # fmt: skip
BACK = ("DELETE FROM migration WHERE number > 6", "PRAGMA user_version = 6")


def _unsealed_details(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE audit SET details = json_remove(details, '$.seal', '$.under_policy')")


def statements(*texts: str) -> Callable[[sqlite3.Connection, Path], None]:
    def attack(connection: sqlite3.Connection, directory: Path) -> None:
        for text in texts:
            connection.execute(text)

    return attack


def forged_beginning(act: AuditAct) -> Callable[[sqlite3.Connection, Path], None]:
    """All seals removed, and a row that says that they begin after all runs."""

    def attack(connection: sqlite3.Connection, directory: Path) -> None:
        statements(*EDIT, "DELETE FROM audit_seal", "DELETE FROM seal")(connection, directory)
        connection.execute("BEGIN")
        append_act(connection, act, "workspace", **{RUNS_BEFORE_DETAIL: 99})
        connection.execute("COMMIT")
        write_head_file(directory, read_head(connection))

    return attack


def first_row_rewritten(connection: sqlite3.Connection, directory: Path) -> None:
    """``runs_before`` of the first row says that no run was ever sealed."""
    statements(*EDIT, "UPDATE audit SET details = json_set(details, '$.runs_before', 99) WHERE number = 1")(
        connection, directory
    )
    chained(connection, directory)


def version_before_seals(connection: sqlite3.Connection, directory: Path) -> None:
    """The tables of seals are gone, and so is each word of them in the log."""
    statements(*EDIT)(connection, directory)
    _unsealed_details(connection)
    chained(connection, directory)
    statements(*LATER, *BACK)(connection, directory)


def other_first_row(connection: sqlite3.Connection, directory: Path) -> None:
    """The same, as another workspace with the same key."""
    connection.execute("UPDATE audit SET time = '2020-01-01T00:00:00+00:00' WHERE number = 1")
    version_before_seals(connection, directory)


def tail_removed(connection: sqlite3.Connection, directory: Path) -> None:
    statements("DELETE FROM audit WHERE number > 3", "DELETE FROM audit_seal WHERE number > 3")(connection, directory)
    chained(connection, directory)


ATTACKS: dict[str, Callable[[sqlite3.Connection, Path], None]] = {
    "the seals of the log are deleted": statements(*EDIT, "DELETE FROM audit_seal"),
    "the seals of log and run are deleted": statements(*EDIT, "DELETE FROM audit_seal", "DELETE FROM seal"),
    "only the last row keeps its seal": statements(*EDIT, "DELETE FROM audit_seal WHERE number < (SELECT max(number) FROM audit)"),
    "the fingerprint of the key is emptied": statements(*EDIT, "UPDATE workspace_key SET fingerprint = ''"),
    "both": statements(*EDIT, "UPDATE workspace_key SET fingerprint = ''", "DELETE FROM audit_seal", "DELETE FROM seal"),
    "the row of the key is deleted": statements(*EDIT, "DELETE FROM workspace_key"),
    "the version is set back": statements(*EDIT, "DELETE FROM audit_seal", "DELETE FROM seal", "PRAGMA user_version = 6"),
    "the version is set back, with its tables": statements(*EDIT, *LATER, *BACK),
    "seals are said to begin now": forged_beginning(AuditAct.SEALS_BEGUN),
    "a key is said to be made now": forged_beginning(AuditAct.KEY_MADE),
    "the first row is rewritten": first_row_rewritten,
    "the head is moved": statements(*EDIT, "UPDATE audit_head SET number = 2, hash = (SELECT hash FROM audit WHERE number = 2)"),
}  # fmt: skip
BY_HEAD_OUTSIDE: dict[str, Callable[[sqlite3.Connection, Path], None]] = {
    "it is made one of a version before seals": version_before_seals,
    "it is made another one before seals": other_first_row,
    "the last rows are removed": tail_removed,
    "another fingerprint is written": statements(f"UPDATE workspace_key SET fingerprint = '{'a' * 16}'"),
}
"""What nothing in the workspace itself shows."""


def decisions(directory: Path, out: Path) -> dict[str, str]:
    """What each place that decides says: the message where it refuses, empty where it does not."""

    def opened(use: Callable[[Workspace], object]) -> Callable[[], object]:
        def open_and_use() -> object:
            with Workspace.open(directory) as workspace:
                return use(workspace)

        return open_and_use

    def verified() -> None:
        with Workspace.open(directory, unchecked=True) as workspace:
            if wrong := verify_workspace(workspace).wrong:
                raise WorkspaceError("; ".join(wrong))

    uses: dict[str, Callable[[], object]] = {
        "verify": verified,
        "hold": opened(lambda workspace: verify_run(workspace, 1)),
        "results": opened(lambda workspace: result_object(workspace, 1)),
        "report": opened(lambda workspace: report_page(workspace, 1)),
        "examine": opened(lambda workspace: plan_release(workspace, 1)),
        "release": opened(lambda workspace: write_run_release(workspace, 1, out, reason="the control does too")),
    }
    found = {}
    for name, use in uses.items():
        found[name] = ""
        try:
            use()
        except WorkspaceError as error:
            found[name] = str(error)
            assert "\n" not in found[name]
    return found


@pytest.mark.slow
def test_an_untouched_workspace_is_refused_nowhere(directory: Path, tmp_path: Path) -> None:
    assert set(decisions(directory, tmp_path / "out").values()) == {""}
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("known", [True, False], ids=["known here", "from elsewhere"])
def test_no_change_of_the_seals_is_sealed_again(directory: Path, tmp_path: Path, name: str, known: bool) -> None:
    with unguarded_database(directory) as connection:
        ATTACKS[name](connection, directory)
    if not known:
        shutil.rmtree(state_directory())
    found = decisions(directory, tmp_path / "out")
    assert all(found.values()), found
    assert not (tmp_path / "out").exists()
    assert all(decisions(directory, tmp_path / "out").values()), "it is not mended by looking"


@pytest.mark.parametrize("name", BY_HEAD_OUTSIDE)
def test_what_nothing_in_the_workspace_shows_the_head_outside_shows(directory: Path, tmp_path: Path, name: str) -> None:
    before = (directory / "key").read_bytes()
    with unguarded_database(directory) as connection:
        BY_HEAD_OUTSIDE[name](connection, directory)
    found = decisions(directory, tmp_path / "out")
    assert all(found.values()), found
    assert "sfumato audit accept-rollback --reason TEXT" in found["hold"]
    assert (directory / "key").read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_nobody_gets_a_seal_for_a_row_of_their_own(directory: Path) -> None:
    """A row that lies further on would be sealed with the next act, and could be moved to its place."""
    with unguarded_database(directory) as connection:
        head = read_head(connection)
        planted = replace(
            audit_rows(connection)[-1], number=head.number + 5, act="run released", previous=head.hash, hash=""
        )
        connection.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                planted.number,
                planted.time,
                planted.act,
                planted.subject,
                planted.details,
                head.hash,
                planted.compute_hash(),
            ),
        )
    with Workspace.open(directory) as workspace, pytest.raises(BrokenHistory, match="Nothing is written"):
        workspace_act(workspace)
    with contextlib.closing(open_database(directory / DATABASE)) as connection:
        assert connection.execute("SELECT max(number) FROM audit_seal").fetchone()[0] == head.number
        assert read_head(connection) == head


def test_nothing_is_added_to_a_log_whose_last_row_has_no_seal(directory: Path) -> None:
    with unguarded_database(directory) as connection:
        connection.execute("DELETE FROM audit_seal WHERE number = (SELECT number FROM audit_head)")
    with Workspace.open(directory) as workspace, pytest.raises(BrokenHistory, match="has no valid seal"):
        workspace_act(workspace)


def workspace_act(workspace: Workspace) -> AuditHead:
    with workspace.write_transaction() as connection:
        append_act(connection, AuditAct.FILES_REMOVED, "workspace")
    return read_head(workspace.connection)


def test_a_lost_key_is_no_broken_history(directory: Path, tmp_path: Path, small: tuple[Recipe, Microdata]) -> None:
    with Workspace.open(directory) as workspace:
        run_id = enter_run(workspace, small[0], SOURCE, small[1])
        (directory / "key").rename(tmp_path / "key")
    with Workspace.open(directory) as workspace:
        assert "could not be looked at" in verify_run(workspace, 1).message
        assert stop_run(workspace, run_id, RunState.CANCELLED)
    (tmp_path / "key").rename(directory / "key")
    with Workspace.open(directory) as workspace:
        assert requeue_run(workspace, run_id)


def test_a_workspace_that_lost_its_seals_can_be_taken_over_as_not_sealed(directory: Path, tmp_path: Path) -> None:
    with unguarded_database(directory) as connection:
        ATTACKS["both"](connection, directory)
    with pytest.raises(BrokenHistory, match="sfumato adopt"):
        Workspace.open(directory, read_only=True)
    adopt_workspace(directory, tmp_path / "mine")
    with Workspace.open(tmp_path / "mine") as copy:
        assert "not sealed" in verify_run(copy, 1).message
        assert verify_workspace(copy).wrong == ()


# The head outside


def find_outside_head(directory: Path) -> AuditHead | None:
    with contextlib.closing(open_database(directory / DATABASE)) as connection:
        return HeadsFolder().find_head(audit_log_identity(connection), directory).head


def test_each_act_moves_the_head_outside_and_nothing_else_does(directory: Path) -> None:
    with Workspace.open(directory) as workspace:
        before = read_head(workspace.connection)
        assert find_outside_head(directory) == before == read_head_file(directory)
        assert workspace_act(workspace) == find_outside_head(directory) != before
        with workspace.write_transaction() as connection:
            connection.execute("UPDATE worker SET heartbeat = 1")
        assert find_outside_head(directory) == read_head(workspace.connection)
    assert {path.stat().st_mode & 0o077 for path in (state_directory() / "heads").iterdir()} == {0}


def test_a_head_outside_that_lags_behind_after_a_crash_is_no_alarm(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(directory) as workspace, monkeypatch.context() as crash:
        crash.setattr("sfumato.workspace.store.workspace.store_head_outside", lambda *_, **__: None)
        head = workspace_act(workspace)
    assert find_outside_head(directory) != head
    with Workspace.open(directory) as workspace:
        assert verify_run(workspace, 1).message == ""
        assert workspace_act(workspace) == find_outside_head(directory) == read_head(workspace.connection)


def test_a_head_outside_never_moves_back(directory: Path) -> None:
    with Workspace.open(directory) as workspace:
        older, log = read_head(workspace.connection), audit_log_identity(workspace.connection)
        newer = workspace_act(workspace)
        assert log is not None
        HeadsFolder().store_head(log, directory, older, replace=False)
        assert find_outside_head(directory) == newer
        HeadsFolder().store_head(log, directory, older, replace=True)
        assert find_outside_head(directory) == older, "the control"


def rolled_back(directory: Path, tmp_path: Path) -> None:
    """A copy, an act, and the copy put back, beside the database too."""
    shutil.copytree(directory, tmp_path / "backup")
    with Workspace.open(directory) as workspace:
        workspace_act(workspace)
    shutil.rmtree(directory)
    shutil.copytree(tmp_path / "backup", directory)


def test_a_workspace_behind_its_head_is_refused_until_that_is_accepted_for_a_reason(
    directory: Path, tmp_path: Path
) -> None:
    rolled_back(directory, tmp_path)
    for read_only in (False, True):
        with pytest.raises(BrokenHistory, match=r"lacks row \d+, as recorded in .*accept-rollback --reason TEXT"):
            Workspace.open(directory, read_only=read_only)
    with pytest.raises(BrokenHistory):
        run_worker(directory, idle=0)
    with pytest.raises(BrokenHistory):
        adopt_workspace(directory, tmp_path / "mine")
    with Workspace.open(directory, unchecked=True) as workspace:
        assert "lacks row" in verify_workspace(workspace).wrong[0]
        assert any(
            check.state == "problem" and "lacks row" in check.text for check in check_workspace_health(directory)
        )
        for nothing in ("", "   ", "\u200b\u2060", "--- 12"):
            with pytest.raises(BadInput, match="at least 3 different words"):
                accept_rollback(workspace, nothing)
        with pytest.raises(BrokenHistory):
            workspace_act(workspace)
        head = accept_rollback(workspace, "the disk failed, Monday's backup was restored")
    assert find_outside_head(directory) == head
    with Workspace.open(directory) as workspace:
        row = audit_rows(workspace.connection)[-1]
        assert (row.act, json.loads(row.details)["reason"]) == (
            "rollback accepted",
            "the disk failed, Monday's backup was restored",
        )
        assert verify_workspace(workspace).wrong == ()
        with pytest.raises(BadInput, match="nothing to accept"):
            accept_rollback(workspace, "release it once more")


def test_of_two_copies_that_went_different_ways_one_is_refused(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "copy")
    with Workspace.open(directory) as first, Workspace.open(tmp_path / "copy") as second:
        workspace_act(first)
        with pytest.raises(BrokenHistory, match="another row"):
            workspace_act(second)
        assert read_head(second.connection) != read_head(first.connection), "nothing was written"
        workspace_act(first)
    with pytest.raises(BrokenHistory):
        Workspace.open(tmp_path / "copy")


@pytest.mark.parametrize("public", [True, False])
def test_another_workspace_in_its_place_is_refused(directory: Path, tmp_path: Path, public: bool) -> None:
    """Two with a public key have one fingerprint and differ in their first rows."""
    key = PUBLIC if public else None
    for name in ("one", "two"):
        Workspace.create(tmp_path / name, key).close()
    (tmp_path / "one" / DATABASE).unlink()
    for path in (tmp_path / "two").glob("workspace.db*"):
        shutil.copy(path, tmp_path / "one")
    shutil.copy(tmp_path / "two" / "audit.head", tmp_path / "one")
    with pytest.raises(BrokenHistory, match="holds another workspace"):
        Workspace.open(tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    Workspace.create(tmp_path / "one", key).close()
    Workspace.open(tmp_path / "one").close()


def test_a_workspace_from_another_machine_is_recorded_when_it_is_first_opened(directory: Path) -> None:
    shutil.rmtree(state_directory())
    Workspace.open(directory, read_only=True).close()
    with contextlib.closing(open_database(directory / DATABASE)) as connection:
        assert find_outside_head(directory) == read_head(connection)


def test_a_moved_workspace_is_the_same(directory: Path, tmp_path: Path) -> None:
    directory.rename(tmp_path / "moved")
    with Workspace.open(tmp_path / "moved") as workspace:
        assert workspace_act(workspace) == find_outside_head(tmp_path / "moved")


def test_a_state_directory_that_cannot_be_written_is_noted_and_no_reason_to_fail(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    with Workspace.open(directory) as workspace:
        workspace_act(workspace)
    (check,) = [check for check in check_workspace_health(directory) if check.what == "audit head"]
    assert check.state == "note"
    assert "the head is not kept outside the workspace" in check.text


def test_a_head_file_that_holds_no_head_is_named(directory: Path) -> None:
    for path in (state_directory() / "heads").iterdir():
        if not path.name.startswith("at-"):
            path.write_text("12")
    with pytest.raises(BrokenHistory, match=r"holds no head of an audit log; remove it"):
        Workspace.open(directory)


# The file that the policy names


@pytest.fixture
def heads(tmp_path: Path, write_own_policy: Callable[[str], Path]) -> Path:
    path = tmp_path / "elsewhere" / "heads.log"
    path.parent.mkdir()
    write_own_policy(f'[audit]\nheads = "{path}"\n')
    return path


def test_the_policy_names_a_file_that_each_head_is_added_to(directory: Path, heads: Path, tmp_path: Path) -> None:
    with Workspace.open(directory) as workspace:
        workspace_act(workspace)
        last = workspace_act(workspace)
    lines = heads.read_text().splitlines()
    assert len(lines) == 2, "looking at the workspace adds none"
    assert str(last) in lines[-1]
    rolled_back(directory, tmp_path)
    shutil.rmtree(state_directory())
    with pytest.raises(BrokenHistory, match=r"heads\.log"):
        Workspace.open(directory)
    with Workspace.open(directory, unchecked=True) as workspace:
        head = accept_rollback(workspace, "restored from a backup")
    assert str(head) in heads.read_text().splitlines()[-1], "it cannot be cut, so the last line counts"
    Workspace.open(directory).close()


def test_lines_of_others_and_half_lines_are_passed_over(directory: Path, heads: Path) -> None:
    with Workspace.open(directory) as workspace:
        head = workspace_act(workspace)
        log = audit_log_identity(workspace.connection)
    with heads.open("a") as file:
        file.writelines(f"2026 public {number:064x} 7:{'a' * 64} other\n" for number in range(2_000))
        file.write("\n\x00 half a li")
    assert HeadsFile(heads).find_head(log, directory).head == head
    assert HeadsFile(heads).find_head(None, directory).log == log
    assert HeadsFile(heads).find_head(None, directory / "other").log is None


def test_where_the_file_cannot_be_written_nothing_is(
    directory: Path, heads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads.mkdir()
    with pytest.raises(BrokenHistory, match="Without it nothing is written"):
        Workspace.open(directory)
    heads.rmdir()
    Workspace.open(directory).close()
    assert not heads.exists()
    with Workspace.open(directory) as workspace:
        workspace_act(workspace)
    written_before = heads.read_bytes()
    real = os.open

    def refuse_append(path: str | Path, flags: int, *rest: int) -> int:
        if Path(path) == heads and flags & os.O_APPEND:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *rest)

    with Workspace.open(directory) as workspace:
        before = read_head(workspace.connection)
        monkeypatch.setattr(os, "open", refuse_append)
        with pytest.raises(BrokenHistory, match="cannot be used: Permission denied"):
            workspace_act(workspace)
        with workspace.write_transaction() as connection:
            connection.execute("UPDATE worker SET heartbeat = 1")
        assert read_head(workspace.connection) == before
        monkeypatch.undo()
        workspace_act(workspace)
    assert heads.read_bytes().startswith(written_before)


@pytest.mark.parametrize("name", ["heads.log", "{directory}/heads.log"])
def test_the_file_lies_outside_the_workspace(
    directory: Path, name: str, write_own_policy: Callable[[str], Path]
) -> None:
    write_own_policy(f'[audit]\nheads = "{name.format(directory=directory)}"\n')
    with Workspace.open(directory) as workspace, pytest.raises(BadInput, match="absolute path outside the workspace"):
        workspace_act(workspace)
