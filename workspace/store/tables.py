"""Immutable Parquet tables, named by the hash of their bytes: written aside, synchronised, renamed, verified on read.

Bytes of a Parquet file whose hash is known: the file is read once from beginning to end, and only what is asked for stays in memory.

What is hashed is what is parsed: the bytes that stay are those that went into the hash, whatever becomes of the file meanwhile.
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
from ..plain_files import ensure_directory, is_hash, open_plain, sync_to_disk

PIECE = 1 << 22
FOOTER = 1 << 16
"""How much the library reads at the end of a file before it knows how long the footer is."""

Span = tuple[int, int]
ASIDE = ".writing-"
DAY_SECONDS = 86_400.0
KIND_OF = "kind of missing: "
"""What comes before the name of a column that says which code each missing value of a variable was."""
MISSING_LEVEL = -1
"""The code that pandas gives a missing value of a categorical."""


class HashingFile:
    """A file that is written from beginning to end, and the SHA-256 of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._found = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._found.hexdigest()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, content: Any) -> int:
        """Add to file and hash; how many bytes. Raises OSError."""
        self._found.update(content)
        return self._file.write(content)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def close(self) -> None:
        """Leave the file to whoever opened it."""


def same_hash(file: BufferedReader, sha256: str) -> bool:
    """Whether this is the hash of a file. Raises OSError."""
    return hashlib.file_digest(file, "sha256").hexdigest() == sha256


@dataclass(frozen=True)
class Part:
    """What is read of a Parquet file: the columns of these names (None: all), and the row groups that have some of these ``rows``, from 0 (None: all)."""

    columns: Collection[str] | None = None
    rows: Collection[int] | None = None

    def groups(self, found: pq.FileMetaData) -> list[int]:
        if self.rows is None:
            return list(range(found.num_row_groups))
        holding = np.searchsorted(_ends(found), np.fromiter(self.rows, dtype=np.int64), side="right")
        return [int(i) for i in np.unique(holding) if i < found.num_row_groups]

    def held(self, found: pq.FileMetaData) -> NDArray[np.int64]:
        """All rows that the row groups in question have, from 0, ascending."""
        edges = [0, *_ends(found)]
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(np.arange(edges[i], edges[i + 1]) for i in self.groups(found))]
        )


def _ends(found: pq.FileMetaData) -> NDArray[np.int64]:
    """Where each row group ends, in rows."""
    return np.cumsum([found.row_group(i).num_rows for i in range(found.num_row_groups)], dtype=np.int64)


WHOLE = Part()


def verified_parquet(file: BufferedReader, size: int, sha256: str, part: Part = WHOLE) -> pa.Buffer | None:
    """A Parquet file of so many bytes with this hash, as far as it is needed to read a part of it, zeros elsewhere; None where the hash is another.

    Zeros take no memory. Raises OSError.
    """
    spans = [(0, size)] if part == WHOLE else _spans(file, size, part)
    memory = mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    found, at = hashlib.sha256(), 0
    for piece in _pieces(file, min(PIECE, size + 1)):
        found.update(piece)
        for low, high in spans:
            begin, end = max(low, at), min(high, at + len(piece), size)
            if begin < end:
                memory[begin:end] = piece[begin - at : end - at]
        at += len(piece)
    if found.hexdigest() != sha256:
        return None
    buffer = pa.py_buffer(memory)[:size]
    return buffer if part == WHOLE or spans == _spans(pa.BufferReader(buffer), size, part) else None


def _pieces(file: BufferedReader, most: int) -> Iterator[memoryview]:
    """The bytes from the beginning, at most so many at a time in the same memory: no more than a small table has, since clearing it takes longer than reading."""
    file.seek(0)
    room = bytearray(most)
    while length := file.readinto(room):
        yield memoryview(room)[:length]


def _spans(file: Any, size: int, part: Part) -> list[Span]:
    """From where to where a part and the footer lie; the whole file where it is none of plain columns."""
    file.seek(0)
    try:
        found = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return [(0, size)]
    names = found.schema.to_arrow_schema().names
    if len(names) != found.num_columns:
        return [(0, size)]
    wanted = [i for i, name in enumerate(names) if part.columns is None or name in part.columns]
    footer = max(FOOTER, found.serialized_size + 8)
    spans = [(max(0, size - footer), size), (0, 4)]
    for group in part.groups(found):
        for i in wanted:
            chunk = found.row_group(group).column(i)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page:
                start = min(start, chunk.dictionary_page_offset)
            spans.append((start, start + chunk.total_compressed_size))
    return _joined(spans)


