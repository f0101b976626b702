"""Log of a run: a file in its workspace with the time and outcome of each task, without values of the data."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import StrangeFile
from ..plain_files import ensure_directory, open_plain, open_to_append
from ..visible_text import replace_unprintable

MAX_LOG_BYTES = 1 << 20
LOG_TAIL_BYTES = 1 << 18
"""Bytes that are read from the end of a log."""
MAX_LINE_LENGTH = 400
CONTINUATION = "\n    "
"""Prefix of each further line of an entry, so that none can be taken for a new entry."""
_ENTRY_PATTERN = re.compile(r"(?P<time>\S+T\S+) (?:(?P<task>\S+) \(attempt (?P<attempt>\d{1,9}), \S+\): )?(?P<text>.*)")


def run_log_path(directory: Path, run_id: int) -> Path:
    """Return the path of a run's log; older entries are in the same name with ``.1``."""
    return directory / "logs" / f"run-{run_id}.log"


def append_to_run_log(directory: Path, run_id: int, text: str) -> None:
    """Append a text to a run's log, without control characters."""
    path = run_log_path(directory, run_id)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    lines = [replace_unprintable(line) for line in text.rstrip().split("\n")]
    # A disk that refuses it is no reason for a run to fail, nor is a link in its place.
    with contextlib.suppress(OSError, StrangeFile):
        ensure_directory(directory, path.parent.name)
        rotate_log(path)
        with os.fdopen(open_to_append(path), "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{now} {CONTINUATION.join(lines)}\n")


def rotate_log(path: Path, most_bytes: int = MAX_LOG_BYTES) -> None:
    """Rename a log that has grown too large, over the one that was renamed before."""
    with contextlib.suppress(FileNotFoundError):
        if path.lstat().st_size > most_bytes:
            path.replace(path.with_name(f"{path.name}.1"))


def log_task(directory: Path, run_id: int, task: str, attempt: int, worker: str, text: str) -> None:
    """Append the outcome of a task to its run's log."""
    append_to_run_log(
        directory, run_id, f"{replace_unprintable(task)} (attempt {attempt}, {replace_unprintable(worker)}): {text}"
    )


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Entry of a run's log.

    time: time, UTC, empty if unknown
    task: key of the task, empty if unknown
    attempt: number of the attempt, 0 if unknown
    lines: its lines
    """

    time: str
    task: str
    attempt: int
    lines: tuple[str, ...]


def read_run_log(directory: Path, run_id: int) -> Sequence[LogEntry]:
    """Read the last entries of a run's log, oldest first; none where there is no log. Raises OSError and StrangeFile."""
    path = run_log_path(directory, run_id)
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LOG_TAIL_BYTES))
            content = file.read(LOG_TAIL_BYTES)
    except FileNotFoundError:
        return ()
    lines = content.decode("utf-8", "replace").split("\n")
    # The first line of a tail is cut somewhere.
    return _parse_log_entries(lines[1:] if size > LOG_TAIL_BYTES else lines)


def _parse_log_entries(lines: Sequence[str]) -> Sequence[LogEntry]:
    """Parse the lines of a log, each with the lines that continue it."""
    found: list[tuple[re.Match[str] | None, list[str]]] = []
    for line in (replace_unprintable(line[:MAX_LINE_LENGTH]) for line in lines if line):
        if line.startswith(CONTINUATION[1:]) and found:
            found[-1][1].append(line.strip())
        else:
            entry = _ENTRY_PATTERN.fullmatch(line)
            found.append((entry, [entry["text"] if entry else line]))
    return tuple(
        LogEntry(entry["time"], entry["task"] or "", int(entry["attempt"] or 0), tuple(texts))
        if entry
        else LogEntry("", "", 0, tuple(texts))
        for entry, texts in found
    )
