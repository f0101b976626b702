"""The app on a pseudo-terminal: what Pilot cannot see."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from terminals import APP, Pty, app_environment, kill_workers

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
    terminal.see(r"data +survey\.csv")  # what stands below the projects is read beside the app
    assert sent(terminal, quiet=1.5) == b""
    assert 0 < len(sent(terminal, "j")) < 1000


def test_q_leaves_the_terminal_as_it_was(terminal):
    assert terminal.press("q").see("Quit Sfumato").press("y").ended
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
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [*APP, "--workspace", str(directory)]
    app = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=app_environment(tmp_path))
    os.close(slave)
    received = b""
    # A terminal hands on some thousand bytes at a time, and may part the words.
    while b"Household" not in received:
        received += os.read(master, 1 << 16)
    os.close(master)
    assert app.wait(timeout=10) == HUNG_UP


LONG_RUN = """
[data]
file = "people.csv"
[variables]
age = { kind = "count", role = "quasi_identifier" }
cost = { kind = "continuous", role = "sensitive" }
[release]
m = 800
[[synthesis]]
target = "cost"
method = "linear_regression"
predictors = ["age"]
[[measure]]
method = "utility.ecdf"
"""
CODES = re.compile(rb"\x1b(\[[0-9;?<>=]*[a-zA-Z$]+|[=>78]|\][^\x07\x1b]*(\x07|\x1b\\\\))|[\r\n]")


@pytest.mark.parametrize("moment", ["while it reads the file", "while the run is computed"])
def test_q_during_a_run_from_a_data_file_leaves_nothing_on_the_terminal(tmp_path, moment):
    rows = "\n".join(f"{20 + i % 40},{(i * 37) % 91 + 0.5}" for i in range(4000))
    (tmp_path / "people.csv").write_text(f"age,cost\n{rows}\n")
    (tmp_path / "recipe.toml").write_text(LONG_RUN)
    workspace = tmp_path / "work"
    workspace.mkdir()
    app = Pty([*APP, "--workspace", str(workspace)], app_environment(tmp_path))
    try:
        app.see("No projects yet").press("n").until_quiet().press("tab").type(str(tmp_path / "recipe.toml"))
        app.see("recipe.toml").press("enter")
        if moment == "while the run is computed":
            app.see(r"[1-9][0-9]* %").press("q").see("Quit Sfumato").press("y")
        else:
            app.press("ctrl+q")
        assert app.process.wait(30) == 0
        left = app.until_quiet().received.rpartition(b"\x1b[?1049l")[2]
        assert CODES.sub(b"", left) == b""
    finally:
        app.close()
        kill_workers(workspace)
