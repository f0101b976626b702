"""Runs: how one is entered with its tasks, what state it is in, and what it found."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Any

from engine.microdata import Microdata
from engine.plan import Task, plan
from engine.recipe import Recipe
from engine.results import Diagnostic
from engine.rows import Row
from engine.thresholds import Verdict

from .errors import NotFound
from .ingest import Source
from .workspace import Dataset, Workspace

__all__ = ["Run", "RunState", "TaskRow", "enter_run", "find_run", "list_runs"]

VERSIONED = ("sfumato", "numpy", "scipy", "pandas", "pyarrow", "statsmodels", "scikit-learn", "emcee")


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

    @property
    def recipe(self) -> Recipe:
        """The plan, with everything that was set on the command line."""
        return Recipe.from_toml(self.recipe_toml)

    @property
    def seconds(self) -> float | None:
        """Seconds from the first task's start to the end, or to now."""
        if self.started is None:
            return None
        return (self.finished or time.time()) - self.started

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the tasks done so far; None before the first has ended or when nothing is left."""
        if self.state is not RunState.RUNNING or not self.tasks_done or self.seconds is None:
            return None
        return self.seconds / self.tasks_done * (self.tasks_total - self.tasks_done)


def enter_run(
    workspace: Workspace,
    recipe: Recipe,
    source: Source,
    data: Microdata,
    given: Sequence[tuple[Source, Microdata]] = (),
    project: str = "",
) -> int:
    """Enter a run with all its tasks in one transaction; returns its number. A worker does the rest.

    ``given`` are released datasets that another tool made, where the recipe has no synthesis steps.
    """
    tasks = plan(recipe)
    title = recipe.title or source.name
    with workspace.writing() as connection:
        project_id = workspace.ensure_project(project or title)
        dataset_id = workspace.add_dataset(project_id, source.name, source.sha256, data)
        cursor = connection.execute(
            """INSERT INTO run (project_id, dataset_id, title, recipe, recipe_sha256, seed, versions, state, created)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                project_id,
                dataset_id,
                title,
                recipe.to_toml(),
                recipe.sha256,
                recipe.seed,
                json.dumps({name: version(name) for name in VERSIONED}),
                RunState.QUEUED.value,
                time.time(),
            ),
        )
        run_id = int(cursor.lastrowid or 0)
        for draw, (released_source, released) in enumerate(given, start=1):
            released_id = workspace.add_dataset(project_id, released_source.name, released_source.sha256, released)
            sha256 = workspace.dataset(released_id).table_sha256
            connection.execute("INSERT INTO artefact VALUES (?, ?, ?)", (run_id, f"draw/{draw}", sha256))
        _enter_tasks(connection, run_id, tasks)
    return run_id


def _enter_tasks(connection: sqlite3.Connection, run_id: int, tasks: Sequence[Task]) -> None:
    ids: dict[str, int] = {}
    for task in tasks:
        cursor = connection.execute(
            """INSERT INTO task (run_id, key, kind, item, draw, point, state, blockers)
               VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?)""",
            (run_id, task.key, task.kind.value, task.item, task.draw, task.point, len(task.needs)),
        )
        ids[task.key] = int(cursor.lastrowid or 0)
        connection.executemany(
            "INSERT INTO task_need (task_id, needs_id) VALUES (?, ?)",
            [(ids[task.key], ids[need]) for need in task.needs],
        )


_RUN = """SELECT run.*, (SELECT count(*) FROM task WHERE run_id = run.id) AS tasks_total,
          (SELECT count(*) FROM task WHERE run_id = run.id AND state = 'done') AS tasks_done FROM run"""


def _run(row: sqlite3.Row) -> Run:
    fields: dict[str, Any] = dict(row)
    fields["recipe_toml"] = fields.pop("recipe")
    return Run(**{**fields, "state": RunState(row["state"]), "versions": json.loads(row["versions"])})


def list_runs(workspace: Workspace, project_id: int | None = None) -> list[Run]:
    """Runs, newest first, of one project or of all."""
    where = "" if project_id is None else " WHERE project_id = ?"
    arguments = () if project_id is None else (project_id,)
    return [_run(row) for row in workspace.connection.execute(f"{_RUN}{where} ORDER BY run.id DESC", arguments)]


