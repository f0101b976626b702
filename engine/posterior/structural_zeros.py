"""A mixture of products of multinomials without impossible combinations of values (Manrique-Vallier & Reiter 2014).

With f the mixture and S the impossible combinations, a record has the density f(x) / (1 - omega) outside S and 0
inside, omega = Pr(x in S) by f. S is cut into disjoint slices, each a set of levels for every variable. As if n0
records of f had fallen into S and been lost, the posterior is that of the mixture by n + n0 records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.rows import distinct_rows
from ..errors import NotComputable
from .distinct_rows import SMALLEST_PROBABILITY, Codes, DistinctRows, draw_levels_given_classes

Slices = NDArray[np.bool_]

MOST_SLICES = 2000
TRIES = 8
"""Draws of a record that fall into S, before it is drawn among the possible slices alone."""
PROBABILITIES_AT_ONCE = 2_000_000
"""Probabilities of slice and class that are held at a time."""


class TooManySlices(ValueError):
    """Error: the conditions overlap in more than ``MOST_SLICES`` ways."""


def fulfilled_conditions(conditions: Slices, starts: Codes, codes: Sequence[Codes]) -> Slices:
    """Return which records fulfil which conditions, (conditions, n), by the records' codes, (n,) for each variable.

    A code beyond the levels, which is a missing value, is in no set but that of all levels.
    """
    found = np.ones((len(conditions), len(codes[0])), dtype=np.bool_)
    for i, condition in enumerate(conditions):
        for own, first, past in zip(codes, starts[:-1], starts[1:], strict=True):
            levels = condition[first:past]
            if not levels.all():
                found[i] &= np.append(levels, np.False_)[np.minimum(own, len(levels))]
    return found


@dataclass(frozen=True, eq=False)
class MixtureSupport:
    """Possible and impossible combinations of values, as disjoint slices.

    starts: first level of each variable, (q + 1,)
    zeros: slices of S, (C, D)
    possible: slices of all else, (P, D)
    """

    starts: Codes
    zeros: Slices
    possible: Slices

    @classmethod
    def from_conditions(cls, conditions: Slices, levels: Sequence[int]) -> MixtureSupport:
        """Build from the levels of each condition, (conditions, D). Raises TooManySlices."""
        starts = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
        zeros: list[Slices] = []
        possible = [np.ones(int(starts[-1]), dtype=np.bool_)]
        for condition in conditions:
            pieces = [condition] if _has_combinations(condition, starts) else []
            # Each condition loses what earlier ones have: disjoint slices have probabilities that can be summed.
            for other in zeros:
                pieces = [part for piece in pieces for part in _subtract_slice(piece, other, starts)]
                _require_few_slices(pieces)
            zeros += pieces
            possible = [part for piece in possible for part in _subtract_slice(piece, condition, starts)]
            _require_few_slices(zeros)
            _require_few_slices(possible)
        shape = (-1, int(starts[-1]))
        return cls(
            starts, np.array(zeros, dtype=np.bool_).reshape(shape), np.array(possible, dtype=np.bool_).reshape(shape)
        )

    @property
    def condition_variables(self) -> list[int]:
        """List the variables that some condition is about."""
        return [j for j in range(len(self.starts) - 1) if not self._levels_of_variable(self.zeros, j).all()]

    def _levels_of_variable(self, slices: Slices, j: int) -> Slices:
        """Return the columns of slices that belong to variable j."""
        return slices[:, self.starts[j] : self.starts[j + 1]]

    def slice_probabilities(self, slices: Slices, weights: Floats, phi: Floats) -> Floats:
        """Return the probability of each slice and class, (slices, K), given ``weights`` (K,) and ``phi`` (K, D)."""
        found = np.tile(weights, (len(slices), 1))
        for j in self.condition_variables:
            # In class k a slice has the probability of a product of sums: omega_ck = pi_k prod_j sum_(l in slice c)
            # phi_kjl. Other variables have all levels, and a factor of 1.
            found *= self._levels_of_variable(slices, j) @ phi[:, self.starts[j] : self.starts[j + 1]].T
        return found

    def draw_lost_records(
        self, log_weights: Floats, log_levels: Floats, records: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats, float]:
        """Draw the records that fell into S while ``records`` did not.

        Returns how many are in each class (K,), with each level (K, D), and log(1 - omega).
        """
        phi = np.exp(log_levels)
        chances = self.slice_probabilities(self.zeros, np.exp(log_weights), phi)
        omega = min(float(chances.sum()), 1.0 - 1e-9)
        levels = np.zeros_like(phi)
        # Failures of probability omega before n successes (prior 1 / N of N = n + n0).
        count = int(rng.negative_binomial(records, 1.0 - omega)) if omega > 0 else 0
        if not count:
            return np.zeros(len(phi)), levels, float(np.log1p(-omega))
        # Each lost record has a slice and a class by omega_ck, and levels by phi within its slice. Only their counts
        # are needed.
        own = rng.multinomial(count, (chances / chances.sum()).ravel()).reshape(chances.shape)
        for j in range(len(self.starts) - 1):
            here = slice(self.starts[j], self.starts[j + 1])
            zeros = self.zeros[:, here]
            distinct = distinct_rows(zeros.T, len(zeros))
            sets = zeros[distinct.first]
            counts = np.zeros((len(sets), len(phi)), dtype=np.int64)
            np.add.at(counts, distinct.combination_of, own)
            within = phi[None, :, here] * sets[:, None, :] + SMALLEST_PROBABILITY * sets[:, None, :]
            levels[:, here] = rng.multinomial(counts, within / within.sum(axis=2, keepdims=True)).sum(axis=0)
        return own.sum(axis=0).astype(np.float64), levels, float(np.log1p(-omega))

    def complete_records(
        self,
        rows: DistinctRows,
        codes: Sequence[Codes],
        log_weights: Floats,
        log_levels: Floats,
        rng: np.random.Generator,
    ) -> tuple[Codes, list[Codes]]:
        """Draw a class (n,) and the missing values of each record, by f given its values and that it is not in S.

        ``codes`` (n,) of each variable are those of ``rows``; a code beyond the levels is missing, and is drawn.

        Raises:
            NotComputable: where the values of a record leave no combination.
        """
        found, classes = [own.copy() for own in codes], np.empty(len(rows.place), dtype=np.int64)
        left = np.arange(len(rows.place))
        for _ in range(TRIES):
            if not len(left):
                return classes, found
            own = replace(
                rows, place=rows.place[left], counts=np.bincount(rows.place[left], minlength=len(rows.counts))
            )
            classes[left] = own.draw_classes(log_weights, log_levels, rng)
            for j, values in enumerate(found):
                first, past = self.starts[j], self.starts[j + 1]
                lacking = left[codes[j][left] >= past - first]
                values[lacking] = draw_levels_given_classes(classes[lacking], log_levels[:, first:past], rng)
            # Rejection is quick as long as S has little probability; what is left is drawn among the possible slices.
            left = left[fulfilled_conditions(self.zeros, self.starts, [values[left] for values in found]).any(axis=0)]
        for some in np.array_split(
            left, -(-len(left) * self.possible.shape[0] * len(log_weights) // PROBABILITIES_AT_ONCE) or 1
        ):
            self._complete_by_slices(some, codes, found, classes, np.exp(log_weights), np.exp(log_levels), rng)
        return classes, found

    def _complete_by_slices(
        self,
        which: Codes,
        codes: Sequence[Codes],
        found: Sequence[Codes],
        classes: Codes,
        weights: Floats,
        phi: Floats,
        rng: np.random.Generator,
    ) -> None:
        """Draw slice and class of these records (k,), then missing values within the slice, in place."""
        if not len(which):
            return
        chances = np.tile(weights, (len(which), len(self.possible), 1))
        for j, own in enumerate(codes):
            sets, levels = self._levels_of_variable(self.possible, j), phi[:, self.starts[j] : self.starts[j + 1]]
            has = own[which] < levels.shape[1]
            has_codes = own[which[has]]
            chances[has] *= levels[:, has_codes].T[:, None, :] * sets[:, has_codes].T[:, :, None]
            chances[~has] *= sets @ levels.T
        upto = np.cumsum(chances.reshape(len(which), -1), axis=1)
        if (upto[:, -1] <= 0).any():
            raise NotComputable("what is kept of a record leaves it no combination that can be")
        at = (upto[:, :-1] <= (rng.random(len(which)) * upto[:, -1])[:, None]).sum(axis=1)
        place, classes[which] = np.divmod(at, len(weights))
        for j, values in enumerate(found):
            here = slice(self.starts[j], self.starts[j + 1])
            lacking = codes[j][which] >= here.stop - here.start
            within = np.cumsum(phi[classes[which[lacking]], here] * self.possible[place[lacking], here], axis=1)
            values[which[lacking]] = (within <= (rng.random(int(lacking.sum())) * within[:, -1])[:, None]).sum(axis=1)


def _has_combinations(condition: Slices, starts: Codes) -> bool:
    """Return whether a slice contains any combination: it has a level of every variable."""
    return bool(np.logical_or.reduceat(condition, starts[:-1]).all())


def _subtract_slice(piece: Slices, other: Slices, starts: Codes) -> Iterator[Slices]:
    """Yield disjoint slices whose union is one slice without another."""
    if not _has_combinations(piece & other, starts):
        yield piece
        return
    rest = piece.copy()
    for first, past in pairwise(starts):
        outside = rest[first:past] & ~other[first:past]
        if outside.any():
            part = rest.copy()
            part[first:past] = outside
            yield part
            rest[first:past] &= other[first:past]


def _require_few_slices(slices: Sequence[Slices]) -> None:
    """Raise TooManySlices if there are more than ``MOST_SLICES``."""
    if len(slices) > MOST_SLICES:
        raise TooManySlices


@dataclass(frozen=True, eq=False)
class SupportTruncation:
    """Data that a Gibbs sweep needs of impossible combinations.

    support: possible and impossible combinations
    records: number of records in all
    lacking: distinct rows of the records that lack a value that a condition is about; a sweep draws their values too
    codes: codes of these records in each variable, (n,)
    """

    support: MixtureSupport
    records: int
    lacking: DistinctRows
    codes: tuple[Codes, ...]

    def draw_sweep(
        self, log_weights: Floats, log_levels: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats, Floats, float]:
        """Draw the records of one sweep that were lost or lack a value.

        Returns the records (K,) and levels (K, D) of both together, the lost ones alone (K,), and the addition to the
        log likelihood of complete records by f. Missing values are summed over there as if nothing were impossible.
        """
        support = self.support
        lost, levels, log_possible = support.draw_lost_records(log_weights, log_levels, self.records, rng)
        records, more = lost.copy(), -self.records * log_possible
        if len(self.lacking.place):
            classes, values = support.complete_records(self.lacking, self.codes, log_weights, log_levels, rng)
            records += np.bincount(classes, minlength=len(records))
            asked = set(support.condition_variables)
            for j, (own, drawn) in enumerate(zip(self.codes, values, strict=True)):
                first, past = support.starts[j], support.starts[j + 1]
                of = drawn if j in asked else own
                here = of < past - first
                np.add.at(levels, (classes[here], first + of[here]), 1.0)
            for rows, chances, short in self.lacking.class_probabilities(
                log_weights, self.lacking.log_block_probabilities(log_levels)
            ):
                more += float(self.lacking.counts[rows] @ (np.log(chances.row_totals) + short))
        return records, levels, lost, more
