"""Text files: CSV, TSV and their kin. Their signs are detected by ``dialects`` or declared in the recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

from ...errors import NotReleased
from ...visible_text import plain_cell
from ..file_formats import FileFormat, OutputTable, ReadRequest, readable_formats_text, refusal_reason

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import SourceFile

CELLS_PER_WRITE = 100_000
"""Number of cells that pandas writes at a time."""
BLOCK_CHUNKS = 10
"""Number of such chunks that are in memory as text at a time."""
MANY_ROWS = 1 << 14
"""Rows from which on lines are written by Arrow, where it writes the same bytes."""
SPECIAL_CHARACTERS = frozenset(',"\r\n')
"""Characters for which a cell is written in quotes."""
LEAST_SHOWN, MOST_DIGITS_SHOWN = 1e-4, 1e9
"""Numbers that Arrow writes without an exponent."""


def read_csv_table(source: SourceFile, request: ReadRequest) -> RawTable:
    """Read the table of a text file, as the format of the recipe says, or as its first line shows. Raises BadInput."""
    from ..text_columns import read_text_table

    head = source.head
    if not head.strip():
        raise BadInput(request.place, f'"{source.name}" is empty')
    if why := refusal_reason(head):
        raise BadInput(request.place, f'"{source.name}" {why}')
    if request.form is None and b"\0" in head[:65536]:
        raise BadInput(
            request.place, f'"{source.name}" is not a table; these files can be read: {readable_formats_text()}'
        )
    return read_text_table(source, request)


def write_csv_file(out: OutputTable) -> bytes:
    """Write a CSV file in which no text is a formula to a spreadsheet program. Raises NotReleased for ambiguous names."""
    return b"".join(write_csv_blocks(iter([out])))


def write_csv_blocks(blocks: Iterator[OutputTable]) -> Iterator[bytes]:
    """Yield the bytes of a CSV file as ``write_csv_file`` writes it, of a table that comes some rows at a time."""
    for number, out in enumerate(blocks):
        yield from _iterate_rows(out, with_names=not number)


def _iterate_rows(out: OutputTable, *, with_names: bool) -> Iterator[bytes]:
    """Yield some rows of a CSV file, after its line of names where they are the first."""
    import pandas as pd

    from sfumato.engine.data.blocks import row_blocks

    frame = out.frame
    if len(set(map(plain_cell, map(str, frame)))) < frame.shape[1]:
        raise NotReleased(
            "the names of two variables differ only by characters that a CSV file does not show; choose another --format"
        )
    cells = {name: _date_texts(frame[name], out.variables[str(name)]) for name in frame}
    plain = pd.DataFrame({name: _neutralise_formulas(cells[name], str(name)) for name in frame}, copy=False).rename(
        columns=plain_cell
    )
    # pandas drops the time of day where a whole chunk has none, so the size of chunks is part of the bytes;
    # it is the default by which earlier files were written
    at_once = max(1, CELLS_PER_WRITE // max(1, plain.shape[1]))
    for rows in [*row_blocks(len(plain), 1, BLOCK_CHUNKS * at_once)] or [slice(0)]:
        names = with_names and not rows.start
        if len(plain) >= MANY_ROWS and (written := _write_plain_lines(plain.iloc[rows])) is not None:
            if names:
                yield plain.iloc[:0].to_csv(index=False, lineterminator="\n").encode()
            yield written
            continue
        yield plain.iloc[rows].to_csv(index=False, header=names, lineterminator="\n", chunksize=at_once).encode()


def _write_plain_lines(frame: pd.DataFrame) -> bytes | None:
    """Return the lines of rows of numbers and of levels that need no quotes, several times sooner than pandas does, and
    byte for byte as it writes them; None for others.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    found = []
    for name in frame:
        values = frame[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            levels = [str(level) for level in values.cat.categories]
            if any(not level or SPECIAL_CHARACTERS.intersection(level) for level in levels):
                return None
            codes = pa.array(values.cat.codes.to_numpy(), mask=values.isna().to_numpy())
            found.append(pa.DictionaryArray.from_arrays(codes, pa.array(levels, pa.string())).dictionary_decode())
        elif values.dtype == "float64":
            found.append(_texts_of_floats(values.to_numpy()))
        elif values.dtype in ("int64", "Int64"):
            found.append(pa.array(values))
        else:
            return None
    if len(found) < 2:  # a line of nothing but a missing value has quotes
        return None
    sink = pa.BufferOutputStream()
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(pa.table(found, names=list(map(str, range(len(found))))), sink, options)
    return bytes(sink.getvalue())


def _texts_of_floats(values: NDArray[np.float64]) -> pa.Array:
    """Return the shortest texts that read as these numbers, as pandas writes them; none of a missing one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.cast(pa.array(values, mask=np.isnan(values)), pa.string())
    size = np.abs(values)
    whole = pa.array((np.rint(values) == values) & (size < MOST_DIGITS_SHOWN))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    # Arrow writes others with an exponent.
    others = ~((values == 0) | ((size >= LEAST_SHOWN) & (size < MOST_DIGITS_SHOWN)) | np.isnan(values))
    if others.any():
        texts = pc.replace_with_mask(
            texts, pa.array(others), pa.array(values[others].astype(str).tolist(), pa.string())
        )
    return texts


def _date_texts(values: pd.Series, variable: Variable) -> pd.Series:
    """Return a column with its dates as texts of the form that the variable declares; another column unchanged."""
    import numpy as np
    import pandas as pd

    form = variable.date_form
    if form is None or not pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values
    from sfumato.engine.data.date_texts import write_dates

    codes, moments = pd.factorize(values)
    # the code -1 of a missing value selects the last
    texts = np.array([*write_dates(moments.to_numpy(), form), None], dtype=object)
    return pd.Series(texts[codes], index=values.index)


def _neutralise_formulas(values: pd.Series, name: str) -> pd.Series:
    """Return a column whose texts a spreadsheet program does not take for formulas."""
    import pandas as pd

    if isinstance(values.dtype, pd.CategoricalDtype):
        # two levels that become one would merge records of different values
        cells = [plain_cell(str(level)) for level in values.cat.categories]
        if len(set(cells)) < len(cells):
            raise NotReleased(
                f'two levels of "{plain_cell(name)}" differ only by characters that a CSV file does not show; '
                "give them labels that differ, or choose another --format"
            )
        return values.cat.rename_categories(cells)
    if values.dtype == object or pd.api.types.is_string_dtype(values.dtype):
        return values.map(plain_cell, na_action="ignore")
    return values


FORMAT = FileFormat(
    kind="a CSV",
    list_title="CSV, TSV",
    suffixes=(".csv", ".tsv", ".txt"),
    read=read_csv_table,
    write=write_csv_file,
    write_blocks=write_csv_blocks,
    spreadsheet_safe=True,
    media_type="text/csv",
    charset="UTF-8",
    required_modules=("pandas",),
    manual_sentence="Any separator, encoding and decimal sign, found or set in `[data.format]`.",
    order=1,
)
