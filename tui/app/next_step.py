"""The next step of a project, in one line with its key: from a file to a verdict, and from a verdict to a decision."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from textual.app import App
from textual.content import Content

from sfumato.engine.wording import agreeing_word
from sfumato.workspace.audit import AuditAct
from sfumato.workspace.plan.drafts import draft_of
from sfumato.workspace.reporting.words import UNMET
from sfumato.workspace.store.runs import Run, RunLine, RunState
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..keys.own_keys import key_for

ROLES = frozenset({"quasi_identifier", "known", "sensitive"})
MAKERS = ("synthesis", "anonymisation")


@dataclass(frozen=True)
class PlanStanding:
    """How far a plan has come: whether its variables have roles, and how many steps of each kind it has."""

    roles: bool
    makers: int
    measures: int
    thresholds: int


@dataclass(frozen=True)
class Standing:
    """How far a project has come: its plan, None where it has no data or cannot be read, and which runs were released.

    ``toml`` is the plan's text, ``datasets`` are tables of the file that it is for: all its records and those that runs drew, ``done_by`` the newest run that did it, or does.
    ``answers`` are those of the gate by run, ``no``, ``to be judged`` or ``yes``, where they are known; ``stamp`` says under what they hold.
    """

    plan: PlanStanding | None = None
    has_data: bool = True
    released: frozenset[int] = frozenset()
    toml: str = ""
    datasets: frozenset[int] = frozenset()
    done_by: RunLine | None = None
    answers: Mapping[int, str] = field(default_factory=dict)
    stamp: str = ""

    def beside(self, lines: Sequence[RunLine], sha256: str = "") -> Standing:
        """With the run of the plan among these, the newest first: of the same recipe, by its fingerprint where that is known, on records of
        the same file. Which of them the recipe says.
        """
        return replace(self, done_by=next((line for line in lines if self._is_of(line.run, sha256)), None))

    def _is_of(self, run: Run, sha256: str) -> bool:
        if run.dataset_id not in self.datasets or (run.state.ended and run.state is not RunState.DONE):
            return False
        return run.recipe_sha256 == sha256 if sha256 else _says_the_same(run.recipe_toml, self.toml)


@lru_cache(maxsize=8)
def plan_standing(toml: str) -> PlanStanding | None:
    """How far a plan has come; None where its text is unfinished."""
    try:
        table = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return None
    variables = _table(table.get("variables")).values()
    release = _table(table.get("release"))
    measured = _steps(table, "measure") + _steps(table, "study")
    makers = sum(_steps(table, section) for section in MAKERS) + ("released" in release)
    roles = any(isinstance(one, Mapping) and one.get("role") in ROLES for one in variables)
    return PlanStanding(roles, makers, measured, _steps(table, "threshold"))


@lru_cache(maxsize=64)
def _says_the_same(one: str, other: str) -> bool:
    """Whether two texts are the same table; not where one is unfinished."""
    try:
        return tomllib.loads(one) == tomllib.loads(other)
    except tomllib.TOMLDecodeError:
        return False


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _steps(table: Mapping[str, Any], section: str) -> int:
    value = table.get(section)
    return len(value) if isinstance(value, list) else 0


def standing_of(workspace: Workspace, project_id: int) -> Standing:
    draft = draft_of(workspace, project_id)
    query = """SELECT run.id FROM run JOIN audit ON audit.act = ? AND audit.subject = 'run ' || run.id
               WHERE run.project_id = ?"""
    rows = workspace.connection.execute(query, (AuditAct.RUN_RELEASED.value, project_id))
    released = frozenset(int(row[0]) for row in rows)
    if draft is None:
        return Standing(None, has_data=False, released=released)
    same = (
        """SELECT other.id FROM dataset JOIN dataset AS other USING (project_id, source_sha256) WHERE dataset.id = ?"""
    )
    datasets = frozenset(int(row[0]) for row in workspace.connection.execute(same, (draft.dataset_id,)))
    return Standing(plan_standing(draft.toml), has_data=True, released=released, toml=draft.toml, datasets=datasets)


def next_step(standing: Standing, line: RunLine | None, tab: str) -> str:
    """What to do next in a project that has come so far, whose run is ``line``, on ``tab``; bindings stand in braces."""
    if tab in ("data", "plan") and (of := standing.done_by) is not None:
        if line is None or line.run.id != of.run.id:  # keys that release or report are for the run that the tabs show
            return (
                f"this plan is run {of.run.id}, {'done' if of.run.state.ended else 'under way'}: {{runs}} Runs shows it"
            )
        if not of.run.state.ended:
            return next_step(standing, of, "")
        said = _to_a_decision(standing, of, tab)
        return f"this plan is run {of.run.id}; {said}"
    if line is None or tab in ("data", "plan"):
        return _to_a_run(standing, tab)
    run = line.run
    if line.stalled:
        return f"next: nobody works on run {run.id}: {{interrupt}} in Runs{_key_of('runs', tab)} gives it a worker"
    if not run.state.ended:
        where = "" if tab == "runs" else "; {runs} Runs says how far it is"
        return f"run {run.id} keeps running if you quit{where}"
    if run.state is RunState.FAILED:
        return f"next: {{plan}} Plan to fix why run {run.id} failed, or {{interrupt}} in Runs resumes it: {replace_unprintable(run.error)}"
    if run.state is not RunState.DONE:
        return f"next: {{interrupt}} in Runs{_key_of('runs', tab)} resumes run {run.id}"
    return _to_a_decision(standing, line, tab)


def _key_of(name: str, tab: str) -> str:
    """`` (1)`` unless that tab is shown."""
    return "" if tab == name else f" ({{{name}}})"


def _to_a_run(standing: Standing, tab: str) -> str:
    """The next step while there is a plan to make."""
    plan, key = standing.plan, _key_of("plan", tab)
    if not standing.has_data:
        return "next: {new} in Runs" + _key_of("runs", tab) + " runs a recipe, or {projects} and {import} import a file"
    if plan is None:
        return f"next: fix the text of the plan{key}"
    if not plan.roles:
        where = "" if tab == "data" else "{data} Data: "
        return "next: " + where + "give each variable a role: {role} quasi-identifier or sensitive"
    if not plan.makers:
        return f"next: {{draft}} in Data{_key_of('data', tab)} drafts the plan, or {{add}} in Plan{key} adds a step"
    if not plan.measures:
        return f"next: {{add}} in Plan{key} adds a measure: without one there is no verdict"
    lack = "" if plan.thresholds else "; without limits there is no verdict"
    return f"next: {{run}} in Plan{key} runs it{lack}"


def _to_a_decision(standing: Standing, line: RunLine, tab: str) -> str:
    """The next step after a run that is done. Only the gate's answer leads to a release, never thresholds that are met."""
    tally, run_id = line.tally, line.run.id
    answer = standing.answers.get(run_id, "")
    open_ = tally.total - tally.met
    if run_id in standing.released:
        return f"run {run_id} was released; {{report}} writes its report, {{compare}} in Runs compares runs"
    if answer == "no":
        if tab == "verdicts":
            return "next: {open} explains what blocks and how to fix it"
        return f"next: {{findings}} Findings says what blocks the release of run {run_id}"
    if open_ and tab == "verdicts":
        return "next: {open} explains it and how to fix it; {try} tries other limits"
    if open_:
        became = next(word for word in UNMET if tally.counts[word])
        lack = tally.counts[became]
        these = f"{lack} of {tally.total} thresholds" if tally.total > 1 else "the threshold"
        return f"next: {{findings}} Findings says why {these} {agreeing_word(lack, 'is', 'are')} {became}"
    if not tally.total:
        return f"next: run {run_id} has no limits: {{add}} in Plan{_key_of('plan', tab)} adds one"
    if answer == "yes":
        return "next: {release_run} releases; {report} writes the report"
    if answer:
        return (
            "next: {open} explains what you have to judge"
            if tab == "verdicts"
            else (f"next: {{findings}} Findings says what you have to judge before run {run_id} may leave")
        )
    if tab == "verdicts":
        return "the gate has not answered yet; {report} writes the report"
    return f"next: {{findings}} Findings says whether run {run_id} may leave"


def step_text(app: App[Any], step: str) -> Content:
    """A step with the keys that its bindings have now."""
    parts = [
        (key_for(app, part), "bold") if at % 2 else part for at, part in enumerate(re.split(r"\{([a-z_.]+)\}", step))
    ]
    return Content.assemble(*parts)
