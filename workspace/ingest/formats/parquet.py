"""Parquet files. Untrusted: the bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput

from ..file_formats import FileFormat, OutputTable, ReadRequest

if TYPE_CHECKING:
    from io import BytesIO

    import pandas as pd
    import pyarrow.parquet as pq

    from ..raw_tables import ColumnBuffer, RawTable
    from ..sources import SourceFile
    from ..spooled_columns import SpoolFile

COLUMN_READ_BYTES = 1 << 20
"""Bytes of a column of a long file that are read at a time."""


def read_parquet(source: SourceFile, request: ReadRequest) -> RawTable:
    """Return the table of a Parquet file, whose columns are read on demand. Raises BadInput."""
    from ..raw_tables import RawTable
    from ..text_files import check_header
    from ._arrow_columns import column_titles, readable_columns

    columns = _ParquetColumns(source, request.place)
    with columns.open_parquet() as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
        check_header(schema.names, source.name, request.place)
        needed = () if request.schema is None else request.schema.names
        names, remarks = readable_columns(schema, f'"{source.name}"', request.place, needed)
    if request.spool is not None and rows > request.spool.rows:
        from ..spooled_columns import SpoolFile

        columns = replace(columns, spool=SpoolFile(request.spool.folder, request.place))
    table = RawTable.from_reader(columns, names, column_titles(schema), needed=request.needed)
    return replace(table, notes=remarks)


@dataclass(frozen=True)
class _ParquetColumns:
    """Reader of the columns of a Parquet file, of a long one to ``spool``."""

    source: SourceFile
    place: str
    spool: SpoolFile | None = None

    def read_columns(self, names: Sequence[str], max_bytes: int) -> dict[str, ColumnBuffer]:
        """Read the first columns of these names, as many as ``max_bytes`` hold, at least one. Raises BadInput."""
        from ..raw_tables import ColumnBuffer
        from ._arrow_columns import convert_decimals, spool_column

        found: dict[str, ColumnBuffer] = {}
        size = 0
        with self.open_parquet() as file:
            for name in names:
                if self.spool is not None and (spooled := spool_column(file, name, self.spool)) is not None:
                    found[name] = ColumnBuffer(spooled=spooled)
                    continue
                # metadata of pandas could make a column the index, and so hide it
                values = convert_decimals(file.read([name]).select([name])).to_pandas(ignore_metadata=True)[name]
                found[name] = ColumnBuffer(values)
                size += found[name].n_bytes
                if size >= max_bytes:
                    break
        return found

    def read_written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Read the exact values of columns as texts, (n,) each. Raises BadInput."""
        from ._arrow_columns import write_values

        with self.open_parquet() as file:
            # as floats, large whole numbers and decimals would lose digits
            return {name: write_values(file.read([name]).select([name]).column(0)) for name in names}

    @contextmanager
    def open_parquet(self) -> Iterator[pq.ParquetFile]:
        """Open the file, within the block. Raises BadInput where it is damaged, or changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with self.source.open_with_arrow() as opened:
                # a buffer of its own for each column of a long file, else Arrow reads whole row groups
                size = 0 if self.spool is None else COLUMN_READ_BYTES
                yield pq.ParquetFile(opened, pre_buffer=False, buffer_size=size)
        except (BadInput, MemoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError):
            raise BadInput(self.place, f'"{self.source.name}" is a damaged Parquet file') from None
        self.source.check_unchanged()


def write_parquet(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as a Parquet file."""
    from io import BytesIO

    import pyarrow.parquet as pq

    from ._arrow_columns import to_arrow_table

    sink = BytesIO()
    pq.write_table(to_arrow_table(out), sink, compression="zstd")
    return sink.getvalue()


def write_parquet_blocks(blocks: Iterator[OutputTable]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file of a dataset that comes some rows at a time, each a row group."""
    from io import BytesIO

    import pyarrow.parquet as pq

    from ._arrow_columns import to_arrow_table

    first = to_arrow_table(next(blocks))
    held = BytesIO()

    def take_held() -> bytes:
        content = held.getvalue()
        held.seek(0)
        held.truncate()
        return content

    # what was taken counts as written: positions in the file go on
    with pq.ParquetWriter(_CountingSink(held), first.schema, compression="zstd") as writer:
        for table in itertools.chain([first], (to_arrow_table(out).cast(first.schema) for out in blocks)):
            writer.write_table(table, row_group_size=max(1, len(table)))
            yield take_held()
    yield take_held()


class _CountingSink:
    """File for writing whose bytes are taken away while it is written."""

    def __init__(self, held: BytesIO) -> None:
        self._held, self._written = held, 0
        self.closed = False

    def write(self, content: Any) -> int:
        """Write bytes and return their number."""
        self._written += len(content)
        return self._held.write(content)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._written

    def flush(self) -> None:
        """Do nothing: the bytes are in memory."""

    def close(self) -> None:
        """Do nothing: whoever takes the bytes does so to the end."""


FORMAT = FileFormat(
    kind="a Parquet",
    suffixes=(".parquet", ".pq"),
    recognises=lambda head: head.startswith(b"PAR1"),
    read=read_parquet,
    write=write_parquet,
    write_blocks=write_parquet_blocks,
    media_type="application/vnd.apache.parquet",
    croissant_type="application/x-parquet",
    required_modules=("pyarrow",),
    order=2,
)
