"""No traceback reaches a user: every failure becomes one message and an exit status."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import click

from ..places import error_log
from .speech import echo

BAD_INPUT = 2
INTERRUPTED = 3


def guarded(command: Callable[[], object]) -> NoReturn:
    """Run a command and exit: 0, its own status, 2 with a message, 3 when interrupted."""
    try:
        status = command()
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.ctx.get_help() if error.ctx else "")
        sys.exit(BAD_INPUT)
    except click.ClickException as error:
        fail_with(error.format_message())
    except (click.exceptions.Abort, KeyboardInterrupt):
        echo("sfumato: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:  # noqa: BLE001  (the last place where it can be caught)
        fail_with(message_of(error))
    sys.exit(status if isinstance(status, int) else 0)


def message_of(error: Exception) -> str:
    """What a user is told of an error: its own words when it was raised on purpose, else where the details lie."""
    import sqlite3

    from sfumato.engine.errors import EngineError
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.store.disk import disk_error

    if isinstance(error, (EngineError, WorkspaceError)):
        return str(error)
    if isinstance(error, sqlite3.Error):
        if trouble := disk_error(error):
            return trouble
        return f"the workspace's database cannot be used: {error}; see sfumato doctor"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"internal error ({type(error).__name__}); its details are in {_kept(error)}"


def _kept(error: Exception) -> str:
    path = error_log()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            traceback.print_tb(error.__traceback__, file=file)
            file.write(f"{type(error).__name__}\n")
    except OSError:
        return "no log, since it cannot be written"
    return str(path)


def fail_with(message: str) -> NoReturn:
    """One message on standard error and exit status 2."""
    echo(f"sfumato: {message}", err=True)
    sys.exit(BAD_INPUT)
