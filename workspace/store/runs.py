"""Runs and projects as screens and commands read them from the database, without numerical libraries."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.outcomes import OUTCOMES, current_outcome
from sfumato.engine.wording import RecordCount

from ..errors import NotFound, NotReady, WorkspaceError
from .process_identity import has_ended
from .records import check_integers, check_numbers, check_texts, parse_json_table, raise_damaged_record
from .run_names import MAX_NAME_LENGTH, MAX_NOTE_LENGTH, NEWEST_RUN, fold_name
from .workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.data.schema import UnitDeclaration
    from sfumato.engine.data.units import Units
    from sfumato.engine.recipe.recipe import Recipe

installed_version = cache(version)
"""The version of an installed package, which is that of the code that is loaded. Raises PackageNotFoundError."""
MAX_CACHED_RECIPES = 32
_RUN_QUERY = f"""SELECT run.*, substr(coalesce(run_name.name, ''), 1, {MAX_NAME_LENGTH}) AS name,
          substr(coalesce(note, ''), 1, {MAX_NOTE_LENGTH}) AS note, (SELECT count(*) FROM task WHERE run_id = run.id) AS tasks_total,
          (SELECT count(*) FROM task WHERE run_id = run.id AND state = 'done') AS tasks_done,
          (SELECT max(search_id) FROM look WHERE look.run_id = run.id) AS search_id
          FROM run LEFT JOIN run_name ON run_name.run_id = run.id"""
MAX_HEARTBEAT_AGE = 30.0
WORKER_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that is being computed.

    kind: kind of the task
    elapsed: seconds since it was claimed
    share: share that is done, 0 before it has reported
    """

    kind: str
    elapsed: float
    share: float

    def projected_seconds(self) -> float | None:
        """Return the seconds that the task will take in all, at the pace so far; None before it has reported."""
        return self.elapsed / self.share if self.share > 0 else None


def estimate_seconds_left(
    done: Mapping[str, tuple[int, float]], running: Sequence[RunningTask], waiting: Mapping[str, int]
) -> float | None:
    """Estimate the seconds until all tasks have ended; None before there is anything to judge by.

    done: number and total seconds of the ended tasks, by kind
    running: tasks that are being computed
    waiting: number of waiting tasks, by kind

    A task takes the mean of its kind, or of all tasks where none of its kind has ended. The work left is divided by the
    number of running tasks.
    """
    known = dict(done)
    for task in running:
        # Until a task of a kind has ended, the pace of a running one is the best guess.
        if task.kind not in done and (projected := task.projected_seconds()) is not None:
            count, seconds = known.get(task.kind, (0, 0.0))
            known[task.kind] = (count + 1, seconds + projected)
    tasks = sum(count for count, _ in known.values())
    if not tasks:
        return None
    overall = sum(seconds for _, seconds in known.values()) / tasks
    mean = {kind: seconds / count for kind, (count, seconds) in known.items()}
    left = sum(count * mean.get(kind, overall) for kind, count in waiting.items())
    for task in running:
        left += max(0.0, (task.projected_seconds() or mean.get(task.kind, overall)) - task.elapsed)
    return left / max(1, len(running))


def run_seconds_left(connection: sqlite3.Connection, run_id: int, now: float) -> float | None:
    """Estimate the seconds until a run ends; None before there is anything to judge by."""
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
    return estimate_seconds_left(done, running, waiting)


