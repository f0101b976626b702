"""Tables as their files have them: columns read on demand, descriptions of columns, and kinds of missing value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import decode_text_categorical

from .limits import column_buffer_bytes

if TYPE_CHECKING:
    from .dialects import DetectedFormat
    from .spooled_columns import SpooledColumn


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """Description of a column in its file.

    title: title of the variable
    labels: labels of values and of missing codes, by their text
    missing: missing codes, or ranges of them (``engine.data.missing_codes``)
    measure: nominal, ordinal, scale, or empty
    format: format in which the file's program shows dates, times or months, such as TIME8; empty for other columns
    """

    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str | float, ...] = ()
    measure: str = ""
    format: str = ""


@dataclass(frozen=True, eq=False)
class ColumnBuffer:
    """Column of a file, (n,): either ``values`` or ``numbers`` in memory, or ``spooled`` on disk.

    values: values; texts may be a categorical
    numbers: numbers in the smallest type that holds them
    kind: data type to which ``numbers`` are converted when they are used
    spooled: column of a long file
    """

    values: pd.Series | None = None
    numbers: NDArray[Any] | None = None
    kind: np.dtype[Any] | None = None
    spooled: SpooledColumn | None = None

    def __len__(self) -> int:
        return len(self.series) if self.spooled is None else len(self.spooled)

    @property
    def n_bytes(self) -> int:
        """Return the memory of the column in bytes."""
        if self.spooled is not None:
            return self.spooled.n_bytes
        if self.values is not None:
            return int(self.values.memory_usage(index=False, deep=True))
        assert self.numbers is not None
        return self.numbers.nbytes

    @property
    def series(self) -> pd.Series:
        """Return the values, (n,)."""
        if self.spooled is not None:
            return self.spooled.read_series(0, len(self.spooled))
        if self.values is not None:
            return self.values
        assert self.numbers is not None
        return pd.Series(self.numbers.astype(self.kind, copy=False))


class ColumnReader(Protocol):
    """Protocol of a reader of the columns of a file."""

    def read_columns(self, names: Sequence[str], max_bytes: int) -> dict[str, ColumnBuffer]:
        """Read all records of the first columns of these names, as many as ``max_bytes`` hold, at least one.

        Raises BadInput and MemoryError.
        """

    def read_written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Read columns of all records, (n,) each, such that cells are equal where the file writes the same.

        Raises BadInput and MemoryError.
        """


@dataclass(frozen=True)
class _FrameColumns:
    """Columns of a frame (n, k) in memory, by their names as text."""

    columns: Mapping[str, ColumnBuffer]

    def read_columns(self, names: Sequence[str], _most_bytes: int) -> dict[str, ColumnBuffer]:
        """Return the columns of these names, which are all in memory."""
        return {name: self.columns[name] for name in names}

    def read_written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return the values of columns, (n,) each."""
        return {name: self.columns[name].series for name in names}


@dataclass(frozen=True)
class _ColumnsWithOneMore:
    """Columns of a file and one more column that was computed from them."""

    reader: ColumnReader
    name: str
    values: pd.Series

    def read_columns(self, names: Sequence[str], max_bytes: int) -> dict[str, ColumnBuffer]:
        """Read the first columns of these names; the computed one alone."""
        if names[0] == self.name:
            return {self.name: ColumnBuffer(self.values)}
        before = names[: names.index(self.name)] if self.name in names else names
        return self.reader.read_columns(before, max_bytes)

    def read_written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Read columns of all records, (n,) each."""
        stored = [name for name in names if name != self.name]
        found = self.reader.read_written_columns(stored) if stored else {}
        return {name: self.values if name == self.name else found[name] for name in names}


