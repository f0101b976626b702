"""First rows of a file with how each column is read, and a field for each column that may be read in two ways.

It is shown before anything is stored.
"""

from __future__ import annotations

import re
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.wording import count_noun
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.reporting.reading import previewed_rows_table
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.service.importing import FilePreview
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.fields import FormField
from ..parts.form import Form
from ..session.importing import LEAVE_OUT, check_answer, plain_question, proposed_answer

LINES_AROUND = 15
"""Lines of a terminal that are neither fields nor first rows: frames, help, what is wrong, how columns are read."""
FEWEST_ROWS = 3


class ColumnsForm(Form):
    """Form with the first rows of a file below how each column is read, and a field for each column with a question.

    It returns the answers by column, which ``selection_from_answers`` of the session converts.
    """

    manual = "commands sfumato import"
    no_fields_text = "Nothing is unclear: enter imports the file as shown."

    def __init__(self, preview: FilePreview) -> None:
        """Create the form for a file that was read and not stored."""
        self._preview = preview
        number = len(preview.asked_columns)
        source, columns = replace_unprintable(preview.source), count_noun(len(preview.columns), "column")
        title = f"What {number} of {columns} of {source} are" if number else f"Import {source}: {columns}, none unclear"
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
        """Show the first rows; the columns that are asked about stand in front."""
        below, preview = self.query_one("#columns-rows", Static), self._preview
        # on a small terminal the fields need the room
        room = self.size.height - LINES_AROUND - (len(preview.asked_columns) or -1)
        width = max(20, below.size.width)
        table = previewed_rows_table(preview.columns, preview.first_rows, width, max(FEWEST_ROWS, room))
        below.update(format_table(table, width))

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
