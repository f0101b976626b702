"""Dialog with the acts of the place below, in groups with their keys; enter runs one, and pressing a key
finds its act.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Input

from sfumato.tui.keys.acts import ACTS, BY_KEY, BY_NAME, KeyAct, bind_act, find_act, label_of_binding
from sfumato.tui.keys.own_keys import MODIFIERS, key_text
from sfumato.tui.widgets.entries import FilterField
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.panel import DialogBox
from sfumato.tui.widgets.tables import GridTable, TableColumn

from ..parts.page import Dialog
from ..parts.tables import TableScreen

ELSEWHERE = "Elsewhere"
HINT = "Press a key to find what it does"


@dataclass(frozen=True)
class HelpAct:
    """Act of a place with its present keys.

    act: the act
    label: what the act does there
    keys: its keys
    run: action and node that has it; None if the act does nothing there
    """

    act: KeyAct
    label: str
    keys: tuple[str, ...]
    run: tuple[str, DOMNode] | None = None

    @property
    def keys_text(self) -> str:
        """Return the keys as people read them."""
        return " ".join(map(key_text, self.keys))

    @property
    def group(self) -> str:
        """Return the heading for the act."""
        return self.act.group if self.run else ELSEWHERE


def available_acts(screen: Screen[Any]) -> list[HelpAct]:
    """Return the acts of a screen, in the order of their table."""
    found: dict[tuple[str, str, int], tuple[list[str], str, DOMNode]] = {}
    for active in screen.active_bindings.values():
        act = find_act(active.binding)
        if act is not None and active.enabled:
            entry = (act.name, active.binding.action, id(active.node))
            label = label_of_binding(active.node, active.binding)
            keys, *_ = found.setdefault(entry, ([], label or active.binding.description, active.node))
            keys.append(active.binding.key)
    here = [
        # Acts without a key are bound to one that no terminal sends.
        HelpAct(BY_NAME[name], label, tuple(key for key in keys if not key.startswith("act:")), (action, node))
        for (name, action, _), (keys, label, node) in found.items()
    ]
    order = {act.name: place for place, act in enumerate(ACTS)}
    return sorted(here, key=lambda one: order[one.act.name])


def unavailable_acts(available: Iterable[HelpAct]) -> list[HelpAct]:
    """Return the acts that do nothing in a place, given its available ones."""
    known = {one.act for one in available}
    return [HelpAct(act, act.description, act.keys) for act in ACTS if act not in known]


def filter_acts(entries: Iterable[HelpAct], words: str) -> list[HelpAct]:
    """Return the acts of a typed key, then those whose texts contain all of ``words``; all acts without words."""
    wanted, listed = words.lower().split(), list(entries)
    by_key = [one for one in listed if words and (words in one.keys or words in one.keys_text.split())]
    texts = {one: f"{one.label} {one.act.description} {one.group}".lower() for one in listed}
    # A typed letter may be a key as well as a part of a word; the key comes first.
    return [*by_key, *(one for one in listed if one not in by_key and all(word in texts[one] for word in wanted))]


def no_effect_message(key: str) -> str:
    """Return the message for a key that does nothing in a place."""
    act = BY_KEY.get(key)
    return f"{key_text(key)}{f' ({act.description})' if act else ''} does nothing here"


def _acts_table(entries: Sequence[HelpAct]) -> GridTable[HelpAct]:
    """Return the table of acts, with the heading in the first row of each group."""
    first = {one: at == 0 or entries[at - 1].group != one.group for at, one in enumerate(entries)}
    longest = max((len(one.keys_text) for one in entries), default=0)
    return GridTable(
        (
            TableColumn("group", "", 15, cell=lambda one: one.group if first[one] else ""),
            TableColumn("keys", "key", min(max(longest, 6), 16), cell=lambda one: one.keys_text),
            TableColumn("does", "act", 30, grow_order=1, cell=lambda one: one.label),
        )
    )


class KeysDialog(TableScreen[HelpAct], Dialog[HelpAct]):
    """Dialog with the acts of a place and their keys; it returns the act to run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("filter", "search", "Search", show=True),
    ]
    AUTO_FOCUS = "Grid"
    DEFAULT_CSS = """
    #keys-words { display: none; } #keys-words.asked { display: block; }
    KeysDialog LiveGrid { height: 1fr; }
    """
    id_prefix = "keys"

    def __init__(self, here: Sequence[HelpAct]) -> None:
        """Create the dialog with the acts of the place below."""
        super().__init__()
        self._here, self._elsewhere = here, unavailable_acts(here)

    def compose(self) -> ComposeResult:
        """Yield the acts, the line for a pressed key, and the field for words."""
        with DialogBox("Keys of this place", "enter runs one, / searches, q closes", tall=True):
            yield LiveGrid(empty="No act has these words.")
            yield Line(name="keys-said")
            yield FilterField(placeholder="words of its description, or a key such as R or ctrl+r", id="keys-words")

    def on_mount(self) -> None:
        """Show all acts of the place."""
        self._show_acts("")
        self._show_message(HINT)

    def _show_message(self, text: str) -> None:
        """Show a message below the list."""
        self.query_one("#keys-said", Line).set_text(text)

    def _show_acts(self, words: str) -> None:
        """Show the acts that have these words, with those of other places last."""
        found = filter_acts(self._here, words)
        if words:
            found += filter_acts(self._elsewhere, words)
        self.show_rows(_acts_table(found), found)

    def action_search(self) -> None:
        """Show the field for words."""
        field = self.query_one(FilterField)
        field.add_class("asked")
        field.focus()

    def on_key(self, event: events.Key) -> None:
        """Go to the act of a key, or show that it does nothing."""
        # Some terminals report a modifier key by itself.
        if isinstance(self.focused, Input) or event.key in self.active_bindings or event.key in MODIFIERS:
            return
        event.stop()
        at = next((place for place, one in enumerate(self._here) if event.key in one.keys), None)
        if at is None:
            self._show_message(no_effect_message(event.key))
            return
        self._show_acts("")
        self.grid.cursor = at
        self._show_message(f"{key_text(event.key)}: {self._here[at].label}; enter runs it")

    @on(Input.Changed)
    def _filter_as_typed(self, event: Input.Changed) -> None:
        """Filter the acts by the typed words."""
        self._show_acts(event.value.strip())

    @on(Input.Submitted)
    def _keep_filter(self) -> None:
        """Return to the filtered list."""
        self.grid.focus()

    @on(FilterField.FilterCancelled)
    def _clear_filter(self) -> None:
        """Show all acts again."""
        field = self.query_one(FilterField)
        self.grid.focus()
        field.value = ""
        field.remove_class("asked")

    async def open_row(self, row: HelpAct) -> None:
        """Close the dialog with the act, unless it is of another place."""
        if row.run is None:
            self._show_message(f"{row.label} is an act of another place")
        else:
            self.dismiss(row)
