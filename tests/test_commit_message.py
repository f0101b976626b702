"""The hook of commit messages: scope, what changes, at most 72 characters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / ".ci" / "commit_message.py"
GOOD = (
    "tui: sort runs by name",
    "engine, workspace: put the modules in rooms",
    "Merge branch 'side'",
    f"docs: {'x' * 66}",
)
BAD = {
    "": "scope: what changes",
    "Sort runs by name": "scope: what changes",
    "tui: sort runs by name.": "full stop",
    "tui:sort": "scope: what changes",
    "TUI: sort": "scope: what changes",
    f"docs: {'x' * 67}": "73 characters",
}


def ended(message: str, place: Path) -> tuple[int, str]:
    place.write_text(message, "utf-8")
    done = subprocess.run([sys.executable, HOOK, place], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("subject", GOOD)
def test_a_good_subject_is_let_through(subject: str, tmp_path: Path) -> None:
    assert ended(f"# a comment\n{subject}\n\nA body of any length.\n", tmp_path / "message") == (0, "")


@pytest.mark.parametrize("subject", BAD)
def test_another_subject_is_refused_with_what_to_write(subject: str, tmp_path: Path) -> None:
    status, said = ended(f"{subject}\n", tmp_path / "message")
    assert status == 1
    assert BAD[subject] in said
