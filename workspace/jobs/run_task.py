"""One task, done: what it needs is read from stored tables, the engine computes, tables are stored.

Whatever goes wrong comes back as a value, so that it crosses processes and never carries data.

The tables that a computing process keeps from one task to the next, so that it reads each once: as many as are small together.
"""

from __future__ import annotations

import contextlib
import resource
import sqlite3
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec

from threadpoolctl import ThreadpoolController

from sfumato.engine.constraints.redraw_counts import RedrawCounts
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import Cancelled, EngineError, NotConverged
from sfumato.engine.execution import tasks
from sfumato.engine.execution.tasks import TaskKind
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Progress, ignore_progress
from sfumato.engine.recipe.recipe import Recipe

from ..errors import WorkspaceError
from ..process import forbid_core_dumps, reused_memory, write_clear_refs
from ..store.artefacts import (
    CONTROLS,
    WEIGHTS,
    classes_name,
    guesses_name,
    read_controls,
    read_released,
    read_weights,
    records_name,
    trace_name,
    whole_records_name,
    write_records,
    write_trace,
)
from ..store.chains import chains_name, write_chains
from ..store.database import is_busy
from ..store.disk import disk_error
from ..store.keys import key_of_run
from ..store.redraw_counts import redraws_name, write_redraws
from ..store.run_log import note_of_task
from ..store.runs import find_run
from ..store.tables import Tables
from ..store.workspace import Workspace, schema_from_json, schema_to_json
from ..views.records import rankings_of
from ..views.results import raw_rows
from .queue import NO_RESULT, Claim, TaskResult, progress, still_wanted

P = ParamSpec("P")
MOST_TABLES = 32
RESET_PEAK = b"5"
"""Written to ``clear_refs``, sets the peak to what is in use now (proc_pid_clear_refs(5))."""
REPORT_SECONDS = 0.5
NOTE_SECONDS = 10.0
"""How often the log of a run says how far a task has come, while its phase is the same."""
FITS_KEPT = 64
Report = Callable[[Progress], None]


class TablesKept:
    """Keeps what its functions have read, the latest used last; ``trim`` lets go of the first ones once they are more than ``most`` bytes together.

    The one used last is kept whatever its size: the confidential table is read once by a process, not by every task.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Hashable, ...], tuple[Microdata, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keeping(self, read: Callable[P, Microdata]) -> Callable[P, Microdata]:
        """The function with a memory; its arguments can be hashed."""

        @wraps(read)
        def kept(*args: P.args, **kwargs: P.kwargs) -> Microdata:
            place = (read.__name__, *args, *sorted(kwargs.items()))
            if place not in self._kept:
                table = read(*args, **kwargs)
                self._kept[place] = table, int(table.frame.memory_usage(index=False).sum())
            self._kept.move_to_end(place)
            return self._kept[place][0]

        return kept

    def trim(self) -> None:
        """Let go of tables that were not used for longest, until the rest is small or one."""
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_TABLES or sum(size for _, size in self._kept.values()) > self._most
        ):
            self._kept.popitem(last=False)


def forget_peak() -> None:
    """Let ``peak_bytes`` count from now on, where the system can: Linux, with /proc."""
    with contextlib.suppress(OSError):
        write_clear_refs(RESET_PEAK)


def peak_bytes() -> int:
    """The most memory that was resident since ``forget_peak``; without /proc, in this process's life."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class TaskInput:
    """A claimed task, its run's recipe, the confidential table with its schema, and what earlier tasks left.

    ``tables`` gives the hash of each fit, released dataset and block of a measure, of the classes of anonymised datasets, of the
    records' weights, and of control records, for the last task of what measures left of every record too; ``rows`` are those to combine.
    Of the key only the fingerprint is here: whoever computes reads the key from the workspace.
    """

    held: Claim
    recipe: str
    schema: str
    confidential: str
    tables: Mapping[str, str]
    rows: Sequence[Row]
    key_fingerprint: str


