"""Copying to the clipboard of whoever sits at the terminal, over SSH too. Nobody answers, so nothing is ever "copied".

Inside tmux its own command is the only way that its defaults let through: raw OSC 52 and the wrapped one are dropped
without a word. Elsewhere OSC 52, which terminals cut or drop beyond some 75,000 bytes. In any case there is a file.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

__all__ = ["CAP", "COPY_FILE", "send"]

CAP = 74_994
"""Bytes that OSC 52 carries safely: their base64 is below 100,000 characters."""
COPY_FILE = "copied.txt"
TMUX_SECONDS = 5.0


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
    return f"{_sent(text, size, osc52)}; also in {path}"


def _sent(text: str, size: int, osc52: Callable[[str], None]) -> str:
    in_tmux = bool(os.environ.get("TMUX"))
    if in_tmux and _tmux(text):
        return f"{size:,} bytes sent through tmux" + ("; the terminal may refuse so many" if size > CAP else "")
    if size > CAP:
        return f"{size:,} bytes are more than a terminal takes ({CAP:,}): not sent"
    osc52(text)
    return f"{size:,} bytes sent to the terminal" + ("; this tmux may drop them" if in_tmux else "")


def _tmux(text: str) -> bool:
    """Whether tmux took the text, to pass it on to the terminal (``-w``, from tmux 3.2)."""
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode(),
            capture_output=True,
            timeout=TMUX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
