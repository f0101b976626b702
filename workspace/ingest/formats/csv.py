"""Files of text: CSV, TSV and their kin. Which signs they use is found by ``dialects``, or said by the recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

from ...errors import NotReleased
from ...visible_text import plain_cell
from ..file_formats import Asked, Format, Outgoing, readable, refusal_of

if TYPE_CHECKING:
    import pandas as pd

    from ..raw_tables import RawTable
    from ..sources import Source

CELLS = 100_000
"""Cells that are written in one way: moments of which none has a time of day as dates. By pandas' own default, which files have had."""
BLOCK_CHUNKS = 10
"""So many times as much is text at a time."""


def read(source: Source, asked: Asked) -> RawTable:
    """The table of a file of text, as the format of the recipe says, or as its first line shows. Raises BadInput."""
    from ..text_columns import table_of_text

    head = source.head
    if not head.strip():
        raise BadInput(asked.place, f'"{source.name}" is empty')
    if why := refusal_of(head):
        raise BadInput(asked.place, f'"{source.name}" {why}')
    if asked.form is None and b"\0" in head[:65536]:
        raise BadInput(asked.place, f'"{source.name}" is not a table; these files can be read: {readable()}')
    return table_of_text(source, asked)


def write(out: Outgoing) -> bytes:
    """A CSV file in which no text is a formula to a spreadsheet program."""
    from io import BytesIO

    import pandas as pd

    from sfumato.engine.data.blocks import row_blocks

    frame = out.frame
    if len(set(map(plain_cell, map(str, frame)))) < frame.shape[1]:
        raise NotReleased(
            "the names of two variables differ only by characters that a CSV file does not show; choose another --format"
        )
    plain = pd.DataFrame({name: _plain_cells(frame[name], str(name)) for name in frame}, copy=False).rename(
        columns=plain_cell
    )
    at_once, sink = max(1, CELLS // max(1, plain.shape[1])), BytesIO()
    for rows in [*row_blocks(len(plain), 1, BLOCK_CHUNKS * at_once)] or [slice(0)]:
        some = plain.iloc[rows].to_csv(index=False, header=not rows.start, lineterminator="\n", chunksize=at_once)
        sink.write(some.encode())
    return sink.getvalue()


def _plain_cells(values: pd.Series, name: str) -> pd.Series:
    import pandas as pd

    if isinstance(values.dtype, pd.CategoricalDtype):
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


FORMAT = Format(
    kind="a CSV",
    listed="CSV, TSV",
    suffixes=(".csv", ".tsv", ".txt"),
    read=read,
    write=write,
    spreadsheet_safe=True,
    media_type="text/csv",
    charset="UTF-8",
    needs=("pandas",),
    manual="Any separator, encoding and decimal sign, found or set in `[data.format]`.",
    order=1,
)
