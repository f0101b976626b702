"""Where Sfumato keeps what belongs to this account and to no workspace. XDG, through platformdirs."""

from __future__ import annotations

from pathlib import Path

NAME = "sfumato"


def state_directory() -> Path:
    """The account's directory for what Sfumato remembers (XDG_STATE_HOME)."""
    import platformdirs

    return Path(platformdirs.user_state_path(NAME))
