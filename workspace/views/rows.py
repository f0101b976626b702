"""Rows of a stored dataset, read a page at a time from its Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.data.schema import Schema, Variable

from ..errors import DamagedTable
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from ..store.table_manifests import PartFile, TableManifest
    from ..store.tables import TableStore

READER_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "1",
}
"""Settings of DuckDB: it reads one file of the workspace and writes none."""


@dataclass(frozen=True)
class StoredRows:
    """Rows of a dataset as they are stored; they are confidential.

    dataset_id, name: its number and name
    records: number of its records
    tables: where its table is stored
    parts: the parts of its table
    variables: its variables, in the order of the file
    verified: hashes of the parts whose bytes were verified
    """

    dataset_id: int
    name: str
    records: int
    tables: TableStore
    parts: TableManifest
    variables: Sequence[Variable]
    verified: set[str] = field(default_factory=set)

    def read_page(self, offset: int, limit: int) -> list[tuple[object, ...]]:
        """Read rows from ``offset`` on, at most ``limit``: a value for each variable, None where it is missing.

        Raises DamagedTable.
        """
        rows = range(offset, min(offset + limit, self.parts.rows))
        return [
            row
            for part, _, own in (self.parts.rows_by_part(rows) if rows else ())
            for row in self._read_rows_of_part(part, int(own[0]), int(own[-1]) + 1)
        ]

    def _read_rows_of_part(self, part: PartFile, first: int, end: int) -> list[tuple[object, ...]]:
        """Read the rows of a part from ``first`` to before ``end``, once all its bytes were verified. Raises DamagedTable."""
        import duckdb

        if part.sha256 not in self.verified:
            self.tables.verify_table(part.sha256)
            self.verified.add(part.sha256)
        path = self.tables.path_of(part.sha256).resolve()
        names = ", ".join(f'"{one.name.replace(chr(34), chr(34) * 2)}"' for one in self.variables)
        query = f"""SELECT {names} FROM read_parquet(?, file_row_number = true)
                    WHERE file_row_number >= ? AND file_row_number < ? ORDER BY file_row_number"""
        try:
            with _connect_to_file(path) as connection:
                found = connection.execute(query, [str(path), first, end]).fetchall()
        except duckdb.Error as error:
            # the message of DuckDB may name values
            raise DamagedTable(f"the table {path.name} cannot be read ({type(error).__name__})") from None
        return [tuple(map(_shown_value, row)) for row in found]


def find_stored_rows(workspace: Workspace, dataset_id: int) -> StoredRows:
    """Return the rows of a dataset, none read yet: a table of one part once every byte of it was verified, of several
    parts each when it is read first. Raises DamagedTable.
    """
    dataset = workspace.find_dataset(dataset_id)
    verified = set[str]()
    if not workspace.tables.has_parts(dataset.table_sha256):
        workspace.tables.verify_table(dataset.table_sha256)
        verified.add(dataset.table_sha256)
    parts = workspace.tables.read_manifest(dataset.table_sha256)
    schema: Schema = dataset.schema
    return StoredRows(dataset_id, dataset.name, dataset.records, workspace.tables, parts, tuple(schema), verified)


@contextmanager
def _connect_to_file(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that can read this file and no other."""
    import duckdb

    quoted = str(path).replace("'", "''")
    with duckdb.connect(":memory:", config=dict(READER_SETTINGS)) as connection:
        connection.execute(f"SET allowed_paths = ['{quoted}']")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _shown_value(value: object) -> object:
    """Return a value as tables show it: a date without a time of day, a whole number without decimals."""
    if isinstance(value, datetime) and (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, (date, datetime)) else value
