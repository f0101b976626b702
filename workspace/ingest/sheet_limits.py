"""How much an Excel file may hold, found before any of it is parsed: an archive of a few megabytes unpacks to gigabytes.

Its parts are unpacked one chunk at a time and their tags counted. What a part declares of itself, such as the dimension of a sheet, decides
nothing. Numbers of bytes are those of the archive's directory: Python's zipfile unpacks no more of a part than that.
"""

from __future__ import annotations

import re
import zipfile
from typing import IO

from sfumato.engine.errors import BadInput

MOST_CELLS = 10_000_000
MOST_TEXTS = 5_000_000
"""Texts that cells share."""
MOST_TAGS = 8 * MOST_CELLS
"""A cell with a value has four, one with a formula or formatted text some more."""
MOST_BYTES = 1 << 30
"""Of all parts that are XML, unpacked."""
MOST_ROW_CELLS = 200_000
"""No sheet has more than 16,384 columns; what is parsed at a time is a row."""
MOST_WHOLE_BYTES = 16 << 20
WHOLE = ("[Content_Types]", "docProps/", "xl/workbook", "xl/styles", "xl/theme", "_rels/")
"""Parts that are parsed as a whole."""
AS_CSV = "save the sheet that you need as CSV"
CHUNK = 1 << 20
LONGEST_NAME = 100
FEW_BYTES = CHUNK
"""A smaller part holds too little to be counted."""
_ROOT = re.compile(rb"<(?![!?])([^\s<>/:]+:)?")
"""The first element, with its prefix if there is one."""


def check_archive(archive: zipfile.ZipFile) -> None:
    """Raises BadInput where the parts of an Excel file are too large to be read."""
    parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels", ".vml"))]
    if sum(part.file_size for part in parts) > MOST_BYTES:
        raise BadInput("", f"{{name}} unpacks to more than {MOST_BYTES >> 30} GiB; {AS_CSV}")
    counted = Counted()
    for part in parts:
        whole = part.filename.startswith(WHOLE) or part.filename.endswith(".rels")
        if whole and part.file_size > MOST_WHOLE_BYTES:
            raise BadInput(
                "", f"{{name}} has a part of {part.file_size >> 20:,} MiB that describes its sheets; save it as CSV"
            )
        if part.file_size > FEW_BYTES:
            with archive.open(part) as file:
                counted.part(file)


class Counted:
    """The tags of cells and texts that have been met so far."""

    def __init__(self) -> None:
        self._cells = self._texts = self._tags = 0

    def part(self, file: IO[bytes]) -> None:
        """Count the tags of a part. Raises BadInput where there are too many."""
        rest, row = b"", 0
        prefix: bytes | None = None
        while chunk := file.read(CHUNK):
            chunk = rest + chunk
            if prefix is None:
                root = _ROOT.search(chunk)
                prefix = (root and root[1]) or b""
            last = chunk.rfind(b"<")  # what begins there may go on in the next chunk
            chunk, rest = (
                (chunk[:last], chunk[last:]) if last > 0 and len(chunk) - last < LONGEST_NAME else (chunk, b"")
            )
            cells = _count(chunk, prefix + b"c")
            self._cells += cells
            self._texts += _count(chunk, prefix + b"si")
            self._tags += chunk.count(b"<")
            end = chunk.rfind(b"</" + prefix + b"row>")
            row = row + cells if end < 0 else _count(chunk[end:], prefix + b"c")
            if self._cells > MOST_CELLS or self._tags > MOST_TAGS:
                raise BadInput("", f"{{name}} has more than {MOST_CELLS:,} cells; {AS_CSV}")
            if self._texts > MOST_TEXTS:
                raise BadInput("", f"{{name}} has more than {MOST_TEXTS:,} different texts; {AS_CSV}")
            if row > MOST_ROW_CELLS:
                raise BadInput("", "{name} has a row of more than 16,384 cells, which no sheet has")


def _count(chunk: bytes, tag: bytes) -> int:
    return sum(chunk.count(b"<" + tag + end) for end in (b" ", b">", b"/"))
