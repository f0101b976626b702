"""Arrow files (Feather version 2) and streams. Untrusted: the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..file_formats import Asked, Format, Outgoing

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import Source

FILE, STREAM = b"ARROW1", b"\xff\xff\xff\xff"


def read(source: Source, asked: Asked) -> RawTable:
    """The table of an Arrow file or stream. Raises BadInput, and what pyarrow raises."""
    import pyarrow as pa

    from ..raw_tables import RawTable
    from ._arrow_columns import check_types, titles

    content = source.content
    opened = pa.ipc.open_file(content) if content.startswith(FILE) else pa.ipc.open_stream(content)
    with opened as reader:
        check_types(reader.schema, source.name, asked.place)
        table = reader.read_all()
    table.validate(full=True)
    return RawTable.of(table.to_pandas(ignore_metadata=True), titles(table.schema))


def write(out: Outgoing) -> bytes:
    from io import BytesIO

    import pyarrow as pa

    from ._arrow_columns import with_titles

    table, sink = with_titles(out), BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


FORMAT = Format(
    kind="an Arrow",
    suffixes=(".arrow", ".feather", ".ipc"),
    recognised=lambda head: head.startswith((FILE, STREAM)),
    refused={b"FEA1": "is a Feather file of version 1; write it as version 2 (.arrow)"},
    read=read,
    subprocess=True,
    write=write,
    media_type="application/vnd.apache.arrow.file",
    needs=("pyarrow",),
    manual="Files, Feather version 2, and streams.",
    order=3,
)
