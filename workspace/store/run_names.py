"""Names and notes of runs: a name can be used wherever a run is given by its number.

Both are internal, whatever else of a run may be released. The audit log keeps that they were given, and their seal,
never their words.
"""

from __future__ import annotations

import re
import unicodedata

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, append_act
from .workspace import Workspace

MAX_NAME_LENGTH = 40
MAX_NOTE_LENGTH = 500
NEWEST_RUN = "last"
_NUMBER_PATTERN = re.compile(r"[+-]?[\d_.]+(e[+-]?\d+)?|[+-]?(inf|infinity|nan)|0x[\da-f]+", re.IGNORECASE)
SEALED_RECORD = "name of a run"
SEALED_COLUMNS = "run_id, name, folded, note"
"""Columns that the seal of a name covers, in order."""


def fold_name(name: str) -> str:
    """Return the form in which names are compared, without case and compatibility forms of letters."""
    # Twice, since case folding can leave a text that is not normalised.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def check_run_name(name: str) -> str:
    """Return the name without surrounding blanks. Raises BadInput for one that could be taken for a number or an
    option.
    """
    name = _check_plain_text("name", name, MAX_NAME_LENGTH)
    if _NUMBER_PATTERN.fullmatch(fold_name(name)):
        raise BadInput("name", f'"{name}" is a number, which would mean the run that has it; put a letter in front')
    if fold_name(name) == NEWEST_RUN:
        raise BadInput("name", f'"{NEWEST_RUN}" means the newest run; choose another name')
    if name.startswith("-"):
        raise BadInput("name", f'"{name}" begins with "-", as an option does; begin with a letter')
    return name


def check_run_note(note: str) -> str:
    """Return the note without surrounding blanks. Raises BadInput."""
    return _check_plain_text("note", note, MAX_NOTE_LENGTH)


def _check_plain_text(place: str, text: str, longest: int) -> str:
    """Return a text without surrounding blanks. Raises BadInput for one that is too long or not printable."""
    text = text.strip()
    if not text.isprintable():
        raise BadInput(place, "it holds a line break or a sign that cannot be seen; write it in one line of plain text")
    if len(text) > longest:
        raise BadInput(place, f"it has {len(text)} characters, {longest} are the most")
    return text


def name_run(workspace: Workspace, run_id: int, name: str | None = None, note: str | None = None) -> None:
    """Set the name and the note of a run; None leaves what it has, an empty text removes it.

    Raises BadInput where either cannot be kept or another run has the name. ``run_id`` must be that of a run.
    """
    with workspace.write_transaction() as connection:
        row = connection.execute("SELECT name, note FROM run_name WHERE run_id = ?", (run_id,)).fetchone()
        before = ("", "") if row is None else (str(row[0]), str(row[1]))
        now = (
            before[0] if name is None else check_run_name(name),
            before[1] if note is None else check_run_note(note),
        )
        if now == before:
            return
        folded = fold_name(now[0]) or None
        query = "SELECT run_id FROM run_name WHERE folded = ? AND run_id <> ?"
        if taken := connection.execute(query, (folded, run_id)).fetchone():
            raise BadInput("name", f'run {taken[0]} is called "{now[0]}" already; choose another, or rename that one')
        record = (run_id, now[0], folded, now[1])
        connection.execute(f"INSERT OR REPLACE INTO run_name ({SEALED_COLUMNS}) VALUES (?, ?, ?, ?)", record)
        append_act(
            connection,
            AuditAct.RUN_NAMED,
            f"run {run_id}",
            name="given" if now[0] else "none",
            note="given" if now[1] else "none",
            seal=workspace.sealer.seal_record(SEALED_RECORD, record),
        )
