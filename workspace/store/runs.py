"""Runs and projects as screens and commands read them: SQL and light values, without numerical libraries."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sfumato.engine.recipe.outcomes import OUTCOMES, current_outcome
from sfumato.engine.wording import RecordCount

from ..errors import NotFound, NotReady
from .process_identity import gone
from .records import check_numbers, check_texts, check_whole, record, stored_table
from .run_names import LONGEST_NAME, LONGEST_NOTE, NEWEST, fold
from .workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe

installed_version = cache(version)
"""The version of an installed package, which is that of the code that is loaded. Raises PackageNotFoundError."""
RECIPES_KEPT = 32
_RUN = f"""SELECT run.*, substr(coalesce(run_name.name, ''), 1, {LONGEST_NAME}) AS name,
          substr(coalesce(note, ''), 1, {LONGEST_NOTE}) AS note, (SELECT count(*) FROM task WHERE run_id = run.id) AS tasks_total,
          (SELECT count(*) FROM task WHERE run_id = run.id AND state = 'done') AS tasks_done
          FROM run LEFT JOIN run_name ON run_name.run_id = run.id"""
HEARTBEAT_LOST_SECONDS = 30.0
WORKER_STARTS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task under way: seconds since it was claimed, and the share of it that is done, 0 before it has reported."""

    kind: str
    elapsed: float
    share: float

    def projected(self) -> float | None:
        """Seconds that it will have taken, at the pace so far."""
        return self.elapsed / self.share if self.share > 0 else None


def estimate_left(
    done: Mapping[str, tuple[int, float]], running: Sequence[RunningTask], waiting: Mapping[str, int]
) -> float | None:
    """Seconds until nothing is left; None while there is nothing to judge by.

    ``done`` gives for each kind of task how many have ended and their seconds in all. A task will take what those of its
    kind took on average; those of a kind of which none has ended, what all took. The work left is shared by as many as
    run now.
    """
    known = dict(done)
    for task in running:
        if task.kind not in done and (projected := task.projected()) is not None:
            count, seconds = known.get(task.kind, (0, 0.0))
            known[task.kind] = (count + 1, seconds + projected)
    tasks = sum(count for count, _ in known.values())
    if not tasks:
        return None
    overall = sum(seconds for _, seconds in known.values()) / tasks
    mean = {kind: seconds / count for kind, (count, seconds) in known.items()}
    left = sum(count * mean.get(kind, overall) for kind, count in waiting.items())
    for task in running:
        left += max(0.0, (task.projected() or mean.get(task.kind, overall)) - task.elapsed)
    return left / max(1, len(running))


def seconds_left(connection: sqlite3.Connection, run_id: int, now: float) -> float | None:
    """The estimate for a run as it stands."""
    counted = connection.execute(
        """SELECT kind, count(*) FILTER (WHERE state = 'done'), sum(seconds) FILTER (WHERE state = 'done'),
                  count(*) FILTER (WHERE state = 'waiting') FROM task WHERE run_id = ? GROUP BY kind""",
        (run_id,),
    ).fetchall()
    under_way = connection.execute(
        "SELECT kind, started, done, total FROM task WHERE run_id = ? AND state = 'running'", (run_id,)
    )
    done = {kind: (ended, seconds or 0.0) for kind, ended, seconds, _ in counted if ended}
    waiting = {kind: left for kind, _, _, left in counted if left}
    running = [
        RunningTask(kind, max(0.0, now - (started or now)), far / total if total else 0.0)
        for kind, started, far, total in under_way
    ]
    return estimate_left(done, running, waiting)


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
    key_public: bool
    """Whether its random numbers are those of the seed alone, so that whoever has the seed can repeat them."""
    key_fingerprint: str
    seconds_left: float | None = None
    """An estimate while the run goes on; None before there is anything to judge by."""
    name: str = ""
    """What its analyst calls it, of which there is one in a workspace; empty for none. Internal, as the note."""
    note: str = ""

    def count_records(self, records: int) -> RecordCount:
        """Return a number of records of this run that knows what one record is, as its recipe names them."""
        return RecordCount(records, self.recipe.data.rows)

    @property
    def called(self) -> str:
        """Its name, else its recipe's title."""
        return self.name or self.title

    @property
    def titled(self) -> str:
        """``reference · Visits``: its name, where it has one, and its recipe's title."""
        return f"{self.name} · {self.title}" if self.name else self.title

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
    from sfumato.engine.recipe.recipe import Recipe

    return Recipe.from_toml(text, stored=True)


