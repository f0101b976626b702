"""State of the app that survives a dropped connection: kept in the workspace, written on every change."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.plain_files import owner_if_other, read_plain
from sfumato.workspace.views.results import FAILURES, SORTS

STATE_FILE = "app-state.json"
MOST_STATE_BYTES = 1 << 16


@dataclass(frozen=True)
class AppState:
    """Place of the user in the app, and how things are shown there.

    project is None on the list of projects; row is that of the tab; across and up are the map's measures; notify is how
    the end of a run is announced; family and unfolded are those of the table of numbers.
    """

    project: int | None = None
    run: int | None = None
    tab: str = "runs"
    draws: bool = False
    filter: str = ""
    sort: str = FAILURES
    log: bool = False
    across: str = ""
    up: str = ""
    theme: str = ""
    row: str = ""
    notify: str = ""
    family: str = ""
    unfolded: bool = False


def load_state(directory: Path) -> AppState:
    """Read the saved state; a value that is missing, unreadable or of another type gets its default."""
    try:
        saved = json.loads(read_plain(directory / STATE_FILE, MOST_STATE_BYTES))
    except (OSError, ValueError, RecursionError, StrangeFile):
        return AppState()
    if not isinstance(saved, dict):
        return AppState()
    return AppState(**{f.name: saved[f.name] for f in fields(AppState) if _is_valid_value(f.name, saved.get(f.name))})


def _is_valid_value(name: str, value: Any) -> bool:
    """Return whether a saved value can be that of a field."""
    if name in ("project", "run"):
        # In Python true is an int.
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, type(getattr(AppState, name))) and (name != "sort" or value in SORTS)


def save_state(directory: Path, state: AppState) -> None:
    """Write the state; skip a workspace that cannot be written or is another user's."""
    with contextlib.suppress(OSError):
        if owner_if_other(directory):
            return
        # Moved into place when it is whole: a session that is cut off leaves the state before.
        handle, aside = tempfile.mkstemp(dir=directory, prefix=f"{STATE_FILE}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(state), file, indent=1)
            Path(aside).replace(directory / STATE_FILE)
        except OSError:
            Path(aside).unlink(missing_ok=True)


class StateWriter:
    """Writer of states, each to its workspace, in the order in which they were given."""

    def __init__(self) -> None:
        """Start the thread that writes."""
        # A thread writes, so that a key does not wait for the disk; of several changes only the last is written.
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="state")
        self._newest: deque[tuple[Path, AppState]] = deque(maxlen=1)

    def write_later(self, directory: Path, state: AppState) -> None:
        """Schedule a state to be written as soon as the disk is free, unless a newer one comes first."""
        self._newest.append((directory, state))
        self._pool.submit(self._write_newest)

    def _write_newest(self) -> None:
        """Write the newest state, unless it was written already."""
        try:
            newest = self._newest.popleft()
        except IndexError:
            return
        save_state(*newest)

    def close(self) -> None:
        """Wait until the last state is written; later ones are not accepted."""
        self._pool.shutdown()
