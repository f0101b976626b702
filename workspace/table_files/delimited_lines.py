"""Lines of text files whose cells a sign separates, with the number of each line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator

from sfumato.engine.errors import BadInput

LINE_END = re.compile(r"\r\n|\r|\n")
NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?")


def split_lines(text: str, separator: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells, without blanks around them, of each line that is not empty. Raises BadInput."""
    if len(separator) != 1:
        raise BadInput(place, f"cells are separated by one sign, not {separator!r}")
    # Labels may have other signs that ``splitlines`` takes for line ends.
    for number, line in enumerate(LINE_END.split(text), start=1):
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True))
        except (csv.Error, StopIteration):
            raise BadInput(
                f"{place}, line {number}", "has a quotation mark that is not closed, or text after a closed one"
            ) from None
        yield number, [cell.strip() for cell in cells]


def parse_number(cell: str, separator: str, place: str) -> float:
    """Return the number in a cell; a comma is decimal where it separates no cells. Raises BadInput."""
    if NUMBER.fullmatch(cell) and math.isfinite(number := float(cell.replace(",", "."))):
        return number
    hint = "; write it without signs of thousands" if separator != "," and "." in cell and "," in cell else ""
    raise BadInput(place, f'"{cell}" is not a number{hint}')


def parse_count(cell: str, separator: str, place: str) -> int:
    """Return the whole number of 0 or more in a cell. Raises BadInput."""
    number = parse_number(cell, separator, place)
    if number < 0 or not number.is_integer():
        raise BadInput(place, f'"{cell}" is no number of records; it must be whole, and 0 or more')
    return int(number)


def format_number(number: float, decimals: int = 0) -> str:
    """Return a number with at least so many decimals, and as many as it needs to be read back to itself."""
    short = f"{number:.{decimals}f}"
    # repr is the shortest text that reads back to the number.
    return short if float(short) == number else repr(float(number))


def check_code(code: str) -> str:
    """Return a code that is read back as it is written. Raises ValueError for one with blanks around it."""
    if code != code.strip():
        raise ValueError(f"{code!r} cannot be a code in such a file, which has no blanks around codes; rename it")
    return code


def join_cells(cells: list[str], separator: str, quote_all: bool = False) -> str:
    """Return the cells as a line, in quotation marks where needed. Raises ValueError for a cell of several lines."""
    for cell in cells:
        if LINE_END.search(cell):
            raise ValueError(f"{cell!r} cannot be a cell of such a file; rename it")
    found = io.StringIO()
    writer = csv.writer(
        found, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    )
    writer.writerow(cells)
    return found.getvalue()
