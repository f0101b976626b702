"""Workspaces with runs in them: a recipe on a table is entered, or carried out too, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
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
    write_run_release(workspace, run_id, out, reason="a test")
    return out
