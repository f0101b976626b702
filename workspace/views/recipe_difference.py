"""Differences between the plans of two runs, and between an edited plan and the run before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.difference import PlanDifference, plan_differences

from ..store.runs import StoredRun, companion_ids, list_runs
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from ..plan.drafts import PlanDraft


def differences_between_runs(first: StoredRun, second: StoredRun) -> tuple[PlanDifference, ...]:
    """Return the differences of the second run's recipe from the first's."""
    try:
        return plan_differences(first.recipe.to_table(), second.recipe.to_table())
    except EngineError:  # a method of another package is gone
        return plan_differences(read_toml(first.recipe_toml), read_toml(second.recipe_toml))


@dataclass(frozen=True, slots=True)
class ChangesSinceRun:
    """Changes of a plan since the newest run of its project.

    run_id, run_label: number and name of the run
    changes: the differences
    is_other_data: whether the plan is for other records
    """

    run_id: int
    run_label: str
    changes: Sequence[PlanDifference]
    is_other_data: bool


def changes_since_newest_run(workspace: Workspace, draft: PlanDraft) -> ChangesSinceRun | None:
    """Return the changes of a draft since the newest run of its project.

    None for a project without a run. Raises BadInput where the plan is no recipe.
    """
    runs = list_runs(workspace, draft.project_id)
    beside = {other for run in runs for other in companion_ids(workspace, run.id)}
    # companion runs were entered beside a run and may have another recipe than the project's plan
    newest = next((run for run in runs if run.id not in beside), None)
    if newest is None:
        return None
    from sfumato.engine.recipe.recipe import Recipe

    return ChangesSinceRun(
        newest.id,
        newest.name,
        plan_differences(_recipe_table(newest), Recipe.from_toml(draft.toml).to_table()),
        # the file, not the table: the run may have sampled it, as its recipe states
        _source_hash(workspace, newest.dataset_id) != _source_hash(workspace, draft.dataset_id),
    )


def _source_hash(workspace: Workspace, dataset_id: int) -> str | None:
    """Return the hash of the file from which a dataset was read."""
    row = workspace.connection.execute("SELECT source_sha256 FROM dataset WHERE id = ?", (dataset_id,)).fetchone()
    return None if row is None else str(row[0])


def _recipe_table(run: StoredRun) -> Mapping[str, Any]:
    """Return a run's recipe as a table, as it was written where this version cannot read it."""
    try:
        return run.recipe.to_table()
    except EngineError:
        return read_toml(run.recipe_toml)
