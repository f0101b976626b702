"""What ``sfumato audit`` says."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput
from sfumato.workspace.audit import HEAD_FILE, Head, audit_rows, kept_head, verify

from ..console import table

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["act_table", "in_words", "verified"]

HASH = re.compile("[0-9a-f]{64}")


def act_table(workspace: Workspace) -> str:
    """Every act, oldest first; hashes by their first digits."""
    lines = [
        [str(row.number), row.time[:19].replace("T", " "), row.act, row.subject, in_words(row.details)]
        for row in audit_rows(workspace.connection)
    ]
    return table(("", "time (UTC)", "act", "of", "details"), lines, right=(0,))


def in_words(details: str) -> str:
    """The details of a row without their JSON; as they are where they are none."""
    try:
        found = json.loads(details)
        return ", ".join(f"{key} {_shown(str(value))}" for key, value in found.items())
    except (ValueError, AttributeError):
        return details


def _shown(value: str) -> str:
    """A hash by its first digits; anything else, above all a reason, in full."""
    return value[:12] if HASH.fullmatch(value) else value


def verified(workspace: Workspace, noted: str | None) -> tuple[bool, str]:
    """Whether the audit log is whole, and that in words. Raises BadInput when ``noted`` is no head."""
    head = _head(noted)
    rows, wrong = verify(workspace.connection, workspace.directory, [] if head is None else [head])
    if wrong:
        return False, f"the audit log is broken: {wrong}"
    last = Head(len(rows), rows[-1].hash if rows else "")
    missing = (
        ""
        if kept_head(workspace.directory)
        else f"; the file {HEAD_FILE} is gone: rows removed at the end may go unnoticed"
    )
    return True, f"{len(rows)} rows, none changed; head {last}{missing}"


def _head(noted: str | None) -> Head | None:
    if noted is None:
        return None
    number, _, hashed = noted.partition(":")
    if not (number.isdigit() and len(hashed) == 64):
        raise BadInput("--head", f'"{noted}" is no head such as sfumato audit verify prints: NUMBER:HASH')
    return Head(int(number), hashed)
