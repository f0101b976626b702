"""Match weights: evidence of agreement levels that two records are one person's (Fellegi & Sunter 1969).

A pair with levels l_1, ..., l_K has the match weight  w = sum_k log2(m_k(l_k) / u_k(l_k)). Pairs of one person are on a
level with probability m_k, pairs of two people with probability u_k. An intruder who knows that everybody in the file
was released learns both from pairs alone: the level frequencies of all pairs give u, and expectation maximisation over
the agreement patterns gives m (Winkler 1988), with one true pair per record.

splink 5.0.0 learns the same weights; ``tests/engine/matching/test_splink.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..data.arrays import Floats, Integers
from ..data.rows import first_records, number_groups
from .blocks import ComparisonBlocks, group_alike_records, pairs_of_kinds
from .comparisons import AgreementPatterns, PatternCodes, VariableComparison

WEIGHT_STEP = 2.0**-20
"""Unit of weights, so that sums of equal weights are exactly equal in any order."""
MAX_TRAINING_PAIRS = 2_000_000
"""Largest number of pairs that weights are learned from; records are sampled to stay below."""
START_PROBABILITIES = {2: (0.9, 0.1), 4: (0.5, 0.3, 0.1, 0.1)}
"""Start of m by level: people resemble themselves. It decides if pairs teach nothing."""
CONVERGED = 2e-3
"""Largest change of m at which learning has converged."""
ITERATIONS = 15
"""Largest number of iterations."""

LevelWeights = tuple[Floats, ...]
"""Weight of each level, (levels,), of every comparison."""


@dataclass(frozen=True, eq=False)
class PatternCounts:
    """Numbers of pairs with each agreement pattern.

    confidential_rows: confidential records whose pairs are counted, (t,)
    levels: occurring patterns, as levels of each variable, (patterns, variables)
    pair_counts: number of pairs with each pattern, (patterns,)
    level_counts: number of levels of each variable
    """

    confidential_rows: Integers
    levels: Integers
    pair_counts: Floats
    level_counts: tuple[int, ...]

    @classmethod
    def from_records(
        cls, comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks, among: Integers
    ) -> PatternCounts:
        """Count all pairs of these confidential records with released ones in their blocks."""
        patterns = AgreementPatterns.from_comparisons(comparisons)
        ours, theirs = group_alike_records(comparisons, blocks, among)
        codes: PatternCodes = [np.zeros(0, dtype=np.int16) for _ in patterns.groups]
        pairs = np.zeros(0)
        for i, j in pairs_of_kinds(ours, theirs):
            seen = patterns.pattern_codes(ours.first_record[i], theirs.first_record[j])
            codes, pairs = _merge_equal_patterns(
                [np.concatenate(both) for both in zip(codes, seen, strict=True)],
                # Alike records are compared once and counted as often as they occur.
                np.concatenate([pairs, (ours.count[i] * theirs.count[j]).astype(np.float64)]),
            )
        return cls(among, patterns.levels_of_patterns(codes), pairs, tuple(one.level_count for one in comparisons))

    def select_variables(self, chosen: Sequence[int]) -> PatternCounts:
        """Return the counts for the variables at positions ``chosen``; equal patterns are not merged."""
        sizes = tuple(self.level_counts[k] for k in chosen)
        return PatternCounts(self.confidential_rows, self.levels[:, list(chosen)], self.pair_counts, sizes)

    def sum_by_level(self, pairs: Floats) -> list[Floats]:
        """Sum ``pairs`` (patterns,) by level of each variable, (levels,) each."""
        return [
            np.bincount(self.levels[:, k], weights=pairs, minlength=size).astype(np.float64)
            for k, size in enumerate(self.level_counts)
        ]

    def probabilities_of_others(self, m: Sequence[NDArray[Any]], least: float = 0.0) -> list[Floats]:
        """Return the level probabilities u of pairs of two people, given those of true pairs, ``m``.

        ``least`` is the smallest share of the pairs on a level that belong to two people.
        """
        all_pairs = self.sum_by_level(self.pair_counts)
        true = [
            np.minimum(own * len(self.confidential_rows), (1 - least) * one)
            for own, one in zip(m, all_pairs, strict=True)
        ]
        left = [one - own + 0.5 for one, own in zip(all_pairs, true, strict=True)]
        return [one / one.sum() for one in left]

    def add_smoothing_pairs(self) -> PatternCounts:
        """Return the counts with one more pair on each level of each variable, equal in all other variables."""
        # These keep every m above 0. Otherwise maximisation fails for a copy, where no true pair differs in anything.
        added = [
            [level if k == variable else 0 for k in range(len(self.level_counts))]
            for variable, size in enumerate(self.level_counts)
            for level in range(size)
        ]
        levels = np.concatenate([self.levels, np.array(added, dtype=np.int64)])
        return PatternCounts(
            self.confidential_rows, levels, np.concatenate([self.pair_counts, np.ones(len(added))]), self.level_counts
        )


def _merge_equal_patterns(codes: PatternCodes, pairs: Floats) -> tuple[PatternCodes, Floats]:
    """Return the distinct patterns with the sums of their pairs."""
    (which,), size = number_groups([[numbers] for numbers in codes], [len(codes[0])])
    first = first_records(which, size)
    sums = np.bincount(which, weights=pairs, minlength=len(first)).astype(np.float64)
    return [numbers[first] for numbers in codes], sums


def true_pair_weights(
    comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks, targets: Integers, counts: PatternCounts
) -> LevelWeights:
    """Return the weights of an intruder who knows the level frequencies of the true pairs of ``targets``, (t,)."""
    own = targets[blocks.confidential_blocks[targets] == blocks.released_blocks[targets]]
    true = [np.bincount(one.agreement_levels(own, own), minlength=one.level_count) + 0.5 for one in comparisons]
    m = [one / one.sum() for one in true]
    return tuple(map(_log_ratio_weights, m, counts.probabilities_of_others(m)))


def learn_weights(
    comparisons: Sequence[VariableComparison], blocks: ComparisonBlocks, counts: PatternCounts
) -> LevelWeights:
    """Return the weights that an intruder learns from the counted pairs without knowing which are true."""
    # Without a start that knows how rare agreement is, learning ends anywhere: pairs that agree independently teach
    # nothing.
    start = [np.array(START_PROBABILITIES[one.level_count]) for one in comparisons]
    u = counts.probabilities_of_others(start, least=0.5)
    candidates = blocks.released_counts[blocks.confidential_blocks[counts.confidential_rows]]
    if len(comparisons) < 2 or candidates.max() < 2:
        return tuple(map(_make_monotone, map(_log_ratio_weights, start, u)))
    m = _expectation_maximisation(counts.add_smoothing_pairs(), start, u, int(np.count_nonzero(candidates)))
    least = 0.5 / len(counts.confidential_rows)
    return tuple(_make_monotone(_log_ratio_weights(np.maximum(one, least), two)) for one, two in zip(m, u, strict=True))


def _expectation_maximisation(
    counts: PatternCounts, start: Sequence[Floats], u: Sequence[Floats], true: int
) -> list[Floats]:
    """Return the level probabilities m of true pairs.

    ``true`` of the pairs belong to one person, in addition to the smoothing pairs.
    """
    added = sum(counts.level_counts)
    share = (true + added) / counts.pair_counts.sum()
    m = list(start)
    for _ in range(ITERATIONS):
        odds = np.full(len(counts.pair_counts), np.log(share / (1 - share)))
        for k, (one, two) in enumerate(zip(m, u, strict=True)):
            odds += np.log(one / two)[counts.levels[:, k]]
        sums = counts.sum_by_level(counts.pair_counts * expit(odds))
        last, m = m, [one / one.sum() for one in sums]
        if max(np.abs(one - old).max() for one, old in zip(m, last, strict=True)) < CONVERGED:
            break
    return m


def _log_ratio_weights(m: NDArray[Any], u: NDArray[Any]) -> Floats:
    """Return the log2 ratios, rounded to multiples of ``WEIGHT_STEP``."""
    return np.asarray(np.rint(np.log2(m / u) / WEIGHT_STEP) * WEIGHT_STEP, dtype=np.float64)


def _make_monotone(weights: Floats) -> Floats:
    """Return weights that do not increase from nearer to farther levels."""
    # Whatever was learned, nearness is never evidence against a match.
    return np.asarray(np.maximum.accumulate(weights[::-1])[::-1])
