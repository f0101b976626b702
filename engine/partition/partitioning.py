"""Mondrian's partitioning, all partitions of a level cut at once (LeFevre, DeWitt & Ramakrishnan 2006).

A partition is cut at the median of its widest quasi-identifier, or of the next widest where that cut is not allowed,
until no cut is. The records of a partition lie side by side, so that counts, ranges and medians of all partitions of a
level are segment sums; a level costs O(n d), and there are about log2(n / k) levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.rows import distinct_codes

Codes = NDArray[np.int32]

# Counting takes an array over the codes of all segments; beyond this many places a record, sorting is quicker.
DENSE = 4
Booleans = NDArray[np.bool_]
ClassCheck = Callable[[Integers, Integers, int], Booleans]
"""(rows (a,), part of each row (a,), parts) -> which parts may be classes, (parts,)."""
ClassRule = Callable[[Integers], ClassCheck]
"""records (a,) of which a table consists -> which parts of it may be classes."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Some of the segments of an array.

    members: places of their members, (a,)
    segment: segment of each member, (a,)
    sizes: members of each segment, (s,)
    """

    members: Integers
    segment: Integers
    sizes: Integers

    @classmethod
    def from_sizes(cls, sizes: Integers, chosen: Integers) -> Segments:
        """Choose segments that lie side by side with these sizes; numbered from 0 in the order of ``chosen``."""
        starts = np.cumsum(sizes) - sizes
        own = sizes[chosen]
        segment = np.repeat(np.arange(len(chosen)), own)
        offset = starts[chosen] - (np.cumsum(own) - own)
        return cls(np.arange(len(segment)) + offset[segment], segment, own)


def median_cuts(
    codes: Codes, segments: Segments, low: Codes, high: Codes, relaxed: bool
) -> tuple[NDArray[np.bool_], Integers]:
    """Return which members lie right of their segment's cut, (a,), and how many lie left of it, (s,).

    The median is the value of rank ceil(size / 2). A strict cut lies below or above it, whichever parts the segment
    more evenly, above it if both do. A relaxed cut leaves ceil(size / 2) members on the left, those of the median value
    in order.

    ``codes`` (a,) are those of the members, ``low`` and ``high`` (s,) the smallest and largest of each segment.
    """
    median, below, up_to = _segment_medians(codes, segments, low, high)
    mine = median[segments.segment]
    if not relaxed:
        # No value may lie on both sides of a strict cut, so it lies below or above the median value.
        above = np.abs(2 * up_to - segments.sizes) <= np.abs(2 * below - segments.sizes)
        return codes >= (median + above)[segments.segment], np.where(above, up_to, below)
    left = (segments.sizes + 1) // 2
    tied = codes == mine
    # Ranks among the records of the median value, restarted in each segment: the first of them go left.
    running = np.cumsum(tied)
    starts = np.cumsum(segments.sizes) - segments.sizes
    opening = running[starts] - tied[starts]
    rank = running - opening[segments.segment]
    return (codes > mine) | (tied & (rank > (left - below)[segments.segment])), left


def _segment_medians(codes: Codes, segments: Segments, low: Codes, high: Codes) -> tuple[Integers, Integers, Integers]:
    """Return the median code of each segment, and how many of its members lie below it and up to it, (s,) each."""
    starts = np.cumsum(segments.sizes) - segments.sizes
    middle = starts + (segments.sizes - 1) // 2
    spans = (high - low + 1).astype(np.int64)
    total = int(spans.sum())
    if total <= DENSE * len(codes):
        # Each segment has a stretch of the array for its own codes, so that one bincount serves all.
        offset = np.cumsum(spans) - spans - low
        running = np.cumsum(np.bincount(codes + offset[segments.segment], minlength=total))
        entry = np.searchsorted(running, middle, side="right")
        before = np.where(entry > 0, running[entry - 1], 0)
        return entry - offset, np.maximum(before - starts, 0), running[entry] - starts
    width = int(high.max()) + 1
    # The segment is the leading digit of the key, so one sort orders all segments.
    keys = np.sort(codes + segments.segment * width)
    key = keys[middle]
    median = key - np.arange(len(key)) * width
    return median, np.searchsorted(keys, key, "left") - starts, np.searchsorted(keys, key, "right") - starts


@dataclass(frozen=True, eq=False)
class QuasiIdentifierRanks:
    """A quasi-identifier as ranks of its values.

    codes: rank of each record's value, (n,)
    places: where each rank lies between 0 and 1, (ranks,)
    """

    codes: NDArray[np.int32]
    places: Floats

    @classmethod
    def from_numbers(cls, values: Floats) -> QuasiIdentifierRanks:
        """Rank numbers, (n,), and place them by value, scaled by their range."""
        distinct = distinct_codes(values)
        return cls(distinct.codes, _scale_to_unit(distinct.values))

    @classmethod
    def from_ranks(cls, ranks: Integers) -> QuasiIdentifierRanks:
        """Rank ordered levels or leaves of a tree, (n,), and place them at equal distances."""
        distinct = distinct_codes(ranks)
        return cls(distinct.codes, _scale_to_unit(np.arange(len(distinct.values), dtype=np.float64)))


def _scale_to_unit(places: Floats) -> Floats:
    """Return ascending places scaled to 0..1; 0 if they are all the same."""
    span = float(places[-1] - places[0])
    return (places - places[0]) / span if span > 0 else np.zeros(len(places))


@dataclass
class _PartitionState:
    """State between two levels: the partitions that may still be cut, and the tree of all so far.

    Records lie in partitions side by side. Partitions are numbered level by level.

    rows: records that may still be cut, (a,)
    codes: their ranks of each quasi-identifier, (a,) each
    sizes: records of each partition
    leaves: partition that each record ended in, -1 for none yet and for those suppressed, (n,)
    parents: for each level, which partition each of its own was cut from
    suppressed: number of suppressed records
    """

    rows: Integers
    codes: list[NDArray[np.int32]]
    sizes: Integers
    leaves: Integers
    parents: list[Integers]
    suppressed: int = 0

    @property
    def first_number(self) -> int:
        """Return the number of this level's first partition."""
        return sum(map(len, self.parents[:-1]))

    def close_partitions(self, parts: Integers) -> None:
        """Make these partitions leaves, which are cut no further."""
        segments = Segments.from_sizes(self.sizes, parts)
        self.leaves[self.rows[segments.members]] = self.first_number + parts[segments.segment]


