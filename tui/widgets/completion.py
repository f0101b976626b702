"""What a text field offers to complete: the last word of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from textual.suggester import Suggester

__all__ = ["LastWord"]

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
