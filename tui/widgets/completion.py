"""What a text field offers to complete: the last word of a list, or a path."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from textual.suggester import Suggester

__all__ = ["LastWord", "PathName"]

WORD = re.compile(r"[^\s,:()=\[\]{}\"]*$")


class LastWord(Suggester):
    """Completes the word that is being typed from ``words``."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._words = tuple(words)

    async def get_suggestion(self, value: str) -> str | None:
        """The text with its last word completed, where exactly that begins one of the words."""
        found = WORD.search(value)
        begun = found.group() if found else ""
        whole = next((word for word in self._words if begun and word.startswith(begun) and word != begun), None)
        return None if whole is None else value[: len(value) - len(begun)] + whole


class PathName(Suggester):
    """Completes the last part of a path, a directory with its slash; hidden ones only where a dot was typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The path with its last part completed to the first name that begins so; None when there is none."""
        return await asyncio.to_thread(_completed, value)


def _completed(value: str) -> str | None:
    parent, slash, begun = value.rpartition("/")
    if not value:
        return None
    try:
        directory = Path(f"{parent}{slash}" or ".").expanduser()
        names = sorted(path.name + "/" * path.is_dir() for path in directory.iterdir() if path.name.startswith(begun))
    except (OSError, RuntimeError):
        return None
    found = next((name for name in names if name != begun and (begun or not name.startswith("."))), None)
    return None if found is None else f"{parent}{slash}{found}"
