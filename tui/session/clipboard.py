"""Copying to the clipboard of whoever sits at the terminal, over SSH too; the result says what was really done."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

TERMINAL_BYTE_LIMIT = 74_994
"""Bytes that OSC 52 carries safely: their base64 is below 100,000 characters."""
COPY_FILE = "copied.txt"
TMUX_SECONDS = 5.0
ASKED_TERMINAL = "the terminal was asked to copy them, which it does not confirm"
TMUX_PASSES_ON = "it asks the terminal to copy them, where that has a clipboard; neither confirms it"
TOO_MANY_BYTES = f"more than the {TERMINAL_BYTE_LIMIT:,} that a terminal takes, so it was not asked"


def copy_to_clipboard_and_file(text: str, directory: Path, osc52: Callable[[str], None]) -> str:
    """Copy a text to the clipboard and to a private file in ``directory``; return what was done, in words.

    ``osc52`` writes the escape sequence to the terminal. Raises OSError when the file cannot be written.
    """
    # A terminal that is asked by OSC 52 never answers, so there is a file in any case.
    path = directory / COPY_FILE
    aside = path.with_name(f"{COPY_FILE}.{os.getpid()}")
    # Before the text is written, so that nobody else can read it at any time.
    aside.touch(mode=0o600)
    aside.write_text(text, "utf-8")
    aside.replace(path)
    size = len(text.encode())
    return f"{size:,} bytes in {path}; {_send_to_terminal(text, size, osc52)}"


def _send_to_terminal(text: str, size: int, osc52: Callable[[str], None]) -> str:
    """Send the text to tmux or to the terminal, and return what was done, in words."""
    ask = size <= TERMINAL_BYTE_LIMIT
    in_tmux = bool(os.environ.get("TMUX"))
    # tmux with its defaults drops OSC 52 without a word: its own command puts the text into its buffer, and asks the
    # terminal.
    if in_tmux and _load_tmux_buffer(text, ask=ask):
        return f"in tmux's buffer; {TMUX_PASSES_ON if ask else TOO_MANY_BYTES}"
    if not ask:
        return TOO_MANY_BYTES
    if os.environ.get("STY"):
        return "GNU screen hands no copies on to the terminal"
    osc52(text)
    return f"{ASKED_TERMINAL}, and this tmux may not have let it" if in_tmux else ASKED_TERMINAL


def _load_tmux_buffer(text: str, *, ask: bool) -> bool:
    """Put the text into tmux's buffer and return whether tmux took it; with ``ask`` tmux also asks the terminal."""
    # ``-w`` exists from tmux 3.2 on.
    command = ["tmux", "load-buffer", *(["-w"] if ask else []), "-"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=TMUX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
