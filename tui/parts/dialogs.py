"""General dialogs: a question, a choice from a list, the messages of this session, and the run to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session import jobs
from sfumato.tui.widgets.entries import EntryField, PagedOptionList, PathSuggester
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.pages import PAGE, TableRow
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from .page import Dialog

DESTROYING = frozenset({"Delete", "Interrupt", "Discard"})
"""Names of acts whose button is red."""
LASTING = frozenset({"Delete", "Discard", "Release", "Show"})
"""Names of acts that cannot be undone: only ``y`` or the chosen button agrees to them."""
Answer = TypeVar("Answer")
RECIPE = "or a recipe file, such as survey.toml; right completes the path"
DATA = "data file, where the recipe's own is not meant; right completes the path"


class ConfirmDialog(Dialog[bool]):
    """Dialog with a question, which returns True only for a deliberate yes.

    The button for yes has the name of the act, such as Delete; y and n answer too. Enter agrees, as in a form; to an act
    that cannot be undone it is no answer, so that a key pressed too often deletes and releases nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("left", "app.focus_next", "Other answer"),
        bind_act("right", "app.focus_next", "Other answer"),
    ]
    AUTO_FOCUS = ".agrees"

    def __init__(self, question: str, consequence: str, act: str = "Yes") -> None:
        """Create the dialog with a question, its consequence, and the name of the act."""
        super().__init__()
        self._question, self._consequence, self._act = question, consequence, act
        self._destroys, self._lasts = act in DESTROYING, act in LASTING

    def on_key(self, event: events.Key) -> None:
        """Take ``y`` and ``n`` as answers; say that enter is none where nothing has the focus."""
        if event.key in ("y", "n"):
            event.stop()
            self.dismiss(event.key == "y")
        elif event.key == "enter" and self.focused is None:
            event.stop()
            self.sfumato.say(f"Enter is no answer here; press y to {self._act.lower()}, n for no")

    @property
    def _agreeing_text(self) -> str:
        """Return which key agrees: ``y: delete``, ``enter or y: run``."""
        return f"y: {self._act.lower()}" if self._lasts else f"enter or y: {self._act.lower()}"

    def compose(self) -> ComposeResult:
        """Yield the question, its consequence and the two answers."""
        with DialogBox(self._question, f"{self._agreeing_text}, n: no", destroys=self._destroys):
            yield Static(self._consequence, markup=False)
            yield from self.compose_extra()
            with Horizontal(classes="buttons"):
                yield Button("No  n", id="no", compact=True)
                yield Button(
                    f"{self._act}  y",
                    id="yes",
                    variant="error" if self._destroys else "primary",
                    classes="" if self._lasts else "agrees",
                    compact=True,
                )

    def compose_extra(self) -> ComposeResult:
        """Yield widgets between the consequence and the answers; none by default."""
        return iter(())

    @on(Button.Pressed, "#yes")
    def action_agree(self) -> None:
        """Close the dialog with yes."""
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_close(self) -> None:
        """Close the dialog with no."""
        self.dismiss(False)


