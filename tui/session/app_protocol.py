"""What screens ask of the app that they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

    from ..terminal.painting import SinglePaintScreen
    from .gate_answers import GateMemory
    from .reading_notice import ReadingNotice
    from .state import AppState


class AppProtocol(Protocol):
    """The app, as its screens know it: they are below it, and do not import it."""

    @property
    def alone(self) -> bool:
        """Whether the process is there for nothing but the app."""

    @property
    def directory(self) -> Path: ...

    @property
    def state(self) -> AppState: ...

    @property
    def reading_notice(self) -> ReadingNotice:
        """The message that a file is being read."""

    @property
    def gate_memory(self) -> GateMemory:
        """What the gate answered in this session."""

    @property
    def own_keys(self) -> Mapping[str, str]:
        """The keys that the user has changed, by the name of their binding."""

    def remember(self, **changes: Any) -> None:
        """Change what is kept between sessions, and write it down."""

    def refresh_page(self) -> None:
        """Have the screen read the workspace again."""

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        """Show a message for a while, and keep it."""

    def note_command(self, words: tuple[str, ...]) -> None:
        """Remember the words of the command that does what was just done."""

    def note_change(self, text: str) -> None:
        """Remember the line of a recipe that was just changed."""

    async def open(self, screen: SinglePaintScreen[Any], answered: Callable[[Any], None] | None = None) -> None:
        """Show a screen above the others; ``answered`` is given what it ends with."""

    async def open_project(self, project_id: int, run_id: int | None = None, tab: str = "runs") -> None:
        """Show a project above the list of projects."""

    def job(self, task: Callable[[], Message]) -> object:
        """Do something to the workspace in a thread; what it returns is posted to the app."""

    def run_again(self, run_id: int) -> None: ...

    def resume(self, run_id: int) -> None: ...

    def interrupt(self, run_id: int) -> None: ...

    def call_later(self, callback: Any, *args: Any) -> Any:
        """Call something when what is being handled has been handled."""

    def call_from_thread(self, callback: Any, *args: Any, **named: Any) -> Any:
        """Have the app's thread call something."""

    def copy_to_clipboard(self, text: str) -> None:
        """Send OSC 52 to the terminal."""


def app_of(app: App[Any]) -> AppProtocol:
    return cast("AppProtocol", app)
