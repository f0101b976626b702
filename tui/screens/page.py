"""What the screens share: reading in threads, a title line, and keys that lead out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual import work
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
from textual.worker import get_current_worker

from sfumato.tui.app_protocol import Host, host
from sfumato.tui.export import Exhibit
from sfumato.tui.messages import Trouble, WorkspaceChanged
from sfumato.tui.widgets.key_line import KeyLine
from sfumato.tui.widgets.line import Line
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.runs import RunLine

from ..terminal.painting import Backdrop, SinglePaintScreen
from .exhibiting import Exhibits
from .worker_errors import Outspoken

__all__ = ["Dialog", "Page", "Pane", "Reads", "stage"]

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
