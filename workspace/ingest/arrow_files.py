"""Arrow files (Feather version 2) and streams, with the label that a column's metadata may have. Untrusted: the bytes."""

from __future__ import annotations

import pyarrow as pa

from sfumato.engine.errors import BadInput

from .raw_tables import Description, RawTable

_TEXTS = ["string", "large_string", "string_view", "date", "timestamp", "null"]
_KINDS = ["boolean", "integer", "floating", "decimal", *_TEXTS]
READABLE = [getattr(pa.types, f"is_{kind}") for kind in _KINDS]
"""What a column may hold."""


def read_arrow(content: bytes) -> RawTable:
    """The table of an Arrow file or stream. Raises BadInput, and what pyarrow raises."""
    opened = pa.ipc.open_file(content) if content.startswith(b"ARROW1") else pa.ipc.open_stream(content)
    with opened as reader:
        check_types(reader.schema, "{name}", "")
        table = reader.read_all()
    table.validate(full=True)
    return RawTable(table.to_pandas(ignore_metadata=True), titles(table.schema))


def titles(schema: pa.Schema) -> dict[str, Description]:
    """The labels that columns have in their metadata, as our own files do."""
    return {
        field.name: Description(field.metadata[b"label"].decode("utf-8", "replace"))
        for field in schema
        if field.metadata and b"label" in field.metadata
    }


def check_types(found: pa.Schema, name: str, place: str) -> None:
    """BadInput for columns whose cells are no single values; ``name`` is the file's, quoted."""
    for number, field in enumerate(found, start=1):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or not any(is_it(kind) for is_it in READABLE):
            raise BadInput(
                place,
                f"column {number} of {name} holds {str(kind).partition('<')[0]} values; a table has one number, text or "
                "date a cell: convert the column, or leave it out",
            )
