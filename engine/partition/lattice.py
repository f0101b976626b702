"""Full-domain generalisation: the best levels of all quasi-identifiers together, exactly.

A node says one level for each quasi-identifier; it lies above another where none of its levels is lower (Samarati & Sweeney 1998;
Sweeney 2002). At a node the records of classes that break the limits are suppressed, and a node is feasible where these are no more than
allowed. Of the feasible nodes those of the least value are sought, ties included:

    average_class_size   released records / released classes                    (LeFevre, DeWitt & Ramakrishnan 2006, §4)
    discernibility       sum of squared class sizes + suppressed records x n     (Bayardo & Agrawal 2005)
    ncp                  mean size of the nodes that records show, 1 where suppressed; a root has 1  (Xu et al. 2006)
    entropy              mean bits that records lose of their values' shares     (de Waal & Willenborg 1999): log2(F/f), f records
                         having the value and F its node, n where suppressed

What lets nodes be left unchecked:

- Up a lattice classes only merge. A class of k records stays one, so that the suppressed records never become more: below an
  infeasible node all are infeasible. That holds for k, p and distinct l. An l by entropy, a c or a t may fail for the union
  of a class that keeps to it and one that does not: for these it holds only where nothing may be suppressed (Machanavajjhala et al. 2007, §4.2).
- What no node above can go below: the sum of squares of all classes, suppressed ones too; the released records divided by the
  classes of k records and the k-th part of the other records, or by those that two halves of the quasi-identifiers could make together; the loss without suppression, which needs no counting
  at all. And what no node below can: n for each record in a class below k. These hold whatever the limits are.

A first feasible node is found by bisection of a way up; then the most general node that is open is checked, until none is: infeasible,
it settles all below it. Where infeasible nodes settle nothing, the node of the least bound is checked first.
The classes of a node are counted from those of a checked node below it where there is one. Classes are counted from different
combinations of values, not from records.
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
from .equivalence_classes import Limits, Sensitive
from .grouping import BEYOND, numbered
from .hierarchies import Hierarchy

Objective = Literal["average_class_size", "discernibility", "ncp", "entropy"]
Node = tuple[int, ...]

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
class Ladder:
    """A quasi-identifier: the value ``codes`` (n,) of n records, and the node of each value at each level, ``nodes`` (levels, values).

    ``sizes`` (levels, values) are the geometric sizes of the nodes, from 0 to that of the root. Nodes of a level are numbered from 0.
    """

    codes: Integers
    nodes: Integers
    sizes: Floats

    @classmethod
    def of(cls, tree: Hierarchy, rows: Integers) -> Ladder:
        """From a generalisation tree and the row of each record in it, (n,)."""
        return cls(rows, tree.nodes, tree.node_sizes)

    @property
    def levels(self) -> int:
        return len(self.nodes)

    @cached_property
    def records(self) -> Floats:
        """Records of each value, (values,)."""
        return np.bincount(self.codes, minlength=self.nodes.shape[1]).astype(np.float64)

    def at(self, level: int) -> Integers:
        """The node of each record at a level, (n,)."""
        return np.asarray(self.nodes[level][self.codes])

    def up(self, level: int, higher: int) -> Integers:
        """The node at a higher level of each node at a level, (nodes,)."""
        if (level, higher) not in self._ups:
            found = np.zeros(self.counts[level], dtype=np.int64)
            found[self.nodes[level]] = self.nodes[higher]
            self._ups[level, higher] = found
        return self._ups[level, higher]

    @cached_property
    def _ups(self) -> dict[tuple[int, int], Integers]:
        return {}

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Nodes at each level."""
        return tuple(int(nodes.max()) + 1 for nodes in self.nodes)

    def spared(self, level: int, objective: Objective) -> Floats:
        """How much less a record of each node at a level loses than a suppressed one, (nodes,)."""
        nodes = self.nodes[level]
        if objective == "entropy":
            shared = np.bincount(nodes, weights=self.records)
            return np.asarray(np.log2(self.records.sum() / np.maximum(shared, 1.0)))
        found = np.zeros(self.counts[level])
        if objective == "ncp":
            found[nodes] = 1.0 - self.sizes[level] / (float(self.sizes[-1].max()) or 1.0)
        return found

    def loss(self, level: int, objective: Objective) -> float:
        """What the records lose on average at a level where none is suppressed."""
        if objective not in SEPARABLE:
            return 0.0
        shares = self.records / self.records.sum()
        whole = -float(shares @ np.log2(np.where(shares > 0, shares, 1.0))) if objective == "entropy" else 1.0
        return whole - float(shares @ self.spared(level, objective)[self.nodes[level]])


