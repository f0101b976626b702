"""Dialog with the manual: a page, opened at the topic of the cursor, and a search by words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from sfumato.engine.errors import BadInput
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import FilterField
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.workspace.manual import PAGES, ManualEntry, find_entry, page_sections
from sfumato.workspace.manual.search import ManualHit, search_manual
from sfumato.workspace.reporting.words import sign_for

from ..parts.page import Dialog
from .manual_text import PageLine, page_lines, strip_markdown

STYLES = {"title": "$primary bold", "heading": "$primary bold", "code": "bold", "text": ""}
FIRST_PAGE = "app"
"""Page for screens without a topic of their own."""


def current_topics(screens: Sequence[Screen[object]]) -> list[str]:
    """Return the topics that fit the focus, the nearest first: of the focused widget, its containers, and the screens
    below.
    """
    found: list[str] = []
    # A dialog without topics of its own lies above the screen that has them.
    for screen in reversed(screens):
        for node in (screen.focused or screen).ancestors_with_self:
            topics = getattr(node, "manual_topics", None)
            found += topics() if topics is not None else ()
    return list(dict.fromkeys(topic for topic in found if topic))


def first_entry(topics: Iterable[str]) -> ManualEntry:
    """Return the first of these topics that the manual has; its first page if it has none."""
    for topic in topics:
        try:
            return find_entry(topic)
        except BadInput:
            continue
    return ManualEntry(FIRST_PAGE)


class ManualDialog(Dialog[None]):
    """Dialog with a page of the manual; ``/`` searches, escape returns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("filter", "search", "Search", show=True),
        bind_act("next_other", "hit(1)", "Next hit", show=True),
        bind_act("previous_other", "hit(-1)", "Previous hit"),
        bind_act("next", "page(1)", "Next page", show=True),
        bind_act("previous", "page(-1)", "Previous page"),
    ]
    AUTO_FOCUS = "Scroll"
    DEFAULT_CSS = "#manual-words { display: none; } #manual-words.asked { display: block; }"

    @dataclass
    class PageLaidOut(Message):
        """Message with a page broken into lines; the entry begins at line ``first_line``."""

        entry: ManualEntry
        width: int
        lines: Sequence[PageLine]
        first_line: int

    @dataclass
    class SectionsFound(Message):
        """Message with the sections that contain the words, or the problem of the search."""

        words: str
        hits: Sequence[ManualHit]
        problem: str = ""

    def __init__(self, topics: Sequence[str] = ()) -> None:
        """Create the dialog at the first of ``topics`` that the manual has."""
        super().__init__()
        self._topics = tuple(topics)
        self._entry: ManualEntry | None = None
        self._shown: tuple[str, int] | None = None
        self._words, self._hits, self._hit = "", tuple[ManualHit, ...](), 0

    def compose(self) -> ComposeResult:
        """Yield the page's name, its text, the field for words, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="manual-head")
            with FrameSides():
                yield Scroll()
                yield FilterField(placeholder="words to find on all pages", id="manual-words")
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Do nothing: the manual reads nothing from the workspace."""

    def on_resize(self) -> None:
        """Lay the page out for the new width."""
        self.call_after_refresh(self._open, self._entry)

    @property
    def entry(self) -> ManualEntry | None:
        """Return the shown entry; None before it is laid out."""
        return self._entry if self._shown else None

    @work(thread=True, exclusive=True, group="manual", exit_on_error=False)
    def _open(self, entry: ManualEntry | None) -> None:
        """Lay a page out in a thread, since a long one takes some time."""
        chosen = first_entry(self._topics) if entry is None else entry
        pane = self.query_one(Scroll)
        bar = (
            0 if pane.show_vertical_scrollbar else pane.styles.scrollbar_size_vertical
        )  # a page has one once it is shown
        width = max(20, pane.scrollable_content_region.width - bar)
        lines: list[PageLine] = []
        at = 0
        for section in page_sections(chosen.page):
            if chosen.section == section:
                at = len(lines)
            text = f"{'#' * section.level} {section.heading}\n\n{section.body}"
            lines += [*page_lines(text, width), PageLine("")]
        if chosen.term:
            starts = (number for number, line in enumerate(lines) if number > at and _defines(line.text, chosen.term))
            # A term without an item of its own is at the heading of its section.
            at = next(starts, at)
        self.post_message(self.PageLaidOut(chosen, width, lines, at))

    @on(PageLaidOut)
    def _show_page(self, event: PageLaidOut) -> None:
        """Show a page that was laid out, scrolled to its entry."""
        self._entry = event.entry
        pane = self.query_one(Scroll)
        if self._shown != (event.entry.page, event.width):
            self._shown = event.entry.page, event.width
            pane.show_text(Content("\n").join(Content.styled(line.text, STYLES[line.kind]) for line in event.lines))
        self._show_location()
        pane.go_to_line(event.first_line)

    def _show_location(self) -> None:
        """Show page, section and hit in the heading."""
        entry = self._entry
        if entry is None:
            return
        title = "" if entry.section is None or entry.section.level == 1 else strip_markdown(entry.section.title)
        hit = self._hit_text()
        parts = [f" {sign_for('into')} {part}" for part in (entry.page, title) if part]
        self.query_one("#manual-head", Line).set_text(Content.assemble(("Manual", "$primary bold"), *parts, hit))

    def _hit_text(self) -> str:
        """Return the number of the hit and the words that it lacks; empty without a search."""
        if not self._hits:
            return ""
        lacks = "".join(f", without {word}" for word in self._hits[self._hit].missing_words)
        return f"   (hit {self._hit + 1} of {len(self._hits)} for {self._words}{lacks})"

    def action_search(self) -> None:
        """Show the field for words."""
        field = self.query_one(FilterField)
        field.add_class("asked")
        field.focus()

    @on(Input.Submitted)
    def _search_words(self, event: Input.Submitted) -> None:
        """Search for the typed words."""
        self._hide_search()
        if event.value.strip():
            self._find(event.value.strip())

    @on(FilterField.FilterCancelled)
    def _hide_search(self) -> None:
        """Hide the field for words."""
        self.query_one(FilterField).remove_class("asked")
        self.query_one(Scroll).focus()

    @work(thread=True, exclusive=True, group="manual", exit_on_error=False)
    def _find(self, words: str) -> None:
        """Search the manual in a thread."""
        try:
            self.post_message(self.SectionsFound(words, search_manual(words)))
        except BadInput as error:
            self.post_message(self.SectionsFound(words, (), error.message))

    @on(SectionsFound)
    def _show_hits(self, event: SectionsFound) -> None:
        """Open the first hit, or show the problem."""
        if event.problem:
            self.sfumato.say(event.problem)
            return
        self._words, self._hits, self._hit = event.words, tuple(event.hits), 0
        self.refresh_bindings()
        self._open_hit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the next hit if a search has found some."""
        return bool(self._hits) if action == "hit" else super().check_action(action, parameters)

    def action_hit(self, by: int) -> None:
        """Open the next or the previous section that the search found."""
        self._hit = (self._hit + by) % len(self._hits)
        self._open_hit()

    def _open_hit(self) -> None:
        """Open the section of the current hit."""
        section = self._hits[self._hit].section
        self._open(ManualEntry(section.page, section))

    def action_page(self, by: int) -> None:
        """Open the next or the previous page."""
        page = FIRST_PAGE if self._entry is None else self._entry.page
        self._hits = ()
        self.refresh_bindings()
        self._open(ManualEntry(PAGES[(PAGES.index(page) + by) % len(PAGES)]))


def _defines(line: str, term: str) -> bool:
    """Return whether a line begins the list item of a term."""
    names = line.strip().removeprefix("- ").partition(":")[0] if line.strip().startswith("- ") else ""
    return term in [name.strip().lower() for name in names.split(",")]
