"""The app in a process of its own on a pseudo-terminal: keys in, bytes out, and how long each took."""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

QUIET = 0.12
"""Seconds without a byte after which a key is taken to be answered."""
PATIENCE = 0.5
"""Seconds after which a key is taken to have no answer."""
BUSY = 15.0
"""Milliseconds of computing that an app at rest stays below while it is waited for: it looks for what others changed."""
KEYS = {
    "right": b"\x1b[C", "left": b"\x1b[D", "down": b"\x1b[B", "up": b"\x1b[A", "enter": b"\r", "ctrl+p": b"\x10",
    "escape": b"\x1b", "tab": b"\t", "pagedown": b"\x1b[6~", "pageup": b"\x1b[5~", "end": b"\x1b[F", "home": b"\x1b[H",
    "question_mark": b"?", "colon": b":", "space": b" ", "slash": b"/", "backspace": b"\x7f", "clear": b"\x15", "ctrl+d": b"\x04", "ctrl+g": b"\x07", "ctrl+u": b"\x15",
    "f1": b"\x1bOP", "f2": b"\x1bOQ", "f3": b"\x1bOR", "f4": b"\x1bOS", "f5": b"\x1b[15~", "f6": b"\x1b[17~", "f7": b"\x1b[18~", "f8": b"\x1b[19~",
    "f9": b"\x1b[20~", "f10": b"\x1b[21~", "f11": b"\x1b[23~", "f12": b"\x1b[24~",
}  # fmt: skip
TABS = {
    "runs": "3", "results": "f3", "verdicts": "f2", "sweep": "f5", "diagnostics": "f7", "records": "f6",
    "data": "1", "plan": "2", "map": "f8",
}  # fmt: skip
"""Every tab and the key that leads to it."""
OWN_KEYS = {name: key for name, key in TABS.items() if key.startswith("f")} | {
    "quality": "f9", "planes": "f10", "limits": "f11", "audit": "f12", "statistics": "ctrl+g",
}  # fmt: skip
"""Keys that ``keys.toml`` gives to acts that have none, so that they can be pressed."""
START = (
    "import sys; from pathlib import Path; from sfumato.tui.app.app import launch_app; launch_app(Path(sys.argv[1]))"
)
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z$]|\x1b[()][0-9A-B]")
_PRIVATE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b[P_^\]][^\x1b\x07]*(?:\x1b\\\\|\x07)")
"""Requests that pyte would print instead of passing over."""
_POINTER = re.compile(rb"(\x1b\]22;[a-z-]*\x07)*")
"""Asks for another shape of the mouse's pointer: nothing is painted."""


@dataclass(frozen=True)
class Request:
    """What a script that presses keys is asked for: the size of the terminal, a word of the tasks, and its other arguments."""

    columns: int
    lines: int
    word: str
    others: argparse.Namespace


