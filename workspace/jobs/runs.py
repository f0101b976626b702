"""Entry of runs with their tasks, and their results as JSON.

The weights of single records of a run follow from the risks of an earlier one. They show who was at risk, so they are
as confidential as the data: an artefact of the run, sealed, in no recipe and no public file.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.table_blocks import TableBlocks
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import Task, plan_tasks
from sfumato.engine.methods.labels import to_labelled_json
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.published import PublishedFigure, RunFigures, SourceTable, source_tables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.weights import risk_by_known_variables, weights_by_risk

from ..audit import AuditAct, append_act
from ..errors import NotFound, NotReady
from ..ingest.conformed_blocks import ConformedBlocks
from ..ingest.sources import SourceFile
from ..policy.disclosure import INTERNAL
from ..policy.installed_packages import find_trusted_packages
from ..policy.packages import PackageFiles
from ..reporting.attacks import attack_objects
from ..reporting.constraints import redraws_objects
from ..store.artefacts import (
    CONTROLS,
    WEIGHTS,
    classes_name,
    controls_hash,
    read_packages,
    weights_hash,
    write_weights,
)
from ..store.disk import check_disk_space, estimate_run_bytes
from ..store.keys import PUBLIC_NAME, compute_fingerprint
from ..store.ledger import enter_statement, read_population_registry
from ..store.protected_tables import EARLIER_TABLES
from ..store.redraw_counts import read_redraws
from ..store.runs import (
    RunState,
    StoredRun,
    companion_ids,
    find_run,
    installed_version,
    read_run_records,
    release_names,
)
from ..store.seals import artefact_part_seals, result_part_seals, seal_run, store_part_seals
from ..store.stored_blocks import StoredBlocks
from ..store.tables import TableStore
from ..store.workspace import StoredDataset, Workspace
from ..upkeep.integrity import verify_run
from ..views.coverage import read_file_coverage
from ..views.records import read_record_risks, record_measures, select_measure
from ..views.results import read_result_rows, read_verdicts
from .computing import check_runs_fit

VERSIONED_PACKAGES = (
    "sfumato",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "statsmodels",
    "scikit-learn",
    "emcee",
    "arviz-stats",
)
RunData = Microdata | ConformedBlocks | StoredBlocks
"""Data of a run: in memory, or in blocks."""
_ROW_COLUMNS = (
    "family, method, measure, target, dataset, draw, level, value, lower, upper, baseline, unit, status, reason, params"
)


def record_weights(workspace: Workspace, recipe: Recipe, data: Microdata) -> Floats | None:
    """Compute the weights (n,) of records that a recipe requests; None where it requests none.

    They follow from the stored risks of the run that the recipe names, or from how few records share the variables it
    names. Raises NotAsSealed, and BadInput where that run is not usable or a step cannot use weights.
    """
    asked = recipe.weights
    if asked is None:
        return None
    if asked.run is None:
        risk = risk_by_known_variables(recipe.recode_data(data), asked.known)
    else:
        risk = _risk_from_run(workspace, asked.run, asked.measure, data)
    weights = weights_by_risk(risk, asked.strength)
    if not weights.any():
        raise BadInput("weights.strength", "every record would have no influence at all; take a lower strength")
    check_steps(recipe, data.with_weights(weights), find_trusted_packages(recipe, workspace.directory))
    return weights


def _risk_from_run(workspace: Workspace, run_id: int, name: str, data: Microdata) -> Floats:
    """Return the risk of each record (n,) by a measure of an earlier run of the same records. Raises what
    ``record_weights`` does.
    """
    try:
        run = find_run(workspace, run_id)
    except NotFound as error:
        raise BadInput("weights.run", str(error)) from None
    if run.state is not RunState.DONE:
        raise BadInput("weights.run", f"run {run.id} is {run.state}, not done; resume it first")
    verify_run(workspace, run.id)
    earlier = read_run_records(workspace, run)
    if len(earlier) != len(data) or earlier.sha256 != data.sha256:
        raise BadInput(
            "weights.run",
            f"run {run.id} is of other records or variables, so its risks are not those of these records; take a run of the same "
            "[data] and [variables]",
        )
    try:
        measure = select_measure(record_measures(workspace, run.id), name, run.id)
    except (NotFound, NotReady) as error:
        raise BadInput("weights.measure", str(error)) from None
    risk = read_record_risks(workspace, measure).probability
    if others := int(np.isnan(risk).sum()):
        raise BadInput(
            "weights.measure",
            f"{measure.key} did not ask about {others:,} of {len(risk):,} records in run {run.id}: they would keep all their influence, while this run "
            "would ask about the same few again, which then look safer than the others are; have it ask about all records there",
        )
    return risk


def enter_run(
    workspace: Workspace,
    recipe: Recipe,
    source: SourceFile,
    data: Microdata,
    external_datasets: Sequence[tuple[SourceFile, Microdata]] = (),
    project: str = "",
) -> int:
    """Enter a run with all its tasks in one transaction, and return its number.

    external_datasets: released datasets that another tool made, where the recipe makes none

    Raises NotEnoughDisk, NotEnoughMemory, NoCluster and NoKey, before anything is stored.
    """
    return enter_runs(workspace, [RunEntry(recipe, source, data, tuple(external_datasets))], project)[0]


@dataclass(frozen=True)
class RunEntry:
    """A run to enter.

    recipe: its recipe
    source: file of the data
    data: the data; long ones that a recipe without weights and hold-out uses may be in blocks
    external_datasets: released datasets with their files, where another tool made them
    earlier_tables: tables that earlier releases printed of the same people, as arrays; None where there are none
    """

    recipe: Recipe
    source: SourceFile
    data: RunData
    external_datasets: tuple[tuple[SourceFile, Microdata], ...] = ()
    earlier_tables: Mapping[str, NDArray[Any]] | None = None

    @property
    def whole_data(self) -> Microdata | None:
        """Return the data, None where they are in blocks."""
        return self.data if isinstance(self.data, Microdata) else None

    @property
    def title(self) -> str:
        """Return the recipe's title, else the name of the file of the data."""
        return self.recipe.title or self.source.name