class RunState(StrEnum):
    """State of a run. An interrupted run has unfinished tasks and may be resumed."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Return whether no worker will touch the run any more."""
        return self not in (RunState.QUEUED, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task of a run, as the database has it."""

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
class StoredRun:
    """A run as it was when it was read.

    key_public: its random numbers are those of the seed alone, so that whoever has the seed can repeat them
    seconds_left: estimate while the run continues; None before there is anything to judge by
    name: unique name that its analyst gave it, empty for none; internal, as the note
    search_id: search whose trial it is; None for a run that somebody started
    """

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
    """An estimate while the run continues; None before there is anything to judge by."""
    name: str = ""
    """What its analyst calls it, of which there is one in a workspace; empty for none. Internal, as the note."""
    note: str = ""
    search_id: int | None = None

    def count_records(self, records: int) -> RecordCount:
        """Return a number of records with the noun that the recipe has for them."""
        return RecordCount(records, self.recipe.data.rows)

    @property
    def label(self) -> str:
        """Return the run's name, else its recipe's title."""
        return self.name or self.title

    @property
    def full_title(self) -> str:
        """Return the run's name, if it has one, and its recipe's title: ``reference · Visits``."""
        return f"{self.name} · {self.title}" if self.name else self.title

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of the run, with everything that was set on the command line."""
        return _parse_stored_recipe(self.recipe_toml)

    @property
    def recipe_table(self) -> dict[str, Any]:
        """Return the table of its recipe, by which this version makes the same release. Raises BadInput."""
        from sfumato.engine.data.toml import read_toml
        from sfumato.engine.recipe.steps import complete_stored_table

        return complete_stored_table(read_toml(self.recipe_toml))

    @property
    def seconds(self) -> float | None:
        """Return the seconds from the start of the first task to the end, or to now."""
        if self.started is None:
            return None
        return (self.finished or time.time()) - self.started


_unit_numbers: dict[tuple[str, UnitDeclaration], int | None] = {}
"""Numbers of units that were counted, by hash of the table and what the recipe says of units."""


@lru_cache(maxsize=MAX_CACHED_RECIPES)
def _parse_stored_recipe(text: str) -> Recipe:
    """Parse the recipe of a run; equal texts share one frozen recipe."""
    from sfumato.engine.recipe.recipe import Recipe

    return Recipe.from_toml(text, stored=True)


@raise_damaged_record("a run")
def _run_from_row(workspace: Workspace, row: sqlite3.Row) -> StoredRun:
    """Return the run of a row of the database. Raises DamagedRecord."""
    check_texts(
        *(row[name] for name in ("title", "recipe", "recipe_sha256", "error", "key_fingerprint", "name", "note"))
    )
    check_integers(*(row[name] for name in ("id", "project_id", "dataset_id", "seed", "key_public")))
    check_numbers(row["started"], row["finished"], float(row["created"]))
    fields: dict[str, Any] = dict(row)
    fields["recipe_toml"] = fields.pop("recipe")
    state = RunState(row["state"])
    left = run_seconds_left(workspace.connection, row["id"], time.time()) if state is RunState.RUNNING else None
    fields["key_public"] = bool(row["key_public"])
    return StoredRun(**{**fields, "state": state, "versions": _parse_versions(row["versions"]), "seconds_left": left})


def _parse_versions(text: str) -> Mapping[str, str]:
    """Parse the versions of packages that are stored as JSON."""
    versions = parse_json_table(text)
    check_texts(*versions.values())
    return versions


def list_runs(workspace: Workspace, project_id: int | None = None) -> list[StoredRun]:
    """List the runs of one project or of all, newest first."""
    where = "" if project_id is None else " WHERE project_id = ?"
    arguments = () if project_id is None else (project_id,)
    return [
        _run_from_row(workspace, row)
        for row in workspace.connection.execute(f"{_RUN_QUERY}{where} ORDER BY run.id DESC", arguments)
    ]


def find_run(workspace: Workspace, run_id: int | str) -> StoredRun:
    """Return the run with this number or name; ``last`` is the newest that somebody started. Raises NotFound."""
    if run_id == NEWEST_RUN:
        # A search enters dozens of trials, and a recipe its companions: "last" would mean one that nobody has seen.
        alone = "run.id NOT IN (SELECT companion_id FROM companion) AND search_id IS NULL"
        row = workspace.connection.execute(f"{_RUN_QUERY} WHERE {alone} ORDER BY run.id DESC LIMIT 1").fetchone()
        if row is None:
            trials = workspace.connection.execute("SELECT count(*) FROM run").fetchone()[0]
            raise NotFound(
                'every run here is a trial of a search, which "last" never is; name one by its number, which sfumato runs shows'
                if trials
                else "the workspace has no runs yet; start one with: sfumato run RECIPE"
            )
        return _run_from_row(workspace, row)
    # Numbers first: no name can be one.
    row = workspace.connection.execute(f"{_RUN_QUERY} WHERE run.id = ?", (str(run_id),)).fetchone()
    if row is None and isinstance(run_id, str):
        row = workspace.connection.execute(f"{_RUN_QUERY} WHERE folded = ?", (fold_name(run_id),)).fetchone()
    if row is None:
        raise NotFound(f'there is no run "{run_id}"; sfumato runs lists them')
    return _run_from_row(workspace, row)


def read_run_records(
    workspace: Workspace, run: StoredRun, names: Sequence[str] | None = None, rows: Sequence[int] | None = None
) -> Microdata:
    """Read the confidential records of a run, or some of their variables or ``rows`` (from 0).

    Their units are as the recipe of the run declares them, with the order of their records: a stored table lacks these.
    Raises DamagedTable.
    """
    found = workspace.read_stored_dataset(workspace.find_dataset(run.dataset_id), names, rows)
    return found.with_units(run.recipe.schema.unit_declaration)


def has_units(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether several records of a run describe one unit, such as a household, by the number that its recipe names."""
    return _read_units(workspace, run) is not None


def _read_units(workspace: Workspace, run: StoredRun) -> Units | None:
    """Return the units of a run's confidential records; None where each record is one."""
    number = run.recipe.schema.unit
    if number is None or number not in workspace.find_dataset(run.dataset_id).schema:
        return None
    return read_run_records(workspace, run, [number]).units


def recipe_text_of(workspace: Workspace, run_id: int) -> str:
    """Return the text of a run's recipe; empty where there is no such run."""
    row = workspace.connection.execute("SELECT recipe FROM run WHERE id = ?", (run_id,)).fetchone()
    return "" if row is None else str(row[0])


def list_tasks(workspace: Workspace, run_id: int) -> list[TaskRow]:
    """List the tasks of a run in their order."""
    rows = workspace.connection.execute(
        """SELECT id, key, kind, state, attempt, done, total, what, seconds, peak_bytes, error, started
           FROM task WHERE run_id = ? ORDER BY id""",
        (run_id,),
    )
    return [_task_from_row(row) for row in rows]


@raise_damaged_record("a task")
def _task_from_row(row: sqlite3.Row) -> TaskRow:
    """Return the task of a row of the database. Raises DamagedRecord."""
    task = TaskRow(**dict(row))
    check_texts(task.key, task.kind, task.state, task.what, task.error)
    check_integers(task.id, task.attempt, task.done, task.total, task.peak_bytes)
    check_numbers(task.seconds, task.started)
    return task


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """Numbers of a run's verdicts by outcome."""

    met: int = 0
    not_met: int = 0
    undecided: int = 0
    not_computed: int = 0

    @property
    def by_outcome(self) -> Mapping[str, int]:
        """Return the number of verdicts by outcome."""
        return dict(zip(OUTCOMES, (self.met, self.not_met, self.undecided, self.not_computed), strict=True))

    @property
    def total(self) -> int:
        return sum(self.by_outcome.values())


@dataclass(frozen=True)
class RunSummary:
    """A run with its verdicts and its progress.

    run: run
    verdicts: numbers of its verdicts by outcome
    current_task: what its workers are doing, in words
    is_attended: whether any worker lives
    """

    run: StoredRun
    verdicts: VerdictCounts
    current_task: str
    is_attended: bool

    @property
    def is_stalled(self) -> bool:
        """Return whether the run has not ended and has no worker."""
        return not self.run.state.is_final and not self.is_attended

    @property
    def is_resumable(self) -> bool:
        """Return whether resuming the run would continue it."""
        return self.is_stalled or self.run.state in (RunState.INTERRUPTED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True)
class ProjectSummary:
    """A project with its size and its newest run.

    datasets: number of datasets
    runs: number of runs
    last: newest run that is no trial of a search, else the newest trial; None for none
    """

    id: int
    name: str
    created: str
    datasets: int
    runs: int
    last: RunSummary | None


def list_project_summaries(workspace: Workspace) -> list[ProjectSummary]:
    """Return all projects, the one with the newest run first."""
    rows = workspace.connection.execute(
        """SELECT project.id, name, created,
                  (SELECT count(*) FROM dataset WHERE project_id = project.id) AS datasets,
                  (SELECT count(*) FROM run WHERE project_id = project.id) AS runs,
                  (SELECT max(id) FROM run WHERE project_id = project.id) AS newest,
                  (SELECT max(id) FROM run WHERE project_id = project.id
                   AND id NOT IN (SELECT run_id FROM look WHERE run_id IS NOT NULL)) AS newest_started
           FROM project ORDER BY newest DESC NULLS LAST, project.id DESC"""
    ).fetchall()
    last = {row["id"]: row["newest_started"] or row["newest"] for row in rows}
    newest = {project: summarise_run(workspace, run) for project, run in last.items() if run is not None}
    return [
        ProjectSummary(r["id"], r["name"], r["created"], r["datasets"], r["runs"], newest.get(r["id"])) for r in rows
    ]


def count_trials(runs: Iterable[StoredRun]) -> dict[int, tuple[int, int]]:
    """Return how many trials each search has, and how many of them are done."""
    counts: dict[int, tuple[int, int]] = {}
    for run in runs:
        if run.search_id is not None:
            trials, done = counts.get(run.search_id, (0, 0))
            counts[run.search_id] = trials + 1, done + (run.state is RunState.DONE)
    return counts


def summarise_run(workspace: Workspace, run_id: int) -> RunSummary:
    """Return the summary of one run. Raises NotFound."""
    return _summarise_all(workspace, [find_run(workspace, run_id)])[0]


def summarise_runs(workspace: Workspace, project_id: int) -> list[RunSummary]:
    """Return the summaries of the runs of a project, newest first."""
    return _summarise_all(workspace, list_runs(workspace, project_id))


def _summarise_all(workspace: Workspace, runs: Sequence[StoredRun]) -> list[RunSummary]:
    """Return the summaries of these runs."""
    # A run that was entered a moment ago has no worker yet: one is being started.
    alive, grace = has_live_worker(workspace), time.time() - WORKER_START_SECONDS
    return [
        RunSummary(
            run, _count_verdicts(workspace, run.id), _current_task_text(workspace, run), alive or run.created > grace
        )
        for run in runs
    ]


def has_live_worker(workspace: Workspace) -> bool:
    """Return whether some worker has a recent heartbeat and no process that is known to have ended."""
    now = time.time()
    rows = workspace.connection.execute(
        """SELECT pid, host, birth FROM worker LEFT JOIN worker_process ON worker_id = worker.id
           WHERE stopped IS NULL AND heartbeat BETWEEN ? AND ?""",
        # A heartbeat far in the future is of a clock that was set back since.
        (now - MAX_HEARTBEAT_AGE, now + MAX_HEARTBEAT_AGE),
    )
    return any(row["host"] is None or not has_ended(row["pid"], row["host"], row["birth"]) for row in rows)


def _count_verdicts(workspace: Workspace, run_id: int) -> VerdictCounts:
    """Return the numbers of a run's verdicts by outcome."""
    query = "SELECT json_extract(verdict, '$.outcome'), count(*) FROM verdict WHERE run_id = ? GROUP BY 1"
    counts = Counter[str]()
    for stored, count in workspace.connection.execute(query, (run_id,)):
        # Earlier versions had other words for outcomes.
        counts[current_outcome(str(stored))] += count
    return VerdictCounts(*(counts[outcome] for outcome in OUTCOMES))


def _current_task_text(workspace: Workspace, run: StoredRun) -> str:
    """Describe the first task that is being computed, as ``fit 400/2,000 emcee``; empty if there is none."""
    if run.state is not RunState.RUNNING:
        return ""
    query = "SELECT kind, done, total, what FROM task WHERE run_id = ? AND state = 'running' ORDER BY id LIMIT 1"
    row = workspace.connection.execute(query, (run.id,)).fetchone()
    if row is None:
        return ""
    far = f" {row['done']:,}/{row['total']:,}" if row["total"] else ""
    return f"{row['kind']}{far} {row['what']}".strip()


def companion_ids(workspace: Workspace, run_id: int) -> list[int]:
    """Return the numbers of a run's companions, in the order of its recipe."""
    query = "SELECT companion_id FROM companion WHERE run_id = ? ORDER BY position"
    return [int(row[0]) for row in workspace.connection.execute(query, (run_id,))]


def finished_with_companions(workspace: Workspace, run_id: int | str) -> list[StoredRun]:
    """Return a run that is done, followed by its companions that are. Raises NotFound and NotReady."""
    main = find_run(workspace, run_id)
    if main.state is not RunState.DONE:
        raise NotReady(f"run {main.id} is {main.state}; wait for it, or resume it with: sfumato resume {main.id}")
    beside = [find_run(workspace, other) for other in companion_ids(workspace, main.id)]
    return [main, *(run for run in beside if run.state is RunState.DONE)]


def release_names(runs: Sequence[StoredRun]) -> list[str]:
    """Return names that tell the releases of these runs apart: the recipe's label, else the title, with the number
    where needed.
    """
    plain = [run.recipe.label or (run.title if len(runs) > 1 else "release") for run in runs]
    return [f"{name} (run {run.id})" if plain.count(name) > 1 else name for name, run in zip(plain, runs, strict=True)]


def drew_from_tables(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether a finished run was drawn from tables of its variables (``privacy.publishable_tables``)."""
    return run.state is RunState.DONE and any(
        step.method.synthesis.privacy.publishable_tables for step in run.recipe.synthesis if step.table is None
    )


def has_protected_tables(workspace: Workspace, run_id: int) -> bool:
    """Return whether a run has protected tables."""
    row = workspace.connection.execute(
        "SELECT 1 FROM artefact WHERE run_id = ? AND name = 'tables' LIMIT 1", (run_id,)
    ).fetchone()
    return row is not None


def has_intruder_beliefs(workspace: Workspace, run: StoredRun) -> bool:
    """Return whether a run has stored what an intruder believes of its records."""
    rows = workspace.connection.execute(
        "SELECT name FROM artefact WHERE run_id = ? AND name LIKE 'guesses/%'", (run.id,)
    ).fetchall()
    left = {row["name"] for row in rows}
    steps = run.recipe.measures if left else ()
    return any(step.method.measurement.beliefs and f"guesses/{item}" in left for item, step in enumerate(steps))


def count_confidential_records(workspace: Workspace, run: StoredRun) -> RecordCount:
    """Return the number of a run's confidential records, with the noun that the recipe has for them."""
    return run.count_records(workspace.find_dataset(run.dataset_id).records)


def count_records_and_units(workspace: Workspace, run: StoredRun) -> RecordCount:
    """Return the number of a run's confidential records with that of their units, which reads the column of the units.

    Without a table that can be read the units are not counted: the numbers of a run are shown all the same.
    """
    records = count_confidential_records(workspace, run)
    try:
        units = _count_units(workspace, run)
    except (WorkspaceError, EngineError, OSError):
        return records
    return (
        records
        if units is None
        else RecordCount(records, records.noun, RecordCount(units, run.recipe.schema.unit_noun))
    )


def _count_units(workspace: Workspace, run: StoredRun) -> int | None:
    """Return the number of units of a run's confidential records; None where each record is one.

    Counting takes .4 s of a million records, and screens ask again at every step, so numbers are kept by the hash of the
    table.
    """
    key = workspace.find_dataset(run.dataset_id).table_sha256, run.recipe.schema.unit_declaration
    if key not in _unit_numbers:
        units = _read_units(workspace, run)
        if len(_unit_numbers) >= MAX_CACHED_RECIPES:
            _unit_numbers.clear()
        _unit_numbers[key] = None if units is None else len(units)
    return _unit_numbers[key]
