"""The name and the note that an analyst gives a run: its name stands for its number wherever a run is asked for.

Both are internal, whatever else of a run may leave. The audit log keeps that they were given, and their seal, never their words.
"""

from __future__ import annotations

import re
import unicodedata

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, append_act
from .workspace import Workspace

LONGEST_NAME = 40
LONGEST_NOTE = 500
NEWEST = "last"
_NUMBER = re.compile(r"[+-]?[\d_.]+(e[+-]?\d+)?|[+-]?(inf|infinity|nan)|0x[\da-f]+", re.IGNORECASE)
WHAT = "name of a run"
COLUMNS = "run_id, name, folded, note"
"""What is sealed of a name, in order."""


def fold(name: str) -> str:
    """What tells names apart: letters in any case and form are the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def check_name(name: str) -> str:
    """The name without blanks around it, empty for none. Raises BadInput where it could not stand for a run's number."""
    name = _plain("name", name, LONGEST_NAME)
    if _NUMBER.fullmatch(fold(name)):
        raise BadInput("name", f'"{name}" is a number, which would mean the run that has it; put a letter in front')
    if fold(name) == NEWEST:
        raise BadInput("name", f'"{NEWEST}" means the newest run; choose another name')
    if name.startswith("-"):
        raise BadInput("name", f'"{name}" begins with "-", as an option does; begin with a letter')
    return name


def check_note(note: str) -> str:
    """The note without blanks around it, empty for none. Raises BadInput."""
    return _plain("note", note, LONGEST_NOTE)


def _plain(place: str, text: str, longest: int) -> str:
    text = text.strip()
    if not text.isprintable():
        raise BadInput(place, "it holds a line break or a sign that cannot be seen; write it in one line of plain text")
    if len(text) > longest:
        raise BadInput(place, f"it has {len(text)} characters, {longest} are the most")
    return text


def name_run(workspace: Workspace, run_id: int, name: str | None = None, note: str | None = None) -> None:
    """Give a run a name, a note, or both; None leaves what it has, an empty text takes it away.

    Raises BadInput where either cannot be kept or another run has the name. ``run_id`` must be that of a run.
    """
    with workspace.writing() as connection:
        row = connection.execute("SELECT name, note FROM run_name WHERE run_id = ?", (run_id,)).fetchone()
        before = ("", "") if row is None else (str(row[0]), str(row[1]))
        now = (
            before[0] if name is None else check_name(name),
            before[1] if note is None else check_note(note),
        )
        if now == before:
            return
        folded = fold(now[0]) or None
        query = "SELECT run_id FROM run_name WHERE folded = ? AND run_id <> ?"
        if taken := connection.execute(query, (folded, run_id)).fetchone():
            raise BadInput("name", f'run {taken[0]} is called "{now[0]}" already; choose another, or rename that one')
        record = (run_id, now[0], folded, now[1])
        connection.execute(f"INSERT OR REPLACE INTO run_name ({COLUMNS}) VALUES (?, ?, ?, ?)", record)
        append_act(
            connection,
            AuditAct.RUN_NAMED,
            f"run {run_id}",
            name="given" if now[0] else "none",
            note="given" if now[1] else "none",
            seal=workspace.sealer.record(WHAT, record),
        )
