"""Full-domain generalisation: the best levels of all quasi-identifiers together, exactly.

A node has one level for each quasi-identifier; it lies above another where none of its levels is lower (Samarati &
Sweeney 1998; Sweeney 2002). At a node the records of classes that break the limits are suppressed; it is feasible where
these are no more than allowed. Of the feasible nodes those of the least value are sought, ties included:

    average_class_size  released records / released classes                     (LeFevre, DeWitt & Ramakrishnan 2006,
    §4)
    discernibility      sum of squared class sizes + suppressed records x n     (Bayardo & Agrawal 2005)
    ncp                 mean size of the nodes shown, 1 where suppressed; a root has 1  (Xu et al. 2006)
    entropy             mean of log2(F/f): f records have the value, F its node, n if suppressed  (de Waal & Willenborg
    1999)

Nodes are excluded unchecked where a node above them is infeasible, or where a bound shows that they cannot be best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.rows import KEY_LIMIT, number_groups
from .equivalence_classes import Limits, SensitiveColumn
from .hierarchies import Hierarchy

Objective = Literal["average_class_size", "discernibility", "ncp", "entropy"]
LatticeNode = tuple[int, ...]

# What a record loses by these objectives is a sum over its quasi-identifiers, so that loss and bound of a node are
# known without counting it.
SEPARABLE = ("ncp", "entropy")
"""What records lose of each quasi-identifier apart."""

TIE = 1e-12
"""Values that differ by less than this share are equal."""
MOST_TABLES, SMALLER = 400, 2
"""Counted classes that are kept, of nodes that have at most half of those that they were counted from."""
DENSE, NARROW = 4, 1 << 14
"""Keys are counted in an array where they are below ``DENSE`` times their number and ``NARROW``, else by a hash."""
MOST_OF_HALF = 400
"""Nodes of the largest lattice of half the quasi-identifiers that is counted whole for bounds."""
MOST_NODES = 100_000
"""Nodes of the largest lattice."""


@dataclass(frozen=True, eq=False)
class GeneralisationLevels:
    """A quasi-identifier of n records and the nodes of its values at each level of its generalisation tree.

    codes: value of each record, (n,)
    nodes: node of each value at each level, numbered from 0 within a level, (levels, values)
    sizes: geometric size of these nodes, from 0 to that of the root, (levels, values)
    """

    codes: Integers
    nodes: Integers
    sizes: Floats

    @classmethod
    def from_hierarchy(cls, tree: Hierarchy, rows: Integers) -> GeneralisationLevels:
        """Build from a generalisation tree and the row of each record in it, (n,)."""
        return cls(rows, tree.node_numbers, tree.node_sizes)

    @property
    def n_levels(self) -> int:
        return len(self.nodes)

    @cached_property
    def value_counts(self) -> Floats:
        """Count the records of each value, (values,)."""
        return np.bincount(self.codes, minlength=self.nodes.shape[1]).astype(np.float64)

    def nodes_at_level(self, level: int) -> Integers:
        """Return the node of each record at a level, (n,)."""
        return np.asarray(self.nodes[level][self.codes])

    def map_to_level(self, level: int, higher: int) -> Integers:
        """Return the node at a higher level of each node at a level, (nodes,)."""
        if (level, higher) not in self._level_maps:
            found = np.zeros(self.nodes_per_level[level], dtype=np.int64)
            found[self.nodes[level]] = self.nodes[higher]
            self._level_maps[level, higher] = found
        return self._level_maps[level, higher]

    @cached_property
    def _level_maps(self) -> dict[tuple[int, int], Integers]:
        return {}

    @cached_property
    def nodes_per_level(self) -> tuple[int, ...]:
        """Count the nodes at each level."""
        return tuple(int(nodes.max()) + 1 for nodes in self.nodes)

    def loss_below_suppression(self, level: int, objective: Objective) -> Floats:
        """Return how much less a record of each node at a level loses than a suppressed one, (nodes,)."""
        nodes = self.nodes[level]
        if objective == "entropy":
            shared = np.bincount(nodes, weights=self.value_counts)
            # log2(n/f) when suppressed, less log2(F/f) in the node: f cancels. Nodes of no record have F = 0.
            return np.asarray(np.log2(self.value_counts.sum() / np.maximum(shared, 1.0)))
        found = np.zeros(self.nodes_per_level[level])
        if objective == "ncp":
            # A tree of one node has a root of size 0.
            found[nodes] = 1.0 - self.sizes[level] / (float(self.sizes[-1].max()) or 1.0)
        return found

    def mean_loss(self, level: int, objective: Objective) -> float:
        """Return the mean loss of the records at a level where none is suppressed."""
        if objective not in SEPARABLE:
            return 0.0
        shares = self.value_counts / self.value_counts.sum()
        whole = -float(shares @ np.log2(np.where(shares > 0, shares, 1.0))) if objective == "entropy" else 1.0
        return whole - float(shares @ self.loss_below_suppression(level, objective)[self.nodes[level]])


@dataclass(frozen=True, eq=False)
class OptimalNodes:
    """The best nodes of a lattice, and how many nodes were settled in which way.

    nodes: best nodes, ascending; empty where no node is feasible
    value: their value; infinite where no node is feasible
    n_checked: nodes that were counted
    n_below_infeasible: unchecked nodes that are infeasible as a node above them is
    n_excluded: unchecked nodes that cannot be as good by their bounds
    """

    nodes: tuple[LatticeNode, ...]
    value: float
    n_checked: int
    n_below_infeasible: int
    n_excluded: int


def classes_at_node(
    ladders: Sequence[GeneralisationLevels],
    node: LatticeNode,
    limits: Limits,
    sensitive: Sequence[SensitiveColumn] = (),
) -> Integers:
    """Return the class of each record at a node, (n,).

    Classes are numbered from 0 as they appear; records of classes that break the limits have -1.
    """
    columns = [[ladder.nodes_at_level(level)] for ladder, level in zip(ladders, node, strict=True)]
    (classes,), count = number_groups(columns, [len(ladders[0].codes)])
    kept = classes_within_limits(classes, count, limits, sensitive)
    return np.where(kept[classes], (np.cumsum(kept) - 1)[classes], -1)


def classes_within_limits(
    classes: Integers, count: int, limits: Limits, sensitive: Sequence[SensitiveColumn]
) -> Booleans:
    """Return which of the classes (count,) keep to the limits when the records of all others are suppressed.

    ``classes`` (n,) is the class of each record. t is compared with the values of the released records. Classes that
    then break it are suppressed too, until every class meets it.
    """
    kept = np.bincount(classes, minlength=count) >= limits.k
    # A suppressed class changes the table's shares that t is compared with, so the others have to be checked again.
    while limits.on_values and sensitive and kept.any():
        rows = np.flatnonzero(kept[classes])
        number = np.cumsum(kept) - 1
        allowed = limits.rule(sensitive)(rows)(rows, number[classes[rows]], int(kept.sum()))
        if allowed.all():
            break
        kept[np.flatnonzero(kept)[~allowed]] = False
    return np.asarray(kept)


def has_monotone_suppression(limits: Limits, most_suppressed: int) -> bool:
    """Return whether a record that is released at a node is released at every node above it too.

    If so, all nodes below an infeasible node are infeasible (Machanavajjhala et al. 2007, §4.2).
    """
    # The union of a kept and a suppressed class may break an l by entropy, a c or a t that the kept one met; k, p and
    # distinct l only grow.
    return most_suppressed == 0 or not (limits.t < 1 or (limits.on_values and limits.diversity != "distinct"))


@dataclass(frozen=True, eq=False)
class _ClassKeys:
    """Codes in several columns, each below its radix, as one whole number a row.

    keys: number of each row in mixed radix, or numbered as they appear where that exceeds 64 bits, (c,)
    radices: radix of each column
    example: codes of each number where they are numbered as they appear, (d, keys); else None
    """

    keys: Integers
    radices: Sequence[int]
    example: Integers | None = None

    @classmethod
    def from_columns(
        cls, columns: Sequence[Integers], radices: Sequence[int], ups: Sequence[Integers | None] | None = None
    ) -> _ClassKeys:
        """Build from columns of codes (c,), or of the codes that ``ups`` maps them to where it has a table."""
        ups = ups or [None] * len(columns)
        # The mixed-radix number would overflow 64 bits.
        if math.prod(radices) >= KEY_LIMIT:
            columns = [column if up is None else up[column] for column, up in zip(columns, ups, strict=True)]
            (number,), count = number_groups([[column] for column in columns], [len(columns[0])])
            example = np.empty((len(columns), count), dtype=np.int64)
            example[:, number] = columns
            return cls(number, radices, example)
        key: Integers | None = None
        strides = np.cumprod([1, *radices[:0:-1]])[::-1].tolist()
        for column, radix, up, stride in zip(columns, radices, ups, strides, strict=True):
            if radix > 1:
                # the table of codes is short: multiplied there, and not in every class
                own = column * stride if up is None else (up * stride).take(column)
                key = own if key is None else np.add(key, own, out=key)
        return cls(np.zeros(len(columns[0]), dtype=np.int64) if key is None else key, radices)

    @property
    def key_limit(self) -> int:
        """Return the number that every key is below."""
        return math.prod(self.radices) if self.example is None else self.example.shape[1]

    def decode_columns(self, keys: Integers) -> Sequence[Integers]:
        """Return the codes of some keys, column by column, (keys,) each."""
        return list(np.unravel_index(keys, self.radices) if self.example is None else self.example[:, keys])


def _dense_key_limit(classes: int) -> int:
    """Return the largest number of keys for which that many classes are counted in an array."""
    return DENSE * classes + NARROW


@dataclass(frozen=True, eq=False)
class _NodeClasses:
    """The classes of a node.

    keys: keys among which ``class_keys`` are
    class_keys: key of each class, (c,)
    class_sizes: records of each class, (c,)
    class_of_record: class of each record, (n,); None if not needed
    """

    keys: _ClassKeys
    class_keys: Integers
    class_sizes: Integers
    class_of_record: Integers | None

    @classmethod
    def from_columns(
        cls,
        columns: Sequence[Integers],
        radices: Sequence[int],
        records: Integers,
        rows: Integers | None,
        ups: Sequence[Integers | None] | None = None,
    ) -> _NodeClasses:
        """Merge classes (c,) that agree in all ``columns`` (c,), each of codes below its radix.

        ``ups`` maps codes to others first.
        """
        return cls.from_keys(_ClassKeys.from_columns(columns, radices, ups), records, rows)

    @classmethod
    def from_keys(cls, found: _ClassKeys, records: Integers, rows: Integers | None) -> _NodeClasses:
        """Merge classes (c,) of equal keys."""
        # An array is quicker than a hash while few of its places stay empty.
        if found.key_limit <= _dense_key_limit(len(records)):
            sums = np.bincount(found.keys, weights=records, minlength=found.key_limit)
            classes = np.flatnonzero(sums)
            sums = sums[classes]
            number = None if rows is None else np.searchsorted(classes, found.keys)
        else:
            number, classes = pd.factorize(found.keys)
            sums = np.bincount(number, weights=records, minlength=len(classes))
        merged = None if rows is None or number is None else number[rows]
        return cls(found, np.asarray(classes), sums.astype(np.int64), merged)

    @cached_property
    def class_nodes(self) -> Sequence[Integers]:
        """Return the nodes of the classes, column by column, (c,) each."""
        return self.keys.decode_columns(self.class_keys)


@dataclass(frozen=True, eq=False)
class _NodeEvaluation:
    """Result of counting a node.

    is_feasible: whether it suppresses no more than allowed
    value: its value, infinite where it is not feasible
    bound: number that no node above it goes below
    n_in_small_classes: records in classes below k, of which no node below it has fewer
    """

    is_feasible: bool
    value: float
    bound: float
    n_in_small_classes: int


class _ClassCounter:
    """Counter of the classes of nodes between the ``first`` and the ``last``.

    It starts from ``base_classes``, the classes of the first node, and keeps the classes of some counted nodes: those
    of a node above are merged from them.
    """

    def __init__(
        self, ladders: Sequence[GeneralisationLevels], first: LatticeNode, last: LatticeNode, base: _NodeClasses
    ) -> None:
        """Start with the classes of the first node, ``base``."""
        self.ladders, self.first, self.last = ladders, first, last
        self.shape = tuple(high - low + 1 for low, high in zip(first, last, strict=True))
        self.kept: list[tuple[LatticeNode, _NodeClasses]] = [(first, base)]
        self.places, self.sizes = np.array([first], dtype=np.int32).T, np.array([len(base.class_sizes)])
        self._digits: dict[tuple[int, int], Integers] = {}

    @classmethod
    def from_records(
        cls, ladders: Sequence[GeneralisationLevels], first: LatticeNode, last: LatticeNode, *, rows: bool
    ) -> _ClassCounter:
        """Count from the records; ``rows`` says whether the class of each record is needed."""
        n = len(ladders[0].codes)
        columns = [ladder.nodes_at_level(level) for ladder, level in zip(ladders, first, strict=True)]
        base = _NodeClasses.from_columns(
            columns, _column_radices(ladders, first), np.ones(n, dtype=np.int64), np.arange(n) if rows else None
        )
        return cls(ladders, first, last, base)

    @property
    def base_classes(self) -> _NodeClasses:
        return self.kept[0][1]

    def restrict_to(self, axes: Sequence[int]) -> _ClassCounter:
        """Return a counter for some of the quasi-identifiers."""
        ladders = [self.ladders[axis] for axis in axes]
        first, last = (tuple(ends[axis] for axis in axes) for ends in (self.first, self.last))
        columns = [self.base_classes.class_nodes[axis] for axis in axes]
        return _ClassCounter(
            ladders,
            first,
            last,
            _NodeClasses.from_columns(columns, _column_radices(ladders, first), self.base_classes.class_sizes, None),
        )

    def find_source(self, node: LatticeNode) -> tuple[LatticeNode, _NodeClasses]:
        """Return the counted node with the fewest classes of those below a node, and its classes."""
        below = np.logical_and.reduce(self.places <= np.array(node, dtype=np.int32)[:, None], axis=0)
        return self.kept[int(np.argmin(np.where(below, self.sizes, np.inf)))]

    def count_classes(self, node: LatticeNode) -> _NodeClasses:
        """Count the classes of a node, from the fewest classes of a counted node below it."""
        level, table = self.find_source(node)
        radices = _column_radices(self.ladders, node)
        # Of the first node the digits of each level are kept between nodes, which saves a lookup in every class. Too
        # few keys are counted in an array, for which the node's own smaller radices are better.
        if (
            table is self.base_classes
            and math.prod(radices) > _dense_key_limit(len(table.class_sizes))
            and table.keys.example is None
        ):
            found = _NodeClasses.from_keys(self._keys_of_base(node), table.class_sizes, table.class_of_record)
        else:
            ups = [
                None if low == high else ladder.map_to_level(low, high)
                for ladder, low, high in zip(self.ladders, level, node, strict=True)
            ]
            found = _NodeClasses.from_columns(table.class_nodes, radices, table.class_sizes, table.class_of_record, ups)
        # Nodes at most one level above the first are kept whatever their size: every higher node has one of them below
        # it.
        half = all(level <= low + 1 for level, low in zip(node, self.first, strict=True))
        if len(self.kept) <= MOST_TABLES and (half or len(found.class_sizes) * SMALLER <= len(table.class_sizes)):
            self.kept.append((node, found))
            self.places = np.column_stack([self.places, np.array(node, dtype=np.int32)])
            self.sizes = np.append(self.sizes, len(found.class_sizes))
        return found

    def _keys_of_base(self, node: LatticeNode) -> _ClassKeys:
        """Return the keys of a node for the classes of the first.

        They are sums of digits that are the same for every node with that level, in the radices of the first.
        """
        radices = _column_radices(self.ladders, self.first)
        strides = np.cumprod([1, *radices[:0:-1]])[::-1].tolist()
        key = np.zeros(len(self.base_classes.class_sizes), dtype=np.int64)
        for axis, (ladder, low, high) in enumerate(zip(self.ladders, self.first, node, strict=True)):
            # The root is one node: its digit is 0.
            if ladder.nodes_per_level[high] == 1:
                continue
            if (axis, high) not in self._digits:
                self._digits[axis, high] = (ladder.map_to_level(low, high) * strides[axis])[
                    self.base_classes.class_nodes[axis]
                ]
            key += self._digits[axis, high]
        return _ClassKeys(key, radices)

    def all_class_sizes(self) -> list[Integers]:
        """Return the sizes of the classes of every node, ascending, (classes,) each."""
        steps = np.ndindex(self.shape)
        nodes = (tuple(low + step for low, step in zip(self.first, place, strict=True)) for place in steps)
        return [np.sort(self.count_classes(node).class_sizes) for node in nodes]


def _column_radices(ladders: Sequence[GeneralisationLevels], node: LatticeNode) -> list[int]:
    return [ladder.nodes_per_level[level] for ladder, level in zip(ladders, node, strict=True)]


def _bounds_from_halves(
    counter: _ClassCounter, parts_of: Callable[[Integers], int], value: Callable[[Integers, Integers], Floats]
) -> Floats:
    """Return the largest bound that halves of the quasi-identifiers give for each node: of the lattice's shape.

    ``parts_of`` returns into how many parts a node of one half may cut a class, from its class sizes. ``value`` is
    given the class sizes of a node of the other half and these numbers (b,); it returns (b,) bounds.
    """
    found = np.zeros(counter.shape)
    # Three ways to halve the quasi-identifiers, those with many nodes dealt out evenly. Each gives a valid bound; the
    # largest counts.
    order = np.argsort(
        [-ladder.nodes_per_level[level] for ladder, level in zip(counter.ladders, counter.first, strict=True)],
        kind="stable",
    )
    place = np.arange(len(order))
    for side_of in (place % 2, place // 2 % 2, (place + 1) // 2 % 2):
        parts = [sorted(order[side_of == side].tolist()) for side in (0, 1)]
        # All nodes of both halves are counted, so larger halves would cost more than the bounds save.
        if not all(0 < math.prod(counter.shape[axis] for axis in part) <= MOST_OF_HALF and part for part in parts):
            continue
        ours, theirs = (counter.restrict_to(part).all_class_sizes() for part in parts)
        cuts, others = (np.array([parts_of(own) for own in half]) for half in (theirs, ours))
        both = np.maximum(
            np.stack([value(own, cuts) for own in ours]), np.stack([value(own, others) for own in theirs]).T
        )
        shape = [counter.shape[axis] for part in parts for axis in part]
        found = np.maximum(found, both.reshape(shape).transpose(np.argsort([axis for part in parts for axis in part])))
    return found


class _LatticeProblem:
    """Objective and limits for the nodes of a lattice, and the evaluation of one node."""

    def __init__(
        self,
        counter: _ClassCounter,
        limits: Limits,
        objective: Objective,
        most: int,
        sensitive: Sequence[SensitiveColumn],
    ) -> None:
        """Set objective and limits; ``most`` records may be suppressed."""
        self.counter, self.limits, self.objective, self.most = counter, limits, objective, most
        self.ladders, self.first, self.shape = counter.ladders, counter.first, counter.shape
        self.sensitive = sensitive
        self.monotone = has_monotone_suppression(limits, most)
        self.records = len(self.ladders[0].codes)

    def losses_unsuppressed(self) -> Floats:
        """Return the mean loss of each node if nothing is suppressed, of the lattice's shape."""
        found = np.zeros(self.shape)
        for place, (ladder, low, size) in enumerate(zip(self.ladders, self.first, self.shape, strict=True)):
            along = [1] * len(self.shape)
            along[place] = -1
            found = found + np.reshape([ladder.mean_loss(low + step, self.objective) for step in range(size)], along)
        return np.asarray(found / len(self.ladders))

    def initial_bounds(self) -> Floats:
        """Return a lower bound of the value of each node before any is counted: of the lattice's shape."""
        if self.objective == "average_class_size":
            return _bounds_from_halves(
                self.counter, lambda sizes: int(np.sum(sizes >= self.limits.k)), self._least_average_size
            )
        if self.objective == "discernibility":
            return _bounds_from_halves(self.counter, len, _least_discernibility)
        return self.losses_unsuppressed()

    def _least_average_size(self, own: Integers, cuts: Integers) -> Floats:
        """Return lower bounds of the average class size, (b,).

        A class of r records in one half of the quasi-identifiers becomes at most r // k classes, and at most as many as
        the other half has classes.
        """
        parts = own // self.limits.k
        # ``own`` ascends, so a prefix sum and a binary search give the sum of min(parts, cuts) for every number of
        # cuts.
        sums = np.concatenate([[0], np.cumsum(parts)])
        fewer = np.searchsorted(parts, cuts)
        classes = sums[fewer] + cuts * (len(parts) - fewer)
        return np.asarray((self.records - self.most) / np.maximum(classes, 1))

    def evaluate_node(self, node: LatticeNode, loss: float) -> _NodeEvaluation:
        """Count and evaluate a node; ``loss`` is the loss of its records without suppression."""
        found = self.counter.count_classes(node)
        sizes = found.class_sizes
        kept = sizes >= self.limits.k
        if found.class_of_record is not None:
            kept = classes_within_limits(found.class_of_record, len(sizes), self.limits, self.sensitive)
        suppressed = int(sizes[~kept].sum())
        feasible = suppressed <= self.most and bool(kept.any())
        large = sizes >= self.limits.k
        small = int(sizes[~large].sum())
        if self.objective == "discernibility":
            value = float(np.sum(sizes[kept] ** 2)) + float(suppressed) * self.records
            # Classes only merge upwards: the sum of squares grows, with suppression or without.
            bound = float(np.sum(sizes**2))
        elif self.objective == "average_class_size":
            value = (self.records - suppressed) / max(int(kept.sum()), 1)
            released = max(self.records - self.most, self.records - suppressed if self.monotone else 0)
            # Above this node, small classes can form at most this many classes of k.
            classes = int(large.sum()) + small // self.limits.k
            bound = released / classes if classes else np.inf
        else:
            spared = np.zeros(int((~kept).sum()))
            lost = found.keys.decode_columns(found.class_keys[~kept])
            for codes, ladder, level in zip(lost, self.ladders, node, strict=True):
                spared += ladder.loss_below_suppression(level, self.objective)[codes]
            value = loss + float(spared @ sizes[~kept]) / (self.records * len(self.ladders))
            bound = loss
        return _NodeEvaluation(feasible, value if feasible else np.inf, bound, small)


