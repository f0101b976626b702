"""What a partition must keep of sensitive variables: l-diversity, p-sensitivity, t-closeness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..microdata import Microdata
from ..schema import Kind
from .diversity import Composition, shares_of

__all__ = ["ORDERED", "Diversity", "Sensitive", "all_allowed"]

Integers = NDArray[np.int64]
Diversity = Literal["distinct", "entropy"]

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL)
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive variable: ranks ``codes`` (n,) of its ``values`` different values, whether they have an order, and the
    shares ``q`` (values,) that they have in the whole table.
    """

    name: str
    codes: Integers
    values: int
    ordered: bool
    q: NDArray[np.float64]

    @classmethod
    def of(cls, data: Microdata, name: str) -> Self:
        """The variable as these records have it."""
        return cls.of_values(name, data.numbers(name), data.schema[name].kind in ORDERED)

    @classmethod
    def of_values(cls, name: str, values: NDArray[np.float64], ordered: bool) -> Self:
        """From values as numbers or codes of levels, (n,). Missing ones (NaN) are a value, which then leaves no order."""
        distinct, codes = np.unique(values, return_inverse=True)
        codes = codes.astype(np.int64)
        return cls(name, codes, len(distinct), ordered and not np.isnan(distinct[-1]), shares_of(codes, len(distinct)))

    def composition(self, classes: Integers, groups: int, rows: Integers | None = None) -> Composition:
        """The values in each of the classes, of the chosen rows or of all."""
        return Composition.of(classes, self.codes if rows is None else self.codes[rows], groups, self.values)

    def closeness(self, composition: Composition) -> NDArray[np.float64]:
        """Earth mover's distance of each class from the whole table, (classes,)."""
        return composition.ordered_distance(self.q) if self.ordered else composition.equal_distance(self.q)


def all_allowed(
    sensitive: Sequence[Sensitive],
    rows: Integers,
    parts: Integers,
    count: int,
    *,
    l: float = 1.0,  # noqa: E741
    diversity: Diversity = "distinct",
    t: float = 1.0,
) -> NDArray[np.bool_]:
    """Which parts have, of every sensitive variable, l-diverse values that are t-close to the table's: (count,)."""
    allowed = np.ones(count, dtype=np.bool_)
    for variable in sensitive:
        found = variable.composition(parts, count, rows)
        if l > 1:
            enough = found.distinct() >= l if diversity == "distinct" else found.entropy() >= math.log(l) - ROUNDING
            allowed &= enough
        if t < 1:
            allowed &= variable.closeness(found) <= t + ROUNDING
    return allowed
