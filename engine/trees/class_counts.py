"""Records of each class and value of a predictor at the nodes of one depth of classification trees, and where they may be cut in two.

A predictor with few values is counted: records of each node, value and class. Of the two sons of a node only the smaller is counted, the other
is what is left of their parent (LightGBM: Ke et al. 2017). One with many values keeps its records in its own order, node by node, as SLIQ
does (Mehta, Agrawal & Rissanen 1996). Both ways give the same cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Booleans, Floats, Integers

_MOST_CELLS = 4
_ROUNDING = 1e-11

Int32s = NDArray[np.int32]


class Places(NamedTuple):
    """Where A nodes may be cut by a predictor: place (M,), node after node, of the last cell or record before, how many each node has (A,), and the
    records before it of each of C classes, (M,).
    """

    place: Integers
    each: Integers
    left: Sequence[Int32s]

    @classmethod
    def none(cls, classes: int, nodes: int) -> Places:
        """No place for any of the nodes."""
        return cls(np.empty(0, np.int64), np.zeros(nodes, np.int64), [np.empty(0, np.int32)] * classes)


class Cuts(NamedTuple):
    """Where nodes may be cut in two: node (M,) ascending, place (M,) of the last cell or record before, and how many of each class that is (C, M)."""

    node: Integers
    place: Integers
    left: Floats


class Nodes:
    """A nodes of one depth and their m records, ``rows`` (m,), node after node; ``total`` (C, A) of each class, whose records weigh ``weights`` (C, 1)."""

    def __init__(self, rows: Integers, total: Floats, weights: Floats) -> None:
        self.rows, self.total, self.weights = rows, total, weights
        self.sizes = total.sum(axis=0).astype(np.int64)
        weighted = total * weights
        self.weight = weighted.sum(axis=0)
        self.shares = weighted / self.weight

    def __len__(self) -> int:
        return len(self.sizes)

    def of_each(self) -> Integers:
        """The node of each record, (m,)."""
        return np.repeat(np.arange(len(self)), self.sizes)


class Sons(NamedTuple):
    """The nodes that may split of the next depth, A of them with m records, as sons of S ``parents`` (S,) at hand.

    The records of the smaller son of each parent are ``counted`` (k,), parent after parent with ``sizes`` (S,). Each of the A is a son of the
    parent at ``place`` (A,) of the S, the smaller one or the larger.
    """

    parents: Integers
    counted: Integers
    sizes: Integers
    place: Integers
    is_larger: Booleans
    records: int


@dataclass(slots=True)
class Predictor:
    """A predictor of N records with ``size`` values: ``coded`` (N,) is the code times ``width``, plus the class; ``width`` is even, C classes or one more.

    Of the nodes at hand it has either the ``counts`` (A, size, width // 2) of each value, one int64 for two classes, whose halves never
    carry, since no class has 2^31 records, or their records in its own ``order`` within each node (m,), or, if values are ``plain``
    and lack an order, neither.
    """

    coded: Int32s
    size: int
    width: int
    plain: bool
    counts: Integers | None = None
    order: Integers | None = None

    def settle(self, nodes: Nodes) -> None:
        """Count the nodes, unless most cells would be empty, or else put their records in order."""
        if self.counts is None and self.order is None:
            if self._may_count(len(nodes), len(nodes.rows)):
                self.counts = self._count(nodes.rows, nodes.sizes)
            elif not self.plain:
                key = (nodes.of_each() * self.size + self.coded.take(nodes.rows) // self.width) * len(self.coded)
                key += nodes.rows
                key.sort()
                self.order = key - key // len(self.coded) * len(self.coded)

    def descend(self, sons: Sons, side: NDArray[np.int8]) -> None:
        """Go on to the nodes that may split of the next depth: ``side`` (N,) is 1 or 2 for the records of those that went left or right."""
        if self.order is not None:
            sides = side.take(self.order)
            self.order = np.concatenate([self.order.compress(sides == 1), self.order.compress(sides == 2)])
        elif self.counts is not None and self._may_count(len(sons.place), sons.records):
            smaller = self._count(sons.counted, sons.sizes)
            both = np.concatenate([smaller, self.counts.take(sons.parents, axis=0)])
            both[len(smaller) :] -= smaller
            self.counts = both.take(sons.place + len(smaller) * sons.is_larger, axis=0)
        else:
            self.counts = None

    def _may_count(self, nodes: int, records: int) -> bool:
        return nodes * self.size * self.width <= _MOST_CELLS * records

    def _count(self, rows: Integers, sizes: Integers) -> Integers:
        """Some records (k,), node after node with ``sizes`` (nodes,): (nodes, size, width // 2)."""
        cells = self.size * self.width
        kind = np.int64 if cells * len(sizes) >= 2**31 else np.int32
        key: NDArray[Any] = np.repeat(np.arange(0, cells * len(sizes), cells, dtype=kind), sizes)
        key += self.coded.take(rows)
        found = np.bincount(key, minlength=cells * len(sizes)).astype(np.int32)
        return found.view(np.int64).reshape(len(sizes), self.size, self.width // 2)

    def cuts(self, nodes: Nodes, minbucket: int) -> Places:
        """After each value that a node has, where both sides keep their records."""
        if self.order is not None:
            return self._cuts_in_order(self.order, nodes, minbucket)
        assert self.counts is not None
        return self._cuts_of_counts(self.counts, nodes, minbucket)

    def filled(self) -> Booleans:
        """Which cells of the counts have records, (A size,)."""
        assert self.counts is not None
        found: Booleans = self.counts[:, :, 0].ravel() != 0
        for pair in range(1, self.width // 2):
            found |= self.counts[:, :, pair].ravel() != 0
        return found

    def _cuts_of_counts(self, counts: Integers, nodes: Nodes, minbucket: int) -> Places:
        table, classes = counts.reshape(-1, self.width // 2), len(nodes.total)
        cell = np.flatnonzero(self.filled())
        ends = np.searchsorted(cell, np.arange(1, len(nodes) + 1) * self.size)
        each = steps(ends)
        table = table.take(cell, axis=0)
        upto = np.cumsum(table, axis=0)
        upto -= np.repeat(upto[ends - each] - table[ends - each], each, axis=0)
        left = list(upto.view(np.int32).T[:classes])
        number = sum(left[1:], left[0])
        may = number >= minbucket
        may &= number <= np.repeat((nodes.sizes - minbucket).astype(np.int32), each)
        place = np.flatnonzero(may)
        each = steps(np.searchsorted(place, ends))
        return Places(cell.take(place), each, [one.take(place) for one in left])

    def _cuts_in_order(self, order: Integers, nodes: Nodes, minbucket: int) -> Places:
        coded = self.coded.take(order)
        code = coded // self.width
        of_class = coded - code * self.width
        edges = np.full((len(nodes), 3), minbucket)
        edges[:, 0] -= 1
        edges[:, 1] = nodes.sizes - edges[:, 0] - minbucket
        may = np.repeat(np.tile([False, True, False], len(nodes)), edges.ravel())
        may[:-1] &= code[1:] != code[:-1]
        place, ends = np.flatnonzero(may), np.cumsum(nodes.sizes)
        each = steps(np.searchsorted(place, ends))
        starts = ends - nodes.sizes
        rest = (place + np.repeat(1 - starts, each)).astype(np.int32)
        left = [rest]
        for k in range(1, len(nodes.total)):
            sums = _running_count(of_class == k)
            before = np.where(starts > 0, sums.take(starts - 1), 0).astype(np.int32)
            left.append(sums.take(place) - np.repeat(before, each))
            rest -= left[-1]
        return Places(place, each, left)

    def last_values(self, place: Integers) -> Integers:
        """The last value before the cuts at some places (k,)."""
        if self.order is None:
            return place % self.size
        return self.coded.take(self.order.take(place)).astype(np.int64) // self.width


def steps(ends: Integers) -> Integers:
    """By how much each of some ends (A,) is beyond the one before, the first one beyond 0."""
    found = ends.copy()
    found[1:] -= ends[:-1]
    return found


def _running_count(flags: Booleans) -> Int32s:
    """How many of the flags up to each are true, (m,): of eight in one product of a word, which takes a quarter of the time of their sums."""
    words = np.zeros(-(-len(flags) // 8), "<u8")
    words.view(np.bool_)[: len(flags)] = flags
    words *= 0x0101010101010101
    within = words.view(np.uint8).reshape(-1, 8)
    number = within[:, 7].astype(np.int32)
    found = within + (np.cumsum(number, dtype=np.int32) - number)[:, None]
    return found.ravel()[: len(flags)]


def nearly_best(found: Sequence[Places], nodes: Nodes, known: Floats) -> Cuts:
    """Those cuts of Q predictors that may be the best of their node, within rounding, where other splits gain what is ``known`` (A,).

    The node is numbered from A times the predictor on.
    """
    each = np.concatenate([places.each for places in found])
    left = [np.concatenate(parts) for parts in zip(*(places.left for places in found), strict=True)]
    some = np.flatnonzero(each)
    starts, repeats, of_node = (np.cumsum(each) - each)[some], each[some], some % len(nodes)
    best = known / nodes.weight
    if len(some):
        gain = _gain(left, nodes, of_node, repeats)
        np.maximum.at(best, of_node, np.maximum.reduceat(gain, starts))
        near = np.flatnonzero(gain >= np.repeat((best - _ROUNDING)[of_node], repeats))
    else:
        near = some
    node = some.take(np.searchsorted(starts, near, side="right") - 1)
    place = np.concatenate([places.place for places in found]).take(near)
    return Cuts(node, place, np.stack([of.take(near) for of in left]).astype(np.float64))


def _gain(left: Sequence[Int32s], nodes: Nodes, of_node: Integers, each: Integers) -> Floats:
    """How much impurity cuts take away, (M,), as a share of the weight of their node, with the records of C classes on the left, (M,).

    By Gini impurity that is sum_k (left_k - size share_k)^2 / (size (whole - size)), of weighted records.
    """
    weights = nodes.weights[:, 0]
    parts = [part * weight for part, weight in zip(left, weights, strict=True)]
    size = sum(parts[1:], parts[0])
    both = np.repeat(nodes.weight[of_node], each)
    both -= size
    both *= size
    gain: Floats | None = None
    for part, share in list(zip(parts, nodes.shares, strict=True))[: 1 if len(parts) == 2 else None]:
        apart = np.repeat(share[of_node], each)
        apart *= size
        apart -= part
        apart *= apart
        gain = apart if gain is None else np.add(gain, apart, out=gain)
    assert gain is not None
    gain /= both
    if len(parts) == 2:
        gain *= 2
    return gain
