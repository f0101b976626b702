"""Session of plain mode: its workspace, the open project and run, and the menus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.errors import NotFound
from sfumato.workspace.jobs.settings import DEFAULT_JOBS
from sfumato.workspace.plan.drafts import PlanDraft, find_draft
from sfumato.workspace.store.runs import (
    ProjectSummary,
    RunState,
    StoredRun,
    count_trials,
    find_run,
    list_project_summaries,
    summarise_runs,
)
from sfumato.workspace.store.workspace import Workspace

from ..session.error_messages import error_message_for_user
from ..session.lever_memory import LeverMemory
from .run_words import run_outcome_text, run_text
from .talk import ActNotPossible, Conversation, ConversationEnded, GoBack


@dataclass
class PlainSession:
    """Session of plain mode.

    conversation: questions and answers
    jobs: number of tasks computed at the same time
    project_id, run_id: the open project and run
    waiver_reasons: justifications of this session by run and check
    lever_memory: what trials of levers found in this session
    """

    conversation: Conversation
    workspace: Workspace
    jobs: int = DEFAULT_JOBS
    project_id: int | None = None
    run_id: int | None = None
    waiver_reasons: dict[int, dict[str, str]] = field(default_factory=dict)
    lever_memory: LeverMemory = field(default_factory=LeverMemory)

    def open_project(self, project: ProjectSummary) -> None:
        """Open a project with its newest run."""
        self.project_id = project.id
        self.run_id = None if project.last is None else project.last.run.id
        run = "no run yet" if self.run_id is None else f"run {self.run_id} is open"
        self.conversation.say(f"Project {project.name} is open; {run}.")

    def open_run(self, run: StoredRun) -> None:
        self.project_id, self.run_id = run.project_id, run.id

    def current_project(self) -> ProjectSummary:
        """Return the open project. Raises ActNotPossible."""
        found = [one for one in list_project_summaries(self.workspace) if one.id == self.project_id]
        if not found:
            raise ActNotPossible(
                "no project is open. In Projects, run the demo, import a file or open a project first."
            )
        return found[0]

    def plan_draft(self) -> PlanDraft:
        """Return the plan of the open project. Raises ActNotPossible."""
        project = self.current_project()
        draft = find_draft(self.workspace, project.id)
        if draft is None:
            raise ActNotPossible(f"project {project.name} has no data. In Projects, import a file first.")
        return draft

    def list_runs(self) -> None:
        """Print the runs of the open project, the newest first."""
        lines = summarise_runs(self.workspace, self.current_project().id)
        # Not numbered: runs have their own numbers.
        self.conversation.print_lines(
            [
                f"Run {run_text(one.run)}: {run_outcome_text(self.workspace, one)}."
                for one in lines
                if one.run.search_id is None
            ]
            + [
                f"Search {search}: {count_noun(count, 'trial')}, {done} done; none is the last run."
                for search, (count, done) in count_trials(one.run for one in lines).items()
            ]
        )

    def ask_run(self, question: str, *, must_be_done: bool = False) -> StoredRun:
        """Ask for a run of the open project, by default the open one.

        Raises ActNotPossible without a run, or where it must be done and is not.
        """
        project = self.current_project()
        if not project.runs:
            raise ActNotPossible(f"project {project.name} has no run. In Runs, start one first.")
        default = "" if self.run_id is None else str(self.run_id)

        def check(answer: str) -> StoredRun:
            """Return the run that was answered. Raises BadInput."""
            try:
                run = find_run(self.workspace, answer)
            except NotFound as error:
                raise BadInput("", f"{error}.") from None
            if run.project_id != project.id:
                raise BadInput("", f"Run {run.id} belongs to another project.")
            return run

        run = self.conversation.ask(
            question, "the number or the name of a run, or last", check, default, self.list_runs
        )
        self.conversation.say(f"Run: {run_text(run)}.")
        if must_be_done and run.state is not RunState.DONE:
            raise ActNotPossible(
                f"run {run.id} is {run.state}; only a run that is done has findings and can be released."
            )
        return run


MenuAct = Callable[[PlainSession], None]


@dataclass(frozen=True)
class MenuEntry:
    """Line of a menu.

    name: what the user types
    description: what the act does
    act: function of the session
    """

    name: str
    description: str
    act: MenuAct


@dataclass(frozen=True)
class NumberedMenu:
    """Place with its acts, in an order that never changes.

    description: what the place is for
    entries: the acts
    """

    name: str
    description: str
    # A number means the same in every state of a workspace: scripts and habits rely on it.
    entries: Sequence[MenuEntry]

    def entry_lines(self) -> list[str]:
        return [f"{entry.name}: {entry.description}" for entry in self.entries]

    def print_entries(self, conversation: Conversation) -> None:
        conversation.say(f"{self.name}: {self.description}.")
        conversation.print_numbered(self.entry_lines())

    def run_menu(self, session: PlainSession) -> None:
        """List the acts, then ask for one after another until the user goes back. Raises ConversationEnded."""
        names = [entry.name for entry in self.entries]
        self.print_entries(session.conversation)
        while True:
            try:
                at = session.conversation.choose(
                    f"{self.name}: which act?", names, "help", partial(self.print_entries, session.conversation)
                )
            except GoBack:
                return
            self.run_entry(self.entries[at], session)

    def run_entry(self, entry: MenuEntry, session: PlainSession) -> None:
        """Run one act, and print why it failed if it did.

        Raises ConversationEnded, KeyboardInterrupt and BrokenPipeError.
        """
        try:
            entry.act(session)
        except GoBack:
            session.conversation.say(f"Back in {self.name}.")
        except (ConversationEnded, BrokenPipeError):
            raise
        except ActNotPossible as error:
            session.conversation.report_failure(str(error))
        except Exception as error:  # noqa: BLE001  (no traceback reaches a user; the details go to the log)
            session.conversation.report_failure(f"{_text_without_option(error).rstrip('.')}.")


def _text_without_option(error: Exception) -> str:
    """Return the message about an error; an option of the command line, which plain mode has not, does not name its
    place.
    """
    if isinstance(error, BadInput) and error.place.startswith("--"):
        # What stands behind the option, such as the name of a file, is the place.
        what = error.place.partition(" ")[2]
        return f"{what}: {error.message}" if what else error.message
    return error_message_for_user(error)
