"""What screens share: reading in threads, a title line, keys that lead out, errors that are told, and exports."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import Reactive
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerState, get_current_worker

from sfumato.engine.errors import Cancelled, EngineError
from sfumato.tui.keys.acts import bind
from sfumato.tui.session.app_protocol import AppProtocol, app_of
from sfumato.tui.session.clipboard import send
from sfumato.tui.session.export import Exportable, NotExported, check_path, of_pages, save, tab_separated
from sfumato.tui.session.messages import ErrorMessage, JobDone, WorkspaceChanged
from sfumato.tui.session.words import state_text
from sfumato.tui.widgets.entries import Entry, PathName
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.plan.drafts import Draft, draft_of
from sfumato.workspace.store.runs import RunLine, RunState
from sfumato.workspace.store.workspace import Workspace

from ..terminal.painting import Backdrop, SinglePaintScreen

NOTHING = "There is nothing here to write or to copy"
NOT_PUBLIC = "Nothing of this may leave: it is as confidential as the data"
Answer = TypeVar("Answer")
Part = TypeVar("Part")
ScreenResult = TypeVar("ScreenResult")
KINDS = {".csv": ".csv          the numbers", ".svg": ".svg or .png  the plot"}


class Exports(Widget):
    """``e`` writes what is shown to a file, ``Y`` copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("export", "export", show=True),
        bind("copy", "copy", "Copy the table"),
        bind("public", "copy_public", "Copy what of it may leave"),
    ]

    def exportable(self) -> Exportable | None:
        """What is shown; None when that is nothing."""
        return None

    def in_footer(self, action: str) -> bool:
        """Whether a key stands at the foot of the screen: not where it could only say that there is nothing to do."""
        return action != "export" or self.can_export

    @property
    def can_export(self) -> bool:
        """Whether what is shown can have a table or a plot."""
        return type(self).exportable is not Exports.exportable

    def command_words(self) -> tuple[str, ...]:
        """The words of the command that shows the same; none where there is no such command."""
        return ()

    async def action_export(self) -> None:
        """Ask for a file, and write what is shown to it."""
        app, exportable = app_of(self.app), self.exportable()
        if exportable is None:
            app.say(NOTHING)
            return

        def answered(chosen: tuple[Exportable, Path] | None) -> None:
            if chosen is not None:
                app.job(partial(save, *chosen))

        await app.open(Export(exportable), answered)

    def action_copy(self) -> None:
        """Send the table that is shown, or the numbers of the plot, to the clipboard."""
        self._copy(self.exportable(), NOTHING)

    def action_copy_public(self) -> None:
        """Send what of the table the policy lets out to the clipboard."""
        exportable = self.exportable()
        self._copy(exportable and exportable.outside, NOTHING if exportable is None else NOT_PUBLIC)

    def _copy(self, exportable: Exportable | None, without: str) -> None:
        app = app_of(self.app)
        if exportable is None:
            app.say(without)
            return
        app.job(partial(_copied, exportable, app.directory, partial(app.call_from_thread, app.copy_to_clipboard)))


def _copied(exportable: Exportable, directory: Path, osc52: Callable[[str], None]) -> JobDone:
    return JobDone(f"{send(tab_separated(exportable.table()), directory, osc52)}. {exportable.mark}")


def grid_exportable(grid: Grid, name: str) -> Exportable | None:
    """The table that a grid shows; None when it has no rows."""
    source = grid.source
    return None if source is None or not grid.count else Exportable(name, partial(of_pages, source))


class TellsErrors(MessagePump):
    """Tells of an error in one of its threads that nobody had foreseen."""

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.post_message(ErrorMessage(unexpected_error(event.worker.error)))


def unexpected_error(error: BaseException) -> str:
    """The kind of an error and where it happened; not its own words, which may hold values of the data."""
    places = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return f"Unexpected {type(error).__name__}{where}: what is shown here may be incomplete"


class Beside(Protocol):
    """Calls a function of a module's top level beside the app; ``what`` names it where that fails."""

    def __call__(self, function: Callable[..., Answer], *arguments: object, what: str) -> Answer: ...


