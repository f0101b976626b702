"""Columns that disclose another column as a one-to-one, monotone or nearly determining function of it.

A sensitive column that is synthesised is not protected if a kept column says the same: a code for a name, a year of
birth for an age. The records decide, not names, kinds or roles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.rows import distinct_codes, distinct_rows
from ..statistics.ranks_and_tails import average_ranks

SAME = 0.99
"""Share of records in groups whose value must follow from the kept column."""
MONOTONE = 0.9999
CLOSE = 0.95
"""Share of the records without the mode that the function must explain."""
FEW, FEWEST = 50, 10
"""Fewest records, and fewest without the mode, for which a function is no accident."""
LOOKED_AT = 50_000


@dataclass(frozen=True, eq=False)
class DisguisedColumn:
    """Kept column that discloses a sensitive one.

    column: name of the kept column
    sensitive_column: name of the column that it discloses
    relation: how it does so, in words
    share: share of the records for which it does
    records: these records
    """

    column: str
    sensitive_column: str
    relation: str
    share: float
    records: Integers


def functional_dependence(cells: Keys, secret: Keys) -> tuple[float, float, NDArray[np.bool_]]:
    """Measure how often a ``secret`` (n,) follows from the group of records with equal ``cells`` (n,).

    Returns the share of records in groups of two or more that have the mode of their group, the share of the overall
    mode, and the mask of the former records, (n,).
    """
    groups, levels = distinct_codes(cells), distinct_codes(secret)
    pairs = distinct_rows([groups.codes, levels.codes], len(cells))
    most = np.zeros(len(groups.values), dtype=np.int64)
    np.maximum.at(most, groups.codes[pairs.first], pairs.counts)
    in_groups, largest = groups.repeats > 1, most[groups.codes]
    right = in_groups & (pairs.counts[pairs.combination_of] == largest) & (largest > 1)
    share = float(right.sum() / in_groups.sum()) if in_groups.any() else 0.0
    return share, float(levels.counts.max() / len(secret)), right


def find_disguise(
    name: str,
    sensitive_name: str,
    cells: Keys,
    secret: Keys,
    numbers: Floats | None = None,
    secret_numbers: Floats | None = None,
) -> DisguisedColumn | None:
    """Return how a kept column (n,) discloses the ``secret`` column (n,); None if it does not.

    ``numbers`` and ``secret_numbers`` are ordered values, NaN if missing; None for levels.
    """
    n = len(cells)
    some = np.arange(n) if n <= LOOKED_AT else np.linspace(0, n - 1, LOOKED_AT).astype(np.int64)
    if n < FEW:
        return None
    if numbers is not None and secret_numbers is not None and _are_monotone(numbers[some], secret_numbers[some]):
        return DisguisedColumn(name, sensitive_name, "has the same order", 1.0, np.arange(n))
    grouped = _share_in_groups(cells[some])
    # Of columns in which nearly everybody is unique, any two are functions of each other.
    if grouped < 0.5:
        return None
    there, commonest, _ = functional_dependence(cells[some], secret[some])
    if there < SAME or commonest >= 1 or (there - commonest) / (1 - commonest) < CLOSE:
        return None
    if (1 - commonest) * len(some) < FEWEST:
        return None
    back, _, _ = functional_dependence(secret[some], cells[some])
    _, _, right = functional_dependence(cells, secret)
    how = "is one-to-one with it" if back >= SAME else "has groups in each of which it has one value"
    return DisguisedColumn(name, sensitive_name, how, float(right.mean()), np.flatnonzero(right))


def _share_in_groups(cells: Keys) -> float:
    """Return the share of the records whose cell is not unique."""
    return float((distinct_codes(cells).repeats > 1).mean())


def _are_monotone(ours: Floats, theirs: Floats) -> bool:
    """Return whether two columns have the same or the reverse rank order; columns of few values never have."""
    present = ~(np.isnan(ours) | np.isnan(theirs))
    if present.sum() < FEW or len(np.unique(theirs[present])) < 10 or len(np.unique(ours[present])) < 10:
        return False
    first, second = average_ranks(ours[present]), average_ranks(theirs[present])
    return bool(abs(np.corrcoef(first, second)[0, 1]) > MONOTONE)
