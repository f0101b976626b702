"""Command ``sfumato search``: find a plan that meets its limits and passes the gate, and show what it costs in utility."""

from __future__ import annotations

import sys
from functools import partial
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
    is_plain_requested,
    open_or_create,
    open_workspace,
    workspace_key,
    write_object,
)  # fmt: skip
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.searches import SearchOutcome
    from sfumato.workspace.store.workspace import Workspace


@click.command()
@click.argument("plan", metavar="[PLAN]", default="", shell_complete=completing.complete_recipes)
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
    shell_complete=completing.complete_runs,
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
        table, project, key = _plan_to_search(plan, data, directory, settings)
        workspace = open_or_create(directory, key)
        number: int | None = begin_search(workspace, table, project, looks=looks, minutes=minutes)
        if not quiet:
            echo(f"Search {number} begins; continue it at any time: sfumato search {number}", err=True)
    else:
        workspace, number = open_workspace(directory), int(plan) if plan else None
    if not _run_search(workspace, number, jobs, quiet=quiet):
        sys.exit(3)
    found = search_outcome(workspace, number)
    if json_file is not None:
        write_object(search_outcome_object(found), json_file)
    if not quiet and json_file != "-":
        echo(search_outcome_text(found))
    sys.exit(0 if found.winner is not None else 1)


def _plan_to_search(
    plan: str, data: str | None, directory: Path | None, settings: tuple[str, ...]
) -> tuple[dict[str, Any], str, bytes]:
    """Return the table of a recipe or a project's plan, the project's name, and the workspace's key. Raises BadInput."""
    from sfumato.engine.data.toml import read_toml
    from sfumato.engine.recipe.overrides import apply_settings
    from sfumato.workspace.plan.drafts import find_draft
    from sfumato.workspace.plan.recipe_files import read_recipe_files
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.store.runs import list_project_summaries

    key, chosen = workspace_key(directory, None), chosen_workspace(directory)
    names = {}
    if chosen.is_dir() and not Path(plan).exists():
        workspace = open_workspace(directory)
        names = {project.name: project.id for project in list_project_summaries(workspace)}
        if plan in names and (draft := find_draft(workspace, names[plan])) is not None:
            return _with_absolute_file(apply_settings(read_toml(draft.toml), settings), data, None), plan, key
    found = find_recipe(plan)
    table = read_recipe_files(apply_settings(found.table, settings), found.data_directory)
    return _with_absolute_file(table, data, found.data_directory), "", key


def _with_absolute_file(table: dict[str, Any], data: str | None, beside: Path | None) -> dict[str, Any]:
    """Return the recipe's table with the absolute path of its file. Raises BadInput."""
    named = data or str(table.get("data", {}).get("file", ""))
    if not named:
        raise BadInput("--data", "name the confidential file")
    # A search can be continued from any directory.
    path = Path(named).expanduser()
    if data is None and beside is not None and not path.is_absolute() and (beside / path).exists():
        path = beside / path
    return {**table, "data": {**table.get("data", {}), "file": str(path.resolve()) if path.exists() else named}}


def _run_search(workspace: Workspace, number: int | None, jobs: int, *, quiet: bool) -> bool:
    """Run a search to its end; return False where it was interrupted."""
    from sfumato.workspace.jobs.following import WorkerStarter
    from sfumato.workspace.service.searching import IDLE_BETWEEN, advance_search
    from sfumato.workspace.store.searches import find_search

    from .run import follow_runs

    worker_of = WorkerStarter(workspace.directory, jobs, IDLE_BETWEEN)
    report = None if quiet else _ProgressReport(workspace, find_search(workspace, number).id)
    while runs := advance_search(workspace, number):
        ended = follow_runs(workspace, runs, jobs, quiet=quiet, worker_of=worker_of, say=report)
        if report is not None:
            report.say_ended_looks()
        if any(run.state.value in ("interrupted", "cancelled") for run in ended):
            echo("The search is interrupted; continue it with: sfumato search", err=True)
            return False
    return True


class _ProgressReport:
    """Progress of a search on standard error: a line that is rewritten on a terminal, a line for each look elsewhere."""

    def __init__(self, workspace: Workspace, search_id: int) -> None:
        """Create the report; looks that have ended before are not reported again."""
        from sfumato.workspace.service.searching import search_progress
        from sfumato.workspace.store.searches import count_ended_looks

        from .run import RewrittenLine

        self._read = partial(search_progress, workspace, search_id)
        self._line = RewrittenLine() if sys.stderr.isatty() and not is_plain_requested() else None
        self._progress = self._read()
        self._count = partial(count_ended_looks, workspace, search_id)
        self._n_ended = self._count()

    def __call__(self, text: str) -> None:
        """Report the looks that have ended; with an empty text clear the line of a terminal."""
        if self._count() != self._n_ended:
            self.say_ended_looks()
        if self._line is not None:
            self._line(self._progress.text if text else "")

    def say_ended_looks(self) -> None:
        """Read how far the search is, and print a line for each look that has ended since, where lines are printed."""
        self._n_ended = self._count()
        self._progress = self._read(self._progress.ended)
        if self._line is None:
            for line in self._progress.new_look_lines:
                echo(f"{line[:1].upper()}{line[1:]}.", err=True)
            sys.stderr.flush()


def search_outcome_object(found: SearchOutcome) -> dict[str, Any]:
    """Return the outcome of a search as the object that ``--json`` writes."""
    from sfumato.engine.methods.labels import to_labelled_json
    from sfumato.workspace.policy.disclosure import INTERNAL

    return {
        "disclosure": INTERNAL,
        "search": found.search_id,
        "objective": found.objective,
        "looked_at": found.n_tried,
        "refused": found.n_failed,
        "winner": None if found.winner is None else found.winner.run_id,
        "unchanged": None if found.unchanged_finalist is None else found.unchanged_finalist.run_id,
        "gains": [
            {"value": one.key, "before": one.before, "after": one.after, "vote": one.vote} for one in found.gains
        ],
        "finalists": [
            {
                "run": one.run_id,
                "plan": one.label,
                "passes": one.is_passing,
                "blocks": list(one.blocking_findings),
                "searched": one.search_utility,
                "fresh": one.full_utility,
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
                "missed_by_all": one.n_missed == one.n_plans,
                "missed_by": one.n_missed,
                "plans": one.n_plans,
            }
            for one in found.blocking_limits()
            for verdict in (one.best_verdict,)
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
            for one in found.possible_relaxations()
        ],
        "minutes": found.minutes,
        "not_begun": found.not_begun,
        "not_judged": found.not_judged,
    }


def search_outcome_text(found: SearchOutcome) -> str:
    """Return the outcome of a search in words: the finalists, and which one may leave or which limits are missed."""
    from sfumato.workspace.reporting.searches import conclusion_lines, finalists_table, search_headline

    from .options import table_text

    lines = [f"{search_headline(found)}."]
    if found.finalists:
        lines += ["", table_text(finalists_table(found)), ""]
    lines += conclusion_lines(found)
    if found.winner is not None:
        number = found.winner.run_id
        lines.append(f"Next: sfumato search --take {number}, then sfumato release {number}")
    return "\n".join(lines)
