"""Tables are stored bit for bit, once, for the owner alone, and damage is noticed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import schema_from_json, schema_to_json

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=6)


@pytest.fixture
def tables(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path / "tables")


@st.composite
def microdata(draw: st.DrawFn) -> Microdata:
    """Records of every kind; levels in any order, some of them without a record."""
    records = draw(st.integers(1, 12))
    levels = draw(st.lists(WORDS, min_size=1, max_size=6, unique=True))
    sides = draw(st.lists(WORDS, min_size=1, max_size=2, unique=True))
    schema = schema_of(
        Variable("c", Kind.CATEGORICAL, levels=tuple(levels)),
        Variable("o", Kind.ORDINAL, levels=tuple(reversed(levels))),
        Variable("b", Kind.BINARY, levels=tuple(sides)),
        "n: count",
        "x: continuous",
        "d: date",
    )

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=records, max_size=records))

    frame = pd.DataFrame(
        {
            "c": column(st.sampled_from(levels)),
            "o": column(st.sampled_from(levels)),
            "b": column(st.sampled_from(sides)),
            "n": column(st.integers(0, 2**53 - 1)),
            "x": column(st.floats(allow_nan=False, allow_infinity=False)),
            "d": pd.Series(column(st.dates())).astype("str"),
        }
    )
    return conform_to_schema(frame, schema)


@pytest.mark.slow
@QUICK
@given(data=microdata())
def test_microdata_come_back_bit_for_bit(tables: TableStore, data: Microdata) -> None:
    sha256 = tables.write_microdata(data)
    read = tables.read_microdata(sha256, schema_from_json(schema_to_json(data.schema)), data.origin)
    pd.testing.assert_frame_equal(read.frame, data.frame, check_exact=True)
    assert read.schema == data.schema
    assert np.array_equal(np.signbit(read.frame["x"]), np.signbit(data.frame["x"]))
    assert tables.write_microdata(read) == sha256


@QUICK
@given(
    array=arrays_of.arrays(
        st.sampled_from([np.dtype(kind) for kind in ("f8", "f4", ">f8", "i8", "i4", "u1", "bool", "c16")]),
        arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_arrays_of_any_shape_come_back_bit_for_bit(tables: TableStore, array: np.ndarray) -> None:
    read = tables.read_arrays(tables.write_arrays({"draws": array, "other way round": array.T}))
    assert list(read) == ["draws", "other way round"]
    for name, written in (("draws", array), ("other way round", array.T)):
        assert (read[name].dtype, read[name].shape) == (written.dtype, written.shape)
        assert read[name].tobytes() == written.tobytes()


@pytest.mark.slow
def test_more_levels_than_a_parquet_dictionary_holds_keep_their_order(tables: TableStore) -> None:
    levels = [f"a rather long level, number {i * 7919 % 100_003}" for i in range(60_000)]
    variable = Variable("c", Kind.CATEGORICAL, levels=tuple(levels))
    codes = np.arange(59_000)[::-1]
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, pd.Index(levels))})
    data = Microdata(Schema((variable,)), frame)
    read = tables.read_microdata(tables.write_microdata(data), data.schema, "confidential")
    pd.testing.assert_frame_equal(read.frame, data.frame)


def test_more_records_than_a_row_group_holds_keep_their_levels(tables: TableStore) -> None:
    variable = Variable("c", Kind.ORDINAL, levels=("z", "b", "a", "unused"))
    codes = np.concatenate([np.zeros(1_100_000, dtype=np.int8), np.tile(np.array([2, 1], dtype=np.int8), 50_000)])
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, pd.Index(variable.levels), ordered=True)})
    data = Microdata(Schema((variable,)), frame)
    read = tables.read_microdata(tables.write_microdata(data), data.schema, "confidential")
    assert read.frame["c"].dtype == data.frame["c"].dtype
    assert np.array_equal(read.frame["c"].cat.codes, codes)


def test_equal_tables_are_one_file_and_others_are_not(tables: TableStore) -> None:
    first = tables.write_arrays({"a": np.arange(3.0)})
    assert tables.write_arrays({"a": np.arange(3.0)}) == first
    assert tables.write_arrays({"a": np.arange(3)}) != first
    assert tables.write_arrays({"b": np.arange(3.0)}) != first
    assert len(list(tables.directory.iterdir())) == 3


def test_files_and_folder_are_their_owners_alone(tables: TableStore) -> None:
    sha256 = tables.write_arrays({"a": np.arange(3.0)})
    assert stat.S_IMODE(tables.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(tables.path_of(sha256).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["cut", "one bit", "empty", "another table"])
def test_damage_is_noticed(tables: TableStore, damage: str) -> None:
    sha256 = tables.write_arrays({"a": np.arange(50.0)})
    other = tables.path_of(tables.write_arrays({"a": np.arange(51.0)})).read_bytes()
    content = bytearray(tables.path_of(sha256).read_bytes())
    content[len(content) // 2] ^= 1
    wrong = {"cut": content[:-1], "one bit": content, "empty": b"", "another table": other}[damage]
    tables.path_of(sha256).write_bytes(wrong)
    with pytest.raises(DamagedTable, match="has changed since it was written"):
        tables.read_stored_table(sha256)


def test_a_table_that_is_gone_is_named(tables: TableStore) -> None:
    sha256 = tables.write_arrays({"a": np.arange(3.0)})
    tables.path_of(sha256).unlink()
    with pytest.raises(DamagedTable, match=f"{sha256}.parquet is gone"):
        tables.read_stored_table(sha256)


def test_a_write_that_fails_leaves_nothing(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        tables.write_arrays({"a": np.arange(3.0)})
    assert list(tables.directory.iterdir()) == []


def test_what_a_killed_writer_left_is_swept_after_a_day(tables: TableStore) -> None:
    kept = tables.path_of(tables.write_arrays({"a": np.arange(3.0)}))
    old, new = tables.directory / ".writing-old", tables.directory / ".writing-new"
    old.touch()
    new.touch()
    for path in (old, kept):
        os.utime(path, (0, 0))
    tables.remove_unfinished()
    assert sorted(tables.directory.iterdir()) == sorted([kept, new])
    TableStore(tables.directory / "not there yet").remove_unfinished()


THREADS = """
import os, sys
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from sfumato.workspace.store.tables import TableStore

