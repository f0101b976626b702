"""Columns of long tables on the disk are those that would be in memory, and nothing is left of their files."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Variable
from sfumato.workspace.store import mapped_columns, table_manifests
from sfumato.workspace.store.mapped_columns import GrowingColumn, MappedArrays
from sfumato.workspace.store.tables import TableStore

pytestmark = pytest.mark.quick
PART = 16


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableStore:
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART)
    return TableStore(tmp_path / "tables")


def people(records: int) -> Microdata:
    i = np.arange(records)
    codes = np.where(i == records - 1, 2, i % 2).astype(np.int8)
    codes[1] = -1
    x = np.sqrt(i.astype(np.float64))
    x[3] = np.nan
    frame = pd.DataFrame(
        {
            "c": pd.Categorical.from_codes(codes, pd.Index(["b", "a", "late", "never"])),
            "n": i,
            "x": x,
            "d": (i * 86_400).astype("datetime64[s]"),
        }
    )
    schema = schema_of(
        Variable("c", Kind.CATEGORICAL, levels=("b", "a", "late", "never")), "n: count", "x: continuous", "d: date"
    )
    kinds = pd.DataFrame({"x": pd.Series(["refused" if one == 3 else None for one in i], dtype="category")})
    return Microdata(schema, frame, kinds=kinds)


def test_a_long_table_is_the_same_on_the_disk(tables: TableStore) -> None:
    data = people(5 * PART + 3)
    sha256 = tables.write_microdata(data)
    names = {path.name for path in tables.directory.iterdir()}
    expected = tables.read_microdata(sha256, data.schema, data.origin)
    with tables.mapping_long_tables() as mapped:
        assert mapped is not None
        found = tables.read_microdata(sha256, data.schema, data.origin)
        mapped.release_pages()
        assert {path.name for path in tables.directory.iterdir()} == names, "the files have no name"
        assert tables.mapped_arrays is mapped
        some = tables.read_microdata(sha256, data.schema.select_variables(["x"]), data.origin, rows=[40, 2])
    assert tables.mapped_arrays is None
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    assert found.kinds is not None
    assert expected.kinds is not None
    pd.testing.assert_frame_equal(found.kinds, expected.kinds)
    assert some.frame["x"].tolist() == [np.sqrt(40), np.sqrt(2)]
    for name in ("n", "x", "d"):
        assert not found.frame[name].to_numpy().flags.owndata


def test_a_short_table_and_one_of_another_user_stay_in_memory(tables: TableStore) -> None:
    data = people(PART)
    short, long = tables.write_microdata(data), tables.write_microdata(people(2 * PART))
    with tables.mapping_long_tables():
        tables.read_microdata(short, data.schema, data.origin)
        mapped = tables.mapped_arrays
        assert mapped is not None
        assert not list(mapped._maps)
    others = TableStore(tables.directory, "somebody")
    with others.mapping_long_tables() as none:
        assert none is None
        assert len(others.read_microdata(long, data.schema, data.origin)) == 2 * PART


def test_the_type_of_a_column_holds_the_values_of_all_pieces(tables: TableStore) -> None:
    tables.directory.mkdir()
    arrays = MappedArrays(tables.open_spool)
    column = GrowingColumn(arrays, 5)
    column.append_values(np.array([1, 2]))
    column.append_values(np.array([np.nan, 4.5]))
    column.append_values(np.array([7]))
    arrays.release_pages()
    assert column.values.dtype == np.float64
    assert np.array_equal(column.values, [1, 2, np.nan, 4.5, 7], equal_nan=True)
    kept = arrays.map_array(np.arange(3, dtype=np.uint64))
    arrays.release_pages()
    assert kept.tolist() == [0, 1, 2]
    assert arrays.new_array(0, np.dtype(np.float64)).tolist() == []
    del column, kept
    gc.collect()
    assert not list(arrays._maps), "what nobody uses is gone"
    assert not list(tables.directory.iterdir())


def test_a_full_disk_kills_no_process_and_columns_stay_in_memory(
    tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = people(3 * PART)
    sha256 = tables.write_microdata(data)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped_columns.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        MappedArrays(tables.open_spool).new_array(10, np.dtype(np.int64))
    with tables.mapping_long_tables():
        found = tables.read_microdata(sha256, data.schema, data.origin)
    pd.testing.assert_frame_equal(found.frame, data.frame)


def test_memory_is_given_back_once_it_is_much(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.directory.mkdir()
    arrays = MappedArrays(tables.open_spool)
    held = arrays.new_array(1 << 21, np.dtype(np.float64))
    held[:] = 1.0
    before = mapped_columns._mapped_bytes()
    assert before is not None
    arrays.release_pages()
    assert (mapped_columns._mapped_bytes() or 0) > before - (1 << 23), "16 MB are not much"
    monkeypatch.setattr(mapped_columns, "MOST_MAPPED_BYTES", 1 << 20)
    arrays.release_pages()
    assert (mapped_columns._mapped_bytes() or 0) < before - (1 << 23)
    assert held.sum() == 1 << 21


def test_the_file_of_an_array_that_is_gone_is_that_of_a_later_one(tables: TableStore) -> None:
    tables.directory.mkdir()
    opened = []

    def open_file() -> IO[bytes]:
        opened.append(tables.open_spool())
        return opened[-1]

    arrays, kind = MappedArrays(open_file), np.dtype(np.int64)
    first, second = arrays.new_array(1000, kind), arrays.new_array(1000, kind)
    first[:], second[:] = 1, 2
    part = first[10:20]
    del first
    gc.collect()
    third = arrays.new_array(1000, kind)
    third[:] = 3
    assert len(opened) == 3, "a part of the first array is in use"
    assert (part == 1).all()
    del part, third
    gc.collect()
    fourth, large = arrays.new_array(600, kind), arrays.new_array(5000, kind)
    fourth[:], large[:] = 4, 5
    assert len(opened) == 4, "the fourth one has the file of the first or the third, the large one its own"
    assert (second == 2).all()
    assert (fourth == 4).all()
    assert len(arrays.new_array(400, kind)) == 400
    assert len(opened) == 5, "a file of more than twice the room is kept for larger ones"
    del arrays, second, fourth, large
    gc.collect()
    assert all(file.closed for file in opened)


def test_few_unused_files_are_kept(tables: TableStore) -> None:
    tables.directory.mkdir()
    arrays = MappedArrays(tables.open_spool)
    held = [arrays.new_array(1000, np.dtype(np.int64)) for _ in range(2 * mapped_columns.MOST_UNUSED_FILES)]
    del held
    gc.collect()
    assert len(arrays._unused) == mapped_columns.MOST_UNUSED_FILES
