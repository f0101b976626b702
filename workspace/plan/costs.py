"""What a plan will take in time and memory before it is run: roughly, and from what it is known.

Where this workspace has runs that are done, a task of a method takes what it took there, in proportion to the records; else what one took when the
method's rate was measured (``engine.drafting.seconds_of``), in proportion to records and variables. Of a method without either nothing is known, and it says so.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.engine.drafting import seconds_of
from sfumato.engine.errors import BadInput
from sfumato.engine.execution import TaskKind, plan
from sfumato.engine.methods import registry
from sfumato.engine.recipe import Recipe
from sfumato.engine.schema import Schema, Variable
from sfumato.engine.table_seen import table_unseen
from sfumato.engine.toml import read_toml

from ..store.workspace import Workspace
from .drafting import Wanted, drafted

RECORDS, VARIABLES = 10_000, 10
"""What rates are for."""
DRAWN = 0.01
"""Seconds that a dataset takes a step, for so many records."""
START, EACH = 3.0, 0.05
"""Seconds until a worker works, and that a task takes whatever it does."""
BASE_BYTES, TIMES_DATA = 200_000_000, 20
"""Memory of a process that has loaded what it needs, and how often it holds the data."""
NEWEST = 20
"""Runs that are looked back at."""
SECTIONS = {
    TaskKind.FIT: "synthesis",
    TaskKind.ANONYMISE: "anonymisation",
    TaskKind.MEASURE: "measure",
    TaskKind.STUDY: "study",
}
Earlier = Mapping[tuple[str, str], float]
"""Seconds of a task, by its kind and method, for each record."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds with so many jobs at a time, bytes of memory in all, how many of the tasks' methods are known from earlier runs here, and which are not known at all."""

    seconds: float
    memory: int
    from_runs: bool
    unknown: tuple[str, ...] = ()


def cost_of(recipe: Recipe, records: int, jobs: int, earlier: Earlier | None = None) -> Cost:
    """What a run of a recipe on so many records will take."""
    seconds, unknown, seen, asked = 0.0, set(), 0, 0
    tasks = plan(recipe)
    columns = len(recipe.schema.names)
    for (kind, key), count in Counter(_kinds(recipe)).items():
        asked += 1
        known = (earlier or {}).get((kind, key))
        rate = DRAWN * len(recipe.synthesis) if kind == TaskKind.DRAW.value else seconds_of(registry()[key])
        if known is not None:
            seen += 1
            seconds += count * known * records
        elif rate is not None:
            seconds += count * rate * records / RECORDS * max(1.0, columns / VARIABLES)
        else:
            unknown.add(key)
    processes = max(1, min(jobs, len(tasks)))
    memory = processes * (BASE_BYTES + TIMES_DATA * 8 * records * columns)
    return Cost(START + EACH * len(tasks) + seconds / processes, memory, 2 * seen >= asked, tuple(sorted(unknown)))


def _kinds(recipe: Recipe) -> list[tuple[str, str]]:
    """Kind and method of every task; of a dataset that is drawn no one method's."""
    steps = {
        "synthesis": recipe.synthesis,
        "anonymisation": recipe.anonymisation,
        "measure": recipe.measures,
        "study": recipe.studies,
    }
    found = []
    for task in plan(recipe):
        if task.kind in SECTIONS:
            found.append((task.kind.value, steps[SECTIONS[task.kind]][task.item].method.key))
        elif task.kind is TaskKind.DRAW:
            found.append((task.kind.value, ""))
    return found


def earlier_runs(workspace: Workspace, records: int) -> Earlier:
    """What tasks took in the newest runs of a workspace that are done, for each record, by kind and method.

    Runs of less than a tenth as many ``records`` say little of so many, and do not count.
    """
    rows = workspace.connection.execute(
        """SELECT task.kind, task.item, task.seconds, run.recipe, dataset.records FROM task JOIN run ON run.id = task.run_id
           JOIN dataset ON dataset.id = run.dataset_id WHERE task.state = 'done' AND task.seconds IS NOT NULL
           AND dataset.records * 10 >= ?
           AND run.id IN (SELECT id FROM run WHERE state = 'done' ORDER BY id DESC LIMIT ?)""",
        (records, NEWEST),
    ).fetchall()
    tables: dict[str, dict[str, object]] = {}
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for kind, item, seconds, toml, of in rows:
        if toml not in tables:
            tables[toml] = _table(toml)
        key = _method_of(tables[toml], kind, item)
        if key is not None and of:
            took[kind, key].append(max(0.0, seconds - EACH) / of)
    return {of: sum(found) / len(found) for of, found in took.items()}


def _table(toml: str) -> dict[str, object]:
    try:
        return tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return {}


def _method_of(table: Mapping[str, object], kind: str, item: int) -> str | None:
    """The key of the method that a task of a stored recipe was of; None where that cannot be told."""
    if kind == TaskKind.DRAW.value:
        return ""
    section = next((name for of, name in SECTIONS.items() if of.value == kind), "")
    steps = table.get(section)
    if not isinstance(steps, list) or not 0 <= item < len(steps) or not isinstance(steps[item], Mapping):
        return None
    name = str(steps[item].get("method", ""))
    return name if "." in name else f"{section}.{name}"


def plan_cost(workspace: Workspace, toml: str, records: int, jobs: int) -> str:
    """What a run of a plan on so many records will take, in a sentence; empty where the plan cannot be run. Raises nothing."""
    try:
        recipe = Recipe.from_toml(toml)
    except BadInput:
        return ""
    records = min(records, recipe.data.sample or records)
    return cost_text(cost_of(recipe, records, jobs, earlier_runs(workspace, records)))


def draft_cost(workspace: Workspace, toml: str, records: int, wanted: Wanted, jobs: int) -> str:
    """``plan_cost`` of what would be drafted, before any value is read; empty where nothing can be drafted yet."""
    try:
        table = read_toml(toml)
        schema = Schema(tuple(Variable.from_table(name, one, name) for name, one in table.get("variables", {}).items()))
        planned = drafted(table, table_unseen(schema, records), wanted).table
        return cost_text(cost_of(Recipe.from_table(planned), records, jobs, earlier_runs(workspace, records)))
    except BadInput:
        return ""


def cost_text(cost: Cost) -> str:
    """A cost in a sentence, never more exact than it is."""
    source = "by earlier runs here" if cost.from_runs else "by rates of another machine"
    said = f"It takes {rough_time(cost.seconds)} and {rough_memory(cost.memory)} ({source}; longer while others work)."
    return f"{said} Not counted, since not known: {', '.join(cost.unknown)}." if cost.unknown else said


def rough_time(seconds: float) -> str:
    """``about 20 seconds``, ``about 3 minutes``, ``about 2 hours``."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {10 * round(seconds / 10)} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} minutes"
    return f"about {round(seconds / 3600)} hours"


def rough_memory(size: int) -> str:
    """``about 0.4 GB``; of more than 10 GB whole ones."""
    giga = size / 1e9
    return f"about {giga:.0f} GB" if giga >= 10 else f"about {giga:.1f} GB"
