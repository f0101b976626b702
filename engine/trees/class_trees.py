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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Booleans, Floats, Integers
from .class_counts import Int32s, Nodes, Predictor, Sons
from .class_splits import Rules, Splits, best_splits

DEEPEST = 30
_NO_GAIN = 1e-10


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
    x: Integers,
    labels: Sequence[Integers],
    *,
    levels: Sequence[int],
    minbucket: int,
    cp: float,
    weights: Sequence[float] = (),
) -> list[ClassTree]:
    """The tree of each of T ``labels`` (n,) of the same classes, as ``class_tree`` grows it, all together: several small ones take little longer than one."""
    sizes = [count or int(column.max()) + 1 for count, column in zip(levels, x.T, strict=True)]
    y = np.concatenate(labels)
    classes = int(y.max()) + 1
    weight = np.array(weights or [1.0] * classes)[:, None]
    counts = np.stack([np.bincount(of_one, minlength=classes) for of_one in labels])
    alpha = cp * _errors(counts.T * weight)
    width = classes + classes % 2
    kind = np.int64 if max(sizes) * width >= 2**31 else np.int32
    coded = np.tile(x.T.astype(kind) * width, len(labels))
    coded += y.astype(kind)
    trees = _grown(coded, counts, alpha, Rules(sizes, np.asarray(levels) > 0, weight, minbucket))
    return [
        _without(tree, ~_worth_splitting(tree, _errors(tree.counts.T * weight), weight, float(least)))
        for tree, least in zip(trees, alpha, strict=True)
    ]


def _errors(counts: Floats) -> Floats:
    """What is misclassified at nodes with the weighted counts (C, A): (A,)."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _grown(coded: Int32s, counts: Integers, alpha: Floats, rules: Rules) -> list[ClassTree]:
    """The trees, depth by depth: values and classes ``coded`` (P, N) of the records of one tree after the other, ``counts`` (T, C) and least errors (T,)."""
    trees = len(counts)
    predictors = [
        Predictor(of_one, size, rules.width, bool(plain))
        for of_one, size, plain in zip(coded, rules.sizes, rules.unordered, strict=True)
    ]
    roots = np.arange(trees)
    depths = [_unsplit(0, roots, roots, counts, rules.widest)]
    largest, leaf = np.zeros(trees), np.repeat(roots, coded.shape[1] // trees)
    at = np.flatnonzero(_tried(counts, alpha, rules))
    rows = np.flatnonzero(np.isin(leaf, at))
    side = np.empty(coded.shape[1], np.int8)
    while len(at):
        here = depths[-1]
        nodes = Nodes(rows, here.counts[at].T.astype(np.float64), rules.weights)
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
        to_left, to_right = (np.repeat(on, nodes.sizes) for on in goes.T)
        to_left &= ~right
        to_right &= right
        ends = np.flatnonzero(~(to_left | to_right))
        node = np.searchsorted(np.cumsum(nodes.sizes), ends, side="right")
        leaf[rows.take(ends)] = number.ravel().take(2 * node + right.take(ends))
        if any(predictor.order is not None for predictor in predictors):
            side[rows] = to_left.view(np.int8) + 2 * to_right.view(np.int8)
        counted = _sons(split, found.left[:, split], tried, nodes, right)
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
    code = coded.ravel().take(np.repeat(found.feature * coded.shape[1], nodes.sizes) + nodes.rows)
    right = code >= np.repeat(((found.cut + 1) * rules.width).astype(coded.dtype), nodes.sizes)
    by_set = rules.unordered[found.feature]
    if by_set.any():
        inside = np.flatnonzero(np.repeat(by_set, nodes.sizes))
        cell = np.repeat(np.flatnonzero(by_set) * rules.widest, nodes.sizes[by_set])
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


def _sons(split: Integers, left: Floats, tried: Booleans, nodes: Nodes, right: Booleans) -> Sons:
    """The ``tried`` (2 S,) of the sons of those nodes that are ``split`` (S,) with ``left`` (C, S), of records (m,) that go left or ``right``."""
    sizes = left.sum(axis=0).astype(np.int64)
    sizes = np.stack([sizes, nodes.sizes[split] - sizes])
    right_is_smaller = sizes[1] < sizes[0]
    asked = tried.reshape(2, -1).any(axis=0)
    parents, smaller_is_right = split[asked], np.zeros(len(nodes), np.bool_)
    of_parents = np.zeros(len(nodes), np.bool_)
    of_parents[parents] = True
    smaller_is_right[split] = right_is_smaller
    counted = np.repeat(smaller_is_right, nodes.sizes) == right
    counted &= np.repeat(of_parents, nodes.sizes)
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
