"""Immutable Parquet tables, named by the hash of their bytes: written aside, synchronised, renamed, verified on read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engine.microdata import Microdata
from sfumato.engine.schema import Origin, Schema

from ..errors import DamagedTable, NotYours, StrangeFile
from ..plain_files import is_hash, open_plain, read_plain, room, synchronise

ASIDE = ".writing-"
DAY_SECONDS = 86_400.0
KIND_OF = "kind of missing: "
"""What comes before the name of a column that says which code each missing value of a variable was."""
MISSING_LEVEL = -1
"""The code that pandas gives a missing value of a categorical."""


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
        sink = BytesIO()
        pq.write_table(table, sink, compression="zstd", write_statistics=True)
        content = sink.getvalue()
        sha256 = hashlib.sha256(content).hexdigest()
        if not self._touched(self.path(sha256)):
            self._put(self.path(sha256), content)
        return sha256

    @staticmethod
    def _touched(path: Path) -> bool:
        """Whether the table is there, now as young as one just written: no row may name it yet, and it must not be removed."""
        try:
            os.utime(path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _put(self, path: Path, content: bytes) -> None:
        room(self.directory.parent, self.directory.name)
        handle, aside = tempfile.mkstemp(dir=self.directory, prefix=ASIDE)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        synchronise(self.directory)

    def sweep(self) -> None:
        """Remove what was being written more than a day ago: whoever wrote it was killed. Raises StrangeFile."""
        if not self.directory.exists():
            return
        room(self.directory.parent, self.directory.name)
        for aside in self.directory.glob(f"{ASIDE}*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - aside.lstat().st_mtime > DAY_SECONDS:
                    aside.unlink()

    def read(self, sha256: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The table with this hash, or some of its columns. Raises DamagedTable when it is gone or its bytes have changed.

        Read without threads: one that still holds bytes of ours when Python ends makes the process abort.
        """
        return pq.ParquetFile(pa.BufferReader(self._content(sha256)), pre_buffer=False).read(
            None if columns is None else list(columns), use_threads=False
        )

    def verify(self, sha256: str) -> None:
        """Raises DamagedTable when the table with this hash is gone or its bytes have changed."""
        self._content(sha256)

    def _content(self, sha256: str) -> bytes:
        path = self.path(sha256)
        try:
            content = read_plain(path)
        except FileNotFoundError:
            raise DamagedTable(f"the table {path.name} is gone from the workspace") from None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamagedTable(f"the table {path.name} has changed since it was written")
        return content

    def records(self, sha256: str) -> int:
        """How many records the table with this hash has; only its end is read. Raises DamagedTable when it is gone."""
        path = self.path(sha256)
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                return int(pq.read_metadata(file).num_rows)
        except FileNotFoundError:
            raise DamagedTable(f"the table {path.name} is gone from the workspace") from None
        except StrangeFile as error:
            raise DamagedTable(f"the table {path.name} is {error.kind}, not a file of the workspace") from None

    def write_microdata(self, data: Microdata) -> str:
        """Store microdata; the schema is kept by the database. Which code each missing value was stands in columns of its own."""
        kinds = {} if data.kinds is None else {f"{KIND_OF}{name}": values for name, values in data.kinds.items()}
        frame = data.frame.assign(**kinds)
        return self.write(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None))

    def read_microdata(self, sha256: str, schema: Schema, origin: Origin) -> Microdata:
        """Microdata as they were stored: same dtypes, same order of levels, missing values where they were."""
        table = self.read(sha256, [*schema.names, *(f"{KIND_OF}{name}" for name in schema.names)])
        columns: dict[str, pd.Series] = {}
        for variable in schema:
            chunk = table.column(variable.name).combine_chunks()
            if pa.types.is_dictionary(chunk.type):
                levels = [str(level) for level in chunk.dictionary.to_pylist()]
                codes = chunk.indices.fill_null(MISSING_LEVEL).to_numpy(zero_copy_only=False).astype(np.int64)
                values = pd.Categorical.from_codes(codes, pd.Index(levels), ordered=bool(chunk.type.ordered))
                columns[variable.name] = pd.Series(values)
            else:
                columns[variable.name] = pd.Series(_with_seconds(chunk.to_numpy(zero_copy_only=False)))
        named = [name for name in schema.names if f"{KIND_OF}{name}" in table.column_names]
        kinds = {name: table.column(f"{KIND_OF}{name}").to_pandas() for name in named}
        return Microdata(schema, pd.DataFrame(columns), origin, kinds=pd.DataFrame(kinds) if kinds else None)

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


def _with_seconds(values: NDArray[Any]) -> NDArray[Any]:
    """Parquet keeps dates in milliseconds, microdata in seconds."""
    return values.astype("datetime64[s]") if values.dtype.kind == "M" else values
