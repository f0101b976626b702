"""Immutable Parquet tables, named by the hash of their bytes: written aside, synchronised, renamed, verified on read.

What is hashed is what is parsed: the bytes that stay in memory are those that went into the hash, whatever becomes of
the file meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Origin, Schema

from ..errors import DamagedTable, NotYours, StrangeFile
from ..ingest.reserved_names import KIND_COLUMN_PREFIX, check_reserved_names
from ..plain_files import ensure_directory, is_hash, open_plain, sync_to_disk

READ_PIECE_BYTES = 1 << 22
FOOTER_READ_BYTES = 1 << 16
"""Bytes that the library reads at the end of a file before it knows the length of the footer."""

ByteSpan = tuple[int, int]
ASIDE_PREFIX = ".writing-"
DAY_SECONDS = 86_400.0
MISSING_LEVEL_CODE = -1
"""The code that pandas gives a missing value of a categorical."""


class HashingFile:
    """File for writing that computes the SHA-256 of the bytes written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._found = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Return the hash of the bytes written so far."""
        return self._found.hexdigest()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, content: Any) -> int:
        """Write to the file and the hash, and return the number of bytes. Raises OSError."""
        self._found.update(content)
        return self._file.write(content)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._file.tell()

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def has_hash(file: BufferedReader, sha256: str) -> bool:
    """Return whether a file has this SHA-256. Raises OSError."""
    return hashlib.file_digest(file, "sha256").hexdigest() == sha256


@dataclass(frozen=True)
class TablePart:
    """Part of a Parquet file to read.

    columns: names of the columns, None for all
    rows: rows from 0, whose row groups are read; None for all
    """

    columns: Collection[str] | None = None
    rows: Collection[int] | None = None

    def row_groups(self, metadata: pq.FileMetaData) -> list[int]:
        """Return the numbers of the row groups that contain the rows."""
        if self.rows is None:
            return list(range(metadata.num_row_groups))
        holding = np.searchsorted(_row_group_ends(metadata), np.fromiter(self.rows, dtype=np.int64), side="right")
        return [int(i) for i in np.unique(holding) if i < metadata.num_row_groups]

    def rows_in_groups(self, metadata: pq.FileMetaData) -> NDArray[np.int64]:
        """Return the numbers of all rows in these row groups, from 0, ascending."""
        edges = [0, *_row_group_ends(metadata)]
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(np.arange(edges[i], edges[i + 1]) for i in self.row_groups(metadata))]
        )


def _row_group_ends(found: pq.FileMetaData) -> NDArray[np.int64]:
    """Return the row after the last one of each row group, (groups,)."""
    return np.cumsum([found.row_group(i).num_rows for i in range(found.num_row_groups)], dtype=np.int64)


WHOLE_TABLE = TablePart()


def read_verified_parquet(
    file: BufferedReader, size: int, sha256: str, part: TablePart = WHOLE_TABLE
) -> pa.Buffer | None:
    """Read the bytes of a Parquet file that a part of it needs; None where the file has another hash.

    The buffer has the size of the file, with zeros where nothing was needed. Raises OSError.
    """
    spans = [(0, size)] if part == WHOLE_TABLE else _spans_of_part(file, size, part)
    # Pages that are never written take no memory.
    memory = mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    found, at = hashlib.sha256(), 0
    for piece in _read_pieces(file, min(READ_PIECE_BYTES, size + 1)):
        found.update(piece)
        for low, high in spans:
            begin, end = max(low, at), min(high, at + len(piece), size)
            if begin < end:
                memory[begin:end] = piece[begin - at : end - at]
        at += len(piece)
    if found.hexdigest() != sha256:
        return None
    buffer = pa.py_buffer(memory)[:size]
    # The spans were read before the hash was known: a file that was exchanged between has others.
    return buffer if part == WHOLE_TABLE or spans == _spans_of_part(pa.BufferReader(buffer), size, part) else None


def _read_pieces(file: BufferedReader, most: int) -> Iterator[memoryview]:
    """Yield the bytes of a file from the beginning, at most ``most`` at a time, in one buffer that is reused.

    No more than a small table has, since clearing the memory takes longer than reading.
    """
    file.seek(0)
    # No larger than a small table: clearing the memory takes longer than reading.
    room = bytearray(most)
    while length := file.readinto(room):
        yield memoryview(room)[:length]


def _spans_of_part(file: Any, size: int, part: TablePart) -> list[ByteSpan]:
    """Return the spans of bytes that a part of a Parquet file needs; the whole file where they cannot be told."""
    file.seek(0)
    try:
        found = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return [(0, size)]
    names = found.schema.to_arrow_schema().names
    # Nested columns have several chunks each.
    if len(names) != found.num_columns:
        return [(0, size)]
    wanted = [i for i, name in enumerate(names) if part.columns is None or name in part.columns]
    footer = max(FOOTER_READ_BYTES, found.serialized_size + 8)
    spans = [(max(0, size - footer), size), (0, 4)]
    for group in part.row_groups(found):
        for i in wanted:
            chunk = found.row_group(group).column(i)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page:
                start = min(start, chunk.dictionary_page_offset)
            spans.append((start, start + chunk.total_compressed_size))
    return _merge_spans(spans)


def _merge_spans(spans: list[ByteSpan]) -> list[ByteSpan]:
    """Return the union of the spans as few spans, in order."""
    found: list[ByteSpan] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


class TableStore:
    """Tables in the ``tables`` directory of a workspace; equal tables are one file.

    ``owner`` is another user whose workspace it is; then nothing is written.
    """

    def __init__(self, directory: Path, owner: str = "") -> None:
        self.directory = directory
        self.owner = owner

    def path_of(self, sha256: str) -> Path:
        """Return the path of the table with this hash. Raises DamagedTable for a name that is no hash."""
        # The name is from the database, and could be any path.
        if not is_hash(sha256):
            raise DamagedTable("the database names a table by something else than the SHA-256 of its bytes")
        return self.directory / f"{sha256}.parquet"

    def write_table(self, table: pa.Table) -> str:
        """Store a table, and return the SHA-256 of its bytes."""
        if self.owner:
            raise NotYours(self.directory.parent, self.owner)
        ensure_directory(self.directory.parent, self.directory.name)
        handle, aside = tempfile.mkstemp(dir=self.directory, prefix=ASIDE_PREFIX)
        try:
            with os.fdopen(handle, "wb") as file:
                sink = HashingFile(file)
                pq.write_table(table, sink, compression="zstd", write_statistics=True)
                if self._touch_existing(path := self.path_of(sink.sha256)):
                    Path(aside).unlink()
                    return sink.sha256
                file.flush()
                # On the disk before it has its name: no name may lead to half a table after a crash.
                os.fsync(file.fileno())
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        sync_to_disk(self.directory)
        return sink.sha256

    @staticmethod
    def _touch_existing(path: Path) -> bool:
        """Set the time of a table's file to now, and return whether the file exists."""
        try:
            # Old files that no row names are removed, and no row may name this one yet.
            os.utime(path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def remove_unfinished(self) -> None:
        """Remove files that were begun more than a day ago and never finished. Raises StrangeFile."""
        if not self.directory.exists():
            return
        ensure_directory(self.directory.parent, self.directory.name)
        for aside in self.directory.glob(f"{ASIDE_PREFIX}*"):
            with contextlib.suppress(FileNotFoundError):
                # Another process may be writing a younger one now.
                if time.time() - aside.lstat().st_mtime > DAY_SECONDS:
                    aside.unlink()

    def read_stored_table(self, sha256: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the table with this hash, or some of its columns. Raises DamagedTable when it is missing or has changed."""
        file = self._open_verified(sha256, TablePart(None if columns is None else frozenset(columns)))
        # A thread that still holds bytes of ours when Python ends makes the process abort.
        return file.read(None if columns is None else list(columns), use_threads=False)

    def iterate_row_groups(self, sha256: str) -> Iterator[pa.Table]:
        """Yield the table with this hash, one row group at a time. Raises DamagedTable."""
        file = self._open_verified(sha256)
        for i in range(file.num_row_groups):
            yield file.read_row_group(i, use_threads=False)

    def read_rows(self, sha256: str, numbers: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Read some rows of the table with this hash, numbered from 0, in this order.

        Raises DamagedTable, also where there is no such row.
        """
        part = TablePart(None if columns is None else frozenset(columns), frozenset(numbers))
        file = self._open_verified(sha256, part)
        names = None if columns is None else list(columns)
        found = file.read_row_groups(part.row_groups(file.metadata), names, use_threads=False)
        return found.take(
            pa.array(self._positions_among(sha256, numbers, part.rows_in_groups(file.metadata)), pa.int64())
        )

    def column_names(self, sha256: str) -> list[str]:
        """Return the names of the columns of the table with this hash. Raises DamagedTable when it is missing."""
        with self._open_file(sha256) as file:
            return list(pq.read_schema(file).names)

    def _open_verified(self, sha256: str, part: TablePart = WHOLE_TABLE) -> pq.ParquetFile:
        """Open the table with this hash so that a part of it can be read. Raises DamagedTable."""
        with self._open_file(sha256) as file:
            content = read_verified_parquet(file, os.fstat(file.fileno()).st_size, sha256, part)
        if content is None:
            raise _changed_table_error(self.path_of(sha256))
        return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)

    def verify_table(self, sha256: str) -> int:
        """Read every byte of the table with this hash, and return their number. Raises DamagedTable when it is missing or
        has changed.
        """
        with self._open_file(sha256) as file:
            if not has_hash(file, sha256):
                raise _changed_table_error(self.path_of(sha256))
            return file.tell()

    def _open_file(self, sha256: str) -> BufferedReader:
        """Open the file of the table with this hash. Raises DamagedTable."""
        path = self.path_of(sha256)
        try:
            return os.fdopen(open_plain(path), "rb")
        except FileNotFoundError:
            raise DamagedTable(f"the table {path.name} is gone from the workspace") from None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None

    def count_table_records(self, sha256: str) -> int:
        """Return the number of records of the table with this hash. Raises DamagedTable when it is missing."""
        with self._open_file(sha256) as file:
            return int(pq.read_metadata(file).num_rows)

    def count_levels(self, sha256: str) -> Mapping[str, int]:
        """Return the number of levels in the first row group, by variable with levels; none for a table that cannot be
        read.

        The bytes are not verified: the numbers may serve for estimates alone.
        """
        try:
            with self._open_file(sha256) as opened:
                file = pq.ParquetFile(opened, pre_buffer=False)
                names = [field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)]
                if not names or not file.num_row_groups:
                    return {}
                first = file.read_row_group(0, columns=names, use_threads=False)
                return {name: len(first.column(name).chunk(0).dictionary) for name in names}
        except (DamagedTable, pa.ArrowException, OSError):
            return {}

    def write_microdata(self, data: Microdata) -> str:
        """Store the values of microdata, and return the hash of the table; the schema is kept by the database.

        Raises BadInput for a variable with a name that stored tables use themselves.
        """
        check_reserved_names(data.schema.names)
        kinds = (
            {} if data.kinds is None else {f"{KIND_COLUMN_PREFIX}{name}": values for name, values in data.kinds.items()}
        )
        frame = data.frame.assign(**kinds)
        # The metadata of pandas names its version: equal tables would have different hashes.
        return self.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None))

    def read_microdata(
        self, sha256: str, schema: Schema, origin: Origin, rows: Sequence[int] | None = None
    ) -> Microdata:
        """Read the variables of a schema as they were stored, with dtypes, order of levels and missing values.

        For some ``rows``, from 0, in this order, a level that none of the row groups read has may be missing.
        """
        kinds_of = {name: f"{KIND_COLUMN_PREFIX}{name}" for name in schema.names}
        part = TablePart(frozenset([*schema.names, *kinds_of.values()]), None if rows is None else frozenset(rows))
        file = self._open_verified(sha256, part)
        there, groups = set(file.schema_arrow.names), part.row_groups(file.metadata)
        columns = {name: pd.Series(_read_column_values(file, name, groups)) for name in schema.names}
        kinds = {
            name: file.read_row_groups(groups, [own], use_threads=False).column(0).to_pandas()
            for name, own in kinds_of.items()
            if own in there
        }
        found = Microdata(
            schema, pd.DataFrame(columns, copy=False), origin, kinds=pd.DataFrame(kinds) if kinds else None
        )
        return (
            found
            if rows is None
            else found.select_rows(self._positions_among(sha256, rows, part.rows_in_groups(file.metadata)))
        )

    @staticmethod
    def _positions_among(sha256: str, rows: Sequence[int], held: NDArray[np.int64]) -> list[int]:
        """Return the positions of these rows among the ascending rows ``held``. Raises DamagedTable where one is
        missing.
        """
        if not np.isin(rows, held).all():
            raise DamagedTable(f"the table {sha256[:8]} has fewer rows than the database says")
        places: list[int] = np.searchsorted(held, np.asarray(rows, dtype=np.int64)).tolist()
        return places

    def write_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Store named arrays of numbers of any shape bit for bit, and return the hash of the table."""
        names = list(arrays)
        table = {
            "name": names,
            "dtype": [arrays[name].dtype.str for name in names],
            "shape": [list(arrays[name].shape) for name in names],
            "data": [np.ascontiguousarray(arrays[name]).tobytes() for name in names],
        }
        kinds = pa.schema(
            [
                ("name", pa.string()),
                ("dtype", pa.string()),
                ("shape", pa.list_(pa.int64())),
                # binary has offsets of 32 bits, at most 2 GB.
                ("data", pa.large_binary()),
            ]
        )
        return self.write_table(pa.table(table, schema=kinds))

    def read_arrays(self, sha256: str) -> dict[str, NDArray[Any]]:
        """Return the arrays that ``write_arrays`` stored, by name."""
        return {
            row["name"]: np.frombuffer(row["data"], dtype=np.dtype(row["dtype"])).reshape(row["shape"])
            for row in self.read_stored_table(sha256).to_pylist()
        }


def _changed_table_error(path: Path) -> DamagedTable:
    """Return the error for a table whose bytes have changed."""
    return DamagedTable(f"the table {path.name} has changed since it was written")


def _read_column_values(file: pq.ParquetFile, name: str, groups: Sequence[int]) -> NDArray[Any] | pd.Categorical:
    """Return the values (n,) of a column in some row groups."""
    # One row group at a time: each has a dictionary of its own, whose codes differ.
    parts = [_row_group_values(file.read_row_group(i, [name], use_threads=False).column(0)) for i in groups]
    parts = parts or [_row_group_values(file.read_row_groups([], [name], use_threads=False).column(0))]
    if not isinstance(parts[0], _LevelCodes):
        return _dates_in_seconds(np.concatenate(parts))
    levels = list(dict.fromkeys(level for part in parts for level in part.levels))
    codes = np.concatenate([part.codes_among(levels).astype(_smallest_code_type(levels), copy=False) for part in parts])
    return pd.Categorical.from_codes(codes, pd.Index(levels), ordered=parts[0].ordered)


@dataclass(frozen=True, slots=True)
class _LevelCodes:
    """Values of a categorical column as codes of its levels.

    codes: codes of levels, (n,), MISSING_LEVEL_CODE for a missing value
    levels: the levels
    ordered: whether they have an order
    """

    codes: NDArray[np.signedinteger[Any]]
    levels: tuple[str, ...]
    ordered: bool

    def codes_among(self, levels: Sequence[str]) -> NDArray[np.signedinteger[Any]]:
        """Return the codes (n,) of the same values among more levels."""
        if self.levels == tuple(levels[: len(self.levels)]):
            return self.codes
        places = {level: i for i, level in enumerate(levels)}
        # The last entry is where code -1, a missing value, points.
        new = [*(places[level] for level in self.levels), MISSING_LEVEL_CODE]
        return np.asarray(np.array(new, dtype=np.int32)[self.codes])


def _row_group_values(column: pa.ChunkedArray) -> Any:
    """Return the values (n,) of a column of one row group, or the codes of its levels."""
    chunk = column.combine_chunks()
    if not pa.types.is_dictionary(chunk.type):
        return chunk.to_numpy(zero_copy_only=False)
    levels = tuple(str(level) for level in chunk.dictionary.to_pylist())
    codes = chunk.indices.fill_null(MISSING_LEVEL_CODE).to_numpy(zero_copy_only=False)
    return _LevelCodes(codes.astype(_smallest_code_type(levels)), levels, bool(chunk.type.ordered))


def _smallest_code_type(levels: Sequence[str]) -> np.dtype[Any]:
    """Return the smallest integer type for the codes of these levels and of a missing value."""
    return np.min_scalar_type(-1 - len(levels))


def _dates_in_seconds(values: NDArray[Any]) -> NDArray[Any]:
    """Return dates with the unit of seconds that microdata have, and other values unchanged."""
    # Parquet has no unit above milliseconds.
    return values.astype("datetime64[s]") if values.dtype.kind == "M" else values