def _joined(spans: list[Span]) -> list[Span]:
    """The same bytes in as few spans as there can be, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


class Tables:
    """The ``tables`` directory of a workspace. Equal tables are one file.

    ``owner`` is another user whose workspace it is; then nothing is written.
    """

    def __init__(self, directory: Path, owner: str = "") -> None:
        self.directory = directory
        self.owner = owner

    def path(self, sha256: str) -> Path:
        """Where the table with this hash lies. Raises DamagedTable where the name is no hash: it may be any path."""
        if not is_hash(sha256):
            raise DamagedTable("the database names a table by something else than the SHA-256 of its bytes")
        return self.directory / f"{sha256}.parquet"

    def write(self, table: pa.Table) -> str:
        """Store a table; returns the SHA-256 of its bytes."""
        if self.owner:
            raise NotYours(self.directory.parent, self.owner)
        ensure_directory(self.directory.parent, self.directory.name)
        handle, aside = tempfile.mkstemp(dir=self.directory, prefix=ASIDE)
        try:
            with os.fdopen(handle, "wb") as file:
                sink = HashingFile(file)
                pq.write_table(table, sink, compression="zstd", write_statistics=True)
                if self._touched(path := self.path(sink.sha256)):
                    Path(aside).unlink()
                    return sink.sha256
                file.flush()
                os.fsync(file.fileno())
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        sync_to_disk(self.directory)
        return sink.sha256

    @staticmethod
    def _touched(path: Path) -> bool:
        """Whether the table is there, now as young as one just written: no row may name it yet, and it must not be removed."""
        try:
            os.utime(path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def sweep(self) -> None:
        """Remove what was being written more than a day ago: whoever wrote it was killed. Raises StrangeFile."""
        if not self.directory.exists():
            return
        ensure_directory(self.directory.parent, self.directory.name)
        for aside in self.directory.glob(f"{ASIDE}*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - aside.lstat().st_mtime > DAY_SECONDS:
                    aside.unlink()

    def read(self, sha256: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The table with this hash, or some of its columns. Raises DamagedTable when it is gone or its bytes have changed.

        Read without threads: one that still holds bytes of ours when Python ends makes the process abort.
        """
        file = self._opened(sha256, Part(None if columns is None else frozenset(columns)))
        return file.read(None if columns is None else list(columns), use_threads=False)

    def groups(self, sha256: str) -> Iterator[pa.Table]:
        """The table with this hash, one row group at a time. Raises DamagedTable."""
        file = self._opened(sha256)
        for i in range(file.num_row_groups):
            yield file.read_row_group(i, use_threads=False)

    def rows(self, sha256: str, numbers: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Some rows of the table with this hash, from 0, in this order; only the row groups that have them are read.

        Raises DamagedTable, also where there is no such row.
        """
        part = Part(None if columns is None else frozenset(columns), frozenset(numbers))
        file = self._opened(sha256, part)
        names = None if columns is None else list(columns)
        found = file.read_row_groups(part.groups(file.metadata), names, use_threads=False)
        return found.take(pa.array(self._places(sha256, numbers, part.held(file.metadata)), pa.int64()))

    def column_names(self, sha256: str) -> list[str]:
        """The names of the columns of the table with this hash; only its end is read. Raises DamagedTable when it is gone."""
        with self._file(sha256) as file:
            return list(pq.read_schema(file).names)

    def _opened(self, sha256: str, part: Part = WHOLE) -> pq.ParquetFile:
        """The table with this hash, of which a part can be read. Raises DamagedTable."""
        with self._file(sha256) as file:
            content = verified_parquet(file, os.fstat(file.fileno()).st_size, sha256, part)
        if content is None:
            raise _changed(self.path(sha256))
        return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)

    def verify(self, sha256: str) -> None:
        """Raises DamagedTable when the table with this hash is gone or its bytes have changed."""
        with self._file(sha256) as file:
            if not same_hash(file, sha256):
                raise _changed(self.path(sha256))

    def _file(self, sha256: str) -> BufferedReader:
        path = self.path(sha256)
        try:
            return os.fdopen(open_plain(path), "rb")
        except FileNotFoundError:
            raise DamagedTable(f"the table {path.name} is gone from the workspace") from None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None

    def records(self, sha256: str) -> int:
        """How many records the table with this hash has; only its end is read. Raises DamagedTable when it is gone."""
        with self._file(sha256) as file:
            return int(pq.read_metadata(file).num_rows)

    def write_microdata(self, data: Microdata) -> str:
        """Store microdata; the schema is kept by the database. Which code each missing value was stands in columns of its own."""
        kinds = {} if data.kinds is None else {f"{KIND_OF}{name}": values for name, values in data.kinds.items()}
        frame = data.frame.assign(**kinds)
        return self.write(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None))

    def read_microdata(
        self, sha256: str, schema: Schema, origin: Origin, rows: Sequence[int] | None = None
    ) -> Microdata:
        """The variables of a schema as they were stored: same dtypes, same order of levels, missing values where they were.

        Of some ``rows``, from 0, in this order, only the row groups that have them are read, and a level that none of those has may be gone.
        """
        kinds_of = {name: f"{KIND_OF}{name}" for name in schema.names}
        part = Part(frozenset([*schema.names, *kinds_of.values()]), None if rows is None else frozenset(rows))
        file = self._opened(sha256, part)
        there, groups = set(file.schema_arrow.names), part.groups(file.metadata)
        columns = {name: pd.Series(_column(file, name, groups)) for name in schema.names}
        kinds = {
            name: file.read_row_groups(groups, [own], use_threads=False).column(0).to_pandas()
            for name, own in kinds_of.items()
            if own in there
        }
        found = Microdata(
            schema, pd.DataFrame(columns, copy=False), origin, kinds=pd.DataFrame(kinds) if kinds else None
        )
        return found if rows is None else found.select_rows(self._places(sha256, rows, part.held(file.metadata)))

    @staticmethod
    def _places(sha256: str, rows: Sequence[int], held: NDArray[np.int64]) -> list[int]:
        """Where these rows are among those that are ``held``, ascending. Raises DamagedTable where one is not."""
        if not np.isin(rows, held).all():
            raise DamagedTable(f"the table {sha256[:8]} has fewer rows than the database says")
        places: list[int] = np.searchsorted(held, np.asarray(rows, dtype=np.int64)).tolist()
        return places

    def write_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Store named arrays of numbers, any shape, bit for bit."""
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
                ("data", pa.large_binary()),
            ]
        )
        return self.write(pa.table(table, schema=kinds))

    def read_arrays(self, sha256: str) -> dict[str, NDArray[Any]]:
        """The arrays that ``write_arrays`` stored."""
        return {
            row["name"]: np.frombuffer(row["data"], dtype=np.dtype(row["dtype"])).reshape(row["shape"])
            for row in self.read(sha256).to_pylist()
        }


