"""Of a stored table only the columns that are asked for stay in memory, and what was hashed is what is parsed."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.store import tables as verified_bytes
from sfumato.workspace.store.tables import HashingFile, TablePart, TableStore, read_verified_parquet

LEVELS = ("z", "b", "a", "é")
SCHEMA = schema_of("a: continuous", "a.b: count", Variable("level", Kind.CATEGORICAL, levels=LEVELS), "day: date")


def frame_of(records: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    codes = rng.integers(-1, len(LEVELS), records)
    return pd.DataFrame(
        {
            "a": np.where(rng.random(records) < 0.1, np.nan, rng.normal(0, 1, records)),
            "a.b": rng.integers(0, 2**53, records),
            "level": pd.Categorical.from_codes(codes, pd.Index(LEVELS)),
            "day": rng.integers(0, 10**9, records).astype("datetime64[s]"),
        }
    )


def bytes_of(frame: pd.DataFrame, group: int) -> bytes:
    sink = io.BytesIO()
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, sink, compression="zstd", row_group_size=group)
    return sink.getvalue()


def opened(path: Path, content: bytes) -> io.BufferedReader:
    path.write_bytes(content)
    return path.open("rb")


@pytest.mark.parametrize("piece", [1, 7, 1 << 22])
def test_what_stays_are_the_bytes_of_the_columns_and_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(verified_bytes, "READ_PIECE_BYTES", piece)
    monkeypatch.setattr(verified_bytes, "FOOTER_READ_BYTES", 64)
    content = bytes_of(frame_of(900), 400)
    with opened(tmp_path / "t", content) as file:
        found = read_verified_parquet(
            file, len(content), hashlib.sha256(content).hexdigest(), TablePart(frozenset(["a.b"]))
        )
    assert found is not None
    kept = np.frombuffer(found, dtype=np.uint8)
    own = np.frombuffer(content, dtype=np.uint8)
    assert kept.shape == own.shape
    assert set(np.unique(np.where(kept == own, 0, kept))) == {0}
    assert 0.3 < np.mean(kept == own) < 0.8, "the control: other columns are not there"
    read = pq.ParquetFile(pa.BufferReader(found), pre_buffer=False).read(["a.b"], use_threads=False)
    assert read.equals(pq.read_table(io.BytesIO(content), columns=["a.b"]))


@pytest.mark.parametrize("group", [1, 3, 250, 10_000])
@pytest.mark.parametrize("names", [("a", "a.b", "level", "day"), ("level",), ("day", "a")])
def test_columns_come_back_from_any_row_groups(tmp_path: Path, group: int, names: tuple[str, ...]) -> None:
    frame = frame_of(250)
    content = bytes_of(frame, group)
    sha256 = hashlib.sha256(content).hexdigest()
    (tmp_path / f"{sha256}.parquet").write_bytes(content)
    schema = Schema(tuple(SCHEMA[name] for name in names))
    found = TableStore(tmp_path).read_microdata(sha256, schema, "confidential").frame
    pd.testing.assert_frame_equal(found, frame[list(names)], check_exact=True)


def test_row_groups_with_levels_of_their_own_have_them_in_the_order_of_the_file(tmp_path: Path) -> None:
    parts = [["b", "a"], ["a", "c", None], ["b", "d"]]
    sink = io.BytesIO()
    kind = pa.dictionary(pa.int8(), pa.string())
    with pq.ParquetWriter(sink, pa.schema([("level", kind)])) as writer:
        for part in parts:
            writer.write_table(pa.table({"level": pa.array(part).dictionary_encode().cast(kind)}))
    sha256 = hashlib.sha256(sink.getvalue()).hexdigest()
    (tmp_path / f"{sha256}.parquet").write_bytes(sink.getvalue())
    schema = Schema((Variable("level", Kind.CATEGORICAL, levels=("b", "a", "c", "d")),))
    found = TableStore(tmp_path).read_microdata(sha256, schema, "confidential").frame["level"]
    assert list(found.cat.categories) == ["b", "a", "c", "d"]
    assert found.astype("object").where(found.notna(), None).tolist() == [value for part in parts for value in part]


def test_a_file_that_changes_between_footer_and_hash_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever swaps the file back before it is hashed is not believed either: what would be parsed was never read."""
    tables = TableStore(tmp_path)
    schema = Schema((SCHEMA["a"], SCHEMA["a.b"]))
    sha256 = tables.write_microdata(Microdata(schema, frame_of(50)[["a", "a.b"]].fillna(0)))
    honest = tables.path_of(sha256).read_bytes()
    other = bytes_of(frame_of(60)[["a.b", "a"]], 20)
    read_spans = verified_bytes._spans_of_part
    calls = []

    def swapped(file: Any, size: int, columns: Any) -> list[tuple[int, int]]:
        calls.append(size)
        if len(calls) > 1:
            return read_spans(file, size, columns)
        return read_spans(io.BytesIO(other), len(other), columns)

    monkeypatch.setattr(verified_bytes, "_spans_of_part", swapped)
    with pytest.raises(DamagedTable, match="has changed since it was written"):
        tables.read_microdata(sha256, schema, "confidential")
    assert len(calls) == 2
    assert tables.path_of(sha256).read_bytes() == honest
    assert len(tables.read_microdata(sha256, schema, "confidential")) == 50, "the control"


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_a_table_that_is_no_parquet_though_its_hash_is_right_is_not_parsed(
    tmp_path: Path, columns: list[str] | None
) -> None:
    content = os.urandom(300)
    sha256 = hashlib.sha256(content).hexdigest()
    (tmp_path / f"{sha256}.parquet").write_bytes(content)
    with pytest.raises((pa.ArrowException, OSError)):
        TableStore(tmp_path).read_stored_table(sha256, columns)


