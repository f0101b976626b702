"""The line at the foot of a screen that names the keys. One widget without children: naming other keys is one repaint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

__all__ = ["KeyLine"]

GAP = " "


@dataclass(frozen=True, slots=True)
class Named:
    """A key as bindings call it and as it is shown, what it does, and whether it can be used now."""

    key: str
    shown: str
    does: str
    enabled: bool

    @property
    def width(self) -> int:
        """Cells that it takes."""
        return cell_len(self.shown) + cell_len(self.does) + 1


class KeyLine(Widget, can_focus=False):
    """The bindings of the screen that are to be shown. A click on one presses its key."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key", "key-line--dim"}
    DEFAULT_CSS = """
    KeyLine {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $panel;
        & > .key-line--key { color: $footer-key-foreground; text-style: bold; }
        & > .key-line--dim { text-style: dim; }
    }
    """

    _named: Sequence[Named] | None = None

    def on_mount(self) -> None:
        """Follow the screen's bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._change)

    def _change(self, screen: Screen[object]) -> None:
        """Name the keys anew where they are others."""
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            before, self._named = self._named, self._read()
            if self._named != before:
                self.refresh()

    @property
    def named(self) -> Sequence[Named]:
        """What is named, from left to right: of several keys for one action the first."""
        if self._named is None:
            self._named = self._read()
        return self._named

    def _read(self) -> Sequence[Named]:
        found: dict[str, Named] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show:
                shown = self.app.get_key_display(binding)
                found.setdefault(binding.action, Named(binding.key, shown, binding.description, enabled))
        return tuple(found.values())

    def render_line(self, y: int) -> Strip:
        """The keys, each before what it does."""
        plain, bold = self.rich_style, self.get_component_rich_style("key-line--key")
        dim = self.get_component_rich_style("key-line--dim")
        segments = []
        for one in self.named if y == 0 else ():
            segments.append(Segment(one.shown, bold if one.enabled else bold + dim))
            segments.append(Segment(f" {one.does}", plain if one.enabled else dim))
            segments.append(Segment(GAP, plain))
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key under the mouse."""
        start = 0
        for one in self.named:
            if start <= event.x < start + one.width:
                self.app.simulate_key(one.key) if one.enabled else self.app.bell()
            start += one.width + len(GAP)