class Reads(TellsErrors, Widget):
    """What reads the workspace in a thread, on a connection of its own.

    A screen says what it reads, ``read_query``, and how it shows the answer, ``take``; ``reload`` does both.
    """

    manual: ClassVar[str] = ""
    """The topic of the manual that describes it, as ``sfumato help`` takes it."""
    computes: ClassVar[bool] = False
    """Whether the query needs more than SQL: tables and the engine."""

    @dataclass
    class Answered(Message, bubble=False):
        """A thread has an answer, which ``take`` is to be given."""

        take: Callable[[Any], object]
        answer: Any

    @property
    def sfumato(self) -> AppProtocol:
        return app_of(self.app)

    def manual_topics(self) -> Sequence[str]:
        """What ``F1`` opens the manual at, the nearest first; a topic that it does not have is passed over."""
        return (self.manual,)

    def read_query(self) -> Callable[[Workspace], Any] | None:
        """What is read from the workspace; None where there is nothing to read."""
        return None

    def take(self, answer: Any) -> None: ...

    def reload(self) -> None:
        query = self.read_query()
        if query is not None:
            (self.compute if self.computes else self.read)(query, self.take)

    @work(thread=True, exclusive=True, group="read", exit_on_error=False)
    def read(self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object]) -> None:
        """Have ``take`` called with what the query finds, and a message that it makes posted; a later call makes an earlier answer void."""
        self._ask_workspace(query, take, "The workspace cannot be read: ", read_only=True)

    @work(thread=True, exclusive=True, group="compute", exit_on_error=False)
    def compute(self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object]) -> None:
        """``read`` for what needs more than SQL, or writes.

        The engine's and the workspace's own errors, whose words hold no values of the data, are told.
        """
        self._ask_workspace(query, take, "", read_only=False)

    def call_beside(
        self,
        ask: Callable[[Beside], Answer],
        take: Callable[[Answer], object],
        *,
        group: str = "compute",
        exclusive: bool = True,
        refuse: Callable[[str], Message | None] = ErrorMessage,
    ) -> None:
        """Have ``take`` called with what ``ask`` finds in a thread, by calls that go to other processes where the app is alone.

        Its keys and memory need not bear them. An error of the engine's, the workspace's or the database's makes the message
        of ``refuse``; a later call of an ``exclusive`` ``group`` makes an earlier answer void.
        """
        self.run_worker(
            partial(self._ask_beside, ask, take, refuse),
            group=group,
            exclusive=exclusive,
            thread=True,
            exit_on_error=False,
        )

    def _ask_beside(
        self,
        ask: Callable[[Beside], Answer],
        take: Callable[[Answer], object],
        refuse: Callable[[str], Message | None],
    ) -> None:
        from sfumato.workspace.jobs.processes import call_in_process

        worker, alone = get_current_worker(), self.sfumato.alone
        message: Message | None

        def call(function: Callable[..., Part], *arguments: object, what: str) -> Part:
            if not alone:
                return function(*arguments)
            return call_in_process(function, *arguments, what=what, unwanted=lambda: worker.is_cancelled)

        try:
            message = self.Answered(take, ask(call))
        except Cancelled:
            return
        except (sqlite3.Error, EngineError, WorkspaceError) as error:
            message = refuse(str(error))
        if message is not None and not worker.is_cancelled:
            self.post_message(message)

    def _ask_workspace(
        self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object], lead: str, *, read_only: bool
    ) -> None:
        worker = get_current_worker()
        message: Message
        try:
            with Workspace.open(self.sfumato.directory, read_only=read_only) as workspace:
                message = self.Answered(take, query(workspace))
        except (sqlite3.Error, WorkspaceError, EngineError) as error:
            message = ErrorMessage(f"{lead}{error}")
        if not worker.is_cancelled:
            self.post_message(message)

    @on(Answered)
    async def _take_answer(self, event: Answered) -> None:
        done = event.take(event.answer)
        if isawaitable(done):
            await done
        elif isinstance(done, Message):
            self.post_message(done)


class Page(Backdrop, SinglePaintScreen[None], Exports, Reads):
    """A screen with a title line above and the keys below."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual repaints the whole screen when the focus moves; the widgets concerned repaint themselves."""

    def compose(self) -> ComposeResult:
        yield Line(name="where")
        yield from self.compose_body()
        yield KeyLine()

    def compose_body(self) -> ComposeResult:
        """What stands between the title line and the keys."""
        yield from ()

    def on_screen_resume(self) -> None:
        """Read what is shown; while another screen lay above, nothing was read."""
        self.reload()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        self.reload()

    def say_where(self, *parts: tuple[str, str] | str) -> None:
        """Put words, or words with a style, into the title line."""
        self.query_one("#where", Line).say(Content.assemble(("Sfumato", "$primary bold"), *parts))


