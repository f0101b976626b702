"""Mondrian's partitioning, all partitions of a level cut at once (LeFevre, DeWitt & Ramakrishnan 2006).

A partition is cut at the median of its widest quasi-identifier, or of the next widest where that cut is not allowed, until
no cut is. The records of a partition lie side by side, so that counts, ranges and medians of all partitions of a level
are segment sums; a level costs O(n d), and there are about log2(n / k) levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from .grouping import ranked

Codes = NDArray[np.int32]

DENSE = 4
Booleans = NDArray[np.bool_]
Allowed = Callable[[Integers, Integers, int], Booleans]
"""(rows (a,), part of each row (a,), parts) -> which parts may be classes, (parts,)."""
Rule = Callable[[Integers], Allowed]
"""records (a,) of which a table consists -> which parts of it may be classes."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Some of the segments of an array: the places of their ``members`` (a,), the ``segment`` of each, and their ``sizes``."""

    members: Integers
    segment: Integers
    sizes: Integers

    @classmethod
    def of(cls, sizes: Integers, chosen: Integers) -> Segments:
        """The chosen ones of segments that lie side by side with these sizes; numbered from 0 as they are chosen."""
        starts = np.cumsum(sizes) - sizes
        own = sizes[chosen]
        segment = np.repeat(np.arange(len(chosen)), own)
        offset = starts[chosen] - (np.cumsum(own) - own)
        return cls(np.arange(len(segment)) + offset[segment], segment, own)


def median_cuts(
    codes: Codes, segments: Segments, low: Codes, high: Codes, relaxed: bool
) -> tuple[NDArray[np.bool_], Integers]:
    """Which members lie right of their segment's cut, (a,), and how many lie left of it, (s,).

    The median is the value of rank ceil(size / 2). A strict cut lies below or above it, whichever parts the segment more
    evenly, above it if both do. A relaxed cut leaves ceil(size / 2) members on the left, those of the median value in order.

    ``codes`` (a,) are those of the members, ``low`` and ``high`` (s,) the smallest and largest of each segment.
    """
    median, below, up_to = _medians(codes, segments, low, high)
    mine = median[segments.segment]
    if not relaxed:
        above = np.abs(2 * up_to - segments.sizes) <= np.abs(2 * below - segments.sizes)
        return codes >= (median + above)[segments.segment], np.where(above, up_to, below)
    left = (segments.sizes + 1) // 2
    tied = codes == mine
    running = np.cumsum(tied)
    starts = np.cumsum(segments.sizes) - segments.sizes
    opening = running[starts] - tied[starts]
    rank = running - opening[segments.segment]
    return (codes > mine) | (tied & (rank > (left - below)[segments.segment])), left


def _medians(codes: Codes, segments: Segments, low: Codes, high: Codes) -> tuple[Integers, Integers, Integers]:
    """Median code of each segment, and its members below it and up to it, (s,) each. By counting, else by sorting."""
    starts = np.cumsum(segments.sizes) - segments.sizes
    middle = starts + (segments.sizes - 1) // 2
    spans = (high - low + 1).astype(np.int64)
    total = int(spans.sum())
    if total <= DENSE * len(codes):
        offset = np.cumsum(spans) - spans - low
        running = np.cumsum(np.bincount(codes + offset[segments.segment], minlength=total))
        entry = np.searchsorted(running, middle, side="right")
        before = np.where(entry > 0, running[entry - 1], 0)
        return entry - offset, np.maximum(before - starts, 0), running[entry] - starts
    width = int(high.max()) + 1
    keys = np.sort(codes + segments.segment * width)
    key = keys[middle]
    median = key - np.arange(len(key)) * width
    return median, np.searchsorted(keys, key, "left") - starts, np.searchsorted(keys, key, "right") - starts


@dataclass(frozen=True, eq=False)
class Dimension:
    """A quasi-identifier: ranks ``codes`` (n,) of its values, and where each rank lies between 0 and 1, ``places``."""

    codes: NDArray[np.int32]
    places: Floats

    @classmethod
    def of_numbers(cls, values: Floats) -> Dimension:
        """Numbers, (n,): they lie as they are, scaled by their range."""
        distinct, codes = ranked(values)
        return cls(codes, _scaled(distinct))

    @classmethod
    def of_ranks(cls, ranks: Integers) -> Dimension:
        """Ordered levels or leaves of a tree, (n,): neighbours lie equally far apart."""
        distinct, codes = ranked(ranks.astype(np.float64))
        return cls(codes, _scaled(np.arange(len(distinct), dtype=np.float64)))


def _scaled(places: Floats) -> Floats:
    span = float(places[-1] - places[0])
    return (places - places[0]) / span if span > 0 else np.zeros(len(places))


