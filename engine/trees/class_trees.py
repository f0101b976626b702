"""Classification trees: grown by Gini impurity and pruned by errors, as rpart does with ``method = "class"``.

Breiman, Friedman, Olshen & Stone (1984); rpart: Therneau & Atkinson (2019). A node is split where it has ``minsplit``
records and errors worth it, at depth below 30, so that the Gini impurity falls most and both sides keep ``minbucket``
records; of equally good splits the first one of the first predictor is taken. A split then stays where the branch below
it saves more than ``cp`` times the errors of the root for each of its splits (rpart's ``partition.c``, with its bounds on what a
branch can still save). Where classes weigh differently (rpart's ``prior``), so do their impurities and errors.

Where records weigh differently, all that is said of records is said of what they weigh, the fewest of a leaf too: a record of weight w counts as w
of one. Weights are whole ``units``, so that their sums are exact and splits that are equally good stay so.

Levels without an order are split in two sets. For two classes the best sets lie beside each other in the order of the node's
class shares (Breiman et al. 1984, theorem 4.5), for more classes all sets are tried where the predictor has at most
``MOST_LEVELS`` levels, as rpart does; with more levels, where rpart takes time exponential in their number, they are ordered along the
first principal component of the node's class shares (Coppersmith, Hong & Hosking 1999).

The best splits of the nodes of classification trees, all nodes of a depth at once, of one tree or of several.

They are those of the least Gini impurity, computed as rpart computes it, so that ties are its ties. That is slow; so it is computed only where a
quicker formula comes within rounding of the best of all predictors.

Records of each class and value of a predictor at the nodes of one depth of classification trees, and where they may be cut in two.

A predictor with few values is counted: records of each node, value and class. Of the two sons of a node only the smaller is counted, the other
is what is left of their parent (LightGBM: Ke et al. 2017). One with many values keeps its records in its own order, node by node, as SLIQ
does (Mehta, Agrawal & Rissanen 1996). Both ways give the same cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers

_MOST_CELLS = 4
_ROUNDING = 1e-11

Int32s = NDArray[np.int32]
MOST_LEVELS = 10
_MOST_COUNTS = 2_000_000
DEEPEST = 30
_NO_GAIN = 1e-10
Branch = tuple[float, float, int, float]
"""Complexity, errors of the leaves, splits, and errors as a leaf."""


class Places(NamedTuple):
    """Where A nodes may be cut by a predictor: place (M,), node after node, of the last cell or record before, how many each node has (A,), and the
    records before it of each of C classes, (M,).
    """

    place: Integers
    each: Integers
    left: Sequence[Int32s]

    @classmethod
    def none(cls, classes: int, nodes: int) -> Places:
        return cls(np.empty(0, np.int64), np.zeros(nodes, np.int64), [np.empty(0, np.int32)] * classes)


class Cuts(NamedTuple):
    """Where nodes may be cut in two: node (M,) ascending, place (M,) of the last cell or record before, and how many of each class that is (C, M)."""

    node: Integers
    place: Integers
    left: Floats


class Nodes:
    """A nodes of one depth and their m records, ``rows`` (m,), node after node, of which each has some (A,); ``total`` (C, A) of each class, whose records
    weigh ``weights`` (C, 1), and of all, ``sizes`` (A,): records, or their units.
    """

    def __init__(self, rows: Integers, total: Floats, weights: Floats, records: Integers | None = None) -> None:
        self.rows, self.total, self.weights = rows, total, weights
        self.sizes = total.sum(axis=0).astype(np.int64)
        self.records = self.sizes if records is None else records
        weighted = total * weights
        self.weight = weighted.sum(axis=0)
        self.shares = weighted / self.weight

    def __len__(self) -> int:
        return len(self.sizes)

    def of_each(self) -> Integers:
        return np.repeat(np.arange(len(self)), self.records)


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
    and lack an order, neither. ``units`` (N,) are what records weigh; None where each is one.
    """

    coded: Int32s
    size: int
    width: int
    plain: bool
    counts: Integers | None = None
    order: Integers | None = None
    units: Int32s | None = None

    def settle(self, nodes: Nodes) -> None:
        """Count the nodes, unless most cells would be empty, or else put their records in order."""
        if self.counts is None and self.order is None:
            if self._may_count(len(nodes), len(nodes.rows)):
                self.counts = self._count(nodes.rows, nodes.records)
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
        """Some records (k,), node after node with ``sizes`` (nodes,) of them: (nodes, size, width // 2)."""
        cells = self.size * self.width
        kind = np.int64 if cells * len(sizes) >= 2**31 else np.int32
        key: NDArray[Any] = np.repeat(np.arange(0, cells * len(sizes), cells, dtype=kind), sizes)
        key += self.coded.take(rows)
        weighing = None if self.units is None else self.units.take(rows)
        found = np.bincount(key, weighing, minlength=cells * len(sizes)).astype(np.int32)
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
        if self.units is not None:
            return self._weighed_cuts(code, of_class, self.units.take(order), nodes, minbucket)
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

    @staticmethod
    def _weighed_cuts(code: Int32s, of_class: Int32s, units: Int32s, nodes: Nodes, minbucket: int) -> Places:
        """The same of records in order (m,), with their values, classes and units."""
        ends = np.cumsum(nodes.records)
        weighed = [np.cumsum(np.where(of_class == k, units, 0), dtype=np.int64) for k in range(len(nodes.total))]
        left = []
        for sums in weighed:
            before = np.append(0, sums.take(ends[:-1] - 1))
            left.append((sums - np.repeat(before, nodes.records)).astype(np.int32))
        ours = sum(left[1:], left[0])
        may = (ours >= minbucket) & (ours <= np.repeat(nodes.sizes - minbucket, nodes.records))
        may[:-1] &= code[1:] != code[:-1]
        place = np.flatnonzero(may)
        return Places(place, steps(np.searchsorted(place, ends)), [one.take(place) for one in left])

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


