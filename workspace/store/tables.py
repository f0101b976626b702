"""Immutable Parquet tables, named by the hash of their bytes: written aside, synchronised, renamed, verified on read.

A table of more than ``PART_ROWS`` rows is several files, its parts, and a manifest that names them (``table_manifests``).
What is read of it is verified, and nothing else is read.

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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engine.data.arrays import BLOCK_THREADS, map_ahead
from sfumato.engine.data.long_arrays import placing_long_arrays
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Origin, Schema
from sfumato.engine.data.units import code_unit_numbers

from ..errors import DamagedTable, NotYours, StrangeFile
from ..ingest.reserved_names import KIND_COLUMN_PREFIX, check_reserved_names
from ..plain_files import ensure_directory, is_hash, open_plain, read_plain, sync_to_disk
from . import table_manifests
from .mapped_columns import GrowingColumn, MappedArrays
from .table_manifests import MANIFEST_SUFFIX, MOST_MANIFEST_BYTES, PartFile, TableManifest

if TYPE_CHECKING:
    from sfumato.engine.data.table_blocks import TableBlocks

READ_PIECE_BYTES = 1 << 22
FOOTER_READ_BYTES = 1 << 16
"""Bytes that the library reads at the end of a file before it knows the length of the footer."""

ByteSpan = tuple[int, int]
ASIDE_PREFIX = ".writing-"
SETTLED_NANOSECONDS = 2_000_000_000
"""Longer than the steps of the clock of any file system."""
DAY_SECONDS = 86_400.0
MISSING_LEVEL_CODE = -1
"""The code that pandas gives a missing value of a categorical."""
_LEVELS_SCHEMA = pa.schema([("name", pa.string()), ("levels", pa.list_(pa.string()))])
"""Columns of the file with the levels of the categorical columns of a table in parts."""


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


@dataclass(frozen=True, slots=True)
class _FileState:
    """What the system says of a file, which differs once anybody has written to it: times in nanoseconds."""

    device: int
    number: int
    size: int
    written: int
    changed: int

    @classmethod
    def of_file(cls, file: BufferedReader) -> _FileState:
        """Return the state of an open file. Raises OSError."""
        found = os.fstat(file.fileno())
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    @property
    def is_settled(self) -> bool:
        """Return whether the last change is so old that another one would have another time."""
        return time.time_ns() - max(self.written, self.changed) > SETTLED_NANOSECONDS


_compared_files: dict[str, _FileState] = {}
"""Files whose hash this process has compared, by hash."""


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
    file: BufferedReader, size: int, sha256: str | None, part: TablePart = WHOLE_TABLE
) -> pa.Buffer | None:
    """Read the bytes of a Parquet file that a part of it needs; None where the file has another hash than one that is given.

    The buffer has the size of the file, with zeros where nothing was needed. Raises OSError.
    """
    spans = [(0, size)] if part == WHOLE_TABLE else _spans_of_part(file, size, part)
    # Pages that are never written take no memory.
    memory = mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sha256 is None:
        for low, high in spans:
            file.seek(low)
            file.readinto(memoryview(memory)[low:high])
        return pa.py_buffer(memory)[:size]
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


@dataclass(frozen=True, slots=True)
class _FileAside:
    """File that was written and has no name yet.

    path: where it lies
    sha256: hash of its bytes, which is to name it
    suffix: end of that name
    """

    path: Path
    sha256: str
    suffix: str


class TableStore:
    """Tables in the ``tables`` directory of a workspace; equal tables are one file.

    ``owner`` is another user whose workspace it is; then nothing is written.
    """

    def __init__(self, directory: Path, owner: str = "") -> None:
        self.directory = directory
        self.owner = owner
        self._mapped: MappedArrays | None = None

    def open_spool(self) -> IO[bytes]:
        """Open a file without a name on the disk of the tables. Raises OSError."""
        return tempfile.TemporaryFile(dir=self.directory)

    @property
    def mapped_arrays(self) -> MappedArrays | None:
        """Return where columns of long tables lie; None outside ``mapping_long_tables``."""
        return self._mapped

    @contextlib.contextmanager
    def mapping_long_tables(self) -> Iterator[MappedArrays | None]:
        """Keep the columns of microdata of several parts, and what is computed of them, on the disk and not in memory,
        while the block lasts.

        They are read as elsewhere, and stay after the block as long as somebody uses them. None in the workspace of
        another user, where nothing is written.
        """
        before = self._mapped
        if self.owner or before is not None:
            yield before
            return
        self._mapped = MappedArrays(self.open_spool)
        try:
            with placing_long_arrays(self._mapped, table_manifests.PART_ROWS, threads=BLOCK_THREADS):
                yield self._mapped
        finally:
            self._mapped = None

    def path_of(self, sha256: str) -> Path:
        """Return the path of the file of a table of one part, or of a part, with this hash. Raises DamagedTable for a
        name that is no hash.
        """
        # The name is from the database, and could be any path.
        if not is_hash(sha256):
            raise DamagedTable("the database names a table by something else than the SHA-256 of its bytes")
        return self.directory / f"{sha256}.parquet"

    def manifest_path_of(self, sha256: str) -> Path:
        """Return the path of the manifest of a table of several parts. Raises DamagedTable as ``path_of`` does."""
        return self.path_of(sha256).with_suffix(MANIFEST_SUFFIX)

    def has_parts(self, sha256: str) -> bool:
        """Return whether the table with this hash is stored in several parts. Raises DamagedTable as ``path_of`` does."""
        return self.manifest_path_of(sha256).is_file()

    def read_manifest(self, sha256: str) -> TableManifest:
        """Return the parts of the table with this hash, itself where it is one. Raises DamagedTable."""
        found = self._find_manifest(sha256)
        return TableManifest((PartFile(sha256, self._count_file_records(sha256)),)) if found is None else found

    def _find_manifest(self, sha256: str) -> TableManifest | None:
        """Return the parts of the table with this hash; None where it is one. Raises DamagedTable."""
        content = self._read_manifest_bytes(sha256)
        return None if content is None else TableManifest.from_bytes(content, self.manifest_path_of(sha256).name)

    def _read_manifest_bytes(self, sha256: str) -> bytes | None:
        """Return the bytes of the manifest with this hash; None where there is none. Raises DamagedTable."""
        path = self.manifest_path_of(sha256)
        try:
            content = read_plain(path, MOST_MANIFEST_BYTES)
        except FileNotFoundError:
            return None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise _changed_table_error(path)
        return content

    def _part_hashes(self, sha256: str) -> list[str]:
        """Return the hashes of the parts of the table with this hash, itself where it is one. Raises DamagedTable."""
        found = self._find_manifest(sha256)
        return [sha256] if found is None else [part.sha256 for part in found.parts]

    def files_of(self, sha256: str) -> list[Path]:
        """Return the paths of the files of the table with this hash: its manifest first, or its only file.

        Raises DamagedTable where nothing says which they are: the table is gone, or its manifest has changed.
        """
        if (found := self._find_manifest(sha256)) is not None:
            return [self.manifest_path_of(sha256), *map(self.path_of, found.file_hashes)]
        path = self.path_of(sha256)
        if not path.exists():
            raise DamagedTable(f"the table {path.name} is gone from the workspace")
        return [path]

    def write_table(self, table: pa.Table) -> str:
        """Store a table, in parts where it is long, and return the hash that names it."""
        most = table_manifests.PART_ROWS
        return self.write_blocks(table.slice(first, most) for first in range(0, max(1, len(table)), most))

    def write_blocks(self, blocks: Iterable[pa.Table]) -> str:
        """Store a table that comes in blocks of at most ``PART_ROWS`` rows, each as one part, and return the hash that
        names it. There is at least one block.

        Nothing is left of a table whose blocks end with an error.
        """
        parts: list[PartFile] = []
        dictionaries: dict[str, list[pa.Array]] = {}
        with contextlib.ExitStack() as unnamed:
            written: list[_FileAside] = []

            def write(table: pa.Table) -> _FileAside:
                return self._write_table_aside(table, unnamed)

            def write_block(block: pa.Table) -> tuple[_FileAside, int, dict[str, list[pa.Array]]]:
                levels = {
                    one.name: [chunk.dictionary for chunk in block.column(one.name).chunks]
                    for one in block.schema
                    if pa.types.is_dictionary(one.type)
                }
                return write(block), len(block), levels

            # The next block is made while some are written.
            with contextlib.closing(map_ahead(write_block, blocks, BLOCK_THREADS)) as ahead:
                for file, rows, levels in ahead:
                    written.append(file)
                    parts.append(PartFile(file.sha256, rows))
                    for name, chunks in levels.items():
                        known = dictionaries.setdefault(name, [])
                        for one in chunks:
                            if not known or not known[-1].equals(one):
                                known.append(one)
            if len(parts) > 1:
                used = {
                    name: list(dict.fromkeys(level for one in known for level in one.to_pylist()))
                    for name, known in dictionaries.items()
                }
                written.append(
                    write(pa.table({"name": list(used), "levels": list(used.values())}, schema=_LEVELS_SCHEMA))
                )
                content = TableManifest(tuple(parts), written[-1].sha256).to_bytes()
                written.append(self._write_aside(lambda sink: sink.write(content), unnamed, MANIFEST_SUFFIX))
            # names come last, that of the manifest after those of its parts
            for one in written:
                self._name_file(one)
        return written[-1].sha256

    def _write_table_aside(self, table: pa.Table, unnamed: contextlib.ExitStack) -> _FileAside:
        """Write a table to a file without its name yet."""
        return self._write_aside(
            lambda sink: pq.write_table(table, sink, compression="zstd", write_statistics=True), unnamed
        )

    def _write_aside(
        self, write: Callable[[HashingFile], Any], unnamed: contextlib.ExitStack, suffix: str = ".parquet"
    ) -> _FileAside:
        """Write a file that has no name yet: ``unnamed`` removes it unless it gets one."""
        if self.owner:
            raise NotYours(self.directory.parent, self.owner)
        ensure_directory(self.directory.parent, self.directory.name)
        handle, aside = tempfile.mkstemp(dir=self.directory, prefix=ASIDE_PREFIX)
        unnamed.callback(Path(aside).unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as file:
            sink = HashingFile(file)
            write(sink)
            file.flush()
            if not self.path_of(sink.sha256).with_suffix(suffix).exists():
                # On the disk before it has its name: no name may lead to half a table after a crash.
                os.fsync(file.fileno())
        return _FileAside(Path(aside), sink.sha256, suffix)

    def _name_file(self, written: _FileAside) -> None:
        """Give a file that was written the name of its hash, unless a file has it."""
        path = self.path_of(written.sha256).with_suffix(written.suffix)
        if not self._touch_existing(path):
            written.path.replace(path)
            sync_to_disk(self.directory)

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
        wanted = TablePart(None if columns is None else frozenset(columns))
        # A thread that still holds bytes of ours when Python ends makes the process abort.
        found = [
            self._open_verified(one, wanted).read(None if columns is None else list(columns), use_threads=False)
            for one in self._part_hashes(sha256)
        ]
        return found[0] if len(found) == 1 else pa.concat_tables(found).unify_dictionaries()

    def iterate_row_groups(self, sha256: str) -> Iterator[pa.Table]:
        """Yield the table with this hash, one row group at a time. Raises DamagedTable."""
        for one in self._part_hashes(sha256):
            file = self._open_verified(one)
            for i in range(file.num_row_groups):
                yield file.read_row_group(i, use_threads=False)

    def read_rows(self, sha256: str, numbers: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Read some rows of the table with this hash, numbered from 0, in this order. Only parts with such rows are read.

        Raises DamagedTable, also where there is no such row.
        """
        names = None if columns is None else list(columns)
        tables, held = [], []
        for file, part, first in self._open_parts_with_rows(
            sha256, self._find_manifest(sha256), None if names is None else frozenset(names), numbers
        ):
            tables.append(file.read_row_groups(part.row_groups(file.metadata), names, use_threads=False))
            held.append(part.rows_in_groups(file.metadata) + first)
        found = tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()
        return found.take(pa.array(self._positions_among(sha256, numbers, np.concatenate(held)), pa.int64()))

    def column_names(self, sha256: str) -> list[str]:
        """Return the names of the columns of the table with this hash. Raises DamagedTable when it is missing."""
        with self._open_file(self._part_hashes(sha256)[0]) as file:
            return list(pq.read_schema(file).names)

    def _open_parts_with_rows(
        self,
        sha256: str,
        manifest: TableManifest | None,
        columns: Collection[str] | None,
        rows: Sequence[int] | None,
    ) -> Iterator[tuple[pq.ParquetFile, TablePart, int]]:
        """Yield each part of a table with some of these rows, all parts for None, as a file, what to read of it, and the
        number of its first row. One part is yielded even where no row is wanted. ``manifest`` is that of the table,
        None where it is one part. Raises DamagedTable.
        """
        if manifest is None:
            part = TablePart(columns, None if rows is None else frozenset(rows))
            yield self._open_verified(sha256, part), part, 0
            return
        if rows is None:
            for one, first in zip(manifest.parts, manifest.starts.tolist(), strict=False):
                part = TablePart(columns)
                yield self._open_verified(one.sha256, part), part, first
            return
        found = manifest.rows_by_part(rows) or [(manifest.parts[0], 0, np.zeros(0, dtype=np.int64))]
        for one, first, own in found:
            part = TablePart(columns, frozenset(own.tolist()))
            yield self._open_verified(one.sha256, part), part, first

    def _open_verified(self, sha256: str, part: TablePart = WHOLE_TABLE) -> pq.ParquetFile:
        """Open the file with this hash so that a part of it can be read. Raises DamagedTable."""
        with self._open_file(sha256) as file:
            state = _FileState.of_file(file)
            # A long table is read again and again: a file that has not changed since its hash was compared is not hashed.
            is_known = _compared_files.get(sha256) == state
            content = read_verified_parquet(file, state.size, None if is_known else sha256, part)
            if is_known and _FileState.of_file(file) != state:
                content = read_verified_parquet(file, os.fstat(file.fileno()).st_size, sha256, part)
            elif content is not None and state.is_settled and _FileState.of_file(file) == state:
                _compared_files[sha256] = state
        if content is None:
            raise _changed_table_error(self.path_of(sha256))
        return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)

    def verify_table(self, sha256: str) -> int:
        """Read every byte of the table with this hash, and return their number. Raises DamagedTable when it is missing or
        has changed.
        """
        content = self._read_manifest_bytes(sha256)
        if content is None:
            return self._verify_file(sha256)
        manifest = TableManifest.from_bytes(content, self.manifest_path_of(sha256).name)
        return len(content) + sum(map(self._verify_file, manifest.file_hashes))

    def parse_table(self, sha256: str) -> None:
        """Read the table with this hash part by part, and keep nothing of it. Raises DamagedTable where it cannot be read."""
        manifest = self._find_manifest(sha256)
        for one in [sha256] if manifest is None else manifest.file_hashes:
            self._open_verified(one).read(use_threads=False)

    def _verify_file(self, sha256: str) -> int:
        """Read every byte of the file with this hash, and return their number. Raises DamagedTable."""
        with self._open_file(sha256) as file:
            if not has_hash(file, sha256):
                raise _changed_table_error(self.path_of(sha256))
            return file.tell()

    def _open_file(self, sha256: str) -> BufferedReader:
        """Open the file with this hash. Raises DamagedTable."""
        path = self.path_of(sha256)
        try:
            return os.fdopen(open_plain(path), "rb")
        except FileNotFoundError:
            raise DamagedTable(f"the table {path.name} is gone from the workspace") from None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None

    def count_table_records(self, sha256: str) -> int:
        """Return the number of records of the table with this hash. Raises DamagedTable when it is missing."""
        return self.read_manifest(sha256).rows

    def _count_file_records(self, sha256: str) -> int:
        """Return the number of rows of the file with this hash. Raises DamagedTable when it is missing."""
        with self._open_file(sha256) as file:
            return int(pq.read_metadata(file).num_rows)

    def count_levels(self, sha256: str) -> Mapping[str, int]:
        """Return the number of levels in the first row group, by variable with levels; none for a table that cannot be
        read.

        The bytes are not verified: the numbers may serve for estimates alone.
        """
        try:
            with self._open_file(self._part_hashes(sha256)[0]) as opened:
                file = pq.ParquetFile(opened, pre_buffer=False)
                names = [field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)]
                if not names or not file.num_row_groups:
                    return {}
                first = file.read_row_group(0, columns=names, use_threads=False)
                return {name: len(first.column(name).chunk(0).dictionary) for name in names}
        except (DamagedTable, pa.ArrowException, OSError):
            return {}

    def write_microdata(self, data: Microdata | TableBlocks) -> str:
        """Store the values of microdata, and return the hash of the table; the schema is kept by the database.

        Records of a unit lie in one part where they follow each other. Raises BadInput for a variable with a name that
        stored tables use themselves.
        """
        if not isinstance(data, Microdata):
            return self.write_microdata_blocks(data.iterate_blocks())
        slices = _slices_of_units(data, table_manifests.PART_ROWS)
        return self.write_microdata_blocks(_slice_of_records(data, rows) for rows in slices)

    def write_microdata_blocks(self, blocks: Iterable[Microdata]) -> str:
        """Store microdata that come in blocks of at most ``PART_ROWS`` records, as ``write_microdata`` does.

        All blocks have the same variables, of the same levels.
        """
        return self.write_blocks(map(_table_of_microdata, blocks))

    def read_microdata(
        self, sha256: str, schema: Schema, origin: Origin, rows: Sequence[int] | None = None
    ) -> Microdata:
        """Read the variables of a schema as they were stored, with dtypes, order of levels and missing values.

        For some ``rows``, from 0, in this order, only the parts with such rows are read; of a table of one part, a level
        that none of the row groups read has may be missing.
        """
        names = _names_of_columns(schema)
        columns: dict[str, list[Any]] = {}
        held: list[NDArray[np.int64]] = []
        manifest = self._find_manifest(sha256)
        if rows is None and manifest is not None and self._mapped is not None:
            # in memory where the disk has no room
            with contextlib.suppress(OSError):
                return self._read_mapped_microdata(manifest, schema, origin, self._mapped)
        for file, part, first in self._open_parts_with_rows(sha256, manifest, frozenset(names), rows):
            groups, there = part.row_groups(file.metadata), set(file.schema_arrow.names)
            for name in names:
                if name in there or name in schema:
                    columns.setdefault(name, []).extend(_values_by_row_group(file, name, groups))
            if rows is not None:
                held.append(part.rows_in_groups(file.metadata) + first)
        found = _microdata_of_columns(schema, origin, columns, self._read_levels(manifest))
        return found if rows is None else found.select_rows(self._positions_among(sha256, rows, np.concatenate(held)))

    def _read_mapped_microdata(
        self, manifest: TableManifest, schema: Schema, origin: Origin, mapped: MappedArrays
    ) -> Microdata:
        """Read the variables of a schema part by part into columns on the disk. Raises DamagedTable and OSError."""
        levels = self._read_levels(manifest)
        columns = {name: GrowingColumn(mapped, manifest.rows) for name in schema.names}
        orders: dict[str, bool] = {}
        kinds: dict[str, list[Any]] = {}
        wanted = frozenset(_names_of_columns(schema))
        for one in manifest.parts:
            file = self._open_verified(one.sha256, TablePart(wanted))
            groups, there = list(range(file.num_row_groups)), set(file.schema_arrow.names)
            for name in wanted & there - columns.keys():
                kinds.setdefault(name, []).extend(_values_by_row_group(file, name, groups))
            for name, column in columns.items():
                for values in _values_by_row_group(file, name, groups):
                    if isinstance(values, _LevelCodes):
                        orders[name] = values.ordered
                        codes = values.codes_among(levels[name])
                        column.append_values(codes.astype(_smallest_code_type(levels[name]), copy=False))
                    else:
                        column.append_values(_dates_in_seconds(values))
            mapped.release_pages()
        found = {
            name: pd.Categorical.from_codes(column.values, pd.Index(list(levels[name])), ordered=orders[name])
            if name in orders
            else column.values
            for name, column in columns.items()
        }
        frame = pd.DataFrame({name: pd.Series(values, copy=False) for name, values in found.items()}, copy=False)
        return Microdata(schema, frame, origin, kinds=_kinds_of_columns(kinds))

    def iterate_microdata(
        self, sha256: str, schema: Schema, origin: Origin, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the variables of a schema part by part, as ``read_microdata`` reads them: each with the levels of all.

        Only the parts of these ``numbers`` are read, all for None. Raises DamagedTable.
        """
        manifest = self._find_manifest(sha256)
        levels = self._read_levels(manifest)
        names = _names_of_columns(schema)
        for number, one in enumerate([sha256] if manifest is None else [part.sha256 for part in manifest.parts]):
            if numbers is not None and number not in numbers:
                continue
            # Nothing of it is kept here while the next one is read.
            yield _read_whole_part(self._open_verified(one, TablePart(frozenset(names))), schema, origin, levels)

    def read_levels(self, sha256: str) -> dict[str, tuple[str, ...]]:
        """Return the levels of the categorical columns of the table with this hash. Raises DamagedTable."""
        if (manifest := self._find_manifest(sha256)) is not None:
            return self._read_levels(manifest)
        table = self.read_stored_table(sha256)
        return {
            one.name: tuple(map(str, table.column(one.name).combine_chunks().dictionary.to_pylist()))
            for one in table.schema
            if pa.types.is_dictionary(one.type)
        }

    def _read_levels(self, manifest: TableManifest | None) -> dict[str, tuple[str, ...]]:
        """Return the levels of the categorical columns of a table of several parts; none for one. Raises DamagedTable."""
        if manifest is None:
            return {}
        found = self._open_verified(manifest.levels).read(use_threads=False).to_pylist()
        return {row["name"]: tuple(row["levels"]) for row in found}

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


def _table_of_microdata(data: Microdata) -> pa.Table:
    """Return microdata as the table that is stored. Raises BadInput for a variable with a name of our own."""
    check_reserved_names(data.schema.names)
    kinds = {} if data.kinds is None else {f"{KIND_COLUMN_PREFIX}{name}": values for name, values in data.kinds.items()}
    frame = data.frame.assign(**kinds)
    # The metadata of pandas names its version: equal tables would have different hashes.
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _slice_of_records(data: Microdata, rows: slice) -> Microdata:
    """Return some consecutive records, with their kinds of missing values."""
    kinds = None if data.kinds is None else data.kinds.iloc[rows]
    return Microdata(data.schema, data.frame.iloc[rows], data.origin, kinds=kinds)


def _slices_of_units(data: Microdata, most: int) -> list[slice]:
    """Return consecutive slices of at most ``most`` records, in which units are whole if their records follow each
    other.
    """
    n, unit = len(data), data.schema.unit
    plain = [slice(first, min(n, first + most)) for first in range(0, max(1, n), most)]
    if len(plain) == 1 or unit is None or unit not in data.frame:
        return plain
    codes = code_unit_numbers(data.frame[unit])
    begins = np.flatnonzero(np.append(True, (codes[1:] != codes[:-1]) | (codes[1:] < 0)))
    if len(begins) > codes.max(initial=-1) + 1 + int((codes < 0).sum()):
        return plain  # some unit's records do not follow each other
    begins, found, first = np.append(begins, n), list[slice](), 0
    while first < n:
        end = int(begins[np.searchsorted(begins, first + most, side="right") - 1])
        if end <= first:
            return plain  # a unit has more records than a part
        found.append(slice(first, end))
        first = end
    return found


def _names_of_columns(schema: Schema) -> list[str]:
    """Return the columns that a file may have of the variables, their kinds of missing values behind them."""
    return [*schema.names, *(f"{KIND_COLUMN_PREFIX}{name}" for name in schema.names)]


def _read_whole_part(
    file: pq.ParquetFile, schema: Schema, origin: Origin, levels: Mapping[str, Sequence[str]]
) -> Microdata:
    groups, there = list(range(file.num_row_groups)), set(file.schema_arrow.names)
    names = (name for name in _names_of_columns(schema) if name in there or name in schema)
    columns = {name: _values_by_row_group(file, name, groups) for name in names}
    return _microdata_of_columns(schema, origin, columns, levels)


def _microdata_of_columns(
    schema: Schema, origin: Origin, columns: dict[str, list[Any]], levels: Mapping[str, Sequence[str]]
) -> Microdata:
    """Return microdata of the values of each column in consecutive row groups, which are removed from ``columns``.

    ``levels`` are those of the categorical columns; of one that is missing, the levels of the row groups.
    """
    values = {name: pd.Series(_join_column_values(columns.pop(name), levels.get(name))) for name in schema.names}
    return Microdata(schema, pd.DataFrame(values, copy=False), origin, kinds=_kinds_of_columns(columns))


def _kinds_of_columns(columns: Mapping[str, list[Any]]) -> pd.DataFrame | None:
    """Return the kinds of missing values (n, k) of stored columns in consecutive row groups; None without any."""
    kinds = {
        name.removeprefix(KIND_COLUMN_PREFIX): pa.chunked_array(parts).unify_dictionaries().to_pandas()
        for name, parts in columns.items()
    }
    return pd.DataFrame(kinds) if kinds else None


def _values_by_row_group(file: pq.ParquetFile, name: str, groups: Sequence[int]) -> list[Any]:
    """Return the values of a column in each of some row groups: numbers and ``_LevelCodes``, or Arrow arrays of kinds of
    missing values. Where there are no groups, one has no values.
    """
    # One row group at a time: each has a dictionary of its own, whose codes differ.
    read = [file.read_row_group(i, [name], use_threads=False).column(0) for i in groups]
    read = read or [file.read_row_groups([], [name], use_threads=False).column(0)]
    if name.startswith(KIND_COLUMN_PREFIX):
        return [column.combine_chunks() for column in read]
    return [_row_group_values(column) for column in read]


def _join_column_values(parts: list[Any], known: Sequence[str] | None = None) -> NDArray[Any] | pd.Categorical:
    """Return the values (n,) of a column from those of its row groups; ``known`` are its levels, else those that occur."""
    if not isinstance(parts[0], _LevelCodes):
        return _dates_in_seconds(np.concatenate(parts))
    levels = list(dict.fromkeys([*(known or ()), *(level for part in parts for level in part.levels)]))
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