@dataclass(frozen=True)
class MatchingChoices:
    """Choices that match the typed words, as pages of a grid with one column.

    choice_text: function that returns the text of the choice at a place
    places: places of the matching choices
    columns: the one column of the grid

    Each row ends with the place of its choice.
    """

    choice_text: Callable[[int], str]
    places: Sequence[int]
    columns: Sequence[DisplayColumn]

    def count(self) -> int:
        """Return the number of matching choices."""
        return len(self.places)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Return a page of choices with their places."""
        return [(replace_unprintable(self.choice_text(place)), place) for place in self.places[offset : offset + limit]]


class ChoiceDialog(Dialog[int]):
    """Dialog that returns the place of the chosen entry, from 0.

    ``name`` returns the text of an entry. It is called in a thread, for all entries only once words are typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "step(1)", priority=True, typed=True),
        bind_act("up", "step(-1)", priority=True, typed=True),
    ]
    DEFAULT_CSS = """
    ChoiceDialog Grid > .grid--cursor { text-style: reverse; }
    ChoiceDialog #choose-whole { height: 2; color: $text-muted; }
    """
    AUTO_FOCUS = "Input"

    @dataclass
    class ChoicesMatched(Message):
        """Message that a search has ended.

        choices: the matching choices
        cursor_row: row for the cursor
        """

        choices: MatchingChoices
        cursor_row: int

    def __init__(self, title: str, total: int, name: Callable[[int], str], chosen: int) -> None:
        """Create the dialog with ``total`` entries, of which the one at place ``chosen`` is marked."""
        super().__init__()
        self._title, self._total, self._name_of, self._chosen = title, total, name, chosen
        self._searched: Sequence[str] = ()
        self._settled = self._accepting = False

    def compose(self) -> ComposeResult:
        """Yield a field for words, the matching choices, and the whole text of the marked one."""
        with DialogBox(self._title, "words to find it, enter chooses, esc closes", tall=True):
            yield EntryField(placeholder="words that must occur", id="choose-words")
            yield Grid(empty="None has these words.")
            yield Static("", id="choose-whole", markup=False)

    def on_mount(self) -> None:
        """Show all choices with the present one marked."""
        self._start_search("")

    def _start_search(self, words: str) -> None:
        """Search for words in a thread."""
        # Enter that is pressed before the result is shown must not choose from the old list.
        self._settled = False
        self._search_choices(words.lower().split())

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _search_choices(self, words: list[str]) -> None:
        """Find the choices that contain all words."""
        worker = get_current_worker()
        # A range: there may be thousands of entries, whose texts are made only for a search.
        places: Sequence[int] = range(self._total)
        if words:
            self._searched = self._searched or [self._name_of(place).lower() for place in places]
            places = [i for i, text in enumerate(self._searched) if all(word in text for word in words)]
        # Only the first page is measured: texts may be slow to make, and there may be many.
        widest = max((cell_len(replace_unprintable(self._name_of(place))) for place in places[:PAGE]), default=0)
        column = DisplayColumn("choice", f"{len(places):,} of {self._total:,}", widest)
        found = MatchingChoices(self._name_of, places, (column,))
        if not worker.is_cancelled:
            self.post_message(self.ChoicesMatched(found, places.index(self._chosen) if self._chosen in places else 0))

    @on(ChoicesMatched)
    def _show_matches(self, event: ChoicesMatched) -> None:
        """Show the matching choices, and the line for the whole text if one of them is cut."""
        offer = self.query_one(Grid)
        longest = event.choices.columns[0].width
        self.query_one("#choose-whole").display = longest > offer.scrollable_content_region.width - 2
        offer.return_to(str(event.cursor_row))
        offer.set_source(event.choices)

    @on(Grid.RowHighlighted)
    def _show_whole_text(self, event: Grid.RowHighlighted) -> None:
        """Show the whole text of the choice under the cursor."""
        whole = "" if event.row is None else str(event.row[0])
        self.query_one("#choose-whole", Static).update(whole)

    @on(Grid.SourceOpened)
    def _accept_when_shown(self) -> None:
        """Choose the marked entry if enter was pressed during the search."""
        self._settled = True
        if self._accepting:
            self._accept_marked()

    @on(Input.Changed)
    def _search_typed(self, event: Input.Changed) -> None:
        """Search for the typed words."""
        self._start_search(event.value)

    def action_step(self, step: int) -> None:
        """Mark the next choice or the previous one; the first follows the last."""
        offer = self.query_one(Grid)
        if offer.row_count:
            offer.cursor = (offer.cursor + step) % offer.row_count

    @on(Input.Submitted)
    def _accept_marked(self) -> None:
        """Choose the marked entry, now or when the search has ended."""
        self._accepting = not self._settled
        if self._settled:
            self.query_one(Grid).action_select()

    @on(Grid.RowSelected)
    def _answer_selected(self, event: Grid.RowSelected) -> None:
        """Close the dialog with the place of the chosen entry."""
        if isinstance(event.row[-1], int):
            self.dismiss(event.row[-1])


