"""Equivalence classes: records that agree on all quasi-identifiers, and how sensitive variables vary in them.

With p_c the shares of the sensitive values in class c and q those in the whole table:
    distinct l     number of different values                              (Machanavajjhala et al. 2007, §4.1)
    entropy l      exp(-sum p log p)                                       (the same, Definition 4.1)
    recursive c    r_1 / (r_l + ... + r_m), r_1 >= ... >= r_m the records of each value: the class is recursively
                   (c, l)-diverse for every larger c                       (the same, Definition 4.2)
    equal t        1/2 sum |p - q|: every two values are 1 apart           (Li, Li & Venkatasubramanian 2007, §5.2)
    ordered t      1/(m - 1) sum_i |P_i - Q_i| with cumulative shares P, Q: neighbours of m ranked values lie 1/(m - 1)
                   apart                                                   (the same, §5.1)

All work on counts of (class, value) pairs that occur, so that many classes and many values cost n log n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import Values, distinct_codes, number_groups
from ..data.schema import Kind
from .partitioning import ClassRule

# Cells of the table of classes and values for each record: beyond that, sorting pairs is quicker than counting empty
# cells.
DENSE = 4
# Sums of logarithms are rounded off: n values of one frequency must count as n, and a class at the limit must meet it.
DECIMALS = 12
Booleans = NDArray[np.bool_]
Diversity = Literal["distinct", "entropy", "recursive"]
ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL)


def equivalence_classes(columns: Sequence[Values], records: int) -> Integers:
    """Return the class of each record (n,), numbered from 0 as they appear; one class where there are no columns.

    A missing value equals another missing value and nothing else.
    """
    return number_groups([[column] for column in columns], [records])[0][0]


def joint_classes(first: Sequence[Values], second: Sequence[Values]) -> tuple[Integers, Integers]:
    """Return the classes of two tables' records, (n,) and (m,): equal for records that agree on all columns."""
    both = list(zip(first, second, strict=True))
    ours, theirs = number_groups(both, [len(part) for part in both[0]])[0]
    return ours, theirs


def class_sizes(classes: Integers) -> Integers:
    """Count the records in each class, (classes,); those of class -1 are not counted."""
    return np.bincount(classes[classes >= 0]).astype(np.int64)


def class_extremes(values: Floats, classes: Integers, count: int) -> tuple[Floats, Floats]:
    """Return the smallest and largest value of each of ``count`` classes, (count,); infinite where a class is empty.

    ``values`` (n,) have no NaN.
    """
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, classes, values)
    np.maximum.at(high, classes, values)
    return low, high