@dataclass(frozen=True, eq=False)
class _LevelCuts:
    """Cuts of one level of s partitions with a records.

    is_cut: which partitions are cut, (s,)
    goes_right: which records lie right of the cut, (a,)
    gain: what suppressing the small side of an uncut partition would win, 0 for nothing, (s,)
    in_small_side: which records lie on a small side, (a,)
    """

    is_cut: Booleans
    goes_right: Booleans
    gain: Floats
    in_small_side: Booleans

    @classmethod
    def without_cuts(cls, parts: int, records: int) -> _LevelCuts:
        no_part, no_record = np.zeros(parts, dtype=np.bool_), np.zeros(records, dtype=np.bool_)
        return cls(no_part, no_record, np.zeros(parts), no_record.copy())


def mondrian_classes(
    dimensions: Sequence[QuasiIdentifierRanks],
    k: int,
    *,
    relaxed: bool = False,
    rule: ClassRule | None = None,
    most_suppressed: int = 0,
) -> Integers:
    """Partition the records and return the class of each, (n,), from 0; -1 for those suppressed.

    A strict cut parts records by value, at the edge of the median value that parts them most evenly; a relaxed cut
    parts them in halves, those of the median value in the order in which they come. A cut is allowed when both sides
    have k records and the ``rule`` of the whole table allows both. Where no cut is, a strict side of fewer than k
    records is suppressed while their number keeps to ``most_suppressed``: of all such sides of a level those first that
    have, for each record, most records and range to win. Records that are left make another table, whose rule may be
    another: cuts that it does not allow are undone, until it allows all classes or one class is left.

    ``dimensions`` are the d quasi-identifiers of n >= k records, in the order in which equally wide ones are cut.
    """
    n = len(dimensions[0].codes)
    codes = [dimension.codes for dimension in dimensions]
    cuts = _CutFinder(dimensions, k, relaxed, rule(np.arange(n)) if rule else None)
    state = _PartitionState(np.arange(n), codes, np.array([n]), np.full(n, -1, dtype=np.int64), [np.array([-1])])
    while len(state.sizes):
        level = cuts.cut_level(state, trim=most_suppressed > state.suppressed)
        trimmed = _partitions_to_trim(state, level, most_suppressed - state.suppressed)
        state.close_partitions(np.flatnonzero(~level.is_cut & ~trimmed))
        state = _next_level_state(state, level, trimmed)
    if rule and state.suppressed:
        _undo_refused_cuts(state, rule)
    return _renumber_classes(state.leaves)


