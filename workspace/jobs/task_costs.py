"""Estimates of the time and memory of a run's tasks: by costs measured in this workspace, else by declared rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.in_passes import whole_table_reason
from sfumato.engine.execution.tasks import Task, TaskKind, plan_tasks, points_of_task
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.task_rates import PROCESS, draw_rate_of, task_rate_of
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import RecipeStep
from sfumato.engine.wording import join_names

from ..errors import NotEnoughMemory
from ..store.table_manifests import PART_ROWS
from ..store.workspace import Workspace
from .memory import MemoryLimit, memory_text

SECONDS_PER_TASK = 0.05
"""Seconds of every task beyond its computation."""
RECENT_RUNS = 20
"""Number of earlier runs that are considered."""
IDLE_PROCESS_BYTES = 120_000_000
"""Bytes of a process below which a peak says nothing of its task."""
BYTES_OF_PARTIALS = 210_000_000
"""Bytes of what a task that works part by part keeps of all parts, and merges: the measures with most had peaks of 515
to 600 MB at 3 to 10 million records, of which 426 to 476 MB are of one part."""
BYTES_OF_TABLES = 300_000_000
"""Bytes of the equations of tables, whatever the number of records."""
TABLE_KINDS = (TaskKind.TABLES, TaskKind.TABLES_AUDIT)
"""Tasks of tables: what they take depends on the cells, whose number is known when they are counted."""
SECTION_OF_KIND = {
    TaskKind.FIT: "synthesis",
    TaskKind.ANONYMISE: "anonymisation",
    TaskKind.MEASURE: "measure",
    TaskKind.STUDY: "study",
}


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """Cost of a task for each record, as measured in this workspace.

    seconds: seconds a record
    memory: bytes a record above those of an idle process; None where none was recorded
    """

    seconds: float
    memory: float | None = None


MeasuredCosts = Mapping[tuple[str, str], MeasuredCost]
"""Measured costs by the kind and the method of a task."""


@dataclass(frozen=True, slots=True)
class TaskCost:
    """Estimated cost of a task.

    task: the task
    method: key of its method, empty for a draw or the verdicts
    seconds: seconds, None where unknown
    memory: bytes of its process
    from_runs: estimated from earlier runs
    needs_table: why it needs the whole of a table that is stored in parts, in words; empty where it does not
    """

    task: Task
    method: str
    seconds: float | None
    memory: int
    from_runs: bool = False
    needs_table: str = ""

    @property
    def label(self) -> str:
        """Return the key of the task with its method: ``fit/0 (synthesis.cart)``."""
        return f"{self.task.key} ({self.method})" if self.method else self.task.key


def estimate_task_costs(
    recipe: Recipe, records: int, measured: MeasuredCosts | None = None, *, in_parts: bool | None = None
) -> tuple[TaskCost, ...]:
    """Estimate the cost of each task of a recipe on so many records, in the order of the tasks.

    ``in_parts`` is whether their table is stored in several parts, None for one that will be stored.
    """
    parts = records > PART_ROWS if in_parts is None else in_parts
    return tuple(_estimate_task_cost(recipe, task, records, measured or {}, parts) for task in plan_tasks(recipe))


def _estimate_task_cost(recipe: Recipe, task: Task, records: int, earlier: MeasuredCosts, in_parts: bool) -> TaskCost:
    """Estimate the cost of a task by measured costs, else by the declared rates of its methods."""
    if task.kind in TABLE_KINDS:
        took = earlier.get((task.kind.value, ""))
        seconds = None if took is None else took.seconds * records
        memory = PROCESS + BYTES_OF_TABLES + records * 8 * (len(recipe.schema.names) + len(recipe.tables))
        return TaskCost(task, "", seconds, memory, took is not None, "the cells of tables need it" if in_parts else "")
    steps = _steps_of_task(recipe, task)
    named = steps[0].method.key if steps and task.kind is not TaskKind.DRAW else ""
    columns = len(recipe.schema.names)
    rates = [(draw_rate_of if task.kind is TaskKind.DRAW else task_rate_of)(step.method) for step in steps]
    together = (
        recipe.m
        if task.point is not None or (task.kind is TaskKind.MEASURE and steps[0].method.measures_whole_release)
        else 0
    )
    known = [rate.estimate_seconds(records, columns, together) for rate in rates]
    seconds = None if None in known else sum(filter(None, known))
    if task.kind is TaskKind.STUDY and seconds is not None:
        seconds *= len(points_of_task(recipe, task.item, task.key))
    if task.kind is TaskKind.FIT and seconds is not None:
        seconds += steps[0].spec.steady_seconds(columns)
    if task.point is not None and steps and (times := steps[0].spec.shadows_a_task()):
        seconds = _seconds_of_refits(recipe, records, columns, times)
    reason = whole_table_reason(recipe, task.kind, task.item) if in_parts else ""
    by_block = in_parts and not reason
    held = min(records, PART_ROWS) if by_block else records
    memory = max((rate.estimate_bytes(held, columns, together) for rate in rates), default=PROCESS)
    memory += BYTES_OF_PARTIALS if by_block else 0
    needs_table = reason if steps else ""
    if (took := earlier.get((task.kind.value, named))) is None or not steps:
        return TaskCost(task, named, seconds, memory, needs_table=needs_table)
    if took.memory is not None:
        memory = int(IDLE_PROCESS_BYTES + took.memory * records)
    return TaskCost(task, named, took.seconds * records, memory, from_runs=True, needs_table=needs_table)


def _seconds_of_refits(recipe: Recipe, records: int, columns: int, times: float) -> float | None:
    """Return the seconds of carrying out the recipe's steps ``times`` times; None where unknown."""
    steps = (*recipe.synthesis, *recipe.anonymisation)
    each = [task_rate_of(step.method).estimate_seconds(records, columns, 0) for step in steps]
    each += [step.spec.steady_seconds(columns) for step in recipe.synthesis]
    each += [draw_rate_of(step.method).estimate_seconds(records, columns, 0) for step in recipe.synthesis] * recipe.m
    known = [one for one in each if one is not None]
    return times * sum(known) if len(known) == len(each) else None


