"""Released datasets as files: levels by their labels again, identifiers left out, and a codebook beside them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Mapping
from io import BytesIO, StringIO
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.schema import Kind, Schema, Variable

__all__ = ["FORMATS", "Form", "codebook", "dataset_bytes", "level_names"]

Form = Literal["csv", "parquet"]
FORMATS: tuple[Form, ...] = ("csv", "parquet")


def level_names(variable: Variable, table: pa.Table) -> dict[str, str]:
    """What each labelled level of a variable is called: its label, with the code behind it where that is not enough."""
    kind = table.schema.field(variable.name).type
    levels = table.column(variable.name).combine_chunks().dictionary.to_pylist() if pa.types.is_dictionary(kind) else []
    plain = {str(level): variable.labels.get(str(level)) or str(level) for level in (*variable.labels, *levels)}
    times = Counter(plain.values())
    return {
        code: name if times[name] == 1 else f"{name} ({code})"
        for code, name in plain.items()
        if code in variable.labels
    }


def dataset_bytes(table: pa.Table, schema: Schema, left_out: Collection[str], form: Form) -> bytes:
    """A stored table (n rows) as a CSV or Parquet file, without the columns ``left_out``, the rest in their order."""
    variables = {variable.name: variable for variable in schema}
    names = [name for name in table.column_names if name not in left_out]
    frame = table.select(names).to_pandas()
    frame = frame.assign(**{name: _whole(frame[name]) for name in names if variables[name].kind is Kind.COUNT})
    named = {name: _labelled(frame[name], level_names(variables[name], table)) for name in names}
    frame = frame.assign(**named)
    return _csv(frame) if form == "csv" else _parquet(frame, {name: variables[name].title for name in names})


def _whole(values: pd.Series) -> pd.Series:
    """Counts of which some are missing as whole numbers again: stored tables hold them as floats."""
    return values.astype("Int64") if values.hasnans and (values.dropna() % 1 == 0).all() else values


def _labelled(values: pd.Series, names: Mapping[str, str]) -> pd.Series:
    if not names or not isinstance(values.dtype, pd.CategoricalDtype):
        return values
    return values.cat.rename_categories([names.get(str(level), str(level)) for level in values.cat.categories])


def _csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False, lineterminator="\n").encode()


def _parquet(frame: pd.DataFrame, titles: Mapping[str, str]) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    fields = [
        field.with_metadata({"label": titles[field.name]}) if titles.get(field.name) else field
        for field in table.schema
    ]
    sink = BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), sink, compression="zstd")
    return sink.getvalue()


def codebook(table: pa.Table, schema: Schema, left_out: Collection[str]) -> str:
    """A CSV table: the title and kind of each variable of a stored table, a line for each of its labelled levels."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("variable", "title", "kind", "code", "label"))
    for variable in schema:
        if variable.name not in left_out:
            levels = list(level_names(variable, table).items()) or [("", "")]
            lines.writerows((variable.name, variable.title, variable.kind.value, *level) for level in levels)
    return text.getvalue()
