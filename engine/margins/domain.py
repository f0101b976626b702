"""Domain of a table of categories: how many categories each variable has, and sums of records and tables over it.

A margin is named by the positions of its variables, ascending: ``(0, 3)``. Its table has an axis for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Floats, Integers

Clique = tuple[int, ...]
"""Positions of variables, ascending."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Domain of a table of categories.

    sizes: number of categories of each variable
    """

    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sizes)

    def shape(self, clique: Clique) -> tuple[int, ...]:
        return tuple(self.sizes[at] for at in clique)

    def cell_count(self, clique: Clique | None = None) -> int:
        """Return the number of cells of a margin, by default of the whole table."""
        return math.prod(self.sizes if clique is None else self.shape(clique))

    @property
    def variable_pairs(self) -> tuple[Clique, ...]:
        return tuple(combinations(range(len(self)), 2))

    def count_records(self, codes: Integers, clique: Clique, weights: Floats | None = None) -> Floats:
        """Count the records of each cell of a margin, or sum their ``weights`` (n,).

        ``codes`` (n, variables) are their categories.
        """
        shape = self.shape(clique)
        cell = np.zeros(len(codes), dtype=np.int64)
        for at, size in zip(clique, shape, strict=True):
            cell *= size
            cell += codes[:, at]
        return np.bincount(cell, weights, math.prod(shape)).astype(np.float64).reshape(shape)


def subsets_of(clique: Clique) -> Iterator[Clique]:
    """Yield every subset of a margin's variables, the empty one first."""
    for size in range(len(clique) + 1):
        yield from combinations(clique, size)


def margin_of(table: Floats, clique: Clique, wanted: Clique) -> Floats:
    """Return the margin of ``wanted`` variables from the table of a larger ``clique``."""
    others = tuple(axis for axis, at in enumerate(clique) if at not in wanted)
    return np.asarray(table.sum(axis=others), dtype=table.dtype) if others else table


def broadcast_margin(table: Floats, own: Clique, clique: Clique) -> Floats:
    """Return a margin's table in a shape that broadcasts against the table of a larger ``clique``."""
    return table.reshape([table.shape[own.index(at)] if at in own else 1 for at in clique])


def scale_to_margin(table: Floats, clique: Clique, own: Clique, wanted: Floats) -> float:
    """Scale the table of a clique in place so that its margin is ``wanted``; return how far it was before.

    The distance is a total variation.
    """
    found = margin_of(table, clique, own)
    # A margin of 0 cannot be scaled up: its cells stay 0.
    ratio = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
    table *= broadcast_margin(ratio, own, clique)
    return total_variation(found, wanted)


def drop_contained(cliques: Collection[Clique]) -> tuple[Clique, ...]:
    """Return the margins that are not contained in another one, in their order."""
    kept = tuple(dict.fromkeys(cliques))
    return tuple(one for one in kept if not any(set(one) < set(other) for other in kept))


def total_variation(a: Floats, b: Floats) -> float:
    """Return the total variation between two tables of shares: half the sum of absolute differences."""
    return float(np.abs(a - b).sum() / 2)


def to_shares(table: Floats) -> Floats:
    """Return a table of counts divided by its sum; a uniform table if the sum is 0."""
    total = float(table.sum())
    return np.asarray(table / total if total > 0 else np.full(table.shape, 1 / table.size))


def as_clique(positions: Sequence[int]) -> Clique:
    return tuple(sorted(set(positions)))
