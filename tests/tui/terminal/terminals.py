"""Somebody at a terminal: types keys, reads the screen, waits for what is on it and never for a time to pass.

Two terminals of the same manner: a pseudo-terminal whose screen is kept by pyte, and a real tmux.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

__all__ = [
    "APP", "Pty", "Terminal", "Tmux", "app_environment", "kill_workers", "tmux_is_here",
]  # fmt: skip

PATIENCE = 30.0
GLANCE = 0.02
SIZE = (80, 24)
APP = (sys.executable, "-P", "-c", "from sfumato.tui.cli.main import main; main()")
"""The command ``sfumato``."""
NOT_OURS = ("NO_COLOR", "SFUMATO_GLYPHS", "SFUMATO_WORKSPACE", "SSH_CONNECTION", "SSH_TTY", "TMUX", "TMUX_PANE", "COLUMNS", "LINES")  # fmt: skip
KEYS = {
    "enter": (b"\r", "Enter"), "escape": (b"\x1b", "Escape"), "tab": (b"\t", "Tab"), "space": (b" ", "Space"),
    "up": (b"\x1b[A", "Up"), "down": (b"\x1b[B", "Down"), "right": (b"\x1b[C", "Right"), "left": (b"\x1b[D", "Left"),
    "pagedown": (b"\x1b[6~", "NPage"), "ctrl+u": (b"\x15", "C-u"), "ctrl+p": (b"\x10", "C-p"), "ctrl+l": (b"\x0c", "C-l"),
    "ctrl+q": (b"\x11", "C-q"),
}  # fmt: skip
"""What a key sends, and what tmux calls it; any other is the character itself."""
MESSAGE = "▌"
"""The left edge of a message."""
FIRST_ROW = 5
"""The line of a table's first row: title, tabs, what is shown, and the header are above it."""
PRIVATE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b[P_^][^\x1b]*\x1b\\")
"""Requests that pyte would print instead of passing over."""


def app_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment for the app whose home is ``home``, in a terminal of 256 colours that can do UTF-8."""
    kept = {key: value for key, value in os.environ.items() if key not in NOT_OURS and not key.startswith("LC_")}
    own = {"HOME": home, "XDG_STATE_HOME": home / "state", "XDG_DATA_HOME": home / "data"}
    return {
        **kept,
        **{key: str(path) for key, path in own.items()},
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **more,
    }


class Terminal(ABC):
    """A program in a terminal of 80 by 24 cells."""

    @property
    @abstractmethod
    def screen(self) -> str:
        """What the terminal shows."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the program has ended by itself, waited for."""

    @abstractmethod
    def press(self, *keys: str) -> Self:
        """Press keys, by name or character."""

    @abstractmethod
    def type(self, text: str) -> Self:
        """Type a text."""

    @abstractmethod
    def close(self) -> None:
        """End the program and the terminal."""

    def _glance(self) -> None:
        """Wait for a moment, or until something has come."""
        time.sleep(GLANCE)

    def see(self, *patterns: str, patience: float = PATIENCE) -> Self:
        """Wait until the screen matches each of the patterns at once."""
        deadline = time.monotonic() + patience
        while not all(re.search(pattern, self.screen) for pattern in patterns):
            missing = [pattern for pattern in patterns if not re.search(pattern, self.screen)]
            assert time.monotonic() < deadline, f"never saw {missing}, but:\n{self.screen}"
            self._glance()
        return self

    @property
    def message(self) -> str:
        """What the messages at the lower right say, in one line."""
        parts = [line.partition(MESSAGE)[2].strip("│| ") for line in self.screen.splitlines() if MESSAGE in line]
        return " ".join(filter(None, parts))

    def see_message(self, text: str, patience: float = PATIENCE) -> Self:
        """Wait until a message says so."""
        deadline = time.monotonic() + patience
        while text not in self.message:
            assert time.monotonic() < deadline, f"no message says {text}, but:\n{self.screen}"
            self._glance()
        return self


