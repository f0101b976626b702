"""Lines and text: a single line, tabs, the keys in the footer, and text that scrolls like a pager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from sfumato.tui.keys.acts import KEYLESS, TYPED, bind_act, label_of_binding

END = 1 << 30
"""Line number after the last line of every text."""
GAP = " "
SHORT = {
    "Distributions": "Plots",
    "Strongest intruder": "Intruder",
    "Studies: curves": "Curves",
    "Studies: limits": "Limits",
    "Include or exclude": "Include",
    "Search for a plan": "Search",
    "Next tab": "Tab",
    "What the intruder knows": "Intruder",
    "Try other limits": "Limits",
}
"""Short forms of long words in a narrow terminal."""
LAST = {"export": 1, "release_run": 2, "next_tab": 3, "keys": 4, "close": 5}
"""Acts that stand last among the keys in the footer, with their order."""
KEPT = frozenset({"next_tab"})
"""Acts whose keys stay in the footer of a narrow terminal, since nothing else says how to reach what they lead to."""


class Line(Static):
    """One line of text, cut at the edge."""

    DEFAULT_CSS = "Line { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, *, name: str) -> None:
        """Create an empty line; ``name`` is its id."""
        super().__init__("", markup=False, id=name or None)

    def set_text(self, text: Content | str) -> None:
        """Show another text, unless it looks the same."""
        if not is_same_text(self.content, text):
            self.update(text, layout=False)


def is_same_text(shown: object, text: object) -> bool:
    """Return whether two texts look the same."""
    if isinstance(shown, Content) and isinstance(text, Content):
        # Textual's own comparison is of the characters alone, without their styles.
        return shown.is_same(text)
    return type(shown) is type(text) and shown == text


class Scroll(VerticalScroll, can_focus=True, inherit_bindings=False):
    """Text that may be longer than the screen, with keys to scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("up", "lines(-1)"),
        bind_act("down", "lines(1)"),
        bind_act("page_up", "pages(-1)"),
        bind_act("page_down", "pages(1)"),
        bind_act("first", "ends(0)", "Top"),
        bind_act("last", "ends(1)", "Bottom"),
    ]

    # Users can scroll to the end of a text only once its new size is known.
    class _ScrolledText(Static):
        """Text that posts a message when its size changes: only then can users scroll to its end."""

        class TextResized(Message):
            """Message that the text is laid out."""

        def on_resize(self) -> None:
            """Post that the text is laid out."""
            self.post_message(self.TextResized())

    def __init__(self, text: Content | str = "") -> None:
        """Create the pager with a text."""
        super().__init__()
        self._text = self._ScrolledText(text, markup=False)
        self._wanted: int | None = None

    def compose(self) -> ComposeResult:
        yield self._text

    def show_text(self, text: Content | str) -> None:
        """Show another text at the present scroll position."""
        shown = self._text.content
        if not is_same_text(shown, text):
            self._text.update(text, layout=shown != text)

    def go_to_line(self, line: int) -> None:
        """Scroll to a line now, and again once the text is laid out."""
        self._wanted = line
        self.scroll_to(y=line, animate=False)

    @on(_ScrolledText.TextResized)
    def _scroll_to_wanted(self) -> None:
        """Scroll to the line that was requested before the text was laid out."""
        line, self._wanted = self._wanted, None
        if line is not None:
            self.scroll_to(y=line, animate=False)

    def action_lines(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)

    def action_pages(self, pages: float) -> None:
        """Scroll by pages."""
        self.scroll_relative(y=round(pages * self.scrollable_content_region.height), animate=False)

    def action_ends(self, end: int) -> None:
        """Scroll to the top (0) or the bottom (1)."""
        self.scroll_to(y=self.max_scroll_y * end, animate=False)


class OverflowScroll(Scroll):
    """Text beside a list, which takes the keys only where there is more to read than is shown."""

    def allow_focus(self) -> bool:
        """Return whether there is more to read than is shown: without that no key does anything here."""
        return self.max_scroll_y > 0


class TabLine(Widget, can_focus=True):
    """Line with the titles of tabs; the active one stands out by brackets as well as by colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "enter_page", "To the page", show=True),
        bind_act("right", "step(1)", "Place to the right", show=True),
        bind_act("left", "step(-1)", "Place to the left"),
    ]

    active: reactive[str] = reactive("")

    class PageEntered(Message):
        """Message that the user wants to go from the line to the page below it."""

    @dataclass
    class TabChosen(Message):
        """Message that the user wants the tab called ``name``."""

        name: str

    def __init__(self, titles: Mapping[str, str]) -> None:
        """Create the line with titles by name; none is active yet."""
        super().__init__()
        self._titles = dict(titles)

    def render(self) -> Content:
        return self._tabs_line()

    def _tabs_line(self) -> Content:
        """Return the titles, the active one highlighted."""
        chosen = "$foreground bold reverse" if self.has_focus else "$primary bold"
        parts = [(text, chosen if name == self.active else "$text-muted") for name, text in self._tab_texts()]
        return Content.assemble(*(piece for part in parts for piece in (part, " ")))

    def _tab_texts(self) -> list[tuple[str, str]]:
        """Return (name, text) of the tabs; if they do not fit, the others lose their blanks and then their ends."""
        longest = max(map(len, self._titles.values()), default=0)
        fitting = (room for room in range(longest, 2, -1) if self._needed_width(room) <= self.content_size.width)
        room = next(fitting, 2)
        return [(name, self._tab_text(number, name, room)) for number, name in enumerate(self._titles, start=1)]

    def _needed_width(self, room: int) -> int:
        """Return the cells that the line takes with titles cut to ``room``."""
        texts = [self._tab_text(number, name, room) for number, name in enumerate(self._titles, start=1)]
        return sum(len(text) + 1 for text in texts) - 1

    def _tab_text(self, number: int, name: str, room: int) -> str:
        """Return the text of one tab with its number."""
        title = self._titles[name]
        if name == self.active:
            return f"[{number} {title}]"
        wide = sum(len(title) + 5 for title in self._titles.values()) <= self.content_size.width + 1
        return f" {number} {title} " if wide else f"{number} {title[:room]}"

    def action_enter_page(self) -> None:
        """Request the page below."""
        self.post_message(self.PageEntered())

    def action_step(self, tabs: int) -> None:
        """Choose the tab that many places to the right."""
        names = list(self._titles)
        self.post_message(self.TabChosen(names[(names.index(self.active) + tabs) % len(names)]))

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked tab."""
        at = event.get_content_offset(self)
        start = 0
        for name, text in self._tab_texts():
            if at is not None and start <= at.x < start + len(text):
                self.post_message(self.TabChosen(name))
            start += len(text) + 1


