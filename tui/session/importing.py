"""Import of a file in a process of its own, and remarks on how its columns were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.data.schema import Role
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.limits import READ_SECONDS
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.service.importing import ImportResult, ImportSelection, import_file
from sfumato.workspace.visible_text import replace_unprintable


def column_remarks(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return what is open about columns and why some are left out, a line each, with the option that decides."""
    open_questions = [column for column in columns if column.is_included and column.question]
    out = [column for column in columns if not column.is_included]
    lines = [replace_unprintable(f"? {column.variable.name}: {column.question}") for column in open_questions]
    lines += [
        replace_unprintable(f"{column.variable.name}: left out; {', '.join(column.exclusion_reasons)}")
        for column in out
    ]
    if any(column.variable.role is Role.IDENTIFIER for column in out):
        lines.append("--keep COLUMN brings in one that is no identifier")
    return lines


def import_in_process(
    directory: Path, file: str, project: str, format_settings: Mapping[str, Any], selection: ImportSelection
) -> ImportResult:
    """Import a file in a process of its own, within a time limit.

    Raises BadInput and WorkspaceError; then nothing was stored.
    """
    return call_in_process(
        import_file,
        directory,
        file,
        project,
        format_settings,
        selection,
        what=f'the import of "{file}"',
        seconds=READ_SECONDS,
    )
