"""State of a run, in words."""

from __future__ import annotations

from sfumato.workspace.reporting.words import duration_text, thresholds_text
from sfumato.workspace.store.runs import RunState, RunSummary, StoredRun
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts


def run_text(run: StoredRun) -> str:
    """Return the number and title of a run: ``3, Visits``."""
    return f"{run.id}, {run.full_title}"


def run_outcome_text(workspace: Workspace, line: RunSummary) -> str:
    """Return the state of a run with its outcome.

    Such as ``done after 34 s: all 3 thresholds are met`` or ``running, 12 of 30 steps done``.
    """
    run = line.run
    if run.state is RunState.DONE:
        verdicts = read_verdicts(workspace, run.id)
        judged = f": {thresholds_text(verdicts)}" if verdicts else "; its recipe sets no threshold"
        return f"done after {duration_text(run.seconds)}{judged}"
    if run.state is RunState.FAILED:
        return f"failed: {run.error}"
    far = f"{run.tasks_done} of {run.tasks_total} steps done"
    if line.is_stalled:
        return f"without a worker, {far}; Resume continues it"
    left = "" if run.seconds_left is None else f", about {duration_text(run.seconds_left)} left"
    return f"{run.state}, {far}{left}"
