"""Released datasets as files: levels replaced by their labels, identifiers left out, and a codebook."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.data.schema import Kind, Schema, Variable

from ..errors import NotReleased
from ..ingest.file_formats import OutputTable, format_by_name
from ..ingest.reserved_names import KIND_COLUMN_PREFIX
from ..visible_text import leading_cell, plain_cell
from .forms import DatasetForm

LevelsByVariable = Mapping[str, Sequence[str]]
"""By variable the levels that may be named."""
UNLABELLED_MISSING = "missing"
"""The label of a kind of missing value that has none."""


def released_levels(tables: Iterable[pa.Table], left_out: Collection[str] = ()) -> LevelsByVariable:
    """Return the levels that occur in any of the released tables, by variable, in their order."""
    found: dict[str, dict[str, bool]] = {}
    for table in tables:
        for one in table.schema:
            if pa.types.is_dictionary(one.type) and one.name not in left_out:
                column = table.column(one.name).combine_chunks()
                used = set(column.indices.drop_null().unique().to_pylist())
                known = found.setdefault(one.name, {})
                for code, level in enumerate(column.dictionary.to_pylist()):
                    known[str(level)] = known.get(str(level), False) or code in used
    # A stored table knows all levels of the confidential data. One that no released record has may belong to the only
    # person who had it: it must be named neither in a codebook nor in a Parquet file's dictionary.
    return {name: tuple(level for level, occurs in levels.items() if occurs) for name, levels in found.items()}


def names_of_levels(variable: Variable, levels: Sequence[str]) -> dict[str, str]:
    """Return the name of each labelled level: its label, with the code where several of the levels share the label."""
    plain = {level: variable.labels.get(level) or level for level in levels}
    times = Counter(plain.values())
    return {
        code: name if times[name] == 1 else f"{name} ({code})"
        for code, name in plain.items()
        if code in variable.labels
    }


@dataclass(frozen=True, kw_only=True)
class DatasetContext:
    """Context of a dataset of n records in its release.

    rng: shuffles its rows; None leaves them in their order
    levels: levels that may be named, of all tables that are released together; None for those of this table
    note: description of the table, for formats that have room for one
    kinds: kinds of missing values (n, k), None where no value is missing
    named_kinds: kinds that may be declared, by variable
    keys: columns that join rows, each (n,) with its declaration; they stand before all others
    """

    rng: np.random.Generator | None = None
    levels: LevelsByVariable | None = None
    note: str = ""
    kinds: pd.DataFrame | None = None
    named_kinds: LevelsByVariable = field(default_factory=dict)
    keys: Sequence[tuple[Variable, pd.Series]] = ()


def dataset_bytes(
    table: pa.Table,
    schema: Schema,
    left_out: Collection[str],
    form: DatasetForm,
    context: DatasetContext = DatasetContext(),
) -> bytes:
    """Return a stored table (n rows) as a file of ``form``, without the columns ``left_out``, the rest in their order.

    A format that keeps codes has labels and kinds of missing value too. Raises NotReleased where the form has no room
    for what there is.
    """
    written = format_by_name(form)
    if written.write is None:
        raise NotReleased(f"{written.kind} file cannot be written; choose another --format")
    variables = {variable.name: variable for variable in schema}
    names = [name for name in table.column_names if name not in left_out]
    levels = released_levels([table], left_out) if context.levels is None else context.levels
    frame = table.select(names).to_pandas()
    for at, (variable, values) in enumerate(context.keys):
        frame.insert(at, variable.name, values.to_numpy())
        names.insert(at, variable.name)
        variables[variable.name] = variable
    kinds = pd.DataFrame(index=frame.index) if context.kinds is None else context.kinds
    # As columns of the frame, so that a shuffle keeps each kind with its record.
    frame = frame.assign(**{f"{KIND_COLUMN_PREFIX}{name}": kinds[name] for name in kinds})
    frame = frame if context.rng is None else _shuffle_rows(frame, context.rng)
    told = frame[[f"{KIND_COLUMN_PREFIX}{name}" for name in kinds]].set_axis(list(kinds), axis=1)
    frame = frame[names]
    if not written.keeps_codes:
        frame = frame.assign(
            **{name: _as_whole_numbers(frame[name]) for name in names if variables[name].kind is Kind.COUNT}
        )
        called = {
            name: rename_levels(
                _without_unused_levels(frame[name]), names_of_levels(variables[name], levels.get(name, ()))
            )
            for name in names
        }
        frame = frame.assign(**called)
    return written.write(OutputTable(frame, variables, levels, told, context.named_kinds, context.note))


def _shuffle_rows(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows in an order that depends on the set of rows and on ``rng`` alone."""
    # A permutation alone could be undone by whoever has seed and key, and a public key everybody has.
    ordered = frame.sort_values(list(frame.columns), kind="stable", na_position="last")
    return ordered.iloc[rng.permutation(len(ordered))].reset_index(drop=True)


