"""Files that are larger than a share of the memory: columns are gathered some rows at a time, and of those the chosen records stay.

pandas parses text, pyarrow reads the columns of Parquet; what a cell means is found as for any other file, from all values of its
column, so that the records are the same to the last bit. Untrusted: the file.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import written_out
from sfumato.engine.data.microdata import Microdata, check_columns, conform, none_left
from sfumato.engine.data.missing_codes import without_codes
from sfumato.engine.data.schema import MissingPolicy, Origin, Schema
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat

from .arrow_files import check_types, titles
from .dialects import PARQUET
from .filters import columns_read, select_where
from .foreign_files import NOT_READ, READ, program_of
from .holdout import check_column, held_out, with_column
from .limits import at_once_bytes
from .raw_tables import Description
from .sampling import as_conformed, drawn_records
from .streamed_columns import Held, StreamedTable
from .text_files import LONGEST_ROW, check_header, check_rows, header_of, levels_of
from .text_streams import PIECE, Survey, Surveyor, table_text

OPENED = Path("/proc/self/fd")
HEAD_BYTES = 2 * LONGEST_ROW


@dataclass(frozen=True, eq=False)
class LargeFile:
    """A plain file, opened once and hashed; whoever reads it reads what is opened."""

    name: str
    file: BufferedReader
    sha256: str
    head: bytes
    size: int
    stamp: tuple[int, ...]
    survey: Survey

    def __post_init__(self) -> None:
        """Who reads the file no more closes it."""
        weakref.finalize(self, self.file.close)

    @classmethod
    def of(cls, file: BufferedReader, name: str) -> LargeFile | None:
        """The file, hashed; None for one of another program, and where the system does not name what is opened. Raises OSError."""
        head = file.read(HEAD_BYTES)
        file.seek(0)
        if program_of(head) or head.startswith(tuple(NOT_READ)) or not (OPENED / str(file.fileno())).exists():
            return None
        stamp = _stamp(file)
        found, surveyor = hashlib.sha256(), Surveyor()
        while piece := file.read(PIECE):
            found.update(piece)
            if not head.startswith(PARQUET):
                surveyor.see(piece)
        return cls(name, file, found.hexdigest(), head, stamp[0], stamp, surveyor.done())

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the beginning, some at a time, wherever another reader is."""
        at = 0
        while piece := os.pread(self.file.fileno(), PIECE, at):
            yield piece
            at += len(piece)

    @property
    def path(self) -> str:
        """Where what is opened can be read."""
        return str(OPENED / str(self.file.fileno()))

    def content(self) -> bytes:
        """All bytes. Raises BadInput."""
        self.file.seek(0)
        content = self.file.read()
        self.check_unchanged()
        return content

    def check_unchanged(self) -> None:
        """Hold that the file is the one that was hashed. Raises BadInput."""
        if _stamp(self.file) != self.stamp:
            raise BadInput("data.file", f'"{self.name}" changed while it was read; read it again when it is written')


def _stamp(file: BufferedReader) -> tuple[int, ...]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Whole(Protocol):
    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        """The values (n,) of each of the columns, all records."""


