"""Types of a release's documents: a document is a function from the dossier to files of one of its packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..visible_text import replace_hidden

if TYPE_CHECKING:
    from ..release.dossier import ReleaseDossier

DocumentWriter: TypeAlias = "Callable[[ReleaseDossier, Sequence[WrittenFile]], Mapping[str, bytes]]"
"""From a dossier, and the files that were written before, to the contents of files by name. The same values give the same bytes."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """File of the release that is written already.

    package: ``public`` or ``internal``
    name: its name in the package
    bytes: its size
    sha256: its SHA-256
    """

    package: str
    name: str
    bytes: int
    sha256: str


def json_document(table: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes, without hidden characters. Raises ValueError for a number that JSON lacks."""
    return (json.dumps(replace_hidden_in_json(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def replace_hidden_in_json(value: Any) -> Any:
    """Return a JSON value with the hidden characters of its texts and keys replaced (``replace_hidden``)."""
    match value:
        case str():
            return replace_hidden(value)
        case Mapping():
            return {replace_hidden(str(key)): replace_hidden_in_json(one) for key, one in value.items()}
        case list() | tuple():
            return [replace_hidden_in_json(one) for one in value]
    return value
