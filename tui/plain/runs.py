"""Runs: start one and follow it, list, open, resume, delete."""

from __future__ import annotations

from sfumato.engine.errors import EngineError
from sfumato.engine.wording import count_noun
from sfumato.workspace.reporting.words import duration, thresholds_text
from sfumato.workspace.store.runs import Run, RunState, find_run, run_lines
from sfumato.workspace.views.results import verdicts_of

from .run_words import run_text
from .session import Entry, Menu, Session
from .talk import NotPossible


def list_runs(session: Session) -> None:
    """Every run of the open project in a line."""
    project = session.project()
    session.talk.say(f"Project {project.name}: {count_noun(project.runs, 'run')}.")
    session.list_runs()


def start(session: Session) -> None:
    """Run the plan of the open project, after its cost and a question."""
    from sfumato.workspace.plan.edits import plan_view
    from sfumato.workspace.service.prepare import enter_plan_run

    from .plan import cost_lines, problem_of

    project, draft = session.project(), session.draft()
    view = plan_view(draft.toml)
    if problem := problem_of(view):
        raise NotPossible(f"the plan of project {project.name} cannot be run yet: {problem}.")
    session.talk.say_all([f"Warning: {one}." for one in view.threshold_warnings])
    session.talk.say_all(cost_lines(session, draft))
    if not session.talk.confirm(f"Run the plan of project {project.name}?", default=True):
        return
    session.open_run(find_run(session.workspace, enter_plan_run(session.workspace, draft)))
    carry_on(session)


def carry_on(session: Session) -> None:
    """Follow the open run to its end, and say how it ended. Raises EngineError where it failed, KeyboardInterrupt after Ctrl-C."""
    from ..session.run_progress import Progress, wait_for

    assert session.run_id is not None
    run_id = session.run_id
    session.talk.say(f"Run {run_id} has started. Ctrl-C interrupts it; Resume continues it later.")
    try:
        run = wait_for(session.workspace, [run_id], session.jobs, Progress(session.talk.say))[0]
    except KeyboardInterrupt:
        session.talk.say(f"Run {run_id} is interrupted; its finished steps are kept, and Resume continues it.")
        raise
    _end(session, run)


def _end(session: Session, run: Run) -> None:
    if run.state is RunState.FAILED:
        raise EngineError(f"run {run.id} failed: {run.error}")
    if run.state is not RunState.DONE:
        raise NotPossible(f"run {run.id} is {run.state}; Resume continues it.")
    verdicts = verdicts_of(session.workspace, run.id)
    judged = thresholds_text(verdicts) if verdicts else "its recipe sets no threshold"
    session.talk.say(f"Run {run.id} is done after {duration(run.seconds)}: {judged}. Findings has the verdicts.")


def open_run(session: Session) -> None:
    """Make a run the one that Findings and Release speak of."""
    run = session.ask_run("Which run?")
    session.open_run(run)
    session.talk.say(f"Run {run.id} is open.")


def resume(session: Session) -> None:
    """Continue a run that was interrupted, cancelled or failed, or that nobody works on."""
    from sfumato.workspace.jobs.queue import resume as queue_again

    run = session.ask_run("Which run continues?")
    if run.state is RunState.DONE:
        raise NotPossible(f"run {run.id} is done already.")
    queue_again(session.workspace, run.id)
    session.open_run(run)
    carry_on(session)


def delete(session: Session) -> None:
    """Delete a run, after a question."""
    from sfumato.workspace.service.deletion import delete_run, pending_removal_text

    run = session.ask_run("Delete which run?")
    session.talk.say(
        f"Deleting removes run {run_text(run)} with its datasets and results for good. The audit log keeps that there was such a run."
    )
    if not session.talk.confirm(f"Delete run {run.id}?", default=False):
        session.talk.say(f"Run {run.id} is kept.")
        return
    left = delete_run(session.workspace, run.id)
    session.waived.pop(run.id, None)
    session.talk.say(f"Run {run.id} is deleted{pending_removal_text(left)}.")
    lines = run_lines(session.workspace, run.project_id)
    session.run_id = lines[0].run.id if lines else None
    session.talk.say("No run is open." if session.run_id is None else f"Run {session.run_id} is open.")


MENU = Menu(
    "Runs",
    "run the plan, and look after runs",
    (
        Entry("List runs", "state, time and thresholds of each", list_runs),
        Entry("Start a run", "runs the plan, with its progress", start),
        Entry("Open a run", "Findings and Release then speak of it", open_run),
        Entry("Resume a run", "continues one that was interrupted or failed", resume),
        Entry("Delete a run", "for good, after a question", delete),
    ),
)
