"""How a run stands, in words."""

from __future__ import annotations

from sfumato.workspace.reporting.words import duration, thresholds_text
from sfumato.workspace.store.runs import Run, RunLine, RunState
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import verdicts_of


def run_text(run: Run) -> str:
    """``3, Visits``: the number of a run, and what it is called."""
    return f"{run.id}, {run.titled}"


def state_text(workspace: Workspace, line: RunLine) -> str:
    """``done after 34 s: all 3 thresholds are met``; ``running, 12 of 30 steps done``."""
    run = line.run
    if run.state is RunState.DONE:
        verdicts = verdicts_of(workspace, run.id)
        judged = f": {thresholds_text(verdicts)}" if verdicts else "; its recipe sets no threshold"
        return f"done after {duration(run.seconds)}{judged}"
    if run.state is RunState.FAILED:
        return f"failed: {run.error}"
    far = f"{run.tasks_done} of {run.tasks_total} steps done"
    if line.stalled:
        return f"without a worker, {far}; Resume continues it"
    left = "" if run.seconds_left is None else f", about {duration(run.seconds_left)} left"
    return f"{run.state}, {far}{left}"
