"""Form of a few fields that is checked while it is filled in."""

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

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import ChoiceField, EntryField, LastWordSuggester, PathSuggester
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.words import sign_for

from .fields import FormField, read_fields, value_text
from .page import Dialog
from .pick_list import PickList

Check = Callable[[dict[str, Any]], None]
"""Function that raises BadInput if a form's table cannot be used. Called in a thread."""
Texts = Mapping[str, str]
"""Texts of the fields, by name."""
LISTED = "f4 lists (space where it is empty)"


@dataclass(frozen=True, slots=True)
class FieldRemark:
    """Text below a field that keeps a line for it.

    hint: explanation of the value
    warning: problem that a second enter accepts
    """

    hint: str = ""
    warning: str = ""


class Lines(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Fields of a form; the arrows move from one to the next, and the view follows."""


class Form(Dialog[dict[str, Any]]):
    """Dialog that returns the table of its fields once ``check`` accepts it.

    ``remark`` returns the remark below a field for the present texts; it is called in a thread and may be slow.
    ``follow`` returns the texts of other fields that change with one field.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "accept", "Accept", show=True),
        bind_act("save", "accept", "Accept"),
        bind_act("down", "app.focus_next", "Next field"),
        bind_act("up", "app.focus_previous", "Previous field"),
        bind_act("list", "pick", "List", show=True),
        bind_act("jump", "jump"),
        bind_act("mark", "pick(True)", "List", priority=True, only="space"),
    ]
    AUTO_FOCUS = ".form-field"
    no_fields_text: ClassVar[str] = "It has no parameters."

    @dataclass
    class FieldsChecked(Message):
        """Message with the result of a check.

        number: number of the check
        table: table of the fields
        problem: what is wrong; empty if nothing is
        field_name: name of the field with the problem, if there is one
        remark: remark below the field that keeps a line for it
        """

        number: int
        table: dict[str, Any]
        problem: str
        field_name: str = ""
        remark: FieldRemark = FieldRemark()

    def __init__(
        self,
        title: str,
        fields: Sequence[FormField],
        check: Check,
        *,
        remark: Callable[[Texts], FieldRemark] | None = None,
        follow: Callable[[str, Texts], Texts] | None = None,
        start: str = "",
        topic: str = "",
    ) -> None:
        """Create the form.

        start: name of the field that has the focus first
        topic: topic of the manual about the whole form
        """
        super().__init__()
        self._topic = topic
        self._form_title, self._form_fields, self._check = title, tuple(fields), check
        self._remark, self._follow, self._start = remark, follow, start
        self._number = 0
        self._accepting = False
        self._warned = ""
        self._jumping: Widget | None = None
        self._first_texts: Texts | None = None
        self._is_touched = False

    def compose(self) -> ComposeResult:
        """Yield a line for each field, the help of the focused one, and what is wrong."""
        with DialogBox(self._form_title, "enter accepts, esc closes", tall=True):
            with Lines():
                for order, field in enumerate(self._form_fields):
                    yield Label(field.name, markup=False, id=f"label-{order}")
                    yield self._make_field_widget(field, f"field-{order}")
                    if field.has_remark_line:
                        yield Static("", id="form-beside", markup=False)
            yield from self.compose_extra()
            yield Static("" if self._form_fields else self.no_fields_text, id="form-help", markup=False)
            yield Static("", id="form-problem", markup=False)

    def compose_extra(self) -> ComposeResult:
        """Yield widgets between the fields and their help; none by default."""
        return iter(())

    def _make_field_widget(self, field: FormField, name: str) -> Input | ChoiceField:
        """Return the widget of a field: a choice, or a text with completion."""
        if field.choices:
            given = field.default if field.value is None else field.value
            return ChoiceField(field.choices, value_text(given) or field.choices[0], id=name, classes="form-field")
        words = field.words or tuple(offer.value for offer in field.offers)
        return EntryField(
            value_text(field.value),
            value_text(field.default),
            suggester=PathSuggester(last=field.kind == "list")
            if field.completes_paths
            else LastWordSuggester(words)
            if words
            else None,
            select_on_focus=False,
            leaves=("space",) if field.list_offers else (),
            id=name,
            classes="form-field",
        )

    def on_mount(self) -> None:
        """Focus the first field, hide fields without a meaning, and check the form."""
        names = [field.name for field in self._form_fields]
        if self._start in names:
            first = self.query_one(f"#field-{names.index(self._start)}").focus()
            # The fields have no place yet to which the view could move.
            self.call_after_refresh(first.scroll_visible, animate=False)
        self._show_relevant_fields()
        self._first_texts = self.field_texts
        self._start_check()

    @property
    def field_texts(self) -> dict[str, str]:
        """Return the texts of the fields, by name."""
        widgets = [self.query_one(f"#field-{order}") for order in range(len(self._form_fields))]
        values = [widget.value for widget in widgets if isinstance(widget, (Input, ChoiceField))]
        return {field.name: value for field, value in zip(self._form_fields, values, strict=True)}

    def _field_for_widget(self, name: str | None) -> FormField | None:
        """Return the field of the widget with this id; None for another widget."""
        given = name is not None and name.startswith("field-")
        return self._form_fields[int(str(name).removeprefix("field-"))] if given else None

    @property
    def _focused_field(self) -> FormField | None:
        """Return the field that has the focus; None without one."""
        return self._field_for_widget(self.focused.id) if self.focused else None

    def manual_topics(self) -> Sequence[str]:
        """Return the topics of the focused field, then that of the whole form."""
        topic, field = self._topic or self.manual, self._focused_field
        fields = () if field is None or not topic else (f"{topic}.{field.name}", f"{topic} {field.name}")
        return (*fields, topic)

    @on(events.DescendantFocus)
    def _show_help(self) -> None:
        """Show the help of the focused field."""
        if (field := self._focused_field) is not None:
            listed = f" · {LISTED}" if field.list_offers and not field.choices else ""
            self.query_one("#form-help", Static).update(
                Content.assemble((f"{field.name}: ", "bold"), field.help, listed)
            )

    @on(Input.Changed)
    def _follow_typed(self, event: Input.Changed) -> None:
        """React to a changed text."""
        self._update_after_change(event.input.id)

    @on(ChoiceField.ChoiceChanged)
    def _follow_choice(self, event: ChoiceField.ChoiceChanged) -> None:
        """React to a changed choice."""
        self._update_after_change(event.choice.id)

    def _update_after_change(self, name: str | None) -> None:
        """Change the fields that follow this one, and check the form."""
        field = self._field_for_widget(name)
        if field is not None and self._follow is not None:
            for other, text in self._follow(field.name, self.field_texts).items():
                at = next(order for order, one in enumerate(self._form_fields) if one.name == other)
                widget = self.query_one(f"#field-{at}")
                if isinstance(widget, (Input, ChoiceField)):
                    widget.value = text
        self._show_relevant_fields()
        self._start_check()

    def _show_relevant_fields(self) -> None:
        """Hide the fields that have no meaning with the values of others."""
        texts = self.field_texts
        for order, field in enumerate(self._form_fields):
            if field.shown_when is not None:
                other, values = field.shown_when
                for part in ("label", "field"):
                    self.query_one(f"#{part}-{order}").display = texts[other] in values

    def _start_check(self) -> None:
        """Check the present texts in a thread."""
        self._number += 1
        # Before a key nothing is wrong: what is still to fill in is a hint.
        self._is_touched |= self._accepting or self.field_texts != self._first_texts
        self._check_in_thread(self._number, self.field_texts)

    @work(thread=True, exclusive=True, group="check", exit_on_error=False)
    def _check_in_thread(self, number: int, texts: dict[str, str]) -> None:
        """Read the fields and check the table; post the result."""
        from sfumato.engine.errors import BadInput

        worker = get_current_worker()
        table: dict[str, Any] = {}
        problem = at = ""
        remark = FieldRemark() if self._remark is None else self._remark(texts)
        try:
            table = read_fields(self._form_fields, texts)
            self._check(table)
        except BadInput as error:
            problem, at = str(error), error.place
            if any(field.has_remark_line and field.name == at for field in self._form_fields):
                problem = error.message
        except (OSError, RuntimeError) as error:
            problem = f"that cannot be looked at: {error}"
        # Checks can be slow; the result of an earlier one must not replace that of a later one.
        if not worker.is_cancelled:
            self.post_message(self.FieldsChecked(number, table, problem, at, remark))

    @on(FieldsChecked)
    def _show_check(self, event: FieldsChecked) -> None:
        """Show the result of a check, and close the form if it was accepted."""
        # An earlier check says nothing about the present texts.
        if event.number != self._number:
            return
        warning = "" if event.problem else event.remark.warning
        is_wrong = bool(event.problem) and self._is_touched
        self._mark_wrong_field(event.field_name if is_wrong else "")
        below = self._show_remark(event)
        if event.problem:
            problem = event.field_name if below else event.problem
            said = f"{sign_for('fail')} {problem}" if is_wrong else f"to fill in: {problem}"
        else:
            said = (
                f"{sign_for('warn')} enter twice accepts it all the same"
                if warning
                else f"{sign_for('pass')} enter accepts"
            )
        self.query_one("#form-problem", Static).update(said)
        self.query_one("#form-problem", Static).set_class(is_wrong, "wrong")
        if self._accepting and not event.problem:
            # A warning must have been read: the first enter shows it, the second accepts it.
            if not warning or self._warned == warning:
                self.dismiss(event.table)
            self._warned = warning
        self._accepting = False

    def action_jump(self) -> None:
        """Show a letter before the name of each field; typing a letter moves the focus to its field."""
        self._jumping = self.focused
        # Without the focus on a field the letter is not typed into it.
        self.set_focus(None)
        for letter, order in self._field_letters().items():
            self.query_one(f"#label-{order}", Label).update(f"{letter} {self._form_fields[order].name}")

    def _field_letters(self) -> Mapping[str, int]:
        """Return the indices of the shown fields, by letter."""
        shown = [order for order in range(len(self._form_fields)) if self.query_one(f"#field-{order}").display]
        return dict(zip(ascii_lowercase, shown, strict=False))

    def on_key(self, event: events.Key) -> None:
        """Move the focus to the field of the typed letter; any other key returns to the previous field."""
        if self._jumping is None:
            return
        event.stop()
        order = self._field_letters().get(event.key)
        for place, field in enumerate(self._form_fields):
            self.query_one(f"#label-{place}", Label).update(field.name)
        (self._jumping if order is None else self.query_one(f"#field-{order}")).focus()
        self._jumping = None
        self._start_check()

    def _mark_wrong_field(self, at: str) -> None:
        """Show a sign before the name of the field with the problem."""
        wrong = _leading_name(at)
        for order, field in enumerate(self._form_fields):
            label = self.query_one(f"#label-{order}", Label)
            if label.has_class("wrong") != (field.name == wrong):
                label.update(f"{sign_for('fail')} {field.name}" if field.name == wrong else field.name)
                label.set_class(field.name == wrong, "wrong")

    def _show_remark(self, event: FieldsChecked) -> bool:
        """Write problem, warning or hint below the field with a line for it; return whether the problem is this
        field's.
        """
        field = next((field for field in self._form_fields if field.has_remark_line), None)
        if field is None:
            return False
        wrong = bool(event.problem) and event.field_name == field.name
        warned = not event.problem and bool(event.remark.warning)
        hint = "" if wrong and self.field_texts[field.name] else event.remark.hint
        sign = f"{sign_for('fail')} " if self._is_touched else ""
        text = " · ".join(filter(None, (f"{sign}{event.problem}" if wrong else "", hint)))
        line = self.query_one("#form-beside", Static)
        line.update(f"{sign_for('warn')} {event.remark.warning}" if warned else text)
        line.set_class((wrong and self._is_touched) or warned, "wrong")
        return wrong

    @on(Input.Submitted)
    def action_accept(self) -> None:
        """Close the form with the table if the check accepts it, otherwise show the problem."""
        self._accepting = True
        self._start_check()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the list if the field has one; space opens it only from an empty field."""
        if action != "pick":
            return super().check_action(action, parameters)
        field, widget = self._focused_field, self.focused
        if field is None or not field.list_offers or not isinstance(widget, Input):
            return False
        return not parameters or not widget.value

    async def action_pick(self, _: bool = False) -> None:
        """Choose the value of the field from a list."""
        field, widget = self._focused_field, self.focused
        if field is None or not isinstance(widget, Input):
            return

        def set_chosen(chosen: tuple[str, ...] | None) -> None:
            """Put the chosen values into the field, with the cursor where the first value is missing."""
            if chosen is not None:
                text = field.text_for_chosen(widget.value, chosen)
                widget.value = text
                blank = text.find("= ,")
                widget.cursor_position = len(text) if blank < 0 else blank + 2

        chosen = field.chosen_values(widget.value)
        several, free = field.kind in ("list", "table"), field.kind != "table"
        lists = PickList(field.name, field.list_offers, chosen, several=several, free=free, joined=field.join_sign)
        await self.sfumato.open(lists, set_chosen)


def _leading_name(place: str) -> str:
    """Return the field that a place names first: ``predictors`` of ``predictors[2]``."""
    return place.partition(".")[0].partition("[")[0]
