"""A form of a few fields, checked while it is filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Static
from textual.worker import get_current_worker

from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.entries import Choice, Entry, LastWord, PathName
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.reporting.words import mark

from .fields import Field, read_fields, shown_value
from .page import Dialog
from .pick_list import PickList

Check = Callable[[dict[str, Any]], None]
"""Raises BadInput when a form's table cannot be used. Called in a thread."""
Texts = Mapping[str, str]
"""What stands in the fields, by name."""
LISTED = "f4 lists (space where it is empty)"


@dataclass(frozen=True, slots=True)
class Remark:
    """What is said below a field that has a line for it: a ``hint``, and a ``warning``, which is accepted the second time."""

    hint: str = ""
    warning: str = ""


class Lines(VerticalScroll, can_focus=False, inherit_bindings=False):
    """The fields; arrows go from one to the next and the view follows."""


class Form(Dialog[dict[str, Any]]):
    """Answers the table that the fields make, once ``check`` agrees with it.

    ``remark`` says of the texts what stands below the field with a line for it; called in a thread, it may take its time. ``follow``
    says which texts change with that of a field.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("open", "accept", "Accept", show=True),
        bind("save", "accept", "Accept"),
        bind("down", "app.focus_next", "Next field"),
        bind("up", "app.focus_previous", "Previous field"),
        bind("list", "pick", "List", show=True),
        bind("jump", "jump"),
        bind("mark", "pick(True)", "List", priority=True, only="space"),
    ]
    AUTO_FOCUS = ".form-field"

    @dataclass
    class Checked(Message):
        """The fields, as they stood when ``number`` was checked, make ``table``; ``problem`` is empty when it is good.

        ``at`` is the field with the problem, where it is one's; ``remark`` stands below the field that has a line.
        """

        number: int
        table: dict[str, Any]
        problem: str
        at: str = ""
        remark: Remark = Remark()

    def __init__(
        self,
        title: str,
        fields: Sequence[Field],
        check: Check,
        *,
        remark: Callable[[Texts], Remark] | None = None,
        follow: Callable[[str, Texts], Texts] | None = None,
        start: str = "",
        topic: str = "",
    ) -> None:
        """``start`` names the field that has the focus at first, ``topic`` what the manual has of the whole form."""
        super().__init__()
        self._topic = topic
        self._form_title, self._form_fields, self._check = title, tuple(fields), check
        self._remark, self._follow, self._start = remark, follow, start
        self._number = 0
        self._accepting = False
        self._warned = ""
        self._jumping: Widget | None = None

    def compose(self) -> ComposeResult:
        """A line a field; what the one in focus is for; what is wrong."""
        with Box(self._form_title, "enter accepts, esc closes", tall=True):
            with Lines():
                for order, field in enumerate(self._form_fields):
                    yield Label(field.name, markup=False, id=f"label-{order}")
                    yield self._widget(field, f"field-{order}")
                    if field.beside:
                        yield Static("", id="form-beside", markup=False)
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
        words = field.words or tuple(offer.value for offer in field.offers)
        return Entry(
            shown_value(field.value),
            shown_value(field.default),
            suggester=PathName(last=field.kind == "list") if field.paths else LastWord(words) if words else None,
            select_on_focus=False,
            leaves=("space",) if field.listed else (),
            id=name,
            classes="form-field",
        )

    def on_mount(self) -> None:
        names = [field.name for field in self._form_fields]
        if self._start in names:
            self.query_one(f"#field-{names.index(self._start)}").focus()
        self._show_those_that_count()
        self._examine()

    @property
    def texts(self) -> dict[str, str]:
        """What stands in the fields, by name."""
        widgets = [self.query_one(f"#field-{order}") for order in range(len(self._form_fields))]
        values = [widget.value for widget in widgets if isinstance(widget, (Input, Choice))]
        return {field.name: value for field, value in zip(self._form_fields, values, strict=True)}

    def _field_of(self, name: str | None) -> Field | None:
        given = name is not None and name.startswith("field-")
        return self._form_fields[int(str(name).removeprefix("field-"))] if given else None

    @property
    def _here(self) -> Field | None:
        return self._field_of(self.focused.id) if self.focused else None

    def manual_topics(self) -> Sequence[str]:
        """The field that has the focus, then the whole form."""
        topic, field = self._topic or self.manual, self._here
        fields = () if field is None or not topic else (f"{topic}.{field.name}", f"{topic} {field.name}")
        return (*fields, topic)

    @on(events.DescendantFocus)
    def _show_help(self) -> None:
        if (field := self._here) is not None:
            listed = f" · {LISTED}" if field.listed and not field.choices else ""
            self.query_one("#form-help", Static).update(
                Content.assemble((f"{field.name}: ", "bold"), field.help, listed)
            )

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._changed(event.input.id)

    @on(Choice.Changed)
    def _chosen(self, event: Choice.Changed) -> None:
        self._changed(event.choice.id)

    def _changed(self, name: str | None) -> None:
        field = self._field_of(name)
        if field is not None and self._follow is not None:
            for other, text in self._follow(field.name, self.texts).items():
                at = next(order for order, one in enumerate(self._form_fields) if one.name == other)
                widget = self.query_one(f"#field-{at}")
                if isinstance(widget, (Input, Choice)):
                    widget.value = text
        self._show_those_that_count()
        self._examine()

    def _show_those_that_count(self) -> None:
        """Hide the fields that mean nothing with what stands in others."""
        texts = self.texts
        for order, field in enumerate(self._form_fields):
            if field.when is not None:
                other, values = field.when
                for part in ("label", "field"):
                    self.query_one(f"#{part}-{order}").display = texts[other] in values

    def _examine(self) -> None:
        self._number += 1
        self._check_in_thread(self._number, self.texts)

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _check_in_thread(self, number: int, texts: dict[str, str]) -> None:
        from sfumato.engine.errors import BadInput

        worker = get_current_worker()
        table: dict[str, Any] = {}
        problem = at = ""
        remark = Remark() if self._remark is None else self._remark(texts)
        try:
            table = read_fields(self._form_fields, texts)
            self._check(table)
        except BadInput as error:
            problem, at = str(error), error.place
            if any(field.beside and field.name == at for field in self._form_fields):
                problem = error.message
        except (OSError, RuntimeError) as error:
            problem = f"that cannot be looked at: {error}"
        if not worker.is_cancelled:
            self.post_message(self.Checked(number, table, problem, at, remark))

    @on(Checked)
    def _take(self, event: Checked) -> None:
        if event.number != self._number:
            return
        warning = "" if event.problem else event.remark.warning
        self._show_signs(event.at if event.problem else "")
        below = self._say_below(event)
        if event.problem:
            said = f"{mark('fail')} {event.at if below else event.problem}"
        else:
            said = f"{mark('warn')} enter twice accepts it all the same" if warning else f"{mark('pass')} enter accepts"
        self.query_one("#form-problem", Static).update(said)
        self.query_one("#form-problem", Static).set_class(bool(event.problem), "wrong")
        if self._accepting and not event.problem:
            if not warning or self._warned == warning:
                self.dismiss(event.table)
            self._warned = warning
        self._accepting = False

    def action_jump(self) -> None:
        """Put a letter before the name of every field; the one that is typed has its field take the focus."""
        self._jumping = self.focused
        self.set_focus(None)
        for letter, order in self._letters().items():
            self.query_one(f"#label-{order}", Label).update(f"{letter} {self._form_fields[order].name}")

    def _letters(self) -> Mapping[str, int]:
        """The places of the fields that are shown, by letter."""
        shown = [order for order in range(len(self._form_fields)) if self.query_one(f"#field-{order}").display]
        return dict(zip(ascii_lowercase, shown, strict=False))

    def on_key(self, event: events.Key) -> None:
        """Jump to the field of a letter; another key comes back."""
        if self._jumping is None:
            return
        event.stop()
        order = self._letters().get(event.key)
        for place, field in enumerate(self._form_fields):
            self.query_one(f"#label-{place}", Label).update(field.name)
        (self._jumping if order is None else self.query_one(f"#field-{order}")).focus()
        self._jumping = None
        self._examine()

    def _show_signs(self, at: str) -> None:
        """Put a sign before the name of the field that is wrong."""
        wrong = _first_name(at)
        for order, field in enumerate(self._form_fields):
            label = self.query_one(f"#label-{order}", Label)
            if label.has_class("wrong") != (field.name == wrong):
                label.update(f"{mark('fail')} {field.name}" if field.name == wrong else field.name)
                label.set_class(field.name == wrong, "wrong")

    def _say_below(self, event: Checked) -> bool:
        """Say what there is to say below a field that has a line for it; whether that is the problem."""
        field = next((field for field in self._form_fields if field.beside), None)
        if field is None:
            return False
        wrong = bool(event.problem) and event.at == field.name
        warned = not event.problem and bool(event.remark.warning)
        hint = "" if wrong and self.texts[field.name] else event.remark.hint
        text = " · ".join(filter(None, (f"{mark('fail')} {event.problem}" if wrong else "", hint)))
        line = self.query_one("#form-beside", Static)
        line.update(f"{mark('warn')} {event.remark.warning}" if warned else text)
        line.set_class(wrong or warned, "wrong")
        return wrong

    @on(Input.Submitted)
    def action_accept(self) -> None:
        """Answer, unless something is wrong; then say again what."""
        self._accepting = True
        self._examine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A list where a field has one; space opens it where nothing is typed yet."""
        if action != "pick":
            return super().check_action(action, parameters)
        field, widget = self._here, self.focused
        if field is None or not field.listed or not isinstance(widget, Input):
            return False
        return not parameters or not widget.value

    async def action_pick(self, _: bool = False) -> None:
        """Choose from a list what stands in the field."""
        field, widget = self._here, self.focused
        if field is None or not isinstance(widget, Input):
            return

        def answered(chosen: tuple[str, ...] | None) -> None:
            if chosen is not None:
                text = field.with_chosen(widget.value, chosen)
                widget.value = text
                blank = text.find("= ,")
                widget.cursor_position = len(text) if blank < 0 else blank + 2

        chosen = field.chosen_in(widget.value)
        several, free = field.kind in ("list", "table"), field.kind != "table"
        lists = PickList(field.name, field.listed, chosen, several=several, free=free, joined=field.joined)
        await self.sfumato.open(lists, answered)


def _first_name(place: str) -> str:
    """The field that a place names first: ``predictors`` of ``predictors[2]``."""
    return place.partition(".")[0].partition("[")[0]
