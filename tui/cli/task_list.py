"""A run's tasks in plain text: state, how far, seconds, memory; and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.workspace.jobs.run_log import run_log

from ..console import duration, table

if TYPE_CHECKING:
    from sfumato.workspace.jobs.runs import Run, TaskRow
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["run_head", "task_table"]


def run_head(workspace: Workspace, run: Run) -> str:
    """``run 3, Visits: running, 12 of 30 tasks, 40 s, about 2 min left``, and where its log lies."""
    left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} left"
    state = (
        f"run {run.id}, {run.title}: {run.state}, {run.tasks_done} of {run.tasks_total} tasks, {duration(run.seconds)}"
    )
    lines = [f"{state}{left}"]
    if run.error:
        lines.append(run.error)
    log = run_log(workspace.directory, run.id)
    return "\n".join([*lines, *([f"log: {log}"] if log.is_file() else [])])


def task_table(tasks: Sequence[TaskRow]) -> str:
    """One task a line."""
    now = time.time()
    lines = [
        [
            task.key,
            task.state,
            f"{task.done}/{task.total} {task.what}" if task.state == "running" and task.total else "",
            _seconds(now - task.started if task.state == "running" and task.started else task.seconds),
            f"{task.peak_bytes / 1e6:.0f} MB" if task.peak_bytes else "-",
            str(task.attempt),
            task.error,
        ]
        for task in tasks
    ]
    return table(("task", "state", "phase", "time", "peak", "tried", ""), lines, right=(3, 4, 5))


def _seconds(seconds: float | None) -> str:
    return f"{seconds:.2f} s" if seconds is not None and seconds < 10 else duration(seconds)
