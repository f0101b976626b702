"""Rows of a stored dataset, read a page at a time from its Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.data.schema import Schema, Variable

from ..errors import DamagedTable
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

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
    path: its Parquet file
    variables: its variables, in the order of the file
    """

    dataset_id: int
    name: str
    records: int
    path: Path
    variables: Sequence[Variable]

    def read_page(self, offset: int, limit: int) -> list[tuple[object, ...]]:
        """Read rows from ``offset`` on, at most ``limit``: a value for each variable, None where it is missing.

        Raises DamagedTable.
        """
        import duckdb

        names = ", ".join(f'"{one.name.replace(chr(34), chr(34) * 2)}"' for one in self.variables)
        query = f"""SELECT {names} FROM read_parquet(?, file_row_number = true)
                    WHERE file_row_number >= ? AND file_row_number < ? ORDER BY file_row_number"""
        try:
            with _connect_to_file(self.path) as connection:
                found = connection.execute(query, [str(self.path), offset, offset + limit]).fetchall()
        except duckdb.Error as error:
            # the message of DuckDB may name values
            raise DamagedTable(f"the table {self.path.name} cannot be read ({type(error).__name__})") from None
        return [tuple(map(_shown_value, row)) for row in found]


def find_stored_rows(workspace: Workspace, dataset_id: int) -> StoredRows:
    """Return the rows of a dataset, none read yet, once every byte of its file was verified. Raises DamagedTable."""
    dataset = workspace.find_dataset(dataset_id)
    workspace.tables.verify_table(dataset.table_sha256)
    schema: Schema = dataset.schema
    path = workspace.tables.path_of(dataset.table_sha256)
    return StoredRows(dataset_id, dataset.name, dataset.records, path.resolve(), tuple(schema))


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
