"""A long table is a list of parts: the same records come back, and what is read is verified, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.data.table_blocks import hash_of_blocks
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.service import deletion
from sfumato.workspace.service.deletion import delete_project
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.stored_blocks import StoredBlocks
from sfumato.workspace.store.tables import ASIDE_PREFIX, TableStore
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.maintenance import check_workspace_health, find_orphans
from sfumato.workspace.upkeep.recorded_tables import read_recorded_tables, recorded_tables
from sfumato.workspace.views.rows import find_stored_rows

PART = 16


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART)


@pytest.fixture
def tables(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path / "tables")


def people(records: int, start: int = 0) -> Microdata:
    """Records of every kind; the last level has no record, and one comes only late."""
    schema = schema_of(
        Variable("c", Kind.CATEGORICAL, levels=("b", "a", "late", "never")), "n: count", "x: continuous", "d: date"
    )
    i = np.arange(start, start + records)
    codes = np.where(i > start + records - 3, 2, i % 2).astype(np.int8)
    codes[1] = -1
    days = (i * 86_400).astype("datetime64[s]")
    x = np.sqrt(i.astype(np.float64))
    x[3] = np.nan
    frame = pd.DataFrame(
        {"c": pd.Categorical.from_codes(codes, pd.Index(["b", "a", "late", "never"])), "n": i, "x": x, "d": days}
    )
    kinds = pd.DataFrame(
        {"x": pd.Series(["refused" if one == 3 else None for one in range(records)], dtype="category")}
    )
    return Microdata(schema, frame, kinds=kinds)


def in_households(sizes: list[int]) -> Microdata:
    unit = np.repeat(np.arange(len(sizes)), sizes)
    schema = schema_of(replace(schema_of("id: count")["id"], role=Role.UNIT), "x: continuous")
    return Microdata(schema, pd.DataFrame({"id": unit, "x": np.arange(len(unit), dtype=np.float64)}))


def names_in(tables: TableStore) -> set[str]:
    return {path.name for path in tables.directory.iterdir()}


@pytest.mark.parametrize("records", [1, PART - 1, PART])
def test_a_short_table_is_the_one_file_that_it_always_was(tables: TableStore, records: int) -> None:
    table, at_once = pa.table({"a": np.arange(records)}), BytesIO()
    pq.write_table(table, at_once, compression="zstd", write_statistics=True)
    sha256 = tables.write_table(table)
    assert sha256 == hashlib.sha256(at_once.getvalue()).hexdigest()
    assert names_in(tables) == {f"{sha256}.parquet"}
    assert tables.read_manifest(sha256).parts == (table_manifests.PartFile(sha256, records),)


@pytest.mark.parametrize("records", [PART + 1, 3 * PART, 3 * PART + 5])
def test_a_long_table_comes_back_from_its_parts(tables: TableStore, records: int) -> None:
    data = people(records)
    sha256 = tables.write_microdata(data)
    manifest = tables.read_manifest(sha256)
    assert [part.rows for part in manifest.parts] == [PART] * (records // PART) + [records % PART] * bool(
        records % PART
    )
    assert names_in(tables) == {f"{sha256}.parts", *(f"{one}.parquet" for one in manifest.file_hashes)}
    assert hashlib.sha256(tables.manifest_path_of(sha256).read_bytes()).hexdigest() == sha256
    read = tables.read_microdata(sha256, data.schema, "confidential")
    pd.testing.assert_frame_equal(read.frame, data.frame, check_exact=True)
    assert read.kinds is not None
    assert data.kinds is not None
    pd.testing.assert_frame_equal(read.kinds, data.kinds)
    assert read.sha256 == data.sha256
    assert tables.count_table_records(sha256) == records
    assert tables.write_microdata(read) == sha256
    assert len(tables.read_stored_table(sha256, ["n"])) == records


def test_blocks_have_the_levels_of_the_whole_table(tables: TableStore) -> None:
    data = people(2 * PART + 5)
    sha256 = tables.write_microdata(data)
    blocks = list(tables.iterate_microdata(sha256, data.schema.select_variables(["n", "c"]), "confidential"))
    assert [len(block) for block in blocks] == [PART, PART, 5]
    assert all(block.frame["c"].cat.categories.tolist() == ["b", "a", "late", "never"] for block in blocks)
    joined = np.concatenate([block.frame["c"].cat.codes for block in blocks])
    assert np.array_equal(joined, data.frame["c"].cat.codes)


@pytest.mark.parametrize("records", [PART, 2 * PART + 3])
def test_a_table_without_its_records_keeps_levels_and_types(tables: TableStore, records: int) -> None:
    data = people(records)
    blocks = StoredBlocks(tables, tables.write_microdata(data), data.schema, "confidential")
    assert (len(blocks.head), len(blocks), blocks.n_blocks) == (0, records, -(-records // PART))
    pd.testing.assert_series_equal(blocks.head.frame.dtypes, data.frame.dtypes)
    assert blocks.head.frame["c"].cat.categories.equals(data.frame["c"].cat.categories)
    assert hash_of_blocks(blocks) == data.sha256


def test_parts_of_other_levels_have_those_of_all(tables: TableStore) -> None:
    schema = schema_of("c: categorical")
    blocks = [Microdata(schema, pd.DataFrame({"c": pd.Categorical(list(one))})) for one in ("ba", "cb")]
    sha256 = tables.write_microdata_blocks(blocks)
    first, second = tables.iterate_microdata(sha256, schema, "confidential")
    assert first.frame["c"].cat.categories.tolist() == second.frame["c"].cat.categories.tolist() == ["a", "b", "c"]
    assert second.frame["c"].tolist() == ["c", "b"]
    assert tables.read_microdata(sha256, schema, "confidential").frame["c"].tolist() == list("bacb")


@pytest.mark.parametrize("wanted", [[0], [40, 3, 17], [15, 16, 16, 47], [5, 4, 3]])
def test_rows_come_back_in_the_order_that_was_asked(tables: TableStore, wanted: list[int]) -> None:
    data = people(3 * PART)
    sha256 = tables.write_microdata(data)
    assert tables.read_rows(sha256, wanted, ["n"]).column("n").to_pylist() == wanted
    read = tables.read_microdata(sha256, data.schema, "confidential", wanted)
    assert read.frame["n"].tolist() == wanted
    with pytest.raises(DamagedTable, match="fewer rows"):
        tables.read_rows(sha256, [3 * PART])


def test_what_is_read_is_verified_and_nothing_else(tables: TableStore) -> None:
    data = people(3 * PART)
    sha256 = tables.write_microdata(data)
    broken = tables.path_of(tables.read_manifest(sha256).parts[1].sha256)
    content = bytearray(broken.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    assert tables.read_rows(sha256, [0, 47], ["n"]).column("n").to_pylist() == [0, 47]
    blocks = tables.iterate_microdata(sha256, data.schema, "confidential")
    assert len(next(blocks)) == PART
    for read in (
        lambda: next(blocks),
        lambda: tables.read_rows(sha256, [0, PART]),
        lambda: tables.read_stored_table(sha256),
        lambda: tables.read_microdata(sha256, data.schema, "confidential"),
        lambda: list(tables.iterate_row_groups(sha256)),
        lambda: tables.parse_table(sha256),
        lambda: tables.verify_table(sha256),
    ):
        with pytest.raises(DamagedTable, match="has changed since it was written"):
            read()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"parts":[],"levels":""}',
        b'{"parts":[["../../etc/passwd",1]],"levels":""}',
        json.dumps({"parts": [["0" * 64, -1]], "levels": ""}).encode(),
        json.dumps({"parts": [["0" * 64, 1]], "levels": "/etc/passwd"}).encode(),
        json.dumps({"parts": [["0" * 64, 1]], "levels": 3}).encode(),
    ],
)
def test_a_manifest_names_hashes_alone(tables: TableStore, content: bytes) -> None:
    tables.write_table(pa.table({"a": [1]}))
    sha256 = hashlib.sha256(content).hexdigest()
    tables.manifest_path_of(sha256).write_bytes(content)
    for read in (
        tables.read_manifest,
        tables.read_stored_table,
        tables.count_table_records,
        tables.verify_table,
        tables.files_of,
    ):
        with pytest.raises(DamagedTable, match="no list of parts"):
            read(sha256)


def test_a_manifest_that_was_changed_is_noticed(tables: TableStore) -> None:
    sha256, other = (tables.write_microdata(people(2 * PART, start)) for start in (0, 1))
    tables.manifest_path_of(sha256).write_bytes(tables.manifest_path_of(other).read_bytes())
    with pytest.raises(DamagedTable, match="has changed since it was written"):
        tables.read_rows(sha256, [0])


def test_units_lie_in_one_part_where_their_records_follow_each_other(tables: TableStore) -> None:
    data = in_households([5] * 11)
    assert part_rows(tables, data) == [15, 15, 15, 10]
    mixed = Microdata(data.schema, data.frame.iloc[np.argsort(data.frame["x"] % 5, kind="stable")])
    assert part_rows(tables, mixed) == [16, 16, 16, 7]
    assert part_rows(tables, in_households([3, PART + 1, 2])) == [16, 6]


def part_rows(tables: TableStore, data: Microdata) -> list[int]:
    return [part.rows for part in tables.read_manifest(tables.write_microdata(data)).parts]


def test_a_manifest_of_an_older_version_is_read(tables: TableStore) -> None:
    data = people(2 * PART)
    manifest = tables.read_manifest(tables.write_microdata(data))
    older = {**json.loads(manifest.to_bytes()), "whole_units": "id"}
    content = json.dumps(older).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    tables.manifest_path_of(sha256).write_bytes(content)
    assert tables.read_manifest(sha256) == manifest
    assert tables.verify_table(sha256) > len(content)


def test_a_table_whose_blocks_end_with_an_error_leaves_nothing(tables: TableStore) -> None:
    kept = tables.write_microdata(people(2 * PART))
    before = sorted(tables.directory.iterdir())

    def blocks() -> Iterator[Microdata]:
        yield people(PART)
        yield people(PART, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tables.write_microdata_blocks(blocks())
    assert sorted(tables.directory.iterdir()) == before
    assert tables.count_table_records(kept) == 2 * PART


def test_a_read_opens_the_manifest_once(tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    data = people(2 * PART)
    sha256 = tables.write_microdata(data)
    read: list[str] = []
    real = TableStore._read_manifest_bytes

    def read_bytes(self: TableStore, sha256: str) -> bytes | None:
        read.append(sha256)
        return real(self, sha256)

    monkeypatch.setattr(TableStore, "_read_manifest_bytes", read_bytes)
    tables.read_microdata(sha256, data.schema, "confidential")
    list(tables.iterate_microdata(sha256, data.schema, "confidential"))
    tables.read_rows(sha256, [0])
    assert len(read) == 3


def test_a_file_of_an_older_version_with_several_row_groups_is_one_part(tables: TableStore) -> None:
    tables.write_table(pa.table({"a": [1]}))
    content = BytesIO()
    pq.write_table(pa.table({"n": np.arange(3 * PART)}), content, row_group_size=PART)
    sha256 = hashlib.sha256(content.getvalue()).hexdigest()
    tables.path_of(sha256).write_bytes(content.getvalue())
    schema = schema_of("n: count")
    assert tables.read_microdata(sha256, schema, "confidential").frame["n"].tolist() == list(range(3 * PART))
    assert tables.read_rows(sha256, [40, 2]).column("n").to_pylist() == [40, 2]
    assert [len(one) for one in tables.iterate_row_groups(sha256)] == [PART] * 3
    assert [len(one) for one in tables.iterate_microdata(sha256, schema, "confidential")] == [3 * PART]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Workspace.create(tmp_path / "workspace") as made:
        yield made


@pytest.fixture
def store_dataset(workspace: Workspace) -> Callable[[str, Microdata], int]:
    def store(project: str, data: Microdata) -> int:
        with workspace.write_transaction():
            return workspace.add_dataset(workspace.ensure_project(project), "people.csv", "0" * 64, data)

    return store


def grow_old(workspace: Workspace) -> None:
    for path in workspace.tables.directory.iterdir():
        os.utime(path, (time.time() - 7200,) * 2)


def test_parts_of_a_named_table_are_no_orphans_and_are_checked(
    workspace: Workspace, store_dataset: Callable[[str, Microdata], int]
) -> None:
    store_dataset("a", people(2 * PART))
    grow_old(workspace)
    assert find_orphans(workspace) == []
    found = read_recorded_tables(workspace, recorded_tables(workspace.connection))
    assert (found.files, found.wrong, found.notes) == (1, (), ())
    assert found.bytes == sum(path.stat().st_size for path in workspace.tables.directory.iterdir())
    assert not [one for one in check_workspace_health(workspace.directory) if one.what in ("table", "orphans")]
    stray = workspace.tables.write_table(pa.table({"a": np.arange(2 * PART)}))
    grow_old(workspace)
    assert set(find_orphans(workspace)) == set(workspace.tables.files_of(stray))
    _, part, *_ = workspace.tables.files_of(workspace.list_datasets(1)[0].table_sha256)
    part.unlink()
    assert read_recorded_tables(workspace, recorded_tables(workspace.connection)).wrong


@pytest.mark.parametrize("is_gone", [True, False])
def test_while_a_list_of_parts_cannot_be_read_no_part_is_removed(
    workspace: Workspace, store_dataset: Callable[[str, Microdata], int], monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    monkeypatch.setattr(deletion, "SETTLED_SECONDS", -1.0)
    store_dataset("a", people(2 * PART))
    store_dataset("b", people(3 * PART, start=1))
    manifest, *parts = workspace.tables.files_of(workspace.list_datasets(1)[0].table_sha256)
    content = manifest.read_bytes()
    manifest.unlink() if is_gone else manifest.write_bytes(content[:-1])
    begun = workspace.tables.directory / f"{ASIDE_PREFIX}cut"
    begun.write_bytes(b"")
    grow_old(workspace)
    assert find_orphans(workspace) == [begun]
    delete_project(workspace, 2)
    assert all(part.exists() for part in parts)
    assert [one for one in check_workspace_health(workspace.directory) if one.what == "table"]
    manifest.write_bytes(content)
    assert workspace.tables.verify_table(workspace.list_datasets(1)[0].table_sha256)
    grow_old(workspace)
    assert len(find_orphans(workspace)) == 5  # the deleted table with three parts, and the file that was begun


def test_deleting_removes_parts_and_leaves_those_that_another_table_has(
    workspace: Workspace, store_dataset: Callable[[str, Microdata], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "SETTLED_SECONDS", -1.0)
    long, short = people(3 * PART), people(3 * PART)
    short.frame.loc[2 * PART :, "n"] += 1
    store_dataset("a", long)
    store_dataset("b", short)
    kept = workspace.list_datasets(2)[0].table_sha256
    assert len(list(workspace.tables.directory.iterdir())) == 2 + 2 + 2 + 1  # two parts and the levels are shared
    delete_project(workspace, 1)
    assert set(workspace.tables.directory.iterdir()) == set(workspace.tables.files_of(kept))
    assert workspace.tables.verify_table(kept)


def test_a_part_of_a_kept_table_stays_though_another_deleted_table_is_gone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first part of a long table is a short table too, which is deleted with one whose file is lost."""
    monkeypatch.setattr(deletion, "SETTLED_SECONDS", -1.0)
    kept = workspace.tables.write_table(pa.table({"x": range(2 * PART)}))
    short = workspace.tables.write_table(pa.table({"x": range(PART)}))
    other = workspace.tables.write_table(pa.table({"x": [7]}))
    assert workspace.tables.path_of(short) in workspace.tables.files_of(kept), "else the case is another one"
    monkeypatch.setattr(deletion, "named_table_hashes", lambda _: {kept})
    assert deletion._remove_files(workspace, [], {short, other, "0" * 64}) == 0
    assert workspace.tables.verify_table(kept)
    assert not workspace.tables.path_of(other).exists()


