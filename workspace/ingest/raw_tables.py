"""A table as its file gives it: cells, what the file says of its columns, and which kinds of missing value its empty cells are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pandas as pd


@dataclass(frozen=True, slots=True)
class Description:
    """What a file says of a column beside its values.

    ``labels`` are of values and of missing codes, by their text; ``missing`` are codes, or ranges of them (``engine.data.missing_codes``);
    ``measure`` is nominal, ordinal, scale, or empty.
    """

    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str | float, ...] = ()
    measure: str = ""


class Columns(Protocol):
    """A table whose columns can be asked for by name."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def records(self) -> int: ...

    @property
    def descriptions(self) -> Mapping[str, Description]:
        """What the file says of its columns, of those that it says something of."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told to who reads the file."""

    @property
    def frame(self) -> pd.DataFrame:
        """All of it, (n, k)."""

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,). Raises BadInput."""


@dataclass(frozen=True)
class RawTable:
    """``frame`` (n, k) as it was read. ``tags`` (n, j) has, of columns with such, the kind of each missing value: ``.a``, ``._``.

    ``descriptions`` are of the columns that have one; ``notes`` are to be told to who reads the file.
    """

    frame: pd.DataFrame
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    tags: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return len(self.frame)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,)."""
        own = dict(zip(self.names, self.frame.columns, strict=True))
        return ((name, self.frame[own[name]]) for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.frame.columns))
