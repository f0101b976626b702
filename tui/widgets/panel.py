"""Frames: the edges of a pane with its title and tabs, its sides, and the box of a dialog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from ..terminal.painting import Backdrop
from .lines import Line

TRACK, SIDE = "─", "│"
UPPER, LOWER = ("╭", "╮", "┬"), ("╰", "╯", "┴")
"""Left and right corner of an edge, and the sign where the frame of a second pane meets it."""
SECOND = "second"
"""Class of a pane to the right of another, which draws its own left side; its ``pane_title`` stands in the edge."""
LEAST_TITLE = 8


class FrameEdge(Line):
    """Upper edge of a frame with a title, or the ``lower`` one with the pane's text; cut at the width."""

    DEFAULT_CSS = "FrameEdge { padding: 0; color: $primary; text-overflow: clip; }"

    def __init__(self, *, name: str = "", lower: bool = False, text: Content | str = "") -> None:
        """Create the edge, with a text if one is given."""
        super().__init__(name=name)
        self._left, self._right, self._meets = LOWER if lower else UPPER
        self._lower = lower
        self._second: tuple[int, str] = 0, ""
        if text:
            self.set_text(text)

    def on_mount(self) -> None:
        """Follow changes of the layout."""
        self.screen.screen_layout_refresh_signal.subscribe(self, self._find_second_pane)

    def _find_second_pane(self, _: Screen[object]) -> None:
        """Find the start of a second pane, if there is one."""
        beside = self.parent.walk_children(Widget) if self.parent else []
        shown = (one for one in beside if one.has_class(SECOND) and one.is_on_screen and one.region)
        found = (one for one in shown if one.region.x > self.region.x + 1)
        second = next(iter(found), None)
        at = (0, "") if second is None else (second.region.x - self.region.x, getattr(second, "pane_title", ""))
        if at != self._second:
            self._second = at
            self.refresh()

    @property
    def _room(self) -> int:
        """Return the number of cells from one corner to the other, or to the second pane."""
        return (self._second[0] or self.size.width - 1) - 1

    def _right_text(self) -> Content:
        """Return the text at the right end of the first pane's edge."""
        return Content("")

    def render(self) -> Content:
        """Return the edge with its title, its right text, and the title of a second pane."""
        room, after, title = self._room, self._right_text(), self._heading
        if title:
            most = max(LEAST_TITLE, room - len(after) - 3)
            title = Content.assemble(TRACK, " ", self._fit_title(title, most), " ")
        fill = TRACK * (room - title.cell_length - len(after))
        parts: list[Content | str] = [self._left, title, fill, after]
        at, name = self._second
        if at:
            rest = self.size.width - at - 2
            beside = (
                Content("") if self._lower or not name else Content.assemble(TRACK, " ", (name, "$foreground"), " ")
            )
            parts += [self._meets, beside.truncate(rest), TRACK * (rest - beside.cell_length)]
        return Content.assemble(Content.assemble(*parts).truncate(self.size.width - 1), self._right)

    def _fit_title(self, title: Content, most: int) -> Content:
        """Return the title in at most ``most`` cells."""
        return title.truncate(most, ellipsis=True)

    @property
    def _heading(self) -> Content:
        """Return the title in the colour of text."""
        shown = self.content
        text = shown if isinstance(shown, Content) else Content(str(shown))
        return text.stylize_before("$foreground") if text else text


class TabEdge(FrameEdge):
    """Upper edge of a frame with the names of all its tabs, the active one in brackets."""

    def __init__(self, *, name: str = "") -> None:
        """Create the edge without tabs."""
        super().__init__(name=name)
        self._active = ""
        self._tabs: Mapping[str, str] = {}

    def show_tabs(self, title: str, tabs: Mapping[str, str], active: str) -> None:
        """Show title and tabs; unchanged ones are not painted again."""
        if (tabs, active) != (self._tabs, self._active):
            self._tabs, self._active = tabs, active
            self.refresh()
        self.set_text(Content.styled(title, "bold"))

    @dataclass
    class EdgeTabChosen(Message):
        """Message that the user clicked the tab called ``name``."""

        name: str

    @staticmethod
    def _name_width(title: Content) -> int:
        """Return the width in cells of a pane's name, without its count."""
        return Content(title.plain.partition(":")[0]).cell_length

    def _fit_title(self, title: Content, most: int) -> Content:
        """Return the title in at most ``most`` cells; its count is dropped before it is cut."""
        return super()._fit_title(title if title.cell_length <= most else title.truncate(self._name_width(title)), most)

    def _tab_texts(self) -> list[tuple[str, str]]:
        """Return (name, text) of the tabs; if they do not fit, the count goes first, then the others are cut, then left
        out.
        """
        if len(self._tabs) < 2:
            return []
        heading = self._heading
        for told, room in ((heading.cell_length, 99), *((self._name_width(heading), most) for most in (99, 6, 3))):
            needed = told + 5
            texts = [
                (name, f"[{title}]" if name == self._active else title[:room]) for name, title in self._tabs.items()
            ]
            if sum(len(text) + 1 for _, text in texts) + needed <= self._room:
                return texts
        return [(name, text) for name, text in texts if name == self._active and needed + len(text) < self._room]

    def _right_text(self) -> Content:
        """Return the tabs, the active one bold."""
        parts: list[tuple[str, str] | str] = [" "]
        for name, text in self._tab_texts():
            parts += [(text, "bold" if name == self._active else "$text-muted"), " "]
        return Content.assemble(*parts, TRACK) if len(parts) > 1 else Content("")

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked tab."""
        at, texts = event.get_content_offset(self), self._tab_texts()
        start = self._room - sum(len(text) + 1 for _, text in texts)
        for name, text in texts:
            if at is not None and start <= at.x < start + len(text):
                self.post_message(self.EdgeTabChosen(name))
            start += len(text) + 1


class FrameSides(Backdrop, Vertical):
    """Content of a frame between its edges, with its two sides."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"sides--edge"}
    DEFAULT_CSS = "FrameSides { padding: 0 1; height: 1fr; & > .sides--edge { color: $primary; } }"

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the two sides of the frame around blanks."""
        style = self.get_component_rich_style("sides--edge")
        inner = Segment(" " * max(0, self.outer_size.width - 2), style)
        strip = Strip([Segment(SIDE, style), inner, Segment(SIDE, style)]).crop(crop.x, crop.right)
        # Overriding this method bypasses Textual's filters, such as that of a terminal without colours.
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return [strip] * crop.height


class DialogBox(Vertical):
    """Frame of a dialog with its title in the upper edge and its keys in the lower one."""

    DEFAULT_CLASSES: ClassVar[str] = "dialog"

    def __init__(self, title: str, keys: str = "", *, tall: bool = False, destroys: bool = False) -> None:
        """Create the frame; ``tall`` ones fill the height, those of an act that ``destroys`` are red."""
        super().__init__()
        self.set_class(tall, "tall")
        self.set_class(destroys, "destroys")
        self.set_title(title)
        if keys:
            self.border_subtitle = Content(keys)

    def set_title(self, title: str) -> None:
        """Set the title in the edge."""
        self.border_title = Content(title)
