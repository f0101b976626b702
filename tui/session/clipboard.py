"""Copying to the clipboard of whoever sits at the terminal, over SSH too; what is said is what was really done.

A terminal that is asked by OSC 52 never answers, and cuts or drops what is more than some 75,000 bytes. tmux with its
defaults drops such requests, raw and wrapped, without a word: there its own command puts the text into its buffer, and asks the
terminal. In any case there is a file.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

CAP = 74_994
"""Bytes that OSC 52 carries safely: their base64 is below 100,000 characters."""
COPY_FILE = "copied.txt"
TMUX_SECONDS = 5.0
ASKED = "the terminal was asked to copy them, which it does not confirm"
PASSED_ON = "it asks the terminal to copy them, where that has a clipboard; neither confirms it"
TOO_MANY = f"more than the {CAP:,} that a terminal takes, so it was not asked"


def send(text: str, directory: Path, osc52: Callable[[str], None]) -> str:
    """Send a text to the clipboard and write it to a file of its owner in ``directory``; says what was really done.

    ``osc52`` writes the escape sequence to the terminal. Raises OSError when the file cannot be written.
    """
    path = directory / COPY_FILE
    aside = path.with_name(f"{COPY_FILE}.{os.getpid()}")
    aside.touch(mode=0o600)
    aside.write_text(text, "utf-8")
    aside.replace(path)
    size = len(text.encode())
    return f"{size:,} bytes in {path}; {_sent(text, size, osc52)}"


def _sent(text: str, size: int, osc52: Callable[[str], None]) -> str:
    ask = size <= CAP
    in_tmux = bool(os.environ.get("TMUX"))
    if in_tmux and _tmux(text, ask=ask):
        return f"in tmux's buffer; {PASSED_ON if ask else TOO_MANY}"
    if not ask:
        return TOO_MANY
    if os.environ.get("STY"):
        return "GNU screen hands no copies on to the terminal"
    osc52(text)
    return f"{ASKED}, and this tmux may not have let it" if in_tmux else ASKED


def _tmux(text: str, *, ask: bool) -> bool:
    """Whether tmux took the text, and would ``ask`` the terminal too (``-w``, from tmux 3.2)."""
    command = ["tmux", "load-buffer", *(["-w"] if ask else []), "-"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=TMUX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