def _as_whole_numbers(values: pd.Series) -> pd.Series:
    """Return counts as whole numbers again where they are stored as floats."""
    # They are stored as floats where a value is missing, be it in the confidential data alone.
    return values.astype("Int64") if values.dtype.kind == "f" and (values.dropna() % 1 == 0).all() else values


def _without_unused_levels(values: pd.Series) -> pd.Series:
    """Return a column with only those levels that occur."""
    return values.cat.remove_unused_categories() if isinstance(values.dtype, pd.CategoricalDtype) else values


def rename_levels(values: pd.Series, names: Mapping[str, str]) -> pd.Series:
    """Return a column of levels with their names in place of codes."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values
    return values.cat.rename_categories([names.get(str(level), str(level)) for level in values.cat.categories])


def written_column_names(form: DatasetForm, names: Iterable[str]) -> Mapping[str, str]:
    """Return the name under which a form writes each of a dataset's columns: another where its program refuses the own."""
    name_columns = format_by_name(form).name_columns
    return {name: name for name in names} if name_columns is None else name_columns(names)


def codebook_csv(
    schema: Schema,
    levels: LevelsByVariable,
    left_out: Collection[str],
    original: tuple[LevelsByVariable, Schema] | None = None,
    named: LevelsByVariable | None = None,
    keys: Sequence[Variable] = (),
    form: DatasetForm = "csv",
) -> str:
    """Return a CSV table of the title, kind and format of each variable, with a line for each of its labelled ``levels``.

    ``original`` has the levels of the confidential table, with its schema: a variable whose levels the release has turned into numbers has a line for
    what 0 and 1 were. ``named`` are the kinds of missing value that the datasets distinguish, ``keys`` the columns
    that join rows. A variable that the datasets have under another name, since the program of their ``form`` refuses
    its own, has that name in the last column.
    """
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("variable", "title", "kind", "code", "label", "format", "name_in_datasets"))
    released = [name for name in schema.names if name not in left_out]
    written = written_column_names(form, [*(key.name for key in keys), *released])
    others = {name: plain_cell(other) if other != name else "" for name, other in written.items()}
    for key in keys:
        lines.writerow([leading_cell(key.name), key.title, key.kind.value, "", "", "", others[key.name]])
    for variable in schema:
        if variable.name not in left_out:
            names = names_of_levels(variable, levels.get(variable.name, ())) or _meanings_of_numbers(variable, original)
            missing = {
                kind: variable.labels.get(kind, UNLABELLED_MISSING) for kind in (named or {}).get(variable.name, ())
            }
            about = [leading_cell(variable.name), plain_cell(variable.title), variable.kind.value]
            for level in [*names.items(), *missing.items()] or [("", "")]:
                lines.writerow([*about, *map(plain_cell, (*level, variable.format)), others[variable.name]])
    return text.getvalue()


def _meanings_of_numbers(variable: Variable, original: tuple[LevelsByVariable, Schema] | None) -> dict[str, str]:
    """Return the levels that the numbers of a variable stand for, where the release has turned levels into numbers."""
    if original is None or variable.kind.has_levels or variable.kind is original[1][variable.name].kind:
        return {}
    known, schema = original
    if not (before := schema[variable.name]).kind.has_levels:
        return {}
    levels = known[variable.name]
    names = names_of_levels(before, levels)
    return {str(code): names.get(level, level) for code, level in enumerate(levels)}
