"""Files of long released tables, which are written some rows at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.data.arrays import iterate_ahead
from sfumato.engine.data.row_buckets import OpenFile
from sfumato.engine.data.schema import Kind, Schema

from ..ingest.file_formats import OutputTable, format_by_name
from .forms import DatasetForm
from .shuffled_blocks import CellCode, shuffle_blocks
from .surrogate_keys import KeysByPart
from .tables import DatasetContext, names_of_levels, rename_levels

TableParts = Callable[[], Iterable[pa.Table]]
"""Gives the rows of a stored table from the beginning, some at a time."""


def can_write_parts(form: DatasetForm, head: pa.Table, left_out: Collection[str]) -> bool:
    """Return whether a table of these columns can be written in a form some rows at a time."""
    names = [name for name in head.column_names if name not in left_out]
    return format_by_name(form).write_blocks is not None and CellCode.has_code(head.select(names).to_pandas())


def iterate_dataset_bytes(
    parts: TableParts,
    schema: Schema,
    left_out: Collection[str],
    form: DatasetForm,
    context: DatasetContext,
    open_file: OpenFile = io.BytesIO,
    keys: KeysByPart | None = None,
) -> Iterator[bytes]:
    """Yield a long stored table as a file of ``form``, as ``dataset_bytes`` returns one in memory.

    The context has no kinds of missing value, and ``keys`` are those of the rows in place of the context's. Shuffled
    rows go to files that ``open_file`` opens. Raises NotReleased.
    """
    written = format_by_name(form)
    assert written.write_blocks is not None
    assert context.kinds is None
    assert not context.keys
    made = () if keys is None else keys.variables
    variables = {variable.name: variable for variable in (*schema, *made)}
    counts = [one.name for one in variables.values() if one.kind is Kind.COUNT]
    head, rows, fractional = _survey_parts(
        parts, left_out, counts, () if keys is None else keys.recipe.renumbered_units
    )
    levels = context.levels or {}
    blocks = _iterate_frames(parts, head, keys)
    if context.rng is not None:
        if keys is not None:
            head = keys.add_numbers(head, next(iter(parts())).slice(0, 0))
        blocks = _shuffle_frames(blocks, head, rows, context.rng, open_file)

    def finish(frame: pd.DataFrame) -> OutputTable:
        """Return some rows as the format writes them."""
        frame = frame if keys is None else keys.restore_texts(frame)
        counts = {
            name: frame[name].astype("Int64")
            for name in frame
            if variables[str(name)].kind is Kind.COUNT and frame[name].dtype.kind == "f" and name not in fractional
        }
        frame = frame.assign(**{str(name): values for name, values in counts.items()})
        called = {
            str(name): rename_levels(frame[name], names_of_levels(variables[str(name)], levels.get(str(name), ())))
            for name in frame
        }
        return OutputTable(
            frame.assign(**called),
            variables,
            levels,
            pd.DataFrame(index=frame.index),
            context.named_kinds,
            context.note,
        )

    return written.write_blocks(iterate_ahead(map(finish, blocks)))


def _survey_parts(
    parts: TableParts, left_out: Collection[str], counts: Sequence[str], first: Sequence[str] = ()
) -> tuple[pd.DataFrame, int, set[str]]:
    """Return the table without rows, with types and levels for all of them, the number of rows, and the ``counts`` that
    are not whole. The columns ``first`` come before the others, left out or not.
    """
    used: dict[str, dict[str, bool]] = {}
    rows, fractional, head = 0, set[str](), pd.DataFrame()
    for part in parts():
        others = [name for name in part.column_names if name not in left_out and name not in first]
        frame = part.select([*first, *others]).to_pandas()
        for name, values in frame.items():
            if isinstance(values.dtype, pd.CategoricalDtype):
                known = used.setdefault(str(name), {})
                occurring = set(values.cat.codes.unique())
                for code, level in enumerate(values.cat.categories):
                    known[level] = known.get(level, False) or code in occurring
                continue
            if name in counts and values.dtype.kind == "f" and not (values.dropna() % 1 == 0).all():
                fractional.add(str(name))
            # whole numbers are floats in a part with a missing value
            if rows and head[name].dtype != values.dtype:
                head = head.assign(**{str(name): head[name].astype(np.result_type(head[name].dtype, values.dtype))})
        head = head if rows else frame.iloc[:0]
        rows += len(frame)
    kept = {name: [level for level, occurs in levels.items() if occurs] for name, levels in used.items()}
    return head.assign(**{name: head[name].cat.set_categories(some) for name, some in kept.items()}), rows, fractional


def _iterate_frames(parts: TableParts, head: pd.DataFrame, keys: KeysByPart | None) -> Iterator[pd.DataFrame]:
    """Yield the rows of the parts with the columns, the types and the levels of ``head``, and the numbers of their keys."""
    for part in parts():
        frame = part.select(list(head)).to_pandas()
        typed = {
            str(name): frame[name].cat.set_categories(kind.categories)
            if isinstance(kind, pd.CategoricalDtype)
            else frame[name].astype(kind)
            for name, kind in head.dtypes.items()
        }
        frame = frame.assign(**typed)
        yield frame if keys is None else keys.add_numbers(frame, part)


def _shuffle_frames(
    blocks: Iterator[pd.DataFrame], head: pd.DataFrame, rows: int, rng: np.random.Generator, open_file: OpenFile
) -> Iterator[pd.DataFrame]:
    """Yield the rows of blocks in an order that depends on the set of rows and on ``rng`` alone."""
    code = CellCode(head)
    for cells in shuffle_blocks(iterate_ahead(map(code.encode_rows, blocks)), rows, rng, open_file):
        yield code.decode_rows(cells)
