"""Directories of the account, outside any workspace (XDG, through platformdirs)."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

APPLICATION_NAME = "sfumato"


def state_directory() -> Path:
    """Return the account's directory for the state of Sfumato (XDG_STATE_HOME)."""
    return _state_directory(os.environ.get("XDG_STATE_HOME"), os.environ.get("HOME"))


@lru_cache(maxsize=8)
def _state_directory(*_: str | None) -> Path:
    """Return the directory for these values of the environment."""
    import platformdirs

    return Path(platformdirs.user_state_path(APPLICATION_NAME))
