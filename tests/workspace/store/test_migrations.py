"""The database's versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.workspace.errors import NotAWorkspace
from sfumato.workspace.store import database
from sfumato.workspace.store.database import MIGRATIONS, database_version, migrate_database, open_database

TABLES = {"project", "dataset", "run", "task", "task_need", "artefact", "result", "verdict", "diagnostic", "worker"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


def test_an_empty_database_gets_every_table_and_a_record_of_each_step(path: Path) -> None:
    with closing(open_database(path)) as connection:
        assert database_version(connection) == 0
        migrate_database(connection)
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        steps = [tuple(row) for row in connection.execute("SELECT number, name FROM migration ORDER BY number")]
        assert database_version(connection) == len(MIGRATIONS)
    assert names >= TABLES
    assert steps == [(i, step.__name__) for i, step in enumerate(MIGRATIONS, start=1)]


def test_migrating_again_changes_nothing(path: Path) -> None:
    with closing(open_database(path)) as connection:
        migrate_database(connection)
        before = list(connection.iterdump())
        migrate_database(connection)
        assert list(connection.iterdump()) == before


def test_a_database_of_a_newer_version_is_refused_untouched(path: Path) -> None:
    with closing(open_database(path)) as connection:
        migrate_database(connection)
        newer = len(MIGRATIONS) + 3
        connection.execute(f"PRAGMA user_version = {newer}")
        with pytest.raises(NotAWorkspace, match=rf"of version {newer}.*up to {len(MIGRATIONS)}.*use a newer Sfumato"):
            migrate_database(connection)
        assert database_version(connection) == newer


def test_a_step_that_fails_leaves_the_version_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half_made (value)")
        raise sqlite3.OperationalError("disk gone")

    with closing(open_database(path)) as connection:
        migrate_database(connection)
        monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, torn])
        with pytest.raises(sqlite3.OperationalError, match="disk gone"):
            migrate_database(connection)
        assert database_version(connection) == len(MIGRATIONS)
        assert not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half_made'"))


@pytest.mark.slow
def test_four_processes_make_one_workspace_at_once(tmp_path: Path) -> None:
    script = """
import sys, time
from pathlib import Path
from sfumato.workspace.store.runs import Workspace
from sfumato.workspace.store.workspace import Workspace
directory, start = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while not start.exists():
    time.sleep(0.001)
workspace = Workspace.create(directory)
with workspace.write_transaction():
    workspace.ensure_project(sys.argv[3])
print(workspace.connection.execute("PRAGMA journal_mode").fetchone()[0])
"""
    command = [sys.executable, "-c", script, str(tmp_path / "workspace"), str(tmp_path / "start")]
    processes = [subprocess.Popen([*command, f"project {i}"], stdout=subprocess.PIPE, text=True) for i in range(4)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    (tmp_path / "start").touch()
    answers = [process.communicate()[0].strip() for process in processes]
    assert answers == ["wal"] * 4
    with closing(open_database(tmp_path / "workspace" / "workspace.db")) as connection:
        assert connection.execute("SELECT count(*) FROM project").fetchone()[0] == 4
        assert connection.execute("SELECT count(*) FROM migration").fetchone()[0] == len(MIGRATIONS)
