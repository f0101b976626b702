"""The manual in the app: a page, opened at what the cursor is on, and a search by words."""

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
from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.entries import Filter
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import Edge, Sides
from sfumato.workspace.manual import PAGES, Entry, look_up, sections
from sfumato.workspace.manual.search import Hit, find
from sfumato.workspace.reporting.words import mark

from ..parts.page import Dialog
from .manual_text import PageLine, page_lines, plain

STYLES = {"title": "$primary bold", "heading": "$primary bold", "code": "bold", "text": ""}
FIRST_PAGE = "app"
"""What opens where a screen leads to no page of its own."""


def topics_here(screens: Sequence[Screen[object]]) -> list[str]:
    """The topics that fit what has the focus, the nearest first: its own, those of what it is in, those of the screens below."""
    found: list[str] = []
    for screen in reversed(screens):
        for node in (screen.focused or screen).ancestors_with_self:
            topics = getattr(node, "manual_topics", None)
            found += topics() if topics is not None else ()
    return list(dict.fromkeys(topic for topic in found if topic))


def entry_for(topics: Iterable[str]) -> Entry:
    """The first of these topics that the manual has."""
    for topic in topics:
        try:
            return look_up(topic)
        except BadInput:
            continue
    return Entry(FIRST_PAGE)


class Manual(Dialog[None]):
    """A page of the manual at the first of ``topics`` that it has; ``/`` searches, escape returns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("filter", "search", "Search", show=True),
        bind("next_other", "hit(1)", "Next hit", show=True),
        bind("previous_other", "hit(-1)", "Previous hit"),
        bind("next", "page(1)", "Next page", show=True),
        bind("previous", "page(-1)", "Previous page"),
    ]
    AUTO_FOCUS = "Scroll"
    DEFAULT_CSS = "#manual-words { display: none; } #manual-words.asked { display: block; }"

    @dataclass
    class LaidOut(Message):
        """A page was laid out in lines; the entry begins ``at`` one of them."""

        entry: Entry
        width: int
        lines: Sequence[PageLine]
        at: int

    @dataclass
    class Found(Message):
        """The sections that hold the words, or why none is shown."""

        words: str
        hits: Sequence[Hit]
        problem: str = ""

    def __init__(self, topics: Sequence[str] = ()) -> None:
        super().__init__()
        self._topics = tuple(topics)
        self._entry: Entry | None = None
        self._shown: tuple[str, int] | None = None
        self._words, self._hits, self._hit = "", tuple[Hit, ...](), 0

    def compose(self) -> ComposeResult:
        """The page's name, its text, the field for words, the keys."""
        with Vertical(classes="whole"):
            yield Edge(name="manual-head")
            with Sides():
                yield Scroll()
                yield Filter(placeholder="words to find on all pages", id="manual-words")
            yield Edge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Nothing is read from the workspace."""

    def on_resize(self) -> None:
        """Lay the page out for the new width."""
        self.call_after_refresh(self._open, self._entry)

    @property
    def entry(self) -> Entry | None:
        """What is shown; None until it is laid out."""
        return self._entry if self._shown else None

    @work(thread=True, exclusive=True, group="manual", exit_on_error=False)
    def _open(self, entry: Entry | None) -> None:
        """Lay a page out: a long one takes some time."""
        chosen = entry_for(self._topics) if entry is None else entry
        pane = self.query_one(Scroll)
        bar = (
            0 if pane.show_vertical_scrollbar else pane.styles.scrollbar_size_vertical
        )  # a page has one once it is shown
        width = max(20, pane.scrollable_content_region.width - bar)
        lines: list[PageLine] = []
        at = 0
        for section in sections(chosen.page):
            if chosen.section == section:
                at = len(lines)
            text = f"{'#' * section.level} {section.heading}\n\n{section.body}"
            lines += [*page_lines(text, width), PageLine("")]
        if chosen.term:
            starts = (number for number, line in enumerate(lines) if number > at and _defines(line.text, chosen.term))
            at = next(starts, at)
        self.post_message(self.LaidOut(chosen, width, lines, at))

    @on(LaidOut)
    def _show(self, event: LaidOut) -> None:
        self._entry = event.entry
        pane = self.query_one(Scroll)
        if self._shown != (event.entry.page, event.width):
            self._shown = event.entry.page, event.width
            pane.show(Content("\n").join(Content.styled(line.text, STYLES[line.kind]) for line in event.lines))
        self._say_where()
        pane.go_to(event.at)

    def _say_where(self) -> None:
        entry = self._entry
        if entry is None:
            return
        title = "" if entry.section is None or entry.section.level == 1 else plain(entry.section.title)
        hit = self._hit_words()
        parts = [f" {mark('into')} {part}" for part in (entry.page, title) if part]
        self.query_one("#manual-head", Line).say(Content.assemble(("Manual", "$primary bold"), *parts, hit))

    def _hit_words(self) -> str:
        if not self._hits:
            return ""
        lacks = "".join(f", without {word}" for word in self._hits[self._hit].lacks)
        return f"   (hit {self._hit + 1} of {len(self._hits)} for {self._words}{lacks})"

    def action_search(self) -> None:
        field = self.query_one(Filter)
        field.add_class("asked")
        field.focus()

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        self._leave()
        if event.value.strip():
            self._find(event.value.strip())

    @on(Filter.Left)
    def _leave(self) -> None:
        self.query_one(Filter).remove_class("asked")
        self.query_one(Scroll).focus()

    @work(thread=True, exclusive=True, group="manual", exit_on_error=False)
    def _find(self, words: str) -> None:
        try:
            self.post_message(self.Found(words, find(words)))
        except BadInput as error:
            self.post_message(self.Found(words, (), error.message))

    @on(Found)
    def _take_hits(self, event: Found) -> None:
        if event.problem:
            self.sfumato.say(event.problem)
            return
        self._words, self._hits, self._hit = event.words, tuple(event.hits), 0
        self.refresh_bindings()
        self._open_hit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is a next hit once a search has found some."""
        return bool(self._hits) if action == "hit" else super().check_action(action, parameters)

    def action_hit(self, by: int) -> None:
        """Open the next or the previous section that the search found."""
        self._hit = (self._hit + by) % len(self._hits)
        self._open_hit()

    def _open_hit(self) -> None:
        section = self._hits[self._hit].section
        self._open(Entry(section.page, section))

    def action_page(self, by: int) -> None:
        """Open the next or the previous page."""
        page = FIRST_PAGE if self._entry is None else self._entry.page
        self._hits = ()
        self.refresh_bindings()
        self._open(Entry(PAGES[(PAGES.index(page) + by) % len(PAGES)]))


def _defines(line: str, term: str) -> bool:
    """Whether a line begins the list item of a term."""
    names = line.strip().removeprefix("- ").partition(":")[0] if line.strip().startswith("- ") else ""
    return term in [name.strip().lower() for name in names.split(",")]
