"""A database in which another program wrote: every command ends soon, with one message and no traceback."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from keyed_workspace import KEY

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import main
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import LEASE_SECONDS, claim_task, stop_run
from sfumato.workspace.jobs.runs import RunEntry, enter_run, enter_runs
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.database import DATABASE, migrate_database, open_database
from sfumato.workspace.store.run_names import name_run
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace

SOURCE = SourceFile("simulated.csv", b"simulated")
SECONDS = 20.0
"""No command may take longer, whatever stands in the database."""
VALUES = {
    "text": "'731954x'",
    "no text": "CAST(x'ff731954' AS TEXT)",
    "bytes": "x'00ff'",
    "huge whole number": str(1 << 62),
    "negative": "-1",
    "huge number": "1e308",
    "infinite": "9e999",
    "nothing": "NULL",
    "empty": "''",
}
RESULTS = ("results", "1")
HOLDING = (("runs", "1"), ("report", "1", "--output", "{out}.html"), ("examine", "1"), ("records", "1"))
"""Commands that check the seal of a run before they read more of it, as ``RESULTS`` does first of all."""
COMMANDS = (
    RESULTS,
    ("runs",),
    ("resume", "1"),
    ("audit", "list"),
    ("audit", "verify"),
    *HOLDING,
)
REFUSED = (("runs",), ("audit", "verify"), ("audit", "list"), ("doctor",))
"""Commands on a workspace that is refused when it is opened: the others open it as the first does."""


def _refused(directory: Path) -> bool:
    try:
        Workspace.open(directory).close()
    except WorkspaceError:
        return True
    return False


def _columns() -> list[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate_database(made)
        tables = [row[0] for row in made.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return [(table, row[1]) for table in tables for row in made.execute(f"PRAGMA table_info({table})")]


TABLES = sorted({table for table, _ in _columns()})


RELEASING = "INSERT INTO releasing VALUES (4, 1, '/tmp/a', '/tmp/b', '{}', '', 1, 'h', '1', 'x')"


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """A workspace with a row in every table but one: a finished run with a name, one beside it, two deleted, one of them released, and a plan."""
    directory = tmp_path_factory.mktemp("hostile") / "workspace"
    with Workspace.create(directory, KEY) as workspace:
        enter_runs(workspace, [RunEntry(small[0], SOURCE, small[1])] * 2)
        released = enter_run(workspace, small[0], SOURCE, small[1])
        run_worker(directory, idle=0)
        write_run_release(workspace, released, directory.parent / "out", reason="it is deleted, and leaves a tombstone")
        delete_run(workspace, released)
        stop_run(workspace, enter_run(workspace, small[0], SOURCE, small[1]), RunState.CANCELLED)
        delete_run(workspace, 4)
        name_run(workspace, 1, "first", None)
        connection = workspace.connection
        connection.execute("INSERT INTO draft VALUES (1, 1, '', '', 0)")
        connection.execute("INSERT INTO search VALUES (1, 1, '', 80, '[]', 1.0)")
        connection.execute("INSERT INTO look VALUES (1, 1, 1, '[]', '')")
        connection.execute("INSERT INTO missing VALUES (1, 'age', 0, 80)")
        connection.execute("INSERT INTO dropped_group VALUES (1, 'region', 'north', 20, 9, 60, 3, 0.001)")
        for table in set(TABLES) - {"releasing"}:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table
    return directory


def execute_unguarded(directory: Path, statement: str) -> bool:
    """Whether the statement, of a program that minds no guard, changed the database."""
    with contextlib.closing(open_database(directory / DATABASE)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        try:
            changed = connection.execute(statement).rowcount > 0
        except sqlite3.IntegrityError:
            changed = False
        for _, sql in guards:
            connection.execute(sql)
        return changed


class Dead:
    """A worker that ended at once: what a database makes of a real one, ``test_a_task_is_carried_out`` tries."""

    def poll(self) -> int:
        return 1


@pytest.fixture
def command(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """A command without workers: its exit status and what it wrote on standard error; it ends in time and without a traceback."""

    monkeypatch.setattr("sfumato.workspace.jobs.following.start_worker", lambda *_: Dead())

    def call(directory: Path, *words: str) -> tuple[int, str]:
        out = str(tmp_path / "out")
        Path(f"{out}.html").unlink(missing_ok=True)
        began = time.monotonic()
        with pytest.raises(SystemExit) as ended:
            main(["--workspace", str(directory), *(word.format(out=out) for word in words)])
        assert time.monotonic() - began < SECONDS, (words, "took too long")
        written, said = capfd.readouterr()
        for text in (written, said):
            assert "internal error" not in text, (words, text)
            assert "Traceback" not in text, (words, text)
        status = ended.value.code if isinstance(ended.value.code, int) else 0
        if words[0] != "doctor":
            assert status == 0 or said.strip() or written.strip(), words
        return status, said

    return call


@pytest.mark.slow
def test_the_workspace_itself_is_read_by_every_command(
    built_workspace: Path, command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """The control."""
    shutil.copytree(built_workspace, tmp_path / "w")
    for words in (*COMMANDS, ("doctor",)):
        status, said = command(tmp_path / "w", *words)
        assert status in (0, 1), (words, said)


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.study)])
@pytest.mark.parametrize("table", TABLES)
def test_no_value_of_any_column_ends_a_command_in_a_traceback(
    built_workspace: Path, command: Callable[..., tuple[int, str]], tmp_path: Path, table: str, every: int
) -> None:
    """Every column has a third of the values, the next column another third; all of them among the studies."""
    tried = 0
    values = list(VALUES.values())
    names = [name for owner, name in _columns() if owner == table]
    pairs = [(name, value) for at, name in enumerate(names) for value in values[at % every :: every]]
    for number, (column, value) in enumerate(pairs):
        directory = tmp_path / str(number)
        shutil.copytree(built_workspace, directory)
        if table == "releasing":
            execute_unguarded(directory, RELEASING)
        if execute_unguarded(directory, f'UPDATE OR IGNORE {table} SET "{column}" = {value}'):
            tried += 1
            sealed = True
            for words in REFUSED if _refused(directory) else COMMANDS:
                if words in HOLDING and not sealed:
                    continue
                try:
                    status, said = command(directory, *words)
                except AssertionError as error:
                    raise AssertionError(f"{table}.{column} = {value}: {error}") from None
                assert said.count("sfumato: ") <= 1
                sealed = sealed and not (words == RESULTS and status == 2)
        shutil.rmtree(directory)
    assert tried


@pytest.mark.slow
@pytest.mark.parametrize("lease", ["1e18", "9e999", str(1 << 62), "NULL", "-1"])
def test_a_task_is_carried_out_whatever_its_lease_says(
    tmp_path: Path, small: tuple[Recipe, Microdata], lease: str
) -> None:
    """The last is the control: a lease that has run out."""
    directory = tmp_path / "w"
    with Workspace.create(directory, KEY) as workspace:
        run_id = enter_run(workspace, small[0], SOURCE, small[1])
        assert claim_task(workspace, "gone") is not None
        assert execute_unguarded(directory, f"UPDATE task SET lease_until = {lease} WHERE state = 'running'")
        began = time.monotonic()
        run_worker(directory, idle=0)
        assert time.monotonic() - began < LEASE_SECONDS / 2
        assert find_run(workspace, run_id).state is RunState.DONE
