"""Queries of stored tables by our own code and by DuckDB: seconds (median of 5) and memory, each in a process of its own.

    python tests/benchmarks/stored_tables.py [--records 10000 1000000] [--threads 1]

Every way begins with the hash of the table and verifies its bytes, and every answer is compared with ours, order included. ``arrow``:
our verified read, then DuckDB queries the Arrow columns. ``file``: the bytes are hashed, then DuckDB reads the file by itself. The
second way could not be used, since the file may change between the two; it shows the most that DuckDB could gain.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.execution.record_risk import leave_one_out_candidates
from sfumato.engine.matching.radius import Radius
from sfumato.workspace.ingest.filters import DUCKDB_SETTINGS
from sfumato.workspace.ingest.profiles import (
    MAX_BINS,
    MIN_SHOWN_COUNT,
    QUANTILES,
    profile_distribution,
    round_bin_width,
)
from sfumato.workspace.store.artefacts import write_record_values
from sfumato.workspace.store.rankings import MAX_RANKED, rank_stored_records
from sfumato.workspace.store.tables import TableStore

if TYPE_CHECKING:
    import duckdb

REPEATS, DATASETS, LISTED, DRIVEN = 5, 5, 20, 20
CLEAR_REFS = Path("/proc/self/clear_refs")
KINDS = {"region": Kind.CATEGORICAL, "sex": Kind.BINARY, "visits": Kind.COUNT, "income": Kind.CONTINUOUS}
SCHEMA = Schema(tuple(Variable(name, kind) for name, kind in KINDS.items()))
COUNT_LEVELS = "SELECT region::VARCHAR, n FROM (SELECT region, count(*) AS n FROM {0} GROUP BY ALL) ORDER BY ALL"
COUNT_PAIRS = "SELECT region::VARCHAR, sex::VARCHAR, n FROM (SELECT region, sex, count(*) AS n FROM {0} GROUP BY ALL) ORDER BY ALL"
"""Levels are grouped as the codes that they may be, and only the groups become text."""


@dataclass(frozen=True)
class StoredTables:
    """Tables of one size in a store.

    store: the store
    data, risks: hashes of a table of records, and of what a measure left of them in each of DATASETS datasets
    threads: threads that DuckDB may take
    """

    store: TableStore
    data: str
    risks: tuple[str, ...]
    threads: int

    @classmethod
    def simulate(cls, directory: Path, records: int, threads: int) -> StoredTables:
        rng = np.random.default_rng(0)
        store = TableStore(directory)
        visits = rng.poisson(6, records)
        frame = pd.DataFrame(
            {
                "region": rng.choice([f"r{i:02}" for i in range(40)], records),
                "sex": rng.choice(["f", "m"], records),
                "visits": visits,
                "income": np.round(np.exp(rng.normal(7 + 0.05 * visits, 0.4, records)), 2),
            }
        )
        risks = []
        for _ in range(DATASETS):
            candidates = rng.integers(1, 30, records).astype(np.float64)
            hit = rng.random(records) < 0.5
            risks.append(write_record_values(store, {"candidates": candidates, "hit": hit}))
        return cls(store, store.write_microdata(conform_to_schema(frame, SCHEMA)), tuple(risks), threads)

    def read_columns(self, *names: str) -> Microdata:
        schema = Schema(tuple(variable for variable in SCHEMA if variable.name in names))
        return self.store.read_microdata(self.data, schema, "confidential")

    @contextmanager
    def query_files(self, *hashes: str) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[str]]]:
        """Verify tables and yield a connection that may read these files alone, and how a query names them."""
        import duckdb

        paths = [str(self.store.path_of(sha256)) for sha256 in hashes]
        for sha256 in hashes:
            self.store.verify_table(sha256)
        settings = {name: value for name, value in DUCKDB_SETTINGS.items() if name != "enable_external_access"}
        with duckdb.connect(":memory:", config={**settings, "threads": self.threads}) as connection:
            connection.execute(f"SET allowed_paths = {paths}")
            connection.execute("SET enable_external_access = false")
            yield connection, [f"read_parquet('{path}', file_row_number = true)" for path in paths]

    @contextmanager
    def query_columns(
        self, columns: Sequence[str], *hashes: str
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[str]]]:
        """Read columns of tables as we do, verified, and yield a connection that sees nothing else, and how a query names them."""
        import duckdb

        with duckdb.connect(":memory:", config={**DUCKDB_SETTINGS, "threads": self.threads}) as connection:
            for i, sha256 in enumerate(hashes):
                connection.register(f"table_{i}", self.store.read_stored_table(sha256, columns))
            yield connection, [f"table_{i}" for i in range(len(hashes))]


def _rank_records(tables: StoredTables) -> object:
    found = rank_stored_records(tables.store, "risk.identification", tables.risks, None)
    return found.records.tolist(), found.risk.probability.tolist(), found.risk.candidates.tolist()


def _rank_query(names: Sequence[str]) -> str:
    """Return the query of a ranking: shares in the precision that is stored, added in the order of the datasets, ties by number."""
    joined = " POSITIONAL JOIN ".join(f"{name} AS d{i}" for i, name in enumerate(names))
    share = [f"(d{i}.hit::TINYINT::FLOAT / d{i}.candidates)::DOUBLE" for i in range(len(names))]
    counts = [f"d{i}.candidates::DOUBLE" for i in range(len(names))]
    unique = [f"(d{i}.hit AND d{i}.candidates = 1)::TINYINT::DOUBLE" for i in range(len(names))]
    m = len(names)
    inner = f"""SELECT row_number() OVER () - 1 AS record, ({" + ".join(share)}) / {m} AS probability,
                ({" + ".join(counts)}) / {m} AS candidates, ({" + ".join(unique)}) / {m} AS alone FROM {joined}"""
    return f"""SELECT record, probability, candidates FROM ({inner}) WHERE NOT isnan(probability)
               ORDER BY probability DESC, alone DESC, candidates, record LIMIT {MAX_RANKED}"""


def _fetch_ranking(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> object:
    found = connection.execute(_rank_query(names)).fetchnumpy()
    return found["record"].tolist(), found["probability"].tolist(), found["candidates"].tolist()


def _rank_records_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(("candidates", "hit"), *tables.risks) as (connection, names):
        return _fetch_ranking(connection, names)


def _rank_records_by_file(tables: StoredTables) -> object:
    with tables.query_files(*tables.risks) as (connection, names):
        return _fetch_ranking(connection, names)


def _listed_rows(tables: StoredTables) -> list[int]:
    records = tables.store.count_table_records(tables.data)
    return np.random.default_rng(1).choice(records, LISTED, replace=False).tolist()


def _list_rows(tables: StoredTables) -> object:
    frame = tables.store.read_microdata(tables.data, SCHEMA, "confidential", _listed_rows(tables)).frame
    return [tuple(row) for row in frame.itertuples(index=False)]


def _list_rows_by_file(tables: StoredTables) -> object:
    numbers = _listed_rows(tables)
    with tables.query_files(tables.data) as (connection, (name,)):
        query = (
            f"SELECT file_row_number, * EXCLUDE (file_row_number) FROM {name} WHERE file_row_number IN {tuple(numbers)}"
        )
        found = {row[0]: row[1:] for row in connection.execute(query).fetchall()}
    return [found[number] for number in numbers]


def _count_levels(tables: StoredTables) -> object:
    profile = profile_distribution(tables.read_columns("region"), "region")
    return list(zip(profile.levels, profile.counts, strict=True))


def _count_levels_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(("region",), tables.data) as (connection, (name,)):
        return connection.execute(COUNT_LEVELS.format(name)).fetchall()


def _count_levels_by_file(tables: StoredTables) -> object:
    with tables.query_files(tables.data) as (connection, (name,)):
        return connection.execute(COUNT_LEVELS.format(name)).fetchall()


def _count_pairs(tables: StoredTables) -> object:
    data = tables.read_columns("region", "sex")
    region, sex = data.column("region").cat, data.column("sex").cat
    codes = region.codes.to_numpy().astype(np.intp) * len(sex.categories) + sex.codes.to_numpy()
    pairs = [(one, other) for one in region.categories for other in sex.categories]
    counts = np.bincount(codes, minlength=len(pairs)).tolist()
    return [(*pair, count) for pair, count in zip(pairs, counts, strict=True) if count]


def _count_pairs_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(("region", "sex"), tables.data) as (connection, (name,)):
        return connection.execute(COUNT_PAIRS.format(name)).fetchall()


def _count_pairs_by_file(tables: StoredTables) -> object:
    with tables.query_files(tables.data) as (connection, (name,)):
        return connection.execute(COUNT_PAIRS.format(name)).fetchall()


def _profile_number(tables: StoredTables) -> object:
    found = profile_distribution(tables.read_columns("income"), "income")
    counts = [(round(start), count) for start, count in zip(found.starts, found.counts, strict=True) if count]
    return found.records, found.distinct, [round(value, 6) for _, value in found.quantiles], counts


def _fetch_profile(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    """Return what ``_profile_number`` does: counts and quantiles in one query, then the range, which decides the bins, and the bins."""
    records, distinct, quantiles = connection.execute(
        f"SELECT count(income), count(DISTINCT income), quantile_cont(income, {list(QUANTILES)}) FROM {name}"
    ).fetchall()[0]
    low, high = connection.execute(f"SELECT min(income), max(income) FROM {name}").fetchall()[0]
    width = round_bin_width(high - low, min(MAX_BINS, int(np.ceil(2 * records ** (1 / 3)))), whole=False)
    counts = connection.execute(
        f"SELECT (floor(income / {width}) * {width})::BIGINT, count(*) FROM {name} GROUP BY ALL "
        f"HAVING count(*) >= {MIN_SHOWN_COUNT} ORDER BY ALL"
    ).fetchall()
    return records, distinct, [round(value, 6) for value in quantiles], counts


def _profile_number_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(("income",), tables.data) as (connection, (name,)):
        return _fetch_profile(connection, name)


def _profile_number_by_file(tables: StoredTables) -> object:
    with tables.query_files(tables.data) as (connection, (name,)):
        return _fetch_profile(connection, name)


def _find_drivers(tables: StoredTables) -> object:
    data = tables.read_columns(*KINDS)
    radius = {"income": Radius.parse("5%"), "visits": Radius.parse(1)}
    found = leave_one_out_candidates(data, [data], tuple(KINDS), radius, range(DRIVEN))
    return np.column_stack([found.candidates, found.without]).astype(int).tolist()


def _drivers_query(name: str) -> str:
    agree = [
        "n.region = k.region",
        "n.sex = k.sex",
        "abs(n.visits - k.visits) <= 1",
        "abs(n.income - k.income) <= 0.05 * (1 + 1e-9) * k.income",
    ]
    total = " + ".join(f"({one})::TINYINT" for one in agree)
    without = ", ".join(f"count(*) FILTER (t = 4 OR (t = 3 AND NOT a{i})) AS w{i}" for i in range(4))
    flags = ", ".join(f"({one}) AS a{i}" for i, one in enumerate(agree))
    return f"""SELECT count(*) FILTER (t = 4), {without} FROM (SELECT k.record, {flags}, {total} AS t FROM {name} AS n,
               (SELECT row_number() OVER () - 1 AS record, * FROM (SELECT * FROM {name} LIMIT {DRIVEN})) AS k)
               GROUP BY record ORDER BY record"""


def _find_drivers_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(tuple(KINDS), tables.data) as (connection, (name,)):
        return [list(row) for row in connection.execute(_drivers_query(name)).fetchall()]


def _find_drivers_by_file(tables: StoredTables) -> object:
    with tables.query_files(tables.data) as (connection, (name,)):
        return [list(row) for row in connection.execute(_drivers_query(name)).fetchall()]


def _sort_records(tables: StoredTables) -> object:
    frame = tables.read_columns(*KINDS).frame
    return _hash_frame(frame.sort_values(list(frame.columns), kind="stable", na_position="last"))


def _sort_records_by_arrow(tables: StoredTables) -> object:
    with tables.query_columns(tuple(KINDS), tables.data) as (connection, (name,)):
        return _hash_frame(connection.execute(f"SELECT * FROM {name} ORDER BY ALL NULLS LAST").df())


def _sort_records_by_file(tables: StoredTables) -> object:
    with tables.query_files(tables.data) as (connection, (name,)):
        query = f"SELECT * EXCLUDE (file_row_number) FROM {name} ORDER BY ALL NULLS LAST"
        return _hash_frame(connection.execute(query).df())


def _hash_frame(frame: pd.DataFrame) -> str:
    """Return the hash of the values; of numbers alone, since the levels come as codes or as text."""
    return hashlib.sha256(frame[["visits", "income"]].to_numpy(np.float64).tobytes()).hexdigest()


WAYS: Mapping[str, Mapping[str, Callable[[StoredTables], object]]] = {
    f"rank the records at risk over {DATASETS} datasets": {
        "ours": _rank_records,
        "arrow": _rank_records_by_arrow,
        "file": _rank_records_by_file,
    },
    f"{LISTED} records by number": {"ours": _list_rows, "file": _list_rows_by_file},
    "counts by level": {"ours": _count_levels, "arrow": _count_levels_by_arrow, "file": _count_levels_by_file},
    "counts of two variables": {"ours": _count_pairs, "arrow": _count_pairs_by_arrow, "file": _count_pairs_by_file},
    "profile of a number": {
        "ours": _profile_number,
        "arrow": _profile_number_by_arrow,
        "file": _profile_number_by_file,
    },
    f"what drives {DRIVEN} records": {
        "ours": _find_drivers,
        "arrow": _find_drivers_by_arrow,
        "file": _find_drivers_by_file,
    },
    "sort by every column": {"ours": _sort_records, "arrow": _sort_records_by_arrow, "file": _sort_records_by_file},
}


def measure_way(tables: StoredTables, way: Callable[[StoredTables], object]) -> tuple[float, float, str]:
    """Return seconds (median), by how many MiB the process grew at most, and the hash of the answer."""
    CLEAR_REFS.write_text("5")  # the peak so far becomes what is in use now: a process inherits that of its parent
    before, seconds = _memory_kb("VmRSS"), []
    for _ in range(REPEATS):
        start = time.process_time()
        answer = way(tables)
        seconds.append(time.process_time() - start)
    grown = (_memory_kb("VmHWM") - before) / 1024
    return statistics.median(seconds), grown, hashlib.sha256(repr(answer).encode()).hexdigest()


def _memory_kb(name: str) -> int:
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0])


def main() -> None:
    """Print the table; with ``--of`` measure one way in this process."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--records", type=int, nargs="+", default=[10_000, 1_000_000])
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--of", nargs=5, metavar=("DIRECTORY", "QUERY", "WAY", "DATA", "RISKS"))
    given = arguments.parse_args()
    if given.of:
        directory, query, way, data, risks = given.of
        tables = StoredTables(TableStore(Path(directory)), data, tuple(risks.split(",")), given.threads)
        print(*measure_way(tables, WAYS[query][way]))
        return
    for records in given.records:
        print(f"{f'{records:,} records':<44}{'way':<8}{'ms':>9}{'MiB':>7}")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tables").mkdir()
            tables = StoredTables.simulate(Path(folder) / "tables", records, given.threads)
            for query, ways in WAYS.items():
                _print_query(tables, query, ways)


def _print_query(tables: StoredTables, query: str, ways: Mapping[str, Callable[[StoredTables], object]]) -> None:
    expected = ""
    for way in ways:
        words: list[Any] = [tables.store.directory, query, way, tables.data, ",".join(tables.risks)]
        command = [sys.executable, __file__, "--threads", str(tables.threads), "--of", *map(str, words)]
        seconds, grown, answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        expected = expected or answer
        remark = "" if answer == expected else "  ANOTHER ANSWER"
        print(f"{query:<44}{way:<8}{1000 * float(seconds):>9.1f}{float(grown):>7.0f}{remark}", flush=True)


if __name__ == "__main__":
    main()
