"""Waiting for runs to end, and their progress in words."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sfumato.workspace.jobs.following import WorkerStarter, wait_for_runs
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.reporting.words import duration_text
from sfumato.workspace.store.runs import RunState, StoredRun, list_tasks
from sfumato.workspace.store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe

PROGRESS_SECONDS = 5.0


def wait_for(
    workspace: Workspace,
    run_ids: Sequence[int],
    jobs: int,
    say: Callable[[str], None],
    worker_of: WorkerStarter | None = None,
) -> list[StoredRun]:
    """Start one worker, by default a new one, and wait for every run to end.

    ``say`` is called with the progress, and with an empty text at the end. Ctrl+C and SIGTERM interrupt the runs, which
    can be resumed, and raise KeyboardInterrupt. When the terminal is lost (SIGHUP) this process ends and the runs
    continue. A worker that dies is replaced. Raises WorkspaceError when three in a row die without ending a task, or
    the disk fails.
    """
    try:
        with _treat_sigterm_as_interrupt():
            return wait_for_runs(workspace, run_ids, jobs, lambda run: say(_progress_text(workspace, run)), worker_of)
    except KeyboardInterrupt:
        for run_id in run_ids:
            stop_run(workspace, run_id, RunState.INTERRUPTED)
        raise
    finally:
        say("")


@contextmanager
def _treat_sigterm_as_interrupt() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt as Ctrl+C does."""
    # Python sets signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress_text(workspace: Workspace, run: StoredRun) -> str:
    """Return the progress of a run on one line."""
    now = next((task for task in list_tasks(workspace, run.id) if task.state == "running"), None)
    doing = "waiting for a worker" if now is None else task_words(now.key, run.recipe)
    if now is not None and now.total:
        doing += f", {now.done:,} of {now.total:,} {now.what}".rstrip()
    left = f", about {duration_text(run.seconds_left)} left" if run.seconds_left is not None else ""
    return f"run {run.id}: {run.tasks_done} of {run.tasks_total} steps done{left}; {doing}"


def task_words(key: str, recipe: Recipe) -> str:
    """Return a task in words, such as ``fitting the model of visits``; its key where the recipe has no such step."""
    kind, *rest = key.split("/")
    try:
        if kind == "fit":
            return f"fitting the model of {recipe.synthesis[int(rest[0])].target}"
        if kind == "draw":
            return "anonymising the records" if recipe.anonymisation else f"drawing dataset {int(rest[0])}"
        if kind == "measure":
            of = "the confidential data" if rest[1] == "confidential" else f"dataset {rest[1]}"
            whole = rest[1] in ("block", "whole")
            return f"measuring {recipe.measures[int(rest[0])].method.title}, {'all datasets' if whole else of}"
        if kind == "study":
            first, _, last = rest[1].partition("-")
            points = f"point {int(first) + 1}" if not last else f"points {int(first) + 1} to {int(last) + 1}"
            return f"studying {recipe.studies[int(rest[0])].method.title}, {points}"
    except (IndexError, ValueError):
        return key
    return "combining the results" if kind == "combine" else key


class ProgressLines:
    """Printer of a run's progress, at most one line in five seconds."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._last, self._next = "", -float("inf")

    def __call__(self, text: str) -> None:
        """Print a text of the run's progress; ignore an empty one."""
        if text and text != self._last and self._clock() >= self._next:
            self._say(f"{text[:1].upper()}{text[1:]}.")
            self._last, self._next = text, self._clock() + PROGRESS_SECONDS
