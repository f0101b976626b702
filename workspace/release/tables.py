"""Released datasets as files: levels by their labels again, identifiers left out, and a codebook beside them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Mapping
from io import BytesIO, StringIO
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engine.schema import Kind, Schema, Variable

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


def dataset_bytes(
    table: pa.Table, schema: Schema, left_out: Collection[str], form: Form, rng: np.random.Generator | None = None
) -> bytes:
    """A stored table (n rows) as a CSV or Parquet file, without the columns ``left_out``, the rest in their order.

    With ``rng`` its rows are shuffled.
    """
    variables = {variable.name: variable for variable in schema}
    names = [name for name in table.column_names if name not in left_out]
    frame = table.select(names).to_pandas()
    frame = frame if rng is None else _shuffled(frame, rng)
    frame = frame.assign(**{name: _whole(frame[name]) for name in names if variables[name].kind is Kind.COUNT})
    named = {name: _labelled(frame[name], level_names(variables[name], table)) for name in names}
    frame = frame.assign(**named)
    return _csv(frame) if form == "csv" else _parquet(frame, {name: variables[name].title for name in names})


def _shuffled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows in an order that the rows themselves and ``rng`` decide, whatever order they were in.

    They are sorted by their values before they are permuted: a permutation alone could be undone by whoever has seed and
    key, and a public key everybody has.
    """
    ordered = frame.sort_values(list(frame.columns), kind="stable", na_position="last")
    return ordered.iloc[rng.permutation(len(ordered))].reset_index(drop=True)


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


def codebook(
    table: pa.Table, schema: Schema, left_out: Collection[str], original: tuple[pa.Table, Schema] | None = None
) -> str:
    """A CSV table: the title and kind of each variable of a stored table, a line for each of its labelled levels.

    ``original`` has the confidential table: a variable whose levels the release has made numbers has a line for what 0
    and 1 were.
    """
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("variable", "title", "kind", "code", "label"))
    for variable in schema:
        if variable.name not in left_out:
            named = level_names(variable, table) or _numbered(variable, original)
            levels = list(named.items()) or [("", "")]
            lines.writerows((variable.name, variable.title, variable.kind.value, *level) for level in levels)
    return text.getvalue()


def _numbered(variable: Variable, original: tuple[pa.Table, Schema] | None) -> dict[str, str]:
    """What the numbers of a variable that had levels stand for."""
    if original is None or variable.kind.has_levels or variable.kind is original[1][variable.name].kind:
        return {}
    table, schema = original
    if not (before := schema[variable.name]).kind.has_levels:
        return {}
    names = level_names(before, table)
    levels = table.column(variable.name).combine_chunks().dictionary.to_pylist()
    return {str(code): names.get(str(level), str(level)) for code, level in enumerate(levels)}
