"""Minimal sample uniques: the smallest sets of variables in which a record is unique (Elliot, Manning & Ford 2002).

A record has a minimal sample unique (MSU) on a set of variables where no other record agrees with it on all of them, and on
every proper subset some other does. The search goes down the subsets of the variables depth first, those with most different values
first, and leaves behind what can have no more of them, as SUDA2 does for items (Manning, Haglin & Keane 2008):

    a record that is unique on a subset has no MSU on larger sets, and agrees there with nobody;
    records that agree with no record that is unique on all variables are nobody's rivals;
    of records that agree on everything one stands for all.

Subsets are bit sets in ascending order, so that all subsets of one come before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..arrays import Integers
from ..errors import NotComputable
from ..partition.equivalence_classes import class_sizes, equivalence_classes

Packed = NDArray[np.uint8]
Unique = tuple[tuple[int, ...], Integers]
"""A set of variables, ascending, and the records that have a minimal sample unique on it, ascending."""

MOST_SETS = 2**18
MOST_BYTES = 2**29


def minimal_sample_uniques(codes: Integers, largest: int) -> Iterator[Unique]:
    """All sets of up to ``largest`` variables on which records have one, with these records.

    Args:
        codes: (n, a), equal where records agree on a variable.
        largest: most variables of a set.

    Raises:
        NotComputable: where the sets are so many that the search would not end, or not fit into memory.
    """
    classes = equivalence_classes(list(codes.T), len(codes))
    single = class_sizes(classes) == 1
    if not single.any():
        return
    first = np.unique(classes, return_index=True)[1].astype(np.int64)
    kept = codes[first]
    width = [len(np.unique(column)) for column in kept.T]
    ranked = sorted(
        range(codes.shape[1]), key=lambda j: (width[j], j)
    )  # most values last: the highest bit, split first
    sets = sum(math.comb(codes.shape[1], size) for size in range(1, largest + 1))
    if sets > MOST_SETS or sets * int(single.sum()) > 8 * MOST_BYTES:
        raise NotComputable(
            f"{codes.shape[1]} keys have {sets:,} sets of up to {largest}, too many to search: name fewer keys or a smaller size"
        )
    ordered = np.stack([pd.factorize(kept[:, j])[0].astype(np.int64) for j in ranked], axis=1)
    for chosen, rows in _Search(ordered, single, largest).found():
        yield tuple(sorted(ranked[bit] for bit in chosen)), np.sort(first[rows])


class _Search:
    """The way through the subsets of (n, a) different records' variables; ``single`` (n,) are those that nobody repeats."""

    def __init__(self, codes: Integers, single: NDArray[np.bool_], largest: int) -> None:
        self.codes, self.single, self.largest = codes, single, largest
        self.width = codes.max(axis=0) + 1
        self.unique: dict[int, Packed] = {}
        self.everybody = np.packbits(single)

    def found(self) -> Iterator[tuple[list[int], Integers]]:
        """Sets of bits with the records that are minimally unique on them."""
        rows = np.arange(len(self.codes))
        yield from self._below(0, [], self.codes.shape[1], rows, np.zeros(len(rows), dtype=np.int64))

    def _below(
        self, mask: int, chosen: list[int], lowest: int, rows: Integers, group: Integers
    ) -> Iterator[tuple[list[int], Integers]]:
        """The sets of a ``mask`` and more bits below its ``lowest``; ``rows`` (r,) agree on it with those of their ``group`` (r,)."""
        for bit in range(lowest):
            bits = [*chosen, bit]
            own = mask | 1 << bit
            known = self._known(own, bits)
            left = ~known[rows]
            some = rows[left]
            refined = pd.factorize(group[left] * self.width[bit] + self.codes[some, bit])[0].astype(np.int64)
            alone = (np.bincount(refined)[refined] == 1) & self.single[some] if len(some) else np.empty(0, np.bool_)
            if alone.any():
                yield bits, some[alone]
            known[some[alone]] = True
            if len(bits) == self.largest:
                continue
            self.unique[own] = np.packbits(known)
            stay = ~alone & self._rivals(refined, self.single[some] & ~alone)
            if stay.any():
                yield from self._below(own, bits, bit, some[stay], refined[stay])

    def _known(self, mask: int, bits: list[int]) -> NDArray[np.bool_]:
        """The records that are unique on a proper subset, (n,): those unique on a set of one variable less.

        A set that was not reached is one by which everybody is unique who can be.
        """
        packed = np.zeros_like(self.everybody)
        for bit in bits:
            if smaller := mask & ~(1 << bit):
                packed |= self.unique.get(smaller, self.everybody)
        return np.unpackbits(packed, count=len(self.codes)).astype(np.bool_)

    @staticmethod
    def _rivals(group: Integers, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The records, (r,), in whose group somebody may still be found unique."""
        return (np.bincount(group[candidates], minlength=int(group.max(initial=-1)) + 1) > 0)[group]
