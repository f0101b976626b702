"""Base classes of screens: reading in threads, title line, keys, errors and exports."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from textual import on
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
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.app_protocol import AppProtocol, app_of
from sfumato.tui.session.clipboard import copy_to_clipboard_and_file
from sfumato.tui.session.export import (
    ExportError,
    ScreenExport,
    check_export_path,
    save_export,
    table_of_pages,
    to_tab_separated,
)
from sfumato.tui.session.messages import ErrorMessage, JobDone, WorkspaceChanged
from sfumato.tui.session.words import run_state_text
from sfumato.tui.widgets.entries import EntryField, PathSuggester
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll, is_same_text
from sfumato.tui.widgets.panel import SECOND, DialogBox
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.plan.drafts import PlanDraft, find_draft
from sfumato.workspace.reporting.words import duration_text
from sfumato.workspace.store.runs import RunState, RunSummary
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.painting import Backdrop, SinglePaintScreen

NOTHING = "There is nothing here to write or to copy"
NOT_PUBLIC = "Nothing of this may leave: it is as confidential as the data"
Answer = TypeVar("Answer")
Part = TypeVar("Part")
ScreenResult = TypeVar("ScreenResult")
KINDS = {".csv": ".csv          the numbers", ".svg": ".svg or .png  the plot"}


class OffersExport(Widget):
    """Mixin with keys that write what is shown to a file and copy it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("export", "export", show=True),
        bind_act("copy", "copy", "Copy the table"),
        bind_act("public", "copy_public", "Copy what of it may leave"),
    ]

    def make_exportable(self) -> ScreenExport | None:
        """Return the table or plot that is shown; None if there is nothing."""
        return None

    def in_footer(self, action: str) -> bool:
        """Return whether a key stands in the footer; not if it could only report that there is nothing to do."""
        return action != "export" or self.can_export

    @property
    def can_export(self) -> bool:
        """Return whether what is shown can have a table or a plot."""
        return type(self).make_exportable is not OffersExport.make_exportable

    def command_words(self) -> tuple[str, ...]:
        """Return the words of the equivalent command; none if there is no such command."""
        return ()

    async def action_export(self) -> None:
        """Ask for a file and write what is shown to it."""
        app, exportable = app_of(self.app), self.make_exportable()
        if exportable is None:
            app.say(NOTHING)
            return

        def save_chosen(chosen: tuple[ScreenExport, Path] | None) -> None:
            """Write the chosen content in a thread."""
            if chosen is not None:
                app.job(partial(save_export, *chosen))

        await app.open(ExportDialog(exportable), save_chosen)

    def action_copy(self) -> None:
        """Copy the table that is shown, or the numbers of the plot, to the clipboard."""
        self._copy_exportable(self.make_exportable(), NOTHING)

    def action_copy_public(self) -> None:
        """Copy the public part of the table to the clipboard."""
        exportable = self.make_exportable()
        self._copy_exportable(exportable and exportable.public_export, NOTHING if exportable is None else NOT_PUBLIC)

    def _copy_exportable(self, exportable: ScreenExport | None, without: str) -> None:
        """Copy a table in a thread, or show the message ``without`` if there is none."""
        app = app_of(self.app)
        if exportable is None:
            app.say(without)
            return
        # The clipboard is reached by escape codes, which only the event loop may send.
        app.job(partial(_copy_table, exportable, app.directory, partial(app.call_from_thread, app.copy_to_clipboard)))


def _copy_table(exportable: ScreenExport, directory: Path, osc52: Callable[[str], None]) -> JobDone:
    """Copy a table to the clipboard and a file, and report it."""
    return JobDone(
        f"{copy_to_clipboard_and_file(to_tab_separated(exportable.table()), directory, osc52)}. {exportable.disclosure_mark}"
    )


def grid_exportable(grid: Grid, name: str) -> ScreenExport | None:
    """Return the table that a grid shows; None if it has no rows."""
    source = grid.source
    return None if source is None or not grid.row_count else ScreenExport(name, partial(table_of_pages, source))


