"""What differs between the plans of two runs, and between a plan that is edited and the run before it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.difference import PlanDifference, plan_differences

from ..store.runs import Run, companions_of, list_runs
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from ..plan.drafts import Draft


def between_runs(first: Run, second: Run) -> tuple[PlanDifference, ...]:
    """What the second run's recipe has otherwise than the first's, in today's words where both can be read."""
    try:
        return plan_differences(first.recipe.to_table(), second.recipe.to_table())
    except EngineError:  # a method of another package is gone
        return plan_differences(tomllib.loads(first.recipe_toml), tomllib.loads(second.recipe_toml))


@dataclass(frozen=True, slots=True)
class SinceRun:
    """What was changed in a plan since the newest run of its project; ``other_data`` where it is for other records."""

    run_id: int
    called: str
    changes: Sequence[PlanDifference]
    other_data: bool


def since_newest_run(workspace: Workspace, draft: Draft) -> SinceRun | None:
    """None for a project without a run. Raises BadInput where the plan is no recipe."""
    runs = list_runs(workspace, draft.project_id)
    beside = {other for run in runs for other in companions_of(workspace, run.id)}
    newest = next((run for run in runs if run.id not in beside), None)
    if newest is None:
        return None
    from sfumato.engine.recipe.recipe import Recipe

    return SinceRun(
        newest.id,
        newest.name,
        plan_differences(_table(newest), Recipe.from_toml(draft.toml).to_table()),
        _source(workspace, newest.dataset_id) != _source(workspace, draft.dataset_id),
    )


def _source(workspace: Workspace, dataset_id: int) -> str | None:
    """The file that a table was read from: a run may have drawn some of its records, as its recipe says."""
    row = workspace.connection.execute("SELECT source_sha256 FROM dataset WHERE id = ?", (dataset_id,)).fetchone()
    return None if row is None else str(row[0])


def _table(run: Run) -> Mapping[str, Any]:
    try:
        return run.recipe.to_table()
    except EngineError:
        return tomllib.loads(run.recipe_toml)
