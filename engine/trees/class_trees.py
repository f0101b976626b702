"""Classification trees: grown by Gini impurity and pruned by errors, as rpart does with ``method = "class"``.

Breiman, Friedman, Olshen & Stone (1984); rpart: Therneau & Atkinson (2019). A node is split where it has enough records
and errors, at depth below 30, so that the Gini impurity falls most and both sides keep ``minbucket`` records; of
equally good splits the first one of the first predictor is taken. A split stays where the branch below it saves more
than ``cp`` times the errors of the root for each of its splits. Classes may have weights (rpart's ``prior``), and so
may records: a record of weight w counts as w records. Weights are whole ``units``, so that sums are exact and ties stay
ties.

All nodes of a level are split at once, of one tree or of several. A predictor with few values is counted: records of
each node, value and class. A predictor with many values keeps its records in its own order, node by node, as SLIQ does
(Mehta, Agrawal & Rissanen 1996). Both ways give the same cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers

# Cells of the counts for each record: beyond that most cells are empty, and sorted records take less time and memory.
_MOST_CELLS = 4
# The quick formula for the gain and rpart's own sums differ by rounding. Cuts this close to the best are computed again
# with rpart's sums, which decide between them.
_ROUNDING = 1e-11

Int32s = NDArray[np.int32]
# As in rpart, all 2^(L - 1) - 1 sets are tried up to this number of levels L.
MOST_LEVELS = 10
# Bounds the memory of ``_best_level_sets``, which takes nodes in parts.
_MOST_COUNTS = 2_000_000
# Sets of all nodes together up to which nodes with different levels are taken together.
_FEW_SETS = 20_000
MAX_DEPTH = 30
# rpart's rule: a gain below this share of the largest one so far is taken for rounding, and the node stays a leaf.
MIN_RELATIVE_GAIN = 1e-10
BranchErrors = tuple[float, float, int, float]
"""Complexity, errors of the leaves, splits, and errors as a leaf."""


class CutPositions(NamedTuple):
    """Positions at which A nodes may be cut by one predictor, node after node.

    position: last cell or record before each cut, (M,)
    per_node: number of cuts of each node, (A,)
    left_counts: records of the node before the cut, (M,) for each of C classes
    """

    position: Integers
    per_node: Integers
    left_counts: Sequence[Int32s]


class CandidateCuts(NamedTuple):
    """Cuts that may be the best of their node.

    node: number of the node, ascending, (M,)
    position: last cell or record before the cut, (M,)
    left_counts: records of each class before the cut, (C, M)
    """

    node: Integers
    position: Integers
    left_counts: Floats


class SplittableNodes:
    """The A nodes of one level that may be split, with their m records.

    rows: records of all nodes, node after node, (m,)
    total: records of each class at each node, or their units, (C, A)
    weights: weight of a record of each class, (C, 1)
    sizes: records of each node, or their units, (A,)
    records: number of records of each node, (A,)
    weight: class-weighted size of each node, (A,)
    shares: class-weighted share of each class, (C, A)
    """

    def __init__(self, rows: Integers, total: Floats, weights: Floats, records: Integers | None = None) -> None:
        """Compute sizes and class shares from the records of each class, ``total`` (C, A)."""
        self.rows, self.total, self.weights = rows, total, weights
        self.sizes = total.sum(axis=0).astype(np.int64)
        self.records = self.sizes if records is None else records
        weighted = total * weights
        self.weight = weighted.sum(axis=0)
        self.shares = weighted / self.weight

    def __len__(self) -> int:
        return len(self.sizes)

    def node_of_record(self) -> Integers:
        """Return the node of each record, (m,)."""
        return np.arange(len(self)).repeat(self.records)


class ChildNodes(NamedTuple):
    """Nodes of the next level that may still be split: A children of S parents.

    parents: node number of each parent, (S,)
    smaller_rows: records of the smaller child of each parent, parent after parent, (k,)
    smaller_sizes: records of the smaller child of each parent, (S,)
    parent_place: place among the S parents of the parent of each of the A children, (A,)
    is_larger: whether the child is the larger one of its parent's, (A,)
    n_records: records of all A children
    """

    parents: Integers
    smaller_rows: Integers
    smaller_sizes: Integers
    parent_place: Integers
    is_larger: Booleans
    n_records: int


@dataclass(slots=True)
class CodedPredictor:
    """Codes of one predictor for all N records, and its counts or its record order at the current level.

    coded: code of the value times ``width``, plus the class, (N,)
    size: number of values
    width: number of classes C, or C + 1, so that it is even
    is_unordered: whether the values are levels without an order
    counts: records of each node and value, two classes in one int64, (A, size, width // 2); None where nodes are not
    counted
    order: records in the predictor's order within each node, (m,); None where nodes are counted or there is no order
    units: weight units of the records, (N,); None where each is 1
    """

    coded: Int32s
    size: int
    width: int
    is_unordered: bool
    counts: Integers | None = None
    order: Integers | None = None
    units: Int32s | None = None

    def prepare_nodes(self, nodes: SplittableNodes) -> None:
        """Count the records of the nodes, or sort them where most cells of the counts would be empty."""
        if self.counts is None and self.order is None:
            if self._is_countable(len(nodes), len(nodes.rows)):
                self.counts = self._count_records(nodes.rows, nodes.records)
            elif not self.is_unordered:
                # The row number is the last digit of the key, so that one sort of plain integers replaces a stable
                # argsort.
                key = (nodes.node_of_record() * self.size + self.coded.take(nodes.rows) // self.width) * len(self.coded)
                key += nodes.rows
                key.sort()
                self.order = key - key // len(self.coded) * len(self.coded)

    def move_to_children(self, sons: ChildNodes, side: NDArray[np.int8]) -> None:
        """Move the counts or the record order on to the child nodes.

        ``side`` (N,) is 1 or 2 for the records that went to a left or a right child.
        """
        if self.order is not None:
            sides = side.take(self.order)
            self.order = np.concatenate([self.order.compress(sides == 1), self.order.compress(sides == 2)])
        elif self.counts is not None and self._is_countable(len(sons.parent_place), sons.n_records):
            # The larger child is the rest of the parent, so that only the smaller one is counted (LightGBM: Ke et al.
            # 2017).
            smaller = self._count_records(sons.smaller_rows, sons.smaller_sizes)
            both = np.concatenate([smaller, self.counts.take(sons.parents, axis=0)])
            both[len(smaller) :] -= smaller
            self.counts = both.take(sons.parent_place + len(smaller) * sons.is_larger, axis=0)
        else:
            self.counts = None

    def _is_countable(self, nodes: int, records: int) -> bool:
        """Return whether the counts of that many nodes and records have few enough empty cells."""
        return nodes * self.size * self.width <= _MOST_CELLS * records

    def _count_records(self, rows: Integers, sizes: Integers) -> Integers:
        """Count some records (k,), node after node with ``sizes`` (nodes,) of them: (nodes, size, width // 2)."""
        cells = self.size * self.width
        kind = np.int64 if cells * len(sizes) >= 2**31 else np.int32
        key: NDArray[Any] = np.arange(0, cells * len(sizes), cells, dtype=kind).repeat(sizes)
        key += self.coded.take(rows)
        weighing = None if self.units is None else self.units.take(rows)
        found = np.bincount(key, weighing, minlength=cells * len(sizes)).astype(np.int32)
        # Two 32-bit counts are added as one 64-bit number, which halves the additions. The halves never carry, since no
        # class has 2^31 records.
        return found.view(np.int64).reshape(len(sizes), self.size, self.width // 2)

    def cut_positions(self, nodes: SplittableNodes, minbucket: int) -> CutPositions:
        """Find the cuts after each value of a node where both sides keep their records."""
        if self.order is not None:
            return self._cuts_in_order(self.order, nodes, minbucket)
        assert self.counts is not None
        return self._cuts_from_counts(self.counts, nodes, minbucket)

    def nonempty_cells(self) -> Booleans:
        """Return which cells of the counts have records, (A size,)."""
        assert self.counts is not None
        found: Booleans = self.counts[:, :, 0].ravel() != 0
        for pair in range(1, self.width // 2):
            found |= self.counts[:, :, pair].ravel() != 0
        return found

    def _cuts_from_counts(self, counts: Integers, nodes: SplittableNodes, minbucket: int) -> CutPositions:
        """Find the cuts between the values of a counted predictor."""
        table, classes = counts.reshape(-1, self.width // 2), len(nodes.total)
        cell = self.nonempty_cells().nonzero()[0]
        ends = cell.searchsorted(np.arange(1, len(nodes) + 1) * self.size)
        each = sizes_from_ends(ends)
        table = table.take(cell, axis=0)
        upto = table.cumsum(axis=0)
        # The running sums go over all nodes: those up to the node's first cell are taken off again.
        upto -= (upto[ends - each] - table[ends - each]).repeat(each, axis=0)
        left = list(upto.view(np.int32).T[:classes])
        number = sum(left[1:], left[0])
        may = number >= minbucket
        may &= number <= (nodes.sizes - minbucket).astype(np.int32).repeat(each)
        place = may.nonzero()[0]
        each = sizes_from_ends(place.searchsorted(ends))
        return CutPositions(cell.take(place), each, [one.take(place) for one in left])

    def _cuts_in_order(self, order: Integers, nodes: SplittableNodes, minbucket: int) -> CutPositions:
        """Find the cuts between neighbouring records of a predictor that keeps its records in order."""
        coded = self.coded.take(order)
        code = coded // self.width
        of_class = coded - code * self.width
        if self.units is not None:
            return self._weighted_cuts_in_order(code, of_class, self.units.take(order), nodes, minbucket)
        # Of each node the first minbucket - 1 and the last minbucket places are no cuts: a side would be too small.
        edges = np.full((len(nodes), 3), minbucket)
        edges[:, 0] -= 1
        edges[:, 1] = nodes.sizes - edges[:, 0] - minbucket
        may = np.tile([False, True, False], len(nodes)).repeat(edges.ravel())
        may[:-1] &= code[1:] != code[:-1]
        place, ends = may.nonzero()[0], nodes.sizes.cumsum()
        each = sizes_from_ends(place.searchsorted(ends))
        starts = ends - nodes.sizes
        # The first class is what the others leave, which saves one running sum.
        rest = (place + (1 - starts).repeat(each)).astype(np.int32)
        left = [rest]
        for k in range(1, len(nodes.total)):
            sums = _running_count(of_class == k)
            before = np.where(starts > 0, sums.take(starts - 1), 0).astype(np.int32)
            left.append(sums.take(place) - before.repeat(each))
            rest -= left[-1]
        return CutPositions(place, each, left)

    @staticmethod
    def _weighted_cuts_in_order(
        code: Int32s, of_class: Int32s, units: Int32s, nodes: SplittableNodes, minbucket: int
    ) -> CutPositions:
        """Find the cuts of records in order (m,), with their values, classes and weight units."""
        ends = nodes.records.cumsum()
        weighed = [np.where(of_class == k, units, 0).cumsum(dtype=np.int64) for k in range(len(nodes.total))]
        left = []
        for sums in weighed:
            before = np.append(0, sums.take(ends[:-1] - 1))
            left.append((sums - before.repeat(nodes.records)).astype(np.int32))
        ours = sum(left[1:], left[0])
        may = (ours >= minbucket) & (ours <= (nodes.sizes - minbucket).repeat(nodes.records))
        may[:-1] &= code[1:] != code[:-1]
        place = may.nonzero()[0]
        return CutPositions(place, sizes_from_ends(place.searchsorted(ends)), [one.take(place) for one in left])

    def values_before_cuts(self, place: Integers) -> Integers:
        """Return the last value before the cuts at some positions (k,)."""
        if self.order is None:
            return place % self.size
        return self.coded.take(self.order.take(place)).astype(np.int64) // self.width


def sizes_from_ends(ends: Integers) -> Integers:
    """Return the difference of each end (A,) from the one before, and of the first from 0."""
    found = ends.copy()
    found[1:] -= ends[:-1]
    return found


def _running_count(flags: Booleans) -> Int32s:
    """Return the number of true flags up to each place, (m,)."""
    words = np.zeros(-(-len(flags) // 8), "<u8")
    words.view(np.bool_)[: len(flags)] = flags
    # The product sums eight flags in one word: byte k of it is the number of flags up to k. That takes a quarter of the
    # time of a cumulative sum.
    words *= 0x0101010101010101
    within = words.view(np.uint8).reshape(-1, 8)
    number = within[:, 7].astype(np.int32)
    found = within + (number.cumsum(dtype=np.int32) - number)[:, None]
    return found.ravel()[: len(flags)]


def nearly_best_cuts(positions: Sequence[CutPositions], nodes: SplittableNodes) -> CandidateCuts:
    """Return the cuts of Q predictors that may be the best of their node, within rounding.

    In the result the node is A times the number of the predictor, plus the number of the node.
    """
    each = np.concatenate([places.per_node for places in positions])
    left = [np.concatenate(parts) for parts in zip(*(places.left_counts for places in positions), strict=True)]
    some = each.nonzero()[0]
    starts, repeats, of_node = (each.cumsum() - each)[some], each[some], some % len(nodes)
    best = np.zeros(len(nodes))
    if len(some):
        gain = _impurity_decrease(left, nodes, of_node, repeats)
        np.maximum.at(best, of_node, np.maximum.reduceat(gain, starts))
        near = (gain >= (best - _ROUNDING)[of_node].repeat(repeats)).nonzero()[0]
    else:
        near = some
    node = some.take(starts.searchsorted(near, side="right") - 1)
    place = np.concatenate([places.position for places in positions]).take(near)
    return CandidateCuts(node, place, np.stack([of.take(near) for of in left]).astype(np.float64))


def _impurity_decrease(left: Sequence[Int32s], nodes: SplittableNodes, of_node: Integers, each: Integers) -> Floats:
    """Return by how much each cut lowers the impurity, as a share of its node's weight, (M,).

    ``left`` are the records of C classes left of each cut, (M,). By Gini impurity that is
    sum_k (left_k - size share_k)^2 / (size (whole - size)), of weighted records.
    """
    weights = nodes.weights[:, 0]
    parts = [part * weight for part, weight in zip(left, weights, strict=True)]
    size = sum(parts[1:], parts[0])
    both = nodes.weight[of_node].repeat(each)
    both -= size
    both *= size
    gain: Floats | None = None
    # Of two classes both have the same square, so one is computed and doubled.
    for part, share in list(zip(parts, nodes.shares, strict=True))[: 1 if len(parts) == 2 else None]:
        apart = share[of_node].repeat(each)
        apart *= size
        apart -= part
        apart *= apart
        gain = apart if gain is None else np.add(gain, apart, out=gain)
    assert gain is not None
    gain /= both
    if len(parts) == 2:
        gain *= 2
    return gain


class GrowthRules(NamedTuple):
    """Settings by which a tree is grown.

    sizes: number of values of each predictor, (P,)
    is_unordered: whether the levels of each predictor lack an order, (P,)
    class_weights: weight of a record of each class, (C, 1)
    minbucket: fewest records of a leaf, or units
    """

    sizes: Sequence[int]
    is_unordered: Booleans
    class_weights: Floats
    minbucket: int

    @property
    def padded_classes(self) -> int:
        """Return the number of classes, or one more if it is odd."""
        return len(self.class_weights) + len(self.class_weights) % 2

    @property
    def most_unordered_levels(self) -> int:
        """Return the largest number of levels of a predictor without an order, at least 1."""
        return max((size for size, plain in zip(self.sizes, self.is_unordered, strict=True) if plain), default=1)


class BestSplits(NamedTuple):
    """The best split of each of A nodes.

    gain: decrease of the weighted impurity, 0 without a split, (A,)
    feature: number of the predictor, (A,)
    cut: largest code that goes left, for predictors with an order, (A,)
    left_levels: levels that go left, for predictors without an order, (A, levels)
    left_counts: records of each class that go left, (C, A)
    """

    gain: Floats
    feature: Integers
    cut: Integers
    left_levels: Booleans
    left_counts: Floats


class ValueCells(NamedTuple):
    """Records of each node and value of a predictor, without empty cells.

    node: number of the node, ascending, (M,)
    value: code of the value, (M,)
    class_counts: records of each class, (C, M)
    """

    node: Integers
    value: Integers
    class_counts: Floats


def find_best_splits(predictors: Sequence[CodedPredictor], nodes: SplittableNodes, rules: GrowthRules) -> BestSplits:
    """Find the best split of every node; of equal ones the first of the first predictor is taken."""
    classes, count = nodes.total.shape
    whole = _node_impurity(nodes.total * rules.class_weights)
    found, cells, by_sets = list[CutPositions](), dict[int, ValueCells](), set[int]()
    for j, predictor in enumerate(predictors):
        predictor.prepare_nodes(nodes)
        if not predictor.is_unordered:
            found.append(predictor.cut_positions(nodes, rules.minbucket))
            continue
        cells[j] = _nonempty_value_cells(predictor, nodes)
        # With two classes the best set of levels is one of neighbours in the order of the class shares (Breiman et al.
        # 1984, theorem 4.5), so that trying all sets would find nothing better.
        if classes > 2 and 1 < predictor.size <= MOST_LEVELS:
            by_sets.add(j)
            found.append(_best_level_sets(predictor, cells[j], nodes, rules.minbucket))
        else:
            cells[j] = _sort_cells_by_class_shares(cells[j], nodes.total, rules)
            found.append(_cuts_between_cells(cells[j], nodes, rules.minbucket))
    gain, left, place = _best_cuts_by_predictor(nearly_best_cuts(found, nodes), nodes, whole, len(predictors))
    # argmax takes the first of equal gains, which is the first predictor, as in rpart.
    feature, each = gain.argmax(axis=0), np.arange(count)
    cut, members = np.zeros(count, np.int64), np.zeros((count, rules.most_unordered_levels), np.bool_)
    for j, predictor in enumerate(predictors):
        at = ((feature == j) & (gain[j] > 0)).nonzero()[0]
        if not len(at):
            continue
        if j in by_sets:
            members[at, : predictor.size] = _level_sets(predictor.size)[place[j, at]]
        elif predictor.is_unordered:
            members[at, : predictor.size] = _levels_before_cut(cells[j], place[j], count, predictor.size)[at]
        else:
            cut[at] = predictor.values_before_cuts(place[j, at])
    return BestSplits(gain[feature, each], feature, cut, members, left[:, feature, each])


def _node_impurity(counts: Floats) -> Floats:
    """Return the Gini impurity times the weight of each node, (M,), of weighted counts (C, M)."""
    size = counts.sum(axis=0)
    found = np.zeros(counts.shape[1])
    # These are rpart's operations in rpart's order: a formula that is equal in exact arithmetic would break ties
    # otherwise.
    for share in counts / size:
        found += size * (share * (1 - share))
    return found


def _children_impurity(left: Floats, right: Floats) -> Floats:
    """Return the summed impurity of both sides of each cut, (M,), given weighted counts (C, M) of each side."""
    found = np.zeros(left.shape[1])
    ours, theirs = left.sum(axis=0), right.sum(axis=0)
    for one, other in zip(left, right, strict=True):
        share = one / ours
        found += ours * (share * (1 - share))
        share = other / theirs
        found += theirs * (share * (1 - share))
    return found


def _nonempty_value_cells(predictor: CodedPredictor, nodes: SplittableNodes) -> ValueCells:
    """Count the records of each node and value, without empty cells, in the order of nodes and codes."""
    classes, size, width = len(nodes.total), predictor.size, predictor.width
    if predictor.counts is not None:
        table = predictor.counts.view(np.int32).reshape(-1, width)
        cell = predictor.nonempty_cells().nonzero()[0]
        return ValueCells(cell // size, cell % size, table[cell, :classes].T.astype(np.float64))
    key = nodes.node_of_record() * (size * width) + predictor.coded.take(nodes.rows)
    if predictor.units is None:
        found, repeats = np.unique(key, return_counts=True)
    else:
        found, of = np.unique(key, return_inverse=True)
        repeats = np.bincount(of, predictor.units.take(nodes.rows))
    cell, column = np.unique(found // width, return_inverse=True)
    counts = np.zeros((classes, len(cell)))
    counts[found % width, column] = repeats
    return ValueCells(cell // size, cell % size, counts)


def _sort_cells_by_class_shares(cells: ValueCells, total: Floats, rules: GrowthRules) -> ValueCells:
    """Sort the cells of each node by the share of the first class, or along the first principal component of all
    shares.
    """
    table, whole = cells.class_counts * rules.class_weights, total * rules.class_weights
    size = table.sum(axis=0)
    # Breiman et al. 1984, theorem 4.5.
    if len(whole) == 2:
        place = table[0] / size
    else:
        # Coppersmith, Hong & Hosking (1999): the order along the first principal component of the class shares. Where
        # all but the largest cell are too few for a leaf there is no cut, whatever the order.
        records, nodes = cells.class_counts.sum(axis=0), whole.shape[1]
        most = np.zeros(nodes)
        np.maximum.at(most, cells.node, records)
        asked = (total.sum(axis=0) - most >= rules.minbucket).nonzero()[0]
        number = np.full(nodes, -1)
        number[asked] = np.arange(len(asked))
        some = (number[cells.node] >= 0).nonzero()[0]
        node = cells.node[some]
        shares = (whole / whole.sum(axis=0)).take(node, axis=1)
        # In the order of memory that the sums below have always had: another one would round them differently.
        distance = np.ascontiguousarray((table / size).take(some, axis=1) - shares)
        weight, at = size[some], number[node]
        # The matrices are symmetric, and their lower triangles are enough.
        sums = np.zeros((len(whole), len(whole), len(asked)))
        for i, j in zip(*np.tril_indices(len(whole)), strict=True):
            sums[i, j] = np.bincount(at, distance[i] * distance[j] * weight, len(asked))
        axes = np.linalg.eigh(sums.transpose(2, 0, 1))[1][:, :, -1]
        place = np.zeros(len(cells.node))
        place[some] = np.einsum("cm,mc->m", distance, axes[at])
    # Of equal shares the lower code comes first, so that the order of the records has no effect.
    order = np.lexsort((cells.value, place, cells.node))
    return ValueCells(cells.node[order], cells.value[order], cells.class_counts[:, order])


def _cuts_between_cells(cells: ValueCells, nodes: SplittableNodes, minbucket: int) -> CutPositions:
    """Find the cuts after each cell where both sides keep their records."""
    ends = cells.node.searchsorted(np.arange(len(nodes)), side="right")
    sums = cells.class_counts.cumsum(axis=1)
    before = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
    left = sums - before[:, np.append(0, ends[:-1])][:, cells.node]
    ours = left.sum(axis=0)
    place = ((ours >= minbucket) & (ours <= (nodes.sizes - minbucket)[cells.node])).nonzero()[0]
    return CutPositions(
        place, sizes_from_ends(place.searchsorted(ends)), list(left.take(place, axis=1).astype(np.int32))
    )


def _best_cuts_by_predictor(
    cuts: CandidateCuts, nodes: SplittableNodes, whole: Floats, predictors: int
) -> tuple[Floats, Floats, Integers]:
    """Return the best cut of each of Q predictors and node.

    That is the largest gain, 0 without one, (Q, A), the records left of that cut, (C, Q, A), and its position, (Q, A).
    """
    weights, shape = nodes.weights, (predictors, len(nodes))
    gain, left, place = np.zeros(shape), np.zeros((len(nodes.total), *shape)), np.zeros(shape, np.int64)
    if not len(cuts.node):
        return gain, left, place
    row, node = np.divmod(cuts.node, len(nodes))
    both = _children_impurity(cuts.left_counts * weights, (nodes.total.take(node, axis=1) - cuts.left_counts) * weights)
    best, which = _least_impurity_by_node(both, cuts.node, whole.take(node))
    at = row[which], node[which]
    gain[at], left[:, *at], place[at] = whole[at[1]] - best, cuts.left_counts[:, which], cuts.position[which]
    return gain, left, place


def _node_starts(node: Integers) -> Integers:
    """Return the places at which another node begins, the first one included; ``node`` (M,) is ascending."""
    if not len(node):
        return np.empty(0, np.int64)
    return np.append(0, (node[1:] != node[:-1]).nonzero()[0] + 1)


def _least_impurity_by_node(impurity: Floats, node: Integers, whole: Floats) -> tuple[Floats, Integers]:
    """Return the least impurity (M,) of each node that is below its ``whole`` (M,), and its first place; ``node`` (M,)
    is ascending.
    """
    below = (impurity < whole).nonzero()[0]
    if not len(below):
        return np.empty(0), below
    starts = _node_starts(node.take(below))
    least = np.minimum.reduceat(impurity.take(below), starts).repeat(np.diff(starts, append=len(below)))
    places = below.compress(impurity.take(below) == least)
    first = places[_node_starts(node[places])]
    return impurity[first], first


def _levels_before_cut(cells: ValueCells, last: Integers, nodes: int, size: int) -> Booleans:
    """Return the values in the cells of each node up to its last one, as flags (nodes, size)."""
    members = np.zeros((nodes, size), np.bool_)
    inside = np.arange(len(cells.node)) <= last[cells.node]
    members[cells.node[inside], cells.value[inside]] = True
    return members


def _best_level_sets(
    predictor: CodedPredictor, cells: ValueCells, nodes: SplittableNodes, minbucket: int
) -> CutPositions:
    """Find the sets of levels that may be the best of their node, of all sets and within rounding.

    The position of a set is its number in ``_level_sets``.
    """
    classes, size, count = len(nodes.total), predictor.size, len(nodes)
    table = np.zeros((count, size, classes))
    table[cells.node, cells.value] = cells.class_counts.T
    # What the records of a level are beyond the node's share of each class. The numerator of the gain of a set
    # (``_impurity_decrease``) is the sum of the products of its levels: that needs no sum for each class.
    weighted = table * nodes.weights[:, 0]
    weight = weighted.sum(axis=2)
    apart = weighted - weight[:, :, None] * nodes.shares.T[:, None, :]
    products = apart @ apart.transpose(0, 2, 1)
    records, masks, has = table.sum(axis=2), [(1 << size) - 1], None
    if count * len(_level_sets(size)) > _FEW_SETS:
        has = (records > 0) @ (1 << np.arange(size))
        masks = np.unique(has).tolist()
    node, place = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for mask in masks:
        levels, numbers, sets, pairs = _sets_of_present_levels(size, mask)
        own = np.arange(count) if has is None else (has == mask).nonzero()[0]
        step = max(_MOST_COUNTS // max(1, len(sets)), 1)
        for some in (own[begin : begin + step] for begin in range(0, len(own), step)):
            here, number, whole = products[some], records[some], weight[some]
            if len(levels) < size:
                here, number, whole = here[:, levels][:, :, levels], number[:, levels], whole[:, levels]
            left = sets @ number.T
            allowed = (left >= minbucket) & (nodes.sizes[some] - left >= minbucket)
            left = sets @ whole.T
            here = here.reshape(len(some), -1)
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = pairs @ here.T / (left * (nodes.weight[some] - left))
            gain[~allowed] = -np.inf
            # Sums of large numbers that nearly cancel are rounded by their size.
            near = gain >= gain.max(axis=0, initial=0.0) - np.maximum(_ROUNDING, 1e-15 * nodes.sizes[some])
            found, which = (near & allowed).T.nonzero()
            node.append(some[found])
            place.append(numbers[which])
    of, at = np.concatenate(node), np.concatenate(place)
    if len(masks) > 1:
        order = np.argsort(of, kind="stable")
        of, at = of[order], at[order]
    left = np.einsum("ml,mlc->cm", _level_sets(size)[at].astype(np.float64), table[of])
    return CutPositions(at, np.bincount(of, minlength=count), list(left.astype(np.int32)))


@cache
def _sets_of_present_levels(size: int, mask: int) -> tuple[Integers, Integers, Floats, Floats]:
    """Return the levels (p,) in a bit mask, the numbers of the first sets that differ in these, (s,), these sets, and
    their pairs.

    The sets (s, p) mark their levels, the pairs (s, p p) which two levels are both in a set.
    """
    levels = (mask >> np.arange(size) & 1).nonzero()[0]
    sets = _level_sets(size)[:, levels]
    numbers = np.sort(np.unique(sets @ (1 << np.arange(len(levels))), return_index=True)[1])
    chosen = sets[numbers].astype(np.float64)
    return levels, numbers, chosen, (chosen[:, :, None] * chosen[:, None, :]).reshape(len(numbers), -1)


@cache
def _level_sets(size: int) -> Booleans:
    """List the sets of levels that a split may send left, (2^(size - 1) - 1, size), in the order of the Gray code.

    A set and its complement make the same split, so no set has the last level. The empty set is left out.
    """
    # rpart tries the sets in the order of the Gray code; of equal ones the first wins there too.
    number = np.arange(1, 2 ** (size - 1))[:, None]
    return np.asarray((number ^ (number >> 1)) >> np.arange(size) & 1 == 1)


@dataclass(frozen=True, slots=True)
class ClassTree:
    """A classification tree of V nodes, the root first, parents before children. A leaf leads to itself.

    A record at node v goes to ``left[v]`` if its code of predictor ``feature[v]`` is at most ``cut[v]``, or, where the
    levels of that predictor have no order, if ``left_levels[v, code]``; else to ``right[v]``. A level that no record of
    the node has goes where most records of the node go.

    feature: predictor of the split, (V,)
    cut: largest code that goes left, (V,)
    left_levels: levels that go left, (V, L)
    left, right: child nodes, (V,)
    counts: records of each class, or their units, (V, C)
    leaf: leaf of each record that the tree was grown on, (n,)
    """

    feature: Integers
    cut: Integers
    left_levels: Booleans
    left: Integers
    right: Integers
    counts: Integers
    leaf: Integers


class TreeLevel(NamedTuple):
    """The A nodes of one level of all trees; fields that are not listed are those of ``ClassTree``.

    first: number of the level's first node
    tree: tree of each node, (A,)
    rank: place of each node if children follow the order of their parents, (A,)
    """

    first: int
    tree: Integers
    rank: Integers
    feature: Integers
    cut: Integers
    members: Booleans
    left: Integers
    right: Integers
    counts: Integers


def grow_class_tree(
    x: Integers, y: Integers, *, levels: Sequence[int], minbucket: int, cp: float, weights: Sequence[float] = ()
) -> ClassTree:
    """Grow the tree of classes y (n,), from 0, by the codes x (n, P), from 0.

    ``levels`` (P,) is the number of levels of a predictor without an order, 0 for one with an order; ``weights`` (C,)
    is the weight of a record of each class, 1 if empty.
    """
    return grow_class_trees(x, [y], levels=levels, minbucket=minbucket, cp=cp, weights=weights)[0]


def grow_class_trees(
    x: Integers | Sequence[Integers],
    labels: Sequence[Integers],
    *,
    levels: Sequence[int],
    minbucket: int,
    cp: float,
    weights: Sequence[float] = (),
    units: Integers | None = None,
    prune: bool = True,
) -> list[ClassTree]:
    """Grow the tree of each of T ``labels`` (n,) of the same classes, as ``grow_class_tree`` does, all together.

    Several small trees take little longer than one. ``x`` are the codes (n, P) of all of them, or T tables of codes.
    ``units`` (T n,) are the weights of the records of one tree after the other, below 2^31 in all; ``minbucket`` then
    counts units. Without ``prune`` every split stays by which the impurity falls.
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
    alpha = cp * misclassified_weight(counts.T * weight)
    width = classes + classes % 2
    # Value and class are one number, which needs 64 bits from 2^31 on.
    kind = np.int64 if max(sizes) * width >= 2**31 else np.int32
    coded = np.tile(columns.astype(kind) * width, len(labels) if isinstance(x, np.ndarray) else 1)
    coded += y.astype(kind)
    rules = GrowthRules(sizes, np.asarray(levels) > 0, weight, minbucket)
    trees = _grow_levels(coded, counts, alpha, rules, None if units is None else units.astype(np.int32))
    if not prune:
        return trees
    return [
        collapse_nodes(tree, ~splits_to_keep(tree, misclassified_weight(tree.counts.T * weight), weight, float(least)))
        for tree, least in zip(trees, alpha, strict=True)
    ]


def misclassified_weight(counts: Floats) -> Floats:
    """Return the weight of the misclassified records at nodes with the weighted counts (C, A): (A,)."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _grow_levels(
    coded: Int32s, counts: Integers, alpha: Floats, rules: GrowthRules, units: Int32s | None = None
) -> list[ClassTree]:
    """Grow the trees level by level, without pruning.

    ``coded`` (P, N) are values and classes of the records of one tree after the other, ``counts`` (T, C) the records of
    each class, ``alpha`` (T,) the errors that a node must exceed to be split, ``units`` (N,) the weights of the
    records.
    """
    trees = len(counts)
    predictors = [
        CodedPredictor(of_one, size, rules.padded_classes, bool(plain), units=units)
        for of_one, size, plain in zip(coded, rules.sizes, rules.is_unordered, strict=True)
    ]
    roots = np.arange(trees)
    depths = [level_of_leaves(0, roots, roots, counts, rules.most_unordered_levels)]
    largest, leaf = np.zeros(trees), roots.repeat(coded.shape[1] // trees)
    at = may_be_split(counts, alpha, rules).nonzero()[0]
    rows = np.isin(leaf, at).nonzero()[0]
    records = None if units is None else np.full(len(at), coded.shape[1] // trees)
    side = np.empty(coded.shape[1], np.int8)
    while len(at):
        here = depths[-1]
        nodes = SplittableNodes(rows, here.counts[at].T.astype(np.float64), rules.class_weights, records)
        found = find_best_splits(predictors, nodes, rules)
        np.maximum.at(largest, here.tree[at], found.gain)
        split = (found.gain > MIN_RELATIVE_GAIN * largest[here.tree[at]]).nonzero()[0]
        right = _route_records(here, at, found, nodes, coded, rules)
        depths.append(split_nodes(here, at, found, split, rules.most_unordered_levels))
        tried = np.zeros(2 * len(split), np.bool_)
        if len(depths) <= MAX_DEPTH:
            tried = may_be_split(depths[-1].counts, alpha[depths[-1].tree], rules)
        number, goes = np.column_stack([here.first + at] * 2), np.zeros((len(at), 2), np.bool_)
        number[split] = depths[-1].first + np.arange(2 * len(split)).reshape(2, -1).T
        goes[split] = tried.reshape(2, -1).T
        to_left, to_right = (on.repeat(nodes.records) for on in goes.T)
        to_left &= ~right
        to_right &= right
        ends = (~(to_left | to_right)).nonzero()[0]
        node = nodes.records.cumsum().searchsorted(ends, side="right")
        leaf[rows.take(ends)] = number.ravel().take(2 * node + right.take(ends))
        if any(predictor.order is not None for predictor in predictors):
            side[rows] = to_left.view(np.int8) + 2 * to_right.view(np.int8)
        go_left = found.left_counts[:, split].sum(axis=0).astype(np.int64)
        if records is not None:
            # Counts are units here, and children need their numbers of records too.
            go_left = (
                nodes.records[split] - np.bincount(nodes.node_of_record(), right, len(nodes)).astype(np.int64)[split]
            )
            records = np.concatenate([go_left, nodes.records[split] - go_left])[tried]
        counted = _children_to_split(split, go_left, tried, nodes, right)
        rows, at = np.concatenate([rows.compress(to_left), rows.compress(to_right)]), tried.nonzero()[0]
        for predictor in predictors:
            predictor.move_to_children(counted, side)
    return separate_trees(depths, leaf, trees)


def level_of_leaves(first: int, tree: Integers, rank: Integers, counts: Integers, widest: int) -> TreeLevel:
    """Return a level of nodes with these ``counts`` (A, C), each a leaf."""
    ids, none = first + np.arange(len(counts)), np.zeros(len(counts), np.int64)
    members = np.zeros((len(counts), widest), np.bool_)
    return TreeLevel(first, tree, rank, none, none.copy(), members, ids, ids.copy(), counts)


def may_be_split(counts: Integers, alpha: Floats, rules: GrowthRules) -> Booleans:
    """Return which nodes may be split, (A,): those with enough records and more than ``alpha`` (A,) errors.

    ``counts`` (A, C) are the records of each class.
    """
    # rpart's ``minsplit``, which is 3 ``minbucket`` by default. Fewer errors than alpha cannot be saved by any split.
    enough = counts.sum(axis=1) >= max(3 * rules.minbucket, 2)
    return np.asarray(enough & (misclassified_weight(counts.T * rules.class_weights) > alpha))


def _route_records(
    depth: TreeLevel, at: Integers, found: BestSplits, nodes: SplittableNodes, coded: Int32s, rules: GrowthRules
) -> Booleans:
    """Return which records (m,) go right, and write the levels that go left into the nodes ``at`` (A,) of the level."""
    code = coded.ravel().take((found.feature * coded.shape[1]).repeat(nodes.records) + nodes.rows)
    right: Booleans = code >= ((found.cut + 1) * rules.padded_classes).astype(coded.dtype).repeat(nodes.records)
    by_set = rules.is_unordered[found.feature]
    if by_set.any():
        inside = by_set.repeat(nodes.records).nonzero()[0]
        cell = (by_set.nonzero()[0] * rules.most_unordered_levels).repeat(nodes.records[by_set])
        cell += code.take(inside) // rules.padded_classes
        right[inside] = ~found.left_levels.ravel().take(cell)
        unseen = np.ones_like(found.left_levels)
        unseen.ravel()[cell] = False
        # A level that no record of the node has goes where most of its records go.
        mostly = 2 * found.left_counts.sum(axis=0) > nodes.sizes
        depth.members[at] = (found.left_levels | unseen & mostly[:, None]) & by_set[:, None]
    return right


def split_nodes(depth: TreeLevel, at: Integers, found: BestSplits, split: Integers, widest: int) -> TreeLevel:
    """Write the splits into the nodes ``at`` (A,) of a level, and return the level of their children.

    Children are those of the ``split`` (S,) nodes: the left ones come first, then the right ones.
    """
    nodes, first = at[split], depth.first + len(depth.counts)
    depth.feature[nodes], depth.cut[nodes] = found.feature[split], found.cut[split]
    depth.left[nodes] = first + np.arange(len(nodes))
    depth.right[nodes] = depth.left[nodes] + len(nodes)
    left = found.left_counts[:, split].T.astype(np.int64)
    # Children stand left ones first; their ranks say where they stand in the order of their parents.
    order = np.argsort(np.concatenate([2 * depth.rank[nodes], 2 * depth.rank[nodes] + 1]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return level_of_leaves(
        first, np.tile(depth.tree[nodes], 2), rank, np.vstack([left, depth.counts[nodes] - left]), widest
    )


def _children_to_split(
    split: Integers, left: Integers, tried: Booleans, nodes: SplittableNodes, right: Booleans
) -> ChildNodes:
    """Return the ``tried`` (2 S,) children of the ``split`` (S,) nodes.

    ``left`` (S,) is how many records go left, ``right`` (m,) which records go right.
    """
    sizes = np.stack([left, nodes.records[split] - left])
    right_is_smaller = sizes[1] < sizes[0]
    asked = tried.reshape(2, -1).any(axis=0)
    parents, smaller_is_right = split[asked], np.zeros(len(nodes), np.bool_)
    of_parents = np.zeros(len(nodes), np.bool_)
    of_parents[parents] = True
    smaller_is_right[split] = right_is_smaller
    counted = smaller_is_right.repeat(nodes.records) == right
    counted &= of_parents.repeat(nodes.records)
    is_right, place = np.divmod(tried.nonzero()[0], max(len(split), 1))
    is_larger = (is_right == 1) != right_is_smaller[place]
    smaller = sizes.min(axis=0)[asked]
    records = int(sizes.ravel()[tried].sum())
    return ChildNodes(parents, nodes.rows.compress(counted), smaller, (asked.cumsum() - 1)[place], is_larger, records)


def separate_trees(depths: Sequence[TreeLevel], leaf: Integers, trees: int) -> list[ClassTree]:
    """Separate the trees, with nodes level by level, children in the order of their parents, the left one first."""
    tree, rank, feature, cut, members, left, right, counts = (
        np.concatenate([depth[part] for depth in depths]) for part in range(1, len(TreeLevel._fields))
    )
    order = np.lexsort((rank, np.arange(len(depths)).repeat([len(depth.tree) for depth in depths]), tree))
    size = np.bincount(tree, minlength=trees)
    start = size.cumsum() - size
    new = np.empty_like(order)
    new[order] = np.arange(len(order)) - start.repeat(size)
    parts = [order[begin : begin + count] for begin, count in zip(start, size, strict=True)]
    return [
        ClassTree(feature[own], cut[own], members[own], new[left[own]], new[right[own]], counts[own], new[of_tree])
        for own, of_tree in zip(parts, leaf.reshape(trees, -1), strict=True)
    ]


def splits_to_keep(tree: ClassTree, errors: Floats, weights: Floats, alpha: float) -> Booleans:
    """Return which nodes stay split, (V,), if each split must save ``alpha`` of the ``errors`` (V,).

    A node's complexity is what its branch saves for each split, after those of its two children that save less than it
    have collapsed. Children are visited in the order of their mean class, and not at all where a bound on the parent's
    complexity shows that they cannot matter: that is rpart's ``partition``, recursion by recursion.
    """
    risk: list[float] = errors.tolist()
    inner = tree.left != np.arange(len(errors))
    most: list[float] = np.where(inner, errors, 0.0).tolist()
    first_sons, second_sons = _children_by_mean_class(tree, weights)
    split = [False] * len(risk)

    def visited(node: int, bound: float) -> tuple[float, float, int]:
        """Prune below a node, and return its complexity, the errors of its leaves and the number of its splits.

        Requires that the errors of the node and the bound exceed ``alpha``.
        """
        own, one, other = risk[node], first_sons[node], second_sons[node]
        # The bounds are those of rpart's ``partition.c``: what is not visited keeps no split, so leaving one out gives
        # other trees.
        at_most = (own if own < bound else bound) - alpha
        first = (alpha, risk[one], 0) if most[one] <= alpha or at_most <= alpha else visited(one, at_most)
        at_most = min(max((own - first[1]) / (first[2] + 1), own - risk[one]), bound) - alpha
        second = (alpha, risk[other], 0) if most[other] <= alpha or at_most <= alpha else visited(other, at_most)
        errors, splits = first[1] + second[1], first[2] + second[2]
        if splits:
            errors, splits = _errors_after_collapse(own, (*first, risk[one]), (*second, risk[other]))
        complexity = (own - errors) / (splits + 1)
        if complexity <= alpha:
            return complexity, own, 0
        split[node] = True
        return complexity, errors, splits + 1

    if most[0] > alpha:
        visited(0, risk[0])
    return np.array(split)


def _children_by_mean_class(tree: ClassTree, weights: Floats) -> tuple[list[int], list[int]]:
    """Return the child of each node with the lower mean class, and the other, (V,) each; a leaf is its own."""
    weighted = tree.counts.T * weights
    mean = np.zeros(len(tree.counts))
    for place, share in enumerate(weighted / weighted.sum(axis=0)):
        mean += share * place
    lower = mean[tree.left] < mean[tree.right]
    one, other = np.where(lower, tree.left, tree.right), np.where(lower, tree.right, tree.left)
    return one.tolist(), other.tolist()


def _errors_after_collapse(own: float, first: BranchErrors, second: BranchErrors) -> tuple[float, int]:
    """Return errors and number of splits of two branches after the weak ones have collapsed.

    A branch collapses if it saves less for each split than its parent.
    """
    # The weaker branch goes first, since without it the parent saves more for each split and the other may stay.
    weak, strong = (first, second) if second[0] > first[0] else (second, first)
    errors, splits = weak[1] + strong[1], weak[2] + strong[2]
    if (own - errors) / (splits + 1) > weak[0]:
        errors, splits = weak[3] + strong[1], strong[2]
        if (own - errors) / (splits + 1) > strong[0]:
            errors, splits = weak[3] + strong[3], 0
    return errors, splits


def collapse_nodes(tree: ClassTree, collapsed: Booleans) -> ClassTree:
    """Return the tree with the ``collapsed`` nodes (V,) as leaves."""
    here = np.arange(len(collapsed))
    inner = (tree.left != here).nonzero()[0]
    end, reached = here.tolist(), [True] + [False] * (len(here) - 1)
    parts = (inner, tree.left[inner], tree.right[inner], collapsed[inner])
    # Parents stand before children, so one pass reaches every node after its parent.
    for node, one, other, gone in zip(*(part.tolist() for part in parts), strict=True):
        if reached[node] and not gone:
            reached[one] = reached[other] = True
        else:
            end[one] = end[other] = end[node]
    stays = np.array(reached)
    new = stays.cumsum() - 1
    inner = (stays & ~collapsed)[stays]
    left, right = (np.where(inner, new[side[stays]], new[here[stays]]) for side in (tree.left, tree.right))
    feature, cut = (np.where(inner, column[stays], 0) for column in (tree.feature, tree.cut))
    members = tree.left_levels[stays] & inner[:, None]
    return ClassTree(feature, cut, members, left, right, tree.counts[stays], new[np.array(end)[tree.leaf]])
