"""A search carried out: its looks are runs of the ordinary queue, and what comes next follows from what these found.

``advance`` enters the runs of the next stage. It is safe to call at any time and from any process: a look that was entered is not entered again, so a
search that was killed goes on, and finds the same plans. How it would mislead, and what is done about it: a winner of many plans looks better than it is
(finalists are judged on all records, against a hold-out that no look before has read, with intervals that hold for all of them at once); a plan that
keeps to the limits because it says nothing (the best is chosen by utility, shown beside the fresh one); an epsilon of a plan that was chosen by
looking at the data (``search.looked_at`` voids it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.comparison import as_cost
from sfumato.engine.methods.registry import output_called
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.search_table import SearchTable
from sfumato.engine.recipe.thresholds import judge
from sfumato.engine.search.guidance import guided_moves
from sfumato.engine.search.looks import Found, Look, SearchPlan, judged_among, penalty_of
from sfumato.engine.search.space import Choice, Table, changed, described, distinct_choice

from ..ingest.files import find_source, ingest
from ..ingest.sources import Source
from ..jobs.queue import resume
from ..jobs.runs import enter_runs
from ..plan.alternatives import levers_of, offered_steps
from ..plan.drafts import draft_of_run, plan_text, save_draft
from ..policy.policy import policy_of
from ..release.contents import plan_release
from ..release.gate import examine
from ..reporting.searches import Finalist, Limit, Outcome, limit_of
from ..store.runs import RunState, find_run
from ..store.searches import (
    StoredLook,
    StoredSearch,
    enter_search,
    find_search,
    looks_of,
    seconds_worked,
    store_blocks,
    store_look,
)
from ..store.workspace import Workspace
from ..views.results import result_rows, verdicts_of
from .prepare import PreparedRun, prepared_on

OUT_OF_MINUTES = "the minutes of the search were used up"
"""Why a look was not begun."""
TRYING = 0.5
"""The share of the minutes that a search has for trying plans; the rest is for judging finalists."""
AT_A_TIME = 4
"""Looks that a search with a limit of minutes enters at a time, so that few are in hand when they are used up."""
DIGITS = 1
"""Of the logarithm of a ratio that is best at 1: on a sample, utilities that differ by less than a tenth are taken for equal."""
IDLE_BETWEEN = 30.0
"""Seconds that a worker waits for the next looks, while the gate is asked of those that have ended."""
THRESHOLDS = "unmet_thresholds"
"""The check of the gate that counts limits which are not met: a search counts them itself."""


def begin_search(
    workspace: Workspace,
    table: Mapping[str, Any],
    project: str = "",
    *,
    looks: int | None = None,
    minutes: float | None = None,
) -> int:
    """Enter a search from a recipe's table; returns its number. Nothing is computed yet. Raises BadInput.

    The plan must make a release and have limits; the file must be there for as long as the search goes on.
    """
    asked = dict(table.get("search", {}))
    asked.update({key: value for key, value in (("looks", looks), ("minutes", minutes)) if value is not None})
    asked.pop("looked_at", None)
    whole = {**table, "search": asked}
    recipe = Recipe.from_table(whole)
    if not recipe.makes_release:
        raise BadInput("synthesis", "the plan makes no release; add [[synthesis]] or [[anonymisation]] steps first")
    if not recipe.thresholds:
        raise BadInput(
            "threshold",
            "the plan has no limits, so no plan would be better than another; add [[threshold]] or draft one",
        )
    if recipe.weights is not None or recipe.companions:
        place = "weights" if recipe.weights is not None else "companions"
        raise BadInput(place, "a search looks at one plan alone; leave it out")
    objective_of(recipe)
    source = find_source(recipe.data.file)
    data = prepared_on(recipe, source, key=workspace.key()).data
    offered = offered_steps(recipe, data)
    if not levers_of(recipe, offered):
        raise BadInput("search", "no step of the plan has a setting that a search may change")
    return enter_search(workspace, project or recipe.title or source.name, plan_text(whole), len(data), offered)


def objective_of(recipe: Recipe) -> str:
    """The key of the utility by which the best is chosen: as the recipe says, else the first that is 1 where the release follows the data, else the first
    that has a better and a worse. Raises BadInput.
    """
    named = "" if recipe.search is None else recipe.search.objective
    goals = {
        f"{step.method.key}.{output.name}": output.goal
        for step in recipe.measures
        if step.method.family in ("utility", "quality")
        for output in step.method.results
        if output.goal != "none" and not output.intermediate
    }
    if not goals:
        raise BadInput(
            "measure",
            "the plan measures no utility, so the best of the plans that pass is unknown; add a measure of utility",
        )
    if named and named not in goals:
        raise BadInput(
            "search.objective", f'"{named}" is no utility that the plan measures; it measures {", ".join(goals)}'
        )
    return named or next((key for key, goal in goals.items() if goal == "one"), next(iter(goals)))


@lru_cache(maxsize=4)
def _planned(recipe_toml: str, offered: str, records: int) -> tuple[Table, Recipe, SearchPlan]:
    """The plan of a search, kept between its stages: which choices are the same plan is found out by comparing tables."""
    table = read_toml(recipe_toml)
    recipe = Recipe.from_table(table)
    asked = recipe.search or SearchTable()
    levers = tuple(levers_of(recipe, json.loads(offered)))
    same = cache(partial(distinct_choice, table, levers))
    return table, recipe, SearchPlan(levers, asked.looks, records, recipe.seed, same)


@dataclass(frozen=True)
class _Search:
    """A search as it stands: its plan, its looks, and what they found. ``read`` are the records that were read last, and as which recipe asks for them."""

    workspace: Workspace
    stored: StoredSearch
    table: dict[str, Any]
    recipe: Recipe
    plan: SearchPlan
    looks: dict[int, StoredLook]
    read: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Workspace, search_id: int | None) -> _Search:
        stored = find_search(workspace, search_id)
        table, recipe, plan = _planned(stored.recipe_toml, json.dumps(stored.offered), stored.records)
        return cls(workspace, stored, table, recipe, plan, looks_of(workspace, stored.id))

    def found(self) -> dict[int, Found]:
        """What the looks found that have ended; the gate is asked of those that went on to a larger sample."""
        found: dict[int, Found] = {}
        while due := [look for look in self.plan.next_looks(found) if look.number not in found]:
            before = len(found)
            for look in due:
                self._take(look, found)
            if len(found) == before:
                break
        return found

    def _take(self, look: Look, found: dict[int, Found]) -> None:
        stored = self.looks.get(look.number)
        if stored is None:
            return
        if stored.run_id is None:
            found[look.number] = Found(None, None)
            return
        run = find_run(self.workspace, stored.run_id)
        if run.state is RunState.FAILED:
            found[look.number] = Found(None, None)
        elif run.state is RunState.DONE:
            blocks = 0 if look.stage == "screen" else len(self.blocks(stored))
            verdicts = verdicts_of(self.workspace, run.id)
            value, output = self.value(run.id), output_called(self.objective)
            cost = None if value is None or output is None else as_cost(value, output.goal)
            if cost is not None and output is not None and output.goal == "one":
                cost = round(cost, DIGITS)
            found[look.number] = Found(penalty_of(verdicts, blocks), cost, guided_moves(self.plan.levers, verdicts))

    def blocks(self, stored: StoredLook) -> tuple[str, ...]:
        """The checks of the gate that block the release of a look; the gate is asked once."""
        assert stored.run_id is not None
        if stored.blocks is None:
            stored = replace(stored, blocks=blocking(self.workspace, stored.run_id))
            store_blocks(self.workspace, self.stored.id, stored.number, stored.blocks or ())
            self.looks[stored.number] = stored
        return stored.blocks or ()

    @cached_property
    def objective(self) -> str:
        return objective_of(self.recipe)

    def value(self, run_id: int) -> float | None:
        """The utility of a run; None where it was not computed."""
        rows = result_rows(self.workspace, run_id)
        averages = (row for row in rows if row.key == self.objective and row.draw is None)
        return next((row.value for row in averages if row.dataset != "confidential"), None)

    @property
    def skipped(self) -> frozenset[int]:
        """The looks that were not begun since the minutes were used up."""
        return frozenset(one.number for one in self.looks.values() if one.reason == OUT_OF_MINUTES)

    def looked_at(self, found: Mapping[int, Found]) -> int:
        """How many plans were looked at, with those of the stage under way."""
        return len({one.choice for one in self.plan.all_looks(found) if one.number not in self.skipped})

    def affordable(self, missing: Sequence[Look], found: Mapping[int, Found]) -> list[Look]:
        """Which of the looks of a stage to begin now; where the minutes are used up, none, and it is kept that they are not begun.

        One finalist is judged at least, the next where the time of the longest judgement so far still fits. A search without a limit begins all.
        """
        minutes = None if self.recipe.search is None else self.recipe.search.minutes
        if minutes is None or not missing:
            return list(missing)
        worked = seconds_worked(self.workspace, self.stored.id)
        if missing[0].stage != "judge":
            over, at_a_time = worked >= TRYING * 60 * minutes, AT_A_TIME
        else:
            judged = [one.number for one in self.plan.next_looks(found) if one.number in self.looks]
            times = [seconds_worked(self.workspace, self.stored.id, number) for number in judged]
            over, at_a_time = bool(times) and worked + max(times) > 60 * minutes, 1
        if not over:
            return list(missing[:at_a_time])
        with self.workspace.writing() as connection:
            for look in missing:
                store_look(connection, self.stored.id, look.number, None, OUT_OF_MINUTES)
        return []

    def label(self, look: Look) -> str:
        return described(self.plan.levers, look.choice)

    def prepared(self, look: Look, source: Source, looked_at: int) -> PreparedRun:
        """The run of a look. Raises BadInput where its plan cannot be carried out.

        On a sample it has other random numbers than the judgement: a seed of its own, or, where the seed draws the hold-out, other records.
        """
        table = changed(self.table, self.plan.levers, look.choice)
        search = {**table.get("search", {}), "looked_at": looked_at}
        table["search"] = search
        if look.records is not None:
            table["data"] = {**table.get("data", {}), "screen": look.records}
            if not isinstance(self.recipe.data.holdout, int | float):
                table["release"] = {**table.get("release", {}), "seed": self.recipe.seed + 1}
            _leave_out_attacks(table, self.recipe)
        title = self.recipe.title or source.name
        table["title"] = f"{title}: {self.label(look)}"
        recipe = Recipe.from_table(table)
        asked = (recipe.data, recipe.schema, recipe.seed)
        if self.read.get("asked") != asked:  # the looks of a stage are at the same records
            key = self.workspace.key()
            self.read.update(asked=asked, data=ingest(source, recipe.data, recipe.schema, recipe.seed, key=key))
        check_steps(recipe, self.read["data"])
        return PreparedRun(recipe, source, self.read["data"])


def _leave_out_attacks(table: Table, recipe: Recipe) -> None:
    """Take out the measures that compare with control records, and their limits: on a sample they decide nothing and take longest."""
    attacks = {step.place for step in recipe.measures if step.method.measurement.controls}
    keys = {step.method.key for step in recipe.measures if step.place in attacks}
    table["measure"] = [one for at, one in enumerate(table.get("measure", ())) if f"measure[{at}]" not in attacks]
    table["threshold"] = [one for one in table.get("threshold", ()) if str(one["value"]).rpartition(".")[0] not in keys]


def blocking(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """The checks of the gate that block the release of a run, that of its limits apart."""
    found = examine(workspace, plan_release(workspace, run_id), policy_of(workspace.directory))
    return tuple(one.check for one in found.blocking if one.check != THRESHOLDS)


def advance(workspace: Workspace, search_id: int | None) -> list[int]:
    """Enter the runs of the next stage of a search that are not there; the runs that have to end before it goes on, none where the search has ended.

    Raises BadInput where the file is not that of the plan any more, and NotFound.
    """
    search = _Search.of(workspace, search_id)
    source = None
    while True:
        found = search.found()
        due = search.plan.next_looks(found)
        if not due:
            return []
        missing = search.affordable([look for look in due if look.number not in search.looks], found)
        source = source or (find_source(search.recipe.data.file) if missing else None)
        for look in missing:
            assert source is not None
            _enter(search, look, source, search.looked_at(found))
        search = replace(search, looks=looks_of(workspace, search.stored.id))
        waiting = [search.looks[look.number].run_id for look in due if look.number in search.looks]
        runs = [
            run_id
            for run_id in waiting
            if run_id is not None and find_run(workspace, run_id).state not in (RunState.DONE, RunState.FAILED)
        ]
        for run_id in runs:
            resume(workspace, run_id)
        if runs:
            return runs


def _enter(search: _Search, look: Look, source: Source, looked_at: int) -> None:
    """Enter the run of a look, or keep why it cannot be one."""
    workspace, search_id = search.workspace, search.stored.id
    try:
        prepared = search.prepared(look, source, looked_at)
    except BadInput as error:
        with workspace.writing() as connection:
            store_look(connection, search_id, look.number, None, str(error) or "refused")
        return
    name = workspace.connection.execute(
        "SELECT name FROM project WHERE id = ?", (search.stored.project_id,)
    ).fetchone()[0]
    enter_runs(
        workspace, [prepared], str(name),
        entered=lambda connection, run_ids: store_look(connection, search_id, look.number, run_ids[0]),
    )  # fmt: skip


def outcome(workspace: Workspace, search_id: int | None) -> Outcome:
    """What a search found, so far as its finalists have ended. Raises NotFound."""
    search = _Search.of(workspace, search_id)
    found = search.found()
    looks = search.plan.all_looks(found)
    last = [look for look in looks if look.stage == "judge"]
    finalists = tuple(
        _finalist(search, look, looks, judged_among(place, len(last)))
        for place, look in enumerate(last)
        if look.number in found and found[look.number].penalty is not None
    )
    begun = [look for look in looks if look.number in found and look.number not in search.skipped]
    refused = {look.choice for look in begun if found[look.number].penalty is None}
    skipped_judgements = sum(look.number in search.skipped for look in last)
    return Outcome(
        search.stored.id,
        search.stored.project_id,
        search.objective,
        finalists,
        len({look.choice for look in begun}),
        len(refused),
        not search.plan.next_looks(found),
        _missed(search, begun, finalists),
        None if search.recipe.search is None else search.recipe.search.minutes,
        len(search.skipped) - skipped_judgements,
        skipped_judgements,
    )


def _missed(search: _Search, begun: Sequence[Look], finalists: Sequence[Finalist]) -> dict[Limit, tuple[int, int]]:
    """By limit how many of the plans that were judged by it miss it, and how many these are: each plan by its last look."""
    judged = {one.run_id: one.verdicts for one in finalists}
    by_plan: dict[Choice, dict[Limit, bool]] = {}
    for look in begun:
        run_id = search.looks[look.number].run_id
        if run_id is not None:
            verdicts = judged.get(run_id) or verdicts_of(search.workspace, run_id)
            by_plan.setdefault(look.choice, {}).update({limit_of(one): one.outcome != "met" for one in verdicts})
    found: dict[Limit, tuple[int, int]] = {}
    for limits in by_plan.values():
        for limit, missed in limits.items():
            count, plans = found.get(limit, (0, 0))
            found[limit] = count + missed, plans + 1
    return found


def _finalist(search: _Search, look: Look, looks: Sequence[Look], among: int) -> Finalist:
    stored = search.looks[look.number]
    assert stored.run_id is not None
    run = find_run(search.workspace, stored.run_id)
    same = [search.looks[one.number].run_id for one in looks if one.choice == look.choice and one.stage != "judge"]
    earlier = next((run_id for run_id in reversed(same) if run_id is not None), None)
    return Finalist(
        run.id,
        search.label(look),
        tuple(judge(run.recipe.thresholds, result_rows(search.workspace, run.id), among=among)),
        search.blocks(stored),
        None if earlier is None else search.value(earlier),
        search.value(run.id),
    )


def take_plan(workspace: Workspace, run_id: int) -> None:
    """Make the plan of a finalist the plan of its project. Raises NotFound."""
    save_draft(workspace, draft_of_run(workspace, run_id))