def threads():
    return len(os.listdir("/proc/self/task"))

path = Path(sys.argv[1])
before = threads()
TableStore(path.parent).read_stored_table(path.stem)
after = threads()
pq.read_table(pa.BufferReader(path.read_bytes()))
print(before, after, threads(), flush=True)
os._exit(0)  # those of the control may have Python abort at its end
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_a_table_starts_no_thread_that_could_outlive_python(tables: TableStore) -> None:
    path = tables.path_of(tables.write_table(pa.table({"a": range(1000), "b": ["x", "y"] * 500})))
    said = subprocess.run([sys.executable, "-P", "-c", THREADS, str(path)], capture_output=True, text=True, check=True)
    before, after, control = map(int, said.stdout.split())
    assert after == before
    assert control > before, "the control: the library's own way starts some"


def test_a_variable_with_a_name_of_the_stored_table_is_refused(tmp_path: Path) -> None:
    """Its values would come back as the kinds of another variable's missing values."""
    schema = Schema((Variable("age", Kind.COUNT), Variable("kind of missing: age", Kind.CATEGORICAL)))
    frame = pd.DataFrame({"age": [1, 2], "kind of missing: age": ["a", "b"]})
    data = conform_to_schema(frame, schema)
    with pytest.raises(BadInput, match="rename the column") as caught:
        TableStore(tmp_path / "tables").write_microdata(data)
    assert caught.value.place == "variables.kind of missing: age"
    source = SourceFile("a.csv", frame.to_csv(index=False).encode())
    with pytest.raises(BadInput, match="rename the column"):
        read_file_microdata(source, DataSource(), schema, 1, key=b"")
    assert not (tmp_path / "tables").exists()
