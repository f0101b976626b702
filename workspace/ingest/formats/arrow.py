"""Arrow files (Feather version 2) and streams. Untrusted: the bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..file_formats import FileFormat, OutputTable, ReadRequest

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import SourceFile

FILE_SIGNATURE, STREAM_SIGNATURE = b"ARROW1", b"\xff\xff\xff\xff"


def read_arrow(source: SourceFile, request: ReadRequest) -> RawTable:
    """Read the table of an Arrow file or stream. Raises BadInput, and what pyarrow raises."""
    import pyarrow as pa

    from ..raw_tables import RawTable
    from ._arrow_columns import column_titles, convert_decimals, readable_columns, write_inexact_columns

    content = source.content
    opened = pa.ipc.open_file(content) if content.startswith(FILE_SIGNATURE) else pa.ipc.open_stream(content)
    with opened as reader:
        names, remarks = readable_columns(reader.schema, source.name, request.place)
        read = reader.read_all().select(names)
    # offsets in a damaged file could point outside its buffers
    read.validate(full=True)
    table = convert_decimals(read)
    found = RawTable.from_frame(table.to_pandas(ignore_metadata=True), column_titles(table.schema), notes=remarks)
    return replace(found, written=write_inexact_columns(read))


def write_arrow(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as an Arrow file."""
    from io import BytesIO

    import pyarrow as pa

    from ._arrow_columns import to_arrow_table

    table, sink = to_arrow_table(out), BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


FORMAT = FileFormat(
    kind="an Arrow",
    suffixes=(".arrow", ".feather", ".ipc"),
    recognises=lambda head: head.startswith((FILE_SIGNATURE, STREAM_SIGNATURE)),
    refused_signatures={b"FEA1": "is a Feather file of version 1; write it as version 2 (.arrow)"},
    read=read_arrow,
    uses_subprocess=True,
    write=write_arrow,
    media_type="application/vnd.apache.arrow.file",
    required_modules=("pyarrow",),
    manual_sentence="Files, Feather version 2, and streams.",
    order=3,
)