class LetterDialog(Dialog[Answer], Generic[Answer]):
    """Dialog that returns one of a few choices, by its letter or by enter.

    ``offers`` are tuples (letter, answer, name, explanation). ``capitals`` are further answers, by capital letters that
    ``capitals_hint`` explains.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "focused.cursor_down", only="j"),
        bind_act("up", "focused.cursor_up", only="k"),
    ]
    DEFAULT_CSS = "LetterDialog OptionList { height: auto; }"
    AUTO_FOCUS = "OptionList"

    def __init__(
        self,
        title: str,
        offers: Sequence[tuple[str, Answer, str, str]],
        now: Answer | None = None,
        *,
        capitals: Mapping[str, Answer] | None = None,
        capitals_hint: str = "",
    ) -> None:
        """Create the dialog; ``now`` is the answer that is marked first."""
        super().__init__()
        self._title, self._offers, self._now = title, offers, now
        self._answers = {letter: answer for letter, answer, _, _ in offers} | dict(capitals or {})
        self._hint = f"a letter, or enter{f'; {capitals_hint}' if capitals_hint else ''}"

    def compose(self) -> ComposeResult:
        """Yield the answers, each with its letter."""
        longest = max(len(name) for _, _, name, _ in self._offers)
        with DialogBox(self._title, self._hint):
            texts = (f"{letter}  {name:<{longest}}  {what}" for letter, _, name, what in self._offers)
            yield PagedOptionList(*map(Option, texts), compact=True, markup=False)

    def on_mount(self) -> None:
        """Mark the present answer; the base class's own handler runs as well."""
        answers = [answer for _, answer, _, _ in self._offers]
        self.query_one(OptionList).highlighted = answers.index(self._now) if self._now in answers else 0

    def on_key(self, event: events.Key) -> None:
        """Take a letter as its answer."""
        found = self._answers.get(event.character or "")
        if found is not None:
            event.stop()
            self.dismiss(found)

    @on(OptionList.OptionSelected)
    def _answer_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the answer that was selected."""
        self.dismiss(self._offers[event.option_index][1])


class NoticesDialog(Dialog[None]):
    """Dialog with all messages since the app started, the latest first."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, notices: Sequence[str]) -> None:
        """Create the dialog with the messages, the oldest first."""
        super().__init__()
        self._notices = notices

    def compose(self) -> ComposeResult:
        """Yield the messages, the latest first."""
        with DialogBox("Messages", "q closes", tall=True):
            yield Scroll("\n\n".join(reversed(self._notices)) or "Nothing has been said yet.")


class NewRun(Dialog[tuple[str, str | None]]):
    """Dialog that returns the recipe to run, a name or a file, and the data file if one is named."""

    manual = "commands sfumato run"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "focused.cursor_down", only="j"),
        bind_act("up", "focused.cursor_up", only="k"),
    ]
    AUTO_FOCUS = "OptionList"

    def compose(self) -> ComposeResult:
        """Yield the shipped recipes, a field for a recipe file and one for a data file."""
        with DialogBox(
            "New run: choose a recipe", "a letter finds, enter starts, tab to the fields, esc closes", tall=True
        ):
            yield PagedOptionList(compact=True)
            yield EntryField(placeholder=RECIPE, suggester=PathSuggester(), id="recipe")
            yield EntryField(placeholder=DATA, suggester=PathSuggester(), id="data")

    def on_key(self, event: events.Key) -> None:
        """Mark the next recipe whose name begins with the typed letter."""
        options = self.query_one(OptionList)
        if (
            # A letter that is a key of the dialog keeps that meaning.
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
        """Return the query for names and titles of the built-in recipes."""
        return lambda _: jobs.recipe_titles()

    def show_answer(self, answer: list[tuple[str, str]]) -> None:
        """List the recipes."""
        longest = max((len(name) for name, _ in answer), default=0)
        options = [Option(f"{name:<{longest}}  {title}", id=name) for name, title in answer]
        self.query_one(OptionList).add_options(options)
        self.query_one(OptionList).highlighted = 0 if options else None

    @on(OptionList.OptionSelected)
    def _answer_listed(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the listed recipe."""
        self._dismiss_with(str(event.option_id))

    @on(Input.Submitted)
    def _answer_typed(self) -> None:
        """Close the dialog with the typed recipe; without one with the marked one."""
        typed = self.query_one("#recipe", Input).value.strip()
        chosen = self.query_one(OptionList).highlighted_option
        if typed or chosen is not None:
            self._dismiss_with(typed or str(chosen.id if chosen else ""))

    def _dismiss_with(self, recipe: str) -> None:
        """Close the dialog with a recipe and the typed data file."""
        self.dismiss((recipe, self.query_one("#data", Input).value.strip() or None))
