"""Columns that write another column in another way: a one-to-one or a monotone function of it, or one that says it for nearly everybody.

A sensitive column that is drawn anew is no secret where a column that stays says the same in other words: a code for a name, a
square root for an amount, a year of birth for an age. What counts is what the records show, not names, kinds or roles.

One-to-one says nothing of columns in which nearly everybody is alone: any two such columns are functions of each other. There the order
is looked at, and among groups of two or more records the share whose value follows from the group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from .cells import Keys

SAME = 0.99
"""The share of the records in groups whose value has to follow from the column that stays."""
MONOTONE = 0.9999
CLOSE = 0.95
"""How much of what the commonest value leaves open has to follow."""
FEW, FEWEST = 50, 10
"""Records, and records with another value than the commonest, from which on a function is no accident."""
LOOKED_AT = 50_000


@dataclass(frozen=True, eq=False)
class Disguise:
    """``name`` says ``of``: ``how`` in words, for which share of the records; ``records`` are those, from 0."""

    name: str
    of: str
    how: str
    share: float
    records: Integers


def follows(cells: Keys, secret: Keys) -> tuple[float, float, NDArray[np.bool_]]:
    """The share of the records in groups of two or more with equal ``cells`` (n,) whose ``secret`` (n,) is the most frequent of their
    group, the share that the most frequent secret of all would have, and which records these are.
    """
    _, group, sizes = np.unique(cells, return_inverse=True, return_counts=True)
    _, level, levels = np.unique(secret, return_inverse=True, return_counts=True)
    pairs, place, counts = np.unique(
        group.astype(np.int64) * len(levels) + level, return_inverse=True, return_counts=True
    )
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, pairs // len(levels), counts)
    in_groups = sizes[group] > 1
    right = in_groups & (counts[place] == most[group]) & (most[group] > 1)
    share = float(right.sum() / in_groups.sum()) if in_groups.any() else 0.0
    return share, float(levels.max() / len(secret)), right


def disguise(
    name: str, of: str, cells: Keys, secret: Keys, numbers: Floats | None = None, secret_numbers: Floats | None = None
) -> Disguise | None:
    """How a column (n,) that stays says the ``secret`` one (n,); None where it does not.

    ``numbers`` and ``secret_numbers`` are values whose order means something, NaN missing, None of levels.
    """
    n = len(cells)
    some = np.arange(n) if n <= LOOKED_AT else np.linspace(0, n - 1, LOOKED_AT).astype(np.int64)
    if n < FEW:
        return None
    if numbers is not None and secret_numbers is not None and _monotone(numbers[some], secret_numbers[some]):
        return Disguise(name, of, "has the same order", 1.0, np.arange(n))
    grouped = _grouped(cells[some])
    if grouped < 0.5:
        return None
    there, commonest, _ = follows(cells[some], secret[some])
    if there < SAME or commonest >= 1 or (there - commonest) / (1 - commonest) < CLOSE:
        return None
    if (1 - commonest) * len(some) < FEWEST:
        return None
    back, _, _ = follows(secret[some], cells[some])
    _, _, right = follows(cells, secret)
    how = "is one-to-one with it" if back >= SAME else "has groups in each of which it has one value"
    return Disguise(name, of, how, float(right.mean()), np.flatnonzero(right))


def _grouped(cells: Keys) -> float:
    """The share of the records whose cell another has too."""
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return float((counts[place] > 1).mean())


def _monotone(ours: Floats, theirs: Floats) -> bool:
    """Whether one rises or falls wherever the other does, by ranks; columns of a few values are groups, not orders."""
    from scipy.stats import rankdata

    present = ~(np.isnan(ours) | np.isnan(theirs))
    if present.sum() < FEW or len(np.unique(theirs[present])) < 10 or len(np.unique(ours[present])) < 10:
        return False
    first, second = rankdata(ours[present]), rankdata(theirs[present])
    return bool(abs(np.corrcoef(first, second)[0, 1]) > MONOTONE)
