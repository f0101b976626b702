"""Interface of the app that its screens use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

    from ..terminal.painting import SinglePaintScreen
    from .dial_memory import DialMemory
    from .gate_answers import GateMemory
    from .lever_memory import LeverMemory
    from .reading_notice import ReadingNotice
    from .state import AppState


class AppProtocol(Protocol):
    """App as its screens see it; the screens do not import the app itself."""

    @property
    def owns_process(self) -> bool:
        """Return whether the process runs nothing but the app."""

    @property
    def directory(self) -> Path: ...

    @property
    def state(self) -> AppState: ...

    @property
    def reading_notice(self) -> ReadingNotice:
        """Return the notice that a file is being read."""

    @property
    def gate_memory(self) -> GateMemory:
        """Return the gate's answers of this session."""

    @property
    def dial_memory(self) -> DialMemory:
        """Return the numbers of the intruder's dial of this session."""

    @property
    def lever_memory(self) -> LeverMemory:
        """Return the levers and their trials of this session."""

    @property
    def own_keys(self) -> Mapping[str, str]:
        """Return the keys that the user has changed, by the name of their binding."""

    def remember(self, **changes: Any) -> None:
        """Change the state that is kept between sessions, and save it."""

    def refresh_page(self) -> None:
        """Make the current screen read the workspace again."""

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        """Show a message for some seconds, and keep it in the list of notices."""

    def note_command(self, words: tuple[str, ...]) -> None:
        """Remember the words of the command that does what was just done."""

    def note_change(self, text: str) -> None:
        """Remember the line of a recipe that was just changed."""

    async def open(self, screen: SinglePaintScreen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Show a screen above the others; ``on_answer`` is called with its answer."""

    async def open_project(self, project_id: int, run_id: int | None = None, tab: str = "runs") -> None:
        """Show a project above the list of projects."""

    def job(self, task: Callable[[], Message]) -> object:
        """Run a task on the workspace in a thread and post the message that it returns."""

    def run_again(self, run_id: int) -> None: ...

    def resume_run(self, run_id: int) -> None: ...

    def interrupt_run(self, run_id: int) -> None: ...

    def call_later(self, callback: Any, *args: Any) -> Any:
        """Call a function after the current message has been handled."""

    def call_from_thread(self, callback: Any, *args: Any, **named: Any) -> Any:
        """Call a function in the app's thread."""

    def copy_to_clipboard(self, text: str) -> None:
        """Send text to the terminal's clipboard (OSC 52)."""


def app_of(app: App[Any]) -> AppProtocol:
    return cast("AppProtocol", app)
