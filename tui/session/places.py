"""Paths on this machine: the workspace used last, logs, settings (XDG, through platformdirs)."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from pathlib import Path

import platformdirs

from sfumato.workspace.store.places import APPLICATION_NAME, state_directory

SESSIONS_FOLDER = "last-workspace"
SESSION_LIFETIME_SECONDS = 30 * 86_400.0
"""Sessions that were not heard of for so long are forgotten."""


def _session_file() -> Path:
    """Return the file of this terminal session."""
    # Named by the session leader's number and start, so that two people on one account differ.
    leader = os.getsid(0)
    try:
        started = Path(f"/proc/{leader}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = ""
    return state_directory() / SESSIONS_FOLDER / f"{platform.node()}-{leader}-{started}".replace("/", "_")


def default_workspace() -> Path:
    """Return the workspace to use where none is named.

    It is ``SFUMATO_WORKSPACE``, else the one used last in this terminal session, else one in the user's data directory.
    """
    if named := os.environ.get("SFUMATO_WORKSPACE"):
        return Path(named).expanduser()
    try:
        last = Path(_session_file().read_text("utf-8").strip())
    except (OSError, ValueError):
        last = Path()
    return (
        last
        if last.is_absolute() and last.is_dir()
        else Path(platformdirs.user_data_path(APPLICATION_NAME)) / "workspace"
    )


def remember_workspace(directory: Path) -> None:
    """Record a workspace as the one used last in this terminal session; ignore a home directory that cannot be written.

    .
    """
    mine = _session_file()
    with contextlib.suppress(OSError):
        if mine.parent.is_file():  # earlier versions kept one for all terminals
            mine.parent.unlink()
        mine.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine.write_text(str(directory.resolve()), "utf-8")
        for other in mine.parent.iterdir():
            if time.time() - other.lstat().st_mtime > SESSION_LIFETIME_SECONDS:
                other.unlink(missing_ok=True)


def error_log_file() -> Path:
    """Return the log file for unexpected errors."""
    return state_directory() / "error.log"


def keys_file() -> Path:
    """Return the file of the user's own keys."""
    return Path(platformdirs.user_config_path(APPLICATION_NAME)) / "keys.toml"
