"""What screens read: SQL and light values, without the engine, so that a first screen need not wait for numerical libraries."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import NotAWorkspace, NotFound
from ..jobs.estimate import seconds_left
from ..store.database import DATABASE, connect
from ..store.migrations import migrate

if TYPE_CHECKING:
    from types import TracebackType

    from sfumato.engine.recipe import Recipe

__all__ = ["Connected", "Reader", "Run", "RunState", "TaskRow", "find_run", "list_runs", "recipe_toml", "tasks_of"]

RECIPES_KEPT = 32


class Connected(Protocol):
    """What has a connection to a workspace's database: a ``Workspace`` or a ``Reader``."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of this thread."""
        ...


class Reader:
    """A workspace opened to look at it. Opens in under a millisecond; one per thread, closed by ``with``."""

    def __init__(self, directory: Path) -> None:
        """Open the database, brought up to this version. Raises NotAWorkspace."""
        path = directory / DATABASE
        if not path.is_file():
            raise NotAWorkspace(f"{directory} is not a workspace; make one with: sfumato init {directory}")
        self.directory = directory
        try:
            self.connection = connect(path)
            try:
                migrate(self.connection)
            except BaseException:
                self.close()
                raise
        except sqlite3.DatabaseError as error:
            raise NotAWorkspace(f"{path} cannot be opened: {error}") from None

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @property
    def data_version(self) -> int:
        """A number that changes when another connection has written: cheap to poll."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])


class RunState(StrEnum):
    """Where a run stands. An interrupted run has unfinished tasks and may be resumed."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether no worker will touch it any more."""
        return self not in (RunState.QUEUED, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as the queue has it."""

    id: int
    key: str
    kind: str
    state: str
    attempt: int
    done: int
    total: int
    what: str
    seconds: float | None
    peak_bytes: int | None
    error: str
    started: float | None


@dataclass(frozen=True)
class Run:
    """A run as it stood when it was read."""

    id: int
    project_id: int
    dataset_id: int
    title: str
    recipe_toml: str
    recipe_sha256: str
    seed: int
    versions: Mapping[str, str]
    state: RunState
    created: float
    started: float | None
    finished: float | None
    error: str
    tasks_done: int
    tasks_total: int
    seconds_left: float | None = None
    """An estimate while the run goes on; None before there is anything to judge by."""

    @property
    def recipe(self) -> Recipe:
        """The plan, with everything that was set on the command line: one frozen value however often it is asked for."""
        return _recipe(self.recipe_toml)

    @property
    def seconds(self) -> float | None:
        """Seconds from the first task's start to the end, or to now."""
        if self.started is None:
            return None
        return (self.finished or time.time()) - self.started


@lru_cache(maxsize=RECIPES_KEPT)
def _recipe(text: str) -> Recipe:
    from sfumato.engine.recipe import Recipe

    return Recipe.from_toml(text, stored=True)


_RUN = """SELECT run.*, (SELECT count(*) FROM task WHERE run_id = run.id) AS tasks_total,
          (SELECT count(*) FROM task WHERE run_id = run.id AND state = 'done') AS tasks_done FROM run"""


def _run(workspace: Connected, row: sqlite3.Row) -> Run:
    fields: dict[str, Any] = dict(row)
    fields["recipe_toml"] = fields.pop("recipe")
    state = RunState(row["state"])
    left = seconds_left(workspace.connection, row["id"], time.time()) if state is RunState.RUNNING else None
    return Run(**{**fields, "state": state, "versions": json.loads(row["versions"]), "seconds_left": left})


def list_runs(workspace: Connected, project_id: int | None = None) -> list[Run]:
    """Runs, newest first, of one project or of all."""
    where = "" if project_id is None else " WHERE project_id = ?"
    arguments = () if project_id is None else (project_id,)
    return [
        _run(workspace, row) for row in workspace.connection.execute(f"{_RUN}{where} ORDER BY run.id DESC", arguments)
    ]


def find_run(workspace: Connected, run_id: int | str) -> Run:
    """The run with this number; ``last`` is the newest that does not stand beside another. Raises NotFound."""
    if run_id == "last":
        alone = "run.id NOT IN (SELECT companion_id FROM companion)"
        row = workspace.connection.execute(f"{_RUN} WHERE {alone} ORDER BY run.id DESC LIMIT 1").fetchone()
        if row is None:
            raise NotFound("the workspace has no runs yet; start one with: sfumato run RECIPE")
        return _run(workspace, row)
    row = workspace.connection.execute(f"{_RUN} WHERE run.id = ?", (str(run_id),)).fetchone()
    if row is None:
        raise NotFound(f'there is no run "{run_id}"; sfumato runs lists them')
    return _run(workspace, row)


def recipe_toml(workspace: Connected, run_id: int) -> str:
    """The text of a run's recipe; empty where there is no such run."""
    row = workspace.connection.execute("SELECT recipe FROM run WHERE id = ?", (run_id,)).fetchone()
    return "" if row is None else str(row[0])


def tasks_of(workspace: Connected, run_id: int) -> list[TaskRow]:
    """The tasks of a run in their order."""
    rows = workspace.connection.execute(
        """SELECT id, key, kind, state, attempt, done, total, what, seconds, peak_bytes, error, started
           FROM task WHERE run_id = ? ORDER BY id""",
        (run_id,),
    )
    return [TaskRow(**dict(row)) for row in rows]
