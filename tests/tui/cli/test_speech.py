"""What commands print on a terminal goes on below where it is longer than a line; what machines read stays as it is."""

from __future__ import annotations

import contextlib
import io

import pytest

from sfumato.tui.cli.speech import echo

LONG = "  one two three four five six seven eight nine ten"


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def echoed_text(text: str, *, verbatim: bool = False) -> str:
    """What a terminal is given."""
    with contextlib.redirect_stdout(Terminal()) as terminal:
        echo(text, verbatim=verbatim)
    return terminal.getvalue()


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")


def test_a_long_line_goes_on_below() -> None:
    assert echoed_text(f"short\n{LONG}") == "short\n  one two three four\n    five six seven eight\n    nine ten\n"


def test_what_a_machine_reads_stays_in_its_lines() -> None:
    assert echoed_text(LONG, verbatim=True) == f"{LONG}\n"


def test_in_a_file_every_line_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    echo(LONG)
    assert capsys.readouterr().out == f"{LONG}\n"
