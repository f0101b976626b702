"""Fields to type in or to choose from, completion of typed text, and an editor for a recipe's text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.panel import SECOND

WORD = re.compile(r"[^\s,:()=\[\]{}\"]*$")
TOML = re.compile(
    r"(?P<comment>#.*)|(?P<string>\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*')|(?P<header>^\s*\[\[?[^\]=]*\]\]?(?=\s*(?:#|$)))"
    r"|(?P<key>(?:[A-Za-z0-9_.-]+|\"[^\"]*\")(?=\s*=))"
)
"""Parts of a line of TOML that have a colour of their own; strings over several lines have none."""
LEAST_OF_TABLE = 6
"""Lines of a table that must be in view with its header."""


class EntryField(Input):
    """Text field in Textual's compact style.

    The screen handles the keys in ``leaves`` first; keys that it does not use are typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "submit", "Accept", show=True)]
    open_word: str | None
    """What enter does here, as the footer says it; None for accepting the text."""

    def __init__(
        self,
        value: str = "",
        placeholder: str = "",
        *,
        suggester: Suggester | None = None,
        select_on_focus: bool = True,
        leaves: Sequence[str] = (),
        open_word: str | None = None,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str = "",
    ) -> None:
        """Create the field with a text and a placeholder; ``open_word`` is what enter does there."""
        self.open_word = open_word
        self._leaves = frozenset(leaves)
        super().__init__(
            value,
            placeholder,
            suggester=suggester,
            select_on_focus=select_on_focus,
            compact=True,
            id=id,
            # Textual styles a compact field before it has its place in the tree; with the class given here it is styled
            # once.
            classes=f"{classes} -textual-compact",
        )
        # A blinking cursor sends bytes to the terminal while nothing happens.
        self.set_reactive(Input.cursor_blink, False)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether a key is typed without asking the screen first."""
        return key not in self._leaves and super().check_consume_key(key, character)

    async def action_cursor_right(self, select: bool = False) -> None:  # type: ignore[override]  # Textual awaits it
        """Complete the text if the cursor is at its end, otherwise move right."""
        # The suggestion may not have come yet, and the key would be lost.
        suggester = None if select or not self.cursor_at_end or not self.value else self.suggester
        completed = None if suggester is None else await suggester.get_suggestion(self.value)
        if completed is not None:
            self.value, self.cursor_position = completed, len(completed)
            return
        super().action_cursor_right(select)


class FilterField(EntryField):
    """Field for the words that rows must contain; escape cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("back", "leave", "Leave")]

    class FilterCancelled(Message):
        """Message that the user cancels filtering."""

    def action_leave(self) -> None:
        """Cancel filtering."""
        self.post_message(self.FilterCancelled())


class LastWordSuggester(Suggester):
    """Suggester that completes the word being typed, from ``words``."""

    def __init__(self, words: Sequence[str]) -> None:
        """Create the suggester with the words."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._words = tuple(words)

    async def get_suggestion(self, value: str) -> str | None:
        """Complete the last word of the text, ignoring case; words of the same case come first.

        Return None if none begins so.
        """
        found = WORD.search(value)
        begun = found.group() if found else ""
        able = [word for word in self._words if begun and word.lower().startswith(begun.lower()) and word != begun]
        whole = next((word for word in able if word.startswith(begun)), able[0] if able else None)
        return None if whole is None else value[: len(value) - len(begun)] + whole


class PathSuggester(Suggester):
    """Suggester that completes the last part of a path, a directory with its slash; hidden names only after a dot.

    With ``last`` the path follows the last comma.
    """

    def __init__(self, *, last: bool = False) -> None:
        """Create the suggester."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._last = last

    async def get_suggestion(self, value: str) -> str | None:
        """Complete the last part of the path to the first name that begins so; return None without such a name."""
        before, path = re.fullmatch(r"(.*,\s*)?(.*)", value, re.DOTALL).groups("") if self._last else ("", value)  # type: ignore[union-attr]
        # A directory on a network drive can take long to list.
        completed = await asyncio.to_thread(_complete_path, path)
        return None if completed is None else f"{before}{completed}"


def _complete_path(value: str) -> str | None:
    """Return the path completed to the first matching name; None if there is none or the directory cannot be read."""
    parent, slash, begun = value.rpartition("/")
    if not value:
        return None
    try:
        directory = Path(f"{parent}{slash}" or ".").expanduser()
        names = sorted(path.name + "/" * path.is_dir() for path in directory.iterdir() if path.name.startswith(begun))
    except (OSError, RuntimeError):
        return None
    found = next((name for name in names if name != begun and (begun or not name.startswith("."))), None)
    return None if found is None else f"{parent}{slash}{found}"


