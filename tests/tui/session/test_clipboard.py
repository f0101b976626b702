"""Copying says what was really done: through tmux's own command, by OSC 52, or to a file alone."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.tui.session.clipboard import COPY_FILE, TERMINAL_BYTE_LIMIT, copy_to_clipboard_and_file

FakeTmux = Callable[[int], Path]


@pytest.fixture
def fake_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTmux:
    """Inside a tmux that keeps what it was given and ends with a status; returns the file of what it was given."""

    def make(status: int) -> Path:
        programs = tmp_path / "programs"
        programs.mkdir()
        script = programs / "tmux"
        script.write_text(
            f'#!/bin/sh\necho "$@" > "{programs}/arguments"\n/bin/cat > "{programs}/given"\nexit {status}\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(programs))
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
        return programs / "given"

    return make


@pytest.fixture
def no_multiplexer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tmux, no GNU screen."""
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)


def test_in_tmux_its_own_command_takes_the_text(tmp_path: Path, fake_tmux: FakeTmux) -> None:
    given, escaped = fake_tmux(0), []
    said = copy_to_clipboard_and_file("a\tb\nü\n", tmp_path, escaped.append)
    assert given.read_text("utf-8") == "a\tb\nü\n"
    assert given.with_name("arguments").read_text() == "load-buffer -w -\n"
    assert escaped == []
    assert said == (
        f"7 bytes in {tmp_path / COPY_FILE}; in tmux's buffer; "
        "it asks the terminal to copy them, where that has a clipboard; neither confirms it"
    )


def test_tmux_does_not_ask_the_terminal_for_more_than_it_takes(tmp_path: Path, fake_tmux: FakeTmux) -> None:
    given, escaped = fake_tmux(0), []
    said = copy_to_clipboard_and_file("x" * (TERMINAL_BYTE_LIMIT + 1), tmp_path, escaped.append)
    assert len(given.read_text()) == TERMINAL_BYTE_LIMIT + 1
    assert given.with_name("arguments").read_text() == "load-buffer -\n"
    assert escaped == []
    assert said.endswith("in tmux's buffer; more than the 74,994 that a terminal takes, so it was not asked")


def test_an_old_tmux_is_gone_round_and_the_user_told(tmp_path: Path, fake_tmux: FakeTmux) -> None:
    fake_tmux(1)
    escaped: list[str] = []
    assert (
        "the terminal was asked to copy them, which it does not confirm, and this tmux may not have let it"
        in copy_to_clipboard_and_file("text", tmp_path, escaped.append)
    )
    assert escaped == ["text"]


def test_a_tmux_that_is_not_there_is_gone_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "gone")
    monkeypatch.setenv("PATH", str(tmp_path))
    escaped: list[str] = []
    copy_to_clipboard_and_file("text", tmp_path, escaped.append)
    assert escaped == ["text"]


@pytest.mark.usefixtures("no_multiplexer")
def test_outside_it_is_an_escape_sequence(tmp_path: Path) -> None:
    escaped: list[str] = []
    said = copy_to_clipboard_and_file("text", tmp_path, escaped.append)
    assert escaped == ["text"]
    assert said == f"4 bytes in {tmp_path / COPY_FILE}; the terminal was asked to copy them, which it does not confirm"


@pytest.mark.usefixtures("no_multiplexer")
def test_gnu_screen_is_known_to_drop_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STY", "1234.pts-0")
    escaped: list[str] = []
    assert "GNU screen hands no copies on" in copy_to_clipboard_and_file("text", tmp_path, escaped.append)
    assert escaped == []
    assert (tmp_path / COPY_FILE).read_text() == "text"


@pytest.mark.usefixtures("no_multiplexer")
@pytest.mark.parametrize(("size", "sent"), [(TERMINAL_BYTE_LIMIT, True), (TERMINAL_BYTE_LIMIT + 1, False)])
def test_what_is_more_than_a_terminal_takes_is_only_written(tmp_path: Path, size: int, sent: bool) -> None:
    escaped: list[str] = []
    said = copy_to_clipboard_and_file("x" * size, tmp_path, escaped.append)
    assert bool(escaped) is sent
    assert ("not asked" in said) is not sent
    assert len((tmp_path / COPY_FILE).read_text()) == size


@pytest.mark.usefixtures("no_multiplexer")
def test_the_file_is_its_owners_alone_and_replaced(tmp_path: Path) -> None:
    for text in ("first", "second"):
        copy_to_clipboard_and_file(text, tmp_path, lambda _: None)
    path = tmp_path / COPY_FILE
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [COPY_FILE]
