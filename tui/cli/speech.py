"""How commands speak: the one place where text goes to a terminal, and none of it can command that terminal."""

from __future__ import annotations

import click

from sfumato.workspace.reporting.words import printable, printable_lines


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print ``text`` in its lines, with signs in place of escape sequences, direction marks and all else that is not printable."""
    click.echo(printable_lines(text), err=err, nl=nl)


def confirm(question: str) -> None:
    """Ask; raises click.Abort at any answer but yes."""
    click.confirm(printable(question), abort=True)
