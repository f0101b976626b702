"""One task, done: what it needs is read from stored tables, the engine computes, tables are stored. No database."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from threadpoolctl import ThreadpoolController

from sfumato.engine import execution
from sfumato.engine.execution import TaskKind
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.results import Fit
from sfumato.engine.run import Progress

from ..store.record_tables import records_name, write_records
from ..store.released_tables import classes_name, read_released
from ..store.tables import Tables
from ..store.trace_tables import trace_name, write_trace
from ..store.workspace import schema_from_json
from .memory import forget_peak, peak_bytes
from .queue import Outcome
from .task_input import Order

__all__ = ["perform", "to_look_at"]

TABLES_KEPT = 8
FITS_KEPT = 64
Report = Callable[[Progress], None]


def perform(tables: Tables, order: Order, report: Report) -> Outcome:
    """Compute a task on one BLAS thread, so that the answer does not depend on the machine's cores."""
    forget_peak()
    started = time.perf_counter()
    with _thread_pools(len(sys.modules)).limit(limits=1):
        outcome = _KINDS[TaskKind(order.held.kind)](tables, order, report)
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


@lru_cache(maxsize=8)
def _recipe(text: str) -> Recipe:
    return Recipe.from_toml(text)


@lru_cache(maxsize=TABLES_KEPT)
def _table(directory: Path, schema: str, sha256: str) -> Microdata:
    return Tables(directory).read_microdata(sha256, schema_from_json(schema), "confidential")


@lru_cache(maxsize=TABLES_KEPT)
def _release(directory: Path, recipe: str, sha256: str, classes_sha256: str | None) -> Microdata:
    return read_released(Tables(directory), _recipe(recipe), sha256, classes_sha256)


@lru_cache(maxsize=FITS_KEPT)
def _fit(directory: Path, sha256: str) -> Fit:
    return Fit(Tables(directory).read_arrays(sha256))


def _confidential(tables: Tables, order: Order) -> Microdata:
    return _table(tables.directory, order.schema, order.confidential)


def _released(tables: Tables, order: Order, draw: int) -> Microdata:
    left = order.tables
    return _release(tables.directory, order.recipe, left[f"draw/{draw}"], left.get(classes_name(draw)))


def _perform_fit(tables: Tables, order: Order, report: Report) -> Outcome:
    recipe, held = _recipe(order.recipe), order.held
    fit = execution.fit_model(recipe, held.item, _confidential(tables, order), report)
    looked_at = to_look_at(tables, order, fit)
    return replace(looked_at, artefacts={held.key: tables.write_arrays(fit.arrays), **looked_at.artefacts})


def to_look_at(tables: Tables, order: Order, fit: Fit) -> Outcome:
    """What a fit leaves to look at, whether its draws can be used or not: statistics and the trace, stored."""
    held, target = order.held, _recipe(order.recipe).synthesis[order.held.item].target
    artefacts = {} if fit.trace is None else {trace_name(held.item): write_trace(tables, fit.trace)}
    return Outcome(target=target, diagnostics=fit.diagnostics, artefacts=artefacts)


def _perform_draw(tables: Tables, order: Order, report: Report) -> Outcome:
    recipe, held = _recipe(order.recipe), order.held
    assert held.draw is not None
    fits = [_fit(tables.directory, order.tables[f"fit/{k}"]) for k in range(len(recipe.synthesis))]
    released = execution.draw_dataset(recipe, held.draw, _confidential(tables, order), fits, report)
    return Outcome(artefacts={held.key: tables.write_microdata(released)})


def _perform_anonymise(tables: Tables, order: Order, report: Report) -> Outcome:
    found = execution.anonymise(_recipe(order.recipe), _confidential(tables, order), report)
    classes = tables.write_arrays({"classes": found.classes})
    artefacts = {order.held.key: tables.write_microdata(found.data), classes_name(1): classes}
    return Outcome(diagnostics=found.notes, artefacts=artefacts)


def _perform_measure(tables: Tables, order: Order, report: Report) -> Outcome:
    held, confidential = order.held, _confidential(tables, order)
    released = confidential if held.draw is None else _released(tables, order, held.draw)
    recipe = _recipe(order.recipe)
    measure, rows = execution.measure_dataset(recipe, held.item, confidential, released, held.draw, report)
    if not measure.per_record:
        return Outcome(rows=rows)
    sha256 = write_records(tables, measure.per_record)
    return Outcome(rows=rows, artefacts={records_name(held.item, held.draw): sha256})


def _perform_study(tables: Tables, order: Order, report: Report) -> Outcome:
    recipe, held = _recipe(order.recipe), order.held
    assert held.point is not None
    releases = [_released(tables, order, draw) for draw in range(1, recipe.m + 1)]
    confidential = _confidential(tables, order)
    return Outcome(rows=execution.study_point(recipe, held.item, held.point, confidential, releases, report))


def _perform_combine(tables: Tables, order: Order, report: Report) -> Outcome:
    report(Progress(0, 1, "verdicts"))
    records = tables.records(order.confidential)
    rows, verdicts = execution.combine(_recipe(order.recipe), order.rows, records)
    return Outcome(rows=rows, verdicts=verdicts)


_KINDS: dict[TaskKind, Callable[[Tables, Order, Report], Outcome]] = {
    TaskKind.ANONYMISE: _perform_anonymise,
    TaskKind.FIT: _perform_fit,
    TaskKind.DRAW: _perform_draw,
    TaskKind.MEASURE: _perform_measure,
    TaskKind.STUDY: _perform_study,
    TaskKind.COMBINE: _perform_combine,
}