def enter_runs(
    workspace: Workspace,
    entries: Sequence[RunEntry],
    project: str = "",
    *,
    on_entered: Callable[[sqlite3.Connection, list[int]], None] | None = None,
) -> list[int]:
    """Enter runs in one project and one transaction, and return their numbers; all but the first are companions of the
    first.

    project: name of the project; by default the title of the first run
    on_entered: called in the transaction with the numbers

    Raises NotEnoughDisk, NotEnoughMemory, NoCluster, BadInput for weights that cannot be computed, and NoKey, before
    anything is stored.
    """
    key = compute_fingerprint(workspace.read_workspace_key())
    check_runs_fit(workspace, [(entry.recipe, len(entry.data)) for entry in entries])
    weights = [
        None if entry.whole_data is None else record_weights(workspace, entry.recipe, entry.whole_data)
        for entry in entries
    ]
    check_disk_space(workspace.directory, sum(estimate_run_bytes(entry.recipe, entry.data) for entry in entries))
    # Before the transaction: neither writing large tables nor reading the versions of packages may hold the lock.
    for entry in entries:
        _versions_json(entry.recipe.packages)
    stored = [_store_entry_tables(workspace, entry, own) for entry, own in zip(entries, weights, strict=True)]
    with workspace.write_transaction() as connection:
        project_id = workspace.ensure_project(project or entries[0].title)
        for entry in entries:
            _state_population(connection, project_id, entry.recipe)
        run_ids = [
            _insert_run(workspace, connection, project_id, entry, key, *hashes)
            for entry, hashes in zip(entries, stored, strict=True)
        ]
        connection.executemany(
            "INSERT INTO companion (run_id, position, companion_id) VALUES (?, ?, ?)",
            [(run_ids[0], position, other) for position, other in enumerate(run_ids[1:])],
        )
        if on_entered is not None:
            on_entered(connection, run_ids)
    return run_ids


def _state_population(connection: sqlite3.Connection, project_id: int, recipe: Recipe) -> None:
    """Enter the population that a recipe states for a project. Raises BadInput where the project is of another."""
    stated = recipe.population
    if stated is None:
        return
    registry = read_population_registry(connection)
    current = registry.population_of_project(project_id)
    # A recipe is no place to begin a new population: whoever does so gives a reason.
    if registry.changes_of_project(project_id) and registry.key_of(stated.name) != registry.key_of(current):
        raise BadInput(
            "population.name",
            f'the project is of the population "{current}", not "{stated.name}"; name that one, or choose another project. If other '
            "people were asked: sfumato population PROJECT --others NAME --reason TEXT",
        )
    enter_statement(connection, project_id, stated.name, size=stated.size, identifier=stated.identifier)


