"""A table as its file gives it: columns that are read when they are asked for, what the file says of them, and which kinds of missing value
its empty cells are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import decode_text_categorical

from .limits import at_once_bytes


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


@dataclass(frozen=True, eq=False)
class Held:
    """A column (n,): its ``values``, texts perhaps as a categorical of them, or ``numbers`` in the fewest bytes, to be read as ``kind``."""

    values: pd.Series | None = None
    numbers: NDArray[Any] | None = None
    kind: np.dtype[Any] | None = None

    def __len__(self) -> int:
        return len(self.series)

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        if self.values is not None:
            return int(self.values.memory_usage(index=False, deep=True))
        assert self.numbers is not None
        return self.numbers.nbytes

    @property
    def series(self) -> pd.Series:
        """The values (n,)."""
        if self.values is not None:
            return self.values
        assert self.numbers is not None
        return pd.Series(self.numbers.astype(self.kind, copy=False))


class Reader(Protocol):
    """What reads the columns of a file."""

    def gathered(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        """The first columns of these names, all records, as many as so many bytes hold, one at least. Raises BadInput and MemoryError."""


@dataclass(frozen=True)
class _InMemory:
    """The columns of a frame (n, k) by their names as text."""

    columns: Mapping[str, Held]

    def gathered(self, names: Sequence[str], _most_bytes: int) -> dict[str, Held]:
        return {name: self.columns[name] for name in names}


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table of a file, of any size; the columns that were read last stay in memory, as many as ``at_once_bytes`` hold.

    ``kept`` (n,) are the numbers, from 0, of the records that are meant, None where all are. ``descriptions`` are of the columns that have one;
    ``tags`` (n, j) has, of columns with such, the kind of each missing value: ``.a``, ``._``; ``notes`` are to be told to who reads the file.
    """

    names: tuple[str, ...]
    reader: Reader
    all_records: int
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    tags: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    kept: NDArray[np.int64] | None = None
    held: dict[str, Held] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        descriptions: Mapping[str, Description] | None = None,
        tags: pd.DataFrame | None = None,
        notes: tuple[str, ...] = (),
    ) -> RawTable:
        """The table that a frame (n, k) in memory is."""
        names = tuple(map(str, frame.columns))
        columns = {name: Held(frame.iloc[:, i]) for i, name in enumerate(names)}
        return cls(names, _InMemory(columns), len(frame), descriptions or {}, tags, notes)

    @classmethod
    def read(
        cls, reader: Reader, names: Sequence[str], descriptions: Mapping[str, Description] | None = None
    ) -> RawTable:
        """The table whose columns ``reader`` reads; the first are read at once. Raises BadInput."""
        held = reader.gathered(names, at_once_bytes())
        return cls(tuple(names), reader, len(next(iter(held.values()), ())), descriptions or {}, held=held)

    @property
    def records(self) -> int:
        return self.all_records if self.kept is None else len(self.kept)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,), texts perhaps as a categorical of them. Raises BadInput."""
        for i, name in enumerate(names):
            if name not in self.held:
                self.held.clear()
                self.held.update(self.reader.gathered(names[i:], at_once_bytes()))
            values = self.held[name].series
            yield name, values if self.kept is None else values.iloc[self.kept]

    def frame_of(self, names: Sequence[str]) -> pd.DataFrame:
        """Some of its columns, (n, j), with texts as text. Raises BadInput."""
        columns = {name: decode_text_categorical(values) for name, values in self.columns(names)}
        return pd.DataFrame(columns) if columns else pd.DataFrame(index=range(self.records))

    @property
    def frame(self) -> pd.DataFrame:
        """All of it, (n, k). Raises BadInput."""
        return self.frame_of(self.names)

    def only(self, kept: NDArray[np.int64]) -> RawTable:
        """The table of some of its records, by their numbers (m,), from 0, among those that are meant."""
        own = kept if self.kept is None else self.kept[kept]
        return replace(self, kept=own, tags=None if self.tags is None else self.tags.iloc[kept])
