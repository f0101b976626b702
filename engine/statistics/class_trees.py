"""Classification trees: grown by Gini impurity and pruned by errors, as rpart does with ``method = "class"``.

Breiman, Friedman, Olshen & Stone (1984); rpart: Therneau & Atkinson (2019). A node is split where it has ``minsplit``
records and errors worth it, at depth below 30, so that the Gini impurity falls most and both sides keep ``minbucket``
records; of equally good splits the first one of the first predictor is taken. A split then stays where the branch below
it saves more than ``cp`` times the errors of the root for each of its splits (rpart's ``partition.c``, with its bounds on what a
branch can still save). Where classes weigh differently (rpart's ``prior``), so do their impurities and errors.

Levels without an order are split in two sets. For two classes the best sets lie beside each other in the order of the node's
class shares (Breiman et al. 1984, theorem 4.5), for more classes all sets are tried where the predictor has at most
``MOST_LEVELS`` levels, as rpart does; with more levels, where rpart takes time exponential in their number, they are ordered along the
first principal component of the node's class shares (Coppersmith, Hong & Hosking 1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers

Booleans = NDArray[np.bool_]

DEEPEST = 30
MOST_LEVELS = 10
_NO_GAIN = 1e-10
_MOST_CELLS = 4
_MOST_COUNTS = 2_000_000


@dataclass(frozen=True, slots=True)
class ClassTree:
    """V nodes, the root first, parents before children. A leaf leads to itself.

    A record at node v goes to ``left[v]`` where its code of predictor ``feature[v]`` is at most ``cut[v]``, or, where the
    levels of that predictor have no order, if ``members[v, code]``; else to ``right[v]``. A level that no record of the node
    has goes where most of them go. ``counts`` (V, C) are records of each class, ``members`` is (V, L), ``leaf`` (n,) the leaf of
    each record that it was grown on, the others are (V,).
    """

    feature: Integers
    cut: Integers
    members: Booleans
    left: Integers
    right: Integers
    counts: Integers
    leaf: Integers


class Rules(NamedTuple):
    """How a tree is grown: values of each predictor and whether they lack an order (P,), what a record of each class weighs
    (C, 1), fewest records of a leaf, and the errors that a node must have.
    """

    sizes: Sequence[int]
    unordered: Booleans
    weights: Floats
    minbucket: int
    alpha: float

    @property
    def widest(self) -> int:
        """Values of the predictor without an order that has most, at least 1."""
        return max((size for size, plain in zip(self.sizes, self.unordered, strict=True) if plain), default=1)


class Depth(NamedTuple):
    """The nodes of one depth, as ``ClassTree`` has them, numbered from ``first``."""

    first: int
    feature: Integers
    cut: Integers
    members: Booleans
    left: Integers
    right: Integers
    counts: Integers


class Splits(NamedTuple):
    """The best split of each of A nodes: by how much impurity falls, 0 without one, and who goes left."""

    gain: Floats
    feature: Integers
    cut: Integers
    members: Booleans

    def of(self, nodes: Booleans) -> Splits:
        """Those of some of the nodes."""
        return Splits(self.gain[nodes], self.feature[nodes], self.cut[nodes], self.members[nodes])


class Cells(NamedTuple):
    """Records of one node and value of a predictor: node (M,) ascending, value (M,), and how many of each class (C, M)."""

    node: Integers
    value: Integers
    table: Floats


def class_tree(
    x: Integers, y: Integers, *, levels: Sequence[int], minbucket: int, cp: float, weights: Sequence[float] = ()
) -> ClassTree:
    """The tree of classes y (n,), from 0, by the codes x (n, P), from 0.

    ``levels`` (P,) says how many levels a predictor without an order has, 0 for one with; ``weights`` (C,) what a record of
    each class weighs, 1 if empty.
    """
    columns = np.ascontiguousarray(x.T)
    counts = np.bincount(y)
    weight = np.array(weights or [1.0] * len(counts))[:, None]
    sizes = [count or int(column.max()) + 1 for count, column in zip(levels, columns, strict=True)]
    alpha = cp * float(_errors(counts[:, None] * weight)[0])
    tree = _grown(columns, y, Rules(sizes, np.asarray(levels) > 0, weight, minbucket, alpha))
    return _without(tree, ~_worth_splitting(tree, _errors(tree.counts.T * weight), weight, alpha))


def _errors(counts: Floats) -> Floats:
    """What is misclassified at nodes with the weighted counts (C, A): (A,)."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _grown(x: Integers, y: Integers, rules: Rules) -> ClassTree:
    """The whole tree, depth by depth, from x (P, n)."""
    leaf = np.zeros(len(y), np.int64)
    rows, at = np.arange(len(y)), np.zeros(len(y), np.int64)
    depths = [_unsplit(0, np.bincount(y)[None], rules.widest)]
    largest = 0.0
    while len(depths) <= DEEPEST:
        here = depths[-1]
        tried = _tried(here.counts, rules)
        rows, at = _kept(rows, at, tried)
        if not len(rows):
            break
        found = _best_splits(x[:, rows], y[rows], at, here.counts[tried].T.astype(np.float64), rules)
        largest = max(largest, float(found.gain.max()))
        split = found.gain > _NO_GAIN * largest
        rows, at = _kept(rows, at, split)
        if not len(rows):
            break
        at = _split(here, np.flatnonzero(tried)[split], found.of(split), x[:, rows], at, rules)
        first, classes = here.first + len(here.counts), here.counts.shape[1]
        leaf[rows] = first + at
        counts = np.bincount(at * classes + y[rows], minlength=2 * int(split.sum()) * classes)
        depths.append(_unsplit(first, counts.reshape(-1, classes), rules.widest))
    feature, cut, members, left, right, of_class = (
        np.concatenate([depth[part] for depth in depths]) for part in range(1, len(Depth._fields))
    )
    return ClassTree(feature, cut, members, left, right, of_class, leaf)


