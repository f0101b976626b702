"""Looks for values of a column that few people have: those of one record, and those of the smallest and largest.

Whether a number is a person's own or one that anybody may have is not read off its digits: the lone and the extreme values of hold-out
records show how many of them a release contains that never saw them. A value that ``cell`` or more records share is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from .cells import MISSING, Keys
from .membership_evidence import Look


def _shown(own: Keys, releases: Sequence[Keys]) -> NDArray[np.bool_]:
    """Which cells (N,) some release has."""
    values, place = np.unique(own, return_inverse=True)
    there = np.zeros(len(values), dtype=np.bool_)
    for one in releases:
        there |= np.isin(values, one)
    return there[place]


def lone(name: str, own: Keys, releases: Sequence[Keys]) -> Look:
    """Look for the people who are alone with their value in the joint table (N,)."""
    _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
    alone = np.flatnonzero((counts[place] == 1) & (own != MISSING))
    return _look(f"who are alone with their {name} have it in the release", alone, own, releases)


def extreme(
    name: str, own: Keys, numbers: Floats, members: int, releases: Sequence[Keys], cell: int, known: Sequence[float]
) -> Look:
    """Look for the people with the smallest and largest values, about ``cell`` members on either side, whose values fewer than ``cell``
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
    some = np.zeros(0, dtype=np.int64)
    if len(present):
        low, high = present[min(size, len(present)) - 1], present[-min(size, len(present))]
        some = np.flatnonzero(few & ((numbers <= low) | (numbers >= high)))
    return _look(f"with the smallest and largest {name} have it in the release", some, own, releases)


def _look(what: str, some: NDArray[np.int64], own: Keys, releases: Sequence[Keys]) -> Look:
    hits = some[_shown(own, releases)[some]] if len(some) else some
    return Look("all people", what, hits, some)


def looks_of_several(looks: Sequence[Look], what: str) -> Look:
    """Return one look for the people whom any of several looks finds."""
    hits, eligible = (
        np.unique(np.concatenate(sets))
        for sets in ([one.hits for one in looks], [one.hits if one.eligible is None else one.eligible for one in looks])
    )
    return Look("all people", what, hits, eligible)
