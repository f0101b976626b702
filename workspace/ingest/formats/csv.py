"""Text files: CSV, TSV and their kin. Their signs are detected by ``dialects`` or declared in the recipe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

from ...errors import NotReleased
from ...visible_text import plain_cell
from ..file_formats import FileFormat, OutputTable, ReadRequest, readable_formats_text, refusal_reason

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import SourceFile

CELLS_PER_WRITE = 100_000
"""Number of cells that pandas writes at a time."""
BLOCK_CHUNKS = 10
"""Number of such chunks that are in memory as text at a time."""


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
        yield plain.iloc[rows].to_csv(index=False, header=names, lineterminator="\n", chunksize=at_once).encode()


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
