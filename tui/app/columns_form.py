"""Form for the columns of a file that may be read in two ways, shown before anything is stored, with the first rows."""

from __future__ import annotations

import re
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from sfumato.engine.data.schema import Kind, Role
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.reporting.tables import DisplayColumn, DisplayTable, format_table
from sfumato.workspace.service.importing import FilePreview
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.fields import FormField
from ..parts.form import Form
from ..session.importing import LEAVE_OUT, check_answer, plain_question, proposed_answer

LINES_AROUND = 13
"""Lines of a terminal that are neither fields nor first rows: frames, help, what is wrong, names of columns."""
FEWEST_ROWS = 3


class ColumnsForm(Form):
    """Form for the columns of a file with a question: a field each, and the first rows of these columns.

    It returns the answers by column, which ``selection_from_answers`` of the session converts.
    """

    manual = "commands sfumato import"

    def __init__(self, preview: FilePreview) -> None:
        """Create the form for a file that was read and not stored."""
        self._preview = preview
        number = len(preview.asked_columns)
        title = f"What {number} of {len(preview.columns)} columns of {replace_unprintable(preview.source)} are"
        super().__init__(title, [_field_of_column(one) for one in preview.asked_columns], self._check_kinds)

    def compose_extra(self) -> ComposeResult:
        """Yield the text for the first rows."""
        yield Static(id="columns-rows", markup=False)

    def _check_kinds(self, answers: dict[str, Any]) -> None:
        """Raise BadInput at the column whose answer is no kind."""
        for column in self._preview.asked_columns:
            check_answer(self._preview, column.variable.name, str(answers.get(column.variable.name, "")))

    @on(Form.FieldsChecked)
    def _show_first_rows(self) -> None:
        """Show the first rows of the columns that are asked about."""
        below = self.query_one("#columns-rows", Static)
        shown = self._preview.first_rows
        # the columns in front are asked about first; what does not fit is dropped from the end
        heads = [
            DisplayColumn(name, replace_unprintable(name), drop_order=len(shown) - at if at else 0)
            for at, name in enumerate(shown)
        ]
        rows = [[replace_unprintable(text) for text in row] for row in zip(*shown.values(), strict=True)]
        # on a small terminal the fields need the room
        rows = rows[: max(FEWEST_ROWS, self.size.height - LINES_AROUND - len(shown))]
        below.update(format_table(DisplayTable(heads, rows), max(20, below.size.width)))

    def on_resize(self) -> None:
        """Show as many columns of the rows as there is room for."""
        self.call_after_refresh(self._show_first_rows)


def _field_of_column(column: ColumnProfile) -> FormField:
    """Return the field for a column, with its question and the ways to read it: those that the question names first."""
    question, proposal = plain_question(column), proposed_answer(column)
    forms = [f"{Kind.DATE}:{one}" for one in (column.variable.format, *column.other_formats) if one]
    answers = (*Kind, Role.UNIT.value, LEAVE_OUT)
    named = [answer for answer in answers if re.search(rf"\b{answer}\b", question)]
    offered = tuple(dict.fromkeys([proposal, *forms, *named, LEAVE_OUT, *answers]))
    # The form of a date may be typed.
    if forms:
        return FormField(column.variable.name, question, value=proposal, words=offered)
    return FormField(column.variable.name, question, value=proposal, choices=offered)