class Rules(NamedTuple):
    """How a tree is grown: values of each predictor and whether they lack an order (P,), what a record of each class weighs
    (C, 1), and fewest records, or units, of a leaf.
    """

    sizes: Sequence[int]
    unordered: Booleans
    weights: Floats
    minbucket: int

    @property
    def width(self) -> int:
        """The classes, or one more, an even number."""
        return len(self.weights) + len(self.weights) % 2

    @property
    def widest(self) -> int:
        """Values of the predictor without an order that has most, at least 1."""
        return max((size for size, plain in zip(self.sizes, self.unordered, strict=True) if plain), default=1)


class Splits(NamedTuple):
    """The best split of each of A nodes: by how much impurity falls, 0 without one, who goes left, and how many of each class (C, A)."""

    gain: Floats
    feature: Integers
    cut: Integers
    members: Booleans
    left: Floats


class Cells(NamedTuple):
    """Records of one node and value of a predictor: node (M,) ascending, value (M,), and how many of each class (C, M)."""

    node: Integers
    value: Integers
    table: Floats


def best_splits(predictors: Sequence[Predictor], nodes: Nodes, rules: Rules) -> Splits:
    """The best split of every node: of equal ones the first of the first predictor."""
    classes, count = nodes.total.shape
    whole = _impurity(nodes.total * rules.weights)
    found, cells = [], {}
    sets: dict[int, tuple[Floats, Floats, Booleans]] = {}
    for j, predictor in enumerate(predictors):
        predictor.settle(nodes)
        if not predictor.plain:
            found.append(predictor.cuts(nodes, rules.minbucket))
            continue
        cells[j] = _cells(predictor, nodes)
        if classes > 2 and 1 < predictor.size <= MOST_LEVELS:
            sets[j] = _best_sets(cells[j], nodes.total, whole, predictor.size, rules)
            found.append(Places.none(classes, count))
        else:
            cells[j] = _by_shares(cells[j], nodes.total, rules)
            found.append(_cuts_between(cells[j], nodes, rules.minbucket))
    known = np.maximum.reduce([np.zeros(count), *(gain for gain, _, _ in sets.values())])
    gain, left, place = _best_cuts(nearly_best(found, nodes, known), nodes, whole, len(predictors))
    for j, (by_sets, chosen, _) in sets.items():
        gain[j], left[:, j] = by_sets, chosen
    feature, each = gain.argmax(axis=0), np.arange(count)
    cut, members = np.zeros(count, np.int64), np.zeros((count, rules.widest), np.bool_)
    for j, predictor in enumerate(predictors):
        at = np.flatnonzero((feature == j) & (gain[j] > 0))
        if j in sets:
            members[at, : predictor.size] = sets[j][2][at]
        elif predictor.plain:
            members[at, : predictor.size] = _before(cells[j], place[j], count, predictor.size)[at]
        else:
            cut[at] = predictor.last_values(place[j, at])
    return Splits(gain[feature, each], feature, cut, members, left[:, feature, each])


