"""Copying in the real app: outside tmux, and in a tmux with its defaults in a terminal of ours, which sees what comes."""

from __future__ import annotations

import base64
import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import APP, Pty, app_environment, tmux_is_here

from sfumato.tui.session.clipboard import COPY_FILE, TERMINAL_BYTE_LIMIT

needs_tmux = pytest.mark.skipif(not tmux_is_here(), reason="no tmux")
OSC52 = re.compile(rb"\x1b\]52;[a-z]*;([A-Za-z0-9+/=]+)(?:\x07|\x1b\\)")


def asked(terminal: Pty) -> list[str]:
    """The texts that the terminal was asked to copy."""
    return [base64.b64decode(text).decode() for text in OSC52.findall(terminal.received)]


def table(workspace: Path) -> str:
    return (workspace / COPY_FILE).read_text("utf-8")


class InTmux:
    """A tmux server of our own with its defaults, and a client of it in a terminal of ours."""

    def __init__(self, home: Path, *command: str) -> None:
        self.home = home
        self.environment = app_environment(home)
        self.server = ["tmux", "-S", str(home / "tmux"), "-f", "/dev/null"]
        self.terminal = Pty([*self.server, "new-session", *command], self.environment)

    def tmux(self, *arguments: str) -> str:
        return subprocess.run(
            [*self.server, *arguments], env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
        self.terminal.close()


@pytest.fixture
def in_tmux(finished: Path, tmp_path: Path) -> Iterator[InTmux]:
    """The app in tmux."""
    opened = InTmux(tmp_path, *APP, "--workspace", str(finished))
    yield opened
    opened.close()


@pytest.mark.slow
def test_outside_tmux_the_terminal_is_asked(finished: Path, tmp_path: Path) -> None:
    with contextlib.closing(Pty([*APP, "--workspace", str(finished)], app_environment(tmp_path))) as terminal:
        terminal.see("averages over the datasets", "People found on av").press("y").see_message(
            "the terminal was asked to copy them, which it does not confirm"
        )
        assert asked(terminal) == [table(finished)]
        assert "true_match_rate" in table(finished)


@pytest.mark.slow
@needs_tmux
def test_in_tmux_its_buffer_has_the_text_and_the_terminal_around_it_is_asked(in_tmux: InTmux, finished: Path) -> None:
    in_tmux.terminal.see("averages over the datasets", "People found on av").press("y").see_message(
        "in tmux's buffer; it asks the terminal"
    )
    assert in_tmux.tmux("show", "-sv", "set-clipboard").strip() == "external"
    assert in_tmux.tmux("show-buffer") == table(finished)
    assert asked(in_tmux.terminal) == [table(finished)]


@needs_tmux
def test_what_is_too_long_for_a_terminal_is_in_tmux_buffer_alone(tmp_path: Path) -> None:
    long = (
        "from pathlib import Path; from sfumato.tui.session.clipboard import TERMINAL_BYTE_LIMIT, copy_to_clipboard_and_file;"
        "print(copy_to_clipboard_and_file('x' * (TERMINAL_BYTE_LIMIT + 1), Path('.'), print), flush=True); input()"
    )
    (tmp_path / "here").mkdir()
    opened = InTmux(tmp_path, "-c", str(tmp_path / "here"), APP[0], "-c", long)
    with contextlib.closing(opened):
        opened.terminal.see("74,995 bytes in", "in tmux's buffer; more than the 74,994")
        assert len(opened.tmux("show-buffer")) == TERMINAL_BYTE_LIMIT + 1
        assert asked(opened.terminal) == []


@needs_tmux
def test_a_raw_request_is_dropped_by_tmux_defaults(tmp_path: Path) -> None:
    """The reason for all this, and the proof that the terminal of these tests tells a request from none."""
    with contextlib.closing(InTmux(tmp_path, "sh", "-c", "printf '\\033]52;c;cmF3\\007'; echo sent; cat")) as opened:
        opened.terminal.see("sent")
        assert asked(opened.terminal) == []
        assert "raw" not in opened.tmux("list-buffers")
