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
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.search_table import SearchTable
from sfumato.engine.recipe.thresholds import judge
from sfumato.engine.search.guidance import guided_moves
from sfumato.engine.search.looks import Found, Look, SearchPlan, Stage, judged_among, penalty_of, votes
from sfumato.engine.search.space import Table, changed, described, distinct_choice

from ..gate.answer import answer_for
from ..gate.contents import plan_release
from ..gate.gate import examine
from ..ingest.files import find_source, ingest
from ..ingest.sources import Source
from ..jobs.queue import resume
from ..jobs.runs import enter_runs
from ..plan.alternatives import levers_of, offered_protection, offered_steps
from ..plan.drafts import draft_of_run, plan_text, save_draft
from ..policy.policy import policy_of
from ..reporting.searches import Finalist, Gain, Limit, Outcome, limit_of
from ..store.runs import Run, RunState, find_run
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
from .examination import gate_stamp
from .prepare import PreparedRun, prepared_on

OUT_OF_MINUTES = "the minutes of the search were used up"
"""Why a look was not begun."""
TIME: Mapping[Stage, float] = {"screen": 0.25, "enlarge": 0.5, "refine": 0.4, "compare": 0.5, "judge": 1.0}
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
SEEDS: Mapping[Stage, int] = {"judge": 0, "compare": 2}
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
    if recipe.companions:
        raise BadInput("companions", "a search looks at one plan alone; leave it out")
    if recipe.weights is not None and recipe.weights.run is not None:
        raise BadInput(
            "weights.run", "a search looks at samples, which no earlier run had; use weights.known in its place"
        )
    objective_of(recipe)
    source = find_source(recipe.data.file)
    data = prepared_on(recipe, source, key=workspace.key()).data
    policy = policy_of(workspace.directory)
    offered = (*offered_steps(recipe, data, policy.smallest_cell), *offered_protection(recipe, data, policy))
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


def utilities_of(recipe: Recipe) -> tuple[str, ...]:
    """The keys of the utilities by which a plan is held against the one that the search began with: the objective, and of each other measure of utility the
    first that has a better and a worse.
    """
    objective = objective_of(recipe)
    found = {objective.rpartition(".")[0]: objective}
    for step in recipe.measures:
        if step.method.family in ("utility", "quality"):
            for output in step.method.results:
                if output.goal != "none" and not output.intermediate:
                    found.setdefault(step.method.key, f"{step.method.key}.{output.name}")
    return tuple(found.values())


@lru_cache(maxsize=4)
def _planned(recipe_toml: str, offered: str, records: int) -> tuple[Table, Recipe, SearchPlan]:
    """The plan of a search, kept between its stages: which choices are the same plan is found out by comparing tables."""
    table = read_toml(recipe_toml)
    recipe = Recipe.from_table(table)
    asked = recipe.search or SearchTable()
    levers = tuple(levers_of(recipe, json.loads(offered)))
    same = cache(partial(distinct_choice, table, levers))
    return table, recipe, SearchPlan(levers, asked.looks, records, recipe.seed, same, repeats=not _drawn(recipe))


def _drawn(recipe: Recipe) -> bool:
    """Whether the seed draws the hold-out, so that no look may have another."""
    return isinstance(recipe.data.holdout, int | float)


