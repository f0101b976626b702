"""Computation of one task: read its tables, let the engine compute, store the results.

Whatever goes wrong is returned as a value, so that it crosses processes and never carries data.
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
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import IO, ParamSpec

from threadpoolctl import ThreadpoolController

from sfumato.engine.constraints.redraw_counts import RedrawCounts
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import UnitDeclaration
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, Cancelled, EngineError, NotConverged
from sfumato.engine.execution import tasks
from sfumato.engine.execution.in_passes import (
    compute_partials,
    draw_blocks,
    fit_in_passes,
    measure_in_passes,
    works_in_passes,
)
from sfumato.engine.execution.making import as_released
from sfumato.engine.execution.protecting import (
    audit_protected_tables,
    list_cells_by_hand,
    protect_tables_of_recipe,
    table_rows,
)
from sfumato.engine.execution.tasks import TaskKind
from sfumato.engine.methods.registry import OWN
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Progress, ignore_progress
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import RecipeStep, complete_stored_table

from ..errors import StrangeFile, WorkspaceError
from ..policy.installed_packages import loaded_package, trusted_packages
from ..policy.packages import PackageFiles, normalise_package_name
from ..policy.policy import read_policy_of_workspace
from ..process import forbid_core_dumps, reused_memory, write_clear_refs
from ..store.artefacts import (
    CONTROLS,
    WEIGHTS,
    add_stored_controls,
    classes_name,
    guesses_name,
    packages_name,
    pooled_record_values_name,
    read_released_table,
    read_weights,
    record_values_name,
    trace_name,
    write_packages,
    write_record_blocks,
    write_record_values,
    write_trace,
)
from ..store.chains import chains_name, write_chains
from ..store.database import is_lock_error
from ..store.disk import disk_error_message
from ..store.kept_partials import HelpEnded, KeptPartials, identity_of_partials
from ..store.keys import run_key
from ..store.protected_tables import (
    EARLIER_TABLES,
    StoredTables,
    read_earlier_tables,
    read_protected_tables,
    write_protected_tables,
)
from ..store.redraw_counts import redraws_name, write_redraws
from ..store.run_log import log_task
from ..store.runs import find_run
from ..store.stored_blocks import StoredBlocks
from ..store.tables import TableStore
from ..store.workspace import Workspace, schema_from_json, schema_to_json
from ..views.records import store_rankings
from ..views.results import read_raw_rows
from .queue import NO_RESULT, TaskLease, TaskResult, is_run_wanted, record_progress

P = ParamSpec("P")
MAX_CACHED_TABLES = 32
RESET_PEAK = b"5"
"""Written to ``clear_refs``, sets the peak to what is in use now (proc_pid_clear_refs(5))."""
PROGRESS_SECONDS = 0.5
LOG_PROGRESS_SECONDS = 10.0
"""How often the log of a run says how far a task has come, while its phase is the same."""
MAX_CACHED_FITS = 64
ReportProgress = Callable[[Progress], None]


class TableCache:
    """Cache of the tables that its functions have read, in order of their last use.

    max_bytes: size of all tables together above which ``trim`` removes the oldest
    """

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes
        self._kept: OrderedDict[tuple[Hashable, ...], tuple[Microdata, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def cached(self, read: Callable[P, Microdata]) -> Callable[P, Microdata]:
        """Return a function with this cache; its arguments must be hashable."""

        @wraps(read)
        def read_cached(*args: P.args, **kwargs: P.kwargs) -> Microdata:
            """Return the table from the cache, read if need be."""
            place = (read.__name__, *args, *sorted(kwargs.items()))
            if place not in self._kept:
                table = read(*args, **kwargs)
                self._kept[place] = table, int(table.frame.memory_usage(index=False).sum())
            self._kept.move_to_end(place)
            return self._kept[place][0]

        return read_cached

    def trim(self) -> None:
        """Remove the tables that were used longest ago, until the rest is small enough or one."""
        # The last one stays whatever its size: the confidential table is read once by a process, not by every task.
        while len(self._kept) > 1 and (
            len(self._kept) > MAX_CACHED_TABLES or sum(size for _, size in self._kept.values()) > self._most
        ):
            self._kept.popitem(last=False)


def reset_peak_bytes() -> None:
    """Reset the peak that ``peak_memory_bytes`` returns, where /proc allows it."""
    with contextlib.suppress(OSError):
        write_clear_refs(RESET_PEAK)


def peak_memory_bytes() -> int:
    """Return the largest resident memory since ``reset_peak_bytes``, in bytes; without /proc, of the process's whole
    life.
    """
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        # macOS counts bytes, other systems kilobytes.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class TaskInput:
    """A claimed task with everything that computing it needs.

    lease: lease of the task
    recipe: recipe of its run, TOML
    schema: schema of the confidential table, JSON
    table_sha256: hash of the confidential table
    dropped: number of the file's records that were dropped for missing values, and of all its records (0 where they were not counted)
    tables: hash of each fit, released dataset and block of a measure, of the classes of anonymised datasets, of the records' weights,
        of control records, and for the last task of the measures' values of every record
    rows: rows to combine
    key_fingerprint: fingerprint of the key; whoever computes reads the key from the workspace
    packages: packages that the policy names; whoever computes compares them with its own
    """

    lease: TaskLease
    recipe: str
    schema: str
    table_sha256: str
    tables: Mapping[str, str]
    rows: Sequence[Row]
    key_fingerprint: str
    packages: tuple[PackageFiles, ...] = ()
    dropped: tuple[int, int] = (0, 0)


def read_task_input(workspace: Workspace, lease: TaskLease) -> TaskInput:
    """Read everything that a claimed task needs."""
    run = find_run(workspace, lease.run_id)
    dataset = workspace.find_dataset(run.dataset_id)
    left = workspace.connection.execute(
        """SELECT name, sha256 FROM artefact
           WHERE run_id = ? AND (name LIKE 'fit/%' OR name LIKE 'draw/%' OR name LIKE 'classes/%' OR name LIKE 'measure/%'
                               OR name LIKE ? OR name IN ('weights', 'controls', 'tables', 'tables/earlier'))""",
        # Only the last task ranks records: the others need not know of tables for each dataset and measure.
        (run.id, "records/%" if lease.kind == TaskKind.COMBINE else ""),
    )
    rows = read_raw_rows(workspace, run.id) if lease.kind == TaskKind.COMBINE else ()
    tables = {row["name"]: row["sha256"] for row in left}
    schema = schema_to_json(dataset.schema)
    packages: tuple[PackageFiles, ...] = ()
    if lease.kind == TaskKind.FIT:
        # Under a policy that cannot be read no account of another package counts. The gate says what is wrong with it.
        with contextlib.suppress(BadInput, StrangeFile):
            packages = read_policy_of_workspace(workspace.directory).packages
    dropped = dataset.dropped, dataset.file_records
    return TaskInput(
        lease, run.recipe_toml, schema, dataset.table_sha256, tables, rows, run.key_fingerprint, packages, dropped
    )


class ProgressReporter:
    """Reporter of progress that writes twice a second at most, and stops the computation of a run that was stopped."""

    def __init__(self, directory: Path, held: TaskLease) -> None:
        self.directory = directory
        self.held = held
        self.last = self.noted = time.monotonic()
        self.phase = ""

    def __call__(self, progress: Progress) -> None:
        """Record the progress. Raises Cancelled where the run was stopped or the lease lost."""
        if time.monotonic() - self.last < PROGRESS_SECONDS:
            return
        self.last = time.monotonic()
        self._log_progress(progress)
        workspace = _thread_workspace(self.directory, threading.get_ident())
        if not self._record_progress(workspace, progress) or not is_run_wanted(workspace, self.held.run_id):
            raise Cancelled(f"run {self.held.run_id} was stopped, or the task went to another worker")

    def _log_progress(self, made: Progress) -> None:
        """Log a new phase, and within one every few seconds how far it is."""
        if made.what == self.phase and self.last - self.noted < LOG_PROGRESS_SECONDS:
            return
        self.phase, self.noted = made.what, self.last
        far = (
            f"{made.done:,} of {made.total:,}, {peak_memory_bytes() / 1e6:.0f} MB"
            if made.total
            else f"{peak_memory_bytes() / 1e6:.0f} MB"
        )
        held = self.held
        log_task(self.directory, held.run_id, held.key, held.attempt, held.worker, f"{made.what or 'computing'} {far}")

    def _record_progress(self, workspace: Workspace, made: Progress) -> bool:
        """Write the progress to the database, and return whether the task is still held."""
        try:
            return record_progress(workspace, self.held, made.done, made.total, made.what)
        except sqlite3.OperationalError as error:
            if not is_lock_error(error):
                raise
            # A locked database is no reason to stop: the next report comes in half a second.
            return True


@lru_cache(maxsize=4)
def _thread_workspace(directory: Path, thread: int) -> Workspace:
    """Return the open workspace of a thread, since SQLite connections stay in theirs."""
    return Workspace.open(directory)


CONFIDENTIAL_TABLES, RELEASED_TABLES = TableCache(256_000_000), TableCache(128_000_000)


def compute_task(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Compute a task and return its result, with the time and the memory that it took."""
    CONFIDENTIAL_TABLES.trim()
    RELEASED_TABLES.trim()
    reset_peak_bytes()
    started = time.perf_counter()
    # One BLAS thread: sums in another order would make the answer depend on the machine's cores.
    with reused_memory(), _thread_controller(len(sys.modules)).limit(limits=1):
        outcome = _COMPUTE_BY_KIND[TaskKind(task.lease.kind)](tables, task, report, key)
    return TaskResult(
        outcome.rows,
        outcome.verdicts,
        outcome.target,
        outcome.diagnostics,
        outcome.artefacts,
        time.perf_counter() - started,
        peak_memory_bytes(),
    )