@dataclass(frozen=True, eq=False)
class RawTable:
    """Table of a file of any size, whose columns are read on demand.

    The columns that were read last stay in memory, as many as ``column_buffer_bytes`` hold.

    names: names of the columns
    reader: reader of the columns
    all_records: number of records in the file
    descriptions: descriptions of the columns that have one
    tags: kind of each missing value (n, j), of the columns that have kinds: ``.a``, ``._``
    written: texts of the cells (n, j), of the columns whose values have lost digits or codes of the file
    notes: remarks for whoever reads the file
    detection: how a sheet was read, where that was to be detected
    kept_records: numbers, from 0, of the records that are kept, (n,); None for all
    buffered: columns in memory
    """

    names: tuple[str, ...]
    reader: ColumnReader
    all_records: int
    descriptions: Mapping[str, ColumnDescription] = field(default_factory=dict)
    tags: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    detection: DetectedFormat | None = None
    kept_records: NDArray[np.int64] | None = None
    buffered: dict[str, ColumnBuffer] = field(default_factory=dict)
    written: pd.DataFrame | None = None

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        descriptions: Mapping[str, ColumnDescription] | None = None,
        tags: pd.DataFrame | None = None,
        notes: tuple[str, ...] = (),
    ) -> RawTable:
        """Create the table of a frame (n, k) in memory."""
        names = tuple(map(str, frame.columns))
        columns = {name: ColumnBuffer(frame.iloc[:, i]) for i, name in enumerate(names)}
        return cls(names, _FrameColumns(columns), len(frame), descriptions or {}, tags, notes)

    @classmethod
    def from_reader(
        cls,
        reader: ColumnReader,
        names: Sequence[str],
        descriptions: Mapping[str, ColumnDescription] | None = None,
        *,
        needed: Collection[str] | None = None,
    ) -> RawTable:
        """Create the table whose columns ``reader`` reads; the first ones of those ``needed`` are read at once.

        Raises BadInput.
        """
        # one column at least: its length is the number of records
        first = names if needed is None else [name for name in names if name in needed] or names[:1]
        held = reader.read_columns(first, column_buffer_bytes())
        return cls(tuple(names), reader, len(next(iter(held.values()), ())), descriptions or {}, buffered=held)

    @property
    def records(self) -> int:
        """Return the number of records that are kept."""
        return self.all_records if self.kept_records is None else len(self.kept_records)

    def iterate_columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """Yield the columns of these names with their values (n,), texts perhaps as a categorical. Raises BadInput."""
        for i, name in enumerate(names):
            if name not in self.buffered:
                # before the next are read, so that never two buffers are in memory
                self.buffered.clear()
                self.buffered.update(self.reader.read_columns(names[i:], column_buffer_bytes()))
            values = self.buffered[name].series
            yield name, values if self.kept_records is None else values.iloc[self.kept_records]

    def spooled_columns(self, names: Sequence[str]) -> dict[str, SpooledColumn]:
        """Return the columns of these names that lie on disk, of a table all of whose records are kept; else none.

        Raises BadInput.
        """
        if self.kept_records is not None or not any(held.spooled for held in self.buffered.values()):
            return {}
        # columns that memory did not hold with the others are read now
        while unread := [name for name in names if name not in self.buffered]:
            self.buffered.update(self.reader.read_columns(unread, column_buffer_bytes()))
        return {name: held.spooled for name in names if (held := self.buffered[name]).spooled is not None}

    def first_values(self, name: str, records: int) -> pd.Series:
        """Return the values of the first records of a column, (records,) or fewer. Raises BadInput."""
        held = self.spooled_columns([name]).get(name)
        if held is not None:
            return held.read_series(0, min(records, len(held)))
        ((_, values),) = self.iterate_columns([name])
        return values[:records]

    def written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return columns (n,) such that cells are equal where the file shows the same: spellings, codes and signs differ.

        Kinds of missing value are texts (``.a``). The file is read once for all of them. Raises BadInput.
        """
        kept = {} if self.written is None else {name: self.written[name] for name in names if name in self.written}
        unread = [name for name in names if name not in kept]
        found = {**kept, **(self.reader.read_written_columns(unread) if unread else {})}
        return {name: self._mark_kinds_of_missing(name, found[name]) for name in names}

    def _mark_kinds_of_missing(self, name: str, values: pd.Series) -> pd.Series:
        """Return the kept records of a written column, with its kinds of missing value as texts."""
        values = (values if self.kept_records is None else values.iloc[self.kept_records]).reset_index(drop=True)
        if self.tags is None or name not in self.tags:
            return values
        tags = self.tags[name].reset_index(drop=True).astype("object")
        return values.astype("object").where(tags.isna(), tags)

    def frame_of_columns(self, names: Sequence[str]) -> pd.DataFrame:
        """Return the columns of these names as a frame (n, j), with texts as text. Raises BadInput."""
        columns = {name: decode_text_categorical(values) for name, values in self.iterate_columns(names)}
        return pd.DataFrame(columns) if columns else pd.DataFrame(index=range(self.records))

    @property
    def frame(self) -> pd.DataFrame:
        """Return the whole table, (n, k). Raises BadInput."""
        return self.frame_of_columns(self.names)

    def keep_records(self, kept: NDArray[np.int64]) -> RawTable:
        """Return the table of some of the kept records, given by their positions (m,) among them, from 0."""
        own = kept if self.kept_records is None else self.kept_records[kept]
        # the buffer is shared: it has all records of a column, and ``kept_records`` selects from it
        return replace(self, kept_records=own, tags=None if self.tags is None else self.tags.iloc[kept])

    def with_column(self, name: str, values: pd.Series) -> RawTable:
        """Return the table with one more column, (n,) for all records of the file, whether kept or not."""
        return replace(
            self,
            names=(*self.names, name),
            reader=_ColumnsWithOneMore(self.reader, name, values),
            buffered=dict(self.buffered),
        )

    @property
    def with_all_records(self) -> RawTable:
        """Return the table of all records of the file."""
        return replace(self, kept_records=None, tags=None)