def _undo_refused_cuts(state: _PartitionState, rule: ClassRule) -> None:
    """Undo cuts, the last ones first, until the rule of the records that are left allows every leaf."""
    kept = np.flatnonzero(state.leaves >= 0)
    allowed, parent = rule(kept), np.concatenate(state.parents)
    rows = kept
    # Suppression changed the table that t-closeness compares with, so cuts that were allowed may no longer be. A merged
    # class may be refused again; the loop ends since each turn removes leaves.
    while len(rows):
        leaves, part = np.unique(state.leaves[rows], return_inverse=True)
        refused = parent[leaves[~allowed(rows, part, len(leaves))]]
        merged = _highest_chosen_ancestor(state.parents, refused[refused >= 0])[state.leaves]
        rows = kept[merged[kept] >= 0]
        state.leaves[rows] = merged[rows]


def _highest_chosen_ancestor(parents: Sequence[Integers], chosen: Integers) -> Integers:
    """Return the highest chosen partition among each partition and its ancestors, -1 without one: (partitions,)."""
    found = np.full(sum(map(len, parents)), -1, dtype=np.int64)
    found[chosen] = chosen
    first = len(parents[0])
    for parent in parents[1:]:
        own = found[first : first + len(parent)]
        own[:] = np.where(found[parent] >= 0, found[parent], own)
        first += len(parent)
    return found


def _renumber_classes(leaves: Integers) -> Integers:
    """Assign numbers to the classes from 0 in the order of the leaves' numbers; -1 stays."""
    occurs = np.bincount(leaves[leaves >= 0]) > 0
    return np.where(leaves >= 0, (np.cumsum(occurs) - 1)[leaves], -1)


@dataclass(frozen=True, eq=False)
class _CutFinder:
    """Search for allowed cuts of the partitions of a level.

    dimensions: quasi-identifiers
    k: fewest records of a partition
    relaxed: whether records of the median value may be parted
    allowed: check of the table's rule; None without one
    """

    dimensions: Sequence[QuasiIdentifierRanks]
    k: int
    relaxed: bool
    allowed: ClassCheck | None

    def cut_level(self, state: _PartitionState, *, trim: bool) -> _LevelCuts:
        """Cut every partition by its widest dimension that allows it; with ``trim`` search for small sides too."""
        starts = np.cumsum(state.sizes) - state.sizes
        low = np.stack([np.minimum.reduceat(codes, starts) for codes in state.codes])
        high = np.stack([np.maximum.reduceat(codes, starts) for codes in state.codes])
        width = np.stack([d.places[h] - d.places[b] for d, b, h in zip(self.dimensions, low, high, strict=True)])
        level = _LevelCuts.without_cuts(len(state.sizes), len(state.rows))
        # A side below k can be suppressed only with ``trim``; else both sides need k records.
        large = state.sizes > self.k if trim else state.sizes >= 2 * self.k
        # In turn the widest dimension of each partition, the next widest, and so on; a stable sort takes equal ones in
        # their order.
        for place in np.argsort(-width, axis=0, kind="stable"):
            pending = np.flatnonzero(~level.is_cut & large)
            for d in np.unique(place[pending]):
                tried = pending[(place[pending] == d) & (width[d, pending] > 0)]
                if len(tried):
                    segments = Segments.from_sizes(state.sizes, tried)
                    codes = state.codes[d][segments.members]
                    cuts = median_cuts(codes, segments, low[d, tried], high[d, tried], self.relaxed)
                    fits = self._allowed_sides(state, segments, cuts[0])
                    self._store_cuts(level, tried, segments, cuts, fits)
                    if trim:
                        self._store_small_sides(level, tried, segments, cuts, fits, width[d, tried])
        return level

    def _allowed_sides(self, state: _PartitionState, segments: Segments, right: Booleans) -> Booleans:
        """Return which sides of each segment the rule allows as classes, whatever their size, (s, 2)."""
        if self.allowed is None:
            return np.ones((len(segments.sizes), 2), dtype=np.bool_)
        side = 2 * segments.segment + right
        return self.allowed(state.rows[segments.members], side, 2 * len(segments.sizes)).reshape(-1, 2)

    def _store_cuts(
        self, level: _LevelCuts, tried: Integers, segments: Segments, cuts: tuple[Booleans, Integers], fits: Booleans
    ) -> None:
        """Store which of the tried partitions are cut, and the side of their records."""
        right, left_size = cuts
        smaller = np.minimum(left_size, segments.sizes - left_size)
        level.is_cut[tried] = (smaller >= self.k) & fits.all(axis=1)
        level.goes_right[segments.members] = right

    def _store_small_sides(
        self,
        level: _LevelCuts,
        tried: Integers,
        segments: Segments,
        cuts: tuple[Booleans, Integers],
        fits: Booleans,
        width: Floats,
    ) -> None:
        """Store the small side of each uncut partition whose suppression gains most so far."""
        right, left_size = cuts
        smaller = np.minimum(left_size, segments.sizes - left_size)
        left_is_small = 2 * left_size < segments.sizes
        large_fits = np.where(left_is_small, fits[:, 1], fits[:, 0]) & (segments.sizes - smaller >= self.k)
        # Records and range that become free to be cut, for each suppressed record.
        gain = np.where((smaller < self.k) & large_fits, segments.sizes * width / np.maximum(smaller, 1), 0.0)
        better = ~level.is_cut[tried] & (gain > level.gain[tried])
        level.gain[tried] = np.where(better, gain, level.gain[tried])
        members = better[segments.segment]
        level.in_small_side[segments.members[members]] = (right ^ left_is_small[segments.segment])[members]


