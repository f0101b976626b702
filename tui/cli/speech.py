"""Output of commands: the one place where text goes to a terminal, and no text can command that terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from sfumato.workspace.visible_text import replace_unprintable, replace_unprintable_in_lines


class TerminalDrawing(str):
    """Text that the program has laid out and coloured itself; foreign text in it went through ``replace_unprintable``."""

    __slots__ = ()


def echo(text: str, *, err: bool = False, nl: bool = True, verbatim: bool = False) -> None:
    """Print a text, with signs in place of escape sequences, direction marks and all else that is not printable.

    On a terminal long lines are folded at a blank and indented, except in ``verbatim`` text. A ``TerminalDrawing`` is
    printed unchanged.
    """
    stream = sys.stderr if err else sys.stdout
    if not isinstance(text, TerminalDrawing):
        text = replace_unprintable_in_lines(text)
        # ``verbatim`` text is read by a machine.
        if not verbatim and stream.isatty():
            width = shutil.get_terminal_size().columns
            text = "\n".join(part for line in text.split("\n") for part in _fold_to_width(line, width))
    click.echo(text, err=err, nl=nl)


def echo_parts(parts: Sequence[str]) -> None:
    """Print parts of a text with a blank line between two."""
    for place, part in enumerate(parts):
        if place:
            echo("")
        echo(part)


def _fold_to_width(line: str, width: int) -> list[str]:
    """Fold a line to a width; continued lines are indented more than the first."""
    from sfumato.workspace.reporting.terminal_text import fold_text

    indent = line[: len(line) - len(line.lstrip())]
    # At most half the width is indent, so that words have room.
    return fold_text(line, width, f"{indent[: width // 2]}  ")


def print_paged(text: str) -> None:
    """Print a text in the user's pager where it is longer than the terminal, else directly."""
    said = replace_unprintable_in_lines(text)
    # A pager needs the keyboard too.
    if sys.stdout.isatty() and sys.stdin.isatty() and said.count("\n") >= shutil.get_terminal_size().lines - 1:
        click.echo_via_pager(f"{said}\n")
    else:
        click.echo(said)


def confirm_or_abort(question: str) -> None:
    """Ask a question; raise click.Abort at any answer but yes."""
    click.confirm(replace_unprintable(question), abort=True)