@lru_cache(maxsize=1)
def _thread_controller(modules: int) -> ThreadpoolController:
    """Return the controller of the libraries that have threads of their own."""
    # Finding the libraries takes milliseconds: it is done again only when more modules were imported.
    return ThreadpoolController()


@lru_cache(maxsize=8)
def _parse_recipe(text: str) -> Recipe:
    """Parse a recipe; equal texts share one."""
    return Recipe.from_table(complete_stored_table(read_toml(text)))


@CONFIDENTIAL_TABLES.cached
def _read_confidential_table(
    directory: Path, schema: str, sha256: str, dropped: tuple[int, int], units: UnitDeclaration
) -> Microdata:
    """Read a confidential table from the store or the cache; ``dropped`` is that of its task.

    ``units`` is what the recipe declares of units, which a stored schema does not have.
    """
    found = TableStore(directory).read_microdata(sha256, schema_from_json(schema), "confidential")
    return replace(found, dropped=dropped[0], file_records=dropped[1]).with_units(units)


@RELEASED_TABLES.cached
def _read_released_table(directory: Path, recipe: str, sha256: str, classes_sha256: str | None) -> Microdata:
    """Read a released table from the store or the cache."""
    return read_released_table(TableStore(directory), _parse_recipe(recipe), sha256, classes_sha256)