def read_request(about: str | None, of: str, *places: str) -> Request:
    """Read the command line, with ``places`` before the options, and print size, processors and load."""
    parser = argparse.ArgumentParser(description=about)
    for place in places:
        parser.add_argument(place, type=Path)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--only", default="", help=f"a word of a {of}")
    found = parser.parse_args()
    columns, lines = map(int, found.size.split("x"))
    print(f"{found.size}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    return Request(columns, lines, found.only, found)


def _sent(key: str) -> bytes:
    """What a key sends, or the characters of a text in place of a key. Raises KeyError for a function key that is not known."""
    return KEYS[key] if re.fullmatch(r"f\d+|ctrl\+.", key) else KEYS.get(key, key.encode())


def plain(painted: bytes) -> str:
    """The text of what was painted, without its escape sequences."""
    return _ESCAPES.sub(b"", painted).decode("utf-8", "replace")


@dataclass(frozen=True)
class Answer:
    """What a key caused: bytes; milliseconds to the first and to the last of them; milliseconds of computing by the app,
    and of waiting for a processor that others had.
    """

    size: int
    first: float
    last: float
    computed: float
    waited: float


class Terminal:
    """An app on a terminal of the given size."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int,
        lines: int,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "SSH_CONNECTION", "SSH_TTY", "TMUX")}
        kept |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._unseen = b""
        self.started = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=kept, cwd=directory)
        os.close(slave)

    @classmethod
    def of_app(
        cls, workspace: Path, columns: int, lines: int, environment: Mapping[str, str] | None = None
    ) -> Terminal:
        """The app on a workspace, beside which the files lie that it writes."""
        return cls([sys.executable, "-P", "-c", START, str(workspace)], columns, lines, environment, workspace.parent)

    def until(self, *texts: bytes, seconds: float = 60.0) -> list[float]:
        """Milliseconds from the start until each of ``texts`` has been painted."""
        seen, found = b"", []
        for text in texts:
            while text not in _ESCAPES.sub(b"", seen):
                if not select.select([self.master], [], [], seconds)[0]:
                    raise TimeoutError(f"{text!r} was not painted; {_ESCAPES.sub(b'', seen)[-2000:]!r}")
                come = os.read(self.master, 1 << 16)
                self._unseen += come
                seen += come
            found.append(1000 * (time.perf_counter() - self.started))
        return found

    def read(self, quiet: float = QUIET, patience: float = 0.0) -> tuple[int, float, float]:
        """Bytes until nothing comes for ``quiet`` seconds, the first within ``patience``; milliseconds to the first and to
        the last of them.
        """
        start = first = last = time.perf_counter()
        total, painted = 0, False
        while select.select([self.master], [], [], quiet if painted else max(quiet, patience))[0]:
            try:
                come = os.read(self.master, 1 << 16)
            except OSError:
                break
            total += len(come)
            self._unseen += come
            if not _POINTER.fullmatch(come):
                last = time.perf_counter()
                first, painted = first if painted else last, True
        return total, 1000 * (first - start), 1000 * (last - start)

    def press(self, key: str, quiet: float = QUIET, patience: float = PATIENCE) -> Answer:
        """Press a key and wait until the app is quiet."""
        before = self._scheduled()
        os.write(self.master, _sent(key))
        size, first, last = self.read(quiet, patience)
        after = self._scheduled()
        return Answer(size, first, last, after[0] - before[0], after[1] - before[1])

    def picture(self) -> tuple[str, ...]:
        """What the terminal shows, a line each: characters and how they are painted."""
        self._stream.feed(_PRIVATE.sub(b"", self._unseen))
        self._unseen = b""
        rows = (self._screen.buffer[y] for y in range(self._screen.lines))
        return tuple("".join(repr(tuple(row[x])) for x in range(self._screen.columns)) for row in rows)

    def text(self) -> list[str]:
        """The characters that the terminal shows, a line each."""
        self.picture()
        return list(self._screen.display)

    def bytes_within(self, seconds: float) -> bytes:
        """What is painted within so many seconds."""
        found, end = b"", time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0 and select.select([self.master], [], [], left)[0]:
            found += os.read(self.master, 1 << 16)
        return found

    def read_after(self, key: str) -> bytes:
        """Press a key; what is painted until nothing comes for ``QUIET`` seconds."""
        os.write(self.master, _sent(key))
        found = b""
        while come := self.bytes_within(QUIET if found else PATIENCE):
            found += come
        return found

    def press_unmeasured(self, *keys: str) -> None:
        """Press keys whose answers are not measured."""
        for key in keys:
            self.press(key)

    def settle(self, seconds: float = 1.0) -> None:
        """Wait until the app has been quiet for so long."""
        self.read(seconds)

    def rest(self, seconds: float) -> None:
        """Wait until the app has neither painted nor computed for so long, nor been ready to compute."""
        while True:
            before = sum(self._scheduled())
            if not self.read(seconds)[0] and sum(self._scheduled()) - before < BUSY:
                return

    def idle(self, seconds: float) -> float:
        """Bytes a second while nobody does anything."""
        total, end = 0, time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.master], [], [], left)[0]:
                total += len(os.read(self.master, 1 << 16))
        return total / seconds

    def megabytes(self) -> float:
        """Resident memory of the app's own process (Linux)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def computed(self) -> float:
        """Milliseconds that the app has computed so far."""
        return self._scheduled()[0]

    def _scheduled(self) -> tuple[float, float]:
        """Milliseconds that the threads of the app have run, and that they were ready and had no processor."""
        spent = [0.0, 0.0]
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                parts = (task / "schedstat").read_text().split()
            except OSError:
                continue
            spent = [have + int(part) / 1e6 for have, part in zip(spent, parts, strict=False)]
        return spent[0], spent[1]

    def close(self) -> None:
        """Leave the app, whatever screen it is on."""
        self._press_until_ended(b"\x1b")
        self.process.wait(timeout=10)
        os.close(self.master)

    def _press_until_ended(self, key: bytes, sleep: Callable[[float], None] = time.sleep) -> None:
        for _ in range(8):
            if self.process.poll() is not None:
                return
            try:
                os.write(self.master, key)
                self.read()
            except OSError:
                pass
            sleep(0.1)
        self.process.terminate()


def take_own_keys(folder: Path) -> None:
    """Have the apps that are started from now on give ``OWN_KEYS`` to acts that have no key; their file lies in ``folder``."""
    file = folder / "config" / "sfumato" / "keys.toml"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f'{act} = "{key}"\n' for act, key in OWN_KEYS.items()), "utf-8")
    os.environ["XDG_CONFIG_HOME"] = str(file.parents[1])
