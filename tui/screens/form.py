"""A form of a few fields, checked while it is filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, Static
from textual.worker import get_current_worker

from sfumato.tui.fields import Field, read_fields, shown_value
from sfumato.tui.widgets.entries import Choice, Entry, LastWord, PathName
from sfumato.workspace.reporting.words import mark

from .page import Dialog

Check = Callable[[dict[str, Any]], None]
"""Raises BadInput when a form's table cannot be used. Called in a thread."""


class Lines(VerticalScroll, can_focus=False, inherit_bindings=False):
    """The fields; arrows go from one to the next and the view follows."""


class Form(Dialog[dict[str, Any]]):
    """Answers the table that the fields make, once ``check`` agrees with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,ctrl+s", "accept", "Accept", id="form.accept"),
        Binding("down", "app.focus_next", "Next field", show=False, id="form.next"),
        Binding("up", "app.focus_previous", "Field before", show=False, id="form.before"),
    ]
    AUTO_FOCUS = ".form-field"

    @dataclass
    class Checked(Message):
        """The fields, as they stood when ``number`` was checked, make ``table``; ``problem`` is empty when it is good."""

        number: int
        table: dict[str, Any]
        problem: str

    def __init__(self, title: str, fields: Sequence[Field], check: Check) -> None:
        super().__init__()
        self._form_title, self._form_fields, self._check = title, tuple(fields), check
        self._number = 0
        self._accepting = False

    def compose(self) -> ComposeResult:
        """A line a field; what the one in focus is for; what is wrong."""
        with Vertical(classes="dialog tall"):
            yield Static(f"{self._form_title}   (enter accepts, escape closes)", classes="dialog-title", markup=False)
            with Lines():
                for order, field in enumerate(self._form_fields):
                    yield Label(field.name, markup=False)
                    yield self._widget(field, f"field-{order}")
            yield from self.compose_beside()
            yield Static("" if self._form_fields else "It has no parameters.", id="form-help", markup=False)
            yield Static("", id="form-problem", markup=False)

    def compose_beside(self) -> ComposeResult:
        """What a form shows between its fields and its help: nothing, unless it is more than a form."""
        return iter(())

    def _widget(self, field: Field, name: str) -> Input | Choice:
        if field.choices:
            given = field.default if field.value is None else field.value
            return Choice(field.choices, shown_value(given) or field.choices[0], id=name, classes="form-field")
        return Entry(
            shown_value(field.value),
            shown_value(field.default),
            suggester=PathName() if field.paths else LastWord(field.words) if field.words else None,
            select_on_focus=False,
            id=name,
            classes="form-field",
        )

    def on_mount(self) -> None:
        """Say at once what is missing."""
        self._examine()

    @property
    def texts(self) -> dict[str, str]:
        """What stands in the fields, by name."""
        widgets = [self.query_one(f"#field-{order}") for order in range(len(self._form_fields))]
        values = [widget.value for widget in widgets if isinstance(widget, (Input, Choice))]
        return {field.name: value for field, value in zip(self._form_fields, values, strict=True)}

    @on(events.DescendantFocus)
    def _show_help(self) -> None:
        name = self.focused.id if self.focused else None
        if name and name.startswith("field-"):
            field = self._form_fields[int(name.removeprefix("field-"))]
            self.query_one("#form-help", Static).update(Content.assemble((f"{field.name}: ", "bold"), field.help))

    @on(Input.Changed)
    @on(Choice.Changed)
    def _examine(self) -> None:
        self._number += 1
        self._check_in_thread(self._number, self.texts)

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _check_in_thread(self, number: int, texts: dict[str, str]) -> None:
        from sfumato.engine.errors import BadInput

        worker = get_current_worker()
        table: dict[str, Any] = {}
        problem = ""
        try:
            table = read_fields(self._form_fields, texts)
            self._check(table)
        except BadInput as error:
            problem = str(error)
        except (OSError, RuntimeError) as error:
            problem = f"that cannot be looked at: {error}"
        if not worker.is_cancelled:
            self.post_message(self.Checked(number, table, problem))

    @on(Checked)
    def _take(self, event: Checked) -> None:
        if event.number != self._number:
            return
        sign = f"{mark('fail')} " if event.problem else f"{mark('pass')} enter accepts"
        self.query_one("#form-problem", Static).update(f"{sign}{event.problem}")
        self.query_one("#form-problem", Static).set_class(bool(event.problem), "wrong")
        if self._accepting and not event.problem:
            self.dismiss(event.table)
        self._accepting = False

    @on(Input.Submitted)
    def action_accept(self) -> None:
        """Answer, unless something is wrong; then say again what."""
        self._accepting = True
        self._examine()
