"""Probabilistic record linkage: which released record is most likely a confidential one's (Fellegi & Sunter 1969).

The best link of a record is the released record of its block with the largest match weight w (``match_weights``), one of several by chance. The
model gives it the probability 2^w / sum 2^w, over all released records of the block, of being the record's own. ``calibration`` corrects that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from .blocks import AT_ONCE, Blocks, alike
from .comparisons import Codes, Comparison, Patterns
from .match_weights import Weights

WIDEST = 500.0
"""Weights further apart than so many bits would leave the range of floating-point numbers as powers of two."""


@dataclass(frozen=True, eq=False)
class Links:
    """The best links of t targets, (t,) each.

    ``candidates`` released records are compared with the target, ``ties`` of them have the largest weight, each of which is the right one
    with ``probability`` by the model; ``hit`` says whether the target's own is among them. ``variance`` is that of sum hit / ties where the released
    records of each block are dealt anew.
    """

    candidates: Integers
    ties: Integers
    probability: Floats
    hit: NDArray[np.bool_]
    variance: float

    @property
    def found(self) -> Floats:
        """The probability that the target's link is its own record, one of the ties picked at random."""
        return np.asarray(np.where(self.hit, 1 / np.maximum(self.ties, 1), 0.0))

    @property
    def by_chance(self) -> Floats:
        """The same of a released record of the block picked at random."""
        return np.asarray(np.where(self.candidates > 0, 1 / np.maximum(self.candidates, 1), 0.0))


def pairs_compared(comparisons: Sequence[Comparison], blocks: Blocks) -> int:
    """Pairs of records that are not alike which all best links take."""
    ours, theirs = alike(comparisons, blocks, np.arange(len(blocks.ours)))
    return int(np.sum(np.diff(ours.start) * np.diff(theirs.start)))


def best_links(
    comparisons: Sequence[Comparison], blocks: Blocks, targets: Integers, weights: Sequence[Weights]
) -> list[Links]:
    """The best links of the targets, (t,), by each of these weights; the confidential and the released record i are one person's."""
    ours, theirs = alike(comparisons, blocks, targets)
    patterns = Patterns.among(comparisons)
    found = [_Best.of(patterns.weights(own), len(ours.first), len(theirs.first)) for own in weights]
    for block in np.flatnonzero((np.diff(ours.start) > 0) & (np.diff(theirs.start) > 0)):
        j = np.arange(theirs.start[block], theirs.start[block + 1])
        step = max(AT_ONCE // len(j), 1)
        for low in range(ours.start[block], ours.start[block + 1], step):
            i = np.arange(low, min(low + step, ours.start[block + 1]))
            codes = patterns.of(ours.first[i][:, None], theirs.first[j][None, :])
            for best in found:
                best.see(i, j, codes, ours.count[i], theirs.count[j])
    same = blocks.ours[targets] == blocks.theirs[targets]
    codes, size = patterns.of(targets, targets), blocks.sizes
    links = []
    for best in found:
        hit = same & (best.weight_of(codes) == best.weight[ours.which])
        block_of = blocks.theirs[theirs.first]
        variance = best.variance(blocks.ours[ours.first], ours.count, block_of, theirs.count, size)
        links.append(
            Links(
                size[blocks.ours[targets]],
                best.ties[ours.which],
                1 / np.maximum(best.total, 1.0)[ours.which],
                hit,
                variance,
            )
        )
    return links


@dataclass(frozen=True, eq=False)
class _Best:
    """The largest weights of D kinds of targets so far, and what falls to each of R kinds of released records.

    ``tables`` have the weight of each pattern. Of each target the ``weight`` of its best links, their ``ties``, and
    ``total``, the sum of 2^w over its candidates by that of one best link, (D,) each.
    """

    tables: list[Floats]
    weight: Floats
    ties: Integers
    total: Floats
    falls: Floats

    @classmethod
    def of(cls, tables: list[Floats], targets: int, released: int) -> _Best:
        nobody = np.zeros(targets)
        return cls(tables, nobody - np.inf, nobody.astype(np.int64), nobody.copy(), np.zeros(released))

    def weight_of(self, patterns: Codes) -> Floats:
        """The weights of pairs, of the shape of their patterns."""
        total: Floats = np.take(self.tables[0], patterns[0])
        for table, codes in zip(self.tables[1:], patterns[1:], strict=True):
            total += np.take(table, codes)
        return total

    def see(self, i: Integers, j: Integers, patterns: Codes, ours: Integers, theirs: Integers) -> None:
        """All pairs of some targets, (a, b); ``ours`` (a,) and ``theirs`` (b,) are how many records are alike."""
        weight = self.weight_of(patterns)
        largest = weight.max(axis=1)
        row, column = np.divmod(np.flatnonzero(weight == largest[:, None]), len(j))
        ties = np.bincount(row, weights=theirs[column], minlength=len(i))
        self.weight[i], self.ties[i] = largest, ties
        self.total[i] = self._odds(weight, largest, patterns) @ theirs.astype(np.float64)
        self.falls[j] += np.bincount(column, weights=(ours / ties)[row], minlength=len(j))

    def _odds(self, weight: Floats, largest: Floats, patterns: Codes) -> Floats:
        """2^w over that of the best link, (a, b)."""
        table = self.tables[0]
        if len(patterns) > 1 or table.max() - table.min() > WIDEST:
            return np.asarray(np.exp2(weight - largest[:, None]))
        return np.asarray(np.take(np.exp2(table - table.max()), patterns[0]) * np.exp2(table.max() - largest)[:, None])

    def variance(self, ours: Integers, targets: Integers, theirs: Integers, alike: Integers, sizes: Integers) -> float:
        """Of sum_i a_i,p(i) over random orders p of each block, a_ij = 1 / ties for the best links (Hoeffding 1951, theorem 2)."""
        width, size = len(sizes), np.maximum(sizes, 1)
        of = np.bincount(ours, weights=targets, minlength=width)
        square = np.bincount(ours, weights=targets / np.maximum(self.ties, 1), minlength=width)
        column = np.bincount(theirs, weights=alike * self.falls**2, minlength=width)
        spread = square - of / size - column / size + (of / size) ** 2
        return float(np.sum(np.where(sizes > 1, spread / np.maximum(sizes - 1, 1), 0.0)))
