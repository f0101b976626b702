"""The app on a pseudo-terminal: what Pilot cannot see."""

import os
import pty
import signal
import subprocess

import pytest
from terminals import APP, Pty, app_environment

from sfumato.tui.terminal.device import HUNG_UP

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal(directory, tmp_path):
    opened = Pty([*APP, "--workspace", str(directory)], app_environment(tmp_path, COLORTERM="truecolor"))
    opened.see("Household survey").until_quiet(0.4)
    yield opened
    opened.close()


def sent(terminal, *keys, quiet=0.4):
    """What comes after keys, until nothing has come for a while."""
    before = len(terminal.received)
    return terminal.press(*keys).until_quiet(quiet).received[before:]


def test_an_idle_app_sends_nothing_and_a_step_little(terminal):
    assert sent(terminal, quiet=1.5) == b""
    assert 0 < len(sent(terminal, "j")) < 1000


def test_q_leaves_the_terminal_as_it_was(terminal):
    assert terminal.press("q").ended
    assert b"\x1b[?1049l" in terminal.until_quiet().received


def test_a_hang_up_ends_the_app(terminal):
    assert terminal.kill(signal.SIGHUP) != 0


def test_ctrl_l_and_coming_back_paint_everything(terminal):
    assert b"Household survey" in sent(terminal, "ctrl+l")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.until_quiet(0.4)
    before = len(terminal.received)
    terminal.process.send_signal(signal.SIGCONT)
    terminal.see("Household survey").until_quiet(0.4)
    assert b"Household survey" in terminal.received[before:]


def test_an_app_without_a_signal_ends_when_its_terminal_is_gone(directory, tmp_path):
    master, slave = pty.openpty()
    command = [*APP, "--workspace", str(directory)]
    app = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=app_environment(tmp_path))
    os.close(slave)
    while b"Household survey" not in os.read(master, 1 << 16):
        pass
    os.close(master)
    assert app.wait(timeout=10) == HUNG_UP
