"""The state written down by a thread: a key does not wait for the disk, and of several changes the last is written."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .state import AppState, save_state

__all__ = ["Keeper"]


class Keeper:
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
