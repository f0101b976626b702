"""What commands print on a terminal goes on below where it is longer than a line; what machines read stays as it is."""

from __future__ import annotations

import sys

import pytest

from sfumato.tui.cli.speech import echo

LONG = "  one two three four five six seven eight nine ten"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_long_line_goes_on_below(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"short\n{LONG}")
    assert capsys.readouterr().out == "short\n  one two three four\n    five six seven eight\n    nine ten\n"


def test_what_a_machine_reads_stays_in_its_lines(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    echo(LONG, verbatim=True)
    assert capsys.readouterr().out == f"{LONG}\n"


def test_in_a_file_every_line_is_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    echo(LONG)
    assert capsys.readouterr().out == f"{LONG}\n"