def _unsplit(first: int, counts: Integers, widest: int) -> Depth:
    """Nodes with these ``counts`` (A, C), each a leaf."""
    ids, none = first + np.arange(len(counts)), np.zeros(len(counts), np.int64)
    return Depth(first, none, none.copy(), np.zeros((len(counts), widest), np.bool_), ids, ids.copy(), counts)


def _tried(counts: Integers, rules: Rules) -> Booleans:
    """Which nodes with these ``counts`` (A, C) have the records and the errors that a split needs, (A,)."""
    enough = counts.sum(axis=1) >= max(3 * rules.minbucket, 2)
    return np.asarray(enough & (_errors(counts.T * rules.weights) > rules.alpha))


def _split(depth: Depth, nodes: Integers, splits: Splits, x: Integers, at: Integers, rules: Rules) -> Integers:
    """Writes the splits of some ``nodes`` of a depth into it; the son, among all of theirs, of each record at one of them."""
    code = x[splits.feature[at], np.arange(len(at))]
    by_set = rules.unordered[splits.feature[at]]
    goes_left = np.where(by_set, splits.members[at, np.minimum(code, rules.widest - 1)], code <= splits.cut[at])
    mostly = np.bincount(at, np.where(goes_left, 1.0, -1.0)) > 0
    unseen = np.ones_like(splits.members)
    unseen[at[by_set], code[by_set]] = False
    depth.feature[nodes], depth.cut[nodes] = splits.feature, splits.cut
    depth.members[nodes] = splits.members | unseen & mostly[:, None]
    depth.left[nodes] = depth.first + len(depth.counts) + 2 * np.arange(len(nodes))
    depth.right[nodes] = depth.left[nodes] + 1
    return 2 * at + ~goes_left


def _kept(rows: Integers, at: Integers, nodes: Booleans) -> tuple[Integers, Integers]:
    """The records of some of the nodes, and where those nodes stand among themselves."""
    inside = nodes[at]
    return rows[inside], (np.cumsum(nodes) - 1)[at[inside]]