def _store_entry_tables(
    workspace: Workspace, entry: RunEntry, weights: Floats | None
) -> tuple[str, dict[str, str], list[dict[str, str]]]:
    """Store the tables of a run to enter.

    Returns the hash of the confidential table, those of weights and controls by name, and those of each external
    dataset's artefacts by name.
    """
    tables = workspace.tables
    own = {} if weights is None else {WEIGHTS: write_weights(tables, weights)}
    if entry.whole_data is not None and entry.whole_data.controls is not None:
        own[CONTROLS] = tables.write_microdata(entry.whole_data.controls)
    if entry.earlier_tables is not None:
        own[EARLIER_TABLES] = tables.write_arrays(entry.earlier_tables)
    given = []
    for draw, (_, released) in enumerate(entry.external_datasets, start=1):
        artefacts = {f"draw/{draw}": tables.write_microdata(released)}
        if released.classes is not None:
            artefacts[classes_name(draw)] = tables.write_arrays({"classes": released.classes})
        given.append(artefacts)
    return _store_data(tables, entry.data), own, given


def _store_data(tables: TableStore, data: Microdata | TableBlocks) -> str:
    """Store the data of a run, and return the hash of their table, which may be there."""
    if isinstance(data, StoredBlocks) and data.tables is tables and data.is_whole_table:
        return data.sha256
    return tables.write_microdata(data)


def _insert_run(
    workspace: Workspace,
    connection: sqlite3.Connection,
    project_id: int,
    entry: RunEntry,
    key: str,
    stored: str,
    own: dict[str, str],
    given: list[dict[str, str]],
) -> int:
    """Insert a run with its datasets, artefacts and tasks, and return its number."""
    source = entry.source
    dataset_id = workspace.add_dataset(project_id, source.name, source.sha256, entry.data, stored)
    run_id = _insert_run_row(workspace, project_id, dataset_id, entry.title, entry.recipe, key)
    for draw, ((file, released), artefacts) in enumerate(zip(entry.external_datasets, given, strict=True), start=1):
        workspace.add_dataset(project_id, file.name, file.sha256, released, artefacts[f"draw/{draw}"])
    for artefacts in (own, *given):
        named = [(run_id, name, sha256) for name, sha256 in artefacts.items()]
        connection.executemany("INSERT INTO artefact VALUES (?, ?, ?)", named)
        store_part_seals(connection, run_id, artefact_part_seals(connection, workspace.sealer, run_id, artefacts, ()))
    _insert_tasks(connection, run_id, plan_tasks(entry.recipe))
    return run_id


def reenter_run(workspace: Workspace, run_id: int) -> int:
    """Enter the recipe and the data of a run again as a new run, and return its number.

    Controls and weights are those of the old run. Raises NotFound, NoKey, NotEnoughMemory and NoCluster.
    """
    old = find_run(workspace, run_id)
    if weights_hash(workspace, run_id) or controls_hash(workspace, run_id):
        verify_run(workspace, run_id)
    recipe = Recipe.from_table(old.recipe_table)
    check_runs_fit(workspace, [(recipe, workspace.find_dataset(old.dataset_id).records)])
    key = compute_fingerprint(workspace.read_workspace_key())
    # Records that were drawn by a public key stay those of a public run.
    if recipe.data.is_random and old.key_public:
        key = old.key_fingerprint
    _versions_json(recipe.packages)  # read before the transaction
    with workspace.write_transaction() as connection:
        again = _insert_run_row(workspace, old.project_id, old.dataset_id, old.title, recipe, key)
        kept = "name = 'weights'" if recipe.makes_release else "name LIKE 'draw/%' OR name LIKE 'classes/%'"
        kept = f"{kept} OR name IN ('controls', '{EARLIER_TABLES}')"
        connection.execute(
            f"INSERT INTO artefact SELECT ?, name, sha256 FROM artefact WHERE run_id = ? AND ({kept})", (again, run_id)
        )
        store_part_seals(connection, again, result_part_seals(connection, workspace.sealer, again))
        _insert_tasks(connection, again, plan_tasks(recipe))
    return again


@lru_cache(maxsize=8)
def _versions_json(packages: tuple[str, ...]) -> str:
    """Return the versions of the packages that a run depends on, as JSON."""
    return json.dumps({name: installed_version(name) for name in dict.fromkeys((*VERSIONED_PACKAGES, *packages))})