def task_input(workspace: Workspace, held: Claim) -> TaskInput:
    """Read what a task needs, once all that it depends on is done."""
    run = find_run(workspace, held.run_id)
    dataset = workspace.dataset(run.dataset_id)
    left = workspace.connection.execute(
        """SELECT name, sha256 FROM artefact
           WHERE run_id = ? AND (name LIKE 'fit/%' OR name LIKE 'draw/%' OR name LIKE 'classes/%' OR name LIKE 'measure/%'
                               OR name LIKE ? OR name IN ('weights', 'controls'))""",
        (run.id, "records/%" if held.kind == TaskKind.COMBINE else ""),
    )
    rows = raw_rows(workspace, run.id) if held.kind == TaskKind.COMBINE else ()
    tables = {row["name"]: row["sha256"] for row in left}
    schema = schema_to_json(dataset.schema)
    return TaskInput(held, run.recipe_toml, schema, dataset.table_sha256, tables, rows, run.key_fingerprint)


class Reporter:
    """Writes progress twice a second at most, and stops the computation when nobody wants the run any more."""

    def __init__(self, directory: Path, held: Claim) -> None:
        self.directory = directory
        self.held = held
        self.last = self.noted = time.monotonic()
        self.phase = ""

    def __call__(self, made: Progress) -> None:
        """Report. Raises Cancelled."""
        if time.monotonic() - self.last < REPORT_SECONDS:
            return
        self.last = time.monotonic()
        self._note(made)
        workspace = _workspace_of_thread(self.directory, threading.get_ident())
        if not self._written(workspace, made) or not still_wanted(workspace, self.held.run_id):
            raise Cancelled(f"run {self.held.run_id} was stopped, or the task went to another worker")

    def _note(self, made: Progress) -> None:
        """Keep a phase that begins, and now and then how far it is."""
        if made.what == self.phase and self.last - self.noted < NOTE_SECONDS:
            return
        self.phase, self.noted = made.what, self.last
        far = (
            f"{made.done:,} of {made.total:,}, {peak_bytes() / 1e6:.0f} MB"
            if made.total
            else f"{peak_bytes() / 1e6:.0f} MB"
        )
        held = self.held
        note_of_task(
            self.directory, held.run_id, held.key, held.attempt, held.worker, f"{made.what or 'computing'} {far}"
        )

    def _written(self, workspace: Workspace, made: Progress) -> bool:
        try:
            return progress(workspace, self.held, made.done, made.total, made.what)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return True


@lru_cache(maxsize=4)
def _workspace_of_thread(directory: Path, thread: int) -> Workspace:
    return Workspace.open(directory)


CONFIDENTIAL, RELEASED = TablesKept(256_000_000), TablesKept(128_000_000)


