"""What the screens share: reading in threads, a title line, keys that lead out, and writing what is shown to a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from sfumato.tui.app_protocol import Host, host
from sfumato.tui.clipboard import send
from sfumato.tui.export import Exhibit, NotExported, check_path, of_pages, save, tab_separated
from sfumato.tui.messages import JobDone, Trouble, WorkspaceChanged
from sfumato.tui.widgets.completion import PathName
from sfumato.tui.widgets.entry import Entry
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.key_line import KeyLine
from sfumato.tui.widgets.line import Line
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.runs import RunLine

from ..terminal.painting import Backdrop, SinglePaintScreen
from .worker_errors import Outspoken

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


NOTHING = "There is nothing here to write or to copy"


class Exhibits(Widget):
    """``e`` writes what is shown to a file, ``Y`` copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "export", "Write table or plot to a file", show=False, id="exhibit.export"),
        Binding("Y", "copy", "Copy the table", show=False, id="exhibit.copy"),
    ]

    def exhibit(self) -> Exhibit | None:
        """What is shown; None when that is nothing."""
        return None

    async def action_export(self) -> None:
        """Ask for a file, and write what is shown to it."""
        app, exhibit = host(self.app), self.exhibit()
        if exhibit is None:
            app.say(NOTHING)
            return

        def answered(path: Path | None) -> None:
            if path is not None:
                app.job(partial(save, exhibit, path))

        await app.open(Export(exhibit), answered)

    def action_copy(self) -> None:
        """Send the table that is shown, or the numbers of the plot, to the clipboard."""
        app, exhibit = host(self.app), self.exhibit()
        if exhibit is None:
            app.say(NOTHING)
            return
        app.job(partial(_copy, exhibit, app.directory, partial(app.call_from_thread, app.copy_to_clipboard)))


def _copy(exhibit: Exhibit, directory: Path, osc52: Callable[[str], None]) -> JobDone:
    return JobDone(send(tab_separated(exhibit.table()), directory, osc52))


def grid_exhibit(grid: Grid, name: str) -> Exhibit | None:
    """The table that a grid shows; None when it has no rows."""
    source = grid.source
    return None if source is None or not grid.count else Exhibit(name, partial(of_pages, source))


Answer = TypeVar("Answer")
ScreenResult = TypeVar("ScreenResult")


class Reads(Outspoken, Widget):
    """What reads the workspace: in a thread, on a connection of its own, the answer coming back as a message."""

    @property
    def sfumato(self) -> Host:
        """The app."""
        return host(self.app)

    @work(thread=True, exclusive=True, group="read", exit_on_error=False)
    def read(self, query: Callable[[Workspace], Answer], arrived: Callable[[Answer], Message]) -> None:
        """Post ``arrived(query(workspace))``; a later call makes an earlier answer void."""
        worker = get_current_worker()
        message: Message
        try:
            with Workspace.open(self.sfumato.directory, read_only=True) as workspace:
                message = arrived(query(workspace))
        except (sqlite3.Error, WorkspaceError) as error:
            message = Trouble(f"The workspace cannot be read: {error}")
        if not worker.is_cancelled:
            self.post_message(message)


class Page(Backdrop, SinglePaintScreen[None], Exhibits, Reads):
    """A screen with a title line above and the keys below."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """Textual repaints the whole screen when the focus moves; the widgets concerned repaint themselves."""

    def compose(self) -> ComposeResult:
        """Title line, body, keys."""
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
        """Read it again."""
        self.reload()

    def reload(self) -> None:
        """Read again what is shown."""

    def say_where(self, *parts: tuple[str, str] | str) -> None:
        """Put words, or words with a style, into the title line."""
        self.query_one("#where", Line).say(Content.assemble(("Sfumato", "$primary bold"), *parts))


class Pane(Backdrop, Vertical, Reads):
    """One tab of a project: shows what one run found, and reads it only while it is looked at."""

    line: RunLine | None = None

    def show(self, line: RunLine | None) -> None:
        """Show this run; what was read already is kept unless the run has come further."""
        changed = stage(line) != stage(self.line)
        self.line = line
        if changed:
            self.load()

    def load(self) -> None:
        """Read what the pane shows of ``line``."""

    def take_focus(self) -> None:
        """Give the focus to what the keys are for."""

    def exhibit(self) -> Exhibit | None:
        """What the pane shows, to be written to a file or copied; None when that is nothing."""
        return None

    def named(self, what: str) -> str:
        """``run-3-results``."""
        return what if self.line is None else f"run-{self.line.run.id}-{what}"


def stage(line: RunLine | None) -> tuple[object, ...]:
    """Which run, and how far it has come: while this is the same, so is what it found."""
    return () if line is None else (line.run.id, line.run.state, line.run.tasks_done)


class Dialog(SinglePaintScreen[ScreenResult], Outspoken, ModalScreen[ScreenResult]):
    """Something asked or told above a screen; q and escape close it.

    The screen below stands as it is: blending its colours takes longer than painting the dialog, and sends it all again. What
    fills the terminal, of the class ``whole``, hides it.
    """

    DEFAULT_CSS = "Dialog { background: transparent; }"

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="dialog.close"),
    ]

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is behind the dialog, where any of it is to be seen."""
        if any(child.has_class("whole") for child in self.children):
            return [Strip.blank(crop.width, self.rich_style)] * crop.height
        return super().render_lines(crop)

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


KINDS = {".csv": ".csv          the numbers", ".svg": ".svg or .png  the plot"}


class Export(Dialog[Path]):
    """Answers a file that is not there yet, in a directory that is."""

    AUTO_FOCUS = "Input"

    def __init__(self, exhibit: Exhibit) -> None:
        super().__init__()
        self._exhibit = exhibit

    def compose(self) -> ComposeResult:
        """What can be written, the file's name, and what is wrong with it."""
        kinds = "\n".join(KINDS[suffix] for suffix in self._exhibit.suffixes if suffix in KINDS)
        with Vertical(classes="dialog"):
            yield Static("Write to a file   (enter writes, escape closes)", classes="dialog-title", markup=False)
            yield Static(f"{kinds}\n", markup=False)
            name = f"{self._exhibit.name}{self._exhibit.suffixes[-2 if self._exhibit.figure else 0]}"
            yield Entry(str(Path.cwd() / name), suggester=PathName(), id="export-path")
            yield Static("", id="export-wrong", markup=False)

    @on(Input.Changed)
    def _forget(self) -> None:
        self.query_one("#export-wrong", Static).update("")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(check_path(self._exhibit, event.value))
        except NotExported as error:
            self.query_one("#export-wrong", Static).update(str(error))
