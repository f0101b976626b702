"""Blocks of records that are compared in a linkage, and distinct records within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Integers
from ..data.rows import distinct_rows
from .comparisons import VariableComparison

AT_ONCE = 1 << 20
"""Number of pairs in memory together, at least those of one record."""


@dataclass(frozen=True, eq=False)
class ComparisonBlocks:
    """Blocks of records: only records of the same block are compared.

    confidential_blocks: block of each confidential record, from 0, (n,)
    released_blocks: block of each released record, (m,)
    """

    confidential_blocks: Integers
    released_blocks: Integers

    @classmethod
    def from_keys(cls, keys: Sequence[VariableComparison], records: tuple[int, int]) -> ComparisonBlocks:
        """Form blocks of records that agree on all keys, one block without keys; ``records`` are n and m."""
        both = [np.concatenate([key.confidential_codes, key.released_codes]) for key in keys]
        joint = distinct_rows(both, sum(records)).combination_of
        return cls(joint[: records[0]], joint[records[0] :])

    @property
    def released_counts(self) -> Integers:
        """Return the number of released records in each block, (blocks,)."""
        width = int(max(self.confidential_blocks.max(initial=0), self.released_blocks.max(initial=0))) + 1
        return np.bincount(self.released_blocks, minlength=width).astype(np.int64)


def order_by_values(blocks: ComparisonBlocks, comparisons: Sequence[VariableComparison]) -> Integers:
    """Return the confidential records sorted by their values, (n,)."""
    columns = [blocks.confidential_blocks, *(column for one in comparisons for column in one.confidential_columns)]
    if len(blocks.released_blocks) == len(blocks.confidential_blocks):
        # Among equal records, released values decide, so that the order of the file never does.
        columns += [one.released_codes for one in comparisons]
    return np.lexsort(columns[::-1]).astype(np.int64)


def take_evenly(ordered: Integers, count: int) -> Integers:
    """Return ``count`` of the records, evenly spaced in their order; all if there are no more."""
    if count >= len(ordered):
        return ordered
    return ordered[np.arange(count) * len(ordered) // count]


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Distinct records: records of one kind share a block and all compared values.

    kind_of_record: kind of each record, (n,)
    first_record: first record of each kind, (kinds,)
    count: number of records of each kind, (kinds,)
    start: first kind of each block, (blocks + 1,); kinds are sorted by block
    """

    kind_of_record: Integers
    first_record: Integers
    count: Integers
    start: Integers

    @classmethod
    def from_columns(cls, records: Integers, block: Integers, columns: Sequence[Integers], width: int) -> RecordGroups:
        """Group some ``records`` by their ``block`` and ``columns``; ``width`` is the number of blocks."""
        kinds = distinct_rows([block[records], *(column[records] for column in columns)], len(records))
        first = records[kinds.first]
        start = np.searchsorted(block[first], np.arange(width + 1))
        return cls(kinds.combination_of, first, kinds.counts, start.astype(np.int64))


def group_alike_records(
    comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks, targets: Integers
) -> tuple[RecordGroups, RecordGroups]:
    """Return the distinct records among the confidential ``targets`` (t,) and among all released records."""
    width = len(blocks.released_counts)
    ours = RecordGroups.from_columns(
        targets,
        blocks.confidential_blocks,
        [column for one in comparisons for column in one.confidential_columns],
        width,
    )
    everyone = np.arange(len(blocks.released_blocks))
    return ours, RecordGroups.from_columns(
        everyone, blocks.released_blocks, [one.released_codes for one in comparisons], width
    )


def pairs_of_kinds(
    confidential_groups: RecordGroups, released_groups: RecordGroups
) -> Iterator[tuple[Integers, Integers]]:
    """Yield all pairs of kinds within the blocks, (pairs,) each, in parts of about ``AT_ONCE``."""
    sizes = np.diff(released_groups.start)
    block = np.repeat(np.arange(len(sizes)), np.diff(confidential_groups.start))
    ends = np.cumsum(sizes[block])
    for part in np.split(np.arange(len(block)), np.flatnonzero(np.diff(ends // AT_ONCE)) + 1):
        size = sizes[block[part]]
        i = np.repeat(part, size)
        within = np.arange(len(i)) - np.repeat(np.cumsum(size) - size, size)
        yield i, np.repeat(released_groups.start[block[part]], size) + within
