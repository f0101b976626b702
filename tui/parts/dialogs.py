"""Dialogs of general use: a question, one of many, the messages of this session, the keys that work here, a run to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from sfumato.tui.keys.acts import bind
from sfumato.tui.session import jobs
from sfumato.tui.widgets.entries import Entry, Options, PathName
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.pages import PAGE, TableRow
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from .page import Dialog

DESTROYING = frozenset({"Delete", "Interrupt", "Discard"})
"""Acts whose button is red."""
Answer = TypeVar("Answer")
RECIPE = "or a recipe file, such as survey.toml; right completes the path"
DATA = "data file, where the recipe's own is not meant; right completes the path"


class Confirm(Dialog[bool]):
    """Answers True only for a deliberate Yes, which the button calls by its act, such as Delete. A letter of an answer is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("left", "app.focus_next", "Other answer"),
        bind("right", "app.focus_next", "Other answer"),
    ]
    AUTO_FOCUS = "#no"

    def __init__(self, question: str, consequence: str, act: str = "Yes") -> None:
        super().__init__()
        self._question, self._consequence, self._act = question, consequence, act
        self._destroys = act in DESTROYING

    def on_key(self, event: events.Key) -> None:
        """Take ``y`` and ``n`` for answers."""
        if event.key in ("y", "n"):
            event.stop()
            self.dismiss(event.key == "y")

    def compose(self) -> ComposeResult:
        """The question, what follows, and two answers."""
        with Box(self._question, destroys=self._destroys):
            yield Static(self._consequence, markup=False)
            yield from self.compose_beside()
            with Horizontal(classes="buttons"):
                yield Button("No  n", id="no", compact=True)
                yield Button(
                    f"{self._act}  y", id="yes", variant="error" if self._destroys else "primary", compact=True
                )

    def compose_beside(self) -> ComposeResult:
        """What a question shows between its consequence and its answers: nothing, unless there is more to say."""
        return iter(())

    @on(Button.Pressed, "#yes")
    def action_agree(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_close(self) -> None:
        self.dismiss(False)


@dataclass(frozen=True)
class Matches:
    """The choices at ``places``, in one column; each row ends with its place."""

    name: Callable[[int], str]
    places: Sequence[int]
    columns: Sequence[Column]

    def count(self) -> int:
        return len(self.places)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        return [(replace_unprintable(self.name(place)), place) for place in self.places[offset : offset + limit]]


class Choose(Dialog[int]):
    """Answers the place of the choice, from 0. ``name`` is called in a thread, for all only once words are typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down", "step(1)", priority=True, typed=True),
        bind("up", "step(-1)", priority=True, typed=True),
    ]
    DEFAULT_CSS = """
    Choose Grid > .grid--cursor { text-style: reverse; }
    Choose #choose-whole { height: 2; color: $text-muted; }
    """
    AUTO_FOCUS = "Input"

    @dataclass
    class Matched(Message):
        """These have the words; the cursor belongs on row ``at``."""

        found: Matches
        at: int

    def __init__(self, title: str, total: int, name: Callable[[int], str], chosen: int) -> None:
        super().__init__()
        self._title, self._total, self._name_of, self._chosen = title, total, name, chosen
        self._searched: Sequence[str] = ()
        self._settled = self._accepting = False

    def compose(self) -> ComposeResult:
        """A field for words, and what has them all."""
        with Box(self._title, "words to find it, enter chooses, esc closes", tall=True):
            yield Entry(placeholder="words that must occur", id="choose-words")
            yield Grid(empty="None has these words.")
            yield Static("", id="choose-whole", markup=False)

    def on_mount(self) -> None:
        """Show them all, the present one marked."""
        self._match("")

    def _match(self, words: str) -> None:
        self._settled = False
        self._find(words.lower().split())

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _find(self, words: list[str]) -> None:
        worker = get_current_worker()
        places: Sequence[int] = range(self._total)
        if words:
            self._searched = self._searched or [self._name_of(place).lower() for place in places]
            places = [i for i, text in enumerate(self._searched) if all(word in text for word in words)]
        widest = max((cell_len(replace_unprintable(self._name_of(place))) for place in places[:PAGE]), default=0)
        column = Column("choice", f"{len(places):,} of {self._total:,}", widest)
        found = Matches(self._name_of, places, (column,))
        if not worker.is_cancelled:
            self.post_message(self.Matched(found, places.index(self._chosen) if self._chosen in places else 0))

    @on(Matched)
    def _show(self, event: Matched) -> None:
        offer = self.query_one(Grid)
        longest = event.found.columns[0].width
        self.query_one("#choose-whole").display = longest > offer.scrollable_content_region.width - 2
        offer.return_to(str(event.at))
        offer.set_source(event.found)

    @on(Grid.Highlighted)
    def _show_whole(self, event: Grid.Highlighted) -> None:
        whole = "" if event.row is None else str(event.row[0])
        self.query_one("#choose-whole", Static).update(whole)

    @on(Grid.Opened)
    def _settle(self) -> None:
        self._settled = True
        if self._accepting:
            self._submit()

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._match(event.value)

    def action_step(self, step: int) -> None:
        """Mark the next choice, or the one before; after the last comes the first."""
        offer = self.query_one(Grid)
        if offer.count:
            offer.cursor = (offer.cursor + step) % offer.count

    @on(Input.Submitted)
    def _submit(self) -> None:
        self._accepting = not self._settled
        if self._settled:
            self.query_one(Grid).action_select()

    @on(Grid.Selected)
    def _select(self, event: Grid.Selected) -> None:
        if isinstance(event.row[-1], int):
            self.dismiss(event.row[-1])


class Letters(Dialog[Answer], Generic[Answer]):
    """Answers one of a few: its letter, or enter on it. ``offers`` are (letter, answer, name, what it is)."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down", "focused.cursor_down", only="j"),
        bind("up", "focused.cursor_up", only="k"),
    ]
    DEFAULT_CSS = "Letters OptionList { height: auto; }"
    AUTO_FOCUS = "OptionList"

    def __init__(self, title: str, offers: Sequence[tuple[str, Answer, str, str]], now: Answer | None = None) -> None:
        super().__init__()
        self._title, self._offers, self._now = title, offers, now

    def compose(self) -> ComposeResult:
        """The answers, each with its letter."""
        longest = max(len(name) for _, _, name, _ in self._offers)
        with Box(self._title, "a letter, or enter"):
            texts = (f"{letter}  {name:<{longest}}  {what}" for letter, _, name, what in self._offers)
            yield Options(*map(Option, texts), compact=True, markup=False)

    def on_mount(self) -> None:
        """The present answer is marked."""
        super().on_mount()
        answers = [answer for _, answer, _, _ in self._offers]
        self.query_one(OptionList).highlighted = answers.index(self._now) if self._now in answers else 0

    def on_key(self, event: events.Key) -> None:
        """Take a letter for its answer."""
        found = next((answer for letter, answer, _, _ in self._offers if letter == event.character), None)
        if found is not None:
            event.stop()
            self.dismiss(found)

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._offers[event.option_index][1])


