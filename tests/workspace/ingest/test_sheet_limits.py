"""Sheets that are too large are refused before they are parsed, whatever they declare; those that are not are read."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO

import openpyxl
import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest import sheet_limits
from sfumato.workspace.ingest.file_formats import ReadRequest
from sfumato.workspace.ingest.formats import excel
from sfumato.workspace.ingest.raw_tables import RawTable
from sfumato.workspace.ingest.sources import SourceFile

SHEET = "xl/worksheets/sheet1.xml"
SPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
TYPES = "[Content_Types].xml"


def workbook(parts: dict[str, Callable[[], list[bytes]]]) -> bytes:
    """A workbook of one sheet with other parts, each of which is given in pieces."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["a", "b"])
    plain, sink = BytesIO(), BytesIO()
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        names = [entry.filename for entry in old.infolist()]
        for name in [*names, *(name for name in parts if name not in names)]:
            with new.open(name, "w") as file:
                for piece in parts.get(name, lambda name=name: [old.read(name)])():  # type: ignore[misc]
                    file.write(piece)
    return sink.getvalue()


def sheet(row: str, times: int, dimension: str = "", prefix: str = "") -> Callable[[], list[bytes]]:
    """The XML of a sheet whose first row names two columns and whose others are ``row``, so many times."""
    of = f"{prefix}:" if prefix else ""
    space = SPACE.replace("xmlns", f"xmlns:{prefix}") if prefix else SPACE
    start = (
        f"<{of}worksheet {space}>{dimension and f'<{of}dimension ref={chr(34)}{dimension}{chr(34)}/>'}<{of}sheetData>"
    )
    names = f'<{of}row><{of}c t="str"><{of}v>a</{of}v></{of}c><{of}c t="str"><{of}v>b</{of}v></{of}c></{of}row>'
    many = row.encode() * min(times, 1000)
    return lambda: [f"{start}{names}".encode(), *[many] * (times // 1000), row.encode() * (times % 1000), f"</{of}sheetData></{of}worksheet>".encode()]  # fmt: skip


CELL, STYLED = "<c><v>7</v></c>", '<c s="1"/>'
TEXTS = f'<sst {SPACE} count="1">'.encode()
BOMBS: dict[str, tuple[dict[str, Callable[[], list[bytes]]], str]] = {
    "20 million cells": ({SHEET: sheet(f"<row>{CELL * 20}</row>", 1_000_000)}, "more than 10,000,000 cells"),
    "2 million cells that declare one": ({SHEET: sheet(f"<row>{CELL * 20}</row>", 100_000, "A1")}, "more than 1,000,000 cells"),
    "2 million cells in another space of names": (
        {SHEET: sheet(f"<x:row>{'<x:c><x:v>7</x:v></x:c>' * 20}</x:row>", 100_000, prefix="x")}, "more than 1,000,000 cells",
    ),
    "2 million empty cells with a style": ({SHEET: sheet(f"<row>{STYLED * 20}</row>", 100_000)}, "more than 1,000,000 cells"),
    "2 million cells in a second sheet": (
        {"xl/worksheets/sheet2.xml": sheet(f"<row>{CELL * 20}</row>", 100_000)}, "more than 1,000,000 cells",
    ),
    "a row of 400,000 cells": ({SHEET: sheet(f"<row>{CELL * 400_000}</row>", 1)}, "a row of more than 16,384 cells"),
    "texts that no cell has": (
        {"xl/sharedStrings.xml": lambda: [TEXTS, *[b"<si><t>x</t></si>" * 10_000] * 600, b"</sst>"]}, "more than 5,000,000 different texts",
    ),
    "two gigabytes of one letter": (
        {"xl/sharedStrings.xml": lambda: [TEXTS, b"<si><t>", *[b"x" * (1 << 24)] * 80, b"</t></si></sst>"]}, "unpacks to more than 1 GiB",
    ),
    "styles without end": ({"xl/styles.xml": lambda: [b"<styleSheet>", *[b"<xf/>" * (1 << 20)] * 20]}, "that describes its sheets"),
}  # fmt: skip
PROCESS = """
import io, resource, sys, time, zipfile
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest import sheet_limits
from sfumato.workspace.ingest.file_formats import ReadRequest
from sfumato.workspace.ingest.formats import excel
from sfumato.workspace.ingest.sources import SourceFile
if sys.argv[1:]:
    sheet_limits.MAX_CELLS = int(sys.argv[1])
content = sys.stdin.buffer.read()
before, held = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    excel.read_sheet(SourceFile("{name}", content), ReadRequest())
except BadInput as error:
    print(error.message)
spent = time.process_time() - before
print(spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) // 1024)
before = time.process_time()
with zipfile.ZipFile(io.BytesIO(content)) as archive:
    for name in archive.namelist():
        with archive.open(name) as part:
            while part.read(1 << 20):
                pass
print(time.process_time() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_sheet_that_is_too_large_is_refused_soon_and_in_little_memory(bomb: str) -> None:
    parts, said = BOMBS[bomb]
    fewer = ["1000000"] if bomb.startswith("2 ") else []
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *fewer], input=workbook(parts), capture_output=True, check=True, timeout=300
    )
    message, numbers, unpacking = done.stdout.decode().splitlines()
    seconds, megabytes = map(float, numbers.split())
    print(f"{bomb}: {seconds:.2f} s ({seconds / float(unpacking):.1f} of unpacking it all), {megabytes:.0f} MB")
    assert said in message
    assert "{name}" in message
    assert seconds < max(2.5, 12 * float(unpacking))
    assert megabytes < 60


def read_excel(content: bytes) -> RawTable:
    """Its table, read in this process."""
    return excel.read_sheet(SourceFile("{name}", content), ReadRequest())


@pytest.mark.slow
@pytest.mark.parametrize("dimension", ["", "A1", "A1:XFD1048576"])
def test_a_sheet_that_is_not_is_read_whatever_it_declares(dimension: str) -> None:
    found = read_excel(workbook({SHEET: sheet(f"<row>{CELL * 2}</row>", 40_000, dimension)})).frame
    assert found.shape == (40_000, 2)
    assert (found == 7).all().all()


@pytest.mark.slow
def test_rows_that_are_far_apart_or_wide_count_with_all_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "MAX_CELLS", 100_000)
    wide = "<row><c><v>7</v></c><c r='XFD{}'/></row>"
    rows = "".join(wide.format(number) for number in range(2, 20))
    with pytest.raises(BadInput, match="spans more than 100,000 cells"):
        read_excel(workbook({SHEET: sheet(rows, 1)}))
    with pytest.raises(BadInput, match="more than 1,048,576 rows"):
        read_excel(workbook({SHEET: sheet("<row r='99999999'><c r='A99999999'><v>7</v></c></row>", 1)}))


@pytest.mark.parametrize("size", [97, 1000, 1 << 20])
@pytest.mark.parametrize("prefix", ["", "x"])
def test_cells_are_counted_wherever_chunks_end(monkeypatch: pytest.MonkeyPatch, size: int, prefix: str) -> None:
    of = f"{prefix}:" if prefix else ""
    row = f"<{of}row>" + f"<{of}c r='A1' t='n'><{of}v>7</{of}v></{of}c>" * 10 + f"<{of}c s='2'/>" * 5 + f"</{of}row>"
    content = workbook({SHEET: sheet(row, 1000, prefix=prefix)})
    monkeypatch.setattr(sheet_limits, "CHUNK_BYTES", size)
    monkeypatch.setattr(sheet_limits, "UNCOUNTED_BYTES", 0)
    for most, fits in ((15_002, True), (15_001, False)):
        monkeypatch.setattr(sheet_limits, "MAX_CELLS", most)
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if fits:
                sheet_limits.check_archive(archive)
            else:
                with pytest.raises(BadInput, match=f"more than {most:,} cells"):
                    sheet_limits.check_archive(archive)
