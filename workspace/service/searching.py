"""Search for a plan: its looks are runs of the ordinary queue, and each stage follows from the results so far.

``advance_search`` enters the runs of the next stage. It is safe to call at any time and from any process: a look that
was entered is not entered again, so a search that was killed continues and finds the same plans. Three things would
mislead. A winner of many plans looks better than it is: so finalists are judged on all records, against hold-out
records that no look before has read, with intervals that hold for all of them at once. A plan can keep to the limits
because it says nothing: so the best is chosen by utility, shown next to the first plan's. An epsilon does not cover a
choice by looking at the data: so ``search.looked_at`` voids it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from statistics import fmean
from typing import Any

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.comparison import as_cost
from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.registry import output_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.search_table import SearchTable
from sfumato.engine.recipe.table_sections import refuse_tables
from sfumato.engine.recipe.thresholds import judge_thresholds
from sfumato.engine.search.guidance import guided_moves
from sfumato.engine.search.looks import (
    LookResult,
    SearchLook,
    SearchPlan,
    Stage,
    error_divisor,
    loss_majority,
    release_penalty,
)
from sfumato.engine.search.space import RecipeTable, apply_choice, canonical_choice, describe_choice

from ..gate.answer import answer_for_run
from ..gate.contents import plan_release
from ..gate.gate import examine_release
from ..ingest.files import find_source, read_file_microdata
from ..ingest.sources import SourceFile
from ..jobs.queue import requeue_run
from ..jobs.runs import enter_runs
from ..plan.alternatives import build_levers, offered_protection, offered_steps
from ..plan.drafts import draft_of_run, save_draft, write_plan
from ..policy.installed_packages import find_trusted_packages
from ..policy.policy import read_policy_of_workspace
from ..reporting.searches import (
    EndedLook,
    LimitIdentity,
    SearchFinalist,
    SearchOutcome,
    SearchProgress,
    UtilityChange,
    limit_identity,
)
from ..reporting.words import observed_text
from ..store.runs import RunState, StoredRun, find_run
from ..store.searches import (
    StoredLook,
    StoredSearch,
    enter_search,
    find_search,
    seconds_worked,
    store_blocking_checks,
    store_look,
    stored_looks,
)
from ..store.workspace import Workspace
from ..views.results import read_result_rows, read_verdicts
from .examination import gate_stamp
from .prepare import PreparedRun, prepare_on_source

OUT_OF_MINUTES = "the minutes of the search were used up"
"""Why a look was not begun."""
TIME_SHARES: Mapping[Stage, float] = {"screen": 0.25, "enlarge": 0.5, "refine": 0.4, "compare": 0.5, "judge": 1.0}
"""The share of the minutes that are used up by the end of a stage: half is for trying plans, of which some is left for the gate, which is not asked of
the first sample, and for the comparison on all records.
"""
AT_A_TIME = 4
"""Looks that a search with a limit of minutes enters at a time, so that few are in hand when they are used up."""
DIGITS = 1
"""Of the logarithm of a ratio that is best at 1: on a sample, utilities that differ by less than a tenth are taken for equal."""
NEAR_ONE = 0.1
"""Logarithm of such a ratio that is no loss."""
IDLE_BETWEEN = 30.0
"""Seconds that a worker waits for the next looks, while the gate is asked of those that have ended."""
THRESHOLDS = "unmet_thresholds"
"""The check of the gate that counts limits which are not met: a search counts them itself."""
SEED_OFFSETS: Mapping[Stage, int] = {"judge": 0, "compare": 2}
"""What looks of a stage add to the seed; the others 1. Comparisons and judgements have random numbers that no look before them had."""
_ANSWERS: dict[tuple[str, int, str], tuple[str, ...]] = {}
"""The answer for the winner that was asked for last: the app asks again and again while a search is on the screen."""


def begin_search(
    workspace: Workspace,
    table: Mapping[str, Any],
    project: str = "",
    *,
    looks: int | None = None,
    minutes: float | None = None,
) -> int:
    """Enter a search from a recipe's table and return its number; nothing is computed yet.

    The plan must make a release and have limits; its file must stay in place for as long as the search runs. Raises
    BadInput.
    """
    asked = dict(table.get("search", {}))
    asked.update({key: value for key, value in (("looks", looks), ("minutes", minutes)) if value is not None})
    asked.pop("looked_at", None)
    whole = {**table, "search": asked}
    recipe = Recipe.from_table(whole)
    refuse_tables(recipe.tables)
    if not recipe.makes_release:
        raise BadInput("synthesis", "the plan makes no release; add [[synthesis]] or [[anonymisation]] steps first")
    if not recipe.thresholds:
        raise BadInput(
            "threshold",
            "the plan has no limits, so no plan would be better than another; add [[threshold]] or draft one",
        )
    if recipe.companions:
        raise BadInput("companions", "a search looks at one plan alone; leave it out")
    if recipe.weights is not None and recipe.weights.run is not None:
        raise BadInput(
            "weights.run", "a search looks at samples, which no earlier run had; use weights.known in its place"
        )
    search_objective(recipe)
    source = find_source(recipe.data.file)
    data = prepare_on_source(recipe, source, key=workspace.read_workspace_key()).data
    assert isinstance(data, Microdata)
    policy = read_policy_of_workspace(workspace.directory)
    offered = (*offered_steps(recipe, data, policy.smallest_cell), *offered_protection(recipe, data, policy))
    if not build_levers(recipe, offered):
        raise BadInput("search", "no step of the plan has a setting that a search may change")
    return enter_search(workspace, project or recipe.title or source.name, write_plan(whole), len(data), offered)


def search_objective(recipe: Recipe) -> str:
    """Return the key of the utility that chooses the best plan: the recipe's, else a default. Raises BadInput.

    The default is the first utility that is best at 1, else the first that has a better and a worse.
    """
    named = "" if recipe.search is None else recipe.search.objective
    goals = {
        f"{step.method.key}.{output.name}": output.goal
        for step in recipe.measures
        if step.method.family in ("utility", "quality")
        for output in step.method.result_outputs
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


def compared_utilities(recipe: Recipe) -> tuple[str, ...]:
    """Return the keys of the utilities by which a plan is compared with the one that the search began with.

    These are the objective, and of each other utility measure the first output that has a better and a worse.
    """
    objective = search_objective(recipe)
    found = {objective.rpartition(".")[0]: objective}
    for step in recipe.measures:
        if step.method.family in ("utility", "quality"):
            for output in step.method.result_outputs:
                if output.goal != "none" and not output.intermediate:
                    found.setdefault(step.method.key, f"{step.method.key}.{output.name}")
    return tuple(found.values())


@lru_cache(maxsize=4)
def _parse_search_plan(recipe_toml: str, offered: str, records: int) -> tuple[RecipeTable, Recipe, SearchPlan]:
    """Parse the table, the recipe and the looks of a search."""
    table = read_toml(recipe_toml)
    recipe = Recipe.from_table(table)
    asked = recipe.search or SearchTable()
    levers = tuple(build_levers(recipe, json.loads(offered)))
    # Which choices give the same plan is found by comparing whole tables: cached between the stages.
    same = cache(partial(canonical_choice, table, levers))
    return (
        table,
        recipe,
        SearchPlan(levers, asked.looks, records, recipe.seed, same, repeats_differ=not _is_holdout_drawn(recipe)),
    )


def _is_holdout_drawn(recipe: Recipe) -> bool:
    """Return whether the seed draws the hold-out, so that no look may have another seed."""
    return isinstance(recipe.data.holdout, int | float)


@dataclass(frozen=True)
class _SearchState:
    """Search with its plan, its looks and their results.

    workspace, stored: where it is stored, and its row
    table, recipe: the plan that it began with
    plan: the looks that follow from one another
    looks: the looks that were entered, by number
    last_read: the records that were read last, and the recipe's keys that they depend on
    title_of_look: titles of the looks' runs, by look
    rows_by_run: results of the runs that are done
    """

    workspace: Workspace
    stored: StoredSearch
    table: dict[str, Any]
    recipe: Recipe
    plan: SearchPlan
    looks: dict[int, StoredLook]
    last_read: dict[str, Any] = field(default_factory=dict)
    title_of_look: dict[int, str] = field(default_factory=dict)
    rows_by_run: dict[int, list[Row]] = field(default_factory=dict)

    @classmethod
    def from_workspace(cls, workspace: Workspace, search_id: int | None) -> _SearchState:
        """Read the state of a search, of the newest for None. Raises NotFound."""
        stored = find_search(workspace, search_id)
        table, recipe, plan = _parse_search_plan(stored.recipe_toml, json.dumps(stored.offered), stored.records)
        return cls(workspace, stored, table, recipe, plan, stored_looks(workspace, stored.id))

    def evaluate_looks(self, *, ask_gate: bool = True) -> dict[int, LookResult]:
        """Return the results of the looks that have ended, by number.

        The gate examines those that continued to a larger sample; where it may not be asked, those that it has not
        examined have no result yet.
        """
        found: dict[int, LookResult] = {}
        while due := [look for look in self.plan.next_looks(found) if look.number not in found]:
            before = len(found)
            for look in due:
                self._evaluate_look(look, found, ask_gate=ask_gate)
            # Looks that are due and still run have no result: without progress the loop would not end.
            if len(found) == before:
                break
        return found

    def _evaluate_look(self, look: SearchLook, found: dict[int, LookResult], *, ask_gate: bool) -> None:
        """Add the result of a look to ``found``, if its run has ended.

        A run that failed counts as a result without values.
        """
        stored = self.looks.get(look.number)
        if stored is None:
            return
        if stored.run_id is None:
            found[look.number] = LookResult(None, None)
            return
        run = find_run(self.workspace, stored.run_id)
        if run.state is RunState.FAILED:
            found[look.number] = LookResult(None, None)
        elif run.state is RunState.DONE and (ask_gate or look.stage == "screen" or stored.blocks is not None):
            blocks = 0 if look.stage == "screen" else len(self.blocking_checks(stored))
            verdicts = read_verdicts(self.workspace, run.id)
            value, output = self.utility_of_run(run.id), output_by_key(self.objective)
            cost = None if value is None or output is None else as_cost(value, output.goal)
            if cost is not None and output is not None and output.goal == "one":
                # On a sample, small differences are noise: utilities that differ by less than a tenth are ties, which
                # protection then decides.
                cost = round(cost, DIGITS)
            asks, losses = guided_moves(self.plan.levers, verdicts), tuple(self.utility_losses(run.id).values())
            found[look.number] = LookResult(release_penalty(verdicts, blocks), cost, asks, losses)

    def blocking_checks(self, stored: StoredLook) -> tuple[str, ...]:
        """Return the checks of the gate that block the release of a look; examined once, then stored."""
        assert stored.run_id is not None
        if stored.blocks is None:
            stored = replace(stored, blocks=blocking_checks_of_run(self.workspace, stored.run_id))
            store_blocking_checks(self.workspace, self.stored.id, stored.number, stored.blocks or ())
            self.looks[stored.number] = stored
        return stored.blocks or ()

    @cached_property
    def objective(self) -> str:
        """Return the key of the utility that chooses the best plan."""
        return search_objective(self.recipe)

    def rows_of_run(self, run_id: int) -> list[Row]:
        """Return the results of a run that is done."""
        if run_id not in self.rows_by_run:
            self.rows_by_run[run_id] = read_result_rows(self.workspace, run_id)
        return self.rows_by_run[run_id]

    def utility_of_run(self, run_id: int) -> float | None:
        """Return the utility of a run; None where it was not computed."""
        averages = (row for row in self.rows_of_run(run_id) if row.key == self.objective and row.draw is None)
        return next((row.value for row in averages if row.dataset != "confidential"), None)

    def utility_rows(self, run_id: int) -> dict[str, list[Row]]:
        """Return, by utility, the rows of a run's release that are averages over its datasets, one for each variable."""
        found: dict[str, list[Row]] = {key: [] for key in compared_utilities(self.recipe)}
        for row in self.rows_of_run(run_id):
            if row.key in found and row.draw is None and row.dataset != "confidential":
                found[row.key].append(row)
        return found

    def utility_losses(self, run_id: int) -> dict[str, float | None]:
        """Return, by utility, what a run's release loses over all its variables; None where a value was not computed."""
        return {
            key: _sum_unless_missing([_loss_of_row(row) for row in rows])
            for key, rows in self.utility_rows(run_id).items()
        }

    @property
    def skipped_looks(self) -> frozenset[int]:
        """Return the numbers of the looks that were not begun because the minutes were used up."""
        return frozenset(one.number for one in self.looks.values() if one.reason == OUT_OF_MINUTES)

    def count_plans(self, found: Mapping[int, LookResult]) -> int:
        """Count the different plans that were looked at, with those of the stage under way."""
        return len({one.choice for one in self.plan.all_looks(found) if one.number not in self.skipped_looks})

    def affordable_looks(self, missing: Sequence[SearchLook], found: Mapping[int, LookResult]) -> list[SearchLook]:
        """Return which of the missing looks of a stage to begin now.

        Where the minutes are used up, store that none is begun. A search without a limit of minutes begins all of them.
        """
        minutes = None if self.recipe.search is None else self.recipe.search.minutes
        if minutes is None or not missing:
            return list(missing)
        worked = seconds_worked(self.workspace, self.stored.id)
        judging = missing[0].stage == "judge"
        limit, longest = 60 * minutes * TIME_SHARES[missing[0].stage], 0.0
        begun = [one.number for one in self.plan.next_looks(found) if one.number in self.looks]
        # A look at all records takes long, so they begin one at a time, and only where the longest so far still fits.
        if missing[0].uses_all_records:
            longest = max((seconds_worked(self.workspace, self.stored.id, number) for number in begun), default=0.0)
        # At least one judgement is begun whatever the time: without it the search would have found nothing.
        over = worked + longest > limit if longest else not judging and worked >= limit
        if not over:
            return list(missing[: 1 if missing[0].uses_all_records else AT_A_TIME])
        with self.workspace.write_transaction() as connection:
            for look in missing:
                store_look(connection, self.stored.id, look.number, None, OUT_OF_MINUTES)
        return []

    def label_of_look(self, look: SearchLook) -> str:
        """Return the changes of a look's plan in words."""
        return describe_choice(self.plan.levers, look.choice)

    def entered_label(self, number: int, run_id: int) -> str:
        """Return the changes of a look's plan when it was entered, in words."""
        if number not in self.title_of_look:
            # The title of the run keeps it, whatever levers and order of looks this version of the program has.
            self.title_of_look[number] = str(read_toml(find_run(self.workspace, run_id).recipe_toml).get("title", ""))
        title = self.recipe.title
        return (
            self.title_of_look[number].removeprefix(f"{title}: ")
            if title
            else self.title_of_look[number].partition(": ")[2]
        )

    def has_other_plans(self, looks: Sequence[SearchLook]) -> bool:
        """Return whether a look was entered with another plan than this version has at its number."""
        entered = ((look, self.looks.get(look.number)) for look in looks)
        return any(
            one is not None
            and one.run_id is not None
            and self.entered_label(one.number, one.run_id) != self.label_of_look(look)
            for look, one in entered
        )

    def prepare_look(self, look: SearchLook, source: SourceFile, looked_at: int) -> PreparedRun:
        """Prepare the run of a look. Raises BadInput where its plan cannot be carried out."""
        table = apply_choice(self.table, self.plan.levers, look.choice)
        search = {**table.get("search", {}), "looked_at": looked_at}
        table["search"] = search
        if look.records is not None:
            table["data"] = {**table.get("data", {}), "screen": look.records}
            # Looks on samples need other random numbers than the judgement. Where the seed draws the hold-out too, the
            # sample alone differs.
            if not _is_holdout_drawn(self.recipe):
                table["release"] = {
                    **table.get("release", {}),
                    "seed": self.recipe.seed + SEED_OFFSETS.get(look.stage, 1),
                }
            _leave_out_attacks(table, self.recipe)
        title = self.recipe.title or source.name
        table["title"] = f"{title}: {self.label_of_look(look)}"
        recipe = Recipe.from_table(table)
        asked = (recipe.data, recipe.schema, recipe.seed)
        if self.last_read.get("asked") != asked:  # the looks of a stage are at the same records
            key = self.workspace.read_workspace_key()
            self.last_read.update(
                asked=asked, data=read_file_microdata(source, recipe.data, recipe.schema, recipe.seed, key=key)
            )
        check_steps(recipe, self.last_read["data"], find_trusted_packages(recipe, self.workspace.directory))
        return PreparedRun(recipe, source, self.last_read["data"])


