"""How a file of text is read, in words and tables: what was found, why, what its owner has to decide, and the first rows."""

from __future__ import annotations

from ..ingest.dialects import Detection, Reason
from .tables import Table, table, text

NAMES = {
    "encoding": "encoding",
    "delimiter": "separator",
    "quote": "quotes",
    "header": "names in the first line",
    "decimal": "decimal sign",
    "thousands": "sign of thousands",
    "missing": "missing codes",
    "skip": "lines above the table",
    "trim": "blanks around cells left out",
}
SIGNS = {"\t": "tab", " ": "blank", "": "none"}
MOST_COLUMNS = 8
MOST_ROWS = 5
MOST_CELLS = 20
"""Of a value, across."""


def sign(value: str) -> str:
    """A sign as it can be seen and typed."""
    return SIGNS.get(value, value)


def reading_table(found: Detection) -> Table:
    """What was found of a file, key by key, with the reason; a mark where its owner has to look."""
    lines = [[NAMES[one.key], sign(one.value), "?" if one.doubtful else "", one.said] for one in found.reasons]
    return table(("read with", "value", "", "why"), lines)


def first_rows(found: Detection, width: int | None = None) -> Table:
    """The first rows under the format that was found, of as many columns as fit into ``width`` cells. Its cells are records: shown to who has
    the file, before anything is stored.
    """
    made = _columns(found, min(len(found.header), MOST_COLUMNS))
    for number in range(len(made.columns) - 1, 0, -1):
        if width is None or max(map(len, text(made).splitlines())) <= width:
            break
        made = _columns(found, number)
    return made


def _columns(found: Detection, number: int) -> Table:
    more = len(found.header) - number
    rows = [[*row[:number], *(["…"] if more else [])] for row in found.rows[:MOST_ROWS]]
    lines = [
        [_cut(cell) for cell in line] for line in ((*found.header[:number], *([f"{more} more"] if more else [])), *rows)
    ]
    return table(lines[0], lines[1:])


def _cut(cell: str) -> str:
    return cell if len(cell) <= MOST_CELLS else f"{cell[: MOST_CELLS - 1]}…"


def doubt_lines(found: Detection) -> list[str]:
    """What the file does not settle, a line each, with the option that settles it."""
    return [doubt(one) for one in found.doubts]


def doubt(one: Reason) -> str:
    """One doubt: what was taken, what it may be instead, and how to say so."""
    others = "; ".join(map(sign, one.others))
    how = {"header": "--no-header or --header", "missing": "--missing CODE"}.get(one.key, f"--{one.key} SIGN")
    how = how.replace("SIGN", "NAME") if one.key == "encoding" else how
    may_be = others if one.key == "missing" else f"may be {others}"
    return f"? {NAMES[one.key]}: {sign(one.value) or 'none'} is taken, {may_be}; {how} says which"
