"""How commands print: the one place where text goes to a terminal, and none of it can command that terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from sfumato.workspace.visible_text import replace_unprintable, replace_unprintable_in_lines


class Drawn(str):
    """Text that the application has laid out and coloured itself; every foreign text in it went through ``replace_unprintable``."""

    __slots__ = ()


def echo(text: str, *, err: bool = False, nl: bool = True, verbatim: bool = False) -> None:
    """Print ``text`` in its lines, with signs in place of escape sequences, direction marks and all else that is not printable.

    On a terminal a line that is longer than its width goes on below, at a blank, indented; ``verbatim`` what will be read by a machine.
    What is ``Drawn`` is printed as it is.
    """
    stream = sys.stderr if err else sys.stdout
    if not isinstance(text, Drawn):
        text = replace_unprintable_in_lines(text)
        if not verbatim and stream.isatty():
            width = shutil.get_terminal_size().columns
            text = "\n".join(part for line in text.split("\n") for part in _fitted(line, width))
    click.echo(text, err=err, nl=nl)


def echo_parts(parts: Sequence[str]) -> None:
    """Print parts with a blank line between two."""
    for place, part in enumerate(parts):
        if place:
            echo("")
        echo(part)


def _fitted(line: str, width: int) -> list[str]:
    from sfumato.workspace.reporting.terminal_text import folded

    indent = line[: len(line) - len(line.lstrip())]
    return folded(line, width, f"{indent[: width // 2]}  ")


def page(text: str) -> None:
    """Print ``text`` in the user's pager where it is longer than the terminal, else as it is."""
    said = replace_unprintable_in_lines(text)
    if sys.stdout.isatty() and sys.stdin.isatty() and said.count("\n") >= shutil.get_terminal_size().lines - 1:
        click.echo_via_pager(f"{said}\n")
    else:
        click.echo(said)


def confirm(question: str) -> None:
    """Ask; raises click.Abort at any answer but yes."""
    click.confirm(replace_unprintable(question), abort=True)