def keys_that_fit(named: Sequence[FooterKey], width: int) -> Sequence[FooterKey]:
    """Return the keys that fit in ``width`` cells.

    Long words become short ones. Then keys that cannot be used now are dropped, then those of the focused widget except
    its first, from the last, then those of the screen. Keys of the app stay.
    """

    def is_short_enough(keys: Sequence[FooterKey]) -> bool:
        return sum(one.width + len(GAP) for one in keys) - len(GAP) <= width

    found = list(named)
    if not is_short_enough(found):
        # Shorter words are better than missing keys.
        found = [replace(one, description=SHORT.get(one.description, one.description)) for one in found]
    own = [one for one in found if one.reach == 0][:0:-1]
    spare = [
        *(one for one in found if not one.enabled and one.reach < 2),
        *(one for one in own if one.enabled),
        *(one for one in reversed(found) if one.reach == 1 and one.enabled and one.act not in KEPT),
    ]
    for one in spare:
        if is_short_enough(found):
            break
        found.remove(one)
    return found


@dataclass(frozen=True, slots=True)
class FooterKey:
    """Key in the footer of the screen.

    key: key as bindings name it
    key_text: key in its displayed form
    description: what it does
    enabled: whether it can be used now
    reach: where it is declared: 0 the focused widget or its parents, 1 the screen, 2 the app
    act: name of its act
    """

    key: str
    key_text: str
    description: str
    enabled: bool
    reach: int = 0
    """Distance of the declaration: 0 the focused widget or its parents, 1 the screen, 2 the app."""
    act: str = ""

    @property
    def width(self) -> int:
        """Return the width in cells of key and description."""
        return cell_len(self.key_text) + cell_len(self.description) + 1


def _is_always_shown(_: str) -> bool:
    return True


class KeyLine(Widget, can_focus=False):
    """Footer with keys of the screen. A click on one presses it."""

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

    _named: Sequence[FooterKey] | None = None

    def on_mount(self) -> None:
        """Follow changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._update_keys)

    def _update_keys(self, screen: Screen[object]) -> None:
        """Read the keys again and repaint if they differ."""
        # Without the focus of the terminal, or below another screen, the keys cannot be used and may not be current.
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            before, self._named = self._named, self._read_bindings()
            if self._named != before:
                self.refresh()

    @property
    def footer_keys(self) -> Sequence[FooterKey]:
        """Return the keys from left to right; of several keys for one action the first."""
        if self._named is None:
            self._named = self._read_bindings()
        return self._named

    def _read_bindings(self) -> Sequence[FooterKey]:
        """Read the keys from the active bindings."""
        found: dict[str, FooterKey] = {}
        for node, binding, enabled, _ in self.screen.active_bindings.values():
            if (
                binding.show
                and not binding.key.startswith(KEYLESS)
                and getattr(self.screen, "in_footer", _is_always_shown)(binding.action)
            ):
                name = (binding.id or "").removesuffix(TYPED)
                description = label_of_binding(node, binding)
                if not description:  # enter does nothing on the row under the cursor
                    continue
                shown = self.app.get_key_display(binding)
                reach = 2 if node is self.app else 1 if node is self.screen else 0
                found.setdefault(binding.action, FooterKey(binding.key, shown, description, enabled, reach, name))
        return tuple(sorted(found.values(), key=lambda one: (LAST.get(one.act, 0), one.reach)))

    def render_line(self, y: int) -> Strip:
        """Return the keys as a strip, each before its description."""
        plain, bold = self.rich_style, self.get_component_rich_style("key-line--key")
        dim = self.get_component_rich_style("key-line--dim")
        segments = []
        for one in keys_that_fit(self.footer_keys, self.size.width) if y == 0 else ():
            segments.append(Segment(one.key_text, bold if one.enabled else bold + dim))
            segments.append(Segment(f" {one.description}", plain if one.enabled else dim))
            segments.append(Segment(GAP, plain))
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the clicked key, or ring the bell if it cannot be used now."""
        start = 0
        for one in keys_that_fit(self.footer_keys, self.size.width):
            if start <= event.x < start + one.width:
                self.app.simulate_key(one.key) if one.enabled else self.app.bell()
            start += one.width + len(GAP)
