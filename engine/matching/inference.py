"""What an intruder infers of a record from the released ones that agree with it on what is known (Park & Ghosh §4.4).

Where no released record agrees on all known variables, the nearest are asked: those that agree on as many as any does.
They fall apart into those that agree on each set of so many variables, and no record is in two of these, so counts and
sums over the sets add up: time and memory grow with the records, not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..arrays import Floats, Integers
from ..partition.equivalence_classes import equivalence_classes

Codes = Sequence[Integers]
"""A code a record for each known variable, equal for equal values of either table."""


@dataclass(frozen=True, eq=False)
class Agreeing:
    """The released records that each of n records is inferred from.

    ``query`` (n,) numbers the combinations of known values; ``sums`` (queries, 1 + F) hold of each how many released
    records it is inferred from and the sums of their F features. ``candidates`` (n,) are those that agree on all.
    """

    query: Integers
    sums: sparse.csr_array
    candidates: Integers

    @classmethod
    def of(cls, ours: Codes, theirs: Codes, features: sparse.csr_array, *, nearest: bool) -> Agreeing:
        """Sums of features (m, F) for n records; where none agrees on all d variables, of the nearest, or else of all.

        Args:
            ours: d codes (n,) each.
            theirs: d codes (m,) each, m at least 1.
            features: a row of F numbers a released record.
            nearest: what is asked where no record agrees on all: those that agree on most variables, or all.
        """
        query, asked = _distinct(ours, len(ours[0]))
        cell, offered = _distinct(theirs, features.shape[0])
        counted = sparse.hstack([np.ones((features.shape[0], 1)), features], format="csr")
        table = sparse.csr_array(_membership(cell, len(offered[0])) @ counted)
        blocks, rows, left = [], [], np.arange(len(asked[0]))
        candidates = np.zeros(len(asked[0]), dtype=np.int64)
        for size in range(len(ours), -1, -1) if nearest else (len(ours), 0):
            found = _agreeing_on(size, [codes[left] for codes in asked], offered, table)
            there = found[:, [0]].toarray().ravel()
            if size == len(ours):
                candidates[left] = there.astype(np.int64)
            blocks.append(found[there > 0])
            rows.append(left[there > 0])
            left = left[there == 0]
            if not len(left):
                break
        order = np.argsort(np.concatenate(rows))
        sums = sparse.csr_array(sparse.vstack(blocks, format="csr")[order])
        sums.sort_indices()
        return cls(query, sums, candidates[query])

    def means(self) -> Floats:
        """The mean of the one feature that there is, for each record (n,)."""
        dense = self.sums.toarray()
        return np.asarray((dense[:, 1] / dense[:, 0])[self.query])

    def probability_of_mode(self, values: Integers) -> Floats:
        """How probable it is that the most frequent feature is number ``values`` (n,), features being indicators.

        One of several equally frequent ones is picked at random: 0, 1, or a fraction.
        """
        width = self.sums.shape[1]
        row = np.repeat(np.arange(self.sums.shape[0]), np.diff(self.sums.indptr))
        own = self.sums.indices > 0
        row, column, count = row[own], self.sums.indices[own].astype(np.int64), self.sums.data[own]
        largest = np.zeros(self.sums.shape[0])
        np.maximum.at(largest, row, count)
        modes = count == largest[row]
        ties = np.bincount(row[modes], minlength=len(largest))
        keys = row[modes] * width + column[modes]
        wanted = self.query * width + values + 1
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray(np.where(keys[place] == wanted, 1 / ties[self.query], 0.0))


def indicators(values: Integers, width: int) -> sparse.csr_array:
    """Features (m, width): 1 in the column of each value (m,)."""
    return sparse.csr_array((np.ones(len(values)), (np.arange(len(values)), values)), shape=(len(values), width))


def number(values: Floats) -> sparse.csr_array:
    """One feature, the value itself: (m, 1)."""
    return sparse.csr_array(values[:, None])


def _distinct(codes: Codes, records: int) -> tuple[Integers, list[Integers]]:
    """The combination of each record, and the codes of each combination."""
    combination = equivalence_classes(codes, records)
    first = np.unique(combination, return_index=True)[1]
    return combination, [column[first] for column in codes]


def _membership(group: Integers, groups: int) -> sparse.csr_array:
    """(groups, n): 1 where a record is of the group."""
    return sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group)))


def _agreeing_on(size: int, asked: Codes, offered: Codes, table: sparse.csr_array) -> sparse.csr_array:
    """Sums over the offered combinations that agree on some ``size`` of the variables, each set of them by itself."""
    queries: int = len(asked[0])
    total = sparse.csr_array((queries, table.shape[1]))
    for chosen in combinations(range(len(asked)), size):
        both = [np.concatenate([asked[j], offered[j]]) for j in chosen]
        group: NDArray[np.int64] = equivalence_classes(both, queries + table.shape[0])
        sums = sparse.csr_array(_membership(group[queries:], int(group.max()) + 1) @ table)
        total = total + sums[group[:queries]]
    return sparse.csr_array(total)