def _changed(path: Path) -> DamagedTable:
    return DamagedTable(f"the table {path.name} has changed since it was written")


def _column(file: pq.ParquetFile, name: str, groups: Sequence[int]) -> NDArray[Any] | pd.Categorical:
    """The values (n,) of a column in some row groups, put together from one at a time."""
    parts = [_part(file.read_row_group(i, [name], use_threads=False).column(0)) for i in groups]
    parts = parts or [_part(file.read_row_groups([], [name], use_threads=False).column(0))]
    if not isinstance(parts[0], _Codes):
        return _with_seconds(np.concatenate(parts))
    levels = list(dict.fromkeys(level for part in parts for level in part.levels))
    codes = np.concatenate([part.among(levels).astype(_code_type(levels), copy=False) for part in parts])
    return pd.Categorical.from_codes(codes, pd.Index(levels), ordered=parts[0].ordered)


@dataclass(frozen=True, slots=True)
class _Codes:
    """Codes (n,) of levels, MISSING_LEVEL where there is none."""

    codes: NDArray[np.signedinteger[Any]]
    levels: tuple[str, ...]
    ordered: bool

    def among(self, levels: Sequence[str]) -> NDArray[np.signedinteger[Any]]:
        if self.levels == tuple(levels[: len(self.levels)]):
            return self.codes
        places = {level: i for i, level in enumerate(levels)}
        new = [*(places[level] for level in self.levels), MISSING_LEVEL]
        return np.asarray(np.array(new, dtype=np.int32)[self.codes])


def _part(column: pa.ChunkedArray) -> Any:
    """The values (n,) of a column of one row group; codes where they are levels."""
    chunk = column.combine_chunks()
    if not pa.types.is_dictionary(chunk.type):
        return chunk.to_numpy(zero_copy_only=False)
    levels = tuple(str(level) for level in chunk.dictionary.to_pylist())
    codes = chunk.indices.fill_null(MISSING_LEVEL).to_numpy(zero_copy_only=False)
    return _Codes(codes.astype(_code_type(levels)), levels, bool(chunk.type.ordered))


def _code_type(levels: Sequence[str]) -> np.dtype[Any]:
    """The smallest type of codes of these levels and of MISSING_LEVEL."""
    return np.min_scalar_type(-1 - len(levels))


def _with_seconds(values: NDArray[Any]) -> NDArray[Any]:
    """Parquet keeps dates in milliseconds, microdata in seconds."""
    return values.astype("datetime64[s]") if values.dtype.kind == "M" else values