def _loss_of_row(row: Row) -> float | None:
    """Return by how much a value is worse than the best possible; None where it was not computed."""
    output = output_by_key(row.key)
    if row.value is None or output is None:
        return None
    low, high = output.range
    if output.goal == "one":
        # What is no more than chance counts as chance does, here and below: else noise would choose the plan.
        return max(as_cost(row.value, output.goal), NEAR_ONE)
    if output.goal == "low":
        return max(row.value, row.baseline or 0.0) - (low or 0.0)
    return (high or 0.0) - row.value


def _sum_unless_missing(values: Sequence[float | None]) -> float | None:
    """Return the sum of the values; None where one is missing or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _utility_gains(search: _SearchState, one: int, other: int) -> tuple[UtilityChange, ...]:
    """Return, by utility, what the release of run ``one`` gains over that of run ``other``.

    Averages are over the variables that either run synthesises.
    """
    ours, theirs = search.utility_rows(one), search.utility_rows(other)
    losses = search.utility_losses(one), search.utility_losses(other)
    found = []
    for key in ours:
        after, before = (
            {(row.target, row.level, str(row.params)): row.value for row in rows[key]} for rows in (ours, theirs)
        )
        output, series = output_by_key(key), after.keys() | before.keys()
        assert output is not None
        # A variable that one of the runs keeps is as in the data: its utility there is the best possible.
        best = {"one": 1.0, "low": output.range[0] or 0.0}.get(output.goal, output.range[1])
        values = [[side.get(each, best) for each in series] for side in (before, after)]
        sums = [_sum_unless_missing(side) for side in values]
        if series and None not in sums:
            was, has = (total / len(series) for total in sums if total is not None)
            found.append(UtilityChange(key, was, has, loss_majority([losses[0][key]], [losses[1][key]])))
    return tuple(found)


def _leave_out_attacks(table: RecipeTable, recipe: Recipe) -> None:
    """Remove the measures that compare with control records, and their limits, from a look on a sample."""
    # With a sample's few controls they decide nothing, and they take longest.
    attacks = {step.place for step in recipe.measures if step.method.measurement.controls}
    keys = {step.method.key for step in recipe.measures if step.place in attacks}
    table["measure"] = [one for at, one in enumerate(table.get("measure", ())) if f"measure[{at}]" not in attacks]
    table["threshold"] = [one for one in table.get("threshold", ()) if str(one["value"]).rpartition(".")[0] not in keys]


def blocking_checks_of_run(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """Return the checks of the gate that block the release of a run, except the check of its limits."""
    found = examine_release(workspace, plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory))
    return tuple(one.check for one in found.blocking_findings if one.check != THRESHOLDS)


def advance_search(workspace: Workspace, search_id: int | None) -> list[int]:
    """Enter the missing runs of a search's next stage.

    Return the runs that must end first, none where the search has ended. Raises BadInput where the file is not that of
    the plan any more or another version's order of looks began the search, and NotFound.
    """
    search = _SearchState.from_workspace(workspace, search_id)
    if search.has_other_plans(search.plan.all_looks(search.evaluate_looks())):
        raise BadInput(
            "search",
            f"search {search.stored.id} was begun by a version that tries plans in another order; begin a new one",
        )
    source = None
    while True:
        found = search.evaluate_looks()
        due = search.plan.next_looks(found)
        if not due:
            return []
        missing = search.affordable_looks([look for look in due if look.number not in search.looks], found)
        source = source or (find_source(search.recipe.data.file) if missing else None)
        for look in missing:
            assert source is not None
            _enter_look(search, look, source, search.count_plans(found))
        search = replace(search, looks=stored_looks(workspace, search.stored.id))
        waiting = [search.looks[look.number].run_id for look in due if look.number in search.looks]
        runs = [
            run_id
            for run_id in waiting
            if run_id is not None and find_run(workspace, run_id).state not in (RunState.DONE, RunState.FAILED)
        ]
        for run_id in runs:
            requeue_run(workspace, run_id)
        if runs:
            return runs


def _enter_look(search: _SearchState, look: SearchLook, source: SourceFile, looked_at: int) -> None:
    """Enter the run of a look, or store why its plan cannot be carried out."""
    workspace, search_id = search.workspace, search.stored.id
    try:
        enter_runs(
            workspace, [search.prepare_look(look, source, looked_at)], _project_name(search),
            on_entered=lambda connection, run_ids: store_look(connection, search_id, look.number, run_ids[0]),
        )  # fmt: skip
    except BadInput as error:
        with workspace.write_transaction() as connection:
            store_look(connection, search_id, look.number, None, str(error) or "refused")


def _project_name(search: _SearchState) -> str:
    query = "SELECT name FROM project WHERE id = ?"
    return str(search.workspace.connection.execute(query, (search.stored.project_id,)).fetchone()[0])


def search_outcome(workspace: Workspace, search_id: int | None) -> SearchOutcome:
    """Return the outcome of a search as far as its finalists have ended. Raises NotFound."""
    search = _SearchState.from_workspace(workspace, search_id)
    found = search.evaluate_looks()
    looks = search.plan.all_looks(found)
    moved = search.has_other_plans(looks)
    labels = {look.number: search.label_of_look(look) for look in looks}
    begun = [
        _begun_look(search, one, labels) for one in search.looks.values() if one.number not in search.skipped_looks
    ]
    done = [one for one in begun if one.run is not None and one.run.state is RunState.DONE]
    refused = {one.label for one in begun if one.run is None or one.run.state is RunState.FAILED}
    last = [one.stored.number for one in begun if one.is_judgement] if moved else _numbers_of_judgements(looks)
    finalists = tuple(
        _make_finalist(search, one, done, error_divisor(last.index(one.stored.number), len(last)))
        for one in done
        if one.stored.number in last
    )
    skipped_judgements = sum(number in search.skipped_looks for number in last)
    answer = SearchOutcome(
        search.stored.id,
        search.stored.project_id,
        search.objective,
        finalists,
        len({one.label for one in begun if one.run is None or one.run.state in (RunState.DONE, RunState.FAILED)}),
        len(refused),
        moved or not search.plan.next_looks(found),
        _count_missed_limits(search, done, finalists),
        None if search.recipe.search is None else search.recipe.search.minutes,
        len(search.skipped_looks) - skipped_judgements,
        skipped_judgements,
    )
    winner, start = answer.winner, answer.unchanged_finalist
    if winner is not None and answer.has_ended:
        answer = replace(answer, gate_answer=_answer_lines(workspace, winner.run_id))
    if winner is None or start is None or winner is start:
        return answer
    return replace(answer, gains=_utility_gains(search, winner.run_id, start.run_id))


def search_progress(workspace: Workspace, search_id: int, reported: Collection[int] = ()) -> SearchProgress:
    """Return how far a search has come, with the looks that ended and are not ``reported`` yet. Raises NotFound.

    It writes nothing and does not ask the gate: a look counts for the best once the search has asked it.
    """
    search = _SearchState.from_workspace(workspace, search_id)
    found = search.evaluate_looks(ask_gate=False)
    entered = {look.number: look for look in search.plan.all_looks(found)}
    runs = {number: find_run(workspace, one.run_id) for number, one in search.looks.items() if one.run_id is not None}
    ended = frozenset(
        number
        for number in search.looks
        if number not in runs or runs[number].state in (RunState.DONE, RunState.FAILED)
    )
    best = search.plan.best_look(found)
    reports = {
        number: _ended_look(search, number, runs.get(number), entered.get(number))
        for number in (*sorted(ended.difference(reported)), *(() if best is None else (best.number,)))
    }
    return SearchProgress(
        search.stored.id,
        max(len(search.plan.planned_looks(found)), len(search.looks)),
        ended,
        None if best is None else reports[best.number],
        tuple(one for number, one in reports.items() if number not in reported),
        _seconds_left(search, found, runs, ended),
        not search.plan.next_looks(found),
    )


def _ended_look(search: _SearchState, number: int, run: StoredRun | None, look: SearchLook | None) -> EndedLook:
    """Return a look that has ended, in words."""
    if run is None or run.state is not RunState.DONE:
        label = f"look {number}" if look is None else search.label_of_look(look)
        return EndedLook(number, label, was_carried_out=False)
    verdicts = read_verdicts(search.workspace, run.id)
    risks = [one for one in verdicts if one.value.startswith("risk.") and one.margin is not None]
    nearest = min(risks, key=lambda one: one.margin or 0.0, default=None)
    utility = search.utility_of_run(run.id)
    blocks = search.looks[number].blocks
    return EndedLook(
        number,
        search.entered_label(number, run.id),
        len(verdicts),
        sum(one.outcome != "met" for one in verdicts),
        None if blocks is None else len(blocks),
        ""
        if nearest is None
        else f"{_lower_first(measure_name(nearest.value))}: {observed_text(nearest, _records_of_run(search, run))}",
        "" if utility is None else f"{_lower_first(measure_name(search.objective))}: {utility:.3g}",
    )


def _lower_first(text: str) -> str:
    """Return a name as it stands within a sentence."""
    return f"{text[:1].lower()}{text[1:]}"


def _records_of_run(search: _SearchState, run: StoredRun) -> int:
    """Return the number of records that a look is at."""
    return run.recipe.data.screen or search.stored.records


def _seconds_left(
    search: _SearchState, found: Mapping[int, LookResult], runs: Mapping[int, StoredRun], ended: Collection[int]
) -> float | None:
    """Return the seconds that the looks to come may take; None before one has ended.

    A look takes a time of its own and a time for each record, both by the smallest and the largest looks so far.
    """
    seconds_by_size: dict[int, list[float]] = {}
    for number in ended:
        if number in runs and (seconds := seconds_worked(search.workspace, search.stored.id, number)):
            seconds_by_size.setdefault(_records_of_run(search, runs[number]), []).append(seconds)
    if not seconds_by_size:
        return None
    small, large = min(seconds_by_size), max(seconds_by_size)
    shortest, longest = (fmean(seconds_by_size[size]) for size in (small, large))
    per_record = longest / large if small == large else max(0.0, (longest - shortest) / (large - small))
    per_look = max(0.0, longest - per_record * large)
    spent = sum(map(sum, seconds_by_size.values()))
    worked = seconds_worked(search.workspace, search.stored.id)
    open_sizes = Counter(size or search.stored.records for size in search.plan.planned_looks(found))
    open_sizes.subtract(_records_of_run(search, runs[number]) for number in ended if number in runs)
    left = sum(max(0, count) * (per_look + per_record * size) for size, count in open_sizes.items())
    # Several tasks at a time: the search as a whole takes less than its looks one after the other.
    left *= min(1.0, worked / spent)
    minutes = None if search.recipe.search is None else search.recipe.search.minutes
    return left if minutes is None else min(left, max(0.0, 60 * minutes - worked))


def _answer_lines(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """Return the lines of the gate's answer for a finalist."""
    # The app asks again and again while a search is on the screen: the gate examines again only where its answer may
    # have changed.
    key = (str(workspace.directory), run_id, gate_stamp(workspace))
    if key not in _ANSWERS:
        answer = answer_for_run(workspace, run_id)
        _ANSWERS.clear()
        _ANSWERS[key] = () if answer is None else answer.lines
    return _ANSWERS[key]


