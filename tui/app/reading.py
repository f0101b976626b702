"""How a file of text is read, asked before anything is stored: what was found and why, and the first rows as they would be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import DECIMALS, DELIMITERS, QUOTES, THOUSANDS, TextFormat
from sfumato.tui.parts.fields import Field
from sfumato.workspace.ingest.dialects import Detection, Reason, detect
from sfumato.workspace.reporting.reading import NAMES, SIGNS, first_rows, sign
from sfumato.workspace.reporting.tables import text

from ..parts.form import Form

VALUES = {shown: value for value, shown in SIGNS.items()}
SEPARATORS = tuple(map(sign, DELIMITERS))
YES = ("yes", "no")


class Reading(Form):
    """Answers the fields of a format (``asked_format`` makes it one), for a file of which ``head`` are the first lines and ``found`` what they show."""

    manual = "recipe data.format"

    def __init__(self, name: str, head: bytes, found: Detection) -> None:
        self._head, self._shown, self._first = head, found, found
        super().__init__(f"How {name} is read", format_fields(found), self._check_format)

    def compose_beside(self) -> ComposeResult:
        yield Static(id="reading-rows", markup=False)

    def _check_format(self, answers: dict[str, Any]) -> None:
        self._shown = detect(self._head, asked_format(answers))

    @on(Form.Checked)
    def _show_rows(self) -> None:
        now, before = self._shown.format.to_table(), self._first.format.to_table()
        unsettled = (one for one in self._first.doubts if now.get(one.key) == before.get(one.key))
        doubts = [f"? {NAMES[one.key]}: {_why(one)}" for one in unsettled]
        below = self.query_one("#reading-rows", Static)
        rows = text(first_rows(self._shown, max(20, below.size.width)))
        below.update("\n".join([*doubts, rows]))

    def on_resize(self) -> None:
        """As many columns of the rows as there is room for now."""
        self.call_after_refresh(self._show_rows)


def format_fields(found: Detection) -> list[Field]:
    """A field for each key of a format, with why it is as it is; what is unsettled says so."""
    form, reasons = found.format, {one.key: one for one in found.reasons}

    def why(key: str, otherwise: str) -> str:
        one = reasons.get(key)
        return otherwise if one is None else _why(one)

    return [
        Field("separator", why("delimiter", "what separates cells"), value=sign(form.delimiter), choices=SEPARATORS),
        Field("encoding", why("encoding", "such as utf-8, windows-1252"), value=form.encoding),
        Field("decimal", why("decimal", "the decimal sign"), value=form.decimal, choices=DECIMALS),
        Field("thousands", why("thousands", "what groups thousands"), value=sign(form.thousands), choices=tuple(map(sign, THOUSANDS))),
        Field("quotes", why("quote", "what stands around cells"), value=sign(form.quote), choices=tuple(map(sign, QUOTES))),
        Field("header", why("header", "whether the first line holds names"), value=YES[not form.header], choices=YES),
        Field("skip", why("skip", "lines above the table"), "value", form.skip),
        Field("trim", why("trim", "whether blanks around cells do not count"), value=YES[not form.trim], choices=YES),
        Field("missing", why("missing", "what stands for no value"), "list", list(form.missing)),
    ]  # fmt: skip


def _why(one: Reason) -> str:
    others = f"; may be {', '.join(map(sign, one.others))}" if one.others else ""
    return f"{one.said}{others}"


def asked_format(answers: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as keys of ``[data.format]``. Raises BadInput."""
    table = {
        "delimiter": VALUES.get(answers["separator"], answers["separator"]),
        "encoding": answers.get("encoding", ""),
        "decimal": answers["decimal"],
        "thousands": VALUES.get(answers["thousands"], answers["thousands"]),
        "quote": VALUES.get(answers["quotes"], answers["quotes"]),
        "header": answers["header"] == "yes",
        "skip": answers.get("skip", 0),
        "trim": answers["trim"] == "yes",
        "missing": [str(code) for code in answers.get("missing", [])],
    }
    try:
        TextFormat.from_table(table)
    except BadInput as error:
        raise BadInput(error.place.removeprefix("data.format."), error.message) from None
    return table
