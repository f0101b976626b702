"""Menu Runs: start one and follow it, list, open, resume, delete."""

from __future__ import annotations

from sfumato.engine.errors import EngineError
from sfumato.engine.wording import count_noun
from sfumato.workspace.reporting.words import duration_text, thresholds_text
from sfumato.workspace.store.runs import RunState, StoredRun, find_run, summarise_runs
from sfumato.workspace.views.results import read_verdicts

from .run_words import run_text
from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible


def list_runs(session: PlainSession) -> None:
    """Print every run of the open project in a line."""
    project = session.current_project()
    session.conversation.say(f"Project {project.name}: {count_noun(project.runs, 'run')}.")
    session.list_runs()


def start_run(session: PlainSession) -> None:
    """Run the plan of the open project, after showing its cost and asking."""
    from sfumato.workspace.plan.edits import parse_plan
    from sfumato.workspace.service.prepare import enter_plan_run

    from .plan import cost_lines, plan_problem

    project, draft = session.current_project(), session.plan_draft()
    view = parse_plan(draft.toml)
    if problem := plan_problem(view):
        raise ActNotPossible(f"the plan of project {project.name} cannot be run yet: {problem}.")
    session.conversation.print_lines([f"Warning: {one}." for one in view.warnings])
    session.conversation.print_lines(cost_lines(session, draft))
    if not session.conversation.confirm(f"Run the plan of project {project.name}?", default=True):
        return
    session.open_run(find_run(session.workspace, enter_plan_run(session.workspace, draft)))
    follow_open_run(session)


def follow_open_run(session: PlainSession) -> None:
    """Follow the open run to its end, and print how it ended. Raises EngineError where it failed, KeyboardInterrupt after Ctrl-C."""
    from ..session.run_progress import ProgressLines, wait_for

    assert session.run_id is not None
    run_id = session.run_id
    session.conversation.say(f"Run {run_id} has started. Ctrl-C interrupts it; Resume continues it later.")
    try:
        run = wait_for(session.workspace, [run_id], session.jobs, ProgressLines(session.conversation.say))[0]
    except KeyboardInterrupt:
        session.conversation.say(f"Run {run_id} is interrupted; its finished steps are kept, and Resume continues it.")
        raise
    _say_run_end(session, run)


def _say_run_end(session: PlainSession, run: StoredRun) -> None:
    """Print the verdicts of a finished run. Raises EngineError where it failed and ActNotPossible where it was stopped."""
    if run.state is RunState.FAILED:
        raise EngineError(f"run {run.id} failed: {run.error}")
    if run.state is not RunState.DONE:
        raise ActNotPossible(f"run {run.id} is {run.state}; Resume continues it.")
    verdicts = read_verdicts(session.workspace, run.id)
    judged = thresholds_text(verdicts) if verdicts else "its recipe sets no threshold"
    session.conversation.say(
        f"Run {run.id} is done after {duration_text(run.seconds)}: {judged}. Findings has the verdicts."
    )


def open_run(session: PlainSession) -> None:
    """Open a run: Findings and Release are about it."""
    run = session.ask_run("Which run?")
    session.open_run(run)
    session.conversation.say(f"Run {run.id} is open.")


def resume_a_run(session: PlainSession) -> None:
    """Resume a run that was interrupted, cancelled or failed, or that has no worker."""
    from sfumato.workspace.jobs.queue import requeue_run as queue_again

    run = session.ask_run("Which run continues?")
    if run.state is RunState.DONE:
        raise ActNotPossible(f"run {run.id} is done already.")
    queue_again(session.workspace, run.id)
    session.open_run(run)
    follow_open_run(session)


def delete_a_run(session: PlainSession) -> None:
    """Delete a run, after a question."""
    from sfumato.workspace.service.deletion import delete_run, pending_removal_text

    run = session.ask_run("Delete which run?")
    session.conversation.say(
        f"Deleting removes run {run_text(run)} with its datasets and results for good. The audit log keeps that there was such a run."
    )
    # An empty line takes the default, which must not delete anything.
    if not session.conversation.confirm(f"Delete run {run.id}?", default=False):
        session.conversation.say(f"Run {run.id} is kept.")
        return
    left = delete_run(session.workspace, run.id)
    session.waiver_reasons.pop(run.id, None)
    session.conversation.say(f"Run {run.id} is deleted{pending_removal_text(left)}.")
    lines = summarise_runs(session.workspace, run.project_id)
    session.run_id = next((line.run.id for line in lines if line.run.search_id is None), None)
    session.conversation.say("No run is open." if session.run_id is None else f"Run {session.run_id} is open.")


MENU = NumberedMenu(
    "Runs",
    "run the plan, and look after runs",
    (
        MenuEntry("List runs", "state, time and thresholds of each", list_runs),
        MenuEntry("Start a run", "runs the plan, with its progress", start_run),
        MenuEntry("Open a run", "Findings and Release then speak of it", open_run),
        MenuEntry("Resume a run", "continues one that was interrupted or failed", resume_a_run),
        MenuEntry("Delete a run", "for good, after a question", delete_a_run),
    ),
)