class ShowsErrors(MessagePump):
    """Mixin that reports unexpected errors of its threads."""

    @on(Worker.StateChanged)
    def _report_worker_error(self, event: Worker.StateChanged) -> None:
        """Report the error of a thread."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.post_message(ErrorMessage(unexpected_error(event.worker.error)))


def unexpected_error(error: BaseException) -> str:
    """Return the kind of an error and where it happened."""
    # The error's own message may contain values of the data, so it is left out.
    places = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return f"Unexpected {type(error).__name__}{where}: what is shown here may be incomplete"


class CallInProcess(Protocol):
    """Protocol of a function that calls a module-level function in another process.

    ``what`` names the work in the message of an error; ``seconds`` is the longest time that it may take.
    """

    def __call__(
        self, function: Callable[..., Answer], *arguments: object, what: str, seconds: float | None = None
    ) -> Answer: ...


class WorkspaceReader(ShowsErrors, Widget):
    """Mixin that reads the workspace in a thread, on a connection of its own.

    A subclass returns its query by ``read_query`` and shows the answer by ``show_answer``; ``reload`` does both.
    """

    manual: ClassVar[str] = ""
    """Topic of the manual about this screen, as ``sfumato help`` takes it."""
    needs_engine: ClassVar[bool] = False
    """Whether the query needs tables and the engine, not only SQL."""

    @dataclass
    class AnswerReceived(Message, bubble=False):
        """Message with the answer of a thread.

        show_answer: function that shows it
        answer: the answer
        """

        show_answer: Callable[[Any], object]
        answer: Any

    @property
    def sfumato(self) -> AppProtocol:
        """Return the app."""
        return app_of(self.app)

    def manual_topics(self) -> Sequence[str]:
        """Return the topics at which ``F1`` opens the manual, the most specific first; unknown topics are skipped."""
        return (self.manual,)

    def read_query(self) -> Callable[[Workspace], Any] | None:
        """Return the query for the workspace; None if there is nothing to read."""
        return None

    def show_answer(self, answer: Any) -> None: ...

    def reload(self) -> None:
        """Read the workspace again and show the answer."""
        query = self.read_query()
        if query is not None:
            (self.compute if self.needs_engine else self.read)(query, self.show_answer)

    def read(self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object]) -> None:
        """Run a query in a thread and pass its answer to ``take``; a message that this returns is posted.

        A later call with the same function ``take`` discards the answer of an earlier one.
        """
        self._start_query(query, take, "The workspace cannot be read: ", read_only=True)

    def compute(self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object]) -> None:
        """Run a query that needs more than SQL, or writes, in a thread and pass its answer to ``take``.

        Errors of the engine and the workspace, whose messages contain no values of the data, are reported. A later call
        with the same function ``take`` discards the answer of an earlier one.
        """
        self._start_query(query, take, "", read_only=False)

    def _start_query(
        self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object], lead: str, *, read_only: bool
    ) -> None:
        """Start a thread for a query, and discard an earlier answer to the same function that is still to come."""
        # An answer for another place of the page must not be lost: details of a row are asked for while the list is read.
        function = take.func if isinstance(take, partial) else take
        self.run_worker(
            partial(self._run_query, query, take, lead, read_only=read_only),
            group=f"{'read' if read_only else 'compute'} {function.__qualname__}",
            exclusive=True,
            thread=True,
            exit_on_error=False,
        )

    def compute_in_processes(
        self,
        ask: Callable[[CallInProcess], Answer],
        take: Callable[[Answer], object],
        *,
        group: str = "compute",
        exclusive: bool = True,
        refuse: Callable[[str], Message | None] = ErrorMessage,
    ) -> None:
        """Run ``ask`` in a thread and pass its answer to ``take``.

        ask: function of a ``CallInProcess``, whose calls go to other processes if the app has the process to itself
        group: name of the threads; with ``exclusive`` a later call discards the answer of an earlier one
        refuse: function that returns the message for an error of the engine, the workspace or the database
        """
        self.run_worker(
            partial(self._run_with_processes, ask, take, refuse),
            group=group,
            exclusive=exclusive,
            thread=True,
            exit_on_error=False,
        )

    def _run_with_processes(
        self,
        ask: Callable[[CallInProcess], Answer],
        take: Callable[[Answer], object],
        refuse: Callable[[str], Message | None],
    ) -> None:
        """Run ``ask`` in this thread and post its answer or the message for an error."""
        from sfumato.workspace.jobs.processes import call_in_process

        worker, alone = get_current_worker(), self.sfumato.owns_process
        message: Message | None

        # In a process that other code uses, as in tests, nothing is started; otherwise keys stay quick and the app's
        # memory small.
        def call_function(
            function: Callable[..., Part], *arguments: object, what: str, seconds: float | None = None
        ) -> Part:
            """Call the function in another process, or here if the app does not own the process."""
            if not alone:
                return function(*arguments)
            return call_in_process(
                function, *arguments, what=what, is_unwanted=lambda: worker.is_cancelled, seconds=seconds
            )

        try:
            message = self.AnswerReceived(take, ask(call_function))
        except Cancelled:
            return
        except (sqlite3.Error, EngineError, WorkspaceError) as error:
            message = refuse(str(error))
        # A later call has replaced this one; its answer would overwrite the newer one.
        if message is not None and not worker.is_cancelled:
            self.post_message(message)

    def _run_query(
        self, query: Callable[[Workspace], Answer], take: Callable[[Answer], object], lead: str, *, read_only: bool
    ) -> None:
        """Run a query in this thread and post its answer or an error message that begins with ``lead``."""
        worker = get_current_worker()
        message: Message
        try:
            with Workspace.open(self.sfumato.directory, read_only=read_only) as workspace:
                message = self.AnswerReceived(take, query(workspace))
        except (sqlite3.Error, WorkspaceError, EngineError) as error:
            message = ErrorMessage(f"{lead}{error}")
        if not worker.is_cancelled:
            self.post_message(message)

    @on(AnswerReceived)
    async def _pass_answer(self, event: AnswerReceived) -> None:
        """Pass an answer to its function in the event loop; post a message that this returns."""
        done = event.show_answer(event.answer)
        if isawaitable(done):
            await done
        elif isinstance(done, Message):
            self.post_message(done)


def title_line(*parts: tuple[str, str] | str) -> Content:
    """Return a title line of texts, or (text, style) pairs, without characters that command a terminal."""
    shown = [
        replace_unprintable(part) if isinstance(part, str) else (replace_unprintable(part[0]), part[1])
        for part in parts
    ]
    return Content.assemble(("Sfumato", "$primary bold"), *shown)


class PageScreen(Backdrop, SinglePaintScreen[None], OffersExport, WorkspaceReader):
    """Screen with a title line above and the keys below."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual repaints the whole screen when the focus moves; here only the widgets concerned repaint themselves."""

    def compose(self) -> ComposeResult:
        """Yield the title line, the body and the keys."""
        yield Line(name="where")
        yield from self.compose_body()
        yield KeyLine()

    def compose_body(self) -> ComposeResult:
        """Yield what stands between the title line and the keys."""
        yield from ()

    def on_screen_resume(self) -> None:
        """Read what is shown; nothing was read while another screen lay above."""
        self.reload()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        """Read again when the workspace has changed."""
        self.reload()

    def set_title(self, *parts: tuple[str, str] | str) -> None:
        """Write texts, or (text, style) pairs, into the title line, without characters that command a terminal."""
        self.query_one("#where", Line).set_text(title_line(*parts))


