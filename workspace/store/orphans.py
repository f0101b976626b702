"""Files of a workspace that nothing in it speaks of: what killed processes left behind."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ..audit import Act, append
from .workspace import Workspace

__all__ = ["AGE_SECONDS", "known_tables", "orphans", "remove_orphans"]

AGE_SECONDS = 3_600.0
"""A table younger than this may be that of a task whose result is not recorded yet."""


def known_tables(workspace: Workspace) -> set[str]:
    """Hashes of all tables that the database speaks of."""
    rows = workspace.connection.execute("SELECT table_sha256 FROM dataset UNION SELECT sha256 FROM artefact")
    return {row[0] for row in rows}


def orphans(workspace: Workspace, age: float = AGE_SECONDS) -> list[Path]:
    """Tables and half-written files that no row names and that have not been touched for ``age`` seconds."""
    directory = workspace.tables.directory
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    old = [file for file in files if _age(file) > age]
    known = known_tables(workspace)
    return [file for file in old if file.stem not in known]


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def remove_orphans(workspace: Workspace, age: float = AGE_SECONDS) -> int:
    """Remove them; returns how many.

    Under the write lock, so that no row can come to name one meanwhile; a table that is written again is touched.
    """
    with workspace.writing() as connection:
        found = orphans(workspace, age)
        for file in (one for one in found if _age(one) > age):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
        if found:
            append(connection, Act.FILES_REMOVED, "workspace", files=len(found))
    return len(found)