class Notices(Dialog[None]):
    """What the app has said since it started, the last first."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, notices: Sequence[str]) -> None:
        super().__init__()
        self._notices = notices

    def compose(self) -> ComposeResult:
        with Box("Messages", "q closes", tall=True):
            yield Scroll("\n\n".join(reversed(self._notices)) or "Nothing has been said yet.")


class NewRun(Dialog[tuple[str, str | None]]):
    """Answers the recipe, a name or a file, and the data file if one was named."""

    manual = "commands sfumato run"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down", "focused.cursor_down", only="j"),
        bind("up", "focused.cursor_up", only="k"),
    ]
    AUTO_FOCUS = "OptionList"

    def compose(self) -> ComposeResult:
        """The shipped recipes, and two fields."""
        with Box("New run: choose a recipe", "a letter finds, enter starts, tab to the fields, esc closes", tall=True):
            yield Options(compact=True)
            yield Entry(placeholder=RECIPE, suggester=PathName(), id="recipe")
            yield Entry(placeholder=DATA, suggester=PathName(), id="data")

    def on_key(self, event: events.Key) -> None:
        """A letter goes to the next recipe that begins with it."""
        options = self.query_one(OptionList)
        if (
            not options.has_focus
            or not event.character
            or not event.character.isalnum()
            or event.key in self.active_bindings
        ):
            return
        names = [str(option.id) for option in options.options]
        at = (options.highlighted or 0) + 1
        found = next((place % len(names) for place in range(at, at + len(names))
                      if names[place % len(names)].startswith(event.character)), None)  # fmt: skip
        if found is not None:
            event.stop()
            options.highlighted = found

    def read_query(self) -> Callable[[Workspace], list[tuple[str, str]]]:
        return lambda _: jobs.recipe_titles()

    def take(self, answer: list[tuple[str, str]]) -> None:
        longest = max((len(name) for name, _ in answer), default=0)
        options = [Option(f"{name:<{longest}}  {title}", id=name) for name, title in answer]
        self.query_one(OptionList).add_options(options)
        self.query_one(OptionList).highlighted = 0 if options else None

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self._answer(str(event.option_id))

    @on(Input.Submitted)
    def _submit(self) -> None:
        typed = self.query_one("#recipe", Input).value.strip()
        chosen = self.query_one(OptionList).highlighted_option
        if typed or chosen is not None:
            self._answer(typed or str(chosen.id if chosen else ""))

    def _answer(self, recipe: str) -> None:
        self.dismiss((recipe, self.query_one("#data", Input).value.strip() or None))