def _steps_of_task(recipe: Recipe, task: Task) -> Sequence[RecipeStep]:
    """Return the steps of the recipe that a task carries out."""
    match task.kind:
        case TaskKind.FIT:
            return recipe.synthesis[task.item : task.item + 1]
        case TaskKind.DRAW:
            return recipe.synthesis
        case TaskKind.ANONYMISE:
            return recipe.anonymisation
        case TaskKind.MEASURE:
            return recipe.measures[task.item : task.item + 1]
        case TaskKind.STUDY:
            return recipe.studies[task.item : task.item + 1]
    return ()


def remaining_seconds(recipe: Recipe, levels: Mapping[str, int], costs: Sequence[TaskCost]) -> Mapping[str, float]:
    """Return the estimated seconds from the start of each task to the end of its longest chain, by the task's key.

    ``levels``: number of levels by variable. Tasks come after all that they need, as ``plan_tasks`` has them. A task of
    unknown length counts as the longest known one, so that it does not start last.
    """
    longest = max((cost.seconds for cost in costs if cost.seconds is not None), default=SECONDS_PER_TASK)
    shares, after, found = _shares_of_fits(recipe, levels), dict[str, float](), dict[str, float]()
    for cost in reversed(costs):
        own = (longest if cost.seconds is None else cost.seconds) * shares.get(cost.task.key, 1.0)
        found[cost.task.key] = SECONDS_PER_TASK + own + after.get(cost.task.key, 0.0)
        for needed in cost.task.needs:
            after[needed] = max(after.get(needed, 0.0), found[cost.task.key])
    return found


def _shares_of_fits(recipe: Recipe, levels: Mapping[str, int]) -> dict[str, float]:
    """Return how many times as long as the average fit of its method each fit takes, by predictors and levels."""
    sizes: dict[str, dict[str, int]] = {}
    for item, step in enumerate(recipe.synthesis):
        predictors = len(getattr(step.spec, "predictors", ()))
        made = sum(max(1, levels.get(name, 1)) for name in step.targets)
        sizes.setdefault(step.method.key, {})[f"fit/{item}"] = (1 + predictors) * max(1, made)
    means = {key: sum(own.values()) / len(own) for key, own in sizes.items()}
    return {task: size / means[key] for key, own in sizes.items() for task, size in own.items()}