@lru_cache(maxsize=MAX_CACHED_FITS)
def _read_fit(directory: Path, sha256: str) -> Fit:
    """Read a fit from the store or the cache."""
    return Fit(TableStore(directory).read_arrays(sha256))


def _table_of_task(tables: TableStore, task: TaskInput) -> tuple[Path, str, str, tuple[int, int], UnitDeclaration]:
    """Return what the confidential table of a task is read by."""
    units = _parse_recipe(task.recipe).schema.unit_declaration
    return tables.directory, task.schema, task.table_sha256, task.dropped, units


def _confidential_data(tables: TableStore, task: TaskInput) -> Microdata:
    """Return the confidential table of a task."""
    return _read_confidential_table(*_table_of_task(tables, task))


@CONFIDENTIAL_TABLES.cached
def _read_weighted_table(
    directory: Path, schema: str, sha256: str, dropped: tuple[int, int], units: UnitDeclaration, weights_sha256: str
) -> Microdata:
    """Read a confidential table with weights of its records, from the store or the cache."""
    return _read_confidential_table(directory, schema, sha256, dropped, units).with_weights(
        read_weights(TableStore(directory), weights_sha256)
    )


def _data_for_fit(tables: TableStore, task: TaskInput) -> Microdata:
    """Return the confidential table of a task, with weights where the recipe has some. Raises EngineError where they
    are missing.
    """
    if _parse_recipe(task.recipe).weights is None:
        return _confidential_data(tables, task)
    if WEIGHTS not in task.tables:
        raise EngineError("the weights of the records are missing; run the recipe again")
    return _read_weighted_table(*_table_of_task(tables, task), task.tables[WEIGHTS])


