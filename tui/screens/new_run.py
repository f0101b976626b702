"""Starting a run: a recipe that ships or a file, and the data it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui import jobs
from sfumato.tui.widgets.completion import PathName
from sfumato.tui.widgets.entry import Entry

from .page import Dialog

RECIPE = "or a recipe file, such as survey.toml; right completes the path"
DATA = "data file, where the recipe's own is not meant; right completes the path"


class NewRun(Dialog[tuple[str, str | None]]):
    """Answers the recipe, a name or a file, and the data file if one was named."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "focused.cursor_down", "Down", show=False, id="new_run.down"),
        Binding("k", "focused.cursor_up", "Up", show=False, id="new_run.up"),
    ]
    AUTO_FOCUS = "OptionList"

    @dataclass
    class Arrived(Message):
        """The shipped recipes were read."""

        recipes: list[tuple[str, str]]

    def compose(self) -> ComposeResult:
        """The shipped recipes, and two fields."""
        with Vertical(classes="dialog tall"):
            yield Static("New run: choose a recipe   (enter starts, tab to the fields, escape closes)",
                         classes="dialog-title", markup=False)  # fmt: skip
            yield OptionList(compact=True)
            yield Entry(placeholder=RECIPE, suggester=PathName(), id="recipe")
            yield Entry(placeholder=DATA, suggester=PathName(), id="data")

    def on_mount(self) -> None:
        """Have the recipes read."""
        self._read()

    @work(thread=True, exit_on_error=False)
    def _read(self) -> None:
        self.post_message(self.Arrived(jobs.recipe_titles()))

    @on(Arrived)
    def _show(self, event: Arrived) -> None:
        options = [Option(f"{name:<14} {title}", id=name) for name, title in event.recipes]
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
