"""Writing a run's report from the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput
from sfumato.workspace.audit import Act, append
from sfumato.workspace.reporting.page import report_page
from sfumato.workspace.views.runs import find_run

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["write_report"]


def write_report(workspace: Workspace, run_id: str, path: Path, *, force: bool) -> str:
    """Write the report, with traces; returns what to tell the user. A file that is there stays, unless ``force``. Raises BadInput."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput("-o", f'"{path}" is not a file in a directory that exists; name one, such as report.html')
    if path.exists() and not force:
        raise BadInput("-o", f'"{path}" exists; name another file, or add --force to replace it')
    page = report_page(workspace, run_id, traces=True)
    path.write_text(page, "utf-8")
    with workspace.writing() as connection:
        append(
            connection,
            Act.REPORT_WRITTEN,
            f"run {find_run(workspace, run_id).id}",
            sha256=hashlib.sha256(page.encode()).hexdigest(),
        )
    return f"report written to {path} ({len(page.encode()) // 1024:,} KiB)"
