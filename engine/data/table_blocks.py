"""Tables that are read in blocks of records, again and again, so that a computation needs memory for a block and not for
a table.

Blocks are consecutive records of all or some variables. They are always the same ones, and all have the levels of the
whole table, so that a level has one code. A table in memory is one block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .microdata import Microdata, hash_variables
from .schema import Schema


class TableBlocks(Protocol):
    """Table of n records that is read in blocks."""

    @property
    def schema(self) -> Schema:
        """Return its variables."""

    @property
    def head(self) -> Microdata:
        """Return the table without its records: variables, levels, dtypes."""

    @property
    def n_blocks(self) -> int:
        """Return the number of its blocks, at least 1."""

    @property
    def data_sha256(self) -> str:
        """Return the hash that ``Microdata.sha256`` has of its records."""

    def __len__(self) -> int: ...

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the records of these variables, of all for None, block by block; of the blocks of these numbers alone,
        in the table's order.
        """


@dataclass(frozen=True, eq=False)
class OneBlock:
    """Table in memory, as one block."""

    data: Microdata

    @property
    def schema(self) -> Schema:
        return self.data.schema

    @property
    def head(self) -> Microdata:
        return self.data.select_rows(slice(0, 0))

    @property
    def n_blocks(self) -> int:
        return 1

    @property
    def data_sha256(self) -> str:
        return self.data.sha256

    def __len__(self) -> int:
        return len(self.data)

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the table itself, with all its variables."""
        if numbers is None or 0 in numbers:
            yield self.data


def hash_of_blocks(table: TableBlocks) -> str:
    """Return the hash of a table that ``Microdata.sha256`` has of the same records in memory.

    The table is read once for each variable.
    """
    return hash_variables(table.schema, table.head, len(table), lambda name: table.iterate_blocks([name]))