@CONFIDENTIAL_TABLES.cached
def _read_table_with_controls(
    directory: Path, schema: str, sha256: str, dropped: tuple[int, int], units: UnitDeclaration, controls_sha256: str
) -> Microdata:
    """Read a confidential table with its control records, from the store or the cache."""
    return add_stored_controls(
        TableStore(directory), controls_sha256, _read_confidential_table(directory, schema, sha256, dropped, units)
    )


def _data_for_measure(tables: TableStore, task: TaskInput) -> Microdata:
    """Return the confidential table as the task's measure needs it: with controls, with weights, or plain."""
    method = _parse_recipe(task.recipe).measures[task.lease.item].method
    if method.measurement.controls:
        if CONTROLS not in task.tables:
            raise EngineError("the control records of the run are missing; run the recipe again")
        return _read_table_with_controls(*_table_of_task(tables, task), task.tables[CONTROLS])
    return _data_for_fit(tables, task) if method.uses_weights else _confidential_data(tables, task)


def _released_data(tables: TableStore, task: TaskInput, draw: int) -> Microdata:
    """Return released dataset ``draw`` (from 1) of a task's run."""
    left = task.tables
    return _read_released_table(tables.directory, task.recipe, left[f"draw/{draw}"], left.get(classes_name(draw)))


def _confidential_blocks(tables: TableStore, task: TaskInput) -> StoredBlocks | None:
    """Return the confidential table of a task in blocks; None where the task needs all of it, or it is one part."""
    recipe, held = _parse_recipe(task.recipe), task.lease
    if not tables.has_parts(task.table_sha256) or not works_in_passes(recipe, TaskKind(held.kind), held.item):
        return None
    return _confidential_stored_blocks(tables.directory, task.table_sha256, task.schema)


@lru_cache(maxsize=1)
def _confidential_stored_blocks(directory: Path, sha256: str, schema: str) -> StoredBlocks:
    """Return a confidential table in blocks, the same for the tasks of a run, so that one process hashes it once."""
    return StoredBlocks(TableStore(directory), sha256, schema_from_json(schema), "confidential")


def _blocks_in_passes(tables: TableStore, task: TaskInput) -> tuple[StoredBlocks, StoredBlocks] | None:
    """Return the two tables whose blocks a fit or a measure in passes reads side by side, the confidential one twice where
    it reads no other; None where the task needs whole tables.
    """
    if (blocks := _confidential_blocks(tables, task)) is None:
        return None
    if task.lease.draw is None:
        return blocks, blocks
    other = _released_blocks(tables, task, task.lease.draw)
    # A file that was given to be scored may be of other records.
    return (blocks, other) if other.part_rows == blocks.part_rows else None


