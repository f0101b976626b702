"""A long dataset is released part by part: the same rows as in memory, the same documents, and nothing left of a failure."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.formats.csv import write_csv_blocks
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.release import shuffled_blocks
from sfumato.workspace.release.dossier import StoredParts, read_dossier
from sfumato.workspace.release.forms import DatasetForm
from sfumato.workspace.release.long_tables import can_write_parts, iterate_dataset_bytes
from sfumato.workspace.release.public_files import estimate_dataset_bytes, public_files
from sfumato.workspace.release.shuffled_blocks import CellCode
from sfumato.workspace.release.surrogate_keys import KeysByPart, surrogate_key_columns
from sfumato.workspace.release.tables import DatasetContext, dataset_bytes, released_levels
from sfumato.workspace.release.verification import verify_release
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store import disk, table_manifests
from sfumato.workspace.store.keys import run_key
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

RECORDS, PART = 700, 150
PLAN: dict[str, Any] = {
    "data": {"file": "simulated.csv", "missing": "keep"},
    "variables": {
        "person": {"kind": "count", "role": "identifier"},
        "region": {"kind": "categorical", "labels": {"n": "the north", "s": "the south"}},
        "born": {"kind": "date"},
        "visits": {"kind": "count"},
        "income": {"kind": "continuous"},
    },
    "release": {"m": 2, "seed": 3, "audience": "enclave"},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region"], "prior": "scaled"}],
    "measure": [{"method": "utility.ecdf"}],
}
FORMS: tuple[DatasetForm, ...] = ("csv", "parquet")


def people() -> Microdata:
    rng = np.random.default_rng(1)
    visits = rng.poisson(3, RECORDS).astype(np.float64)
    visits[[5, 699]] = np.nan
    frame = pd.DataFrame(
        {
            "person": np.arange(RECORDS),
            "region": rng.choice(["n", "s", "w"], RECORDS),
            "born": np.datetime64("1950-01-01") + rng.integers(0, 9_000, RECORDS),
            "visits": visits,
            "income": np.exp(rng.normal(0, 1, RECORDS)),
        }
    )
    return conform_to_schema(frame, Recipe.from_table(PLAN).schema, MissingPolicy.KEEP)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART)
    monkeypatch.setattr(shuffled_blocks, "BUCKET_CELLS", 400)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.create(tmp_path / "w", b"k" * 32) as made:
        yield made


def rows_of(content: bytes, form: DatasetForm) -> list[tuple[Any, ...]]:
    """The rows of a file, its names first."""
    if form == "csv":
        return [tuple(line.split(",")) for line in content.decode().splitlines()]
    table = pq.read_table(io.BytesIO(content))
    return [tuple(table.column_names), *(tuple(row.values()) for row in table.to_pylist())]


def files_of_run(
    workspace: Workspace, run_id: int, form: DatasetForm
) -> Callable[[], dict[str, tuple[bytes, list[bytes]]]]:
    plan = plan_release(workspace, run_id)
    policy = Policy()
    dossier = read_dossier(workspace, plan, policy, examine_release(workspace, plan, policy), form, "")
    key = run_key(workspace.directory, plan.run.key_fingerprint)

    def make() -> dict[str, tuple[bytes, list[bytes]]]:
        made = {}
        for name, content in public_files(dossier, key):
            pieces = [content] if isinstance(content, bytes) else list(content)
            made[name] = (b"".join(pieces), pieces)
        return made

    return make


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keys", [[], ["person"]])
def test_the_files_have_the_rows_that_they_have_in_memory(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, form: DatasetForm, keys: list[str]
) -> None:
    run_id = run_recipe(workspace, {**PLAN, "release": {**PLAN["release"], "surrogate_keys": keys}}, people())
    make = files_of_run(workspace, run_id, form)
    by_part = make()
    assert make() == by_part, "the same bytes each time"
    monkeypatch.setattr(StoredParts, "are_long", False)
    whole = make()
    assert list(by_part) == list(whole)
    assert by_part["codebook.csv"] == whole["codebook.csv"]
    for name, (content, pieces) in by_part.items():
        if name.startswith("dataset"):
            assert len(pieces) > 5, "the file came in pieces"
            ours, theirs = rows_of(content, form), rows_of(whole[name][0], form)
            assert ours[0] == theirs[0]
            assert Counter(map(repr, ours)) == Counter(map(repr, theirs))
            assert ours != theirs
            assert ("person" in ours[0]) is bool(keys)
            if keys:
                first = {row[0] for row in ours[1:]}
                assert len(first) == RECORDS, "everybody has a key of the own"
                assert not first & set(map(str, range(RECORDS)))
    if form == "parquet":
        ours, theirs = (
            pq.ParquetFile(io.BytesIO(one["dataset-SYNTHETIC-01.parquet"][0])).schema_arrow for one in (by_part, whole)
        )
        assert ours.equals(theirs, check_metadata=True)
        assert ours.field("visits").type == pa.int64()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_long_release_is_written_and_verified(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: DatasetForm
) -> None:
    run_id = run_recipe(workspace, PLAN, people())
    opened: list[Any] = []
    open_spool = StoredParts.open_spool

    def keep_spool(self: StoredParts) -> Any:
        opened.append(open_spool(self))
        return opened[-1]

    monkeypatch.setattr(StoredParts, "open_spool", keep_spool)
    write_run_release(workspace, run_id, tmp_path / "out", form, reason="a test of the release")
    assert opened
    assert all(one.closed for one in opened)
    found = verify_release(tmp_path / "out")
    assert not found.problems
    content = (tmp_path / f"out/public/dataset-SYNTHETIC-01.{form}").read_bytes()
    assert len(rows_of(content, form)) == 1 + RECORDS
    lines = {one["name"]: one for one in found.public_manifest["files"]}  # type: ignore[index]
    line = lines[f"dataset-SYNTHETIC-01.{form}"]
    assert (line["bytes"], line["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    (tmp_path / f"out/public/dataset-SYNTHETIC-01.{form}").write_bytes(content[:-1] + b"?")
    assert verify_release(tmp_path / "out").problems, "the negative control"


@pytest.mark.slow
def test_nothing_is_left_of_a_release_that_fails_in_the_middle_of_a_file(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_recipe(workspace, PLAN, people())
    before = {path.name for path in workspace.tables.directory.iterdir()}
    put, calls = shuffled_blocks._put_cells, []

    def fail_late(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 7:
            raise OSError(28, "No space left on device")
        put(*arguments)

    monkeypatch.setattr(shuffled_blocks, "_put_cells", fail_late)
    with pytest.raises(OSError, match="No space"):
        write_run_release(workspace, run_id, tmp_path / "out", reason="a test of the release")
    assert not (tmp_path / "out").exists()
    assert {path.name for path in workspace.tables.directory.iterdir()} == before
    monkeypatch.setattr(shuffled_blocks, "_put_cells", put)
    write_run_release(workspace, run_id, tmp_path / "out", reason="a test of the release")
    assert not verify_release(tmp_path / "out").problems


@pytest.mark.slow
@pytest.mark.parametrize("keys", [[], ["person"]])
def test_the_order_of_the_recipe_holds(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, keys: list[str]) -> None:
    release = {**PLAN["release"], "order": "original", "surrogate_keys": keys}
    make = files_of_run(workspace, run_recipe(workspace, {**PLAN, "release": release}, people()), "csv")
    content, pieces = make()["dataset-SYNTHETIC-01.csv"]
    assert len(pieces) > 1
    monkeypatch.setattr(StoredParts, "are_long", False)
    assert make()["dataset-SYNTHETIC-01.csv"] == (content, [content])


@pytest.mark.slow
def test_a_release_for_which_the_disk_has_no_room_changes_nothing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_recipe(workspace, PLAN, people())
    rows = workspace.connection.execute("SELECT COUNT(*) FROM audit").fetchone()[0]
    needed = disk.SCRATCH_OF_RELEASE * RECORDS * 5 + estimate_dataset_bytes(
        workspace.tables, plan_release(workspace, run_id), "csv"
    )
    free = [(16 << 20) + needed - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, free[0]))  # type: ignore[attr-defined]
    message = r"the release may need 16 MiB and the disk of .* has 16 MiB free; nothing was released\. Free some space, or write"
    with pytest.raises(disk.NotEnoughDisk, match=message):
        write_run_release(workspace, run_id, tmp_path / "out", reason="a test of the release")
    assert not (tmp_path / "out").exists()
    assert workspace.connection.execute("SELECT COUNT(*) FROM audit").fetchone()[0] == rows
    free[0] += 1
    write_run_release(workspace, run_id, tmp_path / "out", reason="a test of the release")
    written = sum(path.stat().st_size for path in (tmp_path / "out/public").glob("dataset-*"))
    assert written < needed < 3 * written + disk.SCRATCH_OF_RELEASE * RECORDS * 5


@pytest.mark.quick
def test_keys_of_80_bits_are_two_numbers_and_back() -> None:
    recipe = Recipe.from_table({**PLAN, "release": {**PLAN["release"], "surrogate_keys": ["person"]}})
    part = pa.table({"person": [3, None, 3, 7], "x": [1.0, 2.0, 3.0, 4.0]})
    keys = KeysByPart(recipe, b"k" * 32)
    numbers = keys.add_numbers(part.select(["x"]).to_pandas(), part)
    assert CellCode.has_code(numbers)
    assert numbers.iloc[:, 1].tolist().count(-1) == 1
    found = keys.restore_texts(numbers.iloc[::-1].reset_index(drop=True))
    assert list(found) == ["person", "x"]
    expected = surrogate_key_columns(part, recipe.form, b"k" * 32)["person"].tolist()
    assert found["person"].astype(object).where(found["person"].notna(), None).tolist() == expected[::-1]
    assert expected[0] == expected[2] != expected[3]
    assert expected[1] is None
    nobody = keys.restore_texts(numbers.iloc[1:2])["person"]
    assert nobody.isna().all()
    assert pa.Array.from_pandas(nobody).type == pa.Array.from_pandas(found["person"]).type
    assert "kkk" not in repr(keys)


SCHEMA = Schema(
    (Variable("c", Kind.CATEGORICAL), Variable("n", Kind.COUNT), Variable("x", Kind.CONTINUOUS),
     Variable("id", Kind.COUNT, role=Role.IDENTIFIER))
)  # fmt: skip


@pytest.mark.quick
def test_types_and_levels_that_differ_between_parts_are_those_of_the_table(tmp_path: Path) -> None:
    """Whole numbers are floats where one is missing; a level that no row has stays unnamed."""
    first = pd.DataFrame(
        {"c": pd.Categorical(["a", "b"], ["never", "a", "b"]), "n": [1, 2], "x": [0.5, -0.0], "id": [1, 2]}
    )
    second = pd.DataFrame(
        {"c": pd.Categorical(["late", None], ["late", "a"]), "n": [np.nan, 3.0], "x": [np.nan, 1e300], "id": [3, 4]}
    )
    tables = [pa.Table.from_pandas(one, preserve_index=False).replace_schema_metadata(None) for one in (first, second)]
    levels = released_levels(tables, ("id",))
    assert can_write_parts("parquet", tables[0], ("id",))
    for rng in (None, np.random.default_rng(1)):
        context = DatasetContext(rng=rng, levels=levels)
        content = b"".join(iterate_dataset_bytes(lambda: tables, SCHEMA, ("id",), "parquet", context))
        found = pq.read_table(io.BytesIO(content))
        rows = sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)
        assert rows == sorted([("a", 1, 0.5), ("b", 2, -0.0), ("late", None, None), (None, 3, 1e300)], key=repr)
        assert found.column("n").type == pa.int64()
        assert b"never" not in content


@pytest.mark.quick
@pytest.mark.parametrize("rows", [0, 3])
def test_one_block_is_the_file_that_was_always_written(rows: int) -> None:
    frame = pd.DataFrame(
        {"c": pd.Categorical(list("aba")[:rows], ["b", "a"]), "n": [1, 2, 3][:rows], "x": [0.5, np.nan, 1][:rows]}
    ).astype({"n": np.int64, "x": np.float64})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    context = DatasetContext(levels=released_levels([table]))
    whole = dataset_bytes(table, SCHEMA, (), "csv", context)
    assert b"".join(iterate_dataset_bytes(lambda: [table], SCHEMA, (), "csv", context)) == whole


@pytest.mark.quick
def test_no_blocks_give_no_bytes() -> None:
    assert not list(write_csv_blocks(iter([])))


@pytest.mark.quick
def test_levels_of_a_long_table_are_read_without_its_rows(tmp_path: Path) -> None:
    tables = TableStore(tmp_path / "tables")
    frame = pd.DataFrame({"c": pd.Categorical(["a"] * 299 + ["late"], ["a", "never", "late"]), "x": np.arange(300.0)})
    for some in (frame, frame.iloc[:100]):
        sha256 = tables.write_table(pa.Table.from_pandas(some, preserve_index=False))
        assert tables.has_parts(sha256) is (len(some) > PART)
        assert tables.read_levels(sha256) == {"c": ("a", "never", "late")}
