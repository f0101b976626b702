"""What happened to a run, one file each: tasks, seconds, memory, where in the code it failed; no value of the data."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["MOST_BYTES", "note", "rotate", "run_log"]

MOST_BYTES = 1 << 20


def run_log(directory: Path, run_id: int) -> Path:
    """Where the log of a run lies in its workspace; what was before its last megabyte in the same name with ``.1``."""
    return directory / "logs" / f"run-{run_id}.log"


def note(directory: Path, run_id: int, text: str) -> None:
    """Add to a run's log. A disk that refuses it is no reason to fail."""
    path = run_log(directory, run_id)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        rotate(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(f"{now} {text.rstrip()}\n")


def rotate(path: Path, most_bytes: int = MOST_BYTES) -> None:
    """Set a log aside when it has grown too large, in the place of the one that was set aside before."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > most_bytes:
            path.replace(path.with_name(f"{path.name}.1"))