class Pty(Terminal):
    """A pseudo-terminal of our own."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], size: tuple[int, int] = SIZE) -> None:
        """Start ``command``; ``size`` is in columns and lines."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=dict(environment), start_new_session=True
        )
        os.close(slave)
        self.received = b""
        self.pictures: list[str] = []
        self.seen_colours: set[str] = set()
        self._pyte = pyte.Screen(*size)
        self._stream, self._rest = pyte.ByteStream(self._pyte), b""
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while came := os.read(self._master, 1 << 16):
                with self._news:
                    self.received += came
                    self._show(came)
                    self._news.notify_all()

    def _show(self, came: bytes) -> None:
        """Have pyte draw it, except for a last sequence that has not come whole."""
        text = self._rest + came
        last = text.rfind(b"\x1b")
        whole = len(text) if last < 0 or re.match(rb"\x1b(\[[^@-~]*[@-~]|[^\[P_^])", text[last:]) else last
        self._rest = text[whole:]
        self._stream.feed(PRIVATE.sub(b"", text[:whole]))

    @property
    def screen(self) -> str:
        """What pyte has drawn."""
        with self._news:
            return "\n".join(line.rstrip() for line in self._pyte.display)

    def see_row(self, number: int, patience: float = PATIENCE) -> Self:
        """Wait until the cursor of a table, a line in reverse, is on a row, from 0; the table starts in line 4."""
        deadline = time.monotonic() + patience
        while number + FIRST_ROW not in self.reversed_lines:
            assert time.monotonic() < deadline, f"in reverse are lines {self.reversed_lines} of:\n{self.screen}"
            self._glance()
        return self

    @property
    def reversed_lines(self) -> list[int]:
        """The lines that stand in reverse from their second cell on."""
        with self._news:
            return [y for y, line in sorted(self._pyte.buffer.items()) if line[1].reverse]

    @property
    def colours(self) -> set[str]:
        """Every colour on the screen but the terminal's own."""
        with self._news:
            cells = [cell for line in self._pyte.buffer.values() for cell in line.values()]
        return {colour for cell in cells for colour in (cell.fg, cell.bg)} - {"default"}

    def _glance(self) -> None:
        with self._news:
            self._news.wait(GLANCE)

    def press(self, *keys: str) -> Self:
        """Press keys, by name or character."""
        os.write(self._master, b"".join(KEYS[key][0] if key in KEYS else key.encode() for key in keys))
        return self

    def type(self, text: str) -> Self:
        """Type a text."""
        return self.press(*text)

    def until_quiet(self, seconds: float = 0.3) -> Self:
        """Wait until nothing has come for so long."""
        with self._news:
            while self._news.wait(seconds):
                pass
        return self

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill the program; how it ended."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    @property
    def ended(self) -> bool:
        """Whether the program ends with status 0."""
        return self.process.wait(PATIENCE) == 0

    def close(self) -> None:
        """Kill the program, and let go of the terminal."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        os.close(self._master)


def tmux_is_here() -> bool:
    """Whether the machine has tmux."""
    return shutil.which("tmux") is not None


class Tmux(Terminal):
    """A window of a tmux server of our own, with tmux's defaults but for the status line."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], socket: Path) -> None:
        """Start ``command`` in a server that listens on ``socket``."""
        self.socket, self._environment = socket, dict(environment)
        columns, lines = map(str, SIZE)
        start = ["new-session", "-d", "-x", columns, "-y", lines, shlex.join(command)]
        self.tmux("start-server", ";", "set", "-g", "status", "off", ";", *start)

    def tmux(self, *arguments: str) -> str:
        """What a tmux command says."""
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True).stdout

    @property
    def screen(self) -> str:
        """What the window shows; nothing once its program has ended."""
        with contextlib.suppress(subprocess.CalledProcessError):
            return self.tmux("capture-pane", "-p")
        return ""

    def press(self, *keys: str) -> Self:
        """Press keys, by name or character."""
        for key in keys:
            if key in KEYS:
                self.tmux("send-keys", KEYS[key][1])
            else:
                self.type(key)
        return self

    def type(self, text: str) -> Self:
        """Type a text."""
        self.tmux("send-keys", "-l", "--", text.replace(";", "\\;") if text.endswith(";") else text)
        return self

    @property
    def ended(self) -> bool:
        """Whether the server ends, which it does when its last program has."""
        deadline = time.monotonic() + PATIENCE
        while self.screen and time.monotonic() < deadline:
            self._glance()
        return not self.screen

    def close(self) -> None:
        """End the server and what runs in it."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")


def kill_workers(workspace: Path) -> None:
    """Kill the workers of a workspace that have not left, those too that were started and have not signed on yet."""
    with contextlib.closing(sqlite3.connect(workspace / "workspace.db")) as connection:
        pids = {pid for (pid,) in connection.execute("SELECT pid FROM worker WHERE stopped IS NULL")}
    ours = {b"sfumato.workspace.jobs.worker_main", bytes(workspace.resolve())}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            pids |= {int(path.parent.name)} if ours <= {*path.read_bytes().split(b"\0")} else set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
