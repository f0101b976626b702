"""Probes for values of a column that few people have: unique values, and the smallest and largest ones.

Digits do not tell whether a number is a person's own: the unique and extreme values of hold-out people show how many of
them a release contains that never saw them. A value that ``cell`` or more records share belongs to no single person.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.bits import MISSING_KEY, Keys
from ..data.rows import distinct_codes
from .membership_evidence import MembershipProbe


def _are_released(own: Keys, releases: Sequence[Keys]) -> NDArray[np.bool_]:
    """Return whether some dataset has each of the cells, (N,)."""
    cells = distinct_codes(own)
    there = np.zeros(len(cells.values), dtype=np.bool_)
    for one in releases:
        there |= np.isin(cells.values, one)
    return there[cells.codes]


def probe_unique_values(name: str, own: Keys, releases: Sequence[Keys]) -> MembershipProbe:
    """Return a probe for the people with a unique value in the joint table (N,)."""
    alone = np.flatnonzero((distinct_codes(own).repeats == 1) & (own != MISSING_KEY))
    return _value_probe(f"who are alone with their {name} have it in the release", alone, own, releases)


def probe_extreme_values(
    name: str, own: Keys, numbers: Floats, members: int, releases: Sequence[Keys], cell: int, known: Sequence[float]
) -> MembershipProbe:
    """Return a probe for the people with the smallest and largest values, about ``cell`` members on either side.

    Only values count that fewer than ``cell`` records share and that are not declared bounds.
    """
    few = (
        (distinct_codes(own).repeats < cell)
        & (own != MISSING_KEY)
        & ~np.isin(numbers, np.array(known, dtype=np.float64))
        & ~np.isnan(numbers)
    )
    # Scaled to the joint table, so that about ``cell`` of the people on a side are members.
    size = max(1, round(cell * len(own) / members))
    present = np.sort(numbers[~np.isnan(numbers)])
    some = np.zeros(0, dtype=np.int64)
    if len(present):
        low, high = present[min(size, len(present)) - 1], present[-min(size, len(present))]
        some = np.flatnonzero(few & ((numbers <= low) | (numbers >= high)))
    return _value_probe(f"with the smallest and largest {name} have it in the release", some, own, releases)


def _value_probe(what: str, some: NDArray[np.int64], own: Keys, releases: Sequence[Keys]) -> MembershipProbe:
    """Return a probe for the people ``some`` whose value is released."""
    hits = some[_are_released(own, releases)[some]] if len(some) else some
    return MembershipProbe("all people", what, hits, some)


def merge_probes(probes: Sequence[MembershipProbe], what: str) -> MembershipProbe:
    """Return one probe for the people found by any of several probes."""
    hits, eligible = (
        np.unique(np.concatenate(sets))
        for sets in (
            [one.hits for one in probes],
            [one.hits if one.eligible is None else one.eligible for one in probes],
        )
    )
    return MembershipProbe("all people", what, hits, eligible)
