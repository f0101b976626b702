"""What equivalence classes must keep of sensitive variables: l-diversity, p-sensitivity, t-closeness."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..microdata import Microdata
from ..schema import Kind
from .equivalence_classes import DECIMALS, Composition, shares_of
from .partitioning import Rule

Booleans = NDArray[np.bool_]
Diversity = Literal["distinct", "entropy", "recursive"]

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL)


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive variable of a table: the rank of each record's value, ``codes`` (n,), among the different values
    ``distinct`` (values,) ascending, the shares ``q`` (values,) that they have, and whether its kind has an order.
    """

    name: str
    codes: Integers
    distinct: Floats
    q: Floats
    ranked: bool

    @classmethod
    def of(cls, data: Microdata, name: str) -> Self:
        """The variable as these records have it; labels of intervals and nodes have no order."""
        if name in data.generalised:
            return cls.of_values(name, np.asarray(data.frame[name].cat.codes, dtype=np.float64), ordered=False)
        return cls.of_values(name, data.numbers(name), data.schema[name].kind in ORDERED)

    @classmethod
    def of_values(cls, name: str, values: Floats, ordered: bool) -> Self:
        """From values as numbers or codes of levels, (n,). Missing ones (NaN) are a value, which then leaves no order."""
        distinct, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        return cls(name, codes, distinct, shares_of(codes, len(distinct)), ordered)

    @property
    def values(self) -> int:
        """How many different values there are."""
        return len(self.distinct)

    @property
    def ordered(self) -> bool:
        """Whether the values have an order: those of an ordered kind have, unless some are missing."""
        return self.ranked and not np.isnan(self.distinct[-1])

    def among(self, rows: Integers) -> Sensitive:
        """The variable of a table that has only these of the records; ``codes`` (n,) of the others mean nothing."""
        present = np.unique(self.codes[rows])
        codes = np.searchsorted(present, self.codes)
        return replace(self, codes=codes, distinct=self.distinct[present], q=shares_of(codes[rows], len(present)))

    def composition(self, classes: Integers, groups: int, rows: Integers | None = None) -> Composition:
        """The values in each of the classes, of the chosen rows or of all."""
        return Composition.of(classes, self.codes if rows is None else self.codes[rows], groups, self.values)

    def closeness(self, composition: Composition) -> Floats:
        """Earth mover's distance of each class from the whole table, (classes,), to 12 decimals."""
        found = composition.ordered_distance(self.q) if self.ordered else composition.equal_distance(self.q)
        return np.asarray(np.round(found, DECIMALS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What every equivalence class of a table must have: ``k`` records, and of each sensitive variable ``p`` different
    values, l-diverse values (``l`` and ``c`` as ``diversity`` reads them) that are ``t``-close to the table's.

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
        """Whether anything is asked of sensitive variables."""
        return self.p > 1 or self.l > 1 or self.t < 1

    def figures(self, variable: Sensitive, found: Composition) -> Iterator[tuple[str, Floats, Booleans]]:
        """Of each limit that is set its name, the figure of every class, and which classes keep to it, (classes,)."""
        if self.p > 1:
            distinct = found.distinct().astype(np.float64)
            yield "p", distinct, distinct >= self.p
        if self.diversity == "recursive":
            ratio = found.recursive_ratio(int(self.l))
            yield "c", ratio, ratio < self.c
        elif self.l > 1:
            values = found.effective_values() if self.diversity == "entropy" else found.distinct().astype(np.float64)
            yield "l", values, values >= self.l
        if self.t < 1:
            distance = variable.closeness(found)
            yield "t", distance, distance <= self.t

    def rule(self, sensitive: Sequence[Sensitive]) -> Rule:
        """Which classes of a table keep to them, their size aside; held against the table's own shares of the values."""
        return lambda rows: partial(self._allowed, [variable.among(rows) for variable in sensitive])

    def _allowed(self, sensitive: Sequence[Sensitive], rows: Integers, parts: Integers, count: int) -> Booleans:
        allowed = np.ones(count, dtype=np.bool_)
        for variable in sensitive:
            for _, _, kept in self.figures(variable, variable.composition(parts, count, rows)):
                allowed &= kept
        return allowed
