"""Line to type a command in: a place with words to filter its rows by, or with a run, or any act by its name."""

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
from sfumato.tui.keys.acts import MOVE, bind_act
from sfumato.tui.widgets.entries import EntryField
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.store.runs import RunState

from ..manual.help import HelpAct, available_acts
from ..parts.page import Dialog
from .themes import THEMES

SYNONYMS = {"numbers": "results", "studies": "sweep", "help": "manual", "quit": "close"}
"""Other names of acts that can be typed."""
ACTS_WITHOUT_COMMAND = frozenset({"open", "back", "command", "palette", "next_pane"})
ARGUMENTS: Mapping[str, Sequence[str]] = {
    "runs": tuple(state.value for state in RunState),
    "theme": tuple(THEMES),
    "data": ("role:sensitive", "role:quasi-identifier", "kind:categorical", "kind:continuous"),
}
"""Completions of the words after a command."""
PLACEHOLDER = "a place or an act, such as runs failed, findings 2, report"


@dataclass(frozen=True)
class TypedCommand:
    """Typed act with the words after it.

    act: name of the act
    words: the words
    run: the act on the screen
    """

    act: str
    words: str
    run: HelpAct


def available_commands(screen: Screen[Any]) -> dict[str, HelpAct]:
    """Return the acts of a screen that can be typed, by typed name, in the order of their table."""
    known = {
        one.act.name.replace("_", "-"): one
        for one in available_acts(screen)
        if one.run is not None and one.act.group != MOVE and one.act.name not in ACTS_WITHOUT_COMMAND
    }
    return known | {name: known[act] for name, act in SYNONYMS.items() if act in known}


def parse_command(text: str, known: Mapping[str, HelpAct]) -> TypedCommand | str:
    """Return the command of a typed line, or the problem as text. A name may be shortened if it stays unambiguous."""
    name, _, words = text.strip().removeprefix(":").strip().partition(" ")
    if not name:
        return "Type the name of a place or an act"
    # Synonyms of one act begin alike without being ambiguous.
    begun = [one for one in known if one.startswith(name)]
    found = name if name in known else begun[0] if len({known[one].act for one in begun}) == 1 else ""
    if found:
        return TypedCommand(known[found].act.name, words.strip(), known[found])
    if begun:
        return f"{name} may be {', '.join(begun)}"
    return f'There is no command "{name}" here{near_miss_hint(name, known)}'


class CommandSuggester(Suggester):
    """Suggester that completes the name of a command, then the words that the command knows."""

    def __init__(self, known: Sequence[str]) -> None:
        """Create the suggester with the names of commands."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """Return the line with its last word completed; None if no completion begins so."""
        name, blank, rest = value.partition(" ")
        offered = ARGUMENTS.get(name, ()) if blank else self._known
        begun = rest.rpartition(" ")[2] if blank else name
        found = next((one for one in offered if begun and one.startswith(begun) and one != begun), None)
        return None if found is None else value[: len(value) - len(begun)] + found


class CommandLine(Dialog[TypedCommand]):
    """Dialog with a field for a command, which it returns. Tab or right completes it."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("next_pane", "complete", "Complete")]
    AUTO_FOCUS = "Input"
    DEFAULT_CSS = """
    CommandLine #command-offers { color: $text-muted; padding: 0; }
    """

    def __init__(self, screen: Screen[Any]) -> None:
        """Create the dialog with the acts of a screen."""
        super().__init__()
        self._known = available_commands(screen)

    def compose(self) -> ComposeResult:
        """Yield the field, and below it the completions."""
        with DialogBox("Command", "tab completes, enter runs it, esc closes"):
            yield EntryField(placeholder=PLACEHOLDER, suggester=CommandSuggester(tuple(self._known)))
            yield Line(name="command-offers")

    def on_mount(self) -> None:
        self._show_completions("")

    def _show_text(self, text: str) -> None:
        """Show a text below the field."""
        self.query_one("#command-offers", Line).set_text(text)

    def _show_completions(self, value: str) -> None:
        """Show the completions of a line."""
        name, blank, _ = value.partition(" ")
        offered = ARGUMENTS.get(name, ()) if blank else [one for one in self._known if one.startswith(name)]
        self._show_text("  ".join(offered))

    @on(Input.Changed)
    def _update_completions(self, event: Input.Changed) -> None:
        """Show the completions of the typed line."""
        self._show_completions(event.value)

    async def action_complete(self) -> None:
        """Insert the completion."""
        entry = self.query_one(EntryField)
        found = await CommandSuggester(tuple(self._known)).get_suggestion(entry.value)
        if found is not None:
            entry.value = found
            entry.cursor_position = len(found)

    @on(Input.Submitted)
    def _answer_command(self, event: Input.Submitted) -> None:
        """Close the dialog with the command, or show the problem."""
        found = parse_command(event.value, self._known)
        if isinstance(found, str):
            self._show_text(found)
        else:
            self.dismiss(found)
