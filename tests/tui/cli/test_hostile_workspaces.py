"""Hostile workspaces from a generator: each command ends in good time with what is asked or one message, and touches nothing outside."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile_workspaces import Change, hostile_workspaces
from keyed_workspace import KEY
from prepared_workspaces import enter_recipe
from terminals import APP, app_environment, kill_workers

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import main
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.jobs.run_task import peak_memory_bytes, reset_peak_bytes
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
SECONDS = 30
WAITS = 3
"""Seconds of processor time that a command may take, and how many times as many it may wait on a busy machine."""
MOST_BYTES = 2 << 30


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """A run that is done, and one that was interrupted."""
    directory = tmp_path_factory.mktemp("good") / "workspace"
    recipe, data = small
    with Workspace.create(directory, KEY) as workspace:
        enter_recipe(workspace, recipe, data)
        run_worker(directory, idle=0)
        stop_run(workspace, enter_recipe(workspace, recipe, data), RunState.INTERRUPTED)
        workspace.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory


@pytest.fixture
def deadline() -> Iterator[Callable[[], None]]:
    """Whatever waits longer than agreed is interrupted, and fails."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    yield lambda: (signal.alarm(WAITS * SECONDS), None)[1]
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


COMMANDS = (
    ("runs",), ("runs", "1"), ("results", "1"), ("results", "1", "--json", "-"), ("compare", "1", "2"), ("records", "1"),
    ("report", "1", "-o", "report.html", "--force"), ("release", "1", "-o", "out", "--reason", "agreed with the board"), ("audit", "list"),
    ("audit", "verify"), ("doctor", "--fix"), ("cancel", "2"), ("delete", "1", "--yes"),
)  # fmt: skip


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def tables_in(directory: Path) -> set[str]:
    """Names of the files among a workspace's tables, also those left half written."""
    place = directory / "tables"
    return set() if place.is_symlink() or not place.is_dir() else {path.name for path in place.iterdir()}


def orphans(directory: Path, before: set[str]) -> set[str]:
    """Table files that were not there before, and that no row names."""
    named: set[str] = set()
    for query in (
        "SELECT table_sha256 FROM dataset",
        "SELECT sha256 FROM artefact",
        "SELECT sha256 FROM tombstone_table",
    ):
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{directory / 'workspace.db'}?mode=ro", uri=True)) as connection,
        ):
            named |= {f"{row[0]}.parquet" for row in connection.execute(query)}
    return tables_in(directory) - before - named


def status(arguments: tuple[str, ...]) -> int:
    try:
        main([*arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError("a command ends by exiting")


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.study)])
def test_no_hostile_workspace_hangs_a_command_or_reaches_out(
    good: Path, home: Path, tmp_path: Path, deadline: Callable[[], None], capsys: pytest.CaptureFixture[str], every: int
) -> None:
    counted: Counter[str] = Counter()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outside = elsewhere / "thesis.parquet"
    outside.write_bytes(b"years of work")
    os.utime(outside, (1, 1))
    before, found = contents(elsewhere), []
    reset_peak_bytes()  # what tests before this one took in the same process says nothing, nor what they still hold
    held = peak_memory_bytes()
    cases = list(hostile_workspaces())
    assert len(cases) >= 60
    for name, change in cases[::every]:
        found += tried(name, change, good, tmp_path, outside, deadline, capsys, counted)
        if contents(elsewhere) != before:
            found.append(f"{name}: something outside was written or removed")
            outside.write_bytes(b"years of work")
    print(
        "\n".join(
            [
                f"{len(cases[::every])} workspaces, {len(COMMANDS)} commands each",
                *(f"{n:4}  {what}" for what, n in sorted(counted.items())),
            ]
        )
    )
    assert not found, "\n".join(found)
    assert peak_memory_bytes() - held < MOST_BYTES, (peak_memory_bytes(), held)


def tried(
    name: str, change: Change, good: Path, tmp_path: Path, outside: Path, deadline: Callable[[], None],
    capsys: pytest.CaptureFixture[str], counted: Counter[str],
) -> list[str]:  # fmt: skip
    """What went wrong with one of them."""
    directory = tmp_path / "workspace"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(state_directory() / "heads", ignore_errors=True)  # of the copy before
    shutil.copytree(good, directory)
    change(directory, outside)
    tables, wrong = tables_in(directory), []
    for command in COMMANDS:
        shutil.rmtree("out", ignore_errors=True)
        started = time.process_time()
        deadline()
        try:
            ended = status((*command, "--workspace", str(directory)))
        except BaseException as error:  # noqa: BLE001
            wrong.append(f"{name}: {' '.join(command)}: {type(error).__name__} {error}"[:400])
            continue
        finally:
            signal.alarm(0)
        said = capsys.readouterr().err
        if "internal error" in said or (ended == 2 and not said.strip()) or len(said) > 20_000:
            wrong.append(f"{name}: {' '.join(command)}: {said[:300]}")
        if time.process_time() - started > SECONDS:
            wrong.append(f"{name}: {' '.join(command)}: took {time.process_time() - started:.0f} s")
        counted[f"exit {ended}"] += 1
    if left := orphans(directory, tables):
        wrong.append(f"{name}: tables that no row names: {sorted(left)}")
    return wrong


NEVER_DONE = {
    "tasks that need each other": "no task of it can ever be ready",
    "a task that is never ready": "no task of it can ever be ready",
    "failed tasks of a run that waits": "no task of it can ever be ready",
    "a run without tasks": "no task of it can ever be ready",
    "tasks of a kind that is none": "failed",
    "task SET kind to words": "failed",
    "task SET item to words": "item of the table task",
    "a run of no dataset": "there is no dataset 99",
    "a recipe that nests deeply": "not valid TOML",
}
"""Workspaces whose second run cannot be carried out, and what ``resume`` says of it."""


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def resumed(directory: Path, home: Path) -> tuple[int, str]:
    """How ``sfumato resume 2`` ends, and what it says; the command and its worker have so much address space at most."""
    command = [*APP, "resume", "2", "--jobs", "1", "--workspace", str(directory)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=WAITS * SECONDS, preexec_fn=bounded, check=False,
            env=app_environment(home, OPENBLAS_NUM_THREADS="1"),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"no end within {WAITS * SECONDS} s"
    finally:
        with contextlib.suppress(sqlite3.Error):
            kill_workers(directory)
    return ended.returncode, ended.stderr.strip()


def test_resume_goes_on_with_a_good_run_in_the_same_bounds(good: Path, tmp_path: Path) -> None:
    directory = tmp_path / "workspace"
    shutil.copytree(good, directory)
    before = tables_in(directory)
    assert resumed(directory, tmp_path) == (0, "")
    assert not orphans(directory, before)


@pytest.mark.parametrize("name", NEVER_DONE)
def test_resume_ends_with_one_message_where_a_run_can_never_be_done(name: str, good: Path, tmp_path: Path) -> None:
    directory, outside = tmp_path / "workspace", tmp_path / "thesis.parquet"
    shutil.copytree(good, directory)
    dict(hostile_workspaces())[name](directory, outside)
    before = tables_in(directory)
    ended, said = resumed(directory, tmp_path)
    assert ended == 2, said
    assert NEVER_DONE[name] in said
    assert said.count("\n") < 3
    assert "internal error" not in said
    assert "Traceback" not in said
    assert not orphans(directory, before)