def kept_partials(tables: TableStore, task: TaskInput, helper: int = 0) -> KeptPartials | None:
    """Return where the answers of blocks of a fit or a measure are kept for whoever goes on with it or helps; None for
    those of other packages. ``helper`` is 0 for the one who has the task.
    """
    recipe, held = _parse_recipe(task.recipe), task.lease
    step = (recipe.synthesis if held.kind == TaskKind.FIT else recipe.measures)[held.item]
    if step.method.package != OWN:
        # It may change without another version of this one.
        return None
    read = (task.table_sha256, "" if held.draw is None else task.tables[f"draw/{held.draw}"])
    identity = identity_of_partials(task.recipe, task.schema, held.key, *read)
    return KeptPartials(tables.directory, held.run_id, identity, helper)


@contextlib.contextmanager
def _open_partials(tables: TableStore, task: TaskInput) -> Iterator[KeptPartials | None]:
    """Keep the answers of a task's blocks while it is computed, and afterwards where it was stopped."""
    kept = kept_partials(tables, task)
    if kept is None:
        yield None
        return
    kept.open()
    try:
        yield kept
    except Exception as error:
        if isinstance(error, Cancelled):
            kept.close()
        else:
            kept.remove()
        raise
    except BaseException:  # a signal ends the worker: another goes on
        kept.close()
        raise
    kept.remove()


def may_be_helped(tables: TableStore, task: TaskInput) -> bool:
    """Return whether others can compute blocks of a task."""
    # What is missing or cannot be read is reported by the task itself.
    with contextlib.suppress(EngineError, WorkspaceError, LookupError):
        return (
            task.lease.kind in (TaskKind.FIT, TaskKind.MEASURE)
            and _blocks_in_passes(tables, task) is not None
            and kept_partials(tables, task) is not None
        )
    return False


def _released_blocks(tables: TableStore, task: TaskInput, draw: int) -> StoredBlocks:
    """Return released dataset ``draw`` (from 1) of a task's run in blocks."""
    recipe = _parse_recipe(task.recipe)
    name = task.tables[f"draw/{draw}"]
    return StoredBlocks(
        tables,
        name,
        recipe.released_schema,
        recipe.origin,
        lambda block: replace(as_released(recipe, block.frame), schema=block.schema),
    )


