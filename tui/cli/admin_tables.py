"""Output of the commands for upkeep: runs, tasks, acts, and the doctor's findings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from sfumato.engine.wording import count_noun
from sfumato.workspace.audit import audit_rows
from sfumato.workspace.reporting.tables import table_from_titles
from sfumato.workspace.reporting.words import ASCII_MARKS, PUBLIC_KEY, details_text, duration_text, outcome_tally_text
from sfumato.workspace.store.run_log import run_log_path
from sfumato.workspace.store.runs import StoredRun, TaskRow, count_trials, list_runs, list_tasks, summarise_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.maintenance import WorkspaceCheck
from sfumato.workspace.visible_text import replace_unprintable

from ..session.words import task_cells
from .options import table_text

ASCII_SIGNS = {"ok": "+ ok", "note": "- note", "problem": "x problem"}


def runs_object(workspace: Workspace) -> dict[str, object]:
    """Return the runs of a workspace, newest first, as a JSON object."""
    return {"disclosure": "internal", "runs": [_run_object(workspace, run) for run in list_runs(workspace)]}


def run_object(workspace: Workspace, run: StoredRun) -> dict[str, object]:
    """Return a run and its tasks as a JSON object."""
    tasks = [asdict(task) for task in list_tasks(workspace, run.id)]
    return {"disclosure": "internal", "run": _run_object(workspace, run), "tasks": tasks}


def _run_object(workspace: Workspace, run: StoredRun) -> dict[str, object]:
    """Return a run as a JSON object."""
    line = summarise_run(workspace, run.id)
    named = (
        "id",
        "search_id",
        "title",
        "name",
        "note",
        "seed",
        "tasks_done",
        "tasks_total",
        "seconds",
        "seconds_left",
        "error",
    )
    return {
        **{name: getattr(run, name) for name in named},
        "state": run.state.value,
        "recipe_sha256": run.recipe_sha256,
        "key_public": run.key_public,
        "attended": line.is_attended,
        "verdicts": dict(line.verdicts.by_outcome),
    }


def run_list_text(workspace: Workspace, *, trials: bool = False) -> str:
    """Return the runs of a workspace as a table, newest first; empty without any.

    trials: whether trials of a search have rows of their own, instead of one row a search
    """
    runs = list_runs(workspace)
    counts = {} if trials else count_trials(runs)
    lines = [
        [
            str(run.id),
            run.full_title,
            run.state.value,
            f"{run.tasks_done}/{run.tasks_total}",
            duration_text(run.seconds),
            "" if run.seconds_left is None else f"~{duration_text(run.seconds_left)}",
            _run_remark(workspace, run),
            "; ".join(filter(None, [public_key_text(run), run.error])),
        ]
        for run in runs
        if trials or run.search_id is None
    ]
    lines += [
        ["", f"search {search}: {count_noun(count, 'trial')}", f"{done} done", "", "", "", "", "sfumato runs --trials"]
        for search, (count, done) in counts.items()
    ]
    titles = ("run", "title", "state", "tasks", "time", "left", "verdicts", "")
    return table_text(table_from_titles(titles, lines, right=(0, 3, 4, 5), spare=(7, 3, 5))) if runs else ""


def _run_remark(workspace: Workspace, run: StoredRun) -> str:
    """Return the outcome of a run's limits, ``+ 7 met`` or ``x 2 of 7 not met``, or that it has no worker."""
    line = summarise_run(workspace, run.id)
    if line.is_stalled:
        return f"no worker; sfumato resume {run.id}"
    return outcome_tally_text(line.verdicts.by_outcome, ASCII_MARKS.__getitem__)


def public_key_text(run: StoredRun) -> str:
    """Return ``public key`` for a run that has one; empty for others."""
    return PUBLIC_KEY if run.key_public else ""


def run_name_text(run: StoredRun) -> str:
    """Return the quoted name of a run and a comma, ``"reference", ``; empty for a run without a name."""
    return f'"{replace_unprintable(run.name)}", ' if run.name else ""


def run_head(workspace: Workspace, run: StoredRun) -> str:
    """Return the state of a run in words, with its note and the path of its log.

    The first line reads ``run 3, Visits: running, 12 of 30 tasks, 40 s, about 2 min left``.
    """
    left = "" if run.seconds_left is None else f", about {duration_text(run.seconds_left)} left"
    named = f"{run_name_text(run)}{replace_unprintable(run.title)}"
    state = (
        f"run {run.id}, {named}: {run.state}, {run.tasks_done} of {run.tasks_total} tasks, {duration_text(run.seconds)}"
    )
    lines = [f"{state}{left}"]
    if run.note:
        lines.append(f"note: {replace_unprintable(run.note)}")
    if run.key_public:
        lines.append(PUBLIC_KEY)
    if run.error:
        lines.append(replace_unprintable(run.error))
    log = run_log_path(workspace.directory, run.id)
    return "\n".join([*lines, *([f"log: {log}"] if log.is_file() else [])])


def task_table(tasks: Sequence[TaskRow]) -> str:
    """Return the tasks of a run as a table."""
    lines = [task_cells(task, time.time()) for task in tasks]
    return table_text(
        table_from_titles(
            ("task", "state", "phase", "time", "peak", "tried", ""), lines, right=(3, 4, 5), spare=(5, 4, 2)
        )
    )


def act_table(workspace: Workspace) -> str:
    """Return every act of the audit log as a table, oldest first; hashes by their first digits."""
    lines = [
        [str(row.number), row.time[:19].replace("T", " "), row.act, row.subject, details_text(row.details)]
        for row in audit_rows(workspace.connection)
    ]
    return table_text(table_from_titles(("", "time (UTC)", "act", "of", "details"), lines, right=(0,)))


def checks_text(findings: Sequence[WorkspaceCheck]) -> str:
    """Return the results of the doctor's checks as a table."""
    return table_text(
        table_from_titles(("", "what", "finding"), [[ASCII_SIGNS[f.state], f.what, f.text] for f in findings])
    )