def _insert_run_row(
    workspace: Workspace, project_id: int, dataset_id: int, title: str, recipe: Recipe, key: str
) -> int:
    """Insert the row of a run, enter it in the audit log with its seal, and return its number."""
    connection = workspace.connection
    cursor = connection.execute(
        """INSERT INTO run (id, project_id, dataset_id, title, recipe, recipe_sha256, seed, versions, state, created,
                            key_public, key_fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            _next_run_number(connection),
            project_id,
            dataset_id,
            title,
            recipe.to_toml(),
            recipe.sha256,
            recipe.seed,
            _versions_json(recipe.packages),
            RunState.QUEUED.value,
            time.time(),
            key == PUBLIC_NAME,
            key,
        ),
    )
    run_id = int(cursor.lastrowid or 0)
    append_act(
        connection,
        AuditAct.RUN_ENTERED,
        f"run {run_id}",
        dataset=dataset_id,
        recipe_sha256=recipe.sha256,
        seed=recipe.seed,
        seal=seal_run(connection, workspace.sealer, run_id),
    )
    return run_id


def _next_run_number(connection: sqlite3.Connection) -> int:
    """Return a number that no run has or had, deleted ones among them."""
    # The audit log and reports name runs by their numbers for ever.
    query = "SELECT max((SELECT coalesce(max(id), 0) FROM run), (SELECT coalesce(max(id), 0) FROM deleted_run))"
    return int(connection.execute(query).fetchone()[0]) + 1


def _insert_tasks(connection: sqlite3.Connection, run_id: int, tasks: Sequence[Task]) -> None:
    """Insert the tasks of a run and what each of them waits for."""
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


def insert_result_rows(connection: sqlite3.Connection, run_id: int, task_id: int, rows: Sequence[Row]) -> None:
    """Store result rows under the task that computed them."""
    connection.executemany(
        f"INSERT INTO result (run_id, task_id, {_ROW_COLUMNS}) VALUES (?, ?, {', '.join('?' * 15)})",
        [(run_id, task_id, *(_column_value(value) for value in row.to_dict().values())) for row in rows],
    )


def _column_value(value: object) -> Any:
    """Return a field of a result row as the database stores it."""
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value


def result_object(workspace: Workspace, run_id: int) -> dict[str, Any]:
    """Return the results of a run as the object that ``--json`` writes. Raises NotAsSealed."""
    verify_run(workspace, run_id)
    run = find_run(workspace, run_id)
    dataset: StoredDataset = workspace.find_dataset(run.dataset_id)
    rows = read_result_rows(workspace, run_id)
    return {
        "disclosure": INTERNAL,
        "run": run.id,
        "recipe_sha256": run.recipe_sha256,
        "data_sha256": dataset.source_sha256,
        "seed": run.seed,
        "versions": dict(run.versions),
        **({"packages": packages} if (packages := _packages_that_ran(workspace, run_id)) else {}),
        "seconds": run.seconds,
        "file_coverage": read_file_coverage(workspace, run).to_table(),
        "rows": [to_labelled_json(row) for row in rows],
        "verdicts": [to_labelled_json(verdict) for verdict in read_verdicts(workspace, run_id)],
        "published": [_published_object(figure, rows) for figure in run.recipe.published],
        **({"attacks": attacks} if (attacks := attack_objects(rows)) else {}),
        **({"redrawn": redrawn} if (redrawn := redraws_objects(read_redraws(workspace, run_id))) else {}),
    }


def _packages_that_ran(workspace: Workspace, run_id: int) -> list[dict[str, Any]]:
    """Return version and hash of each package of another author as it ran, with the tasks that recorded it."""
    tasks: dict[PackageFiles, list[str]] = {}
    for task, packages in sorted(read_packages(workspace, run_id).items()):
        for one in packages:
            tasks.setdefault(one, []).append(task)
    return [{**asdict(one), "tasks": where} for one, where in tasks.items()]


def _published_object(figure: PublishedFigure, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a published figure that the recipe quotes beside the run's own value; None where the run has none."""
    found = next((row.value for row in rows if figure.matches(row)), None)
    return {**asdict(figure), "found": found}


def published_figure_tables(workspace: Workspace, runs: Sequence[StoredRun]) -> tuple[SourceTable, ...]:
    """Return the published figures that the recipes of these runs quote, with the runs' own values."""
    named = zip(release_names(runs), runs, strict=True)
    return source_tables(
        [RunFigures(name, run.recipe.published, read_result_rows(workspace, run.id)) for name, run in named]
    )


def result_object_with_companions(workspace: Workspace, run_id: int) -> dict[str, Any]:
    """Return the results of a run as ``--json`` writes them, with those of its companions."""
    beside = [result_object(workspace, other) for other in companion_ids(workspace, run_id)]
    return {**result_object(workspace, run_id), **({"companions": beside} if beside else {})}
