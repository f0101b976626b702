"""Entries of the command palette: every act of the place below with its key, and functions that are not acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import OptionList

from ..keys.acts import MOVE, PLACES
from ..keys.own_keys import key_text
from ..manual.help import HelpAct, available_acts

GAP = "   "
"""Gap between a command and its key."""
ACTS_LEFT_OUT = frozenset({"open", "back", "close", "palette", "command"})
"""Acts that nobody needs to search for."""


class ActPalette(CommandPalette):
    """Palette that does not fail if a page is turned while its list has no line, as Textual's does."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable keys of the list while it has no line."""
        found = next(iter(self.query(OptionList)), None)
        return not (action == "command_list" and found is not None and not found.scrollable_content_region)


def palette_commands(app: App[Any], screen: Screen[Any]) -> Iterator[SystemCommand]:
    """Yield the acts of the place, then the functions that are not acts."""
    titles: set[str] = set()
    in_footer = getattr(screen, "in_footer", lambda _: True)
    for one in available_acts(screen):
        title = one.act.description if one.act.group == PLACES or one.label in titles else one.label
        if (
            one.run is None
            or not in_footer(one.run[0])
            or one.act.group == MOVE
            or one.act.name in ACTS_LEFT_OUT
            or title in titles
        ):
            continue
        titles.add(title)
        yield SystemCommand(_title_with_key(title, one), one.act.group, partial(app.run_action, *one.run))
    for title, text, action in _functions_without_act(app):
        yield SystemCommand(title, text, action)


def _title_with_key(title: str, one: HelpAct) -> str:
    """Return a title followed by the act's first key."""
    return f"{title}{GAP}{key_text(one.keys[0])}" if one.keys else title


def _functions_without_act(app: App[Any]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield (title, description, function) for each function that is not an act."""

    def act(name: str) -> Callable[[], Any]:
        """Return the function that runs an action of the app."""
        return partial(app.run_action, f"app.{name}")

    yield "Own keys", "Which file changes keys", act("keys_file")
    yield "Messages", "The messages of this session", act("notices")
    yield "When a run ends", "Nothing, the bell, or a message of the desktop", act("when_run_ends")
    yield "Save picture", "Write this screen to an SVG file", app.deliver_screenshot
    yield "Quit", "Quit the app; runs keep running", act("quit")
