"""Check that the audit log and the workspace are as they were sealed."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.audit import HEAD_FILE, AuditHead, read_head_file
from sfumato.workspace.release.recorded_releases import read_recorded_releases
from sfumato.workspace.store.heads import describe_head_store
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import verify_workspace, worth_of_seals
from sfumato.workspace.upkeep.recorded_tables import FileComparison


@dataclass(frozen=True, slots=True)
class WorkspaceVerification:
    """Result of comparing a workspace, its tables and its releases with what was recorded.

    unchanged: whether nothing differs
    text: what was found, in lines
    files: how many files were read to their last byte
    bytes: their bytes together
    worth: against whom the answer protects, in words; empty where something differs
    """

    unchanged: bool
    text: str
    files: int
    bytes: int
    worth: str


def verify_sealed_workspace(workspace: Workspace, noted_head: str | None) -> WorkspaceVerification:
    """Compare a workspace with its seals, and all its tables and releases with their hashes.

    Raises BadInput for an invalid head.
    """
    head = _parse_head(noted_head)
    found = verify_workspace(workspace, [] if head is None else [head])
    tables = found.tables or FileComparison()
    # Where the log itself is not as it was sealed, what it says of releases is not relied on.
    releases = FileComparison() if found.wrong or workspace.owner else read_recorded_releases(list(found.rows))
    rows, wrong = found.rows, (*found.wrong, *releases.wrong)
    files, size = tables.files + releases.files, tables.bytes + releases.bytes
    read = f"{_files_text(tables, 'table')} and {_files_text(releases, 'released file')} read to the last byte"
    notes = "".join(f"\n{note}" for note in (*found.notes, *tables.notes, *releases.notes))
    if wrong:
        return WorkspaceVerification(False, "\n".join(wrong) + f"\n{read}{notes}", files, size, "")
    last = AuditHead(len(rows), rows[-1].hash if rows else "")
    missing = (
        ""
        if read_head_file(workspace.directory)
        else f"; the file {HEAD_FILE} is gone: rows removed at the end may go unnoticed"
    )
    outside = "" if workspace.owner else "; ".join(["", *_external_head_lines(workspace)])
    worth = worth_of_seals(workspace)
    # The head comes last: scripts keep it for the next --head.
    parts = (f"{count_noun(len(rows), 'row')}, none changed{missing}", f"{read}, none changed{outside}", worth)
    text = f"{'; '.join(parts)}; head {last}{notes}"
    return WorkspaceVerification(True, text, files, size, worth)


def _files_text(read: FileComparison, noun: str) -> str:
    """Return how much was read, in words: ``3 tables (12,345 bytes)``."""
    return f"{count_noun(read.files, noun)} ({read.bytes:,} bytes)"


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
