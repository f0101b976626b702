"""Parquet files. Untrusted: the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

from ..file_formats import Asked, Format, Outgoing

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from ..raw_tables import Held, RawTable
    from ..sources import Source


def read(source: Source, asked: Asked) -> RawTable:
    """The table of a file whose columns are read as they are asked for. Raises BadInput."""
    from ..raw_tables import RawTable
    from ..text_files import check_header
    from ._arrow_columns import check_types, titles

    columns = _Columns(source, asked.place)
    with columns.opened() as file:
        schema = file.schema_arrow
        check_header(schema.names, source.name, asked.place)
        check_types(schema, f'"{source.name}"', asked.place)
    return RawTable.read(columns, schema.names, titles(schema))


@dataclass(frozen=True)
class _Columns:
    source: Source
    place: str

    def gathered(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        from ..raw_tables import Held

        found: dict[str, Held] = {}
        size = 0
        with self.opened() as file:
            for name in names:
                values = file.read([name]).select([name]).to_pandas(ignore_metadata=True)[name]
                found[name] = Held(values)
                size += found[name].size
                if size >= most_bytes:
                    break
        return found

    @contextmanager
    def opened(self) -> Iterator[pq.ParquetFile]:
        """The file, within the block. Raises BadInput where it is damaged, or changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with self.source.opened() as opened:
                yield pq.ParquetFile(opened, pre_buffer=False)
        except (BadInput, MemoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError):
            raise BadInput(self.place, f'"{self.source.name}" is a damaged Parquet file') from None
        self.source.check_unchanged()


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
    write=write,
    media_type="application/vnd.apache.parquet",
    croissant_type="application/x-parquet",
    needs=("pyarrow",),
    order=2,
)
