"""Columns of Arrow tables, of which Arrow and Parquet files are made, with the label that a column's metadata may have."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import NO_VALUE_CODE
from sfumato.engine.errors import BadInput

from ..file_formats import OutputTable
from ..raw_tables import ColumnDescription
from ..spooled_columns import GrowingTexts, SpooledColumn, SpooledParts, SpoolFile, column_of_numbers

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_ROWS = 1 << 18
"""Rows of a column of a long file that are read at a time."""

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


def readable_columns(
    schema: pa.Schema, name: str, place: str, needed: Collection[str] = ()
) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns whose cells are single values, and a remark on each other one; ``name`` is the file's, quoted.

    Raises BadInput where a ``needed`` column, or every column, has cells of another type.
    """
    remarks = {}
    for number, field in enumerate(schema, start=1):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or not any(is_it(kind) for is_it in READABLE_TYPE_TESTS):
            shown = f'"{field.name}"' if field.name.isprintable() else str(number)
            remarks[field.name] = (
                f"column {shown} of {name} holds {str(kind).partition('<')[0]} values; a table has one number, text or date a cell"
            )
    readable = [column for column in schema.names if column not in remarks]
    wrong = next((column for column in remarks if not readable or column in needed), None)
    if wrong is not None:
        raise BadInput(place, f"{remarks[wrong]}: convert the column, or leave it out")
    return readable, tuple(f"{remark}: it is left out" for remark in remarks.values())


def convert_decimals(table: pa.Table) -> pa.Table:
    """Return a table whose decimal numbers, which pandas would take for texts, are floats."""
    fields = [field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields, table.schema.metadata))


def spool_column(file: pq.ParquetFile, name: str, spool: SpoolFile) -> SpooledColumn | None:
    """Write a column of a long file to the disk, some rows at a time; None where its values are read at once."""
    kind = file.schema_arrow.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    as_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date32(kind)
    as_number = any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
    as_moment = pa.types.is_timestamp(kind) and kind.tz is None
    if not (as_text or as_number or as_moment):
        return None
    parts, texts = SpooledParts(spool), GrowingTexts()
    for batch in file.iter_batches(BATCH_ROWS, columns=[name], use_threads=False):
        column = pa.chunked_array([batch.column(0)])
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if as_text:
            # a date is written as its text, which is read as the same date
            found = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
            codes = found.indices.fill_null(NO_VALUE_CODE).to_numpy(zero_copy_only=False)
            places = np.append(texts.place_texts(found.dictionary), NO_VALUE_CODE)
            parts.append_piece(places[codes].astype(np.int32))
        else:
            table = convert_decimals(pa.table({name: column}))
            parts.append_piece(table.to_pandas(ignore_metadata=True)[name].to_numpy())
    if not as_text:
        return column_of_numbers(parts)
    values = pd.Series(pd.array(texts.texts, dtype="str"))
    return SpooledColumn(parts, lambda codes: _select_texts(values, codes), values)


def _select_texts(values: pd.Series, codes: NDArray[Any]) -> pd.Series:
    """Return the texts (n,) that codes select, missing ones at -1."""
    return pd.Series(pd.api.extensions.take(values.array, codes, allow_fill=True))


def write_values(column: pa.ChunkedArray) -> pd.Series:
    """Return the values of a column as texts (n,), equal where the values are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pd.Series(column.cast(pa.large_string()).to_pandas()).astype("category")


def write_inexact_columns(table: pa.Table) -> pd.DataFrame | None:
    """Return as texts (n, j) the columns that become floats in pandas with fewer digits; None without one."""
    inexact = {
        field.name: table.column(place)
        for place, field in enumerate(table.schema)
        if pa.types.is_decimal(field.type)
        or (field.type in (pa.int64(), pa.uint64()) and table.column(place).null_count)
    }
    return pd.DataFrame({name: write_values(column) for name, column in inexact.items()}) if inexact else None


def to_arrow_table(out: OutputTable) -> pa.Table:
    """Return the released table with the titles of its variables and its description, and nothing that pandas adds."""
    table = pa.Table.from_pandas(out.frame, preserve_index=False).replace_schema_metadata(None)
    titles = {name: variable.title for name, variable in out.variables.items()}
    fields = [one.with_metadata({"label": titles[one.name]}) if titles.get(one.name) else one for one in table.schema]
    return table.cast(pa.schema(fields, {"description": out.note} if out.note else None))