def _compute_fit(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Fit the model of a synthesis step; the result has the fit, its privacy account and its diagnostics."""
    recipe, held = _parse_recipe(task.recipe), task.lease
    if (blocks := _confidential_blocks(tables, task)) is not None:
        # A step in passes keeps no account, and its fit estimates nothing.
        with contextlib.ExitStack() as files:
            kept = files.enter_context(_open_partials(tables, task))
            open_file = partial(_open_until_end, files, tables)
            fit = fit_in_passes(recipe, held.item, blocks, report, kept, open_file, key=key)
        looked_at = store_fit_diagnostics(tables, task, fit)
        ran = _record_packages(tables, held.key, [recipe.synthesis[held.item]])
        return replace(looked_at, artefacts={held.key: tables.write_arrays(fit.arrays), **looked_at.artefacts, **ran})
    fit = tasks.fit_model(recipe, held.item, _data_for_fit(tables, task), report, key=key)
    looked_at = store_fit_diagnostics(tables, task, fit)
    confidential = _confidential_data(tables, task)
    packages = trusted_packages(recipe, task.packages)
    rows = tasks.account_rows(recipe, held.item, confidential, key=key, trusted_packages=packages)
    rows += tasks.fit_rows(recipe, held.item, fit, confidential)
    ran = _record_packages(tables, held.key, [recipe.synthesis[held.item]])
    return replace(
        looked_at, rows=rows, artefacts={held.key: tables.write_arrays(fit.arrays), **looked_at.artefacts, **ran}
    )


def _record_packages(tables: TableStore, task: str, steps: Sequence[RecipeStep]) -> dict[str, str]:
    """Store version and hash of the packages of other authors whose steps a task carried out, as its artefacts.

    A package without a hash, or with other files than the process imported, is recorded without one.
    """
    names = dict.fromkeys(step.method.package for step in steps if step.method.package != OWN)
    found = []
    for name in names:
        try:
            found.append(loaded_package(name))
        except BadInput:
            found.append(PackageFiles(normalise_package_name(name), "", ""))
    return {packages_name(task): write_packages(tables, found)} if found else {}


def store_fit_diagnostics(tables: TableStore, task: TaskInput, fit: Fit) -> TaskResult:
    """Store the trace and chains of a fit, and return them with its diagnostics as a result."""
    held, target = task.lease, _parse_recipe(task.recipe).synthesis[task.lease.item].target
    artefacts = {} if fit.trace is None else {trace_name(held.item): write_trace(tables, fit.trace)}
    if fit.chains is not None:
        artefacts[chains_name(held.item)] = write_chains(tables, fit.chains)
    return TaskResult(target=target, diagnostics=fit.diagnostics, artefacts=artefacts)


def _compute_draw(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Draw a synthetic dataset from the fits."""
    recipe, held = _parse_recipe(task.recipe), task.lease
    assert held.draw is not None
    fits = [_read_fit(tables.directory, task.tables[f"fit/{k}"]) for k in range(len(recipe.synthesis))]
    left = {}
    if (blocks := _confidential_blocks(tables, task)) is not None:
        drawn = tables.write_microdata_blocks(draw_blocks(recipe, held.draw, blocks, fits, report, key=key))
    else:
        counts: list[RedrawCounts] = []
        released = tasks.draw_dataset(
            recipe, held.draw, _data_for_fit(tables, task), fits, report, key=key, note=counts.extend
        )
        drawn = tables.write_microdata(released)
        left = {redraws_name(held.draw): write_redraws(tables, counts)} if counts else {}
    left |= _record_packages(tables, held.key, recipe.synthesis)
    return TaskResult(artefacts={held.key: drawn, **left})


def _compute_anonymise(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Anonymise the confidential table by all steps of the recipe."""
    found = tasks.anonymise_data(_parse_recipe(task.recipe), _confidential_data(tables, task), report, key=key)
    classes = tables.write_arrays({"classes": found.class_keys})
    artefacts = {task.lease.key: tables.write_microdata(found.data), classes_name(1): classes}
    return TaskResult(diagnostics=found.notes, artefacts=artefacts)


def _compute_measure(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Compute a measure on one released dataset, or on the confidential data themselves."""
    held, recipe = task.lease, _parse_recipe(task.recipe)
    if recipe.measures[held.item].method.measures_whole_release:
        return _compute_whole_measure(tables, task, report, key)
    if (blocks := _blocks_in_passes(tables, task)) is not None:
        return _measure_by_block(tables, task, *blocks, report)
    confidential = _data_for_measure(tables, task)
    released = confidential if held.draw is None else _released_data(tables, task, held.draw)
    measure, rows = tasks.measure_dataset(recipe, held.item, confidential, released, held.draw, report, key=key)
    if not measure.per_record:
        return TaskResult(rows=rows)
    sha256 = write_record_values(tables, measure.per_record)
    return TaskResult(rows=rows, artefacts={record_values_name(held.item, held.draw): sha256})


def _open_until_end(files: contextlib.ExitStack, tables: TableStore) -> IO[bytes]:
    """Open a file without a name beside the tables that is closed with others."""
    return files.enter_context(tables.open_spool())


def _measure_by_block(
    tables: TableStore, task: TaskInput, confidential: StoredBlocks, released: StoredBlocks, report: ReportProgress
) -> TaskResult:
    """Compute a measure in passes over the parts of two tables."""
    recipe, held = _parse_recipe(task.recipe), task.lease
    # Rows that passes bring together are of single people: they stay beside the tables, in files without a name.
    with contextlib.ExitStack() as files:
        found, rows = measure_in_passes(
            recipe, held.item, confidential, released, held.draw, report,
            partial(_open_until_end, files, tables), files.enter_context(_open_partials(tables, task)),
        )  # fmt: skip
        if found.record_blocks is None:
            return TaskResult(rows=rows)
        sha256 = write_record_blocks(tables, found.record_blocks())
    return TaskResult(rows=rows, artefacts={record_values_name(held.item, held.draw): sha256})


def _compute_whole_measure(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Compute a block of a measure over all released datasets or, in its last task, gather its blocks."""
    held, confidential, recipe = task.lease, _data_for_measure(tables, task), _parse_recipe(task.recipe)
    releases = [_released_data(tables, task, draw) for draw in range(1, recipe.m + 1)]
    if held.point is not None:
        part = tasks.measure_block(recipe, held.item, held.point, confidential, releases, report, key=key)
        return TaskResult(artefacts={held.key: tables.write_arrays(part)})
    names = [tasks.block_name(held.item, block) for block in recipe.measures[held.item].spec.grid()]
    parts = [tables.read_arrays(task.tables[name]) for name in names]
    found, rows = tasks.gather_blocks(recipe, held.item, confidential, releases, parts)
    left = {guesses_name(held.item): tables.write_arrays(found.guesses)} if found.guesses else {}
    for draw, measure in enumerate((found.whole, *found.datasets)):
        if measure.per_record:
            name = record_values_name(held.item, draw) if draw else pooled_record_values_name(held.item)
            left[name] = write_record_values(tables, measure.per_record)
    return TaskResult(rows=rows, artefacts=left)


def _compute_study(tables: TableStore, task: TaskInput, report: ReportProgress, key: bytes) -> TaskResult:
    """Compute some points of a study."""
    recipe, held = _parse_recipe(task.recipe), task.lease
    releases = [_released_data(tables, task, draw) for draw in range(1, recipe.m + 1)]
    confidential = _confidential_data(tables, task)
    points = tasks.points_of_task(recipe, held.item, held.key)
    rows = tasks.compute_study_points(recipe, held.item, points, confidential, releases, report, key=key)
    return TaskResult(rows=rows)


def _compute_combine(tables: TableStore, task: TaskInput, report: ReportProgress, _: bytes) -> TaskResult:
    """Combine the rows of all datasets, compare them with the thresholds, and rank the records."""
    report(Progress(0, 1, "verdicts"))
    records = tables.count_table_records(task.table_sha256)
    recipe = _parse_recipe(task.recipe)
    draws = [task.tables[name] for draw in range(1, recipe.m + 1) if (name := f"draw/{draw}") in task.tables]
    released = [tables.count_table_records(sha256) for sha256 in draws]
    rows, verdicts = tasks.combine_rows(recipe, task.rows, release_provenance(recipe, records, released))
    return TaskResult(rows=rows, verdicts=verdicts, artefacts=store_rankings(tables, recipe, task.tables, records))


def _compute_tables(tables: TableStore, task: TaskInput, report: ReportProgress, _: bytes) -> TaskResult:
    """Protect the tables of the recipe, jointly."""
    earlier = read_earlier_tables(tables, task.tables[EARLIER_TABLES]) if EARLIER_TABLES in task.tables else ()
    found = protect_tables_of_recipe(_parse_recipe(task.recipe), _confidential_data(tables, task), report, earlier)
    return TaskResult(artefacts={task.lease.key: write_protected_tables(tables, StoredTables.from_protected(found))})


def _compute_tables_audit(tables: TableStore, task: TaskInput, report: ReportProgress, _: bytes) -> TaskResult:
    """Audit the protected tables again, by other random numbers."""
    report(Progress(0, 1, "readers of the tables"))
    stored = read_protected_tables(tables, task.tables[tasks.TABLES])
    recipe = _parse_recipe(task.recipe)
    protection = recipe.table_protection
    assert protection is not None, "a recipe with tables has rules for them"
    again = audit_protected_tables(
        stored.system,
        stored.audit,
        protection.rules,
        list_cells_by_hand(stored.audit),
        stored.are_contributors_examined,
        report,
    )
    audited = replace(stored, audit=again)
    return TaskResult(
        rows=table_rows(recipe, audited.counts),
        artefacts={task.lease.key: write_protected_tables(tables, audited)},
    )


_COMPUTE_BY_KIND: dict[TaskKind, Callable[[TableStore, TaskInput, ReportProgress, bytes], TaskResult]] = {
    TaskKind.TABLES: _compute_tables,
    TaskKind.TABLES_AUDIT: _compute_tables_audit,
    TaskKind.ANONYMISE: _compute_anonymise,
    TaskKind.FIT: _compute_fit,
    TaskKind.DRAW: _compute_draw,
    TaskKind.MEASURE: _compute_measure,
    TaskKind.STUDY: _compute_study,
    TaskKind.COMBINE: _compute_combine,
}


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The reason why a task failed.

    message: reason in words, for its run
    trace: where in the code, for the log
    partial_result: what there is to look at all the same, such as chains that have not converged
    is_unconverged: whether a sampler has not converged
    """

    message: str
    trace: str = ""
    partial_result: TaskResult = NO_RESULT
    is_unconverged: bool = False


@dataclass(frozen=True, slots=True)
class TaskReturned:
    """Outcome of a task that was not carried out: its run was stopped, or the database was locked for too long."""


def help_task(directory: Path, task: TaskInput, helper: int) -> None:
    """Compute answers of blocks of a task in passes that another process has, until it has ended. ``helper`` is 1 for the
    first of its helpers.
    """
    forbid_core_dumps()
    tables, held = TableStore(directory / "tables"), task.lease
    # Whatever is wrong is wrong for the one who has the task, too, and he reports it.
    with contextlib.suppress(HelpEnded, EngineError, WorkspaceError, OSError):
        kept, blocks = kept_partials(tables, task, helper), _blocks_in_passes(tables, task)
        assert kept is not None
        assert blocks is not None
        with reused_memory(), _thread_controller(len(sys.modules)).limit(limits=1):
            compute_partials(_parse_recipe(task.recipe), TaskKind(held.kind), held.item, *blocks, kept)


def run_task(directory: Path, task: TaskInput, *, database: bool = True) -> TaskResult | TaskFailure | TaskReturned:
    """Compute a claimed task and return its result, or why it failed.

    database: whether progress can be written to the database, which must be on this machine's own disk
    """
    forbid_core_dumps()  # a worker of Dask is no process of ours until it gets here
    held, tables = task.lease, TableStore(directory / "tables")
    try:
        key = run_key(directory, task.key_fingerprint)
        return compute_task(tables, task, ProgressReporter(directory, held) if database else ignore_progress, key)
    except Cancelled:
        return TaskReturned()
    except NotConverged as error:
        return TaskFailure(
            str(error),
            partial_result=NO_RESULT if error.left is None else store_fit_diagnostics(tables, task, error.left),
            is_unconverged=True,
        )
    except (EngineError, WorkspaceError) as error:
        return TaskFailure(str(error))
    except Exception as error:  # noqa: BLE001  (whatever a method raises ends its run, not the worker)
        if isinstance(error, sqlite3.OperationalError) and is_lock_error(error):
            return TaskReturned()
        if trouble := disk_error_message(error):
            return TaskFailure(f"{held.key}: {trouble}")
        # Lines of code alone: the text of an error of another library may quote values, such as "could not convert
        # string to float".
        trace = "".join(traceback.format_tb(error.__traceback__))
        return TaskFailure(f"{held.key}: {type(error).__name__}; the run's log says where", trace)
