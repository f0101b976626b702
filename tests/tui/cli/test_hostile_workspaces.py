"""Hostile workspaces from a generator: each command ends in good time with what is asked or one message, and touches nothing outside."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile_workspaces import Change, hostile_workspaces

from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.tui.cli.main import main
from sfumato.workspace.ingest.files import Source
from sfumato.workspace.jobs.queue import request_stop
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.runs import RunState

pytestmark = pytest.mark.slow
SECONDS = 30
MOST_BYTES = 2 << 30


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """A run that is done, and one that was interrupted."""
    directory = tmp_path_factory.mktemp("good") / "workspace"
    recipe, data = small
    with Workspace.create(directory) as workspace:
        enter_run(workspace, recipe, Source("simulated.csv", b"simulated"), data)
        work(directory, idle=0)
        request_stop(
            workspace, enter_run(workspace, recipe, Source("simulated.csv", b"simulated"), data), RunState.INTERRUPTED
        )
        workspace.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory


@pytest.fixture
def deadline() -> Iterator[Callable[[], None]]:
    """Whatever waits longer than agreed is interrupted, and fails."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    yield lambda: (signal.alarm(SECONDS), None)[1]
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


COMMANDS = (
    ("runs",), ("runs", "1"), ("results", "1"), ("results", "1", "--json", "-"), ("compare", "1", "2"), ("records", "1"),
    ("report", "1", "-o", "report.html", "--force"), ("release", "1", "-o", "out", "--reason", "agreed"), ("audit", "list"),
    ("audit", "verify"), ("doctor", "--fix"), ("cancel", "2"), ("delete", "1", "--yes"),
)  # fmt: skip


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def status(arguments: tuple[str, ...]) -> int:
    try:
        main([*arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError("a command ends by exiting")


def test_no_hostile_workspace_hangs_a_command_or_reaches_out(
    good: Path, home: Path, tmp_path: Path, deadline: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    counted: Counter[str] = Counter()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outside = elsewhere / "thesis.parquet"
    outside.write_bytes(b"years of work")
    os.utime(outside, (1, 1))
    before, found = contents(elsewhere), []
    cases = list(hostile_workspaces())
    assert len(cases) >= 60
    for name, change in cases:
        found += tried(name, change, good, tmp_path, outside, deadline, capsys, counted)
        if contents(elsewhere) != before:
            found.append(f"{name}: something outside was written or removed")
            outside.write_bytes(b"years of work")
    print(
        "\n".join(
            [
                f"{len(cases)} workspaces, {len(COMMANDS)} commands each",
                *(f"{n:4}  {what}" for what, n in sorted(counted.items())),
            ]
        )
    )
    assert not found, "\n".join(found)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES


def tried(
    name: str, change: Change, good: Path, tmp_path: Path, outside: Path, deadline: Callable[[], None],
    capsys: pytest.CaptureFixture[str], counted: Counter[str],
) -> list[str]:  # fmt: skip
    """What went wrong with one of them."""
    directory = tmp_path / "workspace"
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(good, directory)
    change(directory, outside)
    wrong = []
    for command in COMMANDS:
        shutil.rmtree("out", ignore_errors=True)
        started = time.monotonic()
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
        if time.monotonic() - started > SECONDS:
            wrong.append(f"{name}: {' '.join(command)}: took {time.monotonic() - started:.0f} s")
        counted[f"exit {ended}"] += 1
    return wrong
