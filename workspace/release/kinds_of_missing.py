"""Which kind of missing value a released cell without a value is: refused, not asked, and so on.

A method draws that a value is missing, not why. A variable that goes out as it is keeps each record's own kind, where the release has
the confidential records in their order. In one that was made the kinds are drawn, each missing value apart, in the proportions that
they have in the confidential data, by the run's key and seed. A kind of fewer than FEWEST records is told nowhere: those are system
missing, as all are where a method keeps a privacy account, to which the proportions would have to be entered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from ..store.tables import KIND_OF

FEWEST = 3
"""Records that a kind of missing value needs before it is named, as a bin of a profile does."""

Counts = Mapping[str, Mapping[str, int]]


def own_kinds(confidential: pa.Table) -> pd.DataFrame:
    """The kind of each missing value of the confidential table (n, k), of the variables that have kinds; None elsewhere."""
    named = [name for name in confidential.column_names if name.startswith(KIND_OF)]
    columns = {name.removeprefix(KIND_OF): confidential.column(name).to_pandas().astype("object") for name in named}
    return pd.DataFrame(columns)


def named_kinds(own: pd.DataFrame) -> dict[str, dict[str, int]]:
    """By variable the kinds that enough records have, with their numbers."""
    found = {str(name): own[name].value_counts() for name in own}
    return {
        name: {str(kind): int(n) for kind, n in counts.items() if n >= FEWEST}
        for name, counts in found.items()
        if (counts >= FEWEST).any()
    }


def released_kinds(
    released: pa.Table, confidential: pa.Table, named: Counts, kept: Collection[str], rng: np.random.Generator
) -> pd.DataFrame:
    """The kind of each missing value of a released table (n, k), of the variables with ``named`` kinds; None is system missing.

    ``kept`` are the variables that are as they are in the confidential table.
    """
    own = own_kinds(confidential)
    found: dict[str, pd.Series] = {}
    for name, counts in named.items():
        if name not in released.column_names:
            continue
        missing = released.column(name).is_null(nan_is_null=True).to_numpy()
        known = own[name].where(own[name].isin(counts))
        there = confidential.column(name).is_null(nan_is_null=True).to_numpy()
        if name in kept:
            alike = len(missing) == len(there) and bool((missing == there).all())
            found[name] = known if alike else pd.Series([None] * len(missing), dtype="object")
        else:
            found[name] = _drawn(missing, counts, int(there.sum()), rng)
    return pd.DataFrame(found, index=range(released.num_rows))


def _drawn(missing: np.ndarray, counts: Mapping[str, int], of: int, rng: np.random.Generator) -> pd.Series:
    kinds = np.array([*counts, None], dtype=object)
    shares = np.array([*counts.values(), of - sum(counts.values())], dtype=np.float64) / of
    drawn = kinds[rng.choice(len(kinds), len(missing), p=shares)]
    drawn[~missing] = None
    return pd.Series(drawn, dtype="object")
