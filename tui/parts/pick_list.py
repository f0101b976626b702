"""Dialog to choose from a list with search: one entry, or several in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import EntryField, PagedOptionList
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from .offers import OfferedValue, search_offers
from .page import Dialog

MOST_SHOWN = 200
WIDEST = 44
AS_TYPED = "as typed"


class PickList(Dialog[tuple[str, ...]]):
    """Dialog that returns the chosen values: one, or with ``several`` the marked ones in the order of marking.

    Typed text searches. With ``free`` a text without a match may be chosen as typed. ``joined`` is a sign that may join
    two marked values, as in the interaction ``a:b``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "step(1)", priority=True, typed=True),
        bind_act("up", "step(-1)", priority=True, typed=True),
        bind_act("page_down", "step(10)", "Ten down", priority=True, only="pagedown"),
        bind_act("page_up", "step(-10)", "Ten up", priority=True, only="pageup"),
        bind_act("mark", "mark", show=True, priority=True, only="space"),
        bind_act("mark_all", "mark_all", "Mark all that are listed", priority=True, only="asterisk"),
        bind_act("join", "join", priority=True),
        bind_act("filter", "search", "Search", priority=True, only="slash"),
    ]
    DEFAULT_CSS = """
    PickList OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    PickList #pick-marked, PickList #pick-more { height: auto; max-height: 3; color: $text-muted; }
    """
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        title: str,
        offers: Sequence[OfferedValue] = (),
        chosen: Sequence[str] = (),
        *,
        several: bool = False,
        free: bool = False,
        joined: str = "",
    ) -> None:
        """Create the dialog with entries and the values that are chosen now."""
        super().__init__()
        self._title, self._offers = title, tuple(offers)
        self._chosen, self._several, self._free, self._joined = list(chosen), several, free, joined
        # Several values that were chosen may all be removed; without any, enter takes the entry under the cursor.
        self._had = bool(chosen) and several
        self._shown: list[OfferedValue] = []

    def compose(self) -> ComposeResult:
        """Yield the search field, the list, the explanation of the entry under the cursor, and the marked values."""
        keys = "space marks, enter takes the marked" if self._several else "enter chooses, escape closes"
        with DialogBox(replace_unprintable(self._title), keys, tall=True):
            yield EntryField(placeholder="type to search", leaves=("space", "asterisk", "slash"), id="pick-search")
            yield PagedOptionList(compact=True, markup=False)
            yield Static("", id="pick-more", markup=False)
            if self._several:
                yield Static("", id="pick-marked", markup=False)

    def on_mount(self) -> None:
        """List all entries, with the cursor on the present one."""
        # The search field keeps the focus, so that letters always search.
        self.query_one(OptionList).can_focus = False
        self._search()
        at = next((i for i, offer in enumerate(self._shown) if offer.value in self._chosen), 0)
        self.query_one(OptionList).highlighted = at if self._shown else None
        self.reload()

    def set_offers(self, offers: Sequence[OfferedValue]) -> None:
        """Replace the entries and search again."""
        self._offers = tuple(offers)
        self._search()

    @property
    def _search_text(self) -> str:
        """Return the typed text."""
        return self.query_one(Input).value.strip()

    @on(Input.Changed)
    def _search(self) -> None:
        """List the entries that match the typed text."""
        known = {offer.value for offer in self._offers}
        # Values of the recipe need not be among the entries; they must stay visible to be removed.
        own = [OfferedValue(value) for value in self._chosen if value not in known]
        self._shown = search_offers(self._search_text, [*self._offers, *own])
        if self._free and self._search_text and all(offer.value != self._search_text for offer in self._shown):
            self._shown.append(OfferedValue(self._search_text, AS_TYPED))
        self._show_offers(0)

    def _show_offers(self, at: int) -> None:
        """List the found entries with the cursor at ``at``."""
        shown = self._shown[:MOST_SHOWN]
        # The text as typed comes last, but must not be cut off with the entries beyond the limit.
        if len(self._shown) > MOST_SHOWN and self._shown[-1].note == AS_TYPED:
            shown[-1] = self._shown[-1]
        width = min(WIDEST, max((len(offer.value) for offer in shown), default=0))
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._offer_line(offer, width)) for offer in shown])
        options.highlighted = min(at, len(shown) - 1) if shown else None
        if not shown:
            self._set_explanation("Nothing is called that.")
        if self._several:
            said = ", ".join(self._chosen)
            self.query_one("#pick-marked", Static).update(
                replace_unprintable(f"marked: {said}" if said else "nothing is marked")
            )

    def _offer_line(self, offer: OfferedValue, width: int) -> Content:
        """Return the line of an entry: its mark or number, value and note."""
        if self._several:
            sign = f"{self._chosen.index(offer.value) + 1:>2} " if offer.value in self._chosen else "   "
        else:
            sign = f"{sign_for('into')} " if offer.value in self._chosen else "  "
        words = f"  {offer.note}" if offer.note else ""
        return Content.assemble(
            (sign, "bold"), replace_unprintable(f"{offer.value:<{width}}"), (replace_unprintable(words), "$text-muted")
        )

    @on(OptionList.OptionHighlighted)
    def _explain_offer(self) -> None:
        """Show the explanation of the entry under the cursor, and how many are not listed."""
        here = self._current_offer
        left = len(self._shown) - MOST_SHOWN
        rest = f"{left:,} more are not listed: type more of it" if left > 0 else ""
        said = " · ".join(part for part in ((here.explanation if here else ""), rest) if part)
        self._set_explanation(said)

    def _set_explanation(self, text: str) -> None:
        """Set the text below the list."""
        self.query_one("#pick-more", Static).update(replace_unprintable(text))

    @property
    def _current_offer(self) -> OfferedValue | None:
        """Return the entry under the cursor; None in an empty list."""
        at = self.query_one(OptionList).highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable marking if several may be chosen, and keys that are signs only while no search is typed."""
        if action in ("mark", "mark_all"):
            return self._several
        if action == "join":
            return bool(self._joined) and not self._search_text and len(self._chosen) > 1
        if action == "search":
            return not self._search_text
        return super().check_action(action, parameters)

    def action_step(self, step: int) -> None:
        """Move the cursor; by one entry it goes round from the last to the first."""
        options = self.query_one(OptionList)
        if count := options.option_count:
            at = options.highlighted or 0
            options.highlighted = (at + step) % count if abs(step) == 1 else max(0, min(count - 1, at + step))

    def action_search(self) -> None:
        """Do nothing: the search field always has the focus."""

    def action_mark(self) -> None:
        """Mark the entry under the cursor or remove its mark, then clear the search or move on."""
        here = self._current_offer
        if here is None:
            return
        self._toggle_mark(here.value)
        if self._search_text:
            self.query_one(Input).clear()
        else:
            self._show_offers((self.query_one(OptionList).highlighted or 0) + 1)

    def _toggle_mark(self, value: str) -> None:
        """Add a value to the chosen ones, or remove it."""
        if value in self._chosen:
            self._chosen.remove(value)
        else:
            self._chosen.append(value)

    def action_mark_all(self) -> None:
        """Mark all found entries, or none if all are marked."""
        values = [offer.value for offer in self._shown if offer.note != AS_TYPED]
        if all(value in self._chosen for value in values):
            self._chosen = [value for value in self._chosen if value not in values]
        else:
            self._chosen += [value for value in values if value not in self._chosen]
        self._show_offers(self.query_one(OptionList).highlighted or 0)

    def action_join(self) -> None:
        """Join the two values that were marked last."""
        joined = self._joined.join(self._chosen[-2:])
        self._chosen[-2:] = [joined]
        self._search()

    @on(OptionList.OptionSelected)
    def _choose_clicked(self) -> None:
        """Mark the clicked entry, or choose it if only one may be chosen."""
        if self._several:
            self.action_mark()
        else:
            self._answer_chosen()

    @on(Input.Submitted)
    def _answer_chosen(self) -> None:
        """Close the dialog with the chosen values."""
        here = self._current_offer
        if not self._several:
            if here is not None:
                self.dismiss((here.value,))
            return
        sought = bool(self._search_text) or not (self._chosen or self._had)
        if here is not None and sought and here.value not in self._chosen:
            self._chosen.append(here.value)
        if self._chosen or self._had:
            self.dismiss(tuple(self._chosen))