@dataclass(frozen=True)
class _BegunLook:
    """Look that was begun.

    stored: its row
    run: its run; None where its plan cannot be carried out
    label: what the plan changed
    """

    stored: StoredLook
    run: StoredRun | None
    label: str

    @property
    def is_judgement(self) -> bool:
        """Return whether it was a look at all records, which no sample screens."""
        return self.run is not None and self.run.recipe.data.screen is None


def _begun_look(search: _SearchState, one: StoredLook, labels: Mapping[int, str]) -> _BegunLook:
    """Return a look with its run and label; ``labels`` serve those that have no run."""
    if one.run_id is None:
        return _BegunLook(one, None, labels.get(one.number, f"look {one.number}"))
    return _BegunLook(one, find_run(search.workspace, one.run_id), search.entered_label(one.number, one.run_id))


def _numbers_of_judgements(looks: Sequence[SearchLook]) -> list[int]:
    """Return the numbers of the looks that judge finalists."""
    return [look.number for look in looks if look.stage == "judge"]


def _count_missed_limits(
    search: _SearchState, done: Sequence[_BegunLook], finalists: Sequence[SearchFinalist]
) -> dict[LimitIdentity, tuple[int, int]]:
    """Return, by limit, how many of the plans that were compared with it miss it, and how many were compared."""
    judged = {one.run_id: one.verdicts for one in finalists}
    by_plan: dict[str, dict[LimitIdentity, bool]] = {}
    for one in done:
        assert one.run is not None
        verdicts = judged.get(one.run.id) or read_verdicts(search.workspace, one.run.id)
        # A plan counts once, by its last look.
        by_plan.setdefault(one.label, {}).update(
            {limit_identity(verdict): verdict.outcome != "met" for verdict in verdicts}
        )
    found: dict[LimitIdentity, tuple[int, int]] = {}
    for limits in by_plan.values():
        for limit, missed in limits.items():
            count, plans = found.get(limit, (0, 0))
            found[limit] = count + missed, plans + 1
    return found


def _make_finalist(search: _SearchState, one: _BegunLook, done: Sequence[_BegunLook], among: int) -> SearchFinalist:
    """Return the finalist of a judgement, with its verdicts ``among`` all judgements and its utilities."""
    assert one.run is not None
    run = one.run
    same = [
        other.run.id for other in done if other.label == one.label and other.run is not None and not other.is_judgement
    ]
    return SearchFinalist(
        run.id,
        one.label,
        tuple(judge_thresholds(run.recipe.thresholds, search.rows_of_run(run.id), among=among)),
        search.blocking_checks(one.stored),
        search.utility_of_run(same[-1]) if same else None,
        search.utility_of_run(run.id),
    )


def adopt_plan(workspace: Workspace, run_id: int) -> None:
    """Make the plan of a finalist the plan of its project. Raises NotFound."""
    save_draft(workspace, draft_of_run(workspace, run_id))