NO_BREAK = "\u00a0"


class ChoiceField(Widget, can_focus=True):
    """Field that shows its values with the chosen one in brackets, in as many lines as they need."""

    DEFAULT_CSS = "ChoiceField { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("right", "step(1)", "Next choice"),
        bind_act("mark", "step(1)", "Next choice"),
        bind_act("left", "step(-1)", "Previous choice"),
    ]

    value: reactive[str] = reactive("")

    @dataclass
    class ChoiceChanged(Message):
        """Message that another value was chosen."""

        choice: ChoiceField

        @property
        def control(self) -> ChoiceField:
            """Return the field, for ``@on`` with a selector."""
            return self.choice

    def __init__(
        self,
        words: Sequence[str],
        value: str,
        *,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str | None = None,
    ) -> None:
        """Create the field with its values and the chosen one."""
        super().__init__(id=id, classes=classes)
        self._words = tuple(words)
        self.set_reactive(ChoiceField.value, value)

    def render(self) -> Content:
        """Return the values as text whose lines break between values."""
        chosen = "reverse bold" if self.has_focus else "bold"
        parts = [
            # A value of several words stays in one line.
            (f"[{w}]".replace(" ", NO_BREAK), chosen)
            if w == self.value
            else (f" {w.replace(' ', NO_BREAK)} ", "$text-muted")
            for w in self._words
        ]
        # A value from a recipe need not be among the offered ones; it is shown until another one is chosen.
        if self.value not in self._words:
            parts.insert(0, (f"[{self.value}]", chosen))
        return Content.assemble(*parts)

    def action_step(self, by: int) -> None:
        """Choose the next value or the previous one."""
        at = self._words.index(self.value) if self.value in self._words else -1
        self.value = self._words[(at + by) % len(self._words)]
        self.post_message(self.ChoiceChanged(self))


class PagedOptionList(OptionList):
    """List of options that can be paged even if the terminal is too small to show a line of it."""

    def action_page_down(self) -> None:
        """Move a page down if a line is visible."""
        # Textual's own method fails without a visible line.
        if self.scrollable_content_region:
            super().action_page_down()  # type: ignore[no-untyped-call]

    def action_page_up(self) -> None:
        """Move a page up if a line is visible."""
        if self.scrollable_content_region:
            super().action_page_up()  # type: ignore[no-untyped-call]


class TomlText(TextArea):
    """Editor for the text of a plan, with tables, keys, strings and comments each in a colour."""

    DEFAULT_CLASSES = SECOND
    pane_title = "TOML"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"toml--header", "toml--key", "toml--string", "toml--comment"}
    DEFAULT_CSS = """
    TomlText > .toml--header { color: $text-accent; text-style: bold; }
    TomlText > .toml--key { color: $text-primary; }
    TomlText > .toml--string { color: $text-success; }
    TomlText > .toml--comment { color: $text-muted; text-style: italic; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("back", "leave", "Back to the list", show=True),
    ]

    class EditingEnded(Message):
        """Message that the user has finished with the text."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        """Create the editor."""
        super().__init__(id=id, compact=True, soft_wrap=True, highlight_cursor_line=False)
        self.cursor_blink = False

    def action_leave(self) -> None:
        self.post_message(self.EditingEnded())

    def get_line(self, line_index: int) -> Text:
        """Return a line with its colours."""
        line = super().get_line(line_index)
        for found in TOML.finditer(line.plain):
            # Partial, so that the line under the cursor keeps its background.
            colours = self.get_component_rich_style(f"toml--{found.lastgroup}", partial=True)
            line.stylize(colours, found.start(), found.end())
        return line

    def show_table(self, section: str, index: int) -> None:
        """Scroll to a table, ``[section]`` or the ``[[section]]`` with this index, and put the cursor on it.

        The view does not move if the table is visible.
        """
        header = re.compile(rf"\s*\[\[?\s*{re.escape(section)}\s*\]")
        rows = [row for row, line in enumerate(self.document.lines) if header.match(line)]
        if index < len(rows):
            self.move_cursor((rows[index], 0))
            shown_at = self.wrapped_document.location_to_offset((rows[index], 0)).y
            top, lines = round(self.scroll_y), self.size.height
            # Scrolling with every step of the cursor in the list would be hard to follow.
            if not top <= shown_at <= top + lines - LEAST_OF_TABLE:
                self.scroll_to(y=max(0, shown_at - 1), animate=False)
