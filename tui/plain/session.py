"""A session of plain mode: its workspace, the project and the run that are open, and what a menu is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sfumato.engine.errors import BadInput
from sfumato.workspace.errors import NotFound
from sfumato.workspace.jobs.settings import JOBS
from sfumato.workspace.plan.drafts import Draft, draft_of
from sfumato.workspace.store.runs import Project, Run, RunState, find_run, projects, run_lines
from sfumato.workspace.store.workspace import Workspace

from ..session.error_messages import message_of
from .run_words import run_text, state_text
from .talk import Back, Ended, NotPossible, Talk


@dataclass
class Session:
    """Whose turn it is: ``waived`` are the justifications of this session by run and check."""

    talk: Talk
    workspace: Workspace
    jobs: int = JOBS
    project_id: int | None = None
    run_id: int | None = None
    waived: dict[int, dict[str, str]] = field(default_factory=dict)

    def open_project(self, project: Project) -> None:
        """Open a project with its newest run."""
        self.project_id = project.id
        self.run_id = None if project.last is None else project.last.run.id
        run = "no run yet" if self.run_id is None else f"run {self.run_id} is open"
        self.talk.say(f"Project {project.name} is open; {run}.")

    def open_run(self, run: Run) -> None:
        self.project_id, self.run_id = run.project_id, run.id

    def project(self) -> Project:
        """The open project. Raises NotPossible."""
        found = [one for one in projects(self.workspace) if one.id == self.project_id]
        if not found:
            raise NotPossible("no project is open. In Projects, run the demo, import a file or open a project first.")
        return found[0]

    def draft(self) -> Draft:
        """The plan of the open project. Raises NotPossible."""
        project = self.project()
        draft = draft_of(self.workspace, project.id)
        if draft is None:
            raise NotPossible(f"project {project.name} has no data. In Projects, import a file first.")
        return draft

    def list_runs(self) -> None:
        """The runs of the open project, the newest first. Lines have no numbers: runs have their own."""
        lines = run_lines(self.workspace, self.project().id)
        self.talk.say_all([f"Run {run_text(one.run)}: {state_text(self.workspace, one)}." for one in lines])

    def ask_run(self, question: str, *, done: bool = False) -> Run:
        """A run of the open project, the open one by default. Raises NotPossible where there is none, or it has not ended well."""
        project = self.project()
        if not project.runs:
            raise NotPossible(f"project {project.name} has no run. In Runs, start one first.")
        default = "" if self.run_id is None else str(self.run_id)

        def check(answer: str) -> Run:
            try:
                run = find_run(self.workspace, answer)
            except NotFound as error:
                raise BadInput("", f"{error}.") from None
            if run.project_id != project.id:
                raise BadInput("", f"Run {run.id} belongs to another project.")
            return run

        run = self.talk.ask(question, "the number or the name of a run, or last", check, default, self.list_runs)
        self.talk.say(f"Run: {run_text(run)}.")
        if done and run.state is not RunState.DONE:
            raise NotPossible(f"run {run.id} is {run.state}; only a run that is done has findings and can be released.")
        return run


Act = Callable[[Session], None]


@dataclass(frozen=True)
class Entry:
    """A line of a menu: its name, what it does, and the act."""

    name: str
    does: str
    act: Act


@dataclass(frozen=True)
class Menu:
    """A place and its acts, in an order that never changes: a number means the same in every state of a workspace."""

    name: str
    does: str
    entries: Sequence[Entry]

    def lines(self) -> list[str]:
        return [f"{entry.name}: {entry.does}" for entry in self.entries]

    def describe(self, talk: Talk) -> None:
        talk.say(f"{self.name}: {self.does}.")
        talk.list(self.lines())

    def enter(self, session: Session) -> None:
        """List the acts, then ask for one after another until somebody goes back. Raises Ended."""
        names = [entry.name for entry in self.entries]
        self.describe(session.talk)
        while True:
            try:
                at = session.talk.choose(
                    f"{self.name}: which act?", names, "help", partial(self.describe, session.talk)
                )
            except Back:
                return
            self.carry_out(self.entries[at], session)

    def carry_out(self, entry: Entry, session: Session) -> None:
        """One act, whatever becomes of it. Raises Ended, KeyboardInterrupt and BrokenPipeError."""
        try:
            entry.act(session)
        except Back:
            session.talk.say(f"Back in {self.name}.")
        except (Ended, BrokenPipeError):
            raise
        except NotPossible as error:
            session.talk.failed(str(error))
        except Exception as error:  # noqa: BLE001  (no traceback reaches a user; the details go to the log)
            session.talk.failed(f"{message_of(error).rstrip('.')}.")
