"""The app on a pseudo-terminal: what Pilot cannot see."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

START = "import sys; from pathlib import Path; from tui.app import launch; launch(Path(sys.argv[1]))"


class Terminal:
    def __init__(self, workspace):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        command = [sys.executable, "-c", START, str(workspace)]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)

    def until(self, text):
        """What came until ``text`` was there."""
        seen, end = b"", time.monotonic() + 30
        while text not in seen and time.monotonic() < end:
            if select.select([self.master], [], [], 1)[0]:
                seen += os.read(self.master, 1 << 16)
        assert text in seen, seen[-300:]
        return seen

    def rest(self, quiet=0.4):
        """What comes until nothing has come for a while."""
        seen = b""
        while select.select([self.master], [], [], quiet)[0]:
            seen += os.read(self.master, 1 << 16)
        return seen

    def write(self, keys):
        os.write(self.master, keys)


@pytest.fixture
def terminal(directory):
    opened = Terminal(directory)
    opened.until(b"Household survey")
    opened.rest()
    yield opened
    opened.process.kill()
    opened.process.wait()
    os.close(opened.master)


def test_an_idle_app_sends_nothing_and_a_step_little(terminal):
    assert terminal.rest(1.5) == b""
    terminal.write(b"j")
    assert 0 < len(terminal.rest()) < 1000


def test_q_leaves_the_terminal_as_it_was(terminal):
    terminal.write(b"q")
    assert b"\x1b[?1049l" in terminal.until(b"\x1b[?1049l")
    assert terminal.process.wait(timeout=20) == 0


def test_a_hang_up_ends_the_app(terminal):
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.process.wait(timeout=20) != 0


def test_ctrl_l_and_coming_back_paint_everything(terminal):
    terminal.write(b"\x0c")
    assert b"Household survey" in terminal.rest()
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.rest()
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until(b"Household survey")
