"""Records as their distinct rows, and the probabilities of the classes of a mixture for each row.

Records that are alike have the same class probabilities, which are computed once for every distinct row. Variables
stand in blocks, and the probability of a block in a class is computed once for every combination of its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.rows import distinct_rows

Codes = NDArray[np.int64]

PROBABILITIES_AT_ONCE = 40_000
"""Class probabilities that are held at a time: they stay in the processor's cache."""
COMBINATIONS = 512
"""Of the values of a block of variables, at least: as many logarithms are summed and exponentials taken for each class.
"""
SMALLEST_PROBABILITY = 1e-300
"""Of a probability that was drawn: its logarithm is finite."""


@dataclass(frozen=True, eq=False)
class VariableBlock:
    """A block of consecutive variables, whose values together have H combinations.

    combination: combination of each distinct row, (R,)
    first, last: first column and the one after the last of the variables' levels among the D of all
    level_indicators: 1 where a combination has a level, (levels of the block, H)
    records: records of each combination, (H,)
    """

    combination: Codes
    first: int
    last: int
    level_indicators: Floats
    records: Floats


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Records of q variables, as their R distinct rows.

    levels: number of levels of each variable; a code outside 0..levels - 1 is a missing value, (q,)
    counts: records of each row, (R,)
    place: row of each record, (n,)
    blocks: the rows, as blocks of variables
    """

    levels: tuple[int, ...]
    counts: Codes
    place: Codes
    blocks: tuple[VariableBlock, ...]

    @classmethod
    def from_codes(cls, codes: Sequence[Codes], levels: Sequence[int], records: int) -> DistinctRows:
        """Build from the codes (n,) of each variable, the rows in the order of their codes."""
        known = [
            np.where((own >= 0) & (own < size), own, size).astype(np.int64)
            for own, size in zip(codes, levels, strict=True)
        ]
        # Rows in the order of their codes, so that the order of the records has no effect on the draws.
        distinct = distinct_rows(known, records)
        counts = distinct.counts if records else np.zeros(1, dtype=np.int64)
        rows = [own[distinct.first] for own in known]
        return cls(tuple(levels), counts, distinct.combination_of, tuple(_split_into_blocks(rows, levels, counts)))

    @property
    def level_starts(self) -> Codes:
        """Return the first level of each variable among the D of all, and D, (q + 1,)."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)

    def log_block_probabilities(self, log_levels: Floats) -> list[Floats]:
        """Return for each block the log probability of each combination in each class, (K, H).

        ``log_levels`` (K, D) are log phi.
        """
        return [log_levels[:, block.first : block.last] @ block.level_indicators for block in self.blocks]

    def class_probabilities(
        self, log_weights: Floats, logs: Sequence[Floats]
    ) -> Iterator[tuple[slice, ClassProbabilities, Floats]]:
        """Yield, for chunks of rows, which rows they are, the probabilities of their classes, and log factors (rows,).

        ``log_weights`` (K,) are log pi, ``logs`` the ``log_block_probabilities``. Row r has the probability ``total *
        exp(log factor)``.
        """
        size, groups = len(log_weights), ClassGroups.from_size(len(log_weights))
        # Scaled by the largest in each block, so that products of many blocks do not underflow.
        shifts = [log.max(axis=0) for log in logs]
        tables = [groups.pad_classes(np.exp(log - shift).T) for log, shift in zip(logs, shifts, strict=True)]
        weights = groups.pad_classes(np.exp(log_weights)[None, :])
        if tables:
            tables[0] *= weights
        chunk = max(1, min(len(self.counts), PROBABILITIES_AT_ONCE // groups.padded_size))
        held, other = np.empty((2, chunk, groups.padded_size))
        for start in range(0, len(self.counts), chunk):
            rows = slice(start, min(start + chunk, len(self.counts)))
            of, count = [block.combination[rows] for block in self.blocks], rows.stop - rows.start
            found, short = held[:count], np.zeros(count)
            if not tables:
                found[:] = weights
            for number, (table, shift, own) in enumerate(zip(tables, shifts, of, strict=True)):
                np.take(table, own, axis=0, out=other[:count] if number else found, mode="clip")
                if number:
                    found *= other[:count]
                short += shift[own]
            upto = groups.cumulating @ found.T
            if (
                lost := np.flatnonzero(upto[-1] < SMALLEST_PROBABILITY**0.5)
            ).size:  # no class is near the best of every block
                # No class is near the best of every block: the product may have underflowed, and is summed in
                # logarithms.
                exact = self.log_joint_probabilities(log_weights, logs, lost + start)
                short[lost] = exact.max(axis=1)
                found[lost] = groups.pad_classes(np.exp(exact - short[lost, None]))
                upto[:, lost] = groups.cumulating @ found[lost].T
            yield rows, ClassProbabilities(found, upto, size), short

    def log_joint_probabilities(self, log_weights: Floats, logs: Sequence[Floats], which: Codes) -> Floats:
        """Return the log probability of each of these rows (k,) and each class together, (k, K)."""
        found = np.tile(log_weights, (len(which), 1))
        for log, block in zip(logs, self.blocks, strict=True):
            found += log.take(block.combination[which], axis=1).T
        return found

    def level_counts(self, which: Codes, weights: Floats) -> Floats:
        """Count the records with each level, (D,), where ``weights`` (k,) records have the rows ``which`` (k,)."""
        found = np.empty(int(self.level_starts[-1]))
        for block in self.blocks:
            found[block.first : block.last] = block.level_indicators @ np.bincount(
                block.combination[which], weights, len(block.records)
            )
        return found

    def draw_classes(self, log_weights: Floats, log_levels: Floats, rng: np.random.Generator) -> Codes:
        """Draw a class of each record given its row, (n,)."""
        order = np.argsort(self.place, kind="stable")
        u, found, done = rng.random(len(order)), np.empty(len(order), dtype=np.int64), 0
        for rows, chances, _ in self.class_probabilities(log_weights, self.log_block_probabilities(log_levels)):
            own = np.repeat(np.arange(rows.stop - rows.start), self.counts[rows])
            found[order[done : done + len(own)]] = chances.pick_classes(own, u[done : done + len(own)])
            done += len(own)
        return found


@dataclass(frozen=True)
class ClassGroups:
    """Groups of the K classes, padded with empty places: a draw finds its group first, then its class in the group.

    number: number of groups
    width: classes of a group
    cumulating: 1 where a class is in the group or one before, (number, number * width)
    """

    number: int
    width: int
    cumulating: Floats
    """(number, number * width): 1 where a class is in the group or one before."""

    @classmethod
    def from_size(cls, size: int) -> ClassGroups:
        """Make about as many groups as there are classes in each."""
        # A draw then looks at about 2 sqrt(K) sums in place of K.
        width = math.isqrt(size)
        number = -(-size // width)
        own = np.arange(number * width)[:, None] // width
        return cls(number, width, (own <= np.arange(number)).T.astype(np.float64))

    @property
    def padded_size(self) -> int:
        return self.number * self.width

    def pad_classes(self, chances: Floats) -> Floats:
        """Return probabilities (rows, K) with 0 in the places beyond the last class, (rows, number * width)."""
        found = np.zeros((len(chances), self.padded_size))
        found[:, : chances.shape[1]] = chances
        return found


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Probabilities of ``size`` classes for each of some rows; they need not sum to 1.

    each: probability of each class, (rows, number * width)
    upto: probabilities cumulated over groups, (number, rows)
    size: number of classes
    """

    each: Floats
    upto: Floats
    size: int

    @property
    def row_totals(self) -> Floats:
        return np.asarray(self.upto[-1])

    def totals_of_first(self, first: int) -> Floats:
        """Return the total of the ``first`` classes, (rows,), at least the smallest number that has a logarithm."""
        if first == self.size:
            return self.row_totals
        return np.maximum(self.row_totals - self.each[:, first], SMALLEST_PROBABILITY)

    def pick_classes(self, own: Codes | None, u: Floats) -> Codes:
        """Return the class at which each uniform number ``u`` (k,) falls, (k,).

        ``own`` (k,) is the row of each number, by default each row in turn.
        """
        upto = self.upto if own is None else self.upto.take(own, axis=1)
        number = len(upto)
        at = u * upto[-1]
        group = _count_passed_ends(upto[:-1], at)
        before = upto.take(np.maximum(group - 1, 0) * upto.shape[1] + np.arange(len(at)))
        at -= np.where(group > 0, before, 0.0)
        row = np.arange(len(self.each)) if own is None else own
        inside = np.ascontiguousarray(
            self.each.reshape(len(self.each) * number, -1).take(row * number + group, axis=0).T
        )
        for place in range(1, len(inside) - 1):
            inside[place] += inside[place - 1]
        return np.asarray(np.minimum(group * len(inside) + _count_passed_ends(inside[:-1], at), self.size - 1))

    def draw_class_counts(self, rows: Codes, counts: Codes, rng: np.random.Generator) -> Codes:
        """Draw the numbers of ``counts`` (k,) records of these rows that fall in each class, (k, K)."""
        own = self.each[rows, : self.size]
        return np.asarray(rng.multinomial(counts, own / own.sum(axis=1, keepdims=True)))


def _split_into_blocks(rows: Sequence[Codes], levels: Sequence[int], counts: Codes) -> Iterator[VariableBlock]:
    """Split the variables into blocks of consecutive ones, and yield them; a block has few combinations."""
    most = max(COMBINATIONS, len(counts) // 32)
    starts = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    begin, of = 0, np.zeros(len(counts), dtype=np.int64)
    for j, size in enumerate(levels):
        names, more = np.unique(of * (size + 1) + rows[j], return_inverse=True)
        if j > begin and len(names) > most:
            yield _make_block(rows, levels, counts, starts, of, begin, j)
            begin, more = j, np.unique(rows[j], return_inverse=True)[1]
        of = more.ravel()
    if levels:
        yield _make_block(rows, levels, counts, starts, of, begin, len(levels))


def _make_block(
    rows: Sequence[Codes], levels: Sequence[int], counts: Codes, starts: Codes, of: Codes, begin: int, end: int
) -> VariableBlock:
    """Make the block of the variables from ``begin`` to before ``end``, given the combination of each row, ``of``."""
    records = np.bincount(of, counts).astype(np.float64)
    shown = np.zeros((int(starts[end] - starts[begin]), len(records)))
    for j in range(begin, end):
        here = rows[j] < levels[j]
        shown[starts[j] - starts[begin] + rows[j][here], of[here]] = 1.0
    return VariableBlock(of, int(starts[begin]), int(starts[end]), shown, records)


def _count_passed_ends(ends: Floats, at: Floats) -> Codes:
    """Count the ascending ``ends`` (g, k) that lie at or before each of ``at`` (k,)."""
    found = np.zeros(len(at), dtype=np.int64)
    for end in ends:
        found += end <= at
    return found


def draw_levels_given_classes(classes: Codes, log_levels: Floats, rng: np.random.Generator) -> Codes:
    """Draw a level of one variable for records of these classes (n,), (n,); ``log_levels`` (K, d) are its log phi."""
    upto = np.cumsum(np.exp(log_levels), axis=1)
    size = upto.shape[1]
    # Class k has the stretch from k to k + 1, so that one binary search serves all classes.
    ends = (np.arange(len(upto))[:, None] + upto / upto[:, -1:]).ravel()
    found = np.searchsorted(ends, classes + rng.random(len(classes)), side="right") - classes * size
    return np.asarray(np.clip(found, 0, size - 1), dtype=np.int64)