@dataclass(frozen=True, eq=False)
class Best:
    """The best ``nodes``, ascending, and their ``value``; empty and infinite where no node is feasible.

    Of the lattice's nodes ``checked`` were counted, ``below`` are infeasible as one above them is, and ``beyond`` cannot be as good.
    """

    nodes: tuple[Node, ...]
    value: float
    checked: int
    below: int
    beyond: int


def classes_at(ladders: Sequence[Ladder], node: Node, limits: Limits, sensitive: Sequence[Sensitive] = ()) -> Integers:
    """The class of each record (n,) at a node, numbered from 0 as they appear, and -1 where it breaks the limits."""
    columns = [[ladder.at(level)] for ladder, level in zip(ladders, node, strict=True)]
    (classes,), count = numbered(columns, [len(ladders[0].codes)])
    kept = kept_classes(classes, count, limits, sensitive)
    return np.where(kept[classes], (np.cumsum(kept) - 1)[classes], -1)


def kept_classes(classes: Integers, count: int, limits: Limits, sensitive: Sequence[Sensitive]) -> Booleans:
    """Which of the classes (count,) of n records keep to the limits, ``classes`` (n,), when the records of all others are suppressed.

    t is compared with the values of the released records. Classes that then break it are suppressed too, until every class meets it.
    """
    kept = np.bincount(classes, minlength=count) >= limits.k
    while limits.on_values and sensitive and kept.any():
        rows = np.flatnonzero(kept[classes])
        number = np.cumsum(kept) - 1
        allowed = limits.rule(sensitive)(rows)(rows, number[classes[rows]], int(kept.sum()))
        if allowed.all():
            break
        kept[np.flatnonzero(kept)[~allowed]] = False
    return np.asarray(kept)


def stays_kept(limits: Limits, most_suppressed: int) -> bool:
    """Whether a record that is not suppressed at a node never is above it, so that below an infeasible node all are infeasible.

    With suppression not for an l by entropy, a c or a t, which the union of a kept and a suppressed class may break.
    """
    return most_suppressed == 0 or not (limits.t < 1 or (limits.on_values and limits.diversity != "distinct"))


@dataclass(frozen=True, eq=False)
class _Keys:
    """Codes in several columns, each below its radix, as one whole number a row, ``keys`` (c,): in mixed radix, or where that exceeds 64 bits
    by an ``example`` (d, keys) of each number.
    """

    keys: Integers
    radices: Sequence[int]
    example: Integers | None = None

    @classmethod
    def of(
        cls, columns: Sequence[Integers], radices: Sequence[int], ups: Sequence[Integers | None] | None = None
    ) -> _Keys:
        """From columns (c,), or from what ``ups`` says of their codes where it says something."""
        ups = ups or [None] * len(columns)
        if math.prod(radices) >= BEYOND:
            columns = [column if up is None else up[column] for column, up in zip(columns, ups, strict=True)]
            (number,), count = numbered([[column] for column in columns], [len(columns[0])])
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
    def beyond(self) -> int:
        """What every key is below."""
        return math.prod(self.radices) if self.example is None else self.example.shape[1]

    def decoded(self, keys: Integers) -> Sequence[Integers]:
        """The codes of some keys, column by column, (keys,) each."""
        return list(np.unravel_index(keys, self.radices) if self.example is None else self.example[:, keys])


