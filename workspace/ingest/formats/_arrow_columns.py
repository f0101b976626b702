"""Columns of Arrow tables, of which Arrow and Parquet files are made, with the label that a column's metadata may have."""

from __future__ import annotations

import pyarrow as pa

from sfumato.engine.errors import BadInput

from ..file_formats import OutputTable
from ..raw_tables import ColumnDescription

_TEXTS = ["string", "large_string", "string_view", "date", "timestamp", "null"]
_KINDS = ["boolean", "integer", "floating", "decimal", *_TEXTS]
READABLE_TYPE_TESTS = [getattr(pa.types, f"is_{kind}") for kind in _KINDS]
"""Tests of the types that a column may have."""


def column_titles(schema: pa.Schema) -> dict[str, ColumnDescription]:
    """Return the labels that columns have in their metadata, as our own files do."""
    return {
        field.name: ColumnDescription(field.metadata[b"label"].decode("utf-8", "replace"))
        for field in schema
        if field.metadata and b"label" in field.metadata
    }


def check_column_types(schema: pa.Schema, name: str, place: str) -> None:
    """Raise BadInput for columns whose cells are no single values; ``name`` is the file's, quoted."""
    for number, field in enumerate(schema, start=1):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or not any(is_it(kind) for is_it in READABLE_TYPE_TESTS):
            raise BadInput(
                place,
                f"column {number} of {name} holds {str(kind).partition('<')[0]} values; a table has one number, text or "
                "date a cell: convert the column, or leave it out",
            )


def to_arrow_table(out: OutputTable) -> pa.Table:
    """Return the released table with the titles of its variables and its description, and nothing that pandas adds."""
    table = pa.Table.from_pandas(out.frame, preserve_index=False).replace_schema_metadata(None)
    titles = {name: variable.title for name, variable in out.variables.items()}
    fields = [one.with_metadata({"label": titles[one.name]}) if titles.get(one.name) else one for one in table.schema]
    return table.cast(pa.schema(fields, {"description": out.note} if out.note else None))