def _partitions_to_trim(state: _PartitionState, level: _LevelCuts, budget: int) -> Booleans:
    """Return which partitions have their small side suppressed, (s,), within the ``budget`` of records.

    Those of the largest gain come first.
    """
    chosen = np.zeros(len(state.sizes), dtype=np.bool_)
    candidates = np.flatnonzero(~level.is_cut & (level.gain > 0))
    if budget > 0 and len(candidates):
        starts = np.cumsum(state.sizes) - state.sizes
        small = np.add.reduceat(level.in_small_side.astype(np.int64), starts)[candidates]
        order = np.argsort(-level.gain[candidates], kind="stable")
        chosen[candidates[order[np.cumsum(small[order]) <= budget]]] = True
    return chosen


def _next_level_state(state: _PartitionState, level: _LevelCuts, trimmed: Booleans) -> _PartitionState:
    """Return the partitions of the next level side by side, each in the order in which its records came."""
    starts = np.cumsum(state.sizes) - state.sizes
    stay = np.repeat(level.is_cut | trimmed, state.sizes)
    if trimmed.any():
        stay &= ~(level.in_small_side & np.repeat(trimmed, state.sizes))
    right = stay & level.goes_right & np.repeat(level.is_cut, state.sizes)
    sides = stay & ~right, right
    counts = [np.add.reduceat(side, starts, dtype=np.int64) for side in sides]
    suppressed = int(state.sizes[trimmed].sum() - counts[0][trimmed].sum())
    sizes = np.column_stack(counts).reshape(-1)
    opening = np.cumsum(sizes) - sizes
    source = np.empty(int(sizes.sum()), dtype=np.int64)
    for place, (side, own) in enumerate(zip(sides, counts, strict=True)):
        rows = np.flatnonzero(side)
        # The order of records within a partition stays, since relaxed cuts split records of the median value by it.
        source[np.repeat(opening[place::2] - (np.cumsum(own) - own), own) + np.arange(len(rows))] = rows
    codes = [values[source] for values in state.codes]
    parents = [*state.parents, state.first_number + np.flatnonzero(sizes) // 2]
    return _PartitionState(
        state.rows[source], codes, sizes[sizes > 0], state.leaves, parents, state.suppressed + suppressed
    )
