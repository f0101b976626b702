"""What a document of a release is: a function from what is known of the release to files of one of its packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...plots.markup import seen

if TYPE_CHECKING:
    from ..dossier import Dossier


@dataclass(frozen=True, slots=True)
class Written:
    """A file of the release that is written already: its package, its name in there, its size and its SHA-256."""

    package: str
    name: str
    bytes: int
    sha256: str


Document: TypeAlias = "Callable[[Dossier, Sequence[Written]], Mapping[str, bytes]]"
"""From a dossier, and the files that were written before, to the contents of files by name. The same values give the same bytes."""


def json_document(table: Mapping[str, Any]) -> bytes:
    """A JSON object whose words hold nothing that hides or turns text. Raises ValueError for a number that JSON has not."""
    return (json.dumps(_seen(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _seen(value: Any) -> Any:
    match value:
        case str():
            return seen(value)
        case Mapping():
            return {seen(str(key)): _seen(one) for key, one in value.items()}
        case list() | tuple():
            return [_seen(one) for one in value]
    return value
