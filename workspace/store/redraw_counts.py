"""Counts of records that each dataset of a run redrew for its constraints, in a small table for each dataset.

Internal: how often a model of the confidential data misses a rule follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

import pyarrow as pa

from sfumato.engine.constraints.redraw_counts import RedrawCounts

from ..errors import DamagedTable
from .tables import TableStore
from .workspace import Workspace

_ARROW_TYPES = {"str": pa.string(), "int": pa.int64()}
_TABLE_SCHEMA = pa.schema([(one.name, _ARROW_TYPES[str(one.type)]) for one in fields(RedrawCounts)])


def redraws_name(draw: int) -> str:
    """Return the artefact's name ``redraws/3`` for the redraw counts of dataset 3."""
    return f"redraws/{draw}"


def write_redraws(tables: TableStore, counts: Sequence[RedrawCounts]) -> str:
    """Store the redraw counts of a dataset, and return the hash of the table."""
    return tables.write_table(pa.Table.from_pylist([asdict(one) for one in counts], schema=_TABLE_SCHEMA))


def read_redraws(workspace: Workspace, run_id: int) -> Mapping[int, tuple[RedrawCounts, ...]]:
    """Read the redraw counts of each dataset of a run, by its number.

    They are empty where no step had a constraint, or an earlier version ran it.

    Raises DamagedTable.
    """
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'redraws/%'", (run_id,)
    )
    found: dict[int, tuple[RedrawCounts, ...]] = {}
    for name, sha256 in rows.fetchall():
        try:
            table = workspace.tables.read_stored_table(str(sha256))
            found[int(str(name).partition("/")[2])] = tuple(RedrawCounts(**row) for row in table.to_pylist())
        except (TypeError, ValueError):
            raise DamagedTable(
                f"the table {sha256[:8]} holds no counts of redraws that this version can read"
            ) from None
    return dict(sorted(found.items()))
