"""The best splits of the nodes of classification trees, all nodes of a depth at once, of one tree or of several.

They are those of the least Gini impurity, computed as rpart computes it, so that ties are its ties. That is slow; so it is computed only where a
quicker formula comes within rounding of the best of all predictors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Booleans, Floats, Integers
from .class_counts import Cuts, Nodes, Places, Predictor, nearly_best, steps

MOST_LEVELS = 10
_MOST_COUNTS = 2_000_000


class Rules(NamedTuple):
    """How a tree is grown: values of each predictor and whether they lack an order (P,), what a record of each class weighs
    (C, 1), and fewest records of a leaf.
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
    found, repeats = np.unique(key, return_counts=True)
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
    sets = np.array(list(_gray_code(size)))
    gain, members, chosen = np.zeros(nodes), np.zeros((nodes, size), bool), np.zeros_like(total)
    step = max(_MOST_COUNTS // (len(sets) * classes), 1)
    for part in (slice(begin, begin + step) for begin in range(0, nodes, step)):
        left = np.einsum("sl,alc->cas", sets * 1.0, table[part]).reshape(classes, -1)
        node = np.repeat(np.arange(nodes)[part], len(sets))
        right = total[:, node] - left
        allowed = np.flatnonzero(np.minimum(left.sum(axis=0), right.sum(axis=0)) >= rules.minbucket)
        both = _of_both(left[:, allowed] * rules.weights, right[:, allowed] * rules.weights)
        best, which = _least(both, node[allowed], whole[node[allowed]])
        of = node[allowed[which]]
        gain[of], members[of] = whole[of] - best, sets[allowed[which] % len(sets)]
        chosen[:, of] = left[:, allowed[which]]
    return gain, chosen, members


def _gray_code(size: int) -> Iterator[Booleans]:
    """All sets of ``size`` levels without the last, but for the empty one, in the order of the Gray code."""
    for number in range(1, 2 ** (size - 1)):
        yield (number ^ (number >> 1)) >> np.arange(size) & 1 == 1
