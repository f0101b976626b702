"""How far a task has come, written into the database while it is computed; and whether anybody still wants it."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import lru_cache
from pathlib import Path

from sfumato.engine.errors import Cancelled
from sfumato.engine.run import Progress

from ..store.database import is_busy
from ..store.workspace import Workspace
from .queue import Claim, progress, still_wanted

__all__ = ["REPORT_SECONDS", "Reporter"]

REPORT_SECONDS = 0.5


class Reporter:
    """Writes progress twice a second at most, and stops the computation when nobody wants the run any more."""

    def __init__(self, directory: Path, held: Claim) -> None:
        self.directory = directory
        self.held = held
        self.last = time.monotonic()

    def __call__(self, made: Progress) -> None:
        """Report. Raises Cancelled."""
        if time.monotonic() - self.last < REPORT_SECONDS:
            return
        self.last = time.monotonic()
        workspace = _workspace_of_thread(self.directory, threading.get_ident())
        if not self._written(workspace, made) or not still_wanted(workspace, self.held.run_id):
            raise Cancelled(f"run {self.held.run_id} was stopped, or the task went to another worker")

    def _written(self, workspace: Workspace, made: Progress) -> bool:
        try:
            return progress(workspace, self.held, made.done, made.total, made.what)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return True


@lru_cache(maxsize=4)
def _workspace_of_thread(directory: Path, thread: int) -> Workspace:
    return Workspace.open(directory)
