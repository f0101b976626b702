"""The terminal as a device: whether it still exists, and output for a terminal that has only ASCII."""

from __future__ import annotations

import signal
import sys
import termios

from rich.cells import cell_len
from textual.driver import Driver

from .glyphs import ascii_sign

HUNG_UP = 128 + signal.SIGHUP
"""Exit status of a process that the hang-up signal has ended."""


def has_terminal() -> bool:
    """Return whether standard input is a terminal that is still open."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno() if sys.__stdin__ else -1)
    except (termios.error, OSError, ValueError):
        return False
    return True


def ascii_driver(driver: type[Driver]) -> type[Driver]:
    """Return a driver class that writes ASCII characters of the same width in place of all others."""

    def write(self: Driver, data: str) -> None:
        """Write data in ASCII."""
        text = data if data.isascii() else "".join(map(_to_ascii, data))
        driver.write(self, text)

    return type("AsciiDriver", (driver,), {"write": write})


def _to_ascii(character: str) -> str:
    """Return an ASCII sign for a character, as wide as it is."""
    return character if character.isascii() else ascii_sign(character).ljust(cell_len(character))[: cell_len(character)]