@dataclass
class _State:
    """Records that may still be cut, (a,), in partitions side by side; and the tree of all partitions so far.

    Partitions are numbered level by level. ``parents`` has an array for each level: which partition each of its own was
    cut from. ``leaves`` (n,) is the partition that each record ended in, -1 for none yet and for those suppressed.
    """

    rows: Integers
    codes: list[NDArray[np.int32]]
    sizes: Integers
    leaves: Integers
    parents: list[Integers]
    suppressed: int = 0

    @property
    def first(self) -> int:
        """The number of this level's first partition."""
        return sum(map(len, self.parents[:-1]))

    def settle(self, parts: Integers) -> None:
        """Cut these partitions no further."""
        segments = Segments.of(self.sizes, parts)
        self.leaves[self.rows[segments.members]] = self.first + parts[segments.segment]


@dataclass(frozen=True, eq=False)
class _Level:
    """What is found for a level: which partitions are ``cut`` (s,), which records lie ``right`` (a,); and of those that cannot
    be cut what suppressing a ``small`` side (a,) has to win, ``gain`` (s,), 0 for nothing.
    """

    cut: Booleans
    right: Booleans
    gain: Floats
    small: Booleans

    @classmethod
    def blank(cls, parts: int, records: int) -> _Level:
        no_part, no_record = np.zeros(parts, dtype=np.bool_), np.zeros(records, dtype=np.bool_)
        return cls(no_part, no_record, np.zeros(parts), no_record.copy())


def mondrian_classes(
    dimensions: Sequence[Dimension],
    k: int,
    *,
    relaxed: bool = False,
    rule: Rule | None = None,
    most_suppressed: int = 0,
) -> Integers:
    """The class of each record (n,), from 0; -1 for those suppressed.

    A strict cut parts records by value, at the edge of the median value that parts them most evenly; a relaxed cut
    parts them in halves, those of the median value in the order in which they come. A cut is allowed when both sides
    have k records and the ``rule`` of the whole table allows both. Where no cut is, a strict side of fewer than k records is
    suppressed while their number keeps to ``most_suppressed``: of all such sides of a level those first that have, for
    each record, most records and range to win. Records that are left make another table, whose rule may be another:
    cuts that it does not allow are taken back, until it allows all classes or one class is left.

    ``dimensions`` are the d quasi-identifiers of n >= k records, in the order in which equally wide ones are cut.
    """
    n = len(dimensions[0].codes)
    codes = [dimension.codes for dimension in dimensions]
    cuts = _Cuts(dimensions, k, relaxed, rule(np.arange(n)) if rule else None)
    state = _State(np.arange(n), codes, np.array([n]), np.full(n, -1, dtype=np.int64), [np.array([-1])])
    while len(state.sizes):
        level = cuts.level(state, trim=most_suppressed > state.suppressed)
        trimmed = _chosen(state, level, most_suppressed - state.suppressed)
        state.settle(np.flatnonzero(~level.cut & ~trimmed))
        state = _rearranged(state, level, trimmed)
    if rule and state.suppressed:
        _take_back(state, rule)
    return _numbered(state.leaves)


def _take_back(state: _State, rule: Rule) -> None:
    """Undo cuts, the last ones first, until the rule of the records that are left allows every leaf."""
    kept = np.flatnonzero(state.leaves >= 0)
    allowed, parent = rule(kept), np.concatenate(state.parents)
    rows = kept
    while len(rows):
        leaves, part = np.unique(state.leaves[rows], return_inverse=True)
        refused = parent[leaves[~allowed(rows, part, len(leaves))]]
        merged = _highest(state.parents, refused[refused >= 0])[state.leaves]
        rows = kept[merged[kept] >= 0]
        state.leaves[rows] = merged[rows]


def _highest(parents: Sequence[Integers], chosen: Integers) -> Integers:
    """The highest of the chosen partitions that each partition is or lies in, -1 where there is none: (partitions,)."""
    found = np.full(sum(map(len, parents)), -1, dtype=np.int64)
    found[chosen] = chosen
    first = len(parents[0])
    for parent in parents[1:]:
        own = found[first : first + len(parent)]
        own[:] = np.where(found[parent] >= 0, found[parent], own)
        first += len(parent)
    return found