def _least_discernibility(own: Integers, cuts: Integers) -> Floats:
    """Return lower bounds of the discernibility, (b,).

    A class of one half is cut into at most as many parts as the other half has classes; the sum of squares is least
    where the parts are equal.
    """
    return np.asarray(float(np.sum(own.astype(np.float64) ** 2)) / cuts)


class _LatticeSearch:
    """State of the search: what is known of each node, as arrays of the lattice's shape.

    Places count from the lowest levels.
    """

    def __init__(self, lattice: _LatticeProblem) -> None:
        """Start with no node checked, and with the bounds that need no counting."""
        self.lattice = lattice
        self.losses = lattice.losses_unsuppressed()
        self.bounds = lattice.initial_bounds()
        self.small = np.zeros(lattice.shape, dtype=np.int64)
        self.values = np.full(lattice.shape, np.inf)
        self.checked = np.zeros(lattice.shape, dtype=np.bool_)
        self.infeasible = np.zeros(lattice.shape, dtype=np.bool_)
        self.least = np.inf

    @property
    def lower_bounds(self) -> Floats:
        """Return a lower bound of the value of each node: of the lattice's shape."""
        if self.lattice.objective != "discernibility":
            return self.bounds
        each = (
            self.lattice.records - self.lattice.limits.k + 1
        )  # a suppressed class counts n a record in place of its size
        return np.asarray(self.bounds + self.small * float(max(each, 0)))

    def open_nodes(self) -> Booleans:
        """Return which nodes may be best and are not checked."""
        lower = self.lower_bounds
        # A node whose value is at least infinity is infeasible; while nothing is feasible it would stay open for ever.
        may_be_best = np.isfinite(lower) & (lower <= self.least + abs(self.least) * TIE)
        return ~self.checked & ~self.infeasible & may_be_best

    def check_node(self, place: LatticeNode) -> bool:
        """Return whether a node is feasible, and note what that implies for those below and above it."""
        if self.checked[place]:
            return bool(np.isfinite(self.values[place]))
        lattice = self.lattice
        node = tuple(low + step for low, step in zip(lattice.first, place, strict=True))
        # A node near the bottom is checked first if nothing but the base lies below: later nodes are then merged from
        # its fewer classes.
        half = tuple(min(step, 1) for step in place)
        if half != place and lattice.counter.find_source(node)[0] == lattice.first:
            self.check_node(half)
        found = lattice.evaluate_node(node, float(self.losses[place]))
        self.checked[place], self.values[place] = True, found.value
        self.least = min(self.least, found.value)
        above = tuple(slice(step, None) for step in place)
        np.maximum(self.bounds[above], found.bound, out=self.bounds[above])
        below = tuple(slice(step + 1) for step in place)
        # Classes only split downwards: below this node at least as many records are in small classes.
        np.maximum(self.small[below], found.n_in_small_classes, out=self.small[below])
        if lattice.monotone and not found.is_feasible:
            self.infeasible[below] = True
        return found.is_feasible

    def bisect_upwards(self, place: LatticeNode) -> None:
        """Find the first feasible node on a way up by bisection, and check the node at its start.

        The start is checked only if it may be best. The way goes up by the level whose bound is least.
        """
        way, lower = [place], self.lower_bounds
        while not np.isfinite(self.values[way[-1]]):
            steps = [
                (*way[-1][:i], step + 1, *way[-1][i + 1 :])
                for i, step in enumerate(way[-1])
                if step + 1 < self.lattice.shape[i]
            ]
            if not steps:
                break
            way.append(min(steps, key=lambda one: float(lower[one])))
        low, high = 0, len(way) - 1
        while low < high:
            middle = (low + high) // 2
            if not self.infeasible[way[middle]] and self.check_node(way[middle]):
                high = middle
            else:
                low = middle + 1
        if self.open_nodes()[place]:
            self.check_node(place)

    def optimal_nodes(self) -> OptimalNodes:
        """Return the best nodes among those checked, and how the others were settled."""
        first = self.lattice.first
        # Sums in another order differ by rounding: equally good nodes must not be lost to it.
        tied = np.argwhere(self.values <= self.least + abs(self.least) * TIE) if np.isfinite(self.least) else ()
        nodes = tuple(tuple(int(low + step) for low, step in zip(first, place, strict=True)) for place in tied)
        left = ~self.checked
        below = int((left & self.infeasible).sum())
        return OptimalNodes(nodes, self.least, int(self.checked.sum()), below, int(left.sum()) - below)


