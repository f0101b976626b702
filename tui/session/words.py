"""States of runs and tasks, in words."""

from __future__ import annotations

from sfumato.engine.wording import count_noun
from sfumato.workspace.reporting import words
from sfumato.workspace.reporting.words import duration_text, sign_for
from sfumato.workspace.store.runs import RunState, RunSummary, StoredRun, TaskRow, VerdictCounts


def task_cells(task: TaskRow, now: float) -> list[str]:
    """Return a task's key, state, phase, time, peak of memory, number of attempts, and error."""
    measured = (task_phase(task), task_seconds(task, now), task_peak(task))
    return [task.key, task.state, *measured, str(task.attempt), task.error]


def task_phase(task: TaskRow) -> str:
    """Return the progress within a running task: ``3/8 imputing``."""
    return f"{task.done}/{task.total} {task.what}" if task.state == "running" and task.total else "-"


def task_peak(task: TaskRow) -> str:
    """Return the task's peak memory."""
    return f"{task.peak_bytes / 1e6:.0f} MB" if task.peak_bytes else "-"


def task_seconds(task: TaskRow, now: float) -> str:
    """Return the time that a task took, or has taken at ``now``."""
    seconds = now - task.started if task.state == "running" and task.started else task.seconds
    return f"{seconds:.2f} s" if seconds is not None and seconds < 10 else duration_text(seconds)


def run_state_text(line: RunSummary) -> str:
    """Return the state of a run with its sign: ``● running``.

    ``! no worker`` for a run that cannot continue without one.
    """
    return (
        f"{sign_for('stalled')} no worker"
        if line.is_stalled
        else f"{sign_for(line.run.state.value)} {line.run.state.value}"
    )


def listed_state_text(line: RunSummary) -> str:
    """Return the state of a run for a list: as ``run_state_text``, but without a sign for a run that is done."""
    # A green tick in a list would read as an answer, which only the gate gives.
    return line.run.state.value if line.run.state is RunState.DONE else run_state_text(line)


def tally_text(tally: VerdictCounts) -> str:
    """Return how many limits of a run are met: ``7 limits met``, ``✗ 2 of 7 not met``; empty without verdicts."""
    # No tick where all are met: only the gate says that a release may leave.
    if tally.total and tally.met == tally.total:
        return f"{count_noun(tally.total, 'limit')} met"
    return words.outcome_tally_text(tally.by_outcome)


def tasks_done_text(run: StoredRun) -> str:
    """Return the number and share of finished tasks: ``34/120 28 %``."""
    share = run.tasks_done * 100 // run.tasks_total if run.tasks_total else 0
    return f"{run.tasks_done}/{run.tasks_total} {share:>3} %"


def task_rate_text(run: StoredRun) -> str:
    """Return the rate at which tasks of a run are done: ``2.4/s``, ``7/min``; empty when the run is not running."""
    if run.state is not RunState.RUNNING or not run.seconds or not run.tasks_done:
        return ""
    each = run.tasks_done / run.seconds
    unit, factor = next(((u, f) for u, f in (("s", 1), ("min", 60)) if each * f >= 1), ("h", 3600))
    return f"{each * factor:.2g}/{unit}" if each * factor < 10 else f"{each * factor:,.0f}/{unit}"


def time_left_text(run: StoredRun) -> str:
    """Return the estimated time left: ``~3 min``; empty when the run is not running, a dash before there is an estimate."""
    if run.state is not RunState.RUNNING:
        return ""
    return "–" if run.seconds_left is None else f"~{duration_text(run.seconds_left)}"
