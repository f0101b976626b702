"""Frames: the edges of a pane with its title and tabs, its sides, and the box of a dialog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..terminal.painting import Backdrop
from .lines import Line

TRACK, SIDE = "─", "│"
UPPER, LOWER, INNER = ("╭", "╮", "┬"), ("╰", "╯", "┴"), (TRACK, TRACK, "┬")
MEETS_RULE = "├", "┤"
"""Left and right side of a frame where a rule across it begins and ends."""
"""Left and right corner of an edge, and the sign where the frame of a second pane meets it."""
SECOND = "second"
"""Class of a pane to the right of another, which draws its own left side; its ``pane_title`` stands in the edge."""
DIM = "$secondary"
"""Ink of the frame of a pane that is not in use."""
LEAST_TITLE = 8
NAME_CUTS = (99, 99), (99, 4), (6, 6), (3, 3)
"""Cells of the names of tabs, and of the last of them, from the best."""


class FrameEdge(Line):
    """Upper edge of a frame with a title, or the ``lower`` one with the pane's text; cut at the width."""

    DEFAULT_CSS = "FrameEdge { padding: 0; color: $primary; text-overflow: clip; }"
    CORNERS: ClassVar[tuple[str, str, str]] = UPPER

    def __init__(self, *, name: str = "", lower: bool = False, text: Content | str = "") -> None:
        """Create the edge, with a text if one is given."""
        super().__init__(name=name)
        self._left, self._right, self._meets = LOWER if lower else self.CORNERS
        self._lower = lower
        self._second: tuple[int, str] = 0, ""
        self._lit: tuple[bool, bool] = True, False
        if text:
            self.set_text(text)

    def on_mount(self) -> None:
        """Follow changes of the layout and of the focus."""
        self.screen.screen_layout_refresh_signal.subscribe(self, self._find_second_pane)
        self.watch(self.screen, "focused", self._find_second_pane, init=False)

    def _find_second_pane(self, _: object) -> None:
        """Find the start of a second pane that meets this edge, if there is one, and which of the panes is in use."""
        second = next(filter(self._is_met_by, self._panes_beside()), None)
        at = (0, "") if second is None else (second.region.x - self.region.x, getattr(second, "pane_title", ""))
        focused = self.screen.focused
        column = None if second is None else second.parent if isinstance(second.parent, SideColumn) else second
        in_second = column is not None and focused is not None and column in focused.ancestors_with_self
        lit = (not in_second, in_second)
        if (at, lit) != (self._second, self._lit):
            self._second, self._lit = at, lit
            self.refresh()

    def _panes_beside(self) -> Iterator[Widget]:
        """Yield the second panes that are shown."""
        for one in self.parent.walk_children(Widget) if self.parent else ():
            if one.has_class(SECOND) and one.is_on_screen and one.region.x > self.region.x + 1:
                yield one

    def _is_met_by(self, pane: Widget) -> bool:
        """Return whether the side of a second pane begins or ends at this edge, not at a rule between both."""
        rules = self.parent.query(FrameRule) if self.parent else ()
        return not any(one.is_on_screen and self.region.y < one.region.y < pane.region.y for one in rules)

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
        ink, beside_ink = ("" if lit else DIM for lit in self._lit)
        if title:
            most = max(LEAST_TITLE, room - len(after) - 3)
            title = Content.assemble(TRACK, " ", self._fit_title(title, most), " ")
        fill = TRACK * (room - title.cell_length - len(after))
        parts: list[Content | str] = [Content.assemble(self._left, title, fill, after).stylize_before(ink)]
        at, name = self._second
        if at:
            rest = self.size.width - at - 2
            weight = "$foreground bold" if self._lit[1] else "$foreground"
            beside = Content("") if self._lower or not name else Content.assemble(TRACK, " ", (name, weight), " ")
            track = TRACK * (rest - beside.cell_length)
            parts += [self._meets, Content.assemble(beside.truncate(rest), track).stylize_before(beside_ink)]
        whole = Content.assemble(*parts).truncate(self.size.width - 1)
        return Content.assemble(whole, Content.styled(self._right, beside_ink if at else ink))

    def _fit_title(self, title: Content, most: int) -> Content:
        """Return the title in at most ``most`` cells."""
        return title.truncate(most, ellipsis=True)

    @property
    def _heading(self) -> Content:
        """Return the title in the colour of text."""
        shown = self.content
        text = shown if isinstance(shown, Content) else Content(str(shown))
        return text.stylize_before("$foreground") if text else text


class FrameRule(FrameEdge):
    """Rule across a frame with the title of what stands below it, where a second pane may begin."""

    CORNERS = INNER


class SideColumn(Vertical, Backdrop):
    """Column of panes, the first of them a second pane."""