def test_parts_are_adopted(
    workspace: Workspace, store_dataset: Callable[[str, Microdata], int], tmp_path: Path
) -> None:
    data = people(2 * PART + 1)
    store_dataset("a", data)
    assert adopt_workspace(workspace.directory, tmp_path / "mine").tables == 1
    with Workspace.open(tmp_path / "mine") as own:
        pd.testing.assert_frame_equal(own.read_stored_dataset(own.list_datasets(1)[0]).frame, data.frame)


def test_rows_are_shown_from_the_parts_that_have_them(
    workspace: Workspace, store_dataset: Callable[[str, Microdata], int]
) -> None:
    number = store_dataset("a", people(3 * PART))
    stored = find_stored_rows(workspace, number)
    assert [row[1] for row in stored.read_page(PART - 2, 4)] == [14, 15, 16, 17]
    assert [row[1] for row in stored.read_page(3 * PART - 1, 9)] == [3 * PART - 1]
    assert stored.read_page(3 * PART, 9) == []
    broken = workspace.tables.path_of(stored.parts.parts[1].sha256)
    broken.write_bytes(broken.read_bytes()[:-1])
    fresh = find_stored_rows(workspace, number)
    assert [row[1] for row in fresh.read_page(0, 2)] == [0, 1]
    with pytest.raises(DamagedTable, match="has changed"):
        fresh.read_page(PART, 1)