@dataclass(frozen=True)
class _Search:
    """A search as it stands: its plan, its looks, and what they found. ``read`` are the records that were read last, and as which recipe asks for them;
    ``titles`` those of the looks' runs, ``rows`` the results of those that are done.
    """

    workspace: Workspace
    stored: StoredSearch
    table: dict[str, Any]
    recipe: Recipe
    plan: SearchPlan
    looks: dict[int, StoredLook]
    read: dict[str, Any] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    rows: dict[int, list[Row]] = field(default_factory=dict)

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
            asks, losses = guided_moves(self.plan.levers, verdicts), tuple(self.losses(run.id).values())
            found[look.number] = Found(penalty_of(verdicts, blocks), cost, asks, losses)

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

    def rows_of(self, run_id: int) -> list[Row]:
        """The results of a run that is done."""
        if run_id not in self.rows:
            self.rows[run_id] = result_rows(self.workspace, run_id)
        return self.rows[run_id]

    def value(self, run_id: int) -> float | None:
        """The utility of a run; None where it was not computed."""
        averages = (row for row in self.rows_of(run_id) if row.key == self.objective and row.draw is None)
        return next((row.value for row in averages if row.dataset != "confidential"), None)

    def utilities(self, run_id: int) -> dict[str, list[Row]]:
        """By utility the rows of a run's release that are averages over its datasets, of each variable one."""
        found: dict[str, list[Row]] = {key: [] for key in utilities_of(self.recipe)}
        for row in self.rows_of(run_id):
            if row.key in found and row.draw is None and row.dataset != "confidential":
                found[row.key].append(row)
        return found

    def losses(self, run_id: int) -> dict[str, float | None]:
        """What a run's release loses by each utility, all its variables together; None where one was not computed."""
        return {key: _sum([_loss(row) for row in rows]) for key, rows in self.utilities(run_id).items()}

    @property
    def skipped(self) -> frozenset[int]:
        """The looks that were not begun since the minutes were used up."""
        return frozenset(one.number for one in self.looks.values() if one.reason == OUT_OF_MINUTES)

    def looked_at(self, found: Mapping[int, Found]) -> int:
        """How many plans were looked at, with those of the stage under way."""
        return len({one.choice for one in self.plan.all_looks(found) if one.number not in self.skipped})

    def affordable(self, missing: Sequence[Look], found: Mapping[int, Found]) -> list[Look]:
        """Which of the looks of a stage to begin now; where the minutes are used up, none, and it is kept that they are not begun.

        Looks at all records are begun one at a time, where the time of the longest one of the stage so far still fits: comparisons into the time for
        trying, judgements into all of it, one at least. A search without a limit begins all.
        """
        minutes = None if self.recipe.search is None else self.recipe.search.minutes
        if minutes is None or not missing:
            return list(missing)
        worked = seconds_worked(self.workspace, self.stored.id)
        judging = missing[0].stage == "judge"
        limit, longest = 60 * minutes * TIME[missing[0].stage], 0.0
        begun = [one.number for one in self.plan.next_looks(found) if one.number in self.looks]
        if missing[0].whole:
            longest = max((seconds_worked(self.workspace, self.stored.id, number) for number in begun), default=0.0)
        over = worked + longest > limit if longest else not judging and worked >= limit
        if not over:
            return list(missing[: 1 if missing[0].whole else AT_A_TIME])
        with self.workspace.writing() as connection:
            for look in missing:
                store_look(connection, self.stored.id, look.number, None, OUT_OF_MINUTES)
        return []

    def label(self, look: Look) -> str:
        return described(self.plan.levers, look.choice)

    def said(self, number: int, run_id: int) -> str:
        """What the plan of a look changed: the title of its run keeps it, whatever levers and order of looks this version has."""
        if number not in self.titles:
            self.titles[number] = str(read_toml(find_run(self.workspace, run_id).recipe_toml).get("title", ""))
        title = self.recipe.title
        return self.titles[number].removeprefix(f"{title}: ") if title else self.titles[number].partition(": ")[2]

    def moved(self, looks: Sequence[Look]) -> bool:
        """Whether a look that was entered is of another plan than this version has at its number: another one began the search."""
        entered = ((look, self.looks.get(look.number)) for look in looks)
        return any(
            one is not None and one.run_id is not None and self.said(one.number, one.run_id) != self.label(look)
            for look, one in entered
        )

    def prepared(self, look: Look, source: Source, looked_at: int) -> PreparedRun:
        """The run of a look. Raises BadInput where its plan cannot be carried out.

        On a sample it has other random numbers than the judgement: a seed of its own, or, where the seed draws the hold-out, other records.
        """
        table = changed(self.table, self.plan.levers, look.choice)
        search = {**table.get("search", {}), "looked_at": looked_at}
        table["search"] = search
        if look.records is not None:
            table["data"] = {**table.get("data", {}), "screen": look.records}
            if not _drawn(self.recipe):
                table["release"] = {**table.get("release", {}), "seed": self.recipe.seed + SEEDS.get(look.stage, 1)}
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


