"""Check that the audit log and the workspace are as they were sealed."""

from __future__ import annotations

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.audit import HEAD_FILE, AuditHead, read_head_file
from sfumato.workspace.store.heads import describe_head_store
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_workspace


def verify_sealed_workspace(workspace: Workspace, noted_head: str | None) -> tuple[bool, str]:
    """Return whether the workspace is as it was sealed, and a text that says so. Raises BadInput for an invalid head.

    .
    """
    head = _parse_head(noted_head)
    found = verify_workspace(workspace, [] if head is None else [head])
    rows, notes = found.rows, "".join(f"\n{note}" for note in found.notes)
    if found.wrong:
        return False, "\n".join(found.wrong) + notes
    last = AuditHead(len(rows), rows[-1].hash if rows else "")
    missing = (
        ""
        if read_head_file(workspace.directory)
        else f"; the file {HEAD_FILE} is gone: rows removed at the end may go unnoticed"
    )
    outside = "" if workspace.owner else "; ".join(["", *_external_head_lines(workspace)])
    return True, f"{count_noun(len(rows), 'row')}, none changed{missing}{outside}; head {last}{notes}"


def _external_head_lines(workspace: Workspace) -> list[str]:
    """List where the head is recorded outside the workspace, and whether each record agrees."""
    return [
        describe_head_store(place, workspace.directory, workspace.connection)[1] for place in workspace.head_stores()
    ]


def _parse_head(noted: str | None) -> AuditHead | None:
    """Parse ``NUMBER:HASH``; None for None. Raises BadInput."""
    if noted is None:
        return None
    number, _, hashed = noted.partition(":")
    if not (number.isdigit() and len(hashed) == 64):
        raise BadInput("--head", f'"{noted}" is no head such as sfumato audit verify prints: NUMBER:HASH')
    return AuditHead(int(number), hashed)
