"""A long file is imported some rows at a time: the same columns, questions, parts and plan as if it were read at once."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest import conformed_blocks, distinct_values, spooled_columns, text_columns
from sfumato.workspace.ingest.spooled_columns import SpooledParts, SpoolFile, column_of_numbers, count_distinct_numbers
from sfumato.workspace.service import importing
from sfumato.workspace.service.importing import ImportResult, ImportSelection, import_file, spool_place
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.workspace import Workspace

N, PART = 1_000, 128
pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART)
    monkeypatch.setattr(text_columns, "CELLS_PER_BLOCK", 700)
    monkeypatch.setattr(conformed_blocks, "ROWS_AT_ONCE", 90)
    monkeypatch.setattr(distinct_values, "ROWS_AT_ONCE", 110)
    monkeypatch.setattr(distinct_values, "UNIQUE_VALUES_FROM", 40)
    monkeypatch.setattr(spooled_columns, "BUCKET_ROWS", 64)


def frame_of(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"sex": (["m", "f"] * N)[:N], **columns})


def numbers(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


some = numbers().random(N)
CSV_COLUMNS: dict[str, Any] = {
    "real": numbers(1).normal(0, 1, N).round(9),
    "whole": numbers(2).integers(0, 10**7, N),
    "whole then real": [*range(600), *(x + 0.5 for x in range(400))],
    "few codes": numbers(3).integers(1, 6, N),
    "codes with zeros": [f"{i % 37:03}" for i in range(N)],
    "texts": np.array(["x", "y", 'with "quotes"', "line\nfeed", "ä"])[numbers(4).integers(0, 5, N)],
    "mostly missing": [None if x > 0.1 else 7 for x in some],
    "missing at first": [None] * 500 + list(range(500)),
    "signs": ["*" if x > 0.9 else f"{1000 * x:.0f}" for x in some],
    "own texts": [f"name {i}" for i in range(N)],
    "own numbers": np.arange(N) + 5_000_000,
    "dates": [f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i % 60}" for i in range(N)],
    "number dates": [20200000 + 100 * (1 + i % 12) + 1 + i % 28 for i in range(N)],
    "flags": some > 0.5,
    "flags with gaps": [None if x > 0.8 else x > 0.5 for x in some],
    "decimal commas": [f"{x:.2f}".replace(".", ",") for x in some],
    "minus zero": ["-0" if x > 0.9 else f"{5 * x:.0f}" for x in some],
    "nothing": [None] * N,
    "lat": (47 + some).round(5),
    "household": np.repeat(np.arange(N // 4), 4),
    "big": numbers(5).integers(2**40, 2**52, N),
}


def import_both(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, selection: ImportSelection | None = None
) -> tuple[tuple[ImportResult, str], tuple[ImportResult, str]]:
    """Import a file in blocks and at once, and return each result with the hash of the table."""
    found = []
    for name in ("blocks", "at_once"):
        with monkeypatch.context() as patch:
            if name == "at_once":
                patch.setattr(importing, "spool_place", lambda directory: replace(spool_place(directory), rows=10**9))
            result = import_file(tmp_path / name, str(file), "p", None, selection or ImportSelection(), with_rows=True)
        with Workspace.open(tmp_path / name) as workspace:
            found.append((result, workspace.list_datasets(result.project_id)[0].table_sha256))
            assert workspace.tables.has_parts(found[-1][1])
    return found[0], found[1]


@pytest.mark.parametrize("name", CSV_COLUMNS)
def test_a_csv_in_blocks_gives_the_columns_and_parts_of_one_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.csv"
    frame_of(**{name: CSV_COLUMNS[name]}).to_csv(file, index=False)
    first, second = import_both(tmp_path, file, monkeypatch)
    assert first == second


@pytest.mark.parametrize("kind", ["categorical", "count", "continuous"])
def test_kinds_that_the_owner_says_are_the_same_in_blocks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.csv"
    columns = {name.replace(" ", "_"): CSV_COLUMNS[name] for name in ("few codes", "signs", "missing at first")}
    frame_of(**columns).to_csv(file, index=False)
    said = ImportSelection(kinds=tuple(f"{name}={kind}" for name in columns))
    first, second = import_both(tmp_path, file, monkeypatch, said)
    assert first == second


def test_all_columns_together_are_the_same_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "people.csv"
    frame_of(**CSV_COLUMNS).to_csv(file, index=False)
    read: list[object] = []
    real = conformed_blocks.conform_blocks

    def conform(*given: Any) -> object:
        read.append(real(*given))
        return read[-1]

    monkeypatch.setattr(conformed_blocks, "conform_blocks", conform)
    first, second = import_both(tmp_path, file, monkeypatch)
    assert first == second
    assert read[0] is not None
    assert read[1] is None


@pytest.mark.parametrize("sizes", [[5] * 200, [1, 2, 3, 150, *[4] * 211], [7, 3] * 100, [50] * 20])
def test_units_lie_in_the_same_parts(sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = np.repeat(np.arange(len(sizes)) + 100, sizes)[:N]
    file = tmp_path / "people.csv"
    for order in (np.arange(N), numbers().permutation(N)):
        frame_of(hh=[f"{i:05}" for i in unit[order]], x=numbers(6).integers(0, 9, N)).to_csv(file, index=False)
        first, second = import_both(tmp_path, file, monkeypatch, ImportSelection(kinds=("hh=unit",)))
        assert first == second
        for name in ("blocks", "at_once"):
            (tmp_path / name).rename(tmp_path / f"{name} {order[0]} {order[1]}")


def parquet_columns() -> dict[str, pa.Array]:
    holes = [None if x > 0.8 else int(100 * x) for x in some]
    days = [dt.date(1950, 1, 1) + dt.timedelta(days=37 * i) for i in range(N)]
    moments = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=i * 31) for i in range(N)]
    return {
        "int8": pa.array(numbers(7).integers(0, 50, N), pa.int8()),
        "holes": pa.array(holes, pa.int64()),
        "float": pa.array(some.round(1), pa.float32()),
        "decimal": pa.array([Decimal(f"{x:.2f}") for x in some]),
        "text": pa.array([None if x > 0.9 else f"level {int(5 * x)}" for x in some]),
        "empty": pa.array(["" if x > 0.9 else f"level {int(5 * x)}" for x in some]),
        "coded": pa.array([f"level {int(5 * x)}" for x in some]).dictionary_encode(),
        "day": pa.array(days),
        "moment": pa.array(moments, pa.timestamp("us")),
        "zone": pa.array(moments, pa.timestamp("us", "UTC")),
        "flag": pa.array([x > 0.5 for x in some]),
        "flag with gaps": pa.array([None if x > 0.8 else x > 0.5 for x in some]),
        "nothing": pa.array([None] * N),
        "unsigned": pa.array([2**63 + i for i in range(N)], pa.uint64()),
    }


@pytest.mark.parametrize("name", [*parquet_columns(), ""])
def test_a_parquet_file_in_blocks_gives_the_columns_and_parts_of_one_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = parquet_columns()
    chosen = {name: columns[name]} if name else columns
    file = tmp_path / "people.parquet"
    pq.write_table(pa.table({"sex": (["m", "f"] * N)[:N], **chosen}), file, row_group_size=300)
    first, second = import_both(tmp_path, file, monkeypatch)
    assert first == second


@pytest.mark.parametrize(
    "kinds",
    [("x=count",), ("x=date",), ("x=binary",), ("whole=date:dd.mm.yyyy",), ("real=count",), ("texts=continuous",)],
)
def test_bad_input_gives_the_message_of_a_short_file_and_changes_nothing(
    kinds: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.csv"
    own = {name: CSV_COLUMNS[name] for name in ("whole", "real", "texts")}
    frame_of(x=[f"{x:.3f}" for x in some], **own).to_csv(file, index=False)
    said = []
    for rows in (PART, 10**9):
        place = replace(spool_place(tmp_path), rows=rows)
        monkeypatch.setattr(importing, "spool_place", lambda _, place=place: place)
        with pytest.raises(BadInput) as error:
            import_file(tmp_path / "new", str(file), "p", None, ImportSelection(kinds=kinds))
        said.append(str(error.value))
        assert not (tmp_path / "new").exists()
    assert said[0] == said[1]


def test_an_import_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "people.csv"
    frame_of(x=some).to_csv(file, index=False)
    Workspace.create(tmp_path / "w").close()
    before = sorted((tmp_path / "w").rglob("*"))
    real = conformed_blocks.ConformedBlocks.read_block

    def interrupt(self: conformed_blocks.ConformedBlocks, rows: slice, names: Any = None) -> object:
        if rows.start > 3 * PART:
            raise KeyboardInterrupt
        return real(self, rows, names)

    monkeypatch.setattr(conformed_blocks.ConformedBlocks, "read_block", interrupt)
    with pytest.raises(KeyboardInterrupt):
        import_file(tmp_path / "w", str(file), "p")
    left = {path for path in (tmp_path / "w").rglob("*") if path.is_file()} - set(before)
    assert {path.name for path in left} <= {"workspace.db-shm", "workspace.db-wal"}
    with Workspace.open(tmp_path / "w") as workspace:
        assert workspace.connection.execute("SELECT count(*) FROM dataset").fetchone()[0] == 0


def test_a_full_disk_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "people.csv"
    frame_of(x=some).to_csv(file, index=False)

    def write(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", write)
    with pytest.raises(BadInput, match="the disk of the workspace cannot hold the columns"):
        import_file(tmp_path / "w", str(file), "p")
    assert not (tmp_path / "w").exists()


def test_numbers_that_are_not_kept_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_values, "MOST_NUMBERS", 50)
    spool = SpoolFile(tmp_path, "FILE")
    values = np.append(numbers().integers(0, 500, 2_000) / 4, [np.nan, -0.0, 0.0, -7.5, 9_999.0])
    parts = SpooledParts(spool)
    for some_values in np.array_split(values, 13):
        parts.append_piece(some_values)
    column = column_of_numbers(parts)
    found = distinct_values.distinct_of_spooled(column)
    assert count_distinct_numbers(column) == len(np.unique(values[~np.isnan(values)]))
    assert len(found.values) + found.more_values == len(np.unique(values[~np.isnan(values)]))
    assert found.more_values > 0
    assert int(found.times.sum()) + found.more_records == len(values) - 1  # type: ignore[union-attr]
    assert (found.values.min(), found.values.max()) == (-7.5, 9_999.0)
    whole = distinct_values.distinct_of_spooled(column, keep_all=True)
    assert whole.more_values == 0
    np.testing.assert_array_equal(whole.times, np.unique(values[~np.isnan(values)], return_counts=True)[1])
