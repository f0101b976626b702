"""Message that a user reads about an error, and the log of unexpected errors."""

from __future__ import annotations

import traceback

from .places import error_log_file


def error_message_for_user(error: Exception) -> str:
    """Return the message about an error for a user: its own text if it was raised on purpose, else where details are.

    .
    """
    import sqlite3

    from sfumato.engine.errors import EngineError
    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.store.database import PATIENCE_SECONDS, is_lock_error
    from sfumato.workspace.store.disk import disk_error_message

    if isinstance(error, (EngineError, WorkspaceError)):
        return str(error)
    if isinstance(error, sqlite3.Error):
        if trouble := disk_error_message(error):
            return trouble
        if is_lock_error(error):
            return (
                f"other processes have written to the workspace for {PATIENCE_SECONDS:.0f} s without a pause; nothing was changed. "
                "Try again; sfumato runs shows what is in progress"
            )
        return f"the workspace's database cannot be used: {error}; see sfumato doctor"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"internal error ({type(error).__name__}); its details are in {_log_unexpected_error(error)}"


def _log_unexpected_error(error: Exception) -> str:
    """Write where an unexpected error was raised to the log; return the log's path."""
    path = error_log_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            # Only places and the type: the text of a foreign error may quote confidential values.
            traceback.print_tb(error.__traceback__, file=file)
            file.write(f"{type(error).__name__}\n")
    except OSError:
        return "no log, since it cannot be written"
    return str(path)