def _dense(classes: int) -> int:
    """Up to how many keys so many classes are counted in an array."""
    return DENSE * classes + NARROW


@dataclass(frozen=True, eq=False)
class _Counted:
    """The classes of a node: their keys, ``classes`` (c,) among ``keys``, the ``records`` (c,) of each, and, if needed, which each record
    is in, ``rows`` (n,).
    """

    keys: _Keys
    classes: Integers
    records: Integers
    rows: Integers | None

    @classmethod
    def of(
        cls,
        columns: Sequence[Integers],
        radices: Sequence[int],
        records: Integers,
        rows: Integers | None,
        ups: Sequence[Integers | None] | None = None,
    ) -> _Counted:
        """Classes (c,) that agree in all ``columns`` (c,), each of codes below its radix, merged; codes are what ``ups`` says of them."""
        return cls.of_keys(_Keys.of(columns, radices, ups), records, rows)

    @classmethod
    def of_keys(cls, found: _Keys, records: Integers, rows: Integers | None) -> _Counted:
        """Classes (c,) of equal keys merged."""
        if found.beyond <= _dense(len(records)):
            sums = np.bincount(found.keys, weights=records, minlength=found.beyond)
            classes = np.flatnonzero(sums)
            sums = sums[classes]
            number = None if rows is None else np.searchsorted(classes, found.keys)
        else:
            number, classes = pd.factorize(found.keys)
            sums = np.bincount(number, weights=records, minlength=len(classes))
        merged = None if rows is None or number is None else number[rows]
        return cls(found, np.asarray(classes), sums.astype(np.int64), merged)

    @cached_property
    def codes(self) -> Sequence[Integers]:
        """The nodes of the classes, column by column, (c,) each."""
        return self.keys.decoded(self.classes)


@dataclass(frozen=True, eq=False)
class _Found:
    """Of a node: its ``value``, infinite where it is not ``feasible``; what no node above it goes below, ``bound``; and the records in classes
    below k, ``small``, of which no node below it has fewer.
    """

    feasible: bool
    value: float
    bound: float
    small: int


