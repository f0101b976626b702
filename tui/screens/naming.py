"""The form that gives a run a name, which stands for its number, and a note."""

from __future__ import annotations

from typing import Any

from sfumato.tui.fields import Field
from sfumato.workspace.store.run_names import LONGEST_NAME, LONGEST_NOTE, check_name, check_note
from sfumato.workspace.store.runs import Run
from sfumato.workspace.visible_text import printable

from .form import Form

FIELDS = {
    "name": f"stands for the run's number wherever a run is asked for; at most {LONGEST_NAME} characters, empty for none",
    "note": f"what the run is for, in a line of at most {LONGEST_NOTE} characters. Neither name nor note ever goes into a public file",
}


def naming_form(run: Run) -> Form:
    """Asks for both; its answer is a table of the two, without those that are empty."""
    now = {"name": run.name, "note": run.note}
    fields = [Field(name, said, value=printable(now[name])) for name, said in FIELDS.items()]
    return Form(f"Name and note of run {run.id}", fields, _check, topic="app runs")


def _check(table: dict[str, Any]) -> None:
    check_name(str(table.get("name", "")))
    check_note(str(table.get("note", "")))