def find_best_levels(
    ladders: Sequence[GeneralisationLevels],
    limits: Limits,
    objective: Objective,
    *,
    most_suppressed: int = 0,
    sensitive: Sequence[SensitiveColumn] = (),
    lowest: Sequence[int] | None = None,
    highest: Sequence[int] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> OptimalNodes:
    """Find the best nodes of the lattice between two nodes, by default of the whole lattice.

    ``lowest`` and ``highest`` are the levels of each quasi-identifier at the two. ``limits`` hold for the released
    table, and those on values for its ``sensitive`` variables. ``report`` is called with how many nodes are settled and
    how many there are.
    """
    first = tuple(lowest) if lowest is not None else (0,) * len(ladders)
    last = tuple(highest) if highest is not None else tuple(ladder.n_levels - 1 for ladder in ladders)
    sensitive = tuple(sensitive) if limits.on_values else ()
    counter = _ClassCounter.from_records(ladders, first, last, rows=bool(sensitive))
    lattice = _LatticeProblem(counter, limits, objective, most_suppressed, sensitive)
    search = _LatticeSearch(lattice)
    height = np.indices(lattice.shape).sum(axis=0)
    while (left := search.open_nodes()).any():
        if not lattice.monotone:
            # An infeasible node says nothing of those below here, so that only bounds exclude nodes: the most promising
            # goes first.
            search.check_node(_place_of_largest(np.where(left, -search.lower_bounds, -np.inf)))
        elif np.isinf(search.least):
            search.bisect_upwards(_place_of_largest(np.where(left, -search.lower_bounds, -np.inf)))
        else:
            # The most general open node is counted from few classes, and if it is infeasible all below it are.
            search.check_node(_place_of_largest(np.where(left, height, -1)))
        report(left.size - int(left.sum()), left.size)
    return search.optimal_nodes()


def _place_of_largest(numbers: NDArray[np.number]) -> LatticeNode:
    """Return the place of the largest number, the first of equal ones."""
    return tuple(int(one) for one in np.unravel_index(int(np.argmax(numbers)), numbers.shape))
