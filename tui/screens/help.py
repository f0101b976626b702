"""The keys of the screen below, searched by word and by key, and the keys of the same meaning or name on other screens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.keys import format_key
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static

from sfumato.tui.own_keys import MODIFIERS
from sfumato.tui.widgets.entries import Filter
from sfumato.tui.widgets.lines import Scroll

from .page import Dialog

SECTIONS = {
    "Grid": "Table",
    "Plot": "Plot",
    "Scroll": "Text",
    "TabLine": "Tabs",
    "Input": "Text field",
    "TextArea": "Text editor",
}
EVERYWHERE, HERE = "Everywhere", "This screen"
OUR_WORDS = {"Focus Next": "Next pane", "Focus Previous": "Previous pane"}
"""For what the toolkit's own keys do."""
TITLE = "Keys that work here   (/ searches, other keys say what they do, q closes)"


@dataclass(frozen=True)
class HelpKey:
    """What keys do: ``shown`` as the terminal names them, ``keys`` as bindings do."""

    section: str
    does: str
    shown: tuple[str, ...]
    keys: tuple[str, ...]


def section_of(node: object) -> str:
    """The section of help that the keys of a widget stand in; empty for those of a screen or tab."""
    kinds = [kind.__name__ for kind in type(node).__mro__]
    return next((SECTIONS[kind] for kind in kinds if kind in SECTIONS), "")


def help_keys(screen: Screen[object]) -> list[HelpKey]:
    """The keys that are active on a screen, section by section, those of everywhere at the end."""
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for active in screen.active_bindings.values():
        binding, node = active.binding, active.node
        if binding.description:
            section = EVERYWHERE if node is screen.app else section_of(node) or HERE
            does = OUR_WORDS.get(binding.description, binding.description)
            shown, keys = found.setdefault((section, does), ([], []))
            shown.append(screen.app.get_key_display(binding))
            keys.append(binding.key)
    order = list(dict.fromkeys(section for section, _ in found))
    order.sort(key=lambda section: section == EVERYWHERE)
    return [
        HelpKey(section, does, tuple(shown), tuple(keys))
        for one in order
        for (section, does), (shown, keys) in found.items()
        if section == one
    ]


def keys_elsewhere(here: Iterable[HelpKey]) -> list[HelpKey]:
    """The keys that screens and tabs have which are not shown now. Imports them all."""
    from ..keymap import bindings

    known = {(key, one.does) for one in here for key in one.keys}
    found = []
    for bound in bindings():
        keys = tuple(key for key in bound.keys if (key, bound.description) not in known)
        if bound.description and len(keys) == len(bound.keys):
            where = f"Elsewhere: {bound.id.partition('.')[0].replace('_', ' ')}"
            found.append(HelpKey(where, bound.description, tuple(map(format_key, keys)), keys))
    return found


def matching(keys: Iterable[HelpKey], words: str, *, pressed: bool = False) -> list[HelpKey]:
    """Those of a key that is typed as it is, then, where it was not ``pressed``, those in whose words all of ``words`` occur; all without words."""
    entries = list(keys)
    wanted = words.lower().split()
    by_key = [one for one in entries if words and (words in one.keys or words in one.shown)]
    by_word = [
        one
        for one in entries
        if not pressed and one not in by_key and all(word in f"{one.does} {one.section}".lower() for word in wanted)
    ]
    return [*by_key, *by_word]


def keys_text(entries: Sequence[HelpKey]) -> Content:
    """A line for what keys do, below the section that it stands in."""
    lines: list[Content] = []
    section = None
    for one in entries:
        if one.section != section:
            lines += [Content("")] * bool(lines)
            lines.append(Content.styled(one.section, "$primary bold"))
            section = one.section
        lines.append(Content.assemble((f"  {', '.join(one.shown):<22} ", "bold"), one.does))
    return Content("\n").join(lines)


class Keys(Dialog[None]):
    """The keys of the screen below; ``/`` searches them, and any other key is looked up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/", id="keys.search"),
    ]
    AUTO_FOCUS = "Scroll"
    DEFAULT_CSS = "#keys-words { display: none; } #keys-words.asked { display: block; }"

    @dataclass
    class Known(Message):
        """The keys of the other screens were looked up."""

        keys: Sequence[HelpKey]

    def __init__(self, keys: Sequence[HelpKey]) -> None:
        super().__init__()
        self._here = keys
        self._elsewhere: Sequence[HelpKey] = ()
        self._words, self._pressed = "", False

    def compose(self) -> ComposeResult:
        """A title, text that scrolls, and the field for words."""
        with Vertical(classes="dialog tall"):
            yield Static(TITLE, classes="dialog-title", markup=False)
            yield Scroll(keys_text(self._here))
            yield Filter(placeholder="words of what it does, or a key such as R or ctrl+r", id="keys-words")

    def on_mount(self) -> None:
        """What other screens have is looked up meanwhile."""
        self._look_elsewhere()

    @work(thread=True, exit_on_error=False)
    def _look_elsewhere(self) -> None:
        self.post_message(self.Known(keys_elsewhere(self._here)))

    @on(Known)
    def _take(self, event: Known) -> None:
        self._elsewhere = event.keys
        if self._words:
            self._show()

    def action_search(self) -> None:
        field = self.query_one(Filter)
        field.add_class("asked")
        field.focus()

    def on_key(self, event: events.Key) -> None:
        """Say what a key does that does nothing here; some terminals tell of a shift key by itself."""
        if isinstance(self.focused, Input) or event.key in self.active_bindings or event.key in MODIFIERS:
            return
        event.stop()
        self._words, self._pressed = event.key, True
        self._show()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if (event.value.strip(), False) != (self._words, self._pressed):
            self._words, self._pressed = event.value.strip(), False
            self._show()

    @on(Input.Submitted)
    def _keep(self) -> None:
        self.query_one(Scroll).focus()

    @on(Filter.Left)
    def _leave(self) -> None:
        field = self.query_one(Filter)
        self.query_one(Scroll).focus()
        field.value = ""
        field.remove_class("asked")

    def _show(self) -> None:
        here = matching(self._here, self._words, pressed=self._pressed)
        found = [*here, *matching(self._elsewhere, self._words, pressed=self._pressed)] if self._words else here
        text = keys_text(found) if found else Content(f"No key and no words are like {self._words}")
        self.query_one(Static).update(
            TITLE if not self._words else f"Keys: {self._words}   (escape in / shows all, q closes)"
        )
        self.query_one(Scroll).show(text)
        self.query_one(Scroll).scroll_home(animate=False)
