"""How runs stand, in words."""

from __future__ import annotations

from sfumato.engine.wording import count_noun
from sfumato.workspace.reporting import words
from sfumato.workspace.reporting.words import duration, mark
from sfumato.workspace.store.runs import Run, RunLine, RunState, Tally, TaskRow


def task_cells(task: TaskRow, now: float) -> list[str]:
    """A task's key, state, phase, time, peak of memory, how often it was tried, and its error."""
    measured = (task_phase(task), task_seconds(task, now), task_peak(task))
    return [task.key, task.state, *measured, str(task.attempt), task.error]


def task_phase(task: TaskRow) -> str:
    """``3/8 imputing`` while it is computed."""
    return f"{task.done}/{task.total} {task.what}" if task.state == "running" and task.total else "-"


def task_peak(task: TaskRow) -> str:
    """The most memory that it had."""
    return f"{task.peak_bytes / 1e6:.0f} MB" if task.peak_bytes else "-"


def task_seconds(task: TaskRow, now: float) -> str:
    """How long it took, or has taken at the time ``now``."""
    seconds = now - task.started if task.state == "running" and task.started else task.seconds
    return f"{seconds:.2f} s" if seconds is not None and seconds < 10 else duration(seconds)


def state_text(line: RunLine) -> str:
    """``● running``; a run that ought to go on and that nobody works on is ``! no worker``."""
    return f"{mark('stalled')} no worker" if line.stalled else f"{mark(line.run.state.value)} {line.run.state.value}"


def tally_text(tally: Tally) -> str:
    """Return how many limits are met: ``7 limits met``, ``✗ 2 of 7 not met``; empty without verdicts.

    No tick where all are met: only the gate says that a release may leave.
    """
    if tally.total and tally.met == tally.total:
        return f"{count_noun(tally.total, 'limit')} met"
    return words.tally_text(tally.counts)


def progress(run: Run) -> str:
    """``34/120 28 %``."""
    share = run.tasks_done * 100 // run.tasks_total if run.tasks_total else 0
    return f"{run.tasks_done}/{run.tasks_total} {share:>3} %"


def rate(run: Run) -> str:
    """``2.4/s``, ``7/min``: tasks done in the time that the run has taken so far; empty when it does not go on."""
    if run.state is not RunState.RUNNING or not run.seconds or not run.tasks_done:
        return ""
    each = run.tasks_done / run.seconds
    unit, factor = next(((u, f) for u, f in (("s", 1), ("min", 60)) if each * f >= 1), ("h", 3600))
    return f"{each * factor:.2g}/{unit}" if each * factor < 10 else f"{each * factor:,.0f}/{unit}"


def seconds_left(run: Run) -> str:
    """``~3 min``; empty when the run does not go on, a dash before anything can be said."""
    if run.state is not RunState.RUNNING:
        return ""
    return "–" if run.seconds_left is None else f"~{duration(run.seconds_left)}"