def code_shares(codes: Integers, values: int) -> Floats:
    """Return the share of the records with each of the ``values`` codes, (values,)."""
    return np.asarray(np.bincount(codes, minlength=values) / max(len(codes), 1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ClassComposition:
    """Records of each (class, value) pair that occurs, ascending by class, then value.

    group: class of each pair, (pairs,)
    value: value of each pair, (pairs,)
    count: records of each pair, (pairs,)
    sizes: records of each class, none 0, (classes,)
    """

    group: Integers
    value: Integers
    count: Integers
    sizes: Integers

    @classmethod
    def from_codes(cls, classes: Integers, codes: Integers, groups: int, values: int) -> ClassComposition:
        """Count the records of each pair of class and value, given both for each record, (n,).

        Classes are below ``groups``, values below ``values``.
        """
        key = classes * values + codes
        if groups * values <= DENSE * len(key):
            table = np.bincount(key, minlength=groups * values)
            pair = np.flatnonzero(table)
            count = table[pair]
        else:
            pair, count = np.unique(key, return_counts=True)
        return cls(pair // values, pair % values, count, np.bincount(classes, minlength=groups))

    @property
    def _pair_shares(self) -> Floats:
        return np.asarray(self.count / self.sizes[self.group])

    def _sum_by_class(self, terms: Floats) -> Floats:
        return np.asarray(np.bincount(self.group, weights=terms, minlength=len(self.sizes)), dtype=np.float64)

    def distinct_counts(self) -> Integers:
        """Count the different values in each class, (classes,)."""
        return np.bincount(self.group, minlength=len(self.sizes)).astype(np.int64)

    def class_entropies(self) -> Floats:
        """Return the entropy of the values in each class in nats, (classes,)."""
        p = self._pair_shares
        # Rounding would make the entropy of one value a negative zero or less.
        return np.asarray(np.maximum(self._sum_by_class(-p * np.log(p)), 0.0))

    def effective_values(self) -> Floats:
        """Return the effective number of values of each class, (classes,): exp(entropy), to 12 decimals."""
        return np.asarray(np.round(np.exp(self.class_entropies()), DECIMALS))

    def recursive_ratio(self, l: int) -> Floats:  # noqa: E741
        """Return r_1 / (r_l + ... + r_m) of each class, (classes,); infinite for fewer than ``l`` different values."""
        order = np.lexsort((-self.count, self.group))
        group, count = self.group[order], self.count[order]
        opening = np.concatenate([[0], np.cumsum(self.distinct_counts())[:-1]])
        rank = np.arange(len(group)) - opening[group]
        rest = np.bincount(group, weights=np.where(rank >= l - 1, count, 0), minlength=len(self.sizes))
        ratio = np.full(len(rest), np.inf)
        np.divide(count[opening], rest, out=ratio, where=rest > 0)
        return ratio

    def class_modes(self) -> Integers:
        """Return the most frequent value of each class, of equals the smallest: (classes,)."""
        order = np.lexsort((self.value, -self.count, self.group))
        group = self.group[order]
        return np.asarray(self.value[order][np.concatenate([[True], group[1:] != group[:-1]])], dtype=np.int64)

    def equal_distance(self, q: Floats) -> Floats:
        """Return the distance of each class from the table's shares ``q`` (values,), (classes,).

        All values are equally far apart.
        """
        ours = q[self.value]
        return np.asarray(
            # Values that a class lacks contribute their q. They are never listed: the sum over all q, less that of the
            # class's own values.
            np.maximum(0.5 * (self._sum_by_class(np.abs(self._pair_shares - ours) - ours) + q.sum()), 0.0)
        )

    def ordered_distance(self, q: Floats) -> Floats:
        """Return the distance of each class from the table's shares ``q`` (values,) of ranked values: (classes,)."""
        if len(q) < 2:
            return np.zeros(len(self.sizes))
        Q = np.cumsum(q)
        before = np.concatenate([[0.0], np.cumsum(Q)])
        first = np.concatenate([[True], self.group[1:] != self.group[:-1]])
        running = np.cumsum(self.count)
        opening = (running - self.count)[first]
        P = (running - opening[self.group]) / self.sizes[self.group]
        end = np.where(np.concatenate([first[1:], [True]]), len(q), np.concatenate([self.value[1:], [0]]))
        # Between two values of a class P is constant, and Q, which never falls, crosses it at one place. Prefix sums of
        # Q give the sum of |P - Q| before and after it, without a table of classes by values.
        cross = np.clip(np.searchsorted(Q, P), self.value, end)
        stretch = P * (2 * cross - self.value - end) - (2 * before[cross] - before[self.value] - before[end])
        # Below the first value of a class P is 0.
        total = self._sum_by_class(stretch) + before[self.value[first]]
        return np.asarray(np.maximum(total / (len(q) - 1), 0.0))


@dataclass(frozen=True, eq=False)
class SensitiveColumn:
    """A sensitive variable of a table, as ranks of its values.

    name: name of the variable
    codes: rank of each record's value, (n,)
    distinct: different values, ascending, (values,)
    shares: share of the records with each value, (values,)
    has_ordered_kind: whether its kind has an order
    """

    name: str
    codes: Integers
    distinct: Floats
    shares: Floats
    has_ordered_kind: bool

    @classmethod
    def from_microdata(cls, data: Microdata, name: str) -> Self:
        """Read the variable of these records; labels of intervals and nodes have no order."""
        if name in data.generalised:
            return cls.from_values(name, np.asarray(data.frame[name].cat.codes, dtype=np.float64), ordered=False)
        return cls.from_values(name, data.numbers(name), data.schema[name].kind in ORDERED)

    @classmethod
    def from_values(cls, name: str, values: Floats, ordered: bool) -> Self:
        """Build from values as numbers or codes of levels, (n,).

        Missing values (NaN) count as one value, and the values then have no order.
        """
        distinct = distinct_codes(values)
        codes = distinct.codes.astype(np.int64)
        return cls(name, codes, distinct.values, code_shares(codes, len(distinct.values)), ordered)

    @property
    def n_values(self) -> int:
        """Count the different values."""
        return len(self.distinct)

    @property
    def is_ordered(self) -> bool:
        """Return whether the values have an order: those of an ordered kind have, unless some are missing."""
        # NaN sorts last. How far "missing" lies from a number nobody can say.
        return self.has_ordered_kind and not np.isnan(self.distinct[-1])

    def restrict_to_rows(self, rows: Integers) -> SensitiveColumn:
        """Return the variable for a table of some of the records.

        Its ``codes`` (n,) are valid for these ``rows`` only.
        """
        present = np.unique(self.codes[rows])
        codes = np.searchsorted(present, self.codes)
        return replace(
            self, codes=codes, distinct=self.distinct[present], shares=code_shares(codes[rows], len(present))
        )

    def class_composition(self, classes: Integers, groups: int, rows: Integers | None = None) -> ClassComposition:
        """Count the values in each of the classes, of the chosen rows or of all."""
        return ClassComposition.from_codes(
            classes, self.codes if rows is None else self.codes[rows], groups, self.n_values
        )

    def distance_from_table(self, composition: ClassComposition) -> Floats:
        """Return the earth mover's distance of each class from the whole table, (classes,), to 12 decimals."""
        found = (
            composition.ordered_distance(self.shares) if self.is_ordered else composition.equal_distance(self.shares)
        )
        return np.asarray(np.round(found, DECIMALS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits that every equivalence class of a table must keep to.

    k: fewest records
    p: fewest different values of each sensitive variable
    l, c: l-diversity of each sensitive variable, as ``diversity`` reads it
    diversity: how values are counted for l: distinct, by entropy, or recursive (c, l)
    t: largest distance of the values from the table's (t-closeness)

    Where classes that keep to them are merged, the union does (for c: Machanavajjhala et al. 2007, §4.2; the earth mover's
    distance is convex).
    """

    k: int = 1
    p: int = 1
    l: float = 1.0  # noqa: E741
    diversity: Diversity = "distinct"
    c: float = math.inf
    t: float = 1.0

    @property
    def on_values(self) -> bool:
        """Return whether any limit is on sensitive variables."""
        return self.p > 1 or self.l > 1 or self.t < 1

    def figures(self, variable: SensitiveColumn, found: ClassComposition) -> Iterator[tuple[str, Floats, Booleans]]:
        """Yield the name of each limit that is set, the measure of each class, and which classes keep to it."""
        if self.p > 1:
            distinct = found.distinct_counts().astype(np.float64)
            yield "p", distinct, distinct >= self.p
        if self.diversity == "recursive":
            ratio = found.recursive_ratio(int(self.l))
            # Definition 4.2 has a strict inequality.
            yield "c", ratio, ratio < self.c
        elif self.l > 1:
            values = (
                found.effective_values() if self.diversity == "entropy" else found.distinct_counts().astype(np.float64)
            )
            yield "l", values, values >= self.l
        if self.t < 1:
            distance = variable.distance_from_table(found)
            yield "t", distance, distance <= self.t

    def rule(self, sensitive: Sequence[SensitiveColumn]) -> ClassRule:
        """Return the check of which classes of a table keep to the limits on values.

        t is compared with the shares of the values in that table itself.
        """
        return lambda rows: partial(self._classes_allowed, [variable.restrict_to_rows(rows) for variable in sensitive])

    def _classes_allowed(
        self, sensitive: Sequence[SensitiveColumn], rows: Integers, parts: Integers, count: int
    ) -> Booleans:
        """Return which of ``count`` parts of some rows keep to the limits on values, (count,)."""
        allowed = np.ones(count, dtype=np.bool_)
        for variable in sensitive:
            for _, _, kept in self.figures(variable, variable.class_composition(parts, count, rows)):
                allowed &= kept
        return allowed
