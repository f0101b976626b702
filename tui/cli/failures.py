"""Failures of commands: no traceback reaches a user, every failure becomes one message and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

import click

from ..session.error_messages import error_message_for_user
from .speech import echo

BAD_INPUT = 2
INTERRUPTED = 3
CLOSED_PIPE = 141
"""What a shell reports of a program that SIGPIPE has ended."""
COMMAND_GROUPS = {
    "Start": ("demo", "import", "draft", "recipes", "methods", "help"),
    "Work": ("run", "search", "evaluate", "plan", "again", "cancel", "resume", "worker", "constraints", "hierarchies"),
    "Look": ("runs", "results", "tables", "records", "whatif", "levers", "compare", "figures", "report"),
    "Release": ("examine", "approve", "release", "population", "verify", "audit-tables", "policy"),
    "Workspace": ("init", "adopt", "delete", "audit", "key", "doctor", "keys", "completion", "new-method"),
}
"""The commands by what they are for, in the order in which a new user needs them."""


class ClosedPipe(Exception):
    """Error of writing to a pipe that has no reader."""


class CommandListGroup(click.Group):
    """Group whose help lists its commands with their first paragraphs, whole, below the titles of ``groups``."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, group by group."""
        named = self.groups or {"Commands": tuple(self.commands)}
        # All groups are as wide as the longest name, so that their columns are aligned.
        widest = max(map(len, self.commands))
        for title, names in named.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), first_paragraph(self.commands[name])) for name in names])


class RootCommandGroup(CommandListGroup):
    """Group of all commands, which raises ClosedPipe where the reader of the output is gone."""

    groups = COMMAND_GROUPS

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Return the context, after ``--help`` and ``--version`` were carried out where requested. Raises ClosedPipe."""
        try:
            return super().make_context(*given, **named)
        except BrokenPipeError as error:
            # click would end with 1 at a broken pipe, which means that a threshold is not met.
            raise ClosedPipe from error

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command. Raises ClosedPipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error


def first_paragraph(command: click.Command) -> str:
    """Return the first paragraph of a command's help text on one line."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def run_and_exit(command: Callable[[], object]) -> NoReturn:
    """Run a command and exit with its status, or with one that says how it failed.

    The status is 0 or the command's own, 2 with a message, 3 when interrupted, 141 where the reader of its output has
    closed the pipe.
    """
    _open_standard_streams()
    status: str | int | None
    try:
        status = _exit_status(command)
        # Flushed here, where a closed pipe can still be caught, and not at exit.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (BrokenPipeError, ClosedPipe):
        _discard_output()
        status = CLOSED_PIPE
    sys.exit(status)


def _exit_status(command: Callable[[], object]) -> str | int | None:
    """Run a command and return its exit status, after one message where it failed.

    Raises BrokenPipeError and ClosedPipe.
    """
    try:
        status = command()
    except SystemExit as ended:
        return ended.code
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "")
        return BAD_INPUT
    except click.ClickException as error:
        return _report_failure(error.format_message())
    except (click.exceptions.Abort, KeyboardInterrupt):
        echo("sfumato: interrupted", err=True)
        return INTERRUPTED
    except (BrokenPipeError, ClosedPipe):
        raise
    except Exception as error:  # noqa: BLE001  (the last place where it can be caught)
        return _report_failure(error_message_for_user(error))
    return status if isinstance(status, int) else 0


def _open_standard_streams() -> None:
    """Open the null device for standard streams that were closed before the start."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened would get the number of a standard stream, and be written to by
            # messages.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _discard_output() -> None:
    """Discard what is left in the buffers of the standard streams."""
    # Python would complain about them at exit.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())


def _report_failure(message: str) -> int:
    """Write one message to standard error and return exit status 2."""
    echo(f"sfumato: {message}", err=True)
    return BAD_INPUT