def test_what_is_written_is_hashed_on_the_way(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        sink = HashingFile(file)
        for piece in (b"a", memoryview(b"bc"), pa.py_buffer(b"def")):
            sink.write(piece)
        sink.flush()
    assert (tmp_path / "f").read_bytes() == b"abcdef"
    assert sink.sha256 == hashlib.sha256(b"abcdef").hexdigest()


def test_the_bytes_of_a_table_are_those_of_a_file_written_at_once(tmp_path: Path) -> None:
    """Hashes of tables are in the records of old runs: a table written by row groups into a file keeps them."""
    frame = frame_of(3000)
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_statistics=True)
    assert TableStore(tmp_path).write_microdata(Microdata(SCHEMA, frame)) == hashlib.sha256(sink.getvalue()).hexdigest()


@pytest.mark.parametrize("settled", [True, False])
def test_a_file_that_has_not_changed_is_hashed_once_and_a_changed_one_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    monkeypatch.setattr(verified_bytes, "SETTLED_NANOSECONDS", -1 if settled else 10**18)
    monkeypatch.setattr(verified_bytes, "_compared_files", {})
    read, asked = verified_bytes.read_verified_parquet, list[str | None]()

    def note(file: Any, size: int, sha256: str | None, part: TablePart) -> Any:
        asked.append(sha256)
        return read(file, size, sha256, part)

    monkeypatch.setattr(verified_bytes, "read_verified_parquet", note)
    tables = TableStore(tmp_path)
    schema = Schema((SCHEMA["a"], SCHEMA["a.b"]))
    sha256 = tables.write_microdata(Microdata(schema, frame_of(50)[["a", "a.b"]].fillna(0)))
    first = tables.read_microdata(sha256, schema, "confidential").frame
    again = tables.read_microdata(sha256, schema.select_variables(["a.b"]), "confidential").frame
    pd.testing.assert_frame_equal(first[["a.b"]], again, check_exact=True)
    assert asked == [sha256, None if settled else sha256]
    path = tables.path_of(sha256)
    times, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DamagedTable):
        tables.read_microdata(sha256, schema, "confidential")
