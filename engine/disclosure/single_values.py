"""Values of a column that few people have: those of one record, and those of the smallest and largest, beside hold-out records.

Whether a number is a person's own or one that anybody may have is not read off its digits: the lone and the extreme values of hold-out
records show how many of them a release contains that never saw them. A value that ``cell`` or more records share is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from .cells import MISSING, Keys
from .evidence import Found


def _shown(own: Keys, releases: Sequence[Keys]) -> NDArray[np.bool_]:
    """Which cells (N,) some release has."""
    values, place = np.unique(own, return_inverse=True)
    there = np.zeros(len(values), dtype=np.bool_)
    for one in releases:
        there |= np.isin(values, one)
    return there[place]


def lone(name: str, own: Keys, members: int, releases: Sequence[Keys]) -> Found:
    """The members and controls who are alone with their value among all (N,), and of how many the value is released."""
    _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
    return _found(name, np.flatnonzero((counts[place] == 1) & (own != MISSING)), own, members, releases)


def extreme(
    name: str, own: Keys, numbers: Floats, members: int, releases: Sequence[Keys], cell: int, known: Sequence[float]
) -> Found:
    """The members and controls with the smallest and largest values, about ``cell`` members on either side, whose values fewer than ``cell``
    records share and no bound declares.
    """
    _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
    few = (
        (counts[place] < cell)
        & (own != MISSING)
        & ~np.isin(numbers, np.array(known, dtype=np.float64))
        & ~np.isnan(numbers)
    )
    size = max(1, round(cell * len(own) / members))
    present = np.sort(numbers[~np.isnan(numbers)])
    if not len(present):
        return _found(name, np.zeros(0, dtype=np.int64), own, members, releases)
    low, high = present[min(size, len(present)) - 1], present[-min(size, len(present))]
    return _found(name, np.flatnonzero(few & ((numbers <= low) | (numbers >= high))), own, members, releases)


def _found(name: str, some: NDArray[np.int64], own: Keys, members: int, releases: Sequence[Keys]) -> Found:
    shown = some[_shown(own, releases)[some]] if len(some) else some
    ours = some < members
    hits = shown[shown < members]
    return Found(
        "people", name, len(hits), int(ours.sum()), len(shown) - len(hits), int((~ours).sum()), records=np.sort(hits)
    )


def together(found: Sequence[Found], what: str) -> Found:
    """Several columns' counts as one."""
    return Found(
        "people", what, sum(f.members for f in found), sum(f.of_members for f in found), sum(f.controls for f in found),
        sum(f.of_controls for f in found), records=np.unique(np.concatenate([f.records for f in found])),
    )  # fmt: skip
