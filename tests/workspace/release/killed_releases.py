"""A process that releases again and again, each time in a child that is killed at another moment; says how each one ended.

python killed_releases.py WORKSPACE OUT MOMENT...   where a moment is ``step:N``, the N-th system call that writes, renames or
synchronises, or statement of the database; ``time:S``, so many seconds after the start; ``count``: killed never, steps are counted.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

from sfumato.engine.methods.registry import registry
from sfumato.workspace.service import release
from sfumato.workspace.store.workspace import Workspace

EVENTS = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.utime")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """Counts steps, and ends the process before the one that is to be its last."""

    def __init__(self, last: int) -> None:
        self.last, self.count = last, 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.last:
            die()


def child(directory: Path, out: Path, moment: str) -> None:
    kind, _, number = moment.partition(":")
    steps = Steps(int(number) if kind == "step" else -1)
    sync = os.fsync

    def fsync(handle: int) -> None:
        steps()
        sync(handle)

    def audited(event: str, arguments: tuple[object, ...]) -> None:
        if event in EVENTS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
            steps()

    os.fsync = fsync
    sys.addaudithook(audited)
    with Workspace.open(directory) as workspace:
        workspace.connection.set_trace_callback(
            lambda said: steps() if said.startswith(("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE")) else None
        )
        if kind == "time":
            threading.Timer(float(number), die).start()
        started = time.perf_counter()
        release.write_run_release(workspace, 1, out, reason="agreed with the board")
        print("count", steps.count, time.perf_counter() - started, flush=True)
    os._exit(0)


def main() -> None:
    directory, out, moments = Path(sys.argv[1]), Path(sys.argv[2]), sys.stdin
    registry()  # what a release loads, the children have from here
    for name in ("cairosvg", "scipy.optimize", "scipy.stats"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for moment in map(str.strip, moments):
        number = os.fork()
        if not number:
            try:
                child(directory, out, moment)
            finally:
                os._exit(1)
        _, status = os.waitpid(number, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}", flush=True)


if __name__ == "__main__":
    main()
