"""Manifests of tables that are stored in parts: which files a table consists of, in the order of its rows.

A table of at most ``PART_ROWS`` rows is one Parquet file, named by the hash of its bytes. A longer one is a list of
such files and a manifest, whose hash names the table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedTable
from ..plain_files import is_hash

PART_ROWS = 1 << 20
"""Rows of a part, at most. A table with no more is one file, as it always was."""
MANIFEST_SUFFIX = ".parts"
MOST_MANIFEST_BYTES = 1 << 26
"""Bytes of a manifest, at most: 90 a part, for 7 x 10^11 rows."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """Part of a table, which is a file of its own.

    sha256: hash of its bytes
    rows: number of its rows
    """

    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class TableManifest:
    """Parts of a table.

    parts: its parts, in the order of the rows
    levels: hash of the file with the levels of its categorical columns, over all parts; empty for one part
    """

    parts: tuple[PartFile, ...]
    levels: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows of the table."""
        return sum(part.rows for part in self.parts)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Return the row after the last of each part and, before these, 0: (parts + 1,)."""
        return np.cumsum([0, *(part.rows for part in self.parts)], dtype=np.int64)

    @property
    def file_hashes(self) -> tuple[str, ...]:
        """Return the hashes of the files of the table beside the manifest itself."""
        return (*(part.sha256 for part in self.parts), *([self.levels] if self.levels else []))

    def rows_by_part(self, rows: Sequence[int]) -> list[tuple[PartFile, int, NDArray[np.int64]]]:
        """Return the parts with some of these rows, each with its first row and with its rows, numbered in the part
        from 0, ascending.
        """
        starts, wanted = self.starts, np.unique(np.asarray(rows, dtype=np.int64))
        at = np.searchsorted(wanted, starts)
        return [
            (part, int(starts[i]), wanted[at[i] : at[i + 1]] - starts[i])
            for i, part in enumerate(self.parts)
            if at[i + 1] > at[i]
        ]

    def to_bytes(self) -> bytes:
        """Return the manifest as its file has it."""
        table = {
            "parts": [[part.sha256, part.rows] for part in self.parts],
            "levels": self.levels,
        }
        return json.dumps(table, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> TableManifest:
        """Read a manifest. Raises DamagedTable, which calls the file ``name``, where it is none."""
        try:
            table: Any = json.loads(content)
            parts = tuple(PartFile(sha256, rows) for sha256, rows in table["parts"])
            found = cls(parts, table["levels"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DamagedTable(f"the table {name} is no list of parts") from None
        if not (
            found.parts
            and all(map(is_hash, found.file_hashes))
            and all(type(part.rows) is int and part.rows >= 0 for part in found.parts)
            and isinstance(found.levels, str)
        ):
            raise DamagedTable(f"the table {name} is no list of parts")
        return found
