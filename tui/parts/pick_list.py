"""Choosing from a list that searches: one, or several in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.entries import Entry, Options
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import replace_unprintable

from .offers import Offer, found
from .page import Dialog

MOST_SHOWN = 200
WIDEST = 44
AS_TYPED = "as it is typed"


class PickList(Dialog[tuple[str, ...]]):
    """Answers the values that were chosen: one, or where ``several`` may be, those that are marked, in the order of marking.

    What is typed searches. ``free``: what nothing matches may be taken as it is typed. ``joined``: two marked values may become one
    with a sign between them, such as the interaction ``a:b``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down", "step(1)", priority=True, typed=True),
        bind("up", "step(-1)", priority=True, typed=True),
        bind("page_down", "step(10)", "Ten down", priority=True, only="pagedown"),
        bind("page_up", "step(-10)", "Ten up", priority=True, only="pageup"),
        bind("mark", "mark", show=True, priority=True, only="space"),
        bind("mark_all", "mark_all", "Mark all that are listed", priority=True, only="asterisk"),
        bind("join", "join", priority=True),
        bind("filter", "search", "Search", priority=True, only="slash"),
    ]
    DEFAULT_CSS = """
    PickList OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    PickList #pick-marked, PickList #pick-more { height: auto; max-height: 3; color: $text-muted; }
    """
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        title: str,
        offers: Sequence[Offer] = (),
        chosen: Sequence[str] = (),
        *,
        several: bool = False,
        free: bool = False,
        joined: str = "",
    ) -> None:
        super().__init__()
        self._title, self._offers = title, tuple(offers)
        self._chosen, self._several, self._free, self._joined = list(chosen), several, free, joined
        self._had = bool(chosen) and several
        self._shown: list[Offer] = []

    def compose(self) -> ComposeResult:
        """A field to search, what is found, what is marked, what the one under the cursor is."""
        keys = "space marks, enter takes the marked" if self._several else "enter chooses, escape closes"
        with Box(replace_unprintable(self._title), keys, tall=True):
            yield Entry(placeholder="type to search", leaves=("space", "asterisk", "slash"), id="pick-search")
            yield Options(compact=True, markup=False)
            yield Static("", id="pick-more", markup=False)
            if self._several:
                yield Static("", id="pick-marked", markup=False)

    def on_mount(self) -> None:
        """List everything, the cursor on what is chosen now."""
        self.query_one(OptionList).can_focus = False
        self._list()
        at = next((i for i, offer in enumerate(self._shown) if offer.value in self._chosen), 0)
        self.query_one(OptionList).highlighted = at if self._shown else None
        self.reload()

    def offer(self, offers: Sequence[Offer]) -> None:
        self._offers = tuple(offers)
        self._list()

    @property
    def _typed(self) -> str:
        return self.query_one(Input).value.strip()

    @on(Input.Changed)
    def _list(self) -> None:
        known = {offer.value for offer in self._offers}
        own = [Offer(value) for value in self._chosen if value not in known]
        self._shown = found(self._typed, [*self._offers, *own])
        if self._free and self._typed and all(offer.value != self._typed for offer in self._shown):
            self._shown.append(Offer(self._typed, AS_TYPED))
        self._show(0)

    def _show(self, at: int) -> None:
        shown = self._shown[:MOST_SHOWN]
        if len(self._shown) > MOST_SHOWN and self._shown[-1].words == AS_TYPED:
            shown[-1] = self._shown[-1]
        width = min(WIDEST, max((len(offer.value) for offer in shown), default=0))
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._line(offer, width)) for offer in shown])
        options.highlighted = min(at, len(shown) - 1) if shown else None
        if not shown:
            self._say_more("Nothing is called that.")
        if self._several:
            said = ", ".join(self._chosen)
            self.query_one("#pick-marked", Static).update(
                replace_unprintable(f"marked: {said}" if said else "nothing is marked")
            )

    def _line(self, offer: Offer, width: int) -> Content:
        if self._several:
            sign = f"{self._chosen.index(offer.value) + 1:>2} " if offer.value in self._chosen else "   "
        else:
            sign = f"{mark('into')} " if offer.value in self._chosen else "  "
        words = f"  {offer.words}" if offer.words else ""
        return Content.assemble(
            (sign, "bold"), replace_unprintable(f"{offer.value:<{width}}"), (replace_unprintable(words), "$text-muted")
        )

    @on(OptionList.OptionHighlighted)
    def _point(self) -> None:
        here = self._here
        left = len(self._shown) - MOST_SHOWN
        rest = f"{left:,} more are not listed: type more of it" if left > 0 else ""
        said = " · ".join(part for part in ((here.more if here else ""), rest) if part)
        self._say_more(said)

    def _say_more(self, text: str) -> None:
        self.query_one("#pick-more", Static).update(replace_unprintable(text))

    @property
    def _here(self) -> Offer | None:
        at = self.query_one(OptionList).highlighted
        return None if at is None or at >= len(self._shown) else self._shown[at]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Marking where several may be chosen; signs that are typed into a search stay there."""
        if action in ("mark", "mark_all"):
            return self._several
        if action == "join":
            return bool(self._joined) and not self._typed and len(self._chosen) > 1
        if action == "search":
            return not self._typed
        return super().check_action(action, parameters)

    def action_step(self, step: int) -> None:
        """Go to the next, or the one before; after the last comes the first."""
        options = self.query_one(OptionList)
        if count := options.option_count:
            at = options.highlighted or 0
            options.highlighted = (at + step) % count if abs(step) == 1 else max(0, min(count - 1, at + step))

    def action_search(self) -> None:
        """Whoever asks for the search has it already."""

    def action_mark(self) -> None:
        """Mark what the cursor is on, or take its mark away; after a search the list is whole again, else the cursor moves on."""
        here = self._here
        if here is None:
            return
        self._toggle(here.value)
        if self._typed:
            self.query_one(Input).clear()
        else:
            self._show((self.query_one(OptionList).highlighted or 0) + 1)

    def _toggle(self, value: str) -> None:
        if value in self._chosen:
            self._chosen.remove(value)
        else:
            self._chosen.append(value)

    def action_mark_all(self) -> None:
        """Mark all that are found, or where all are marked none of them."""
        values = [offer.value for offer in self._shown if offer.words != AS_TYPED]
        if all(value in self._chosen for value in values):
            self._chosen = [value for value in self._chosen if value not in values]
        else:
            self._chosen += [value for value in values if value not in self._chosen]
        self._show(self.query_one(OptionList).highlighted or 0)

    def action_join(self) -> None:
        """Make one of the two that were marked last."""
        joined = self._joined.join(self._chosen[-2:])
        self._chosen[-2:] = [joined]
        self._list()

    @on(OptionList.OptionSelected)
    def _click(self) -> None:
        if self._several:
            self.action_mark()
        else:
            self._accept()

    @on(Input.Submitted)
    def _accept(self) -> None:
        here = self._here
        if not self._several:
            if here is not None:
                self.dismiss((here.value,))
            return
        sought = bool(self._typed) or not (self._chosen or self._had)
        if here is not None and sought and here.value not in self._chosen:
            self._chosen.append(here.value)
        if self._chosen or self._had:
            self.dismiss(tuple(self._chosen))
