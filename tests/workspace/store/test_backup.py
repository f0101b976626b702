"""An older workspace is migrated, after a copy of its database was put beside it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.store import database, runs
from sfumato.workspace.store.database import DATABASE, MIGRATIONS, back_up_database, database_version, open_database
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of version 2, with a project."""
    directory = tmp_path / "old"
    directory.mkdir(mode=0o700)
    with monkeypatch.context() as earlier, contextlib.closing(open_database(directory / DATABASE)) as connection:
        earlier.setattr(database, "MIGRATIONS", MIGRATIONS[:2])
        database.migrate_database(connection)
        connection.execute("INSERT INTO project (name, created) VALUES ('kept', '2026')")
    return directory


def projects(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM project")]


def test_the_copy_is_the_database_as_it_was(old: Path) -> None:
    workspace = Workspace.open(old)
    assert database_version(workspace.connection) == len(MIGRATIONS)
    assert [project.name for project in runs.list_project_summaries(workspace)] == ["kept"]
    assert list_runs(workspace) == []
    workspace.close()
    copy = old / f"{DATABASE}.v2.backup"
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert database_version(connection) == 2
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert projects(copy) == ["kept"]
    assert copy.stat().st_mode & 0o077 == 0
    assert not list(old.glob("*backing-up*"))


def test_a_new_workspace_and_one_of_this_version_leave_no_copy(workspace: Workspace) -> None:
    Workspace.open(workspace.directory).close()
    assert not list(workspace.directory.glob("*.backup"))


def test_no_copy_is_made_under_the_name_of_a_version_that_it_has_not(workspace: Workspace) -> None:
    assert back_up_database(workspace.connection, 1) is None
    assert not list(workspace.directory.glob("*back*"))


def test_a_migration_that_fails_leaves_the_database_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clumsy(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM project")
        raise RuntimeError

    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS[:2], clumsy])
    with pytest.raises(RuntimeError):
        Workspace.open(old)
    assert projects(old / DATABASE) == ["kept"] == projects(old / f"{DATABASE}.v2.backup")


def test_the_audit_log_of_a_migrated_workspace_says_how_many_runs_it_had(
    workspace: Workspace, enter: Callable[..., int]
) -> None:
    enter()
    details = workspace.connection.execute("SELECT details FROM audit WHERE number = 1").fetchone()[0]
    assert '"runs_before": 0' in details
