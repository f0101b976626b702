"""Blocks: which pairs of a confidential and a released record are compared at all, and in which order records are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Integers
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


def pairs_of(targets: Integers, blocks: Blocks) -> Iterator[tuple[Integers, Integers]]:
    """All pairs of these confidential records, some at once: the records of each pair, (pairs,) and (pairs,)."""
    sizes = blocks.sizes
    order, start = np.argsort(blocks.theirs, kind="stable"), np.cumsum(sizes) - sizes
    ends = np.cumsum(sizes[blocks.ours[targets]])
    for part in np.split(targets, np.flatnonzero(np.diff(ends // AT_ONCE)) + 1):
        size = sizes[blocks.ours[part]]
        i = np.repeat(part, size)
        within = np.arange(len(i)) - np.repeat(np.cumsum(size) - size, size)
        yield i, order[np.repeat(start[blocks.ours[part]], size) + within]
