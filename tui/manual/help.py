"""The acts of the place below, in groups with their keys; enter runs one. A key that is pressed says what it does."""

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

from sfumato.tui.keys.acts import ACTS, BY_KEY, BY_NAME, Act, act_of, bind
from sfumato.tui.keys.own_keys import MODIFIERS, key_text
from sfumato.tui.widgets.entries import Filter
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.panel import Box
from sfumato.tui.widgets.tables import Table, TableColumn

from ..parts.page import Dialog
from ..parts.tables import TableScreen

ELSEWHERE = "Elsewhere"
HINT = "Press a key to find what it does"


@dataclass(frozen=True)
class HelpAct:
    """What an act does in a place, and with which ``keys`` now; ``run`` is the action and whose it is, None where it does nothing."""

    act: Act
    label: str
    keys: tuple[str, ...]
    run: tuple[str, DOMNode] | None = None

    @property
    def shown(self) -> str:
        return " ".join(map(key_text, self.keys))

    @property
    def group(self) -> str:
        return self.act.group if self.run else ELSEWHERE


def acts_here(screen: Screen[Any]) -> list[HelpAct]:
    """The acts that can be done on a screen, in the order of their table."""
    found: dict[tuple[str, str, int], tuple[list[str], str, DOMNode]] = {}
    for active in screen.active_bindings.values():
        act = act_of(active.binding)
        if act is not None and active.enabled:
            entry = (act.name, active.binding.action, id(active.node))
            keys, *_ = found.setdefault(entry, ([], active.binding.description, active.node))
            keys.append(active.binding.key)
    here = [
        HelpAct(BY_NAME[name], label, tuple(key for key in keys if not key.startswith("act:")), (action, node))
        for (name, action, _), (keys, label, node) in found.items()
    ]
    order = {act.name: place for place, act in enumerate(ACTS)}
    return sorted(here, key=lambda one: order[one.act.name])


def acts_elsewhere(here: Iterable[HelpAct]) -> list[HelpAct]:
    """The acts that do nothing here."""
    known = {one.act for one in here}
    return [HelpAct(act, act.does, act.keys) for act in ACTS if act not in known]


def matching(entries: Iterable[HelpAct], words: str) -> list[HelpAct]:
    """Those of a key that is typed as it is, then those in whose words all of ``words`` occur; all without words."""
    wanted, listed = words.lower().split(), list(entries)
    by_key = [one for one in listed if words and (words in one.keys or words in one.shown.split())]
    texts = {one: f"{one.label} {one.act.does} {one.group}".lower() for one in listed}
    return [*by_key, *(one for one in listed if one not in by_key and all(word in texts[one] for word in wanted))]


def does_nothing(key: str) -> str:
    """What a key says that does nothing in a place."""
    act = BY_KEY.get(key)
    return f"{key_text(key)}{f' ({act.does})' if act else ''} does nothing here"


def _table(entries: Sequence[HelpAct]) -> Table[HelpAct]:
    first = {one: at == 0 or entries[at - 1].group != one.group for at, one in enumerate(entries)}
    longest = max((len(one.shown) for one in entries), default=0)
    return Table(
        (
            TableColumn("group", "", 15, cell=lambda one: one.group if first[one] else ""),
            TableColumn("keys", "key", min(max(longest, 6), 16), cell=lambda one: one.shown),
            TableColumn("does", "act", 30, grows=1, cell=lambda one: one.label),
        )
    )


class Keys(TableScreen[HelpAct], Dialog[HelpAct]):
    """Answers the act that is to be run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("filter", "search", "Search", show=True),
    ]
    AUTO_FOCUS = "Grid"
    DEFAULT_CSS = """
    #keys-words { display: none; } #keys-words.asked { display: block; }
    Keys LiveGrid { height: 1fr; }
    """
    called = "keys"

    def __init__(self, here: Sequence[HelpAct]) -> None:
        super().__init__()
        self._here, self._elsewhere = here, acts_elsewhere(here)

    def compose(self) -> ComposeResult:
        """A title, the acts, what a key does that was pressed, and the field for words."""
        with Box("Keys of this place", "enter runs one, / searches, q closes", tall=True):
            yield LiveGrid(empty="No act has these words.")
            yield Line(name="keys-said")
            yield Filter(placeholder="words of what it does, or a key such as R or ctrl+r", id="keys-words")

    def on_mount(self) -> None:
        """All acts of the place."""
        self._show("")
        self._say(HINT)

    def _say(self, text: str) -> None:
        self.query_one("#keys-said", Line).say(text)

    def _show(self, words: str) -> None:
        found = matching(self._here, words)
        if words:
            found += matching(self._elsewhere, words)
        self.show_rows(_table(found), found)

    def action_search(self) -> None:
        field = self.query_one(Filter)
        field.add_class("asked")
        field.focus()

    def on_key(self, event: events.Key) -> None:
        """Go to the act of a key, or say that it does nothing; some terminals tell of a shift key by itself."""
        if isinstance(self.focused, Input) or event.key in self.active_bindings or event.key in MODIFIERS:
            return
        event.stop()
        at = next((place for place, one in enumerate(self._here) if event.key in one.keys), None)
        if at is None:
            self._say(does_nothing(event.key))
            return
        self._show("")
        self.grid.cursor = at
        self._say(f"{key_text(event.key)}: {self._here[at].label}; enter runs it")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value.strip())

    @on(Input.Submitted)
    def _keep(self) -> None:
        self.grid.focus()

    @on(Filter.Left)
    def _leave(self) -> None:
        field = self.query_one(Filter)
        self.grid.focus()
        field.value = ""
        field.remove_class("asked")

    async def chosen(self, row: HelpAct) -> None:
        if row.run is None:
            self._say(f"{row.label} is an act of another place")
        else:
            self.dismiss(row)