class _Counter:
    """The classes of nodes between the ``first`` and the ``last``, counted from the ``base``, those of the first."""

    def __init__(self, ladders: Sequence[Ladder], first: Node, last: Node, base: _Counted) -> None:
        self.ladders, self.first, self.last = ladders, first, last
        self.shape = tuple(high - low + 1 for low, high in zip(first, last, strict=True))
        self.kept: list[tuple[Node, _Counted]] = [(first, base)]
        self.places, self.sizes = np.array([first], dtype=np.int32).T, np.array([len(base.records)])
        self._digits: dict[tuple[int, int], Integers] = {}

    @classmethod
    def of(cls, ladders: Sequence[Ladder], first: Node, last: Node, *, rows: bool) -> _Counter:
        """Counted from the records; ``rows`` says whether it is needed which class each is in."""
        n = len(ladders[0].codes)
        columns = [ladder.at(level) for ladder, level in zip(ladders, first, strict=True)]
        base = _Counted.of(
            columns, _radices(ladders, first), np.ones(n, dtype=np.int64), np.arange(n) if rows else None
        )
        return cls(ladders, first, last, base)

    @property
    def base(self) -> _Counted:
        return self.kept[0][1]

    def only(self, axes: Sequence[int]) -> _Counter:
        """The lattice of some of the quasi-identifiers."""
        ladders = [self.ladders[axis] for axis in axes]
        first, last = (tuple(ends[axis] for axis in axes) for ends in (self.first, self.last))
        columns = [self.base.codes[axis] for axis in axes]
        return _Counter(ladders, first, last, _Counted.of(columns, _radices(ladders, first), self.base.records, None))

    def source(self, node: Node) -> tuple[Node, _Counted]:
        """The node with the fewest classes of those below a node that are kept, and its classes."""
        below = np.logical_and.reduce(self.places <= np.array(node, dtype=np.int32)[:, None], axis=0)
        return self.kept[int(np.argmin(np.where(below, self.sizes, np.inf)))]

    def counted(self, node: Node) -> _Counted:
        """The classes of a node, from the fewest classes of a counted node below it."""
        level, table = self.source(node)
        radices = _radices(self.ladders, node)
        if table is self.base and math.prod(radices) > _dense(len(table.records)) and table.keys.example is None:
            found = _Counted.of_keys(self._keys_of_base(node), table.records, table.rows)
        else:
            ups = [
                None if low == high else ladder.up(low, high)
                for ladder, low, high in zip(self.ladders, level, node, strict=True)
            ]
            found = _Counted.of(table.codes, radices, table.records, table.rows, ups)
        half = all(level <= low + 1 for level, low in zip(node, self.first, strict=True))
        if len(self.kept) <= MOST_TABLES and (half or len(found.records) * SMALLER <= len(table.records)):
            self.kept.append((node, found))
            self.places = np.column_stack([self.places, np.array(node, dtype=np.int32)])
            self.sizes = np.append(self.sizes, len(found.records))
        return found

    def _keys_of_base(self, node: Node) -> _Keys:
        """The keys of a node for the classes of the first: sums of digits that are the same for every node with that level, in the radices of the first."""
        radices = _radices(self.ladders, self.first)
        strides = np.cumprod([1, *radices[:0:-1]])[::-1].tolist()
        key = np.zeros(len(self.base.records), dtype=np.int64)
        for axis, (ladder, low, high) in enumerate(zip(self.ladders, self.first, node, strict=True)):
            if ladder.counts[high] == 1:
                continue
            if (axis, high) not in self._digits:
                self._digits[axis, high] = (ladder.up(low, high) * strides[axis])[self.base.codes[axis]]
            key += self._digits[axis, high]
        return _Keys(key, radices)

    def all_counted(self) -> list[Integers]:
        """The sizes of the classes of every node, ascending, (classes,) each."""
        steps = np.ndindex(self.shape)
        nodes = (tuple(low + step for low, step in zip(self.first, place, strict=True)) for place in steps)
        return [np.sort(self.counted(node).records) for node in nodes]


def _radices(ladders: Sequence[Ladder], node: Node) -> list[int]:
    return [ladder.counts[level] for ladder, level in zip(ladders, node, strict=True)]


