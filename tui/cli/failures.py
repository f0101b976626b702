"""No traceback reaches a user: every failure becomes one message and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

import click

from ..session.error_messages import message_of
from .speech import echo

BAD_INPUT = 2
INTERRUPTED = 3
CLOSED_PIPE = 141
"""What a shell reports of a program that SIGPIPE has ended."""
GROUPS = {
    "Start": ("demo", "import", "draft", "recipes", "methods", "help"),
    "Work": ("run", "search", "evaluate", "plan", "again", "cancel", "resume", "worker", "constraints", "hierarchies"),
    "Look": ("runs", "results", "records", "compare", "figures", "report"),
    "Release": ("examine", "approve", "release", "verify", "policy"),
    "Workspace": ("init", "adopt", "delete", "audit", "key", "doctor", "keys", "completion", "new-method"),
}
"""The commands by what they are for, in the order in which a new user needs them."""


class ClosedPipe(Exception):
    """The pipe that a command writes to has no reader."""


class Listed(click.Group):
    """A group that lists its commands with their first sentences, whole, below the titles of ``groups``."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups of commands, one below the other, all as wide as the longest name."""
        named = self.groups or {"Commands": tuple(self.commands)}
        widest = max(map(len, self.commands))
        for title, names in named.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), first_sentence(self.commands[name])) for name in names])


class Commands(Listed):
    """All commands.

    Its ``main`` leaves a closed pipe to ``guarded``: click ends with 1, which means that a threshold is not met.
    """

    groups = GROUPS

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """The context, after ``--help`` and ``--version`` where they were asked for. Raises ClosedPipe."""
        try:
            return super().make_context(*given, **named)
        except BrokenPipeError as error:
            raise ClosedPipe from error

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command. Raises ClosedPipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error


def first_sentence(command: click.Command) -> str:
    """What a command does, in one line of the list of commands."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def guarded(command: Callable[[], object]) -> NoReturn:
    """Run a command and exit: 0, its own status, 2 with a message, 3 when interrupted, 141 where who reads its output has closed the pipe."""
    _open_standard_streams()
    status: str | int | None
    try:
        status = _ended(command)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (BrokenPipeError, ClosedPipe):
        _let_go_of_output()
        status = CLOSED_PIPE
    sys.exit(status)


def _ended(command: Callable[[], object]) -> str | int | None:
    """Run a command; its exit status, after one message where it failed. Raises BrokenPipeError and ClosedPipe."""
    try:
        status = command()
    except SystemExit as ended:
        return ended.code
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "")
        return BAD_INPUT
    except click.ClickException as error:
        return _failed(error.format_message())
    except (click.exceptions.Abort, KeyboardInterrupt):
        echo("sfumato: interrupted", err=True)
        return INTERRUPTED
    except (BrokenPipeError, ClosedPipe):
        raise
    except Exception as error:  # noqa: BLE001  (the last place where it can be caught)
        return _failed(message_of(error))
    return status if isinstance(status, int) else 0


def _open_standard_streams() -> None:
    """Where a stream of this process was closed before it began, nothing is read, and what is written is lost: no other file gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _let_go_of_output() -> None:
    """What is left in the buffers goes nowhere: Python would complain of it as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())


def _failed(message: str) -> int:
    """One message on standard error; exit status 2."""
    echo(f"sfumato: {message}", err=True)
    return BAD_INPUT
