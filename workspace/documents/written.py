"""What a document of a release is: a function from what is known of the release to files of one of its packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..visible_text import visible

if TYPE_CHECKING:
    from ..release.dossier import Dossier

Document: TypeAlias = "Callable[[Dossier, Sequence[Written]], Mapping[str, bytes]]"
"""From a dossier, and the files that were written before, to the contents of files by name. The same values give the same bytes."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file of the release that is written already: its package, its name in there, its size and its SHA-256."""

    package: str
    name: str
    bytes: int
    sha256: str


def json_document(table: Mapping[str, Any]) -> bytes:
    """A JSON object whose words are ``visible``. Raises ValueError for a number that JSON has not."""
    return (json.dumps(visible_words(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def visible_words(value: Any) -> Any:
    """A value of JSON with ``visible`` texts and keys."""
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {visible(str(key)): visible_words(one) for key, one in value.items()}
        case list() | tuple():
            return [visible_words(one) for one in value]
    return value