def largest_cost(costs: Sequence[TaskCost]) -> TaskCost:
    """Return the cost of the task that needs most memory, the first of equal ones."""
    return max(costs, key=lambda cost: cost.memory)


def check_costs_fit(costs: Sequence[TaskCost], limit: MemoryLimit) -> None:
    """Raise NotEnoughMemory where one of these tasks would not fit into the memory even alone."""
    if said := memory_refusal(costs, limit):
        raise NotEnoughMemory(said)


def memory_refusal(costs: Sequence[TaskCost], limit: MemoryLimit) -> str:
    """Explain why a run of these tasks cannot begin: which task needs how much memory, and what to do; empty where all
    fit.
    """
    most = largest_cost(costs)
    if limit.max_bytes is None or not limit.refuses(most.memory):
        return ""
    return (
        f"{most.label} needs {memory_text(most.memory)} of memory, and there is {memory_text(limit.max_bytes)} ({limit.source_text}). "
        f"{_parts_text(most)}Take a sample ([data] sample), leave variables out, or use another machine or a Dask cluster (--dask ADDRESS); "
        'if you know better, --memory SIZE or none, in the app "Where runs are computed" (ctrl+p)'
    )


def _parts_text(cost: TaskCost) -> str:
    """Return that a task needs the whole of a long table, and what does not; empty where it does not."""
    if not cost.needs_table:
        return ""
    able = [one for one in registry().values() if one.synthesis.fit_passes or one.measurement.measure_passes]
    return (
        f"It reads the whole table at once, also a long one that is stored in parts: {cost.needs_table}. "
        f"Part by part work, where settings and variables allow it, {join_names([one.key for one in able])}. "
    )


def measure_recent_costs(workspace: Workspace, records: int) -> MeasuredCosts:
    """Return the costs of tasks for each record in the newest finished runs, by kind and method.

    Seconds are means, memory is the largest measured.
    """
    rows = workspace.connection.execute(
        """SELECT task.kind, task.item, task.seconds, task.peak_bytes, run.recipe, dataset.records FROM task JOIN run ON run.id = task.run_id
           JOIN dataset ON dataset.id = run.dataset_id WHERE task.state = 'done' AND task.seconds IS NOT NULL
           AND typeof(task.item) = 'integer' AND typeof(task.seconds) = 'real' AND typeof(coalesce(task.peak_bytes, 0)) = 'integer'
           AND typeof(dataset.records) = 'integer' AND dataset.records * 10 >= ?
           AND run.id IN (SELECT id FROM run WHERE state = 'done' ORDER BY id DESC LIMIT ?)""",
        # Runs of less than a tenth as many records say little about larger ones.
        (records, RECENT_RUNS),
    ).fetchall()
    tables: dict[str, dict[str, object]] = {}
    seconds: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], float] = {}
    for kind, item, took, peak, toml, of in rows:
        if toml not in tables:
            tables[toml] = _parse_recipe_toml(toml)
        key = _method_of_task(tables[toml], kind, item)
        if key is None or not of:
            continue
        # The fixed seconds of a task do not grow with the records.
        seconds.setdefault((kind, key), []).append(max(0.0, took - SECONDS_PER_TASK) / of)
        if peak and records / 2 <= of <= records * 2:  # what a process has whatever its table does not grow with it
            memory[kind, key] = max(memory.get((kind, key), 0.0), (peak - IDLE_PROCESS_BYTES) / of)
    return {of: MeasuredCost(sum(found) / len(found), memory.get(of)) for of, found in seconds.items()}


def _parse_recipe_toml(toml: str) -> dict[str, object]:
    """Return the table of a recipe; empty where the text is not TOML."""
    try:
        return read_toml(toml)
    except BadInput:
        return {}


def _method_of_task(table: Mapping[str, object], kind: str, item: int) -> str | None:
    """Return the key of the method of a stored recipe's task; empty for a draw and for tables, None where it cannot be
    determined.
    """
    if kind in (TaskKind.DRAW.value, *(one.value for one in TABLE_KINDS)):
        return ""
    section = next((name for of, name in SECTION_OF_KIND.items() if of.value == kind), "")
    steps = table.get(section)
    if not isinstance(steps, list) or not 0 <= item < len(steps) or not isinstance(steps[item], Mapping):
        return None
    name = str(steps[item].get("method", ""))
    return name if "." in name else f"{section}.{name}"