def _of_halves(
    counter: _Counter, parts_of: Callable[[Integers], int], value: Callable[[Integers, Integers], Floats]
) -> Floats:
    """The largest number that halves of the quasi-identifiers say of each node: of the lattice's shape.

    ``value`` is given the class sizes of a node of one half and into how many parts each node (b,) of the other may cut a class, which
    ``parts_of`` its class sizes says; it returns (b,) numbers.
    """
    found = np.zeros(counter.shape)
    order = np.argsort(
        [-ladder.counts[level] for ladder, level in zip(counter.ladders, counter.first, strict=True)], kind="stable"
    )
    place = np.arange(len(order))
    for side_of in (place % 2, place // 2 % 2, (place + 1) // 2 % 2):
        parts = [sorted(order[side_of == side].tolist()) for side in (0, 1)]
        if not all(0 < math.prod(counter.shape[axis] for axis in part) <= MOST_OF_HALF and part for part in parts):
            continue
        ours, theirs = (counter.only(part).all_counted() for part in parts)
        cuts, others = (np.array([parts_of(own) for own in half]) for half in (theirs, ours))
        both = np.maximum(
            np.stack([value(own, cuts) for own in ours]), np.stack([value(own, others) for own in theirs]).T
        )
        shape = [counter.shape[axis] for part in parts for axis in part]
        found = np.maximum(found, both.reshape(shape).transpose(np.argsort([axis for part in parts for axis in part])))
    return found


class _Lattice:
    """What is asked of a lattice's nodes, and how one is judged."""

    def __init__(
        self, counter: _Counter, limits: Limits, objective: Objective, most: int, sensitive: Sequence[Sensitive]
    ) -> None:
        self.counter, self.limits, self.objective, self.most = counter, limits, objective, most
        self.ladders, self.first, self.shape = counter.ladders, counter.first, counter.shape
        self.sensitive = sensitive
        self.monotone = stays_kept(limits, most)
        self.records = len(self.ladders[0].codes)

    def losses(self) -> Floats:
        """What records lose at each node without suppression, by quasi-identifier and record, of the lattice's shape."""
        found = np.zeros(self.shape)
        for place, (ladder, low, size) in enumerate(zip(self.ladders, self.first, self.shape, strict=True)):
            along = [1] * len(self.shape)
            along[place] = -1
            found = found + np.reshape([ladder.loss(low + step, self.objective) for step in range(size)], along)
        return np.asarray(found / len(self.ladders))

    def bounds(self) -> Floats:
        """What the value of each node is not below, by quasi-identifiers alone or in halves: of the lattice's shape."""
        if self.objective == "average_class_size":
            return _of_halves(self.counter, lambda sizes: int(np.sum(sizes >= self.limits.k)), self._least_average)
        if self.objective == "discernibility":
            return _of_halves(self.counter, len, _least_squares)
        return self.losses()

    def _least_average(self, own: Integers, cuts: Integers) -> Floats:
        """A class of one half becomes no more classes of k than the other half has, nor than it has k records."""
        parts = own // self.limits.k
        sums = np.concatenate([[0], np.cumsum(parts)])
        fewer = np.searchsorted(parts, cuts)
        classes = sums[fewer] + cuts * (len(parts) - fewer)
        return np.asarray((self.records - self.most) / np.maximum(classes, 1))

    def look(self, node: Node, loss: float) -> _Found:
        """Count a node; ``loss`` is what its records lose without suppression."""
        found = self.counter.counted(node)
        sizes = found.records
        kept = sizes >= self.limits.k
        if found.rows is not None:
            kept = kept_classes(found.rows, len(sizes), self.limits, self.sensitive)
        suppressed = int(sizes[~kept].sum())
        feasible = suppressed <= self.most and bool(kept.any())
        large = sizes >= self.limits.k
        small = int(sizes[~large].sum())
        if self.objective == "discernibility":
            value = float(np.sum(sizes[kept] ** 2)) + float(suppressed) * self.records
            bound = float(np.sum(sizes**2))
        elif self.objective == "average_class_size":
            value = (self.records - suppressed) / max(int(kept.sum()), 1)
            released = max(self.records - self.most, self.records - suppressed if self.monotone else 0)
            classes = int(large.sum()) + small // self.limits.k
            bound = released / classes if classes else np.inf
        else:
            spared = np.zeros(int((~kept).sum()))
            lost = found.keys.decoded(found.classes[~kept])
            for codes, ladder, level in zip(lost, self.ladders, node, strict=True):
                spared += ladder.spared(level, self.objective)[codes]
            value = loss + float(spared @ sizes[~kept]) / (self.records * len(self.ladders))
            bound = loss
        return _Found(feasible, value if feasible else np.inf, bound, small)


def _least_squares(own: Integers, cuts: Integers) -> Floats:
    """A class of one half is cut into as many parts as the other half has classes, evenly at best."""
    return np.asarray(float(np.sum(own.astype(np.float64) ** 2)) / cuts)


class _Search:
    """What is known of each node, as arrays of the lattice's shape; places count from the lowest levels."""

    def __init__(self, lattice: _Lattice) -> None:
        self.lattice = lattice
        self.losses = lattice.losses()
        self.bounds = lattice.bounds()
        self.small = np.zeros(lattice.shape, dtype=np.int64)
        self.values = np.full(lattice.shape, np.inf)
        self.checked = np.zeros(lattice.shape, dtype=np.bool_)
        self.infeasible = np.zeros(lattice.shape, dtype=np.bool_)
        self.least = np.inf

    @property
    def lower(self) -> Floats:
        """What no value of a node is below: by nodes under it, and for discernibility by the fewest records that it suppresses too."""
        if self.lattice.objective != "discernibility":
            return self.bounds
        each = (
            self.lattice.records - self.lattice.limits.k + 1
        )  # a suppressed class counts n a record in place of its size
        return np.asarray(self.bounds + self.small * float(max(each, 0)))

    def open(self) -> Booleans:
        """Nodes that may be best and are not checked."""
        return ~self.checked & ~self.infeasible & (self.lower <= self.least + abs(self.least) * TIE)

    def check(self, place: Node) -> bool:
        """Whether a node is feasible; what that says of those below and above it is noted."""
        if self.checked[place]:
            return bool(np.isfinite(self.values[place]))
        lattice = self.lattice
        node = tuple(low + step for low, step in zip(lattice.first, place, strict=True))
        half = tuple(min(step, 1) for step in place)
        if half != place and lattice.counter.source(node)[0] == lattice.first:
            self.check(half)
        found = lattice.look(node, float(self.losses[place]))
        self.checked[place], self.values[place] = True, found.value
        self.least = min(self.least, found.value)
        above = tuple(slice(step, None) for step in place)
        np.maximum(self.bounds[above], found.bound, out=self.bounds[above])
        below = tuple(slice(step + 1) for step in place)
        np.maximum(self.small[below], found.small, out=self.small[below])
        if lattice.monotone and not found.feasible:
            self.infeasible[below] = True
        return found.feasible

    def bisect(self, place: Node) -> None:
        """Find where a way up from a node becomes feasible, always by the level that costs least; and check the node itself if it may be."""
        way, lower = [place], self.lower
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
            if not self.infeasible[way[middle]] and self.check(way[middle]):
                high = middle
            else:
                low = middle + 1
        if self.open()[place]:
            self.check(place)

    def best(self) -> Best:
        first = self.lattice.first
        tied = np.argwhere(self.values <= self.least + abs(self.least) * TIE) if np.isfinite(self.least) else ()
        nodes = tuple(tuple(int(low + step) for low, step in zip(first, place, strict=True)) for place in tied)
        left = ~self.checked
        below = int((left & self.infeasible).sum())
        return Best(nodes, self.least, int(self.checked.sum()), below, int(left.sum()) - below)


def best_levels(
    ladders: Sequence[Ladder],
    limits: Limits,
    objective: Objective,
    *,
    most_suppressed: int = 0,
    sensitive: Sequence[Sensitive] = (),
    lowest: Sequence[int] | None = None,
    highest: Sequence[int] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Best:
    """The best nodes of the lattice between the ``lowest`` and the ``highest`` level of each quasi-identifier, by default all.

    ``limits`` hold of the released table, whose ``sensitive`` variables are those that they are about. ``report`` hears how many
    nodes are settled.
    """
    first = tuple(lowest) if lowest is not None else (0,) * len(ladders)
    last = tuple(highest) if highest is not None else tuple(ladder.levels - 1 for ladder in ladders)
    sensitive = tuple(sensitive) if limits.on_values else ()
    counter = _Counter.of(ladders, first, last, rows=bool(sensitive))
    lattice = _Lattice(counter, limits, objective, most_suppressed, sensitive)
    search = _Search(lattice)
    height = np.indices(lattice.shape).sum(axis=0)
    while (left := search.open()).any():
        if not lattice.monotone:
            search.check(_place(np.where(left, -search.lower, -np.inf)))
        elif np.isinf(search.least):
            search.bisect(_place(np.where(left, -search.lower, -np.inf)))
        else:
            search.check(_place(np.where(left, height, -1)))
        report(left.size - int(left.sum()), left.size)
    return search.best()


def _place(numbers: NDArray[np.number]) -> Node:
    """Where the largest number is, the first of equal ones."""
    return tuple(int(one) for one in np.unravel_index(int(np.argmax(numbers)), numbers.shape))