class TabEdge(FrameEdge):
    """Upper edge of a frame with the names of all its tabs, the active one in brackets."""

    def __init__(self, *, name: str = "") -> None:
        """Create the edge without tabs."""
        super().__init__(name=name)
        self._active = ""
        self._tabs: Mapping[str, str] = {}
        self._is_whole = False
        self._shorter: Sequence[Content] = ()

    def show_tabs(
        self,
        title: Content | str,
        tabs: Mapping[str, str],
        active: str,
        *,
        whole: bool = False,
        shorter: Sequence[Content] = (),
    ) -> None:
        """Show title and tabs; unchanged ones are not painted again.

        One of the ``shorter`` titles stands there where the names of the tabs need the room. Tabs are cut before the
        ``whole`` title, or the last of the shorter ones, is.
        """
        if (tabs, active, whole) != (self._tabs, self._active, self._is_whole):
            self._tabs, self._active, self._is_whole = tabs, active, whole
            self.refresh()
        self._shorter = shorter
        self.set_text(title if isinstance(title, Content) else Content.styled(title, "bold"))

    @dataclass
    class EdgeTabChosen(Message):
        """Message that the user clicked the tab called ``name``."""

        name: str

    @staticmethod
    def _name_width(title: Content) -> int:
        """Return the width in cells of a pane's name, without its count."""
        return Content(title.plain.partition(":")[0]).cell_length

    def _fit_title(self, title: Content, most: int) -> Content:
        """Return the title in at most ``most`` cells; a shorter one or one without its count before it is cut."""
        if self._shorter:
            return super()._fit_title(self._layout[0], most)
        return super()._fit_title(title if title.cell_length <= most else title.truncate(self._name_width(title)), most)

    def _tab_texts(self) -> list[tuple[str, str]]:
        """Return (name, text) of the tabs that are shown."""
        return self._layout[1]

    @property
    def _layout(self) -> tuple[Content, list[tuple[str, str]]]:
        """Return the title and (name, text) of the tabs.

        If they do not fit, a shorter title is taken, or one without its count; then the last tabs are cut, then all others,
        then left out.
        """
        heading = self._heading
        if len(self._tabs) < 2:
            return heading, []
        if self._shorter:
            titles = [heading, *self._shorter]
            choices = [(one, one.cell_length, cuts) for cuts in NAME_CUTS for one in titles]
        else:
            choices = [(heading, heading.cell_length, cuts) for cuts in NAME_CUTS[: None if self._is_whole else 1]]
            choices += [(heading, self._name_width(heading), cuts) for cuts in NAME_CUTS]
        for title, told, cuts in choices:
            texts = self._cut_names(*cuts)
            if sum(len(text) + 1 for _, text in texts) + told + 5 <= self._room:
                return title, texts
        return title, [
            (name, text) for name, text in texts if name == self._active and told + 5 + len(text) < self._room
        ]

    def _cut_names(self, most: int, most_of_last: int) -> list[tuple[str, str]]:
        """Return (name, text) of the tabs, the active one in brackets and whole, the others in so many cells."""
        names = list(self._tabs)
        cut = {name: most_of_last if name == names[-1] else most for name in names}
        return [
            (name, f"[{title}]" if name == self._active else title[: cut[name]]) for name, title in self._tabs.items()
        ]

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
    """Content of a frame between its edges, with its two sides; the side of a pane that is not in use is dim."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"sides--edge", "sides--dim"}
    DEFAULT_CSS = """
    FrameSides {
        padding: 0 1; height: 1fr;
        & > .sides--edge { color: $primary; }
        & > .sides--dim { color: $secondary; }
    }
    """

    def on_mount(self) -> None:
        """Follow changes of the layout and of the focus."""
        self._rules: frozenset[int] = frozenset()
        self._dim_left: frozenset[int] = frozenset()
        self._dim_right: frozenset[int] = frozenset()
        self.screen.screen_layout_refresh_signal.subscribe(self, self._find_sides)
        self.watch(self.screen, "focused", self._find_sides, init=False)

    def _find_sides(self, _: object) -> None:
        """Find the lines on which a rule meets the sides, and those beside a pane that is not in use."""
        top = self.region.y
        rules = frozenset(one.region.y - top for one in self.query(FrameRule) if one.is_on_screen and one.region)
        left, right, focused = set[int](), set[int](), self.screen.focused
        for one in self.query(f".{SECOND}"):
            if one.is_on_screen and one.region.x > self.region.x + 1:
                column = one.parent if isinstance(one.parent, SideColumn) else one
                in_use = focused is not None and column in focused.ancestors_with_self
                (left if in_use else right).update(range(column.region.y - top, column.region.bottom - top))
        found = rules, frozenset(left), frozenset(right)
        if found != (self._rules, self._dim_left, self._dim_right):
            self._rules, self._dim_left, self._dim_right = found
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the two sides of the frame around blanks, with the ends of rules across it."""
        lit, dim = (self.get_component_rich_style(f"sides--{name}") for name in ("edge", "dim"))
        inner = Segment(" " * max(0, self.outer_size.width - 2), lit)

        def draw_line(y: int) -> Strip:
            """Return one line of the frame."""
            left, right = MEETS_RULE if y in self._rules else (SIDE, SIDE)
            ends = (dim if y in one else lit for one in (self._dim_left, self._dim_right))
            strip = Strip(
                [Segment(left, next(ends)), inner, Segment(right, next(ends))],
            ).crop(crop.x, crop.right)
            # Overriding this method bypasses Textual's filters, such as that of a terminal without colours.
            for line_filter in self.get_line_filters():
                strip = strip.apply_filter(line_filter, self.background_colors[1])
            return strip

        drawn: dict[tuple[bool, bool, bool], Strip] = {}
        lines = []
        for y in range(crop.y, crop.bottom):
            kind = y in self._rules, y in self._dim_left, y in self._dim_right
            if kind not in drawn:
                drawn[kind] = draw_line(y)
            lines.append(drawn[kind])
        return lines


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
