"""A terminal that is gone without a signal: the app had none of its own, or was told to ignore the hang-up."""

from __future__ import annotations

import signal
import sys
import termios

__all__ = ["HUNG_UP", "terminal_is_there"]

HUNG_UP = 128 + signal.SIGHUP
"""The exit status, as of a process that the signal has ended."""


def terminal_is_there() -> bool:
    """Whether standard input is a terminal that somebody still holds. Textual would read its end of file for ever."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno() if sys.__stdin__ else -1)
    except (termios.error, OSError, ValueError):
        return False
    return True
