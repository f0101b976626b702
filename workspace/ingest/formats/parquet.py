"""Parquet files. Untrusted: the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sfumato.engine.errors import BadInput

from ..file_formats import Asked, Format, Outgoing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..out_of_core import LargeFile, LargeTable
    from ..raw_tables import RawTable

T = TypeVar("T")


def read(content: bytes, asked: Asked) -> RawTable:
    """The table of a Parquet file. Raises BadInput."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..raw_tables import RawTable
    from ._arrow_columns import titles

    with _damaged(asked):
        file = pq.ParquetFile(pa.BufferReader(content))
        _check(file.schema_arrow, asked)
        frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    return RawTable(frame, titles(file.schema_arrow))


@contextmanager
def _damaged(asked: Asked) -> Iterator[None]:
    """BadInput where pyarrow cannot read the file within the block."""
    import pyarrow as pa

    try:
        yield
    except (BadInput, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise BadInput(asked.place, f'"{asked.name}" is a damaged Parquet file') from None


def _check(found: pa.Schema, asked: Asked) -> None:
    from ..text_files import check_header
    from ._arrow_columns import check_types

    check_header(found.names, asked.name, asked.place)
    check_types(found, f'"{asked.name}"', asked.place)


def read_large(file: LargeFile, asked: Asked) -> LargeTable:
    """The table of a file whose columns are read as they are asked for. Raises BadInput."""
    from ..out_of_core import LargeTable
    from ._arrow_columns import titles

    columns = _Columns(file, asked)

    def checked(found: pq.ParquetFile) -> tuple[pa.Schema, int]:
        _check(found.schema_arrow, asked)
        return found.schema_arrow, found.metadata.num_rows

    schema, records = columns.opened(checked)
    return LargeTable(file, tuple(schema.names), records, columns, titles(schema))


@dataclass(frozen=True)
class _Columns:
    file: LargeFile
    asked: Asked

    def opened(self, use: Callable[[pq.ParquetFile], T]) -> T:
        """What ``use`` makes of the file. Raises BadInput."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with _damaged(self.asked), pa.OSFile(self.file.path) as opened:
            return use(pq.ParquetFile(opened, pre_buffer=False))

    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        for name in names:
            yield self.opened(
                lambda found, name=name: found.read([name]).select([name]).to_pandas(ignore_metadata=True)[name]  # type: ignore[misc]
            )
            self.file.check_unchanged()


def write(out: Outgoing) -> bytes:
    from io import BytesIO

    import pyarrow.parquet as pq

    from ._arrow_columns import with_titles

    sink = BytesIO()
    pq.write_table(with_titles(out), sink, compression="zstd")
    return sink.getvalue()


FORMAT = Format(
    kind="a Parquet",
    suffixes=(".parquet", ".pq"),
    recognised=lambda head: head.startswith(b"PAR1"),
    read=read,
    read_large=read_large,
    write=write,
    media_type="application/vnd.apache.parquet",
    croissant_type="application/x-parquet",
    needs=("pyarrow",),
    order=2,
)
