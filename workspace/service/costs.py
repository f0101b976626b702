"""Rough estimate of the time and memory of a plan before it is run, with its source.

Where this workspace has runs that are done, a task of a method takes what it took there, in proportion to the records;
else what it took when the method's rate was measured (``jobs.task_costs``). For a method without either the time is
unknown, and the text says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.data.schema import Schema, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import TaskKind
from sfumato.engine.methods.table_profile import placeholder_profile
from sfumato.engine.recipe.recipe import Recipe

from ..jobs.memory import ALWAYS_ALLOWED_BYTES, MemoryLimit, local_memory_limit, memory_text
from ..jobs.settings import dask_address
from ..jobs.task_costs import (
    SECONDS_PER_TASK,
    MeasuredCosts,
    TaskCost,
    estimate_task_costs,
    measure_recent_costs,
    memory_refusal,
)
from ..plan.drafting import DraftRequest, make_drafted_plan
from ..store.workspace import Workspace

WORKER_START_SECONDS = 3.0
"""Seconds until a worker works."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """Estimated time and memory of a run.

    seconds: with the given number of jobs at a time
    memory: bytes of all tasks together
    is_from_runs: whether at least half of the tasks' methods are known from earlier runs here
    unknown: methods whose time is not known
    refused: why the run would be refused; empty where it would not
    """

    seconds: float
    memory: int
    is_from_runs: bool
    unknown: tuple[str, ...] = ()
    refused: str = ""


def estimate_run_cost(
    recipe: Recipe, records: int, jobs: int, earlier: MeasuredCosts | None = None, limit: MemoryLimit | None = None
) -> RunCost:
    """Estimate the cost of a run of a recipe on ``records`` records.

    All its tasks together may use the memory of ``limit``.
    """
    costs = estimate_task_costs(recipe, records, earlier)
    limit = limit or MemoryLimit(None)
    processes = max(1, min(jobs, len(costs)))
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    methods = {
        (cost.task.kind, cost.method): cost.from_runs for cost in costs if cost.task.kind is not TaskKind.COMBINE
    }
    unknown = {cost.method for cost in costs if cost.seconds is None}
    return RunCost(
        WORKER_START_SECONDS + SECONDS_PER_TASK * len(costs) + sum(known) / processes,
        _peak_memory(costs, processes, limit),
        2 * sum(methods.values()) >= max(1, len(methods)),
        tuple(sorted(unknown)),
        memory_refusal(costs, limit),
    )


def _peak_memory(costs: Sequence[TaskCost], processes: int, limit: MemoryLimit) -> int:
    """Return the most memory, in bytes, that tasks will use at a time."""
    # The worst case is that the tasks that need most run together, as far as a worker would start them so.
    first, *others = sorted((cost.memory for cost in costs), reverse=True)[:processes]
    most = sum((first, *others))
    return most if limit.max_bytes is None else min(most, max(first, limit.max_bytes, ALWAYS_ALLOWED_BYTES))


def plan_cost_text(workspace: Workspace, toml: str, records: int, jobs: int) -> str:
    """Return the cost of a run of a plan in a sentence; empty where the plan cannot be run. Raises nothing."""
    try:
        recipe = Recipe.from_toml(toml)
        return _recipe_cost_text(workspace, recipe, min(records, recipe.data.sample or records), jobs)
    except BadInput:
        return ""


def draft_cost_text(workspace: Workspace, toml: str, records: int, wanted: DraftRequest, jobs: int) -> str:
    """Return the cost of a plan that would be drafted, before any value is read.

    Empty where nothing can be drafted yet.
    """
    try:
        table = read_toml(toml)
        schema = Schema(tuple(Variable.from_table(name, one, name) for name, one in table.get("variables", {}).items()))
        planned = make_drafted_plan(table, placeholder_profile(schema, records), wanted).table
        return _recipe_cost_text(workspace, Recipe.from_table(planned), records, jobs)
    except BadInput:
        return ""


def _recipe_cost_text(workspace: Workspace, recipe: Recipe, records: int, jobs: int) -> str:
    """Return the cost of a run of a recipe in words."""
    address = dask_address()
    # A cluster is asked for its memory when the run is entered, not for an estimate.
    limit = MemoryLimit(None) if address else local_memory_limit()
    said = run_cost_text(estimate_run_cost(recipe, records, jobs, measure_recent_costs(workspace, records), limit))
    return f"{said} It is computed on the Dask cluster at {address}." if address else said


def run_cost_text(cost: RunCost) -> str:
    """Return a cost in a sentence, rounded to what is known."""
    source = "by earlier runs here" if cost.is_from_runs else "by rates of another machine"
    said = (
        f"It takes {rough_time_text(cost.seconds)} and {memory_text(cost.memory)} ({source}; longer while others work)."
    )
    unknown = f" Not counted, since not known: {', '.join(cost.unknown)}." if cost.unknown else ""
    refused = f"It will be refused: {cost.refused}. " if cost.refused else ""
    return f"{refused}{said}{unknown}"


def rough_time_text(seconds: float) -> str:
    """Return a time in words: ``about 20 seconds``, ``about 3 minutes``, ``about 2 hours``."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {10 * round(seconds / 10)} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} minutes"
    return f"about {round(seconds / 3600)} hours"