def _best_splits(x: Integers, y: Integers, at: Integers, total: Floats, rules: Rules) -> Splits:
    """The best split of every node, whose records of each class are ``total`` (C, A)."""
    classes, nodes = total.shape
    none = np.zeros(nodes, np.int64)
    best = Splits(np.zeros(nodes), none, none.copy(), np.zeros((nodes, rules.widest), np.bool_))
    whole = _impurity(total * rules.weights)
    for j, (codes, size, plain) in enumerate(zip(x, rules.sizes, rules.unordered, strict=True)):
        cells = _cells(codes, size, y, at, classes, nodes)
        cut, members = none, np.zeros((nodes, size if plain else 1), np.bool_)
        if plain and classes > 2 and size <= MOST_LEVELS:
            gain, members = _best_sets(cells, total, whole, size, rules)
        else:
            cells = _by_shares(cells, total, rules) if plain else cells
            gain, last = _best_cuts(cells, total, whole, rules)
            cut, members = cells.value[last], _before(cells, last, members) if plain else members
        better = gain > best.gain
        best.gain[better], best.feature[better], best.cut[better] = gain[better], j, cut[better]
        best.members[better, : members.shape[1]] = members[better]
        best.members[better, members.shape[1] :] = False
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


def _cells(codes: Integers, size: int, y: Integers, at: Integers, classes: int, nodes: int) -> Cells:
    """The cells of codes (n,) below ``size``, in the order of nodes and codes."""
    key = (at * size + codes) * classes + y
    if nodes * size * classes <= _MOST_CELLS * len(y):
        table = np.bincount(key, minlength=nodes * size * classes).reshape(-1, classes)
        cell = np.flatnonzero(table.any(axis=1))
        return Cells(cell // size, cell % size, table[cell].T.astype(np.float64))
    found, repeats = np.unique(key, return_counts=True)
    cell, column = np.unique(found // classes, return_inverse=True)
    of_class = np.zeros((classes, len(cell)))
    of_class[found % classes, column] = repeats
    return Cells(cell // size, cell % size, of_class)


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


def _best_cuts(cells: Cells, total: Floats, whole: Floats, rules: Rules) -> tuple[Floats, Integers]:
    """Of each node the largest gain by a cut between its cells, 0 without one, and the last cell before it: both (A,)."""
    sums = np.cumsum(cells.table, axis=1)
    start = np.searchsorted(cells.node, np.arange(total.shape[1]))
    left = sums - (sums[:, start] - cells.table[:, start])[:, cells.node]
    ours = left.sum(axis=0)
    place = np.flatnonzero((ours >= rules.minbucket) & (total.sum(axis=0)[cells.node] - ours >= rules.minbucket))
    node, left = cells.node[place], left[:, place]
    best, which = _least(_of_both(left * rules.weights, (total[:, node] - left) * rules.weights), node, whole)
    gain, last = np.zeros(len(whole)), np.zeros(len(whole), np.int64)
    gain[node[which]], last[node[which]] = whole[node[which]] - best, place[which]
    return gain, last


def _least(impurity: Floats, node: Integers, whole: Floats) -> tuple[Floats, Integers]:
    """The least impurity (M,) of each node, node ascending, that is below its whole, and the first place of it."""
    below = np.flatnonzero(impurity < whole[node])
    if not len(below):
        return np.empty(0), below
    starts = np.flatnonzero(np.diff(node[below], prepend=-1))
    least = np.repeat(np.minimum.reduceat(impurity[below], starts), np.diff(starts, append=len(below)))
    places = below[impurity[below] == least]
    first = places[np.flatnonzero(np.diff(node[places], prepend=-1))]
    return impurity[first], first


def _before(cells: Cells, last: Integers, members: Booleans) -> Booleans:
    """``members`` (A, size) with the values in cells up to the last of their node."""
    inside = np.arange(len(cells.node)) <= last[cells.node]
    members[cells.node[inside], cells.value[inside]] = True
    return members


def _best_sets(cells: Cells, total: Floats, whole: Floats, size: int, rules: Rules) -> tuple[Floats, Booleans]:
    """Of each node the largest gain by a set of the levels, 0 without one, and that set: (A,) and (A, size)."""
    classes, nodes = total.shape
    table = np.zeros((nodes, size, classes))
    table[cells.node, cells.value] = cells.table.T
    sets = np.array(list(_gray_code(size)))
    gain, members = np.zeros(nodes), np.zeros((nodes, size), bool)
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
    return gain, members


def _gray_code(size: int) -> Iterator[Booleans]:
    """All sets of ``size`` levels without the last, but for the empty one, in the order of the Gray code."""
    for number in range(1, 2 ** (size - 1)):
        yield (number ^ (number >> 1)) >> np.arange(size) & 1 == 1


def _worth_splitting(tree: ClassTree, errors: Floats, weights: Floats, alpha: float) -> Booleans:
    """Which nodes stay split, (V,), where they have these ``errors`` (V,) and each split must save ``alpha``.

    A node's complexity is what its branch saves for each split, after those of its two sons that save less than it have
    collapsed. Sons are visited in the order of their mean class, and not at all where a bound on the parent's complexity
    shows that they cannot matter: that is rpart's ``partition``, recursion by recursion.
    """
    risk: list[float] = errors.tolist()
    sons = _sons(tree, weights)
    split = np.zeros(len(risk), bool)

    def visited(node: int, bound: float) -> tuple[float, float, int]:
        """Complexity of the node as a root, errors of its leaves, and its splits."""
        own = risk[node]
        at_most = min(own, bound)
        if sons[node][0] == node or at_most <= alpha:
            return alpha, own, 0
        one, other = sons[node]
        first = visited(one, at_most - alpha)
        at_most = min(max((own - first[1]) / (first[2] + 1), own - risk[one]), bound)
        second = visited(other, at_most - alpha)
        left, splits = _after_collapse(own, (*first, risk[one]), (*second, risk[other]))
        complexity = (own - left) / (splits + 1)
        if complexity <= alpha:
            return complexity, own, 0
        split[node] = True
        return complexity, left, splits + 1

    visited(0, risk[0])
    return split


def _sons(tree: ClassTree, weights: Floats) -> list[tuple[int, int]]:
    """The two sons of each node, the one with the lower mean class first; a leaf is its own."""
    weighted = tree.counts.T * weights
    mean = np.zeros(len(tree.counts))
    for place, share in enumerate(weighted / weighted.sum(axis=0)):
        mean += share * place
    lower = mean[tree.left] < mean[tree.right]
    one, other = np.where(lower, tree.left, tree.right), np.where(lower, tree.right, tree.left)
    return list(zip(one.tolist(), other.tolist(), strict=True))


Branch = tuple[float, float, int, float]
"""Complexity, errors of the leaves, splits, and errors as a leaf."""


def _after_collapse(own: float, first: Branch, second: Branch) -> tuple[float, int]:
    """Errors and splits of two branches, after those that save less a split than their parent have collapsed."""
    weak, strong = (first, second) if second[0] > first[0] else (second, first)
    errors, splits = weak[1] + strong[1], weak[2] + strong[2]
    if (own - errors) / (splits + 1) > weak[0]:
        errors, splits = weak[3] + strong[1], strong[2]
        if (own - errors) / (splits + 1) > strong[0]:
            errors, splits = weak[3] + strong[3], 0
    return errors, splits


def _without(tree: ClassTree, collapsed: Booleans) -> ClassTree:
    """The tree whose ``collapsed`` nodes (V,) are leaves."""
    here = np.arange(len(collapsed))
    end, reached = here.copy(), np.zeros(len(here), bool)
    reached[0] = True
    for node in np.flatnonzero(tree.left != here):
        sons = [tree.left[node], tree.right[node]]
        reached[sons] = reached[node] and not collapsed[node]
        end[sons] = np.where(reached[sons], sons, end[node])
    new = np.cumsum(reached) - 1
    inner = (reached & ~collapsed)[reached]
    left, right = (np.where(inner, new[side[reached]], new[here[reached]]) for side in (tree.left, tree.right))
    feature, cut = (np.where(inner, column[reached], 0) for column in (tree.feature, tree.cut))
    members = tree.members[reached] & inner[:, None]
    return ClassTree(feature, cut, members, left, right, tree.counts[reached], new[end[tree.leaf]])
