"""Edits of a plan's text that keep its comments and its order."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold

from ..errors import NotFound
from ..store.runs import find_run
from ..store.workspace import Workspace
from .drafts import PlanDraft, draft_of_run, find_draft, save_draft, write_plan
from .rewrite import PlanDocument

STEP_LISTS = ("synthesis", "anonymisation", "measure", "study", "threshold", "table")
"""The lists of a recipe, in its order."""


def step_targets(step: Mapping[str, Any]) -> list[str]:
    """Return the variables that a step of a recipe's table makes; empty where it names none."""
    target = step.get("target", [])
    return list(target) if isinstance(target, list) else [target]


@dataclass(frozen=True, slots=True)
class StepLine:
    """Step of a plan.

    place: its place
    method: name of its method
    table: its table
    """

    place: StepPlace
    method: str
    table: Mapping[str, Any]


@dataclass(frozen=True)
class PlanView:
    """Content of a plan's text.

    toml: the text
    lines: its steps, None where it cannot be read as a plan
    table: the whole plan
    problem: why it cannot be run, empty if it can
    problem_place: place of the problem
    warnings: remarks on limits that can hardly be meant, and on older spellings
    sha256: fingerprint of the recipe, which a run has too, empty for a text that is no recipe
    """

    toml: str
    lines: tuple[StepLine, ...] | None
    table: Mapping[str, Any]
    problem: str = ""
    problem_place: str = ""
    warnings: tuple[str, ...] = ()
    sha256: str = ""


def parse_plan(toml: str) -> PlanView:
    """Parse the text of a plan into its steps, with the problem that keeps it from being run."""
    try:
        table = read_toml(toml)
        found = list_step_places(table)
    except BadInput as error:
        return PlanView(toml, None, {}, str(error), error.place)
    lines = tuple(_step_line(place, table[place.section][place.index]) for place in found)
    try:
        recipe = Recipe.from_table(table)
    except BadInput as error:
        return PlanView(toml, lines, table, str(error), error.place)
    return PlanView(toml, lines, table, warnings=recipe.warnings, sha256=recipe.sha256)


def draft_to_change_run(workspace: Workspace, run_id: int) -> PlanDraft:
    """Return the plan from which a change of a run starts: its project's plan where that is the recipe of the run, with the
    user's own text, else the recipe of the run. Raises NotFound and BadInput.
    """
    run = find_run(workspace, run_id)
    draft = find_draft(workspace, run.project_id)
    same = draft is not None and draft.dataset_id == run.dataset_id
    if draft is not None and same and parse_plan(draft.toml).sha256 == run.recipe_sha256:
        return draft
    return draft_of_run(workspace, run_id)


def _step_line(place: StepPlace, step: Mapping[str, Any]) -> StepLine:
    method = "threshold" if place.section == "threshold" else str(step.get("method", ""))
    return StepLine(place, method, step)


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Place of a step in a plan: ``synthesis[1]``."""

    section: str
    index: int

    def __str__(self) -> str:
        return f"{self.section}[{self.index}]"


def list_step_places(table: Mapping[str, Any]) -> list[StepPlace]:
    """List the places of all steps of a plan in order. Raises BadInput where a section is not a list of tables."""
    found = []
    for section in STEP_LISTS:
        steps = table.get(section, [])
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise BadInput(section, f"must be tables, [[{section}]]")
        found += [StepPlace(section, index) for index in range(len(steps))]
    return found


def replace_variable(toml: str, name: str, variable: Mapping[str, Any]) -> str:
    """Return the plan's text with a new description of one variable. Raises BadInput when the text is not TOML."""
    plan = _parse_document(toml)
    plan.set_section("variables", {**plan.table.get("variables", {}), name: dict(variable)})
    return plan.to_text()


def replace_sections(toml: str, sections: Mapping[str, Any]) -> str:
    """Return the plan's text with these keys or tables in place of its own; None removes one."""
    plan = _parse_document(toml)
    for key, value in sections.items():
        if value is None:
            plan.remove_key(key)
        else:
            plan.set_section(key, value)
    return plan.to_text()


