"""Values of single records that a measure left, one table a dataset, in as few bytes as they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .tables import Tables

__all__ = ["read_records", "records_name", "write_records"]


def records_name(item: int, draw: int | None) -> str:
    """``records/0/3``: what measure 0 left of dataset 3; ``records/0/confidential`` where the data were scored themselves."""
    return f"records/{item}/{'confidential' if draw is None else draw}"


def write_records(tables: Tables, per_record: Mapping[str, NDArray[Any]]) -> str:
    """Store arrays (n,) by name as columns; returns the hash of the table."""
    return tables.write(pa.table({name: _small(values) for name, values in per_record.items()}))


def read_records(tables: Tables, sha256: str) -> dict[str, NDArray[Any]]:
    """The arrays that ``write_records`` stored, (n,) each. Raises DamagedTable."""
    table = tables.read(sha256)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the smallest type that holds them all, others with seven digits."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype.kind not in "iu" or not len(values):
        return values
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))
