"""The verdict board with a cursor: up and down go from verdict to verdict, enter asks what one means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message

from sfumato.engine.thresholds import Verdict
from sfumato.workspace.reporting.words import NOTHING, Apart

from .scroll import Scroll
from .verdicts import blocks, heads, overall

__all__ = ["VerdictBoard"]


class VerdictBoard(Scroll):
    """Every verdict of a run; one of them is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "ask", "Explain", id="verdicts.explain")]

    @dataclass
    class Asked(Message):
        """What a verdict means is asked."""

        verdict: Verdict

    def __init__(self) -> None:
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._at = 0

    def lay_out(self, verdicts: Sequence[Verdict], width: int, apart: Apart = NOTHING) -> None:
        """Show these verdicts in ``width`` cells; the cursor stays at its place where there is one."""
        self._verdicts, self._width, self._apart = verdicts, width, apart
        self._at = max(0, min(self._at, len(verdicts) - 1))
        self._paint()

    def clear(self, text: str) -> None:
        """Say why there are no verdicts."""
        self._verdicts = ()
        self.show(text)

    def action_lines(self, lines: int) -> None:
        """Go to the next verdict or the one before, or scroll where there are none."""
        if not self._verdicts:
            super().action_lines(lines)
            return
        at = max(0, min(self._at + lines, len(self._verdicts) - 1))
        if at != self._at:
            self._at = at
            self._paint()
        first, height = self._places[at]
        self.scroll_to_region(Region(0, first, 1, height), animate=False)

    def action_ends(self, end: int) -> None:
        """Go to the first (0) or the last (1) verdict."""
        if self._verdicts:
            self._at = end * (len(self._verdicts) - 1)
            self._paint()
        super().action_ends(end)

    def action_ask(self) -> None:
        """Ask what the chosen verdict means."""
        if self._verdicts:
            self.post_message(self.Asked(self._verdicts[self._at]))

    def _paint(self) -> None:
        above = [overall(self._verdicts), Content(""), *heads(self._width)]
        texts = blocks(self._verdicts, self._width, self._apart)
        self._places, first = [], len(above)
        for text in texts:
            height = text.plain.count("\n") + 1
            self._places.append((first, height))
            first += height
        end = texts[self._at].plain.find("\n")
        texts[self._at] = texts[self._at].stylize("reverse", 0, None if end < 0 else end)
        self.show(Content("\n").join([*above, *texts]))