@record("a run")
def _run(workspace: Workspace, row: sqlite3.Row) -> Run:
    check_texts(
        *(row[name] for name in ("title", "recipe", "recipe_sha256", "error", "key_fingerprint", "name", "note"))
    )
    check_whole(*(row[name] for name in ("id", "project_id", "dataset_id", "seed", "key_public")))
    check_numbers(row["started"], row["finished"], float(row["created"]))
    fields: dict[str, Any] = dict(row)
    fields["recipe_toml"] = fields.pop("recipe")
    state = RunState(row["state"])
    left = seconds_left(workspace.connection, row["id"], time.time()) if state is RunState.RUNNING else None
    fields["key_public"] = bool(row["key_public"])
    return Run(**{**fields, "state": state, "versions": _versions(row["versions"]), "seconds_left": left})


def _versions(text: str) -> Mapping[str, str]:
    versions = stored_table(text)
    check_texts(*versions.values())
    return versions


def list_runs(workspace: Workspace, project_id: int | None = None) -> list[Run]:
    """Runs, newest first, of one project or of all."""
    where = "" if project_id is None else " WHERE project_id = ?"
    arguments = () if project_id is None else (project_id,)
    return [
        _run(workspace, row) for row in workspace.connection.execute(f"{_RUN}{where} ORDER BY run.id DESC", arguments)
    ]


def find_run(workspace: Workspace, run_id: int | str) -> Run:
    """The run with this number or name; ``last`` is the newest that does not stand beside another. Raises NotFound."""
    if run_id == NEWEST:
        alone = "run.id NOT IN (SELECT companion_id FROM companion)"
        row = workspace.connection.execute(f"{_RUN} WHERE {alone} ORDER BY run.id DESC LIMIT 1").fetchone()
        if row is None:
            raise NotFound("the workspace has no runs yet; start one with: sfumato run RECIPE")
        return _run(workspace, row)
    row = workspace.connection.execute(f"{_RUN} WHERE run.id = ?", (str(run_id),)).fetchone()
    if row is None and isinstance(run_id, str):
        row = workspace.connection.execute(f"{_RUN} WHERE folded = ?", (fold(run_id),)).fetchone()
    if row is None:
        raise NotFound(f'there is no run "{run_id}"; sfumato runs lists them')
    return _run(workspace, row)


def recipe_toml(workspace: Workspace, run_id: int) -> str:
    """The text of a run's recipe; empty where there is no such run."""
    row = workspace.connection.execute("SELECT recipe FROM run WHERE id = ?", (run_id,)).fetchone()
    return "" if row is None else str(row[0])


def tasks_of(workspace: Workspace, run_id: int) -> list[TaskRow]:
    """The tasks of a run in their order."""
    rows = workspace.connection.execute(
        """SELECT id, key, kind, state, attempt, done, total, what, seconds, peak_bytes, error, started
           FROM task WHERE run_id = ? ORDER BY id""",
        (run_id,),
    )
    return [_task_row(row) for row in rows]


@record("a task")
def _task_row(row: sqlite3.Row) -> TaskRow:
    task = TaskRow(**dict(row))
    check_texts(task.key, task.kind, task.state, task.what, task.error)
    check_whole(task.id, task.attempt, task.done, task.total, task.peak_bytes)
    check_numbers(task.seconds, task.started)
    return task


