"""A stored table that is read part by part, again and again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sfumato.engine.data.affected_group import AffectedGroup
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Origin, Schema
from sfumato.engine.data.table_blocks import hash_of_blocks

from .tables import TableStore


@dataclass(frozen=True, eq=False)
class StoredBlocks:
    """Stored table whose parts are its blocks (``sfumato.engine.data.table_blocks.TableBlocks``).

    tables: where it is stored
    sha256: its hash
    schema: its variables
    origin: whether it is confidential or released
    finish: makes of each block, and of the table without records, what is computed with; None for what is stored
    dropped, file_records, missing_counts, affected_group: as in ``Microdata``, of a table that nobody was dropped from
    """

    tables: TableStore
    sha256: str
    schema: Schema
    origin: Origin
    finish: Callable[[Microdata], Microdata] | None = None
    dropped: int = 0
    file_records: int = 0
    missing_counts: Mapping[str, int] = field(default_factory=dict)
    affected_group: AffectedGroup | None = None

    @cached_property
    def part_rows(self) -> tuple[int, ...]:
        """Return the number of records of each block. Raises DamagedTable."""
        return tuple(part.rows for part in self.tables.read_manifest(self.sha256).parts)

    @property
    def n_blocks(self) -> int:
        return len(self.part_rows)

    @cached_property
    def data_sha256(self) -> str:
        """Return the hash that ``Microdata.sha256`` has of its records, which reads it once for each variable. Raises
        DamagedTable.
        """
        return hash_of_blocks(self)

    def __len__(self) -> int:
        return sum(self.part_rows)

    @property
    def is_whole_table(self) -> bool:
        """Return whether the stored table has its columns and nothing else. Raises DamagedTable."""
        return self.finish is None and self.tables.column_names(self.sha256) == list(self.schema.names)

    @cached_property
    def head(self) -> Microdata:
        """Return the table without its records. Raises DamagedTable."""
        if not self.tables.has_parts(self.sha256):
            # Only its records have the levels of a table of one part.
            return next(self.iterate_blocks()).select_rows(slice(0, 0))
        found = self.tables.read_microdata(self.sha256, self.schema, self.origin, rows=[])
        return found if self.finish is None else self.finish(found)

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the records of these variables part by part, each verified as it is read, or of the parts of these
        ``numbers``. Raises DamagedTable.
        """
        schema = self.schema if names is None else self.schema.select_variables(names)
        blocks = self.tables.iterate_microdata(self.sha256, schema, self.origin, numbers)
        yield from blocks if self.finish is None else map(self.finish, blocks)