def find_run(workspace: Workspace, run_id: int | str) -> Run:
    """The run with this number; ``last`` is the newest. Raises NotFound."""
    if run_id == "last":
        row = workspace.connection.execute(f"{_RUN} ORDER BY run.id DESC LIMIT 1").fetchone()
        if row is None:
            raise NotFound("the workspace has no runs yet; start one with: sfumato run RECIPE")
        return _run(row)
    row = workspace.connection.execute(f"{_RUN} WHERE run.id = ?", (str(run_id),)).fetchone()
    if row is None:
        raise NotFound(f'there is no run "{run_id}"; sfumato runs lists them')
    return _run(row)


def tasks_of(workspace: Workspace, run_id: int) -> list[TaskRow]:
    """The tasks of a run in their order."""
    rows = workspace.connection.execute(
        """SELECT id, key, kind, state, attempt, done, total, what, seconds, peak_bytes, error
           FROM task WHERE run_id = ? ORDER BY id""",
        (run_id,),
    )
    return [TaskRow(**dict(row)) for row in rows]


_ROW_COLUMNS = (
    "family, method, measure, target, dataset, draw, level, value, lower, upper, baseline, unit, status, reason, params"
)


def insert_rows(connection: sqlite3.Connection, run_id: int, task_id: int, rows: Sequence[Row]) -> None:
    """Store result rows under the task that made them."""
    connection.executemany(
        f"INSERT INTO result (run_id, task_id, {_ROW_COLUMNS}) VALUES (?, ?, {', '.join('?' * 15)})",
        [(run_id, task_id, *(_stored(value) for value in row.to_dict().values())) for row in rows],
    )


def _stored(value: object) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value


def raw_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The rows that measures and studies left, in the order of the plan: what ``combine`` starts from."""
    return _rows(workspace, "task.kind <> 'combine'", run_id)


def result_rows(workspace: Workspace, run_id: int) -> list[Row]:
    """The finished rows of a run, averages included, in a fixed order; before it has ended, the rows so far."""
    return _rows(workspace, "task.kind = 'combine'", run_id) or raw_rows(workspace, run_id)


def _rows(workspace: Workspace, which: str, run_id: int) -> list[Row]:
    columns = ", ".join(f"result.{name}" for name in _ROW_COLUMNS.split(", "))
    rows = workspace.connection.execute(
        f"""SELECT {columns} FROM result JOIN task ON task.id = result.task_id
            WHERE result.run_id = ? AND {which} ORDER BY result.task_id, result.id""",
        (run_id,),
    )
    return [Row(**{**dict(row), "params": json.loads(row["params"])}) for row in rows]


def verdicts_of(workspace: Workspace, run_id: int) -> list[Verdict]:
    """The verdicts of a finished run in the order of its thresholds."""
    rows = workspace.connection.execute("SELECT verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,))
    return [Verdict(**json.loads(row[0])) for row in rows]


def diagnostics_of(workspace: Workspace, run_id: int) -> list[tuple[str, Diagnostic]]:
    """Target and diagnostic of every fitted model."""
    rows = workspace.connection.execute(
        "SELECT target, name, parameter, value, rule, passed FROM diagnostic WHERE run_id = ? ORDER BY id", (run_id,)
    )
    return [
        (r["target"], Diagnostic(r["name"], r["parameter"], r["value"], r["rule"], None if r["passed"] is None else bool(r["passed"])))
        for r in rows
    ]  # fmt: skip


def result_object(workspace: Workspace, run_id: int) -> dict[str, Any]:
    """The object that ``--json`` writes."""
    run = find_run(workspace, run_id)
    dataset: Dataset = workspace.dataset(run.dataset_id)
    return {
        "run": run.id,
        "recipe_sha256": run.recipe_sha256,
        "data_sha256": dataset.source_sha256,
        "seed": run.seed,
        "versions": dict(run.versions),
        "seconds": run.seconds,
        "rows": [row.to_dict() for row in result_rows(workspace, run_id)],
        "verdicts": [verdict.to_dict() for verdict in verdicts_of(workspace, run_id)],
    }
