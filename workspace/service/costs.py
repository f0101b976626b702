"""What a plan will take in time and memory before it is run: roughly, and from what it is known.

Where this workspace has runs that are done, a task of a method takes what it took there, in proportion to the records; else what one took when the
method's rate was measured (``jobs.task_costs``). Of a method without either nothing is known of the time, and it says so.
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

from ..jobs.memory import ALWAYS, MemoryLimit, memory_limit, size_text
from ..jobs.settings import dask_address
from ..jobs.task_costs import EACH, Earlier, TaskCost, earlier_runs, refusal, task_costs
from ..plan.drafting import Wanted, drafted
from ..store.workspace import Workspace

START = 3.0
"""Seconds until a worker works."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds with so many jobs at a time, bytes of memory in all, how many of the tasks' methods are known from earlier runs here, which are not known at all.

    ``refused`` says why it would not be begun; empty where it would.
    """

    seconds: float
    memory: int
    from_runs: bool
    unknown: tuple[str, ...] = ()
    refused: str = ""


def cost_of(
    recipe: Recipe, records: int, jobs: int, earlier: Earlier | None = None, limit: MemoryLimit | None = None
) -> Cost:
    """What a run of a recipe on so many records will take, where tasks may have so much memory together."""
    costs = task_costs(recipe, records, earlier)
    limit = limit or MemoryLimit(None)
    processes = max(1, min(jobs, len(costs)))
    known = [cost.seconds for cost in costs if cost.seconds is not None]
    methods = {
        (cost.task.kind, cost.method): cost.from_runs for cost in costs if cost.task.kind is not TaskKind.COMBINE
    }
    unknown = {cost.method for cost in costs if cost.seconds is None}
    return Cost(
        START + EACH * len(costs) + sum(known) / processes,
        _together(costs, processes, limit),
        2 * sum(methods.values()) >= max(1, len(methods)),
        tuple(sorted(unknown)),
        refusal(costs, limit),
    )


def _together(costs: Sequence[TaskCost], processes: int, limit: MemoryLimit) -> int:
    """The most that tasks will have at a time: those that need most, as far as a worker would start them beside each other."""
    first, *others = sorted((cost.memory for cost in costs), reverse=True)[:processes]
    most = sum((first, *others))
    return most if limit.bytes is None else min(most, max(first, limit.bytes, ALWAYS))


def plan_cost(workspace: Workspace, toml: str, records: int, jobs: int) -> str:
    """What a run of a plan on so many records will take, in a sentence; empty where the plan cannot be run. Raises nothing."""
    try:
        recipe = Recipe.from_toml(toml)
        return _said(workspace, recipe, min(records, recipe.data.sample or records), jobs)
    except BadInput:
        return ""


def draft_cost(workspace: Workspace, toml: str, records: int, wanted: Wanted, jobs: int) -> str:
    """``plan_cost`` of what would be drafted, before any value is read; empty where nothing can be drafted yet."""
    try:
        table = read_toml(toml)
        schema = Schema(tuple(Variable.from_table(name, one, name) for name, one in table.get("variables", {}).items()))
        planned = drafted(table, placeholder_profile(schema, records), wanted).table
        return _said(workspace, Recipe.from_table(planned), records, jobs)
    except BadInput:
        return ""


def _said(workspace: Workspace, recipe: Recipe, records: int, jobs: int) -> str:
    """The cost in words. What memory a cluster has is asked when the run is entered, not here."""
    address = dask_address()
    limit = MemoryLimit(None) if address else memory_limit()
    said = cost_text(cost_of(recipe, records, jobs, earlier_runs(workspace, records), limit))
    return f"{said} It is computed on the Dask cluster at {address}." if address else said


def cost_text(cost: Cost) -> str:
    """A cost in a sentence, never more exact than it is."""
    source = "by earlier runs here" if cost.from_runs else "by rates of another machine"
    said = f"It takes {rough_time(cost.seconds)} and {size_text(cost.memory)} ({source}; longer while others work)."
    unknown = f" Not counted, since not known: {', '.join(cost.unknown)}." if cost.unknown else ""
    refused = f"It will be refused: {cost.refused}. " if cost.refused else ""
    return f"{refused}{said}{unknown}"


def rough_time(seconds: float) -> str:
    """``about 20 seconds``, ``about 3 minutes``, ``about 2 hours``."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {10 * round(seconds / 10)} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} minutes"
    return f"about {round(seconds / 3600)} hours"
