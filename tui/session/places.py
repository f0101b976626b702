"""Where things lie on this machine: the workspace used last, logs, settings. XDG, through platformdirs."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from pathlib import Path

import platformdirs

from sfumato.workspace.store.places import NAME, state_directory

SESSIONS = "last-workspace"
FORGOTTEN_SECONDS = 30 * 86_400.0
"""Sessions that were not heard of for so long are forgotten."""


def _session() -> Path:
    """The file of this terminal session, by its leader's number and start: two people on one account are told apart."""
    leader = os.getsid(0)
    try:
        started = Path(f"/proc/{leader}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = ""
    return state_directory() / SESSIONS / f"{platform.node()}-{leader}-{started}".replace("/", "_")


def default_workspace() -> Path:
    """``SFUMATO_WORKSPACE``, else the workspace used last in this terminal session, else one in the user's data directory."""
    if named := os.environ.get("SFUMATO_WORKSPACE"):
        return Path(named).expanduser()
    try:
        last = Path(_session().read_text("utf-8").strip())
    except (OSError, ValueError):
        last = Path()
    return last if last.is_absolute() and last.is_dir() else Path(platformdirs.user_data_path(NAME)) / "workspace"


def remember_workspace(directory: Path) -> None:
    """Make this the workspace used last in this terminal session; a home that cannot be written is no reason to fail."""
    mine = _session()
    with contextlib.suppress(OSError):
        if mine.parent.is_file():  # earlier versions kept one for all terminals
            mine.parent.unlink()
        mine.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine.write_text(str(directory.resolve()), "utf-8")
        for other in mine.parent.iterdir():
            if time.time() - other.lstat().st_mtime > FORGOTTEN_SECONDS:
                other.unlink(missing_ok=True)


def error_log() -> Path:
    """The file that takes the details of an error that is ours."""
    return state_directory() / "error.log"


def keys_file() -> Path:
    """The file of the user's own keys."""
    return Path(platformdirs.user_config_path(NAME)) / "keys.toml"
