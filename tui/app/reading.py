"""Form for how a text file is read, shown before anything is stored: the detected format with reasons, and the first
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import DECIMALS, DELIMITERS, QUOTES, THOUSANDS, TextFormat
from sfumato.tui.parts.fields import FormField
from sfumato.workspace.ingest.dialects import DetectedFormat, SettingReason, detect_text_format
from sfumato.workspace.reporting.reading import SETTING_NAMES, SIGN_NAMES, first_rows_table, visible_sign
from sfumato.workspace.reporting.tables import format_table

from ..parts.form import Form

SIGN_BY_TEXT = {shown: value for value, shown in SIGN_NAMES.items()}
SEPARATORS = tuple(map(visible_sign, DELIMITERS))
YES = ("yes", "no")
FIELD_BY_KEY = {"delimiter": "separator", "quote": "quotes"}
"""Names of fields that differ from the keys of a format."""


class ReadingForm(Form):
    """Form for how a text file is read.

    It returns the fields of a format, which ``format_from_answers`` converts. ``head`` are the first lines of the file
    and ``found`` is the detected format.
    """

    manual = "recipe data.format"

    def __init__(self, name: str, head: bytes, found: DetectedFormat) -> None:
        """Create the form for the file called ``name``."""
        self._head, self._shown, self._first = head, found, found
        fields = format_fields(found)
        doubtful = {FIELD_BY_KEY.get(one.key, one.key) for one in found.doubtful_settings}
        # What is uncertain is in view although a small terminal has no room for all fields.
        start = next((field.name for field in fields if field.name in doubtful), "")
        super().__init__(f"How {name} is read", fields, self._check_format, start=start)

    def compose_extra(self) -> ComposeResult:
        """Yield the text for the first rows."""
        yield Static(id="reading-rows", markup=False)

    def _check_format(self, answers: dict[str, Any]) -> None:
        """Detect the rest of the format given the answers. Raises BadInput."""
        self._shown = detect_text_format(self._head, format_from_answers(answers))

    @on(Form.FieldsChecked)
    def _show_first_rows(self) -> None:
        """Show the uncertain settings and the first rows in the present format."""
        now, before = self._shown.format.to_table(), self._first.format.to_table()
        # A setting that the user has changed is no longer uncertain.
        unsettled = (one for one in self._first.doubtful_settings if now.get(one.key) == before.get(one.key))
        doubts = [f"? {SETTING_NAMES[one.key]}: {_reason_text(one)}" for one in unsettled]
        below = self.query_one("#reading-rows", Static)
        rows = format_table(first_rows_table(self._shown, max(20, below.size.width)))
        below.update("\n".join([*doubts, rows]))

    def on_resize(self) -> None:
        """Show as many columns of the rows as there is room for."""
        self.call_after_refresh(self._show_first_rows)


def format_fields(found: DetectedFormat) -> list[FormField]:
    """Return a field for each key of a format, with the reason for its value."""
    form, reasons = found.format, {one.key: one for one in found.reasons}

    def reason_for(key: str, otherwise: str) -> str:
        """Return the reason for a setting; ``otherwise`` if there is none."""
        one = reasons.get(key)
        return otherwise if one is None else _reason_text(one)

    fixed = [
        FormField("widths", reason_for("widths", "characters of each column"), "list", list(map(str, form.widths)))
    ] if "widths" in reasons else []  # fmt: skip
    named = [
        FormField("names", "names of the columns, where no line has them", "list", list(form.names))
    ] if fixed or not form.header else []  # fmt: skip
    return [
        *fixed,
        *named,
        FormField("separator", reason_for("delimiter", "what separates cells"), value=visible_sign(form.delimiter), choices=SEPARATORS),
        FormField("encoding", reason_for("encoding", "such as utf-8, windows-1252"), value=form.encoding),
        FormField("decimal", reason_for("decimal", "the decimal sign"), value=form.decimal, choices=DECIMALS),
        FormField("thousands", reason_for("thousands", "what groups thousands"), value=visible_sign(form.thousands), choices=tuple(map(visible_sign, THOUSANDS))),
        FormField("quotes", reason_for("quote", "what stands around cells"), value=visible_sign(form.quote), choices=tuple(map(visible_sign, QUOTES))),
        FormField("header", reason_for("header", "whether the first line holds names"), value=YES[not form.header], choices=YES),
        FormField("skip", reason_for("skip", "lines above the table"), "value", form.skip),
        FormField("trim", reason_for("trim", "whether blanks around cells do not count"), value=YES[not form.trim], choices=YES),
        FormField("missing", reason_for("missing", "what stands for no value"), "list", list(form.missing)),
    ]  # fmt: skip


def _reason_text(one: SettingReason) -> str:
    """Return the reason for a setting, with other possible values."""
    # Alternatives of the missing codes are sentences.
    may_be = "" if one.key == "missing" else "may be "
    others = f"; {may_be}{', '.join(map(visible_sign, one.alternatives))}" if one.alternatives else ""
    return f"{one.explanation}{others}"


def format_from_answers(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``[data.format]`` for the answers. Raises BadInput."""
    table = {
        "delimiter": SIGN_BY_TEXT.get(answers["separator"], answers["separator"]),
        "encoding": answers.get("encoding", ""),
        "decimal": answers["decimal"],
        "thousands": SIGN_BY_TEXT.get(answers["thousands"], answers["thousands"]),
        "quote": SIGN_BY_TEXT.get(answers["quotes"], answers["quotes"]),
        # whoever says the names says that no line has them
        "header": answers["header"] == "yes" and not answers.get("names"),
        "skip": answers.get("skip", 0),
        "trim": answers["trim"] == "yes",
        "missing": [str(code) for code in answers.get("missing", [])],
    }
    if names := [str(name) for name in answers.get("names", [])]:
        table["names"] = names
    if widths := [str(width) for width in answers.get("widths", [])]:
        if wrong := [width for width in widths if not width.isdecimal()]:
            raise BadInput("widths", f'"{wrong[0]}" is no number of characters')
        table = {key: value for key, value in table.items() if key not in ("delimiter", "quote")}
        table["widths"] = list(map(int, widths))
    try:
        TextFormat.from_table(table)
    except BadInput as error:
        # The form marks its fields by the plain name of a setting.
        raise BadInput(error.place.removeprefix("data.format."), error.message) from None
    return table
