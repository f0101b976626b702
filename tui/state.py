"""What the user would miss after a dropped connection: kept in the workspace, written on every change.

A thread writes it: a key does not wait for the disk, and of several changes the last is written.
"""

from __future__ import annotations

import json
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sfumato.workspace.views.results import SORTS

FILE = "app-state.json"


@dataclass(frozen=True)
class AppState:
    """Where the user was: project (None on the list of projects), run, tab, its row, and how results and map were shown."""

    project: int | None = None
    run: int | None = None
    tab: str = "runs"
    draws: bool = False
    filter: str = ""
    sort: str = "measure"
    log: bool = False
    across: str = ""
    up: str = ""
    theme: str = ""
    row: str = ""


def load_state(directory: Path) -> AppState:
    """The state that was saved; what is missing, unreadable or of another kind is as at the first start."""
    try:
        saved = json.loads((directory / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return AppState()
    if not isinstance(saved, dict):
        return AppState()
    return AppState(**{f.name: saved[f.name] for f in fields(AppState) if _fits(f.name, saved.get(f.name))})


def _fits(name: str, value: Any) -> bool:
    if name in ("project", "run"):
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, type(getattr(AppState, name))) and (name != "sort" or value in SORTS)


def save_state(directory: Path, state: AppState) -> None:
    """Write the state aside, then in place; a workspace that cannot be written is no reason to fail."""
    aside = directory / f"{FILE}.{os.getpid()}"
    try:
        aside.write_text(json.dumps(asdict(state), indent=1), "utf-8")
        aside.chmod(0o600)
        aside.replace(directory / FILE)
    except OSError:
        aside.unlink(missing_ok=True)


class StateWriter:
    """Writes states, each in its workspace, in the order in which they were given."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="state")
        self._newest: deque[tuple[Path, AppState]] = deque(maxlen=1)

    def keep(self, directory: Path, state: AppState) -> None:
        """Have a state written as soon as the disk is free, unless another comes before that."""
        self._newest.append((directory, state))
        self._pool.submit(self._write)

    def _write(self) -> None:
        try:
            newest = self._newest.popleft()
        except IndexError:
            return
        save_state(*newest)

    def close(self) -> None:
        """Wait until the last state is written; none is taken after it."""
        self._pool.shutdown()