class RunPane(Backdrop, Vertical, WorkspaceReader):
    """Tab of a project that shows one aspect of one run. It reads only while it is shown."""

    line: RunSummary | None = None
    command_name: ClassVar[str] = ""
    """Command that shows the same contents of a run."""
    heading_count = ""
    """Text in the frame after the name of the place."""

    frame_title: Content | None = None
    shorter_titles: Sequence[Content] = ()
    """Title of the frame in place of the name of the place and its count; None for these."""

    class CountChanged(Message):
        """Message that the text in the frame has changed."""

    def set_heading_count(self, text: str) -> None:
        """Set the text after the title in the frame, such as ``3 of 13 not met``."""
        if text != self.heading_count:
            self.heading_count = text
            self.post_message(self.CountChanged())

    def set_frame_title(self, title: Content | None, shorter: Sequence[Content] = ()) -> None:
        """Set the title of the frame, None for the name of the place, and shorter ones where the tabs need the room."""
        if not is_same_text(self.frame_title, title):
            self.frame_title, self.shorter_titles = title, shorter
            self.post_message(self.CountChanged())

    def show_run(self, line: RunSummary | None) -> None:
        """Show this run; read again only if the run has advanced."""
        changed = run_progress(line) != run_progress(self.line)
        self.line = line
        if changed:
            self.load_run()

    def load_run(self) -> None:
        """Read what the pane shows of ``line``."""
        self.reload()

    def focused_step(self) -> str:
        """Return the next step while a part of the pane with keys of its own has the focus, with acts in braces; else
        empty.
        """
        focused = self.app.focused
        if isinstance(focused, Scroll) and focused.has_class(SECOND):
            return "next: {up} {down} scroll this text; {back} returns to the list"
        return ""

    def row_step(self) -> str:
        """Return what enter does on the row under the cursor, with acts in braces; empty where the footer alone says it."""
        return ""

    @property
    def filter_words(self) -> str:
        """Return the words that the rows have; empty without a filter."""
        return ""

    def filter_rows(self, words: str) -> None:
        """Show the rows that have these words."""

    def clear_filter(self) -> bool:
        """Clear the filter of the rows; return whether there was one."""
        had = bool(self.filter_words)
        if had:
            self.filter_rows("")
        return had

    def take_focus(self) -> None:
        """Focus the widget that the keys are for."""

    def make_exportable(self) -> ScreenExport | None:
        """Return what the pane shows, to be written or copied; None if there is nothing."""
        return None

    def command_words(self) -> tuple[str, ...]:
        """Return the words of the equivalent command; none if there is no such command."""
        return () if self.line is None or not self.command_name else (self.command_name, str(self.line.run.id))

    @property
    def can_export(self) -> bool:
        """Return whether the tab has a table or a plot."""
        return type(self).make_exportable is not RunPane.make_exportable

    def empty_text(self, what: str, none: str) -> str:
        """Return why there is nothing to show: ``none`` if the run is done, otherwise its state and error."""
        if self.line is None or self.line.run.state is RunState.DONE:
            return none if self.line else ""
        run = self.line.run
        error = f"\n{run.error}" if run.error else ""
        left = f", about {duration_text(run.seconds_left)} left" if run.seconds_left is not None else ""
        done = f" {run.tasks_done} of {run.tasks_total} tasks are done{left}." if run.tasks_total else ""
        return f"No {what} yet: run {run.id} is not done ({run_state_text(self.line)}).{done}{error}"

    def export_file_name(self, what: str) -> str:
        """Return the name of an exported file, such as ``run-3-results``."""
        return what if self.line is None else f"run-{self.line.run.id}-{what}"


