"""The records most at risk as a run leaves them ranked, against sorting all records at once, row groups apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sfumato.engine.execution.record_risk import RecordRisk, average_record_risk
from sfumato.workspace.errors import DamagedTable
from sfumato.workspace.store.rankings import RecordRanking, rank_stored_records, read_ranking, write_ranking
from sfumato.workspace.store.tables import TableStore

KEY = "risk.identification"
FEW = 12


@pytest.fixture
def tables(tmp_path: Path) -> TableStore:
    (tmp_path / "tables").mkdir()
    return TableStore(tmp_path / "tables")


def in_groups(tables: TableStore, values: Mapping[str, Any], size: int = 7) -> str:
    """A table of the workspace with so many rows in a row group; its hash."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(values)), sink, row_group_size=size)
    content = sink.getvalue().to_pybytes()
    sha256 = hashlib.sha256(content).hexdigest()
    tables.path_of(sha256).write_bytes(content)
    return sha256


def simulated_file(records: int, seed: int, *, asked: float = 1.0) -> dict[str, np.ndarray]:
    """Candidates and hits with many ties; of some records nothing is known."""
    rng = np.random.default_rng(seed)
    candidates = rng.integers(0, 4, records).astype(np.float32)
    candidates[np.random.default_rng(0).random(records) >= asked] = np.nan
    return {"candidates": candidates, "hit": rng.random(records) < 0.5}


def same(one: RecordRisk | None, other: RecordRisk | None) -> bool:
    if one is None or other is None:
        return one is other
    parts = (
        (getattr(risk, name) for name in ("probability", "candidates", "unique", "prior")) for risk in (one, other)
    )
    return all(
        (a is None and b is None) or np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(*parts, strict=True)
    )


@given(
    keys=arrays.arrays(
        np.float64, st.tuples(st.just(4), st.integers(1, 30)), elements=st.sampled_from([0.0, 0.25, 0.5, np.nan])
    ),
    most=st.integers(1, 31),
)
def test_the_first_of_a_ranking_are_the_first_of_all(keys: np.ndarray, most: int) -> None:
    risk = RecordRisk(keys[0], keys[1], keys[2], 1, keys[3])
    assert risk.ranking(most).tolist() == risk.ranking()[:most].tolist()


@pytest.mark.parametrize("asked", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(5))
def test_ranking_row_groups_apart_is_ranking_all_at_once(tables: TableStore, asked: float, seed: int) -> None:
    draws = [simulated_file(50, 10 * seed + draw, asked=asked) for draw in range(3)]
    own = simulated_file(50, 10 * seed + 9, asked=asked)
    found = rank_stored_records(tables, KEY, [in_groups(tables, one) for one in draws], in_groups(tables, own), FEW)
    risk, scored = average_record_risk(draws), average_record_risk([own])
    first = risk.ranking()[:FEW]
    assert found.records.tolist() == first.tolist()
    assert same(found.risk, risk.select(first))
    assert same(found.confidential_risk, scored.select(first))
    assert (len(found), found.n_with_risk, found.total) == (FEW, int(risk.is_examined.sum()), 50)
    whole = rank_stored_records(tables, KEY, [in_groups(tables, one) for one in draws], None, 1_000)
    assert whole.records.tolist() == risk.ranking().tolist()
    assert whole.confidential_risk is None


def test_a_ranking_by_another_order_is_another(tables: TableStore) -> None:
    """The negative control."""
    draws = [simulated_file(50, 3)]
    found = rank_stored_records(tables, KEY, [in_groups(tables, one) for one in draws], None, FEW)
    assert found.records.tolist() != np.argsort(average_record_risk(draws).probability)[:FEW].tolist()


@pytest.mark.parametrize("confidential", [True, False])
def test_what_is_stored_comes_back_exactly(tables: TableStore, confidential: bool) -> None:
    draws = [in_groups(tables, simulated_file(50, seed)) for seed in range(2)]
    made = rank_stored_records(tables, KEY, draws, draws[0] if confidential else None, FEW)
    back = read_ranking(tables, write_ranking(tables, made))
    assert back.records.tolist() == made.records.tolist()
    assert same(back.risk, made.risk)
    assert same(back.confidential_risk, made.confidential_risk)
    assert (back.n_with_risk, back.total, back.risk.datasets) == (50, 50, 2)


def test_tables_of_other_records_are_not_ranked_together(tables: TableStore) -> None:
    one = in_groups(tables, simulated_file(50, 1))
    for other in (in_groups(tables, simulated_file(49, 1)), in_groups(tables, simulated_file(35, 1))):
        with pytest.raises(DamagedTable, match="not of the same records"):
            rank_stored_records(tables, KEY, [one, other], None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": np.array([0, 50], np.int64)},
        {"records": np.array([-1, 3], np.int64)},
        {"records": np.array([0.0, 1.0])},
        {"risk.probability": np.array([0.5])},
        {"risk.candidates": np.array([1, 2])},
        {"counts": np.array([1, 50, 2])},
        {"counts": np.array([2, 50])},
        {"counts": np.array([2, 50, 0])},
    ],
)
def test_what_is_no_ranking_is_not_read_as_one(tables: TableStore, wrong: dict[str, np.ndarray]) -> None:
    right = {
        "records": np.array([4, 2], np.int64),
        "counts": np.array([2, 50, 2]),
        "risk.probability": np.array([0.5, 0.25]),
        "risk.candidates": np.array([2.0, 4.0]),
    }
    assert len(read_ranking(tables, tables.write_arrays(right))) == 2
    with pytest.raises(DamagedTable, match="does not hold a ranking"):
        read_ranking(tables, tables.write_arrays({**right, **wrong}))
    with pytest.raises(DamagedTable, match="does not hold a ranking"):
        read_ranking(tables, tables.write_arrays({"counts": right["counts"]}))


@pytest.mark.slow
@given(rows=st.lists(st.integers(0, 24), max_size=8))
def test_some_rows_of_a_table_are_those_of_the_whole(tmp_path_factory: pytest.TempPathFactory, rows: list[int]) -> None:
    directory = tmp_path_factory.mktemp("rows")
    tables = TableStore(directory)
    values = {"number": np.arange(25.0), "word": [f"w{i % 3}" for i in range(25)]}
    sha256 = in_groups(tables, values)
    assert tables.read_rows(sha256, rows).to_pylist() == pa.table(values).take(pa.array(rows, pa.int64())).to_pylist()
    assert tables.read_rows(sha256, rows, ["word"]).column_names == ["word"]
    with pytest.raises(DamagedTable, match="fewer rows"):
        tables.read_rows(sha256, [*rows, 25])


def test_bytes_that_changed_anywhere_are_seen_by_who_reads_one_row(tables: TableStore) -> None:
    sha256 = in_groups(tables, {"number": np.arange(25.0)})
    content = bytearray(tables.path_of(sha256).read_bytes())
    content[40] ^= 1
    tables.path_of(sha256).write_bytes(content)
    with pytest.raises(DamagedTable, match="has changed"):
        tables.read_rows(sha256, [24])


def test_a_ranking_is_of_all_records_where_there_are_few(tables: TableStore) -> None:
    ranking = rank_stored_records(tables, KEY, [in_groups(tables, simulated_file(20, 1))], None)
    assert isinstance(ranking, RecordRanking)
    assert len(ranking) == ranking.n_with_risk == ranking.total == 20