@dataclass(frozen=True, slots=True)
class Tally:
    """How many verdicts of a run came out which way."""

    met: int = 0
    not_met: int = 0
    undecided: int = 0
    not_computed: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there are of each outcome."""
        return dict(zip(OUTCOMES, (self.met, self.not_met, self.undecided, self.not_computed), strict=True))

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class RunLine:
    """A run, its verdicts, what its workers are doing, and whether any worker lives."""

    run: Run
    tally: Tally
    doing: str
    attended: bool

    @property
    def stalled(self) -> bool:
        """Whether the run ought to go on and nobody works on it."""
        return not self.run.state.ended and not self.attended

    @property
    def resumable(self) -> bool:
        """Whether resuming would do anything."""
        return self.stalled or self.run.state in (RunState.INTERRUPTED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True)
class Project:
    """A project, how much is in it, and its newest run."""

    id: int
    name: str
    created: str
    datasets: int
    runs: int
    last: RunLine | None


def projects(workspace: Workspace) -> list[Project]:
    """Every project, the one with the newest run first."""
    rows = workspace.connection.execute(
        """SELECT project.id, name, created,
                  (SELECT count(*) FROM dataset WHERE project_id = project.id) AS datasets,
                  (SELECT count(*) FROM run WHERE project_id = project.id) AS runs,
                  (SELECT max(id) FROM run WHERE project_id = project.id) AS newest
           FROM project ORDER BY newest DESC NULLS LAST, project.id DESC"""
    ).fetchall()
    newest = {row["id"]: run_line(workspace, row["newest"]) for row in rows if row["newest"] is not None}
    return [Project(r["id"], r["name"], r["created"], r["datasets"], r["runs"], newest.get(r["id"])) for r in rows]


def run_line(workspace: Workspace, run_id: int) -> RunLine:
    """One run. Raises NotFound."""
    return _lines(workspace, [find_run(workspace, run_id)])[0]


def run_lines(workspace: Workspace, project_id: int) -> list[RunLine]:
    """The runs of a project, newest first."""
    return _lines(workspace, list_runs(workspace, project_id))


def _lines(workspace: Workspace, runs: Sequence[Run]) -> list[RunLine]:
    alive, grace = attended(workspace), time.time() - WORKER_STARTS_SECONDS
    return [
        RunLine(run, _tally(workspace, run.id), _doing(workspace, run), alive or run.created > grace) for run in runs
    ]


def attended(workspace: Workspace) -> bool:
    """Whether some worker has given a sign of life lately, and its process is not known to be gone."""
    now = time.time()
    rows = workspace.connection.execute(
        """SELECT pid, host, birth FROM worker LEFT JOIN worker_process ON worker_id = worker.id
           WHERE stopped IS NULL AND heartbeat BETWEEN ? AND ?""",
        (now - HEARTBEAT_LOST_SECONDS, now + HEARTBEAT_LOST_SECONDS),
    )
    return any(row["host"] is None or not gone(row["pid"], row["host"], row["birth"]) for row in rows)


def _tally(workspace: Workspace, run_id: int) -> Tally:
    query = "SELECT json_extract(verdict, '$.outcome'), count(*) FROM verdict WHERE run_id = ? GROUP BY 1"
    counts = Counter[str]()
    for stored, count in workspace.connection.execute(query, (run_id,)):
        counts[current_outcome(str(stored))] += count
    return Tally(*(counts[outcome] for outcome in OUTCOMES))


def _doing(workspace: Workspace, run: Run) -> str:
    """``fit 400/2,000 emcee``: the first task that is being computed; empty when there is none."""
    if run.state is not RunState.RUNNING:
        return ""
    query = "SELECT kind, done, total, what FROM task WHERE run_id = ? AND state = 'running' ORDER BY id LIMIT 1"
    row = workspace.connection.execute(query, (run.id,)).fetchone()
    if row is None:
        return ""
    far = f" {row['done']:,}/{row['total']:,}" if row["total"] else ""
    return f"{row['kind']}{far} {row['what']}".strip()


def companions_of(workspace: Workspace, run_id: int) -> list[int]:
    """The runs that were entered beside a run, in the order of its recipe."""
    query = "SELECT companion_id FROM companion WHERE run_id = ? ORDER BY position"
    return [int(row[0]) for row in workspace.connection.execute(query, (run_id,))]


def done_together(workspace: Workspace, run_id: int | str) -> list[Run]:
    """A run that is done, and those beside it that are. Raises NotFound and NotReady."""
    main = find_run(workspace, run_id)
    if main.state is not RunState.DONE:
        raise NotReady(f"run {main.id} is {main.state}; wait for it, or go on with: sfumato resume {main.id}")
    beside = [find_run(workspace, other) for other in companions_of(workspace, main.id)]
    return [main, *(run for run in beside if run.state is RunState.DONE)]


def names_of(runs: Sequence[Run]) -> list[str]:
    """What runs are called beside each other: a recipe's label, else the title, with the number where that is not enough."""
    plain = [run.recipe.label or (run.title if len(runs) > 1 else "release") for run in runs]
    return [f"{name} (run {run.id})" if plain.count(name) > 1 else name for name, run in zip(plain, runs, strict=True)]


def has_pairs(workspace: Workspace, run: Run) -> bool:
    """Whether a run that is done was drawn from tables of its variables (``synthesis.approved``)."""
    return run.state is RunState.DONE and any(step.method.synthesis.approved for step in run.recipe.synthesis)


def has_beliefs(workspace: Workspace, run: Run) -> bool:
    """Whether a run has left what an intruder believes of its records (``guesses/0``, of measure 0)."""
    rows = workspace.connection.execute(
        "SELECT name FROM artefact WHERE run_id = ? AND name LIKE 'guesses/%'", (run.id,)
    ).fetchall()
    left = {row["name"] for row in rows}
    steps = run.recipe.measures if left else ()
    return any(step.method.measurement.beliefs and f"guesses/{item}" in left for item, step in enumerate(steps))


def records_of(workspace: Workspace, run: Run) -> RecordCount:
    """Return how many confidential records a run has, with what one of them is."""
    return run.count_records(workspace.dataset(run.dataset_id).records)
