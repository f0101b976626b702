"""Blocks: which pairs of a confidential and a released record are compared at all, and in which order records are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Integers
from .comparisons import Comparison, classes

AT_ONCE = 1 << 20
"""Pairs that are held in memory together, or those of one record."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which records are compared: ``ours`` (n,) and ``theirs`` (m,) are the block of each record, from 0."""

    ours: Integers
    theirs: Integers

    @classmethod
    def of(cls, keys: Sequence[Comparison], records: tuple[int, int]) -> Blocks:
        """Records that agree on all keys; all of them where there is none. ``records`` are n and m."""
        both = [np.concatenate([key.ours, key.theirs]) for key in keys]
        joint = classes(both, sum(records))
        return cls(joint[: records[0]], joint[records[0] :])

    @property
    def sizes(self) -> Integers:
        """Released records in each block."""
        width = int(max(self.ours.max(initial=0), self.theirs.max(initial=0))) + 1
        return np.bincount(self.theirs, minlength=width).astype(np.int64)


def in_order(blocks: Blocks, comparisons: Sequence[Comparison]) -> Integers:
    """The confidential records in an order that hangs on values alone, (n,)."""
    columns = [blocks.ours, *(column for one in comparisons for column in one.of_ours)]
    if len(blocks.theirs) == len(blocks.ours):
        columns += [one.theirs for one in comparisons]
    return np.lexsort(columns[::-1]).astype(np.int64)


def evenly(ordered: Integers, count: int) -> Integers:
    """So many of the records, evenly through their order; all where they are no more."""
    if count >= len(ordered):
        return ordered
    return ordered[np.arange(count) * len(ordered) // count]


@dataclass(frozen=True, eq=False)
class Alike:
    """Records grouped by kind: records of one kind share a block and all values that are compared.

    ``which`` (n,) is the kind of each record. ``first`` and ``count`` (kinds,) are a record of each kind and how many there are.
    Kinds are ordered by block; those of block b begin at ``start[b]``.
    """

    which: Integers
    first: Integers
    count: Integers
    start: Integers

    @classmethod
    def of(cls, records: Integers, block: Integers, columns: Sequence[Integers], width: int) -> Alike:
        """Kinds of some ``records`` by their ``block`` and ``columns``, with ``width`` blocks in all."""
        kind = classes([block[records], *(column[records] for column in columns)], len(records))
        _, first, count = np.unique(kind, return_index=True, return_counts=True)
        start = np.searchsorted(block[records[first]], np.arange(width + 1))
        return cls(kind, records[first], count.astype(np.int64), start.astype(np.int64))


def alike(comparisons: Sequence[Comparison], blocks: Blocks, targets: Integers) -> tuple[Alike, Alike]:
    """Kinds of the confidential records ``targets`` (t,) and of all released records."""
    width = len(blocks.sizes)
    ours = Alike.of(targets, blocks.ours, [column for one in comparisons for column in one.of_ours], width)
    everyone = np.arange(len(blocks.theirs))
    return ours, Alike.of(everyone, blocks.theirs, [one.theirs for one in comparisons], width)


def pairs_of(ours: Alike, theirs: Alike) -> Iterator[tuple[Integers, Integers]]:
    """All pairs of kinds within the blocks, in parts: the kinds of each pair, (pairs,) and (pairs,)."""
    sizes = np.diff(theirs.start)
    block = np.repeat(np.arange(len(sizes)), np.diff(ours.start))
    ends = np.cumsum(sizes[block])
    for part in np.split(np.arange(len(block)), np.flatnonzero(np.diff(ends // AT_ONCE)) + 1):
        size = sizes[block[part]]
        i = np.repeat(part, size)
        within = np.arange(len(i)) - np.repeat(np.cumsum(size) - size, size)
        yield i, np.repeat(theirs.start[block[part]], size) + within
