"""The next step of a project, in one line with its key: from a file to a verdict, and from a verdict to a decision."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from textual.app import App
from textual.content import Content

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import agreeing_word
from sfumato.workspace.audit import AuditAct
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.reporting.words import UNMET_OUTCOMES
from sfumato.workspace.store.runs import RunState, RunSummary, StoredRun
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..keys.own_keys import current_key
from ..plan.plan import mapping_or_empty

ROLES = frozenset({"quasi_identifier", "known", "sensitive"})
MAKERS = ("synthesis", "anonymisation")
OTHER_FINDINGS = ("verdicts", "records", "results", "sweep", "diagnostics")
"""Tabs of Findings besides that of tables."""
FINDINGS = (*OTHER_FINDINGS, "tables")


@dataclass(frozen=True)
class PlanStage:
    """Completeness of a plan.

    has_roles: whether its variables have roles
    makers, measures, thresholds: number of steps of each kind
    tables: number of tables to print
    """

    has_roles: bool
    makers: int
    measures: int
    thresholds: int
    tables: int = 0


@dataclass(frozen=True)
class ProjectStage:
    """Progress of a project.

    plan: completeness of its plan; None if there are no data or the plan cannot be read
    has_data: whether the project has data
    released: runs that were released
    toml: text of the plan
    datasets: tables of the plan's file: all its records, and those that runs drew
    plan_run: newest run of the plan
    answers: the gate's answers by run, ``no``, ``to be judged`` or ``yes``, if known
    stamp: stamp for which the answers are valid
    findings_tab: tab at which Findings opens from another place
    """

    plan: PlanStage | None = None
    has_data: bool = True
    released: frozenset[int] = frozenset()
    toml: str = ""
    datasets: frozenset[int] = frozenset()
    plan_run: RunSummary | None = None
    answers: Mapping[int, str] = field(default_factory=dict)
    stamp: str = ""
    findings_tab: str = "verdicts"

    def with_plan_run(self, lines: Sequence[RunSummary], sha256: str = "") -> ProjectStage:
        """Return the progress with the newest run of the plan among these runs, which are listed newest first.

        ``sha256`` is the fingerprint of the plan's recipe, if known.
        """
        return replace(self, plan_run=next((line for line in lines if self._is_plan_run(line.run, sha256)), None))

    def _is_plan_run(self, run: StoredRun, sha256: str) -> bool:
        """Return whether a run is of the plan, on records of the same file, and not failed or interrupted."""
        if run.dataset_id not in self.datasets or (run.state.is_final and run.state is not RunState.DONE):
            return False
        # Texts that differ in formatting or defaults have one fingerprint; without it equal tables must do.
        return run.recipe_sha256 == sha256 if sha256 else _same_table(run.recipe_toml, self.toml)


@lru_cache(maxsize=8)
def stage_of_plan(toml: str) -> PlanStage | None:
    """Return whether a plan has roles, and its numbers of makers, measures and thresholds; None for an unreadable text."""
    try:
        table = read_toml(toml)
    except BadInput:
        return None
    variables = mapping_or_empty(table.get("variables")).values()
    release = mapping_or_empty(table.get("release"))
    measured = _count_steps(table, "measure") + _count_steps(table, "study")
    makers = sum(_count_steps(table, section) for section in MAKERS) + ("released" in release)
    roles = any(isinstance(one, Mapping) and one.get("role") in ROLES for one in variables)
    return PlanStage(roles, makers, measured, _count_steps(table, "threshold"), _count_steps(table, "table"))


@lru_cache(maxsize=64)
def _same_table(one: str, other: str) -> bool:
    """Return whether two texts are the same TOML table; False if one cannot be read."""
    try:
        return read_toml(one) == read_toml(other)
    except BadInput:
        return False


def _count_steps(table: Mapping[str, Any], section: str) -> int:
    """Return the number of steps in a section of a plan."""
    value = table.get(section)
    return len(value) if isinstance(value, list) else 0


def stage_of_project(workspace: Workspace, project_id: int) -> ProjectStage:
    """Read the progress of a project."""
    draft = find_draft(workspace, project_id)
    query = """SELECT run.id FROM run JOIN audit ON audit.act = ? AND audit.subject = 'run ' || run.id
               WHERE run.project_id = ?"""
    rows = workspace.connection.execute(query, (AuditAct.RUN_RELEASED.value, project_id))
    released = frozenset(int(row[0]) for row in rows)
    if draft is None:
        return ProjectStage(None, has_data=False, released=released)
    # A run with a sample or hold-out is of a table of its own, which comes from the same file.
    same = (
        """SELECT other.id FROM dataset JOIN dataset AS other USING (project_id, source_sha256) WHERE dataset.id = ?"""
    )
    datasets = frozenset(int(row[0]) for row in workspace.connection.execute(same, (draft.dataset_id,)))
    return ProjectStage(stage_of_plan(draft.toml), has_data=True, released=released, toml=draft.toml, datasets=datasets)


RUN_PLAN, RUN_RECIPE = "{run} runs it", "{new} runs a recipe"
"""What runs the plan, and a recipe, with acts in braces."""


def next_step_text(stage: ProjectStage, line: RunSummary | None, tab: str, row_step: str = "") -> str:
    """Return what to do next in a project, for the run ``line`` and the tab ``tab``; names of acts stand in braces.

    row_step: what enter does on the line of Verdicts under the cursor, with acts in braces
    """
    if tab in ("data", "rows", "plan") and (of := stage.plan_run) is not None:
        if line is None or line.run.id != of.run.id:  # keys that release or report are for the run that the tabs show
            state = "done" if of.run.state.is_final else "under way"
            return f"this plan is run {of.run.id}, {state}: {{runs}} opens Runs, which shows it"
        if not of.run.state.is_final:
            return next_step_text(stage, of, "")
        said = _step_after_run(stage, of, tab)
        return f"this plan is run {of.run.id}; {said}"
    if line is None or tab in ("data", "rows", "plan"):
        return _step_before_run(stage, tab)
    run = line.run
    if line.is_stalled:
        return f"next: run {run.id} has no worker: {_act_there('runs', tab, '{interrupt} gives it one')}"
    if not run.state.is_final:
        where = "" if tab == "runs" else "; {runs} opens Runs, which says how far it is"
        return f"run {run.id} keeps running if you quit{where}"
    if run.state is RunState.FAILED:
        resumes = _act_there("runs", tab, "{interrupt} resumes it")
        return (
            f"next: {{plan}} opens Plan to fix why run {run.id} failed; or {resumes}: {replace_unprintable(run.error)}"
        )
    if run.state is not RunState.DONE:
        return f"next: {_act_there('runs', tab, f'{{interrupt}} resumes run {run.id}')}"
    return _step_after_run(stage, line, tab, row_step)


def _act_there(place: str, tab: str, act: str) -> str:
    """Return an act of a place, after the key that opens the place unless it is shown: ``2 opens Plan, where R runs it``."""
    return act if tab == place else f"{{{place}}} opens {place.capitalize()}, where {act}"


def _step_before_run(standing: ProjectStage, tab: str) -> str:
    """Return the next step until the plan can be run."""
    plan = standing.plan
    if not standing.has_data:
        return f"next: {_act_there('runs', tab, RUN_RECIPE)}; or {{projects}} opens Projects, where {{import}} imports a file"
    if plan is None:
        return "next: " + ("" if tab == "plan" else "{plan} opens Plan: ") + "fix the text of the plan"
    if plan.tables and not plan.makers:
        # Tables need neither roles nor measures.
        return f"next: {_act_there('plan', tab, RUN_PLAN)}"
    if not plan.has_roles:
        where = "" if tab in ("data", "rows") else "{data} opens Data: "
        return "next: " + where + "give each variable a role: {role} quasi-identifier or sensitive"
    if not plan.makers:
        drafts, adds = "{draft} drafts the plan", "{add} adds a step"
        return f"next: {_act_there('data', tab, drafts)}; or {_act_there('plan', tab, adds)}"
    if not plan.measures:
        return f"next: {_act_there('plan', tab, '{add} adds a measure')}: without one there is no verdict"
    lack = "" if plan.thresholds else "; without limits there is no verdict"
    return f"next: {_act_there('plan', tab, RUN_PLAN)}{lack}"


def _step_after_run(standing: ProjectStage, line: RunSummary, tab: str, row_step: str = "") -> str:
    """Return the next step after a run that is done."""
    tally, run_id = line.verdicts, line.run.id
    answer = standing.answers.get(run_id, "")
    open_ = tally.total - tally.met
    # A released run needs no further step, whatever its verdicts are.
    if run_id in standing.released:
        compares = _act_there("runs", tab, "{compare} compares runs")
        return f"run {run_id} was released; {{report}} writes its report; {compares}"
    verdicts = _way_to_verdicts(standing, tab)
    if answer == "no":
        if tab == "verdicts":
            return f"next: {row_step or '{open} explains what blocks and how to fix it'}"
        return f"next: {verdicts}: what blocks the release of run {run_id}"
    if open_ and tab == "verdicts":
        return f"next: {row_step or '{open} explains it and how to fix it'}; {{try}} tries other limits"
    if open_:
        became = next(word for word in UNMET_OUTCOMES if tally.by_outcome[word])
        lack = tally.by_outcome[became]
        these = f"{lack} of {tally.total} thresholds" if tally.total > 1 else "the threshold"
        return f"next: {verdicts}: why {these} {agreeing_word(lack, 'is', 'are')} {became}"
    own = stage_of_plan(line.run.recipe_toml)
    if not tally.total and own is not None and own.tables:
        if tab == "tables":
            return "next: {open} says why a cell is hidden, {exclude} publishes or hides one"
        if tab in OTHER_FINDINGS:
            way = "next_tab" if tab == "verdicts" else "previous_tab"
            return f"next: the tab Tables ({{{way}}}) has the tables of run {run_id}"
        return f"next: {{findings}} opens Findings, which has the tables of run {run_id}"
    if not tally.total:
        return f"next: run {run_id} has no limits: {_act_there('plan', tab, '{add} adds one')}"
    # Only the gate's answer leads to a release, never thresholds that are met.
    if answer == "yes":
        return "next: {release_run} releases; {report} writes the report"
    if answer:
        return (
            f"next: {row_step or '{open} explains what you have to judge'}; {{release}} takes your judgement"
            if tab == "verdicts"
            else f"next: {verdicts}: what you have to judge"
        )
    if tab == "verdicts":
        return "the gate has not answered yet; {report} writes the report"
    return f"next: {verdicts}: whether run {run_id} may leave"


def _way_to_verdicts(standing: ProjectStage, tab: str) -> str:
    """Return the keys that lead from a tab to Verdicts, and the name of what they lead to, before a colon."""
    if tab in FINDINGS:
        return "{findings} opens Verdicts"
    # From another place Findings opens at the tab that it showed last, and its key leads from there to Verdicts.
    if standing.findings_tab == "verdicts":
        return "{findings} opens Findings"
    return "{findings} twice opens Verdicts"


def step_with_keys(app: App[Any], step: str) -> Content:
    """Return a step with the present keys of its acts."""
    parts = [
        (current_key(app, part), "bold") if at % 2 else part
        for at, part in enumerate(re.split(r"\{([a-z_.]+)\}", step))
    ]
    return Content.assemble(*parts)
