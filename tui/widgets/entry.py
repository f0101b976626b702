"""A field of one line: it has no border, and its cursor does not blink, which would send 2.5 kB a second."""

from __future__ import annotations

from textual.suggester import Suggester
from textual.widgets import Input

__all__ = ["Entry"]


class Entry(Input):
    """A field that is styled once, in its place: Textual styles one that is told to be compact before it has a place."""

    def __init__(
        self,
        value: str = "",
        placeholder: str = "",
        *,
        suggester: Suggester | None = None,
        select_on_focus: bool = True,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str = "",
    ) -> None:
        super().__init__(
            value,
            placeholder,
            suggester=suggester,
            select_on_focus=select_on_focus,
            compact=True,
            id=id,
            classes=f"{classes} -textual-compact",
        )
        self.set_reactive(Input.cursor_blink, False)