def compute_task(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    """Compute a task on one BLAS thread, so that the answer does not depend on the machine's cores."""
    CONFIDENTIAL.trim()
    RELEASED.trim()
    forget_peak()
    started = time.perf_counter()
    with reused_memory(), _thread_pools(len(sys.modules)).limit(limits=1):
        outcome = _KINDS[TaskKind(given.held.kind)](tables, given, report, key)
    return TaskResult(
        outcome.rows,
        outcome.verdicts,
        outcome.target,
        outcome.diagnostics,
        outcome.artefacts,
        time.perf_counter() - started,
        peak_bytes(),
    )


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:
    """The libraries that have threads. Finding them takes milliseconds: done again only when modules were imported."""
    return ThreadpoolController()


@lru_cache(maxsize=8)
def _recipe(text: str) -> Recipe:
    return Recipe.from_toml(text)


@CONFIDENTIAL.keeping
def _table(directory: Path, schema: str, sha256: str) -> Microdata:
    return Tables(directory).read_microdata(sha256, schema_from_json(schema), "confidential")


@RELEASED.keeping
def _release(directory: Path, recipe: str, sha256: str, classes_sha256: str | None) -> Microdata:
    return read_released(Tables(directory), _recipe(recipe), sha256, classes_sha256)


@lru_cache(maxsize=FITS_KEPT)
def _fit(directory: Path, sha256: str) -> Fit:
    return Fit(Tables(directory).read_arrays(sha256))


def _confidential(tables: Tables, given: TaskInput) -> Microdata:
    return _table(tables.directory, given.schema, given.confidential)


@CONFIDENTIAL.keeping
def _weighted(directory: Path, schema: str, sha256: str, weights_sha256: str) -> Microdata:
    return _table(directory, schema, sha256).with_weights(read_weights(Tables(directory), weights_sha256))


def _to_fit(tables: Tables, given: TaskInput) -> Microdata:
    """The confidential table with the weights of its records, where the recipe weighs them. Raises EngineError where they are not there."""
    if _recipe(given.recipe).weights is None:
        return _confidential(tables, given)
    if WEIGHTS not in given.tables:
        raise EngineError("the weights of the records are not there; enter the run anew")
    return _weighted(tables.directory, given.schema, given.confidential, given.tables[WEIGHTS])


@CONFIDENTIAL.keeping
def _controlled(directory: Path, schema: str, sha256: str, controls_sha256: str) -> Microdata:
    return read_controls(Tables(directory), controls_sha256, _table(directory, schema, sha256))


def _to_measure(tables: Tables, given: TaskInput) -> Microdata:
    """The confidential table as the claimed measure sees it: with controls for one that needs them, with weights for one that asks models or refits them.

    Raises EngineError where the controls are not there.
    """
    method = _recipe(given.recipe).measures[given.held.item].method
    if method.measurement.controls:
        if CONTROLS not in given.tables:
            raise EngineError("the control records of the run are not there; enter the run anew")
        return _controlled(tables.directory, given.schema, given.confidential, given.tables[CONTROLS])
    return _to_fit(tables, given) if method.uses_weights else _confidential(tables, given)


def _released(tables: Tables, given: TaskInput, draw: int) -> Microdata:
    left = given.tables
    return _release(tables.directory, given.recipe, left[f"draw/{draw}"], left.get(classes_name(draw)))


def _compute_fit(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    recipe, held = _recipe(given.recipe), given.held
    fit = tasks.fit_model(recipe, held.item, _to_fit(tables, given), report, key=key)
    looked_at = fit_diagnostics(tables, given, fit)
    confidential = _confidential(tables, given)
    rows = tasks.account_rows(recipe, held.item, confidential, key=key)
    rows += tasks.fit_rows(recipe, held.item, fit, confidential)
    return replace(looked_at, rows=rows, artefacts={held.key: tables.write_arrays(fit.arrays), **looked_at.artefacts})


def fit_diagnostics(tables: Tables, given: TaskInput, fit: Fit) -> TaskResult:
    """What a fit leaves to look at, whether its draws can be used or not: statistics, the trace and chains, stored."""
    held, target = given.held, _recipe(given.recipe).synthesis[given.held.item].target
    artefacts = {} if fit.trace is None else {trace_name(held.item): write_trace(tables, fit.trace)}
    if fit.chains is not None:
        artefacts[chains_name(held.item)] = write_chains(tables, fit.chains)
    return TaskResult(target=target, diagnostics=fit.diagnostics, artefacts=artefacts)


def _compute_draw(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    recipe, held = _recipe(given.recipe), given.held
    assert held.draw is not None
    fits = [_fit(tables.directory, given.tables[f"fit/{k}"]) for k in range(len(recipe.synthesis))]
    counts: list[RedrawCounts] = []
    released = tasks.draw_dataset(recipe, held.draw, _to_fit(tables, given), fits, report, key=key, note=counts.extend)
    left = {redraws_name(held.draw): write_redraws(tables, counts)} if counts else {}
    return TaskResult(artefacts={held.key: tables.write_microdata(released), **left})


def _compute_anonymise(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    found = tasks.anonymise_data(_recipe(given.recipe), _confidential(tables, given), report, key=key)
    classes = tables.write_arrays({"classes": found.class_keys})
    artefacts = {given.held.key: tables.write_microdata(found.data), classes_name(1): classes}
    return TaskResult(diagnostics=found.notes, artefacts=artefacts)


def _compute_measure(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    held, recipe = given.held, _recipe(given.recipe)
    if recipe.measures[held.item].method.measures_whole_release:
        return _compute_whole_measure(tables, given, report, key)
    confidential = _to_measure(tables, given)
    released = confidential if held.draw is None else _released(tables, given, held.draw)
    measure, rows = tasks.measure_dataset(recipe, held.item, confidential, released, held.draw, report, key=key)
    if not measure.per_record:
        return TaskResult(rows=rows)
    sha256 = write_records(tables, measure.per_record)
    return TaskResult(rows=rows, artefacts={records_name(held.item, held.draw): sha256})


def _compute_whole_measure(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    """A block of a measure of all released datasets, or what its blocks say together."""
    held, confidential, recipe = given.held, _to_measure(tables, given), _recipe(given.recipe)
    releases = [_released(tables, given, draw) for draw in range(1, recipe.m + 1)]
    if held.point is not None:
        part = tasks.measure_block(recipe, held.item, held.point, confidential, releases, report, key=key)
        return TaskResult(artefacts={held.key: tables.write_arrays(part)})
    names = [tasks.block_name(held.item, block) for block in recipe.measures[held.item].spec.grid()]
    parts = [tables.read_arrays(given.tables[name]) for name in names]
    found, rows = tasks.gather_blocks(recipe, held.item, confidential, releases, parts)
    left = {guesses_name(held.item): tables.write_arrays(found.guesses)} if found.guesses else {}
    for draw, measure in enumerate((found.whole, *found.datasets)):
        if measure.per_record:
            name = records_name(held.item, draw) if draw else whole_records_name(held.item)
            left[name] = write_records(tables, measure.per_record)
    return TaskResult(rows=rows, artefacts=left)


def _compute_study(tables: Tables, given: TaskInput, report: Report, key: bytes) -> TaskResult:
    recipe, held = _recipe(given.recipe), given.held
    releases = [_released(tables, given, draw) for draw in range(1, recipe.m + 1)]
    confidential = _confidential(tables, given)
    points = tasks.points_of_task(recipe, held.item, held.key)
    rows = tasks.compute_study_points(recipe, held.item, points, confidential, releases, report, key=key)
    return TaskResult(rows=rows)


def _compute_combine(tables: Tables, given: TaskInput, report: Report, _: bytes) -> TaskResult:
    report(Progress(0, 1, "verdicts"))
    records = tables.records(given.confidential)
    recipe = _recipe(given.recipe)
    rows, verdicts = tasks.combine_rows(recipe, given.rows, records)
    return TaskResult(rows=rows, verdicts=verdicts, artefacts=rankings_of(tables, recipe, given.tables, records))


_KINDS: dict[TaskKind, Callable[[Tables, TaskInput, Report, bytes], TaskResult]] = {
    TaskKind.ANONYMISE: _compute_anonymise,
    TaskKind.FIT: _compute_fit,
    TaskKind.DRAW: _compute_draw,
    TaskKind.MEASURE: _compute_measure,
    TaskKind.STUDY: _compute_study,
    TaskKind.COMBINE: _compute_combine,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed, in words for its run, and for the log where in the code; no exception's own words.

    ``left`` is what there is to look at all the same, such as chains that have not converged.
    """

    message: str
    trace: str = ""
    left: TaskResult = NO_RESULT


@dataclass(frozen=True, slots=True)
class TaskReleased:
    """The task was not carried out: its run was stopped, or the database was locked for too long."""


def run_task(directory: Path, given: TaskInput, *, database: bool = True) -> TaskResult | Failure | TaskReleased:
    """``compute_task`` a claimed task.

    ``database`` says whether its progress can be written into the database, which must be on this machine's own disk.

    The engine's and the workspace's own errors are written for people and hold no values of the data. Those of other
    libraries may (``could not convert string to float``), so of them only the type and the lines of code are kept.
    """
    forbid_core_dumps()  # a worker of Dask is no process of ours until it gets here
    held, tables = given.held, Tables(directory / "tables")
    try:
        key = key_of_run(directory, given.key_fingerprint)
        return compute_task(tables, given, Reporter(directory, held) if database else ignore_progress, key)
    except Cancelled:
        return TaskReleased()
    except NotConverged as error:
        return Failure(str(error), left=NO_RESULT if error.left is None else fit_diagnostics(tables, given, error.left))
    except (EngineError, WorkspaceError) as error:
        return Failure(str(error))
    except Exception as error:  # noqa: BLE001  (whatever a method raises ends its run, not the worker)
        if isinstance(error, sqlite3.OperationalError) and is_busy(error):
            return TaskReleased()
        if trouble := disk_error(error):
            return Failure(f"{held.key}: {trouble}")
        trace = "".join(traceback.format_tb(error.__traceback__))
        return Failure(f"{held.key}: {type(error).__name__}; the run's log says where", trace)
