"""What is read and counted of stored tables, compared with DuckDB as another program: the queries of ``tests/benchmarks/stored_tables.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from sfumato.workspace.errors import DamagedTable

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from stored_tables import WAYS, StoredTables

RECORDS = 2_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> StoredTables:
    return StoredTables.simulate(tmp_path_factory.mktemp("tables"), RECORDS, threads=1)


@pytest.mark.parametrize("query", WAYS)
def test_answers_are_those_of_duckdb_in_the_same_order(tables: StoredTables, query: str) -> None:
    ours, *others = (answer(tables) for answer in WAYS[query].values())
    assert others
    assert all(other == ours for other in others)


def test_another_query_has_another_answer(tables: StoredTables) -> None:
    """The control: answers are compared by value."""
    counts = WAYS["counts by level"]["ours"](tables)
    with tables.query_files(tables.data) as (connection, (name,)):
        fewer = f"SELECT region, count(*) FROM {name} WHERE visits > 0 GROUP BY ALL ORDER BY ALL"
        assert connection.execute(fewer).fetchall() != counts


def test_a_query_reads_no_other_file_and_none_that_changed(tables: StoredTables, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with tables.query_files(tables.data) as (connection, _), pytest.raises(duckdb.PermissionException):
        connection.execute(f"SELECT * FROM read_csv('{other}')")
    content = tables.store.path_of(tables.data).read_bytes()
    changed = StoredTables(type(tables.store)(tmp_path), tables.data, tables.risks, threads=1)
    changed.store.path_of(tables.data).write_bytes(content[:-1] + b"?")
    with pytest.raises(DamagedTable), changed.query_files(tables.data):
        pass
