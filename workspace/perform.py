"""One task, done: what it needs is read from the workspace, the engine computes, tables are stored."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from threadpoolctl import ThreadpoolController

from engine import execution
from engine.errors import Cancelled
from engine.microdata import Microdata
from engine.plan import TaskKind
from engine.recipe import Recipe
from engine.results import Fit
from engine.run import Progress

from .database import is_busy
from .memory import forget_peak, peak_bytes
from .queue import Claim, Outcome, progress, still_wanted
from .record_tables import records_name, write_records
from .runs import find_run, raw_rows
from .workspace import Workspace

__all__ = ["perform"]

REPORT_SECONDS = 0.5
TABLES_KEPT = 8
FITS_KEPT = 64


class _Reporter:
    """Writes progress twice a second at most, and stops the computation when nobody wants the run any more."""

    def __init__(self, workspace: Workspace, held: Claim) -> None:
        self.workspace = workspace
        self.held = held
        self.last = time.monotonic()

    def __call__(self, made: Progress) -> None:
        if time.monotonic() - self.last < REPORT_SECONDS:
            return
        self.last = time.monotonic()
        if not self._written(made) or not still_wanted(self.workspace, self.held.run_id):
            raise Cancelled(f"run {self.held.run_id} was stopped, or the task went to another worker")

    def _written(self, made: Progress) -> bool:
        try:
            return progress(self.workspace, self.held, made.done, made.total, made.what)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return True


def perform(directory: Path, held: Claim) -> Outcome:
    """Compute a claimed task on one BLAS thread, so that the answer does not depend on the machine's cores."""
    workspace = _workspace(directory)
    forget_peak()
    started = time.perf_counter()
    with _thread_pools(len(sys.modules)).limit(limits=1):
        outcome = _KINDS[TaskKind(held.kind)](workspace, held, _Reporter(workspace, held))
    return Outcome(
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


def _workspace(directory: Path) -> Workspace:
    return _workspace_of_thread(directory, threading.get_ident())


@lru_cache(maxsize=4)
def _workspace_of_thread(directory: Path, thread: int) -> Workspace:
    return Workspace.open(directory)


@lru_cache(maxsize=8)
def _recipe(text: str) -> Recipe:
    return Recipe.from_toml(text)


@lru_cache(maxsize=TABLES_KEPT)
def _table(directory: Path, dataset_id: int, sha256: str, *, confidential: bool) -> Microdata:
    workspace = _workspace(directory)
    schema = workspace.dataset(dataset_id).schema
    return workspace.tables.read_microdata(sha256, schema, "confidential" if confidential else "synthetic")


@lru_cache(maxsize=FITS_KEPT)
def _fit(directory: Path, sha256: str) -> Fit:
    return Fit(_workspace(directory).tables.read_arrays(sha256))


def _plan_of(workspace: Workspace, held: Claim) -> Recipe:
    return _recipe(find_run(workspace, held.run_id).recipe_toml)


def _confidential(workspace: Workspace, held: Claim) -> Microdata:
    dataset = workspace.dataset(find_run(workspace, held.run_id).dataset_id)
    return _table(workspace.directory, dataset.id, dataset.table_sha256, confidential=True)


def _released(workspace: Workspace, held: Claim, draw: int) -> Microdata:
    dataset_id = find_run(workspace, held.run_id).dataset_id
    return _table(workspace.directory, dataset_id, artefact(workspace, held.run_id, f"draw/{draw}"), confidential=False)


def artefact(workspace: Workspace, run_id: int, name: str) -> str:
    """The hash of a table that a run's task left."""
    row = workspace.connection.execute(
        "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?", (run_id, name)
    ).fetchone()
    return str(row[0])


def _perform_fit(workspace: Workspace, held: Claim, report: _Reporter) -> Outcome:
    recipe = _plan_of(workspace, held)
    fit = execution.fit_model(recipe, held.item, _confidential(workspace, held), report)
    sha256 = workspace.tables.write_arrays(fit.arrays)
    target = recipe.synthesis[held.item].target
    return Outcome(target=target, diagnostics=fit.diagnostics, artefacts={held.key: sha256})


def _perform_draw(workspace: Workspace, held: Claim, report: _Reporter) -> Outcome:
    recipe = _plan_of(workspace, held)
    assert held.draw is not None
    fits = [
        _fit(workspace.directory, artefact(workspace, held.run_id, f"fit/{k}")) for k in range(len(recipe.synthesis))
    ]
    released = execution.draw_dataset(recipe, held.draw, _confidential(workspace, held), fits, report)
    return Outcome(artefacts={held.key: workspace.tables.write_microdata(released)})


def _perform_measure(workspace: Workspace, held: Claim, report: _Reporter) -> Outcome:
    confidential = _confidential(workspace, held)
    released = confidential if held.draw is None else _released(workspace, held, held.draw)
    recipe = _plan_of(workspace, held)
    measure, rows = execution.measure_dataset(recipe, held.item, confidential, released, held.draw, report)
    if not measure.per_record:
        return Outcome(rows=rows)
    sha256 = write_records(workspace.tables, measure.per_record)
    return Outcome(rows=rows, artefacts={records_name(held.item, held.draw): sha256})


def _perform_study(workspace: Workspace, held: Claim, report: _Reporter) -> Outcome:
    recipe = _plan_of(workspace, held)
    assert held.point is not None
    releases = [_released(workspace, held, draw) for draw in range(1, recipe.m + 1)]
    confidential = _confidential(workspace, held)
    return Outcome(rows=execution.study_point(recipe, held.item, held.point, confidential, releases, report))


def _perform_combine(workspace: Workspace, held: Claim, report: _Reporter) -> Outcome:
    report(Progress(0, 1, "verdicts"))
    rows, verdicts = execution.combine(_plan_of(workspace, held), raw_rows(workspace, held.run_id))
    return Outcome(rows=rows, verdicts=verdicts)


_KINDS: dict[TaskKind, Callable[[Workspace, Claim, _Reporter], Outcome]] = {
    TaskKind.FIT: _perform_fit,
    TaskKind.DRAW: _perform_draw,
    TaskKind.MEASURE: _perform_measure,
    TaskKind.STUDY: _perform_study,
    TaskKind.COMBINE: _perform_combine,
}
