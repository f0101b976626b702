"""Released datasets as files: levels by their labels again, identifiers left out, and a codebook beside them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.data.schema import Kind, Schema, Variable

from ..errors import NotReleased
from ..ingest.file_formats import Outgoing, format_called
from ..store.tables import KIND_OF
from ..visible_text import plain_cell
from .forms import Form

Levels = Mapping[str, Sequence[str]]
"""By variable the levels that may be named."""
MISSING = "missing"
"""The label of a kind of missing value that has none."""


def released_levels(tables: Iterable[pa.Table], left_out: Collection[str] = ()) -> Levels:
    """The levels that occur in some of the released tables, by variable, in their order.

    A stored table knows all levels of the confidential data. One that no released record has may be a person's who alone
    had it, so that it is not named: not in a codebook, and not in the dictionary of a Parquet file.
    """
    found: dict[str, dict[str, bool]] = {}
    for table in tables:
        for field in table.schema:
            if pa.types.is_dictionary(field.type) and field.name not in left_out:
                column = table.column(field.name).combine_chunks()
                used = set(column.indices.drop_null().unique().to_pylist())
                known = found.setdefault(field.name, {})
                for code, level in enumerate(column.dictionary.to_pylist()):
                    known[str(level)] = known.get(str(level), False) or code in used
    return {name: tuple(level for level, occurs in levels.items() if occurs) for name, levels in found.items()}


def level_names(variable: Variable, levels: Sequence[str]) -> dict[str, str]:
    """What each labelled one of these levels is called: its label, with the code behind it where that is not enough."""
    plain = {level: variable.labels.get(level) or level for level in levels}
    times = Counter(plain.values())
    return {
        code: name if times[name] == 1 else f"{name} ({code})"
        for code, name in plain.items()
        if code in variable.labels
    }


def dataset_bytes(
    table: pa.Table,
    schema: Schema,
    left_out: Collection[str],
    form: Form,
    rng: np.random.Generator | None = None,
    levels: Levels | None = None,
    note: str = "",
    kinds: pd.DataFrame | None = None,
    named: Levels | None = None,
) -> bytes:
    """A stored table (n rows) as a file of ``form``, without the columns ``left_out``, the rest in their order.

    With ``rng`` its rows are shuffled. ``levels`` are those of all tables that go out together, where there are several;
    ``note`` says what the table is, where the format has room for it. A format that keeps codes has labels too, and the
    ``kinds`` (n, k) of missing values, of which those ``named`` may be declared. Raises NotReleased where the form has no room for what there is.
    """
    written = format_called(form)
    if written.write is None:
        raise NotReleased(f"{written.kind} file cannot be written; choose another --format")
    variables = {variable.name: variable for variable in schema}
    names = [name for name in table.column_names if name not in left_out]
    levels = released_levels([table], left_out) if levels is None else levels
    frame = table.select(names).to_pandas()
    kinds = pd.DataFrame(index=frame.index) if kinds is None else kinds
    frame = frame.assign(**{f"{KIND_OF}{name}": kinds[name] for name in kinds})
    frame = frame if rng is None else _shuffled(frame, rng)
    told = frame[[f"{KIND_OF}{name}" for name in kinds]].set_axis(list(kinds), axis=1)
    frame = frame[names]
    if not written.keeps_codes:
        frame = frame.assign(**{name: _whole(frame[name]) for name in names if variables[name].kind is Kind.COUNT})
        called = {name: _labelled(frame[name], level_names(variables[name], levels.get(name, ()))) for name in names}
        frame = frame.assign(**called)
    return written.write(Outgoing(frame, variables, levels, told, named or {}, note))


def _shuffled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows in an order that the rows themselves and ``rng`` decide, whatever order they were in.

    They are sorted by their values before they are permuted: a permutation alone could be undone by whoever has seed and
    key, and a public key everybody has.
    """
    ordered = frame.sort_values(list(frame.columns), kind="stable", na_position="last")
    return ordered.iloc[rng.permutation(len(ordered))].reset_index(drop=True)


def _whole(values: pd.Series) -> pd.Series:
    """Counts as whole numbers again: where a value is missing, be it in the confidential data alone, stored ones are floats."""
    return values.astype("Int64") if values.dtype.kind == "f" and (values.dropna() % 1 == 0).all() else values


def _labelled(values: pd.Series, names: Mapping[str, str]) -> pd.Series:
    """The levels that occur, by their names."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values
    values = values.cat.remove_unused_categories()
    return values.cat.rename_categories([names.get(str(level), str(level)) for level in values.cat.categories])


def codebook(
    schema: Schema,
    levels: Levels,
    left_out: Collection[str],
    original: tuple[pa.Table, Schema] | None = None,
    named: Levels | None = None,
) -> str:
    """A CSV table: the title and kind of each variable, a line for each of its labelled ``levels``, which occur in the release.

    ``original`` has the confidential table: a variable whose levels the release has made numbers has a line for what 0
    and 1 were. ``named`` are the kinds of missing value that the datasets tell apart.
    """
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("variable", "title", "kind", "code", "label"))
    for variable in schema:
        if variable.name not in left_out:
            names = level_names(variable, levels.get(variable.name, ())) or _numbered(variable, original)
            missing = {kind: variable.labels.get(kind, MISSING) for kind in (named or {}).get(variable.name, ())}
            about = (variable.name, variable.title, variable.kind.value)
            for level in [*names.items(), *missing.items()] or [("", "")]:
                lines.writerow([plain_cell(cell) for cell in (*about, *level)])
    return text.getvalue()


def _numbered(variable: Variable, original: tuple[pa.Table, Schema] | None) -> dict[str, str]:
    """What the numbers of a variable that had levels stand for."""
    if original is None or variable.kind.has_levels or variable.kind is original[1][variable.name].kind:
        return {}
    table, schema = original
    if not (before := schema[variable.name]).kind.has_levels:
        return {}
    levels = [str(level) for level in table.column(variable.name).combine_chunks().dictionary.to_pylist()]
    names = level_names(before, levels)
    return {str(code): names.get(level, level) for code, level in enumerate(levels)}
