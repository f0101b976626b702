"""What a document of a release is: a function from what is known of the release to files of one of its packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

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
