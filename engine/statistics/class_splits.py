"""The best splits of the nodes of classification trees, all nodes of a depth at once, of one tree or of several.

A predictor with few values is counted: records of each node, value and class. Of the two sons of a node only the smaller is counted, the other
is what is left of their parent (LightGBM: Ke et al. 2017). One with many values keeps its records in its own order, node by node, as SLIQ does (Mehta, Agrawal & Rissanen
1996). Both ways give the same splits: those of the least Gini impurity, computed as rpart computes it, so that ties are its ties. That is
slow; so it is computed only where a quicker formula comes within rounding of the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Booleans, Floats, Integers

MOST_LEVELS = 10
_MOST_CELLS = 4
_MOST_COUNTS = 2_000_000
_ROUNDING = 1e-11

Int32s = NDArray[np.int32]


class Rules(NamedTuple):
    """How a tree is grown: values of each predictor and whether they lack an order (P,), what a record of each class weighs
    (C, 1), and fewest records of a leaf.
    """

    sizes: Sequence[int]
    unordered: Booleans
    weights: Floats
    minbucket: int

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


class Cuts(NamedTuple):
    """Where nodes may be cut in two: node (M,) ascending, the last value or cell before the cut (M,), and how many of each class that is (C, M)."""

    node: Integers
    last: Integers
    left: Floats


class Nodes:
    """A nodes of one depth and their m records, ``rows`` (m,), node after node; ``total`` (C, A) of each class."""

    def __init__(self, rows: Integers, total: Floats, minbucket: int) -> None:
        self.rows, self.total = rows, total
        self.sizes = total.sum(axis=0).astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.of_row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.place = np.arange(1, len(rows) + 1) - np.repeat(self.starts, self.sizes)
        self.may_cut = (self.place >= minbucket) & (self.place <= np.repeat(self.sizes - minbucket, self.sizes))

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(slots=True)
class Predictor:
    """A predictor of N records with ``size`` values: ``coded`` (N,) is the code, plus the class, one of C ``classes``, times ``size``.

    Of the nodes at hand it has either the ``counts`` (A, C, size) of each value, or their records in its own ``order`` within each node (m,), or neither.
    """

    coded: Int32s
    size: int
    classes: int
    counts: Int32s | None = None
    order: Integers | None = None
    given_up: bool = False

    def count(self, rows: Integers, node: Integers, nodes: int) -> Int32s:
        """How many of some records (k,) at those nodes (k,) each class and value has, (nodes, C, size)."""
        cells = self.size * self.classes
        key = node * cells + self.coded.take(rows)
        found = np.bincount(key, minlength=nodes * cells).astype(np.int32)
        return found.reshape(nodes, self.classes, self.size)

    def settle(self, nodes: Nodes, plain: bool) -> None:
        """Count the first nodes; count no longer where most cells are empty, but put records in order, unless values are ``plain`` and have none."""
        few = len(nodes) * self.size * self.classes <= _MOST_CELLS * len(nodes.rows)
        if few and not self.given_up and self.counts is None:
            self.counts = self.count(nodes.rows, nodes.of_row, len(nodes))
        elif not few and not self.given_up:
            self.counts, self.given_up = None, True
            if not plain:
                self.order = nodes.rows.take(
                    np.argsort(nodes.of_row * self.size + self.coded.take(nodes.rows) % self.size)
                )

    def descend(self, side: NDArray[np.int8], sons: Sons) -> None:
        """Go on to the nodes that may split of the next depth: ``side`` (N,) is 0 or 1 for the records of those that went left or right."""
        if self.order is not None:
            sides = side.take(self.order)
            self.order = np.concatenate([self.order.compress(sides == 0), self.order.compress(sides == 1)])
        if self.counts is not None:
            smaller = self.count(sons.counted, sons.parent, len(sons.parents))
            larger = self.counts[sons.parents]
            larger -= smaller
            self.counts = np.empty((len(sons.place), self.classes, self.size), np.int32)
            self.counts[~sons.is_larger] = smaller[sons.place[~sons.is_larger]]
            self.counts[sons.is_larger] = larger[sons.place[sons.is_larger]]


class Sons(NamedTuple):
    """The nodes that may split of the next depth, A of them, as sons of S ``parents`` (S,) at hand.

    The records (k,) of the smaller son of each parent are ``counted``, at that parent (k,), numbered among the S. Each of the A is a son
    of the parent at ``place`` (A,) of the S, the smaller one or the larger.
    """

    parents: Integers
    counted: Integers
    parent: Integers
    place: Integers
    is_larger: Booleans


def best_splits(predictors: Sequence[Predictor], nodes: Nodes, rules: Rules) -> Splits:
    """The best split of every node."""
    total, (classes, count) = nodes.total, nodes.total.shape
    none = np.zeros(count, np.int64)
    members = np.zeros((count, rules.widest), np.bool_)
    best = Splits(np.zeros(count), none, none.copy(), members, np.zeros((classes, count)))
    whole = _impurity(total * rules.weights)
    for j, (predictor, plain) in enumerate(zip(predictors, rules.unordered, strict=True)):
        predictor.settle(nodes, bool(plain))
        if plain and classes > 2 and 1 < predictor.size <= MOST_LEVELS:
            gain, left, sets = _best_sets(_cells(predictor, nodes), total, whole, predictor.size, rules)
            cut = none
        elif plain:
            cells = _by_shares(_cells(predictor, nodes), total, rules)
            gain, left, last = _best_cuts(_cuts_between(cells, nodes, rules.minbucket), total, whole, rules.weights)
            cut, sets = none, _before(cells, last, count, predictor.size)
        else:
            cuts = _cuts(predictor, nodes, rules.minbucket)
            gain, left, cut = _best_cuts(cuts, total, whole, rules.weights)
            sets = members[:, :0]
        better = gain > best.gain
        best.gain[better], best.feature[better], best.cut[better] = gain[better], j, cut[better]
        best.left[:, better] = left[:, better]
        best.members[better, : sets.shape[1]] = sets[better]
        best.members[better, sets.shape[1] :] = False
    return best


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


def _cuts(predictor: Predictor, nodes: Nodes, minbucket: int) -> Cuts:
    """After each value, where both sides keep their records."""
    if predictor.order is not None:
        return _cuts_in_order(predictor, predictor.order, nodes)
    assert predictor.counts is not None
    return _cuts_of_counts(predictor.counts, nodes, minbucket)


def _cuts_of_counts(counts: Int32s, nodes: Nodes, minbucket: int) -> Cuts:
    """By counts; a value without records is as good as the one before, and comes after it."""
    left, (_, classes, size) = np.cumsum(counts, axis=2, dtype=np.int32), counts.shape
    ours = left.sum(axis=1, dtype=np.int32)
    place = np.flatnonzero((ours >= minbucket) & (ours <= (nodes.sizes - minbucket)[:, None]))
    node, value = np.divmod(place, size)
    first = place + node * ((classes - 1) * size)
    return Cuts(node, value, np.stack([left.ravel().take(first + k * size) for k in range(classes)]).astype(np.float64))


def _cuts_in_order(predictor: Predictor, order: Integers, nodes: Nodes) -> Cuts:
    """By the order of the records (m,): between two of different values."""
    coded = predictor.coded.take(order)
    of_class = coded // predictor.size
    code = coded - of_class * predictor.size
    place = np.flatnonzero((code[1:] != code[:-1]) & nodes.may_cut[:-1])
    node = nodes.of_row.take(place)
    left = np.empty((predictor.classes, len(place)))
    left[-1] = nodes.place.take(place)
    for k in range(predictor.classes - 1):
        of_this = of_class == k
        sums = np.cumsum(of_this, dtype=np.int32)
        left[k] = sums.take(place) - (sums[nodes.starts] - of_this[nodes.starts]).take(node)
        left[-1] -= left[k]
    return Cuts(node, code.take(place).astype(np.int64), left)


def _cells(predictor: Predictor, nodes: Nodes) -> Cells:
    """The cells that are not empty, in the order of nodes and codes."""
    classes, size = predictor.classes, predictor.size
    if predictor.counts is not None:
        table = predictor.counts.transpose(1, 0, 2).reshape(classes, -1)
        cell = np.flatnonzero(table.any(axis=0))
        return Cells(cell // size, cell % size, table[:, cell].astype(np.float64))
    of_class, code = np.divmod(predictor.coded.take(nodes.rows), size)
    found, repeats = np.unique((nodes.of_row * size + code) * classes + of_class, return_counts=True)
    cell, column = np.unique(found // classes, return_inverse=True)
    counts = np.zeros((classes, len(cell)))
    counts[found % classes, column] = repeats
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


def _cuts_between(cells: Cells, nodes: Nodes, minbucket: int) -> Cuts:
    """After each cell, where both sides keep their records."""
    sums = np.cumsum(cells.table, axis=1)
    start = np.searchsorted(cells.node, np.arange(len(nodes)))
    left = sums - (sums[:, start] - cells.table[:, start])[:, cells.node]
    ours = left.sum(axis=0)
    place = np.flatnonzero((ours >= minbucket) & (ours <= (nodes.sizes - minbucket)[cells.node]))
    return Cuts(cells.node[place], place, left[:, place])


def _best_cuts(cuts: Cuts, total: Floats, whole: Floats, weights: Floats) -> tuple[Floats, Floats, Integers]:
    """Of each node the largest gain, 0 without one, what is left of that cut, (C, A), and the last value or cell before it: (A,)."""
    gain, left, last = np.zeros(len(whole)), np.zeros_like(total), np.zeros(len(whole), np.int64)
    near = _nearly_least(cuts, total, weights)
    node, before = cuts.node[near], cuts.left[:, near]
    best, which = _least(_of_both(before * weights, (total[:, node] - before) * weights), node, whole)
    at = node[which]
    gain[at], left[:, at], last[at] = whole[at] - best, before[:, which], cuts.last[near[which]]
    return gain, left, last


def _nearly_least(cuts: Cuts, total: Floats, weights: Floats) -> Integers:
    """The cuts (k,) whose impurity is within rounding of the least of their node: that is the largest sum of squares over size."""
    starts = _starts(cuts.node)
    if not len(starts):
        return starts
    repeats = np.diff(starts, append=len(cuts.node))
    parts = cuts.left * weights
    ours = parts.sum(axis=0)
    squares = np.einsum("cm,cm->m", parts, parts)
    rests = np.repeat((total * weights)[:, cuts.node[starts]], repeats, axis=1)
    rests -= parts
    score = np.einsum("cm,cm->m", rests, rests)
    score /= rests.sum(axis=0)
    squares /= ours
    score += squares
    best = np.maximum.reduceat(score, starts) * (1 - _ROUNDING)
    return np.flatnonzero(score >= np.repeat(best, repeats))


def _starts(node: Integers) -> Integers:
    """Where the places (M,) of another node begin, the first among them; ``node`` is ascending."""
    if not len(node):
        return np.empty(0, np.int64)
    return np.append(0, np.flatnonzero(node[1:] != node[:-1]) + 1)


def _least(impurity: Floats, node: Integers, whole: Floats) -> tuple[Floats, Integers]:
    """The least impurity (M,) of each node, node ascending, that is below its whole, and the first place of it."""
    below = np.flatnonzero(impurity < whole[node])
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
    sets = np.array(list(_gray_code(size)))
    gain, members, chosen = np.zeros(nodes), np.zeros((nodes, size), bool), np.zeros_like(total)
    step = max(_MOST_COUNTS // (len(sets) * classes), 1)
    for part in (slice(begin, begin + step) for begin in range(0, nodes, step)):
        left = np.einsum("sl,alc->cas", sets * 1.0, table[part]).reshape(classes, -1)
        node = np.repeat(np.arange(nodes)[part], len(sets))
        right = total[:, node] - left
        allowed = np.flatnonzero(np.minimum(left.sum(axis=0), right.sum(axis=0)) >= rules.minbucket)
        both = _of_both(left[:, allowed] * rules.weights, right[:, allowed] * rules.weights)
        best, which = _least(both, node[allowed], whole)
        of = node[allowed[which]]
        gain[of], members[of] = whole[of] - best, sets[allowed[which] % len(sets)]
        chosen[:, of] = left[:, allowed[which]]
    return gain, chosen, members


def _gray_code(size: int) -> Iterator[Booleans]:
    """All sets of ``size`` levels without the last, but for the empty one, in the order of the Gray code."""
    for number in range(1, 2 ** (size - 1)):
        yield (number ^ (number >> 1)) >> np.arange(size) & 1 == 1
