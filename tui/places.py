"""Where things lie on this machine: the workspace used last, logs, settings. XDG, through platformdirs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

NAME = "sfumato"


def _state() -> Path:
    return Path(platformdirs.user_state_path(NAME))


def default_workspace() -> Path:
    """``SFUMATO_WORKSPACE``, else the workspace that was used last, else one in the user's data directory."""
    if named := os.environ.get("SFUMATO_WORKSPACE"):
        return Path(named).expanduser()
    try:
        last = Path((_state() / "last-workspace").read_text("utf-8").strip())
    except OSError:
        last = Path()
    return last if last.is_absolute() and last.is_dir() else Path(platformdirs.user_data_path(NAME)) / "workspace"


def remember_workspace(directory: Path) -> None:
    """Make this the workspace used last; a home that cannot be written is no reason to fail."""
    try:
        _state().mkdir(mode=0o700, parents=True, exist_ok=True)
        (_state() / "last-workspace").write_text(str(directory.resolve()), "utf-8")
    except OSError:
        return


def error_log() -> Path:
    """The file that takes the details of an error that is ours."""
    return _state() / "error.log"


def keys_file() -> Path:
    """The file of the user's own keys."""
    return Path(platformdirs.user_config_path(NAME)) / "keys.toml"