def _loss(row: Row) -> float | None:
    """By how much a value is worse than the best there can be; what is no more than chance counts as chance does. A variable that is kept loses nothing."""
    output = output_called(row.key)
    if row.value is None or output is None:
        return None
    low, high = output.range
    if output.goal == "one":
        return max(as_cost(row.value, output.goal), NEAR_ONE)
    if output.goal == "low":
        return max(row.value, row.baseline or 0.0) - (low or 0.0)
    return (high or 0.0) - row.value


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _gains(search: _Search, one: int, other: int) -> tuple[Gain, ...]:
    """By each utility what the release of one run has in place of another's, averages over the variables that either makes: those that one keeps are
    as in the data.
    """
    ours, theirs = search.utilities(one), search.utilities(other)
    losses = search.losses(one), search.losses(other)
    found = []
    for key in ours:
        after, before = (
            {(row.target, row.level, str(row.params)): row.value for row in rows[key]} for rows in (ours, theirs)
        )
        output, series = output_called(key), after.keys() | before.keys()
        assert output is not None
        best = {"one": 1.0, "low": output.range[0] or 0.0}.get(output.goal, output.range[1])
        values = [[side.get(each, best) for each in series] for side in (before, after)]
        sums = [_sum(side) for side in values]
        if series and None not in sums:
            was, has = (total / len(series) for total in sums if total is not None)
            found.append(Gain(key, was, has, votes([losses[0][key]], [losses[1][key]])))
    return tuple(found)


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

    Raises BadInput where the file is not that of the plan any more or the version that began the search looks in another order, and NotFound.
    """
    search = _Search.of(workspace, search_id)
    if search.moved(search.plan.all_looks(search.found())):
        raise BadInput(
            "search",
            f"search {search.stored.id} was begun by a version that tries plans in another order; begin a new one",
        )
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
        enter_runs(
            workspace, [search.prepared(look, source, looked_at)], _project(search),
            entered=lambda connection, run_ids: store_look(connection, search_id, look.number, run_ids[0]),
        )  # fmt: skip
    except BadInput as error:
        with workspace.writing() as connection:
            store_look(connection, search_id, look.number, None, str(error) or "refused")


def _project(search: _Search) -> str:
    query = "SELECT name FROM project WHERE id = ?"
    return str(search.workspace.connection.execute(query, (search.stored.project_id,)).fetchone()[0])


def outcome(workspace: Workspace, search_id: int | None) -> Outcome:
    """What a search found, so far as its finalists have ended. Raises NotFound."""
    search = _Search.of(workspace, search_id)
    found = search.found()
    looks = search.plan.all_looks(found)
    moved = search.moved(looks)
    labels = {look.number: search.label(look) for look in looks}
    begun = [_begun(search, one, labels) for one in search.looks.values() if one.number not in search.skipped]
    done = [one for one in begun if one.run is not None and one.run.state is RunState.DONE]
    refused = {one.label for one in begun if one.run is None or one.run.state is RunState.FAILED}
    last = [one.stored.number for one in begun if one.judges] if moved else _judgements(looks)
    finalists = tuple(
        _finalist(search, one, done, judged_among(last.index(one.stored.number), len(last)))
        for one in done
        if one.stored.number in last
    )
    skipped_judgements = sum(number in search.skipped for number in last)
    answer = Outcome(
        search.stored.id,
        search.stored.project_id,
        search.objective,
        finalists,
        len({one.label for one in begun if one.run is None or one.run.state in (RunState.DONE, RunState.FAILED)}),
        len(refused),
        moved or not search.plan.next_looks(found),
        _missed(search, done, finalists),
        None if search.recipe.search is None else search.recipe.search.minutes,
        len(search.skipped) - skipped_judgements,
        skipped_judgements,
    )
    winner, start = answer.winner, answer.start
    if winner is not None and answer.ended:
        answer = replace(answer, answer=_answer_lines(workspace, winner.run_id))
    if winner is None or start is None or winner is start:
        return answer
    return replace(answer, gains=_gains(search, winner.run_id, start.run_id))


def _answer_lines(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """The answer of the gate for a finalist, as every place prints it; examined again only where it may be another."""
    key = (str(workspace.directory), run_id, gate_stamp(workspace))
    if key not in _ANSWERS:
        answer = answer_for(workspace, run_id)
        _ANSWERS.clear()
        _ANSWERS[key] = () if answer is None else answer.lines
    return _ANSWERS[key]


@dataclass(frozen=True)
class _Begun:
    """A look that was begun: its run, None where its plan cannot be carried out, and what the plan changed."""

    stored: StoredLook
    run: Run | None
    label: str

    @property
    def judges(self) -> bool:
        return self.run is not None and self.run.recipe.data.screen is None


def _begun(search: _Search, one: StoredLook, labels: Mapping[int, str]) -> _Begun:
    if one.run_id is None:
        return _Begun(one, None, labels.get(one.number, f"look {one.number}"))
    return _Begun(one, find_run(search.workspace, one.run_id), search.said(one.number, one.run_id))


def _judgements(looks: Sequence[Look]) -> list[int]:
    return [look.number for look in looks if look.stage == "judge"]


def _missed(search: _Search, done: Sequence[_Begun], finalists: Sequence[Finalist]) -> dict[Limit, tuple[int, int]]:
    """By limit how many of the plans that were judged by it miss it, and how many these are: each plan by its last look."""
    judged = {one.run_id: one.verdicts for one in finalists}
    by_plan: dict[str, dict[Limit, bool]] = {}
    for one in done:
        assert one.run is not None
        verdicts = judged.get(one.run.id) or verdicts_of(search.workspace, one.run.id)
        by_plan.setdefault(one.label, {}).update({limit_of(verdict): verdict.outcome != "met" for verdict in verdicts})
    found: dict[Limit, tuple[int, int]] = {}
    for limits in by_plan.values():
        for limit, missed in limits.items():
            count, plans = found.get(limit, (0, 0))
            found[limit] = count + missed, plans + 1
    return found


def _finalist(search: _Search, one: _Begun, done: Sequence[_Begun], among: int) -> Finalist:
    assert one.run is not None
    run = one.run
    same = [other.run.id for other in done if other.label == one.label and other.run is not None and not other.judges]
    return Finalist(
        run.id,
        one.label,
        tuple(judge(run.recipe.thresholds, search.rows_of(run.id), among=among)),
        search.blocks(one.stored),
        search.value(same[-1]) if same else None,
        search.value(run.id),
    )


def take_plan(workspace: Workspace, run_id: int) -> None:
    """Make the plan of a finalist the plan of its project. Raises NotFound."""
    save_draft(workspace, draft_of_run(workspace, run_id))