class Pane(Backdrop, Vertical, Reads):
    """One tab of a project: shows what one run found, and reads it only while it is looked at."""

    line: RunLine | None = None
    shown_by: ClassVar[str] = ""
    """The command that shows the same of a run."""
    counted = ""
    """What the frame says after the name of the place."""

    class Counted(Message):
        """The frame has something else to say."""

    def count(self, text: str) -> None:
        """Have the frame say this of what the pane shows, such as ``3 of 13 not met``."""
        if text != self.counted:
            self.counted = text
            self.post_message(self.Counted())

    def show(self, line: RunLine | None) -> None:
        """Show this run; what was read already is kept unless the run has come further."""
        changed = stage(line) != stage(self.line)
        self.line = line
        if changed:
            self.load()

    def load(self) -> None:
        """Read what the pane shows of ``line``."""
        self.reload()

    def take_focus(self) -> None:
        """Give the focus to what the keys are for."""

    def exportable(self) -> Exportable | None:
        """What the pane shows, to be written to a file or copied; None when that is nothing."""
        return None

    def command_words(self) -> tuple[str, ...]:
        """The words of the command that shows the same; none where there is no such command."""
        return () if self.line is None or not self.shown_by else (self.shown_by, str(self.line.run.id))

    @property
    def can_export(self) -> bool:
        """Whether the tab can have a table or a plot."""
        return type(self).exportable is not Pane.exportable

    def why_none(self, what: str, none: str) -> str:
        """Why there is nothing of what the pane shows: ``none`` of a run that is done, else that it is not."""
        if self.line is None or self.line.run.state is RunState.DONE:
            return none if self.line else ""
        error = f"\n{self.line.run.error}" if self.line.run.error else ""
        return f"No {what} yet: run {self.line.run.id} is not done ({state_text(self.line)}).{error}"

    def named(self, what: str) -> str:
        """``run-3-results``."""
        return what if self.line is None else f"run-{self.line.run.id}-{what}"


def stage(line: RunLine | None) -> tuple[object, ...]:
    """Which run, and how far it has come: while this is the same, so is what it found."""
    return () if line is None else (line.run.id, line.run.state, line.run.tasks_done)


class Dialog(SinglePaintScreen[ScreenResult], Reads, ModalScreen[ScreenResult]):
    """Something asked or told above a screen; q and escape close it.

    The screen below stands as it is: blending its colours takes longer than painting the dialog, and sends it all again. What
    fills the terminal, of the class ``whole``, hides it.
    """

    DEFAULT_CSS = """
    Dialog { background: transparent; }
    Dialog > .whole { width: 100%; height: 100%; background: $background; }
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("close", "close", "Close", show=True),
        bind("back", "close", "Close"),
        bind("keys", "app.keys", "Keys", show=True),
        bind("manual", "app.manual"),
        bind("commands", "app.commands", "Commands that equal this"),
    ]

    def on_mount(self) -> None:
        self.reload()

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is behind the dialog, where any of it is to be seen."""
        if any(child.has_class("whole") for child in self.children):
            return [Strip.blank(crop.width, self.rich_style)] * crop.height
        return super().render_lines(crop)

    def action_close(self) -> None:
        self.dismiss(None)


class Export(Dialog[tuple[Exportable, Path]]):
    """Answers what is to be written, all of it or what may leave, and a file that is not there yet, in a directory that is."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("public", "other", "Internal or public", typed=True),
    ]

    def __init__(self, exportable: Exportable) -> None:
        super().__init__()
        self._whole = self._exportable = exportable

    def compose(self) -> ComposeResult:
        """What can be written, the file's name, and what is wrong with it."""
        kinds = "\n".join(KINDS[suffix] for suffix in self._exportable.suffixes if suffix in KINDS)
        with Box("Write to a file", "enter writes, esc closes"):
            yield Static(f"{kinds}\n", markup=False)
            yield Static(self._marking, id="export-mark", markup=False)
            yield Entry(self._path, suggester=PathName(), id="export-path")
            yield Static("", id="export-wrong", markup=False)

    @property
    def _marking(self) -> str:
        """Whether it may leave, and what the key for the other is."""
        other = "all of it" if self._exportable.is_public else "only what may leave"
        return f"{self._exportable.mark}\n" + (f"ctrl+y        {other}\n" if self._whole.public else "")

    @property
    def _path(self) -> str:
        return str(Path.cwd() / self._exportable.file_name(self._exportable.suffix))

    def action_other(self) -> None:
        """Write what may leave in place of all, or all again."""
        self._exportable = self._whole if self._exportable.is_public else self._whole.outside or self._whole
        self.query_one("#export-mark", Static).update(self._marking)
        entry = self.query_one("#export-path", Input)
        entry.value = self._path
        entry.cursor_position = len(entry.value)

    @on(Input.Changed)
    def _forget(self) -> None:
        self.query_one("#export-wrong", Static).update("")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        try:
            self.dismiss((self._exportable, check_path(self._exportable, event.value)))
        except NotExported as error:
            self.query_one("#export-wrong", Static).update(str(error))


class PlanPane(Pane):
    """Reads the plan each time it is shown: it does not depend on the run, and may have been edited."""

    def __init__(self, project_id: int, name: str) -> None:
        super().__init__(id=name)
        self._project_id = project_id

    def show(self, line: RunLine | None) -> None:
        """Look whether the plan was edited."""
        self.line = line
        self.load()

    def read_query(self) -> Callable[[Workspace], Any]:
        """The stored plan; None for a project without data."""
        return partial(_draft_of, self._project_id)


def _draft_of(project_id: int, workspace: Workspace) -> Draft | None:
    return draft_of(workspace, project_id)
