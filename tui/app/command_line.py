"""A line to type a command in: a place with words to filter its rows by, or with a run, or any act by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.suggester import Suggester
from textual.widgets import Input

from sfumato.engine.errors import near_miss_hint
from sfumato.tui.keys.acts import MOVE, bind
from sfumato.tui.widgets.entries import Entry
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.store.runs import RunState

from ..manual.help import HelpAct, acts_here
from ..parts.page import Dialog
from .themes import THEMES

SYNONYMS = {"numbers": "results", "studies": "sweep", "help": "manual", "quit": "close"}
"""Other names of acts."""
LEFT_OUT = frozenset({"open", "back", "command", "palette", "next_pane"})
ARGUMENTS: Mapping[str, Sequence[str]] = {
    "runs": tuple(state.value for state in RunState),
    "theme": tuple(THEMES),
    "data": ("role:sensitive", "role:quasi-identifier", "kind:categorical", "kind:continuous"),
}
"""What completes the words behind a command."""
PLACEHOLDER = "a place or an act, such as runs failed, findings 2, report"


@dataclass(frozen=True)
class Command:
    """An act by its name, and the words behind it."""

    act: str
    words: str
    run: HelpAct


def commands_here(screen: Screen[Any]) -> dict[str, HelpAct]:
    """The acts of a screen that a command can name, by the name that is typed, in the order of their table."""
    known = {
        one.act.name.replace("_", "-"): one
        for one in acts_here(screen)
        if one.run is not None and one.act.group != MOVE and one.act.name not in LEFT_OUT
    }
    return known | {name: known[act] for name, act in SYNONYMS.items() if act in known}


def command_of(text: str, known: Mapping[str, HelpAct]) -> Command | str:
    """What a line asks for; why it asks for nothing, where it does not. A name may be cut short where only one begins so."""
    name, _, words = text.strip().removeprefix(":").strip().partition(" ")
    if not name:
        return "Type the name of a place or an act"
    begun = [one for one in known if one.startswith(name)]
    found = name if name in known else begun[0] if len({known[one].act for one in begun}) == 1 else ""
    if found:
        return Command(known[found].act.name, words.strip(), known[found])
    if begun:
        return f"{name} may be {', '.join(begun)}"
    return f'There is no command "{name}" here{near_miss_hint(name, known)}'


class CommandWords(Suggester):
    """Completes the name of a command, then the words that it knows."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """The line with its last word completed; None where nothing begins so."""
        name, blank, rest = value.partition(" ")
        offered = ARGUMENTS.get(name, ()) if blank else self._known
        begun = rest.rpartition(" ")[2] if blank else name
        found = next((one for one in offered if begun and one.startswith(begun) and one != begun), None)
        return None if found is None else value[: len(value) - len(begun)] + found


class CommandLine(Dialog[Command]):
    """Answers the command that was typed. Tab or right completes it."""

    BINDINGS: ClassVar[list[BindingType]] = [bind("next_pane", "complete", "Complete")]
    AUTO_FOCUS = "Input"
    DEFAULT_CSS = """
    CommandLine #command-offers { color: $text-muted; padding: 0; }
    """

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._known = commands_here(screen)

    def compose(self) -> ComposeResult:
        """The line, and below it what begins so."""
        with Box("Command", "tab completes, enter runs it, esc closes"):
            yield Entry(placeholder=PLACEHOLDER, suggester=CommandWords(tuple(self._known)))
            yield Line(name="command-offers")

    def on_mount(self) -> None:
        self._offer("")

    def _say(self, text: str) -> None:
        self.query_one("#command-offers", Line).say(text)

    def _offer(self, value: str) -> None:
        name, blank, _ = value.partition(" ")
        offered = ARGUMENTS.get(name, ()) if blank else [one for one in self._known if one.startswith(name)]
        self._say("  ".join(offered))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._offer(event.value)

    async def action_complete(self) -> None:
        """Take what completes the line."""
        entry = self.query_one(Entry)
        found = await CommandWords(tuple(self._known)).get_suggestion(entry.value)
        if found is not None:
            entry.value = found
            entry.cursor_position = len(found)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        found = command_of(event.value, self._known)
        if isinstance(found, str):
            self._say(found)
        else:
            self.dismiss(found)
