"""A generator of odd files: what a stranger, or a careless program, may give in place of a table."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Odd = tuple[str, Callable[[Path], Path]]
"""What is odd about it, and what makes it in a directory."""

SIGNS = ["\x00", "\x01", "\x07", "\x08", "\x0b", "\x1b[2J", "\x1b]52;c;eA==\x07", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u200b",
         "\ufeff", "\u2028", "\ud7ff", "\U000e0001", "\u0301", "👩\u200d👧", "=1+1", "<b>", "{{x}}", "'", '"', "\\", "%s", "../x", "; DROP TABLE run"]  # fmt: skip
CELLS = ["Infinity", "-Infinity", "inf", "nan", "NaN", "NULL", "1e309", "-1e309", "1e-400", "9" * 400, "0x1F", "1_000", "1,5", "１２",
         "true", "9999-12-31", "0001-01-01", "2024-02-30", "2024-01-01T00:00:00+14:00", "99999-01-01", "-0", "1/0", " ", "\t", "''"]  # fmt: skip


def _file(name: str, content: bytes) -> Odd:
    def make(directory: Path) -> Path:
        path = directory / "odd.csv"
        path.write_bytes(content)
        return path

    return name, make


def _rows(header: str, cell: str, rows: int = 30) -> bytes:
    lines = [header, *(f"{i},{cell if i % 3 else i},{'ab'[i % 2]}" for i in range(rows))]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _texts() -> Iterator[Odd]:
    for sign in SIGNS:
        yield _file(f"header {sign!r}", _rows(f"a{sign},b,c", "1"))
        yield _file(f"value {sign!r}", _rows("a,b,c", f"x{sign}"))
    for cell in CELLS:
        yield _file(f"cell {cell[:30]!r}", _rows("a,b,c", cell))
        yield _file(f"column of {cell[:30]!r}", ("b,c\n" + f"{cell},1\n{cell},2\n{cell},3\n" * 5).encode())
    for codec in ("utf-16", "utf-32", "latin-1", "cp037", "shift_jis", "utf-8-sig"):
        yield _file(f"in {codec}", "name,größe\nä,1\nö,2\n".encode(codec, "replace"))
    plain = _rows("a,b,c", "1")
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"):
        yield _file(f"bytes {bad!r} in the header", plain.replace(b"a,b", b"a" + bad + b",b"))
        yield _file(f"bytes {bad!r} in a value", plain.replace(b",a\n", b"," + bad + b"\n"))
        yield _file(f"bytes {bad!r} far below", plain * 2000 + bad)
    for name, content in {
        "empty": b"",
        "blank": b" \n\n",
        "one line": b"a,b,c",
        "header alone": b"a,b,c\n",
        "one value": b"a\n1\n",
        "commas": b",,,\n" * 5,
        "a name left out": b"a,,c\n1,2,3\n",
        "names twice": b"a,a,c\n1,2,3\n",
        "names alike": b"a,A,c\n1,2,3\n4,5,6\n",
        "short rows": b"a,b,c\n1,2\n3\n",
        "long rows": b"a,b\n1,2,3,4\n",
        "a quotation mark": b'a,b\n"1,2\n3,4\n',
        "quoted lines": b'a,b\n"1\n2",3\n"4\r\n5",6\n',
        "a long name": b"a" * 100_000 + b",b\n1,2\n",
        "a long value": b"a,b\n" + b"x" * (5 << 20) + b",2\n",
        "old Macintosh": b"a,b\r1,2\r3,4\r",
        "mixed ends": b"a,b\r\n1,2\n3,4\r5,6\r\n",
        "many blanks": b"\n" * 100_000,
        "semicolons": b"a;b\n1;2\n3;4\n",
        "bars": b"a|b\n1|2\n3|4\n",
        "JSON": b'{"a": [1, 2, 3]}',
        "JSON lines": b'{"a": 1}\n{"a": 2}\n',
        "HTML": b"<html><body><table><tr><td>1</td></tr></table></body></html>",
        "XML": b"<?xml version='1.0'?>\n<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>\n<x>&e;</x>",
        "a pickle": b"cos\nsystem\n(S'true'\ntR.",
        "a program": b"\x7fELF" + bytes(200),
        "an archive": b"PK\x03\x04" + bytes(200),
        "gzip": b"\x1f\x8b\x08" + bytes(200),
        "an old workbook": b"\xd0\xcf\x11\xe0" + bytes(200),
        "SQLite": b"SQLite format 3\x00" + bytes(200),
        "chance": np.random.default_rng(1).bytes(5000),
        "Parquet's first letters": b"PAR1",
        "Parquet's letters at both ends": b"PAR1" + bytes(64) + b"PAR1",
        "a NUL far below": _rows("a,b,c", "1") * 3000 + b"\x00,1,2\n",
        "many columns": ",".join(f"c{i}" for i in range(100_000)).encode()
        + b"\n"
        + b",".join([b"1"] * 100_000)
        + b"\n",
        "many equal names": ",".join(["c"] * 100_000).encode() + b"\n" + b",".join([b"1"] * 100_000) + b"\n",
        "2,000 columns": ",".join(f"c{i}" for i in range(2_000)).encode()
        + b"\n"
        + (b",".join([b"1"] * 2_000) + b"\n") * 3,
        "values of mixed zones": b"a,b\n2024-01-01T00:00:00+01:00,1\n2024-07-01T00:00:00-05:00,2\n2024-07-01T00:00:00Z,3\n",
        "dates of mixed form": b"a,b\n2024-01-01,1\n01/02/2024,2\n3 Mar 2024,3\n",
        "far dates": b"a,b\n" + b"".join(f"{year:05}-01-01,{year}\n".encode() for year in range(1, 90000, 3000)),
    }.items():
        yield _file(name, content)


def _parquet(
    name: str, table: pa.Table, change: Callable[[bytes], bytes] = lambda content: content, **options: Any
) -> Odd:
    def make(directory: Path) -> Path:
        sink = BytesIO()
        pq.write_table(table, sink, **options)
        path = directory / "odd.parquet"
        path.write_bytes(change(sink.getvalue()))
        return path

    return f"parquet: {name}", make


def _columns() -> Iterator[tuple[str, pa.Array]]:
    n = 30
    far = [dt.date(1, 1, 1), dt.date(9999, 12, 31), None] * (n // 3)
    yield "list", pa.array([[1, 2]] * n)
    yield "large list", pa.array([[1]] * n, pa.large_list(pa.int64()))
    yield "fixed list", pa.array([[1, 2]] * n, pa.list_(pa.int64(), 2))
    yield "struct", pa.array([{"x": 1}] * n)
    yield "map", pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64()))
    yield "deep", pa.array([[[[[1]]]]] * n)
    yield "list of structs", pa.array([[{"x": [1]}]] * n)
    yield "binary", pa.array([b"\xff\x00"] * n)
    yield "fixed binary", pa.array([b"abcd"] * n, pa.binary(4))
    yield "null", pa.nulls(n)
    yield "bool", pa.array([True, False, None] * (n // 3))
    yield "decimal", pa.array([decimal.Decimal("1.50"), decimal.Decimal("-2.25"), None] * (n // 3))
    yield "wide decimal", pa.array([decimal.Decimal("9" * 60)] * n, pa.decimal256(76, 2))
    yield "far dates", pa.array(far)
    yield "date64", pa.array(far, pa.date64())
    for unit in ("s", "ms", "us", "ns"):
        yield f"timestamp {unit}", pa.array(range(n), pa.timestamp(unit))
        yield f"timestamp {unit} with zone", pa.array(range(n), pa.timestamp(unit, tz="Europe/Vienna"))
    yield "far timestamp", pa.array([2**62, -(2**62), 0] * (n // 3), pa.timestamp("us"))
    yield "far seconds", pa.array([2**40, -(2**40), 0] * (n // 3), pa.timestamp("ms"))
    yield "time", pa.array([dt.time(1, 2, 3)] * n)
    yield "duration", pa.array(range(n), pa.duration("s"))
    yield "uint64", pa.array([2**64 - 1, 0, 1] * (n // 3), pa.uint64())
    yield "int64 ends", pa.array([2**63 - 1, -(2**63), 0] * (n // 3))
    yield "float16", pa.array(np.arange(n, dtype=np.float16))
    yield "not numbers", pa.array([float("nan"), float("inf"), float("-inf")] * (n // 3))
    yield "infinity", pa.array([float("inf"), 1.0, 2.0] * (n // 3))
    yield "huge", pa.array([1e308, -1e308, 5e-324] * (n // 3))
    yield "dictionary", pa.array(["a", "b", None] * (n // 3)).dictionary_encode()
    yield "dictionary of numbers", pa.array([1.5, 2.5, None] * (n // 3)).dictionary_encode()
    yield "large string", pa.array(["a", "b", "c"] * (n // 3), pa.large_string())
    yield "strings that hide", pa.array([f"x{sign}" for sign in SIGNS] + ["y"] * (n - len(SIGNS)))
    yield "long strings", pa.array(["x" * 1_000_000] * n)
    yield "empty strings", pa.array([""] * n)


def _tables() -> Iterator[Odd]:
    for name, column in _columns():
        beside = pa.array(range(len(column)))
        yield _parquet(f"{name} column", pa.table({"odd": column, "n": beside}))
        yield _parquet(f"{name} column alone", pa.table({"odd": column}))
    one = pa.table({"a": range(30), "b": ["x", "y", "z"] * 10})
    yield _parquet("no rows", one.slice(0, 0))
    yield _parquet("no columns", pa.table({}))
    yield _parquet("equal names", pa.Table.from_arrays([one["a"], one["b"]], names=["a", "a"]))
    yield _parquet("a name left out", one.rename_columns(["", "b"]))
    for sign in SIGNS[1:14]:
        yield _parquet(f"name {sign!r}", one.rename_columns([f"a{sign}", "b"]))
    yield _parquet("pandas' index", one.replace_schema_metadata({"pandas": b"not JSON"}))
    yield _parquet("a lying schema", one, lambda c: c, store_schema=False)
    yield _parquet("cut off", one, lambda content: content[: len(content) // 2])
    yield _parquet("no foot", one, lambda content: content[:-8])
    yield _parquet("a long foot", one, lambda content: content[:-8] + b"\xff\xff\xff\x7fPAR1")
    rng = np.random.default_rng(7)
    for seed in range(20):
        places = rng.integers(4, 200, 6)

        def flip(content: bytes, places: np.ndarray = places) -> bytes:
            flipped = bytearray(content)
            for place in places:
                flipped[-int(place) % len(flipped)] ^= 0xFF
            return bytes(flipped)

        yield _parquet(f"flipped bytes {seed}", one, flip)
    zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000_000, np.int32)), pa.array(["x" * 1000]))
    yield _parquet("20 GB in 2 MB", pa.table({"odd": zeros}), compression="zstd", store_schema=False)


def _no_files() -> Iterator[Odd]:
    def pipe(directory: Path) -> Path:
        os.mkfifo(directory / "odd.csv")
        return directory / "odd.csv"

    def folder(directory: Path) -> Path:
        (directory / "odd.csv").mkdir()
        return directory / "odd.csv"

    def linked_to(target: str) -> Callable[[Path], Path]:
        def make(directory: Path) -> Path:
            (directory / "odd.csv").symlink_to(target)
            return directory / "odd.csv"

        return make

    def named(name: bytes) -> Callable[[Path], Path]:
        def make(directory: Path) -> Path:
            path = directory / os.fsdecode(name)
            path.write_bytes(_rows("a,b,c", "1"))
            return path

        return make

    yield "a pipe", pipe
    yield "a directory", folder
    for target in ("/dev/zero", "/dev/random", "/dev/tty", "/dev/stdin", "/proc/self/mem", "nowhere", "odd.csv", "/"):
        yield f"a link to {target}", linked_to(target)
    for name in (
        b"a\x1b[2Jb.csv",
        b"a\nb.csv",
        b"\xff.csv",
        "\u202evsc.csv".encode(),
        b"-rf.csv",
        b"a'\"b.csv",
        b"%s{}.csv",
    ):
        yield f"a file called {name!r}", named(name)


def odd_files() -> list[Odd]:
    """Every one of them."""
    return [*_texts(), *_tables(), *_no_files()]