@dataclass(frozen=True)
class LargeTable:
    """A table that stays in its file; ``kept`` (n,) are the numbers, from 0, of the records that are meant, None where all are."""

    file: LargeFile
    names: tuple[str, ...]
    all_records: int
    source: _Whole
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    kept: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records it has."""
        return self.all_records if self.kept is None else len(self.kept)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,), texts perhaps as a categorical of them. Raises BadInput."""
        for name, values in zip(names, self.source.read(names), strict=True):
            yield name, values if self.kept is None else values.iloc[self.kept]

    def written_out(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """The columns of these names, each with its values (n,) as they are in the frame of a smaller file. Raises BadInput."""
        return {name: written_out(values) for name, values in self.columns(names)}

    @property
    def frame(self) -> pd.DataFrame:
        """All of it, (n, k). Raises BadInput."""
        return pd.DataFrame(self.written_out(self.names))

    def missing(self, schema: Schema) -> tuple[dict[str, int], NDArray[np.bool_]]:
        """How many records have no value of each variable; which (n,) have none of some. Raises BadInput."""
        counts, lacking = {}, np.zeros(self.records, dtype=np.bool_)
        for name, values in self.columns(schema.names):
            absent = without_codes(values, schema[name]).isna().to_numpy()
            counts[name] = int(absent.sum())
            lacking |= absent
        return counts, lacking


def large_table(
    file: LargeFile, schema: Schema | None = None, place: str = "data.file", form: TextFormat | None = None
) -> LargeTable:
    """The table of a file of text or of Parquet, as ``files.read_table`` reads it. Raises BadInput, whose message never holds a value."""
    if not file.head.startswith(PARQUET):
        return _table_of_text(file, schema, place, form)
    if form is not None:
        raise BadInput(
            "data.format", f'"{file.name}" is a Parquet file, which says itself how it is read; leave it out'
        )
    columns = _ParquetColumns(file, place)
    found = columns.opened(columns.metadata)
    return LargeTable(
        file, tuple(found.schema_arrow.names), found.metadata.num_rows, columns, titles(found.schema_arrow)
    )


def where_of(table: LargeTable, where: str, place: str = "data.where") -> LargeTable:
    """The records for which a DuckDB expression holds, of which it is shown the columns that it names. Raises BadInput."""
    shown = table.written_out(columns_read(where, table.names, place))
    frame = select_where(pd.DataFrame(shown, index=range(table.records)), where, place)
    if not len(frame):
        raise BadInput(place, f'no record of "{table.file.name}" satisfies it')
    return replace(table, kept=frame.index.to_numpy())


def records_of(
    table: LargeTable, data: DataSource, schema: Schema, seed: int, origin: Origin = "confidential", *, key: bytes
) -> Microdata:
    """The microdata of the table's records: those that ``conform`` and ``sampled`` make of the whole. Raises BadInput."""
    wanted = with_column(schema, data)
    if isinstance(data.holdout, str):
        there = [data.holdout] if data.holdout in table.names else []
        check_column(pd.DataFrame(dict(table.columns(there)), columns=there or list(table.names)), schema, data)
    check_columns(table.names, wanted)
    whole = _whole(table, wanted, data.missing, origin)
    records = int(whole.sum())
    dropped = table.records - records
    if not records:
        raise none_left(dropped)
    chosen = None if data.sample is None else drawn_records(records, table.file.sha256, data, seed, key)
    found: dict[str, pd.Series] = {}
    kinds: dict[str, pd.Series] = {}
    for name, values in table.columns(wanted.names):
        one = conform(
            (values if whole.all() else values[whole]).to_frame(name), Schema((wanted[name],)), data.missing, origin
        )
        found[name] = one.frame[name]
        if one.kinds is not None:
            kinds[name] = one.kinds[name]
        if chosen is not None:
            found[name] = as_conformed(found[name].iloc[chosen].reset_index(drop=True), wanted[name])
            kinds |= {name: kinds[name].iloc[chosen].reset_index(drop=True)} if name in kinds else {}
    records_found = Microdata(
        wanted, pd.DataFrame(found, copy=False), origin, dropped, kinds=pd.DataFrame(kinds) if kinds else None
    )
    if data.holdout is None:
        return records_found
    return held_out(records_found, schema, table.file.sha256, data, seed, key)


def _whole(table: LargeTable, wanted: Schema, policy: MissingPolicy, origin: Origin) -> NDArray[np.bool_]:
    """Which records (n,) the missing-value policy leaves."""
    if policy is MissingPolicy.KEEP:
        return np.ones(table.records, dtype=np.bool_)
    counts, lacking = table.missing(wanted)
    if policy is MissingPolicy.REFUSE and lacking.any():
        worst = max(counts, key=lambda name: counts[name])
        ((_, values),) = table.columns([worst])
        conform(values.to_frame(worst), Schema((wanted[worst],)), policy, origin)
    return ~lacking


@dataclass(frozen=True)
class _ParquetColumns:
    file: LargeFile
    place: str

    def opened(self, read: Any) -> Any:
        """What ``read`` makes of the file. Raises BadInput."""
        try:
            with pa.OSFile(self.file.path) as opened:
                return read(pq.ParquetFile(opened, pre_buffer=False))
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(self.place, f'"{self.file.name}" is a damaged Parquet file') from None

    def metadata(self, found: pq.ParquetFile) -> pq.ParquetFile:
        check_header(found.schema_arrow.names, self.file.name, self.place)
        check_types(found.schema_arrow, f'"{self.file.name}"', self.place)
        return found

    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        for name in names:
            yield self.opened(
                lambda found, name=name: found.read([name]).select([name]).to_pandas(ignore_metadata=True)[name]
            )
            self.file.check_unchanged()


def _table_of_text(file: LargeFile, schema: Schema | None, place: str, form: TextFormat | None) -> LargeTable:
    said = form or TextFormat()
    if not file.head.strip():
        raise BadInput(place, f'"{file.name}" is empty')
    if form is None and b"\0" in file.head[:65536]:
        raise BadInput(place, f'"{file.name}" is not a table: {READ}')
    text = table_text(file.pieces, file.name, said, place, file.survey)
    known = text.form if form else None
    header, separator = header_of(text.head(HEAD_BYTES), file.name, known, place)
    check_rows(pa.PythonFile(text.open(), mode="r"), file.name, len(header), separator, text.form.quote, place)
    levels = frozenset(levels_of(schema))
    streamed = StreamedTable(text, file.name, tuple(header), separator, known, levels, place)
    columns = _TextColumns(file, streamed)
    return LargeTable(file, tuple(header), columns.records, columns)


@dataclass(eq=False)
class _TextColumns:
    """The columns of a file of text: those that were read last stay, as many as ``at_once_bytes`` hold."""

    file: LargeFile
    table: StreamedTable
    held: dict[str, Held] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many records there are."""
        self._hold(self.table.header)
        return len(next(iter(self.held.values())))

    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        for i, name in enumerate(names):
            if name not in self.held:
                self._hold(names[i:])
            yield self.held[name].series

    def _hold(self, names: Sequence[str]) -> None:
        self.held = {}
        self.held = self.table.gathered(names, at_once_bytes())
        self.file.check_unchanged()
