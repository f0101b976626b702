"""Match weights: how much the level of a variable speaks for one person (Fellegi & Sunter 1969).

A pair whose variables are on levels l_1, ..., l_K has the match weight  w = sum_k log2(m_k(l_k) / u_k(l_k)). Pairs of one person are on each
level with probability m_k, pairs of two people with probability u_k. An intruder who knows that everybody of the file was released learns both
from pairs alone. The level frequencies of all pairs give u; expectation and maximisation over the counted agreement patterns gives m (Winkler
1988), with one true pair a record. It starts from people who look like themselves and others as all pairs do. Where values agree by
themselves alone pairs teach nothing, and without a start that knows how rare an agreement is learning ends anywhere.

splink 5.0.0 learns the same weights; ``tests/engine/matching/test_splink.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from ..data.arrays import Floats, Integers
from .blocks import Blocks, alike, pairs_of
from .comparisons import Codes, Comparison, Patterns

FINEST = 2.0**-20
"""Weights are whole multiples of it, so that sums of equal weights are equal in whatever order."""
TRAINED_ON = 2_000_000
"""Pairs that weights are learned from, at most: those of so many confidential records as have so few."""
START = {2: (0.9, 0.1), 4: (0.5, 0.3, 0.1, 0.1)}
"""m by level before anything is learned: people look like themselves. It decides where pairs teach nothing, such as where one variable alone is true."""
CONVERGED = 2e-3
"""Learning ends when no m changes by this much."""
ITERATIONS = 15
"""Learning ends after this many steps in any case."""

Weights = tuple[Floats, ...]
"""The weight of each level, (levels,), of every comparison."""


@dataclass(frozen=True, eq=False)
class PatternCounts:
    """How many pairs of the records ``among``, (t,), show each agreement pattern.

    ``levels`` (patterns, variables) are the patterns that occur, ``pairs`` (patterns,) their counts, ``sizes`` the levels of each variable.
    """

    among: Integers
    levels: Integers
    pairs: Floats
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, comparisons: Sequence[Comparison], blocks: Blocks, among: Integers) -> PatternCounts:
        """All pairs of these records. Records of one kind are compared once and counted as often as they occur."""
        patterns = Patterns.among(comparisons)
        ours, theirs = alike(comparisons, blocks, among)
        codes: Codes = [np.zeros(0, dtype=np.int16) for _ in patterns.groups]
        pairs = np.zeros(0)
        for i, j in pairs_of(ours, theirs):
            seen = patterns.of(ours.first[i], theirs.first[j])
            codes, pairs = _counted(
                [np.concatenate(both) for both in zip(codes, seen, strict=True)],
                np.concatenate([pairs, (ours.count[i] * theirs.count[j]).astype(np.float64)]),
            )
        return cls(among, patterns.levels(codes), pairs, tuple(one.levels for one in comparisons))

    def of_variables(self, chosen: Sequence[int]) -> PatternCounts:
        """Return the same pairs as variables ``chosen``, by place, show them; patterns that are equal in these are not added up."""
        sizes = tuple(self.sizes[k] for k in chosen)
        return PatternCounts(self.among, self.levels[:, list(chosen)], self.pairs, sizes)

    def by_level(self, pairs: Floats) -> list[Floats]:
        """Sums of ``pairs`` (patterns,) on each level of each variable, (levels,)."""
        return [
            np.bincount(self.levels[:, k], weights=pairs, minlength=size).astype(np.float64)
            for k, size in enumerate(self.sizes)
        ]

    def others(self, m: Sequence[NDArray[Any]], least: float = 0.0) -> list[Floats]:
        """The probabilities u of each level, where pairs of one person have the probabilities ``m``.

        ``least`` is the smallest share of the pairs on a level that are of two people.
        """
        all_pairs = self.by_level(self.pairs)
        true = [np.minimum(own * len(self.among), (1 - least) * one) for own, one in zip(m, all_pairs, strict=True)]
        left = [one - own + 0.5 for one, own in zip(all_pairs, true, strict=True)]
        return [one / one.sum() for one in left]

    def smoothed(self) -> PatternCounts:
        """With one more pair on each level of each variable that is equal in all others.

        These keep every m above 0. Otherwise maximisation fails for a copy, where no true pair differs in anything.
        """
        added = [
            [level if k == variable else 0 for k in range(len(self.sizes))]
            for variable, size in enumerate(self.sizes)
            for level in range(size)
        ]
        levels = np.concatenate([self.levels, np.array(added, dtype=np.int64)])
        return PatternCounts(self.among, levels, np.concatenate([self.pairs, np.ones(len(added))]), self.sizes)


def _counted(codes: Codes, pairs: Floats) -> tuple[Codes, Floats]:
    """Each pattern once, with the sum of its pairs."""
    joint = codes[0].astype(np.int64)
    for numbers in codes[1:]:
        joint = pd.factorize(joint)[0] * (int(numbers.max(initial=0)) + 1) + numbers
    which, distinct = pd.factorize(joint)
    first = np.empty(len(distinct), dtype=np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    sums = np.bincount(which, weights=pairs, minlength=len(first)).astype(np.float64)
    return [numbers[first] for numbers in codes], sums


def true_pair_weights(
    comparisons: Sequence[Comparison], blocks: Blocks, targets: Integers, counts: PatternCounts
) -> Weights:
    """Weights of an intruder who knows how often true pairs are on each level, those of ``targets``, (t,)."""
    own = targets[blocks.ours[targets] == blocks.theirs[targets]]
    true = [np.bincount(one.level(own, own), minlength=one.levels) + 0.5 for one in comparisons]
    m = [one / one.sum() for one in true]
    return tuple(map(_weights, m, counts.others(m)))


def learned_weights(comparisons: Sequence[Comparison], blocks: Blocks, counts: PatternCounts) -> Weights:
    """Weights of an intruder who learns them from the counted pairs, without knowing which are true."""
    start = [np.array(START[one.levels]) for one in comparisons]
    u = counts.others(start, least=0.5)
    candidates = blocks.sizes[blocks.ours[counts.among]]
    if len(comparisons) < 2 or candidates.max() < 2:
        return tuple(map(_monotone, map(_weights, start, u)))
    m = _expectation_maximisation(counts.smoothed(), start, u, int(np.count_nonzero(candidates)))
    least = 0.5 / len(counts.among)
    return tuple(_monotone(_weights(np.maximum(one, least), two)) for one, two in zip(m, u, strict=True))


def _expectation_maximisation(
    counts: PatternCounts, start: Sequence[Floats], u: Sequence[Floats], true: int
) -> list[Floats]:
    """The probabilities m of each level. ``true`` of the pairs are of one person, beside those that smooth."""
    added = sum(counts.sizes)
    share = (true + added) / counts.pairs.sum()
    m = list(start)
    for _ in range(ITERATIONS):
        odds = np.full(len(counts.pairs), np.log(share / (1 - share)))
        for k, (one, two) in enumerate(zip(m, u, strict=True)):
            odds += np.log(one / two)[counts.levels[:, k]]
        sums = counts.by_level(counts.pairs * expit(odds))
        last, m = m, [one / one.sum() for one in sums]
        if max(np.abs(one - old).max() for one, old in zip(m, last, strict=True)) < CONVERGED:
            break
    return m


def _weights(m: NDArray[Any], u: NDArray[Any]) -> Floats:
    return np.asarray(np.rint(np.log2(m / u) / FINEST) * FINEST, dtype=np.float64)


def _monotone(weights: Floats) -> Floats:
    """Weights of which a nearer level never has a smaller one: whatever was learned, to be nearer speaks against nobody."""
    return np.asarray(np.maximum.accumulate(weights[::-1])[::-1])
