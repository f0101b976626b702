"""Files that are larger than a share of the memory: a few columns at a time become frames, and of those the chosen records stay.

DuckDB splits text into cells, pyarrow reads the columns of Parquet; what a cell means is found as for any other file, from all values of its
column, so that the records are the same to the last bit. Text that DuckDB may split otherwise is refused. Untrusted: the file.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_writer
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engine.data_source import DataSource
from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import Microdata, check_columns, conform, none_left
from sfumato.engine.missing_codes import without_codes
from sfumato.engine.schema import MissingPolicy, Origin, Schema
from sfumato.engine.text_format import TextFormat

from .arrow_files import check_types, titles
from .dialects import PARQUET
from .filters import SETTINGS, columns_read, select_where
from .foreign_files import NOT_READ, program_of
from .holdout import check_column, held_out, with_column
from .limits import AT_ONCE_SHARE, large_bytes, machine_bytes
from .raw_tables import Description
from .sampling import as_conformed, drawn_records
from .text_files import LONGEST_ROW, UNPARSED, check_header, check_rows, header_of, levels_of, read_column

OPENED = Path("/proc/self/fd")
PIECE = 1 << 22
HEAD_BYTES = 2 * LONGEST_ROW
DATABASE_BYTES = 128 << 20
"""What DuckDB may take to split text into cells."""


@dataclass(frozen=True, eq=False)
class LargeFile:
    """A plain file, opened once and hashed; whoever reads it reads what is opened."""

    name: str
    file: BufferedReader
    sha256: str
    head: bytes
    size: int
    stamp: tuple[int, ...]

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
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(name, file, found, head, stamp[0], stamp)

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

    def refusal(self, why: str, place: str) -> BadInput:
        """What is said where a file of this size is not read."""
        limit = f"{large_bytes() / (1 << 20):,.0f} MiB"
        return BadInput(
            place, f'"{self.name}" {why}; so no file of more than {limit} is read: write it otherwise, or as Parquet'
        )


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
    at_once: int
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    kept: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records it has."""
        return self.all_records if self.kept is None else len(self.kept)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,). Raises BadInput."""
        for first in range(0, len(names), self.at_once):
            some = names[first : first + self.at_once]
            for name, values in zip(some, self.source.read(some), strict=True):
                yield name, values if self.kept is None else values.iloc[self.kept]
            self.file.check_unchanged()

    @property
    def frame(self) -> pd.DataFrame:
        """All of it, (n, k). Raises BadInput."""
        return pd.DataFrame(dict(self.columns(self.names)))

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
        file, tuple(found.schema_arrow.names), found.metadata.num_rows, columns, 1, titles(found.schema_arrow)
    )


def where_of(table: LargeTable, where: str, place: str = "data.where") -> LargeTable:
    """The records for which a DuckDB expression holds, of which it is shown the columns that it names. Raises BadInput."""
    shown = dict(table.columns(columns_read(where, table.names, place)))
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
        one = conform(values[whole].to_frame(name), Schema((wanted[name],)), data.missing, origin)
        found[name] = one.frame[name]
        if one.kinds is not None:
            kinds[name] = one.kinds[name]
        if chosen is not None:
            found[name] = as_conformed(found[name].iloc[chosen].reset_index(drop=True), wanted[name])
            kinds |= {name: kinds[name].iloc[chosen].reset_index(drop=True)} if name in kinds else {}
    records_found = Microdata(
        wanted, pd.DataFrame(found), origin, dropped, kinds=pd.DataFrame(kinds) if kinds else None
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


def _table_of_text(file: LargeFile, schema: Schema | None, place: str, form: TextFormat | None) -> LargeTable:
    said = form or TextFormat()
    if not file.head.strip():
        raise BadInput(place, f'"{file.name}" is empty')
    if codecs.lookup(said.encoding).name not in ("utf-8", "ascii"):
        raise file.refusal("is not UTF-8 text", place)
    if said.skip or said.trim or said.delimiter == " ":
        raise file.refusal("has lines before the table, or blanks around or between cells", place)
    ends = _check_bytes(file, said.quote, place)
    head = file.head.removeprefix(codecs.BOM_UTF8)
    header, separator = header_of(head, file.name, form, place)
    if len(header) == 1:
        raise file.refusal("has one column", place)
    with pa.OSFile(file.path) as opened:
        rows = check_rows(opened, file.name, len(header), separator, said.quote, place)
    records = rows - said.header
    width = file.size // len(header) + 3 * rows
    at_once = max(1, int(AT_ONCE_SHARE * machine_bytes() / max(1, width)))
    columns = _TextColumns(file, tuple(header), separator, ends, rows, form, frozenset(levels_of(schema)), place)
    return LargeTable(file, tuple(header), records, columns, at_once)


def _check_bytes(file: LargeFile, quote: str, place: str) -> str:
    """What DuckDB is told of the ends of lines. Raises BadInput where the bytes are not such that every reader splits them alike."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    mark = re.escape(quote.encode())
    odd = re.compile(
        rb"(?:^|[,;\t|:\r\n])[^\S\r\n]+(?:%b(?!%b)|%b%b[,;\t|:\r\n%b])|%b[^\S\r\n]+[,;\t|:\r\n]" % ((mark,) * 6)
    )
    returns = lines = both = 0
    carried = b""
    file.file.seek(0)
    ended = False
    while not ended:
        piece = file.file.read(PIECE)
        ended = not piece
        try:
            decoder.decode(piece, final=ended)
        except UnicodeDecodeError:
            raise file.refusal("is not UTF-8 text", place) from None
        if b"\0" in piece:
            raise BadInput(place, f'"{file.name}" is not a table that can be read: it holds bytes that no text has')
        returns, lines = returns + piece.count(b"\r"), lines + piece.count(b"\n")
        both += piece.count(b"\r\n") + (carried[-1:] == b"\r" and piece[:1] == b"\n")
        seen = carried + (piece or b"\n")
        blanks = any(sign in seen for sign in (b" " + mark, b"\t" + mark, mark + b" ", mark + b"\t", b"\v", b"\f"))
        if quote and blanks and odd.search(seen):
            raise file.refusal("has blanks beside quotation marks", place)
        carried = seen[max(0, len(seen.rstrip(b" \t\v\f" + quote.encode())) - 1) :]
        if len(carried) > LONGEST_ROW:
            raise BadInput(place, f'"{file.name}" is not a table: {UNPARSED}')
    if returns and not returns == lines == both:
        raise file.refusal("ends its lines in more than one way", place)
    return "" if returns else r", new_line = '\n'"


