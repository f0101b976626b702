"""The file of a report is written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.report import write_report
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


def test_a_disk_that_is_full_leaves_no_empty_report_and_keeps_the_one_that_was_there(
    workspace: Workspace, enter: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    write_report(workspace, run_id, tmp_path / "kept.html")
    kept = (tmp_path / "kept.html").read_bytes()
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        write(path, content[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for name, force in (("report.html", False), ("kept.html", True)):
        with pytest.raises(OSError, match="No space"):
            write_report(workspace, run_id, tmp_path / name, force=force)
    assert {path.name for path in tmp_path.iterdir()} == {"workspace", "kept.html"}
    assert (tmp_path / "kept.html").read_bytes() == kept
