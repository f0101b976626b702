"""What the commands that look after a workspace print: runs, tasks, acts, and what the doctor finds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from sfumato.workspace.audit import audit_rows
from sfumato.workspace.reporting.tables import table
from sfumato.workspace.reporting.words import ASCII_MARKS, PUBLIC_KEY, details_text, duration, tally_text
from sfumato.workspace.store.run_log import run_log
from sfumato.workspace.store.runs import Run, TaskRow, list_runs, run_line, tasks_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.maintenance import WorkspaceCheck
from sfumato.workspace.visible_text import replace_unprintable

from ..session.words import task_cells
from .options import printed

SIGNS = {"ok": "+ ok", "note": "- note", "problem": "x problem"}


def runs_object(workspace: Workspace) -> dict[str, object]:
    """The runs of a workspace, newest first, as JSON."""
    return {"disclosure": "internal", "runs": [_run_object(workspace, run) for run in list_runs(workspace)]}


def run_object(workspace: Workspace, run: Run) -> dict[str, object]:
    """A run and its tasks as JSON."""
    tasks = [asdict(task) for task in tasks_of(workspace, run.id)]
    return {"disclosure": "internal", "run": _run_object(workspace, run), "tasks": tasks}


def _run_object(workspace: Workspace, run: Run) -> dict[str, object]:
    line = run_line(workspace, run.id)
    named = ("id", "title", "name", "note", "seed", "tasks_done", "tasks_total", "seconds", "seconds_left", "error")
    return {
        **{name: getattr(run, name) for name in named},
        "state": run.state.value,
        "recipe_sha256": run.recipe_sha256,
        "key_public": run.key_public,
        "attended": line.attended,
        "verdicts": dict(line.tally.counts),
    }


def run_list(workspace: Workspace) -> str:
    """The runs of a workspace, one a line, newest first; empty without any."""
    runs = list_runs(workspace)
    lines = [
        [
            str(run.id),
            run.titled,
            run.state.value,
            f"{run.tasks_done}/{run.tasks_total}",
            duration(run.seconds),
            "" if run.seconds_left is None else f"~{duration(run.seconds_left)}",
            _remark(workspace, run),
            "; ".join(filter(None, [key_text(run), run.error])),
        ]
        for run in runs
    ]
    titles = ("run", "title", "state", "tasks", "time", "left", "verdicts", "")
    return printed(table(titles, lines, right=(0, 3, 4, 5), spare=(7, 3, 5))) if runs else ""


def _remark(workspace: Workspace, run: Run) -> str:
    """``+ 7 met``, ``x 2 of 7 not met``; nothing before the run is done, but that nobody works on it."""
    line = run_line(workspace, run.id)
    if line.stalled:
        return f"nobody works on it; sfumato resume {run.id}"
    return tally_text(line.tally.counts, ASCII_MARKS.__getitem__)


def key_text(run: Run) -> str:
    """``public key`` of a run that has one; empty for others."""
    return PUBLIC_KEY if run.key_public else ""


def named_text(run: Run) -> str:
    """``"reference", `` of a run that has a name; empty for others."""
    return f'"{replace_unprintable(run.name)}", ' if run.name else ""


def run_head(workspace: Workspace, run: Run) -> str:
    """``run 3, Visits: running, 12 of 30 tasks, 40 s, about 2 min left``, and where its log lies."""
    left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} left"
    named = f"{named_text(run)}{replace_unprintable(run.title)}"
    state = f"run {run.id}, {named}: {run.state}, {run.tasks_done} of {run.tasks_total} tasks, {duration(run.seconds)}"
    lines = [f"{state}{left}"]
    if run.note:
        lines.append(f"note: {replace_unprintable(run.note)}")
    if run.key_public:
        lines.append(PUBLIC_KEY)
    if run.error:
        lines.append(replace_unprintable(run.error))
    log = run_log(workspace.directory, run.id)
    return "\n".join([*lines, *([f"log: {log}"] if log.is_file() else [])])


def task_table(tasks: Sequence[TaskRow]) -> str:
    lines = [task_cells(task, time.time()) for task in tasks]
    return printed(
        table(("task", "state", "phase", "time", "peak", "tried", ""), lines, right=(3, 4, 5), spare=(5, 4, 2))
    )


def act_table(workspace: Workspace) -> str:
    """Every act, oldest first; hashes by their first digits."""
    lines = [
        [str(row.number), row.time[:19].replace("T", " "), row.act, row.subject, details_text(row.details)]
        for row in audit_rows(workspace.connection)
    ]
    return printed(table(("", "time (UTC)", "act", "of", "details"), lines, right=(0,)))


def checks_text(findings: Sequence[WorkspaceCheck]) -> str:
    return printed(table(("", "what", "finding"), [[SIGNS[f.state], f.what, f.text] for f in findings]))
