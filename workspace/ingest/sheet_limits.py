"""Limits on the size of an Excel file, checked before any of it is parsed: a few megabytes may unpack to gigabytes.

The parts of the archive are unpacked in chunks and their tags counted.
"""

from __future__ import annotations

import re
import zipfile
from typing import IO

from sfumato.engine.errors import BadInput

MAX_CELLS = 10_000_000
MAX_SHARED_TEXTS = 5_000_000
"""Most texts that cells refer to."""
MAX_TAGS = 8 * MAX_CELLS
"""Most tags of all parts: a cell with a value has four, one with a formula or formatted text some more."""
MAX_UNPACKED_BYTES = 1 << 30
"""Most bytes of all XML parts, unpacked."""
MAX_ROW_CELLS = 200_000
"""Most cells of a row: a sheet has at most 16,384 columns, and a row is what openpyxl parses at a time."""
MAX_DESCRIPTIVE_PART_BYTES = 16 << 20
DESCRIPTIVE_PARTS = ("[Content_Types]", "docProps/", "xl/workbook", "xl/styles", "xl/theme", "_rels/")
"""Beginnings of the names of parts that are parsed as a whole."""
SAVE_AS_CSV_ADVICE = "save the sheet that you need as CSV"
CHUNK_BYTES = 1 << 20
MAX_TAG_BYTES = 100
UNCOUNTED_BYTES = CHUNK_BYTES
"""Size up to which a part holds too little to be counted."""
_ROOT_ELEMENT = re.compile(rb"<(?![!?])([^\s<>/:]+:)?")
"""First element of a part, with its prefix if it has one."""


def check_archive(archive: zipfile.ZipFile) -> None:
    """Raise BadInput where the parts of an Excel file are too large to be read."""
    parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels", ".vml"))]
    # sizes of the directory can be trusted: zipfile unpacks no more of a part than that
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        raise BadInput("", f"{{name}} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB; {SAVE_AS_CSV_ADVICE}")
    counted = SheetTagCounter()
    for part in parts:
        whole = part.filename.startswith(DESCRIPTIVE_PARTS) or part.filename.endswith(".rels")
        if whole and part.file_size > MAX_DESCRIPTIVE_PART_BYTES:
            raise BadInput(
                "", f"{{name}} has a part of {part.file_size >> 20:,} MiB that describes its sheets; save it as CSV"
            )
        if part.file_size > UNCOUNTED_BYTES:
            with archive.open(part) as file:
                counted.count_part(file)


class SheetTagCounter:
    """Counter of the cells, shared texts and tags in the parts of an Excel file."""

    def __init__(self) -> None:
        self._cells = self._texts = self._tags = 0

    def count_part(self, file: IO[bytes]) -> None:
        """Count the tags of a part. Raises BadInput where there are too many."""
        rest, row = b"", 0
        prefix: bytes | None = None
        while chunk := file.read(CHUNK_BYTES):
            chunk = rest + chunk
            if prefix is None:
                root = _ROOT_ELEMENT.search(chunk)
                prefix = (root and root[1]) or b""
            last = chunk.rfind(b"<")  # what begins there may go on in the next chunk
            chunk, rest = (
                (chunk[:last], chunk[last:]) if last > 0 and len(chunk) - last < MAX_TAG_BYTES else (chunk, b"")
            )
            # counted, since what a sheet declares as its dimension may be false
            cells = _count_tags(chunk, prefix + b"c")
            self._cells += cells
            self._texts += _count_tags(chunk, prefix + b"si")
            self._tags += chunk.count(b"<")
            end = chunk.rfind(b"</" + prefix + b"row>")
            row = row + cells if end < 0 else _count_tags(chunk[end:], prefix + b"c")
            if self._cells > MAX_CELLS or self._tags > MAX_TAGS:
                raise BadInput("", f"{{name}} has more than {MAX_CELLS:,} cells; {SAVE_AS_CSV_ADVICE}")
            if self._texts > MAX_SHARED_TEXTS:
                raise BadInput("", f"{{name}} has more than {MAX_SHARED_TEXTS:,} different texts; {SAVE_AS_CSV_ADVICE}")
            if row > MAX_ROW_CELLS:
                raise BadInput("", "{name} has a row of more than 16,384 cells, which no sheet has")


def _count_tags(chunk: bytes, tag: bytes) -> int:
    """Count the opening tags of a name in a chunk."""
    return sum(chunk.count(b"<" + tag + end) for end in (b" ", b">", b"/"))
