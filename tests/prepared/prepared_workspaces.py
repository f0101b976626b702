"""Workspaces with runs in them: a recipe on a table is entered, or carried out too, in one call."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows, read_head, seal_rows_after, write_head_file
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.charges import LedgerCharge
from sfumato.workspace.store.database import MIGRATIONS, immediate_transaction
from sfumato.workspace.store.heads import HeadsFolder, store_head_outside
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.releases_in_progress import ReleaseInProgress, begin_release
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.seals import result_part_seals, seal_run, store_part_seals
from sfumato.workspace.store.workspace import Workspace

Plan = Recipe | Mapping[str, Any]
Table = Microdata | pd.DataFrame


def enter_recipe(
    workspace: Workspace,
    plan: Plan,
    table: Table,
    file: str = "simulated.csv",
    content: bytes = b"simulated",
    **more: Any,
) -> int:
    """Enter a run of a recipe on a table that is said to be of a file with this content; return its number."""
    recipe = plan if isinstance(plan, Recipe) else Recipe.from_table(dict(plan))
    data = table if isinstance(table, Microdata) else conform_to_schema(table, recipe.schema)
    return enter_run(workspace, recipe, SourceFile(file, content), data, **more)


def run_recipe(
    workspace: Workspace,
    plan: Plan,
    table: Table,
    file: str = "simulated.csv",
    content: bytes = b"simulated",
    **more: Any,
) -> int:
    """Enter a run as ``enter_recipe`` does and carry out all that waits; return its number."""
    run_id = enter_recipe(workspace, plan, table, file, content, **more)
    run_worker(workspace.directory, idle=0)
    return run_id


def finished_workspace(
    directory: Path,
    plans: Iterable[Plan],
    table: Table,
    file: str = "simulated.csv",
    *,
    key: bytes = PUBLIC,
    **more: Any,
) -> Path:
    """Make a workspace in which a run of each recipe on the table is done; return its directory."""
    with Workspace.create(directory, key) as workspace:
        for plan in plans:
            enter_recipe(workspace, plan, table, file, **more)
    run_worker(directory, idle=0)
    return directory


def release_recipe(
    workspace: Workspace, plan: Plan, table: Table, folder: Path, file: str = "x.csv", content: bytes = b"x"
) -> Path:
    """Carry a recipe out on a table and release the run into a new folder in this one; return the folder of the release."""
    from sfumato.workspace.service.release import (
        write_run_release,  # its documents take long to load, and few tests have any
    )

    run_id = run_recipe(workspace, plan, table, file, content)
    out = folder / f"out-{run_id}"
    write_run_release(workspace, run_id, out, reason="a test of the release")
    return out


def reseal(workspace: Workspace) -> None:
    """Seal runs again as they stand, as only whoever has the key can: for tests that write what no run would find.

    The audit log is made anew with the same acts, and the last of each run says how it stands.
    """
    acts = {"done": "run finished", "failed": "run failed", "interrupted": "run interrupted"}
    connection, previous = workspace.connection, ""
    guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
    with immediate_transaction(connection):
        connection.execute("DELETE FROM seal")
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for run in list_runs(workspace):
            store_part_seals(connection, run.id, result_part_seals(connection, workspace.sealer, run.id))
            seals = seal_run(connection, workspace.sealer, run.id)
            connection.execute(
                """UPDATE audit SET act = ?1, details = json_set(details, '$.seal', ?2)
                   WHERE number = (SELECT max(number) FROM audit WHERE subject = ?3 AND act LIKE 'run %')""",
                (acts.get(run.state.value, "run resumed"), seals, f"run {run.id}"),
            )
        for row in audit_rows(connection):
            hashed = replace(row, previous=previous).compute_hash()
            connection.execute(
                "UPDATE audit SET previous = ?, hash = ? WHERE number = ?", (previous, hashed, row.number)
            )
            previous = hashed
        connection.execute("UPDATE audit_head SET hash = ?", (previous,))
        connection.execute("DELETE FROM audit_seal")
        seal_rows_after(connection, 0, workspace.sealer.key, workspace.sealer.name)
        for _, sql in guards:
            connection.execute(sql)
    write_head_file(workspace.directory, read_head(connection))
    store_head_outside(workspace.directory, connection, read_head(connection), [HeadsFolder()], replace=True)


def set_back_before_seals(workspace: Workspace) -> None:
    """Make a workspace one of the version before seals, as that version wrote it and as no other place knows it."""
    connection, previous = workspace.connection, ""
    at = [step.__name__ for step in MIGRATIONS].index("seals")
    guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
    with immediate_transaction(connection):
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for row in audit_rows(connection):
            details = json.dumps(
                {key: value for key, value in row.details_table.items() if key not in ("seal", "under_policy")}
            )
            bare = replace(row, details=details, previous=previous, hash="")
            connection.execute(
                "UPDATE audit SET details = ?, previous = ?, hash = ? WHERE number = ?",
                (details, previous, bare.compute_hash(), row.number),
            )
            previous = bare.compute_hash()
        connection.execute("UPDATE audit_head SET hash = ?", (previous,))
        for _, sql in guards:
            connection.execute(sql)
        for table in (
            "seal", "audit_seal", "releasing", "run_name", "tombstone_table", "tombstone", "look", "search",
            "dropped_group",
        ):  # fmt: skip
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM migration WHERE number > ?", (at,))
        connection.execute(f"PRAGMA user_version = {at}")
    write_head_file(workspace.directory, read_head(connection))
    shutil.rmtree(state_directory(), ignore_errors=True)


def begin_free_release(
    workspace: Workspace, run_id: int, target: Path
) -> contextlib.AbstractContextManager[ReleaseInProgress]:
    """Begin a release that no population is charged for, as one without an account."""
    charge = LedgerCharge(0, "", "", run_id, "", (), (), 0.0, None, None, 0, covered=False, people=0)
    return begin_release(workspace, run_id, target, {}, charge, 0)