@dataclass(frozen=True)
class _TextColumns:
    file: LargeFile
    header: tuple[str, ...]
    separator: str
    ends: str
    rows: int
    form: TextFormat | None
    levels: frozenset[str]
    place: str

    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        for name, cells in zip(names, self._cells(names), strict=True):
            yield read_column(cells.getvalue(), self.file.name, name, self.form, set(self.levels), self.place)

    def _cells(self, names: Sequence[str]) -> list[io.BytesIO]:
        """The cells of each column, one a line, quoted."""
        import duckdb

        cells = [io.BytesIO() for _ in names]
        options = csv_writer.WriteOptions(include_header=False, quoting_style="all_valid")
        first, rows = (self.form or TextFormat()).header, 0
        try:
            with self._connection() as connection:
                for batch in connection.sql(self._query(names)).to_arrow_reader(1 << 16):
                    rows += len(batch)
                    some = batch.slice(1) if first and len(batch) else batch
                    first = first and not len(batch)
                    for i, sink in enumerate(cells):
                        csv_writer.write_csv(pa.table({"cell": some.column(i)}), sink, options)
        except duckdb.OutOfMemoryException:
            raise self.file.refusal("takes too much memory to be split into cells", self.place) from None
        except duckdb.Error:
            raise self.file.refusal("cannot be split into cells in one way only", self.place) from None
        if rows != self.rows:
            raise self.file.refusal("cannot be split into rows in one way only", self.place)
        return cells

    def _connection(self) -> Any:
        """A database that sees this file and nothing else, and writes nothing to a disk."""
        import duckdb

        limits: dict[str, Any] = {"memory_limit": f"{DATABASE_BYTES >> 20}MiB", "threads": 1}
        own = {key: value for key, value in SETTINGS.items() if key != "enable_external_access"}
        connection = duckdb.connect(":memory:", config={**own, **limits})
        connection.execute(f"SET allowed_paths = ['{self.file.path}']")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _query(self, names: Sequence[str]) -> str:
        quote = (self.form or TextFormat()).quote.replace("'", "''")
        places = ", ".join(f"c{self.header.index(name)}" for name in names)
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.header)))
        return (
            f"SELECT {places} FROM read_csv('{self.file.path}', auto_detect = false, header = false, columns = {{{columns}}}, "
            f"delim = '{self.separator}', quote = '{quote}', escape = '{quote}', nullstr = '', compression = 'none'{self.ends}, "
            f"strict_mode = true, null_padding = false, ignore_errors = false, max_line_size = {LONGEST_ROW}, parallel = false, buffer_size = {2 * LONGEST_ROW})"
        )