def replace_step(toml: str, place: StepPlace, step: Mapping[str, Any]) -> str:
    """Return the plan's text with a step in place of the one at ``place``, or added at the end of its section."""
    plan = _parse_document(toml)
    steps = list(plan.table.get(place.section, []))
    origins: list[int | None] = list(range(len(steps)))
    if place.index >= len(steps):
        origins.append(None)
    steps[place.index : place.index + 1] = [dict(step)]
    plan.set_steps(place.section, steps, origins)
    return plan.to_text()


def insert_first_step(toml: str, section: str, step: Mapping[str, Any]) -> str:
    """Return the plan's text with a step before all others of its section."""
    plan = _parse_document(toml)
    steps = list(plan.table.get(section, []))
    plan.set_steps(section, [dict(step), *steps], [None, *range(len(steps))])
    return plan.to_text()


def remove_step(toml: str, place: StepPlace) -> str:
    """Return the plan's text without the step at ``place``, and without its section where that was the last step.

    The rules of tables go with the last table.
    """
    plan = _parse_document(toml)
    steps = plan.table[place.section]
    origins = [index for index in range(len(steps)) if index != place.index]
    if origins:
        plan.set_steps(place.section, [steps[index] for index in origins], origins)
    else:
        plan.remove_key(place.section)
        if place.section == "table":
            plan.remove_key("tables")
    return plan.to_text()


def move_step(toml: str, place: StepPlace, by: int) -> str:
    """Return the plan's text with a step moved ``by`` places down its section; unchanged where there is no such place."""
    plan = _parse_document(toml)
    steps = plan.table[place.section]
    to = place.index + by
    if not 0 <= to < len(steps):
        return toml
    # ``origins`` tells the document which old block each step had, so that comments move with their step.
    origins = list(range(len(steps)))
    origins.insert(to, origins.pop(place.index))
    plan.set_steps(place.section, [steps[index] for index in origins], origins)
    return plan.to_text()


def _parse_document(toml: str) -> PlanDocument:
    """Parse the text of a plan as a document. Raises BadInput for any other text."""
    table = read_toml(toml)
    list_step_places(table)
    if not isinstance(table.get("variables", {}), dict):
        raise BadInput("variables", "must be a table, [variables]")
    return PlanDocument(toml)


def store_limits(workspace: Workspace, project_id: int, thresholds: Sequence[Threshold]) -> PlanDraft:
    """Store limits in a project's plan and return its draft.

    Raises NotFound, and BadInput when the plan cannot be read.
    """
    draft = find_draft(workspace, project_id)
    if draft is None:
        raise NotFound(f"project {project_id} has no plan")
    table = read_toml(draft.toml)
    tables = table.get("threshold", [])
    if not isinstance(tables, list) or not all(isinstance(one, Mapping) for one in tables):
        raise BadInput("threshold", "must be tables, [[threshold]]")
    return save_draft(workspace, draft.with_text(write_plan({**table, "threshold": merge_limits(tables, thresholds)})))


def merge_limits(tables: Sequence[Mapping[str, Any]], thresholds: Sequence[Threshold]) -> list[dict[str, Any]]:
    """Return a recipe's ``[[threshold]]`` tables with the limits of ``thresholds``.

    Those it does not have are added at the end.
    """
    kept = [dict(table) for table in tables]
    free = list(range(len(kept)))
    for threshold in thresholds:
        given = threshold.to_table()
        at = next((i for i in free if _is_same_limit(kept[i], given, threshold.bound)), None)
        if at is None:
            kept.append(given)
        else:
            # Each table takes one limit: two equal ones in the plan are two limits.
            free.remove(at)
            kept[at][threshold.bound] = threshold.limit
    return kept


def _is_same_limit(table: Mapping[str, Any], given: Mapping[str, Any], bound: str) -> bool:
    """Return whether two threshold tables bound the same number on the same side."""
    return bound in table and all(table.get(key) == given.get(key) for key in ("value", "target", "level", "params"))


def changed_lines(before: str, after: str) -> list[str]:
    """List the lines of a recipe that an edit removed and added: ``- minbucket = 50``, ``+ minbucket = 5``."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [f"{line[0]} {line[1:].strip()}" for line in list(compared)[2:] if line[0] in "+-" and line[1:].strip()]
