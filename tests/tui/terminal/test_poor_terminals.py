"""Every tab of a finished run in terminals that can do little: no colour, 16 colours, no braille, nothing but ASCII."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from terminals import APP, Pty, app_environment

pytestmark = pytest.mark.slow

TABS = (
    (("3",), "3 Runs", "done +[0-9]"), (("4",), "Numbers", "People found on av"), (("4",), "Verdicts", "unmet +Largest gap"),
    (("]",) * 3, "Studies", "less sure of"), (("]",), "Diagnostics", "income: "), (("]",) * 2, "Records", "probability"),
    (("1",), "1 Data", "records, "), (("2",), "2 Plan", "Limits"), (("3", "]"), "Map", "not dominated"),
)  # fmt: skip
"""The keys that lead to each view, its name in the frame, and what it shows once it has read its part."""
PLOT = {"braille": "[\u2801-\u28ff]", "block": "[▀▘▝▖▗▚▞▛▜▙▟]"}
SGR = re.compile(rb"\x1b\[([0-9;]*)m")
ESCAPES = re.compile(rb"\x1b\[[<-?]?[0-9;]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>]")


def look_at_everything(finished: Path, home: Path, environment: dict[str, str]) -> Pty:
    """The app after every tab, the distribution of region, a row explained and a message; its pictures are in ``pictures``."""
    command = [*APP, "--workspace", str(finished)]
    with contextlib.closing(Pty(command, app_environment(home, **environment))) as terminal:
        terminal.see(r"\[Numbers\]", r"averages over the datasets [·.] ")
        for keys, name, content in TABS:
            for key in keys:
                terminal.press(key).until_quiet(0.1)
            terminal.see(rf"\[{name}\]", content).until_quiet(0.03)
            terminal.pictures.append(terminal.screen)
            terminal.seen_colours |= terminal.colours
        terminal.press("1").see(r"\[1 Data\]").press(":").until_quiet(0.1).type("distributions").press("enter")
        terminal.see("region . shares", "s.den").until_quiet(0.1)
        terminal.pictures.append(terminal.screen)
        terminal.press("q").until_quiet(0.1)
        for key in ("4", "]"):
            terminal.press(key).until_quiet(0.1)
        terminal.see(r"\[Numbers\]", "People found on av").press("enter").see("lower is better|Lower is better").press(
            "q", "y"
        ).see("bytes in")
        terminal.press("q", "q")
        assert terminal.ended
    assert b"Traceback" not in terminal.received
    assert "✗ unmet" in terminal.pictures[2] or "x unmet" in terminal.pictures[2]
    return terminal


def colour_codes(received: bytes) -> set[str]:
    """The colours that were asked for: 30 to 37, 90 to 97 and so on, or 38;5 and 38;2."""
    found = set()
    for codes in SGR.findall(received):
        numbers = codes.decode().split(";")
        found |= {
            number for number in numbers if number.isdigit() and int(number) not in (0, 39, 49) and int(number) > 29
        }
    return found


def test_without_colour(finished: Path, tmp_path: Path) -> None:
    terminal = look_at_everything(finished, tmp_path, {"NO_COLOR": "1", "COLORTERM": "truecolor"})
    assert terminal.seen_colours == set()
    assert colour_codes(terminal.received) == set()
    assert re.search(PLOT["braille"], terminal.pictures[3])


@pytest.mark.parametrize(
    ("kind", "glyphs"),
    [
        pytest.param("xterm", "block", marks=pytest.mark.sizes),
        pytest.param("screen", "braille", marks=[pytest.mark.sizes, pytest.mark.again]),
    ],
)
def test_in_sixteen_colours(finished: Path, tmp_path: Path, kind: str, glyphs: str) -> None:
    terminal = look_at_everything(finished, tmp_path, {"TERM": kind, "COLORTERM": "", "SFUMATO_GLYPHS": glyphs})
    assert colour_codes(terminal.received) <= {str(n) for base in (30, 40, 90, 100) for n in range(base, base + 8)}
    assert len(terminal.seen_colours) > 2
    for tab in (3, 9):
        assert re.search(PLOT[glyphs], terminal.pictures[tab])
        assert not re.search(PLOT[{"block": "braille", "braille": "block"}[glyphs]], terminal.pictures[tab])


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"TERM": "linux", "COLORTERM": ""}, marks=[pytest.mark.sizes, pytest.mark.again]),
        {"LC_ALL": "C", "NO_COLOR": "1"},
    ],
)
def test_in_ascii_alone(finished: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    terminal = look_at_everything(finished, tmp_path, environment)
    shown = ESCAPES.sub(b"", terminal.received)
    assert shown.isascii(), re.findall(rb"[^\x00-\x7f]+", shown)[:5]
    assert b"\x1b" not in shown
    assert "ooooo" in terminal.pictures[3]
    assert "suden" in terminal.pictures[9]