def _numbered(leaves: Integers) -> Integers:
    """Classes from 0 in the order of the leaves' numbers; -1 stays."""
    occurs = np.bincount(leaves[leaves >= 0]) > 0
    return np.where(leaves >= 0, (np.cumsum(occurs) - 1)[leaves], -1)


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Which cuts are tried, and which are allowed."""

    dimensions: Sequence[Dimension]
    k: int
    relaxed: bool
    allowed: Allowed | None

    def level(self, state: _State, *, trim: bool) -> _Level:
        """Cut every partition by its widest dimension that allows it; with ``trim`` look for small sides too."""
        starts = np.cumsum(state.sizes) - state.sizes
        low = np.stack([np.minimum.reduceat(codes, starts) for codes in state.codes])
        high = np.stack([np.maximum.reduceat(codes, starts) for codes in state.codes])
        width = np.stack([d.places[h] - d.places[b] for d, b, h in zip(self.dimensions, low, high, strict=True)])
        level = _Level.blank(len(state.sizes), len(state.rows))
        large = state.sizes > self.k if trim else state.sizes >= 2 * self.k
        for place in np.argsort(-width, axis=0, kind="stable"):
            pending = np.flatnonzero(~level.cut & large)
            for d in np.unique(place[pending]):
                tried = pending[(place[pending] == d) & (width[d, pending] > 0)]
                if len(tried):
                    segments = Segments.of(state.sizes, tried)
                    codes = state.codes[d][segments.members]
                    cuts = median_cuts(codes, segments, low[d, tried], high[d, tried], self.relaxed)
                    fits = self._fits(state, segments, cuts[0])
                    self._cut(level, tried, segments, cuts, fits)
                    if trim:
                        self._trim(level, tried, segments, cuts, fits, width[d, tried])
        return level

    def _fits(self, state: _State, segments: Segments, right: Booleans) -> Booleans:
        """Which sides of each segment may be classes, but for their size, (s, 2)."""
        if self.allowed is None:
            return np.ones((len(segments.sizes), 2), dtype=np.bool_)
        side = 2 * segments.segment + right
        return self.allowed(state.rows[segments.members], side, 2 * len(segments.sizes)).reshape(-1, 2)

    def _cut(
        self, level: _Level, tried: Integers, segments: Segments, cuts: tuple[Booleans, Integers], fits: Booleans
    ) -> None:
        right, left_size = cuts
        smaller = np.minimum(left_size, segments.sizes - left_size)
        level.cut[tried] = (smaller >= self.k) & fits.all(axis=1)
        level.right[segments.members] = right

    def _trim(
        self,
        level: _Level,
        tried: Integers,
        segments: Segments,
        cuts: tuple[Booleans, Integers],
        fits: Booleans,
        width: Floats,
    ) -> None:
        right, left_size = cuts
        smaller = np.minimum(left_size, segments.sizes - left_size)
        left_is_small = 2 * left_size < segments.sizes
        large_fits = np.where(left_is_small, fits[:, 1], fits[:, 0]) & (segments.sizes - smaller >= self.k)
        gain = np.where((smaller < self.k) & large_fits, segments.sizes * width / np.maximum(smaller, 1), 0.0)
        better = ~level.cut[tried] & (gain > level.gain[tried])
        level.gain[tried] = np.where(better, gain, level.gain[tried])
        members = better[segments.segment]
        level.small[segments.members[members]] = (right ^ left_is_small[segments.segment])[members]


def _chosen(state: _State, level: _Level, budget: int) -> Booleans:
    """The partitions whose small side is suppressed, best first, as long as there is room."""
    chosen = np.zeros(len(state.sizes), dtype=np.bool_)
    candidates = np.flatnonzero(~level.cut & (level.gain > 0))
    if budget > 0 and len(candidates):
        starts = np.cumsum(state.sizes) - state.sizes
        small = np.add.reduceat(level.small.astype(np.int64), starts)[candidates]
        order = np.argsort(-level.gain[candidates], kind="stable")
        chosen[candidates[order[np.cumsum(small[order]) <= budget]]] = True
    return chosen


def _rearranged(state: _State, level: _Level, trimmed: Booleans) -> _State:
    """The partitions of the next level side by side, each in the order in which its records came."""
    starts = np.cumsum(state.sizes) - state.sizes
    stay = np.repeat(level.cut | trimmed, state.sizes)
    if trimmed.any():
        stay &= ~(level.small & np.repeat(trimmed, state.sizes))
    right = stay & level.right & np.repeat(level.cut, state.sizes)
    sides = stay & ~right, right
    counts = [np.add.reduceat(side, starts, dtype=np.int64) for side in sides]
    suppressed = int(state.sizes[trimmed].sum() - counts[0][trimmed].sum())
    sizes = np.column_stack(counts).reshape(-1)
    opening = np.cumsum(sizes) - sizes
    source = np.empty(int(sizes.sum()), dtype=np.int64)
    for place, (side, own) in enumerate(zip(sides, counts, strict=True)):
        rows = np.flatnonzero(side)
        source[np.repeat(opening[place::2] - (np.cumsum(own) - own), own) + np.arange(len(rows))] = rows
    codes = [values[source] for values in state.codes]
    parents = [*state.parents, state.first + np.flatnonzero(sizes) // 2]
    return _State(state.rows[source], codes, sizes[sizes > 0], state.leaves, parents, state.suppressed + suppressed)