def run_progress(line: RunSummary | None) -> tuple[object, ...]:
    """Return a key of a run's progress; while it is the same, so are the run's results."""
    return () if line is None else (line.run.id, line.run.state, line.run.tasks_done)


class Dialog(SinglePaintScreen[ScreenResult], WorkspaceReader, ModalScreen[ScreenResult]):
    """Dialog above a screen; q and escape close it.

    A child of the class ``whole`` fills the terminal and hides the screen below.
    """

    # Transparent: blending the colours of the screen below takes longer than painting the dialog, and sends it all again.
    DEFAULT_CSS = """
    Dialog { background: transparent; }
    Dialog > .whole { width: 100%; height: 100%; background: $background; }
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("close", "close", "Close", show=True),
        bind_act("back", "close", "Close"),
        bind_act("keys", "app.keys", "Keys", show=True),
        bind_act("manual", "app.manual"),
        bind_act("commands", "app.commands", "Commands that equal this"),
    ]

    def on_mount(self) -> None:
        self.reload()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of the screen behind the dialog, or blanks if it is hidden."""
        if any(child.has_class("whole") for child in self.children):
            return [Strip.blank(crop.width, self.rich_style)] * crop.height
        return super().render_lines(crop)

    def action_close(self) -> None:
        self.dismiss(None)


