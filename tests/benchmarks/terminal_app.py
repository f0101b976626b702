"""What the app sends to a terminal and how soon, measured on a pseudo-terminal.

    python tests/benchmarks/terminal_app.py WORKSPACE [columns] [lines]

The workspace needs a project with a finished run; it is copied, not changed. Targets are in brackets.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

QUIET = 0.25
REPEATS = 5
IDLE_SECONDS = 12
KEYS = {"right": b"\x1b[C", "down": b"\x1b[B", "enter": b"\r", "ctrl+p": b"\x10", "escape": b"\x1b"}
START = "import sys; from pathlib import Path; from tui.app import launch; launch(Path(sys.argv[1]))"


class Terminal:
    """The app in a process of its own."""

    def __init__(self, workspace: Path, columns: int, lines: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "SSH_CONNECTION")}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.started = time.perf_counter()
        command = [sys.executable, "-c", START, str(workspace)]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)

    def until(self, *texts: bytes) -> list[float]:
        """Milliseconds from the start until each of ``texts`` is on the screen."""
        seen, found = b"", []
        for text in texts:
            while text not in seen:
                seen += os.read(self.master, 1 << 16)
            found.append(1000 * (time.perf_counter() - self.started))
        return found

    def read(self, quiet: float = QUIET) -> tuple[int, float]:
        """Bytes until nothing comes for ``quiet`` seconds, and the seconds to the last of them."""
        start = last = time.perf_counter()
        total = 0
        while select.select([self.master], [], [], quiet)[0]:
            total += len(os.read(self.master, 1 << 16))
            last = time.perf_counter()
        return total, last - start

    def press(self, key: str) -> tuple[int, float]:
        os.write(self.master, KEYS.get(key, key.encode()))
        return self.read()

    def idle(self) -> float:
        """Bytes a second while nobody does anything."""
        total, end = 0, time.perf_counter() + IDLE_SECONDS
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.master], [], [], left)[0]:
                total += len(os.read(self.master, 1 << 16))
        return total / IDLE_SECONDS

    def close(self) -> None:
        for _ in range(4):
            if self.process.poll() is None:
                os.write(self.master, b"q")
                time.sleep(0.3)
        self.process.wait(timeout=10)
        os.close(self.master)


def report(what: str, measured: list[tuple[int, float]], target: str) -> None:
    sizes, seconds = zip(*measured, strict=True)
    milliseconds = 1000 * statistics.median(seconds)
    print(f"{what:<40}{statistics.median(sizes):>9,.0f} B (most {max(sizes):>6,})  {milliseconds:>6.1f} ms  {target}")


def measure_start(workspace: Path, columns: int, lines: int) -> None:
    times = []
    for _ in range(REPEATS):
        terminal = Terminal(workspace, columns, lines)
        times.append(terminal.until(b"Sfumato", b"newest run"))
        terminal.read()
        terminal.close()
    frame, content = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"start to first paint {frame:>6.0f} ms, to the projects {content:.0f} ms  (400 ms)")


def measure_keys(workspace: Path, columns: int, lines: int) -> None:
    terminal = Terminal(workspace, columns, lines)
    terminal.read(1.0)
    print(f"idle on the projects   {terminal.idle():>6.0f} B/s  (350 B/s)")
    for what, key, again in (
        ("open the project", "enter", ""),
        ("results", "2", "1"),
        ("verdicts", "3", "1"),
        ("sweep", "4", "1"),
        ("diagnostics", "5", "1"),
    ):
        measured = []
        for _ in range(REPEATS if again else 1):
            measured.append(terminal.press(key))
            terminal.press(again or key)
        report(what, measured, "(12 kB, 30 ms)")
    terminal.press("2")
    report("step in the results", [terminal.press("j") for _ in range(REPEATS)], "(1 kB, 30 ms)")
    report("sort", [terminal.press("o") for _ in range(REPEATS)], "(12 kB, 30 ms)")
    report("explain, the first time", [terminal.press("enter")], "")
    terminal.press("q")
    report("explain", [(terminal.press("enter"), terminal.press("q"))[0] for _ in range(REPEATS)], "")
    terminal.press("4")
    report("next measure", [terminal.press("m") for _ in range(REPEATS)], "(12 kB, 50 ms)")
    report("cursor of the sweep", [terminal.press("right") for _ in range(REPEATS)], "(12 kB, 50 ms)")
    report("palette", [(terminal.press("ctrl+p"), terminal.press("escape"))[0] for _ in range(REPEATS)], "(50 kB)")
    print(f"idle on the sweep      {terminal.idle():>6.0f} B/s  (350 B/s)")
    terminal.close()


def main(arguments: list[str]) -> None:
    columns, lines = [int(argument) for argument in arguments[1:]] or [120, 40]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(shutil.copytree(arguments[0], Path(folder) / "workspace"))
        (workspace / "app-state.json").unlink(missing_ok=True)
        measure_start(workspace, columns, lines)
        (workspace / "app-state.json").unlink(missing_ok=True)
        measure_keys(workspace, columns, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
