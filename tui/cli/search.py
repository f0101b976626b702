"""``sfumato search``: finds a plan that meets its limits and that the gate does not block, and says what it gave up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.engine.errors import BadInput

from . import completion as completing
from .options import (
    JOBS,
    JSON,
    QUIET,
    SET,
    WORKSPACE,
    check_writable,
    chosen_workspace,
    open_or_create,
    open_workspace,
    workspace_key,
    write_object,
)  # fmt: skip
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.searches import Outcome
    from sfumato.workspace.store.workspace import Workspace


@click.command()
@click.argument("plan", metavar="[PLAN]", default="", shell_complete=completing.recipes)
@click.option("--data", metavar="FILE", help="The confidential file, in place of the recipe's.")
@WORKSPACE
@click.option("--looks", type=click.IntRange(10, 400), help="How many plans to look at (default: 40).")
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), help="Minutes that it may take (default: no limit)."
)
@JOBS
@SET
@click.option(
    "--take",
    metavar="RUN",
    shell_complete=completing.runs,
    help="Make the plan of this finalist the plan of its project.",
)
@JSON
@QUIET
def search(
    plan: str,
    data: str | None,
    directory: Path | None,
    looks: int | None,
    minutes: float | None,
    jobs: int,
    settings: tuple[str, ...],
    take: str | None,
    json_file: str | None,
    *,
    quiet: bool,
) -> None:
    """Find a plan that meets its limits and passes the gate.

    PLAN is a recipe, a project of the workspace, or the number of a search to continue (default: the newest).

    Plans are tried on a sample. The best five are judged on all records, against records that no trial has read. The exit status is 0 where one of
    them may leave, 1 where none may, 3 when it was interrupted; the same number continues it.
    """
    from sfumato.workspace.service.searching import adopt_plan, begin_search, search_outcome
    from sfumato.workspace.store.runs import find_run

    check_writable(json_file)
    if take is not None:
        workspace = open_workspace(directory)
        run = find_run(workspace, take)
        adopt_plan(workspace, run.id)
        echo(f"The plan of run {run.id} is the plan of its project now; next: sfumato examine {run.id}")
        return
    if plan and not plan.isdecimal():
        table, project, key = _planned(plan, data, directory, settings)
        workspace = open_or_create(directory, key)
        number: int | None = begin_search(workspace, table, project, looks=looks, minutes=minutes)
        if not quiet:
            echo(f"Search {number} begins; continue it at any time: sfumato search {number}", err=True)
    else:
        workspace, number = open_workspace(directory), int(plan) if plan else None
    if not _carried_out(workspace, number, jobs, quiet=quiet):
        sys.exit(3)
    found = search_outcome(workspace, number)
    if json_file is not None:
        write_object(outcome_object(found), json_file)
    if not quiet and json_file != "-":
        echo(outcome_text(found))
    sys.exit(0 if found.winner is not None else 1)


def _planned(
    plan: str, data: str | None, directory: Path | None, settings: tuple[str, ...]
) -> tuple[dict[str, Any], str, bytes]:
    """The recipe's table, the project it belongs to, and the key of the workspace. Raises BadInput."""
    from sfumato.engine.data.toml import read_toml
    from sfumato.engine.recipe.overrides import apply_settings
    from sfumato.workspace.plan.drafts import draft_of
    from sfumato.workspace.plan.recipe_files import with_files
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.store.runs import projects

    key, chosen = workspace_key(directory, None), chosen_workspace(directory)
    names = {}
    if chosen.is_dir() and not Path(plan).exists():
        workspace = open_workspace(directory)
        names = {project.name: project.id for project in projects(workspace)}
        if plan in names and (draft := draft_of(workspace, names[plan])) is not None:
            return _with_file(apply_settings(read_toml(draft.toml), settings), data, None), plan, key
    found = find_recipe(plan)
    table = with_files(apply_settings(found.table, settings), found.beside)
    return _with_file(table, data, found.beside), "", key


def _with_file(table: dict[str, Any], data: str | None, beside: Path | None) -> dict[str, Any]:
    """The table with the whole path of its file, so that a search can go on from anywhere. Raises BadInput."""
    named = data or str(table.get("data", {}).get("file", ""))
    if not named:
        raise BadInput("--data", "name the confidential file")
    path = Path(named).expanduser()
    if data is None and beside is not None and not path.is_absolute() and (beside / path).exists():
        path = beside / path
    return {**table, "data": {**table.get("data", {}), "file": str(path.resolve()) if path.exists() else named}}


def _carried_out(workspace: Workspace, number: int | None, jobs: int, *, quiet: bool) -> bool:
    """Carry a search out to its end; whether it got there."""
    from sfumato.workspace.jobs.following import OneWorker
    from sfumato.workspace.service.searching import IDLE_BETWEEN, advance_search

    from .run import follow_all

    worker_of = OneWorker(workspace.directory, jobs, IDLE_BETWEEN)
    while runs := advance_search(workspace, number):
        ended = follow_all(workspace, runs, jobs, quiet=quiet, worker_of=worker_of)
        if any(run.state.value in ("interrupted", "cancelled") for run in ended):
            echo("The search is interrupted; continue it with: sfumato search", err=True)
            return False
    return True


def outcome_object(found: Outcome) -> dict[str, Any]:
    """The object that ``--json`` writes."""
    from sfumato.engine.methods.labels import to_labelled_json
    from sfumato.workspace.policy.disclosure import INTERNAL

    return {
        "disclosure": INTERNAL,
        "search": found.search_id,
        "objective": found.objective,
        "looked_at": found.looked_at,
        "refused": found.refused,
        "winner": None if found.winner is None else found.winner.run_id,
        "unchanged": None if found.start is None else found.start.run_id,
        "gains": [
            {"value": one.key, "before": one.before, "after": one.after, "vote": one.vote} for one in found.gains
        ],
        "finalists": [
            {
                "run": one.run_id,
                "plan": one.label,
                "passes": one.passes,
                "blocks": list(one.blocks),
                "searched": one.searched,
                "fresh": one.fresh,
                "verdicts": [to_labelled_json(verdict) for verdict in one.verdicts],
            }
            for one in found.finalists
        ],
        "in_the_way": [
            {
                "value": verdict.value,
                "target": verdict.target,
                "limit": verdict.limit,
                "nearest": verdict.observed,
                "missed_by_all": one.missed == one.plans,
                "missed_by": one.missed,
                "plans": one.plans,
            }
            for one in found.in_the_way()
            for verdict in (one.best,)
        ],
        "relaxations": [
            {
                "run": one.finalist.run_id,
                "limits": [
                    {
                        "value": verdict.value,
                        "target": verdict.target,
                        "bound": verdict.bound,
                        "limit": verdict.limit,
                        "needed": limit,
                    }
                    for verdict, limit in one.limits
                ],
            }
            for one in found.relaxations()
        ],
        "minutes": found.minutes,
        "not_begun": found.not_begun,
        "not_judged": found.not_judged,
    }


def outcome_text(found: Outcome) -> str:
    """What a search found, for who has to decide: the finalists, which one may leave, or what stands in the way."""
    from sfumato.workspace.reporting.searches import conclusion, finalists_table, headline

    from .options import printed

    lines = [f"{headline(found)}."]
    if found.finalists:
        lines += ["", printed(finalists_table(found)), ""]
    lines += conclusion(found)
    if found.winner is not None:
        number = found.winner.run_id
        lines.append(f"Next: sfumato search --take {number}, then sfumato release {number}")
    return "\n".join(lines)
