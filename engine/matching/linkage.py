"""Probabilistic record linkage of confidential with released records (Fellegi & Sunter 1969).

The best link of a record is the released record of its block with the largest match weight w (``match_weights``); ties
are broken at random. Under the model it is the record's own with probability 2^w / sum 2^w over all released records of
the block, which ``_link_calibration`` corrects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .blocks import AT_ONCE, ComparisonBlocks, group_alike_records
from .comparisons import AgreementPatterns, PatternCodes, VariableComparison
from .match_weights import LevelWeights

MAX_WEIGHT_SPREAD = 500.0
"""Largest spread of weights in bits whose powers of two fit floating-point numbers."""


@dataclass(frozen=True, eq=False)
class RecordLinks:
    """Best links of t targets, (t,) each.

    candidates: number of released records that are compared with the target
    ties: number of them with the largest weight
    probability: model probability of each of these to be right
    hit: whether the target's own record is among them
    variance: variance of sum hit / ties if the released records of each block are shuffled, a number
    """

    candidates: Integers
    ties: Integers
    probability: Floats
    hit: Booleans
    variance: float

    @property
    def link_chance(self) -> Floats:
        """Return the probability that a random one of the tied links is right."""
        return np.asarray(np.where(self.hit, 1 / np.maximum(self.ties, 1), 0.0))

    @property
    def random_link_chance(self) -> Floats:
        """Return the probability that a random released record of the block is right."""
        return np.asarray(np.where(self.candidates > 0, 1 / np.maximum(self.candidates, 1), 0.0))


def count_compared_pairs(comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks) -> int:
    """Count the pairs of distinct records that the search for all best links compares."""
    ours, theirs = group_alike_records(comparisons, blocks, np.arange(len(blocks.confidential_blocks)))
    return int(np.sum(np.diff(ours.start) * np.diff(theirs.start)))


def find_best_links(
    comparisons: Sequence[VariableComparison],
    blocks: ComparisonBlocks,
    targets: Integers,
    weights: Sequence[LevelWeights],
) -> list[RecordLinks]:
    """Return the best links of the targets, (t,), for each set of weights.

    Rows i of both tables belong to one person.
    """
    ours, theirs = group_alike_records(comparisons, blocks, targets)
    patterns = AgreementPatterns.from_comparisons(comparisons)
    found = [
        _BestLinkSearch.from_sizes(patterns.pattern_weights(own), len(ours.first_record), len(theirs.first_record))
        for own in weights
    ]
    for block in np.flatnonzero((np.diff(ours.start) > 0) & (np.diff(theirs.start) > 0)):
        j = np.arange(theirs.start[block], theirs.start[block + 1])
        step = max(AT_ONCE // len(j), 1)
        for low in range(ours.start[block], ours.start[block + 1], step):
            i = np.arange(low, min(low + step, ours.start[block + 1]))
            codes = patterns.pattern_codes(ours.first_record[i][:, None], theirs.first_record[j][None, :])
            for best in found:
                best.add_pairs(i, j, codes, ours.count[i], theirs.count[j])
    same = blocks.confidential_blocks[targets] == blocks.released_blocks[targets]
    codes, size = patterns.pattern_codes(targets, targets), blocks.released_counts
    links = []
    for best in found:
        hit = same & (best.pair_weights(codes) == best.best_weight[ours.kind_of_record])
        block_of = blocks.released_blocks[theirs.first_record]
        variance = best.link_variance(
            blocks.confidential_blocks[ours.first_record], ours.count, block_of, theirs.count, size
        )
        links.append(
            RecordLinks(
                size[blocks.confidential_blocks[targets]],
                best.ties[ours.kind_of_record],
                1 / np.maximum(best.total_odds, 1.0)[ours.kind_of_record],
                hit,
                variance,
            )
        )
    return links


@dataclass(frozen=True, eq=False)
class _BestLinkSearch:
    """Largest weights so far of D distinct targets, and the links received by R distinct released records.

    tables: weight of each pattern, by group of variables
    best_weight: weight of the best links of each target, (D,)
    ties: number of its best links, (D,)
    total_odds: sum of 2^w over its candidates relative to one best link, (D,)
    received_links: number of links to each distinct released record, (R,)
    """

    tables: list[Floats]
    best_weight: Floats
    ties: Integers
    total_odds: Floats
    received_links: Floats

    @classmethod
    def from_sizes(cls, tables: list[Floats], targets: int, released: int) -> _BestLinkSearch:
        """Create the search for these numbers of distinct targets and released records."""
        nobody = np.zeros(targets)
        return cls(tables, nobody - np.inf, nobody.astype(np.int64), nobody.copy(), np.zeros(released))

    def pair_weights(self, patterns: PatternCodes) -> Floats:
        """Return the weights of pairs, in the shape of their patterns."""
        total: Floats = np.take(self.tables[0], patterns[0])
        for table, codes in zip(self.tables[1:], patterns[1:], strict=True):
            total += np.take(table, codes)
        return total

    def add_pairs(self, i: Integers, j: Integers, patterns: PatternCodes, ours: Integers, theirs: Integers) -> None:
        """Compare all pairs (a, b) of some targets with some released records.

        ``ours`` (a,) and ``theirs`` (b,) count the records that are alike.
        """
        weight = self.pair_weights(patterns)
        largest = weight.max(axis=1)
        # Weights are multiples of ``WEIGHT_STEP``, so equality is exact.
        row, column = np.divmod(np.flatnonzero(weight == largest[:, None]), len(j))
        ties = np.bincount(row, weights=theirs[column], minlength=len(i))
        self.best_weight[i], self.ties[i] = largest, ties
        self.total_odds[i] = self._odds_to_best(weight, largest, patterns) @ theirs.astype(np.float64)
        self.received_links[j] += np.bincount(column, weights=(ours / ties)[row], minlength=len(j))

    def _odds_to_best(self, weight: Floats, largest: Floats, patterns: PatternCodes) -> Floats:
        """Return 2^w relative to the best link, (a, b)."""
        table = self.tables[0]
        if len(patterns) > 1 or table.max() - table.min() > MAX_WEIGHT_SPREAD:
            return np.asarray(np.exp2(weight - largest[:, None]))
        # A power per pattern instead of per pair, while its range allows it.
        return np.asarray(np.take(np.exp2(table - table.max()), patterns[0]) * np.exp2(table.max() - largest)[:, None])

    def link_variance(
        self, ours: Integers, targets: Integers, theirs: Integers, alike: Integers, sizes: Integers
    ) -> float:
        """Return the variance of the sum of 1 / ties over hits, under shuffling within each block."""
        width, size = len(sizes), np.maximum(sizes, 1)
        of = np.bincount(ours, weights=targets, minlength=width)
        square = np.bincount(ours, weights=targets / np.maximum(self.ties, 1), minlength=width)
        column = np.bincount(theirs, weights=alike * self.received_links**2, minlength=width)
        # Hoeffding (1951), theorem 2, for sum_i a_i,p(i) with a_ij = 1 / ties for the best links.
        spread = square - of / size - column / size + (of / size) ** 2
        return float(np.sum(np.where(sizes > 1, spread / np.maximum(sizes - 1, 1), 0.0)))