def _impurity(counts: Floats) -> Floats:
    """The Gini impurity times weight, (M,), of weighted counts (C, M): the sums that rpart computes, so that ties are its ties."""
    size = counts.sum(axis=0)
    found = np.zeros(counts.shape[1])
    for share in counts / size:
        found += size * (share * (1 - share))
    return found


def _of_both(left: Floats, right: Floats) -> Floats:
    """The impurity of both sides, (M,), of weighted counts (C, M), likewise."""
    found = np.zeros(left.shape[1])
    ours, theirs = left.sum(axis=0), right.sum(axis=0)
    for one, other in zip(left, right, strict=True):
        share = one / ours
        found += ours * (share * (1 - share))
        share = other / theirs
        found += theirs * (share * (1 - share))
    return found


def _cells(predictor: Predictor, nodes: Nodes) -> Cells:
    """The cells that are not empty, in the order of nodes and codes."""
    classes, size, width = len(nodes.total), predictor.size, predictor.width
    if predictor.counts is not None:
        table = predictor.counts.view(np.int32).reshape(-1, width)
        cell = np.flatnonzero(predictor.filled())
        return Cells(cell // size, cell % size, table[cell, :classes].T.astype(np.float64))
    key = nodes.of_each() * (size * width) + predictor.coded.take(nodes.rows)
    if predictor.units is None:
        found, repeats = np.unique(key, return_counts=True)
    else:
        found, of = np.unique(key, return_inverse=True)
        repeats = np.bincount(of, predictor.units.take(nodes.rows))
    cell, column = np.unique(found // width, return_inverse=True)
    counts = np.zeros((classes, len(cell)))
    counts[found % width, column] = repeats
    return Cells(cell // size, cell % size, counts)


def _by_shares(cells: Cells, total: Floats, rules: Rules) -> Cells:
    """The cells of each node in the order of the share of the first class, or along the component of all shares."""
    table, total = cells.table * rules.weights, total * rules.weights
    size = table.sum(axis=0)
    if len(total) == 2:
        place = table[0] / size
    else:
        distance = table / size - (total / total.sum(axis=0))[:, cells.node]
        products = (distance[:, None] * distance[None] * size).reshape(len(total) ** 2, -1)
        sums = [np.bincount(cells.node, product, total.shape[1]) for product in products]
        axes = np.linalg.eigh(np.stack(sums, axis=1).reshape(-1, len(total), len(total)))[1][:, :, -1]
        place = np.einsum("cm,mc->m", distance, axes[cells.node])
    order = np.lexsort((cells.value, place, cells.node))
    return Cells(cells.node[order], cells.value[order], cells.table[:, order])


def _cuts_between(cells: Cells, nodes: Nodes, minbucket: int) -> Places:
    """After each cell, where both sides keep their records."""
    ends = np.searchsorted(cells.node, np.arange(len(nodes)), side="right")
    sums = np.cumsum(cells.table, axis=1)
    before = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
    left = sums - before[:, np.append(0, ends[:-1])][:, cells.node]
    ours = left.sum(axis=0)
    place = np.flatnonzero((ours >= minbucket) & (ours <= (nodes.sizes - minbucket)[cells.node]))
    return Places(place, steps(np.searchsorted(place, ends)), list(left.take(place, axis=1).astype(np.int32)))


def _best_cuts(cuts: Cuts, nodes: Nodes, whole: Floats, predictors: int) -> tuple[Floats, Floats, Integers]:
    """Of each of Q predictors and node the largest gain, 0 without one, (Q, A), what is left of that cut, (C, Q, A), and its place, (Q, A)."""
    weights, shape = nodes.weights, (predictors, len(nodes))
    gain, left, place = np.zeros(shape), np.zeros((len(nodes.total), *shape)), np.zeros(shape, np.int64)
    if not len(cuts.node):
        return gain, left, place
    row, node = np.divmod(cuts.node, len(nodes))
    both = _of_both(cuts.left * weights, (nodes.total.take(node, axis=1) - cuts.left) * weights)
    best, which = _least(both, cuts.node, whole.take(node))
    at = row[which], node[which]
    gain[at], left[:, *at], place[at] = whole[at[1]] - best, cuts.left[:, which], cuts.place[which]
    return gain, left, place


def _starts(node: Integers) -> Integers:
    """Where the places (M,) of another node begin, the first among them; ``node`` is ascending."""
    if not len(node):
        return np.empty(0, np.int64)
    return np.append(0, np.flatnonzero(node[1:] != node[:-1]) + 1)


def _least(impurity: Floats, node: Integers, whole: Floats) -> tuple[Floats, Integers]:
    """The least impurity (M,) of each node (M,), ascending, that is below its ``whole`` (M,), and the first place of it."""
    below = np.flatnonzero(impurity < whole)
    if not len(below):
        return np.empty(0), below
    starts = _starts(node.take(below))
    least = np.repeat(np.minimum.reduceat(impurity.take(below), starts), np.diff(starts, append=len(below)))
    places = below.compress(impurity.take(below) == least)
    first = places[_starts(node[places])]
    return impurity[first], first


def _before(cells: Cells, last: Integers, nodes: int, size: int) -> Booleans:
    """The values in cells up to the last of their node, (nodes, size)."""
    members = np.zeros((nodes, size), np.bool_)
    inside = np.arange(len(cells.node)) <= last[cells.node]
    members[cells.node[inside], cells.value[inside]] = True
    return members


def _best_sets(cells: Cells, total: Floats, whole: Floats, size: int, rules: Rules) -> tuple[Floats, Floats, Booleans]:
    """Of each node the largest gain by a set of the levels, 0 without one, what is in that set, (C, A), and the set: (A,) and (A, size)."""
    classes, nodes = total.shape
    table = np.zeros((nodes, size, classes))
    table[cells.node, cells.value] = cells.table.T
    sets = _gray_code(size)
    gain, members, chosen = np.zeros(nodes), np.zeros((nodes, size), bool), np.zeros_like(total)
    step = max(_MOST_COUNTS // (len(sets) * classes), 1)
    for part in (slice(begin, begin + step) for begin in range(0, nodes, step)):
        cells_of = table[part].transpose(1, 2, 0).reshape(size, -1)
        left = (sets * 1.0 @ cells_of).reshape(len(sets), classes, -1).transpose(1, 2, 0).reshape(classes, -1)
        node = np.repeat(np.arange(nodes)[part], len(sets))
        right = total[:, node] - left
        allowed = np.flatnonzero(np.minimum(left.sum(axis=0), right.sum(axis=0)) >= rules.minbucket)
        both = _of_both(left[:, allowed] * rules.weights, right[:, allowed] * rules.weights)
        best, which = _least(both, node[allowed], whole[node[allowed]])
        of = node[allowed[which]]
        gain[of], members[of] = whole[of] - best, sets[allowed[which] % len(sets)]
        chosen[:, of] = left[:, allowed[which]]
    return gain, chosen, members


@cache
def _gray_code(size: int) -> Booleans:
    """All sets of ``size`` levels without the last, but for the empty one, in the order of the Gray code: (2^(size - 1) - 1, size)."""
    number = np.arange(1, 2 ** (size - 1))[:, None]
    return np.asarray((number ^ (number >> 1)) >> np.arange(size) & 1 == 1)


@dataclass(frozen=True, slots=True)
class ClassTree:
    """V nodes, the root first, parents before children. A leaf leads to itself.

    A record at node v goes to ``left[v]`` where its code of predictor ``feature[v]`` is at most ``cut[v]``, or, where the
    levels of that predictor have no order, if ``members[v, code]``; else to ``right[v]``. A level that no record of the node
    has goes where most of them go. ``counts`` (V, C) are records of each class, or their units, ``members`` is (V, L), ``leaf`` (n,) the leaf of
    each record that it was grown on, the others are (V,).
    """

    feature: Integers
    cut: Integers
    members: Booleans
    left: Integers
    right: Integers
    counts: Integers
    leaf: Integers


class Depth(NamedTuple):
    """The nodes of one depth of all trees, numbered from ``first``: of which ``tree``, at which place if sons follow their parents' order, (A,); the rest as ``ClassTree`` has it."""

    first: int
    tree: Integers
    rank: Integers
    feature: Integers
    cut: Integers
    members: Booleans
    left: Integers
    right: Integers
    counts: Integers


def class_tree(
    x: Integers, y: Integers, *, levels: Sequence[int], minbucket: int, cp: float, weights: Sequence[float] = ()
) -> ClassTree:
    """The tree of classes y (n,), from 0, by the codes x (n, P), from 0.

    ``levels`` (P,) says how many levels a predictor without an order has, 0 for one with; ``weights`` (C,) what a record of
    each class weighs, 1 if empty.
    """
    return class_trees(x, [y], levels=levels, minbucket=minbucket, cp=cp, weights=weights)[0]


def class_trees(
    x: Integers | Sequence[Integers],
    labels: Sequence[Integers],
    *,
    levels: Sequence[int],
    minbucket: int,
    cp: float,
    weights: Sequence[float] = (),
    units: Integers | None = None,
) -> list[ClassTree]:
    """The tree of each of T ``labels`` (n,) of the same classes, as ``class_tree`` grows it, all together: several small ones take little longer than one.

    ``x`` are the codes (n, P) of all of them, or T such tables of their own. ``units`` (T n,) are what the records of one tree after the other weigh,
    fewer than 2^31 in all, and then ``minbucket`` counts these.
    """
    columns = np.concatenate([one.T for one in ([x] if isinstance(x, np.ndarray) else x)], axis=1)
    sizes = [count or int(column.max()) + 1 for count, column in zip(levels, columns, strict=True)]
    y = np.concatenate(labels)
    classes = int(y.max()) + 1
    weight = np.array(weights or [1.0] * classes)[:, None]
    weighing = [None] * len(labels) if units is None else np.split(units, len(labels))
    counts = np.stack(
        [np.bincount(of_one, own, classes).astype(np.int64) for of_one, own in zip(labels, weighing, strict=True)]
    )
    alpha = cp * _errors(counts.T * weight)
    width = classes + classes % 2
    kind = np.int64 if max(sizes) * width >= 2**31 else np.int32
    coded = np.tile(columns.astype(kind) * width, len(labels) if isinstance(x, np.ndarray) else 1)
    coded += y.astype(kind)
    rules = Rules(sizes, np.asarray(levels) > 0, weight, minbucket)
    trees = _grown(coded, counts, alpha, rules, None if units is None else units.astype(np.int32))
    return [
        without(tree, ~_worth_splitting(tree, _errors(tree.counts.T * weight), weight, float(least)))
        for tree, least in zip(trees, alpha, strict=True)
    ]


def _errors(counts: Floats) -> Floats:
    """What is misclassified at nodes with the weighted counts (C, A): (A,)."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _grown(
    coded: Int32s, counts: Integers, alpha: Floats, rules: Rules, units: Int32s | None = None
) -> list[ClassTree]:
    """The trees, depth by depth: values and classes ``coded`` (P, N) of the records of one tree after the other, ``counts`` (T, C), least errors (T,), and units (N,)."""
    trees = len(counts)
    predictors = [
        Predictor(of_one, size, rules.width, bool(plain), units=units)
        for of_one, size, plain in zip(coded, rules.sizes, rules.unordered, strict=True)
    ]
    roots = np.arange(trees)
    depths = [_unsplit(0, roots, roots, counts, rules.widest)]
    largest, leaf = np.zeros(trees), np.repeat(roots, coded.shape[1] // trees)
    at = np.flatnonzero(_tried(counts, alpha, rules))
    rows = np.flatnonzero(np.isin(leaf, at))
    records = None if units is None else np.full(len(at), coded.shape[1] // trees)
    side = np.empty(coded.shape[1], np.int8)
    while len(at):
        here = depths[-1]
        nodes = Nodes(rows, here.counts[at].T.astype(np.float64), rules.weights, records)
        found = best_splits(predictors, nodes, rules)
        np.maximum.at(largest, here.tree[at], found.gain)
        split = np.flatnonzero(found.gain > _NO_GAIN * largest[here.tree[at]])
        right = _goes_right(here, at, found, nodes, coded, rules)
        depths.append(_split(here, at, found, split, rules.widest))
        tried = np.zeros(2 * len(split), np.bool_)
        if len(depths) <= DEEPEST:
            tried = _tried(depths[-1].counts, alpha[depths[-1].tree], rules)
        number, goes = np.column_stack([here.first + at] * 2), np.zeros((len(at), 2), np.bool_)
        number[split] = depths[-1].first + np.arange(2 * len(split)).reshape(2, -1).T
        goes[split] = tried.reshape(2, -1).T
        to_left, to_right = (np.repeat(on, nodes.records) for on in goes.T)
        to_left &= ~right
        to_right &= right
        ends = np.flatnonzero(~(to_left | to_right))
        node = np.searchsorted(np.cumsum(nodes.records), ends, side="right")
        leaf[rows.take(ends)] = number.ravel().take(2 * node + right.take(ends))
        if any(predictor.order is not None for predictor in predictors):
            side[rows] = to_left.view(np.int8) + 2 * to_right.view(np.int8)
        go_left = found.left[:, split].sum(axis=0).astype(np.int64)
        if records is not None:
            go_left = nodes.records[split] - np.bincount(nodes.of_each(), right, len(nodes)).astype(np.int64)[split]
            records = np.concatenate([go_left, nodes.records[split] - go_left])[tried]
        counted = _sons(split, go_left, tried, nodes, right)
        rows, at = np.concatenate([rows.compress(to_left), rows.compress(to_right)]), np.flatnonzero(tried)
        for predictor in predictors:
            predictor.descend(counted, side)
    return _by_tree(depths, leaf, trees)


def _unsplit(first: int, tree: Integers, rank: Integers, counts: Integers, widest: int) -> Depth:
    """Nodes with these ``counts`` (A, C), each a leaf."""
    ids, none = first + np.arange(len(counts)), np.zeros(len(counts), np.int64)
    members = np.zeros((len(counts), widest), np.bool_)
    return Depth(first, tree, rank, none, none.copy(), members, ids, ids.copy(), counts)


def _tried(counts: Integers, alpha: Floats, rules: Rules) -> Booleans:
    """Which nodes with these ``counts`` (A, C) have the records and, beyond ``alpha`` (A,), the errors that a split needs, (A,)."""
    enough = counts.sum(axis=1) >= max(3 * rules.minbucket, 2)
    return np.asarray(enough & (_errors(counts.T * rules.weights) > alpha))


def _goes_right(depth: Depth, at: Integers, found: Splits, nodes: Nodes, coded: Int32s, rules: Rules) -> Booleans:
    """Which records (m,) go right; writes who goes left by sets into the nodes ``at`` (A,) of the depth."""
    code = coded.ravel().take(np.repeat(found.feature * coded.shape[1], nodes.records) + nodes.rows)
    right = code >= np.repeat(((found.cut + 1) * rules.width).astype(coded.dtype), nodes.records)
    by_set = rules.unordered[found.feature]
    if by_set.any():
        inside = np.flatnonzero(np.repeat(by_set, nodes.records))
        cell = np.repeat(np.flatnonzero(by_set) * rules.widest, nodes.records[by_set])
        cell += code.take(inside) // rules.width
        right[inside] = ~found.members.ravel().take(cell)
        unseen = np.ones_like(found.members)
        unseen.ravel()[cell] = False
        mostly = 2 * found.left.sum(axis=0) > nodes.sizes
        depth.members[at] = (found.members | unseen & mostly[:, None]) & by_set[:, None]
    return right


def _split(depth: Depth, at: Integers, found: Splits, split: Integers, widest: int) -> Depth:
    """The sons of the nodes ``at`` (A,) that are ``split`` (S,), the left ones first; writes the splits into their depth."""
    nodes, first = at[split], depth.first + len(depth.counts)
    depth.feature[nodes], depth.cut[nodes] = found.feature[split], found.cut[split]
    depth.left[nodes] = first + np.arange(len(nodes))
    depth.right[nodes] = depth.left[nodes] + len(nodes)
    left = found.left[:, split].T.astype(np.int64)
    order = np.argsort(np.concatenate([2 * depth.rank[nodes], 2 * depth.rank[nodes] + 1]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return _unsplit(first, np.tile(depth.tree[nodes], 2), rank, np.vstack([left, depth.counts[nodes] - left]), widest)


def _sons(split: Integers, left: Integers, tried: Booleans, nodes: Nodes, right: Booleans) -> Sons:
    """The ``tried`` (2 S,) of the sons of those nodes that are ``split`` (S,) with ``left`` (S,) records, of records (m,) that go left or ``right``."""
    sizes = np.stack([left, nodes.records[split] - left])
    right_is_smaller = sizes[1] < sizes[0]
    asked = tried.reshape(2, -1).any(axis=0)
    parents, smaller_is_right = split[asked], np.zeros(len(nodes), np.bool_)
    of_parents = np.zeros(len(nodes), np.bool_)
    of_parents[parents] = True
    smaller_is_right[split] = right_is_smaller
    counted = np.repeat(smaller_is_right, nodes.records) == right
    counted &= np.repeat(of_parents, nodes.records)
    is_right, place = np.divmod(np.flatnonzero(tried), max(len(split), 1))
    is_larger = (is_right == 1) != right_is_smaller[place]
    smaller = sizes.min(axis=0)[asked]
    records = int(sizes.ravel()[tried].sum())
    return Sons(parents, nodes.rows.compress(counted), smaller, (np.cumsum(asked) - 1)[place], is_larger, records)


def _by_tree(depths: Sequence[Depth], leaf: Integers, trees: int) -> list[ClassTree]:
    """Tree by tree, its nodes depth by depth, sons in the order of their parents, the left one first."""
    tree, rank, feature, cut, members, left, right, counts = (
        np.concatenate([depth[part] for depth in depths]) for part in range(1, len(Depth._fields))
    )
    order = np.lexsort((rank, np.repeat(np.arange(len(depths)), [len(depth.tree) for depth in depths]), tree))
    size = np.bincount(tree, minlength=trees)
    start = np.cumsum(size) - size
    new = np.empty_like(order)
    new[order] = np.arange(len(order)) - np.repeat(start, size)
    parts = [order[begin : begin + count] for begin, count in zip(start, size, strict=True)]
    return [
        ClassTree(feature[own], cut[own], members[own], new[left[own]], new[right[own]], counts[own], new[of_tree])
        for own, of_tree in zip(parts, leaf.reshape(trees, -1), strict=True)
    ]


def _worth_splitting(tree: ClassTree, errors: Floats, weights: Floats, alpha: float) -> Booleans:
    """Which nodes stay split, (V,), where they have these ``errors`` (V,) and each split must save ``alpha``.

    A node's complexity is what its branch saves for each split, after those of its two sons that save less than it have
    collapsed. Sons are visited in the order of their mean class, and not at all where a bound on the parent's complexity
    shows that they cannot matter: that is rpart's ``partition``, recursion by recursion.
    """
    risk: list[float] = errors.tolist()
    inner = tree.left != np.arange(len(errors))
    most: list[float] = np.where(inner, errors, 0.0).tolist()
    first_sons, second_sons = _sons_in_order(tree, weights)
    split = [False] * len(risk)

    def visited(node: int, bound: float) -> tuple[float, float, int]:
        """Complexity of the node as a root, errors of its leaves, and its splits, where none of its errors and the bound is at most ``alpha``."""
        own, one, other = risk[node], first_sons[node], second_sons[node]
        at_most = (own if own < bound else bound) - alpha
        first = (alpha, risk[one], 0) if most[one] <= alpha or at_most <= alpha else visited(one, at_most)
        at_most = min(max((own - first[1]) / (first[2] + 1), own - risk[one]), bound) - alpha
        second = (alpha, risk[other], 0) if most[other] <= alpha or at_most <= alpha else visited(other, at_most)
        errors, splits = first[1] + second[1], first[2] + second[2]
        if splits:
            errors, splits = _after_collapse(own, (*first, risk[one]), (*second, risk[other]))
        complexity = (own - errors) / (splits + 1)
        if complexity <= alpha:
            return complexity, own, 0
        split[node] = True
        return complexity, errors, splits + 1

    if most[0] > alpha:
        visited(0, risk[0])
    return np.array(split)


def _sons_in_order(tree: ClassTree, weights: Floats) -> tuple[list[int], list[int]]:
    """The son of each node with the lower mean class, and the other, (V,) each; a leaf is its own."""
    weighted = tree.counts.T * weights
    mean = np.zeros(len(tree.counts))
    for place, share in enumerate(weighted / weighted.sum(axis=0)):
        mean += share * place
    lower = mean[tree.left] < mean[tree.right]
    one, other = np.where(lower, tree.left, tree.right), np.where(lower, tree.right, tree.left)
    return one.tolist(), other.tolist()


def _after_collapse(own: float, first: Branch, second: Branch) -> tuple[float, int]:
    """Errors and splits of two branches, after those that save less a split than their parent have collapsed."""
    weak, strong = (first, second) if second[0] > first[0] else (second, first)
    errors, splits = weak[1] + strong[1], weak[2] + strong[2]
    if (own - errors) / (splits + 1) > weak[0]:
        errors, splits = weak[3] + strong[1], strong[2]
        if (own - errors) / (splits + 1) > strong[0]:
            errors, splits = weak[3] + strong[3], 0
    return errors, splits


def without(tree: ClassTree, collapsed: Booleans) -> ClassTree:
    """The tree whose ``collapsed`` nodes (V,) are leaves."""
    here = np.arange(len(collapsed))
    inner = np.flatnonzero(tree.left != here)
    end, reached = here.tolist(), [True] + [False] * (len(here) - 1)
    parts = (inner, tree.left[inner], tree.right[inner], collapsed[inner])
    for node, one, other, gone in zip(*(part.tolist() for part in parts), strict=True):
        if reached[node] and not gone:
            reached[one] = reached[other] = True
        else:
            end[one] = end[other] = end[node]
    stays = np.array(reached)
    new = np.cumsum(stays) - 1
    inner = (stays & ~collapsed)[stays]
    left, right = (np.where(inner, new[side[stays]], new[here[stays]]) for side in (tree.left, tree.right))
    feature, cut = (np.where(inner, column[stays], 0) for column in (tree.feature, tree.cut))
    members = tree.members[stays] & inner[:, None]
    return ClassTree(feature, cut, members, left, right, tree.counts[stays], new[np.array(end)[tree.leaf]])