class ExportDialog(Dialog[tuple[ScreenExport, Path]]):
    """Dialog that returns what to write, all or the public part, and a new file in an existing directory."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("public", "other", "Internal or public", typed=True),
    ]

    def __init__(self, exportable: ScreenExport) -> None:
        """Create the dialog, at first for all of the content."""
        super().__init__()
        self._whole = self._exportable = exportable

    def compose(self) -> ComposeResult:
        """Yield the formats, the marking, the file's name, and what is wrong with it."""
        kinds = "\n".join(KINDS[suffix] for suffix in self._exportable.suffixes if suffix in KINDS)
        with DialogBox("Write to a file", "enter writes, esc closes"):
            yield Static(f"{kinds}\n", markup=False)
            yield Static(self._marking_text, id="export-mark", markup=False)
            yield EntryField(self._default_path, suggester=PathSuggester(), id="export-path")
            yield Static("", id="export-wrong", markup=False)

    @property
    def _marking_text(self) -> str:
        """Return whether the content is public, and the key for the other content."""
        other = "all of it" if self._exportable.is_public else "only what may leave"
        return f"{self._exportable.disclosure_mark}\n" + (f"ctrl+y        {other}\n" if self._whole.public else "")

    @property
    def _default_path(self) -> str:
        """Return the path that the field has first: the current directory and a name for the format."""
        return str(Path.cwd() / self._exportable.file_name(self._exportable.default_suffix))

    def action_other(self) -> None:
        """Switch between all and the public part."""
        self._exportable = self._whole if self._exportable.is_public else self._whole.public_export or self._whole
        self.query_one("#export-mark", Static).update(self._marking_text)
        entry = self.query_one("#export-path", Input)
        entry.value = self._default_path
        entry.cursor_position = len(entry.value)

    @on(Input.Changed)
    def _clear_problem(self) -> None:
        """Clear the problem once the path is edited."""
        self.query_one("#export-wrong", Static).update("")

    @on(Input.Submitted)
    def _answer_path(self, event: Input.Submitted) -> None:
        """Close the dialog with the path, or show why it cannot be written."""
        try:
            self.dismiss((self._exportable, check_export_path(self._exportable, event.value)))
        except ExportError as error:
            self.query_one("#export-wrong", Static).update(str(error))


class PlanPane(RunPane):
    """Tab that reads the plan each time it is shown, since it may have been edited."""

    def __init__(self, project_id: int, name: str) -> None:
        """Create the tab of a project; ``name`` is its id."""
        super().__init__(id=name)
        self._project_id = project_id

    def show_run(self, line: RunSummary | None) -> None:
        """Read the plan again, whichever run is shown."""
        self.line = line
        self.load_run()

    def read_query(self) -> Callable[[Workspace], Any]:
        """Return the query for the stored plan; it finds None for a project without data."""
        return partial(_read_draft, self._project_id)


def _read_draft(project_id: int, workspace: Workspace) -> PlanDraft | None:
    return find_draft(workspace, project_id)
