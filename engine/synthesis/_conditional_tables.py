"""Sparse tables of how often each category of a feature occurs with each key of the other features ("statistical
building blocks").

Park & Ghosh §3.2: a feature's key is the first ``hash_size`` of the others, in an order, and one bit hashed from the
rest. Only keys and cells that occur are held, at most n of each, whatever the size of the domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers

LARGEST_KEY = 2**62
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class FeatureKey:
    """The features on which a feature is conditioned.

    named: features that enter one by one
    sizes: categories of each of these
    hashed: features that enter as one bit together
    """

    named: tuple[str, ...]
    sizes: tuple[int, ...]
    hashed: tuple[str, ...]

    @property
    def n_values(self) -> int:
        """Return the number of values that the key can have."""
        space = 2 if self.hashed else 1
        for size in self.sizes:
            space *= size
        return space

    def key_of_records(self, codes: Mapping[str, Integers], records: int) -> Integers:
        """Return the key of each record, (records,)."""
        key = np.zeros(records, dtype=np.int64)
        for name, size in zip(self.named, self.sizes, strict=True):
            key = key * size + codes[name]
        return key * 2 + hash_to_bit([codes[name] for name in self.hashed], records) if self.hashed else key


def hash_to_bit(codes: Sequence[Integers], records: int) -> Integers:
    """Return a bit for each record, (records,), that depends on all of its codes: the 1-bit hash of §3.2."""
    # A fixed mixer, not Python's salted ``hash``: the keys of a fit must be the same wherever it is drawn from.
    state = np.zeros(records, dtype=np.uint64)
    for code in codes:
        state = (state ^ code.astype(np.uint64)) * HASH_MULTIPLIER
        state ^= state >> np.uint64(29)
    return ((state * HASH_MULTIPLIER) >> np.uint64(63)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ConditionalTable:
    """Sparse counts of a feature by key: row r has key ``keys[r]`` and the cells ``starts[r]:starts[r + 1]``.

    size: number of categories
    keys: key of each row, (rows,)
    starts: first cell of each row, and their number, (rows + 1,)
    categories: category of each cell, (cells,)
    upto: records of this and all cells before it, over all rows, (cells,)
    """

    size: int
    keys: Integers
    starts: Integers
    categories: Integers
    upto: Integers

    @classmethod
    def from_records(cls, keys: Integers, codes: Integers, size: int) -> ConditionalTable:
        """Count the records with each key and category, given both for each record, (n,)."""
        cells, counts = np.unique(keys * size + codes, return_counts=True)
        rows, starts = np.unique(cells // size, return_index=True)
        return cls(size, rows, np.append(starts, len(cells)).astype(np.int64), cells % size, np.cumsum(counts))

    @property
    def records_before(self) -> Integers:
        """Return the number of records before each row, and in all, (rows + 1,)."""
        return np.concatenate([[0], self.upto])[self.starts]

    def find_rows(self, keys: Integers) -> Integers:
        """Return the row of each key, (k,); the number of rows for a key that no record has."""
        places = np.searchsorted(self.keys, keys)
        found = self.keys[np.minimum(places, len(self.keys) - 1)] == keys
        return np.where(found, places, len(self.keys))

    def draw_categories(
        self, rows: Integers, uniform: Floats, rng: np.random.Generator
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Draw a category for each of these rows, (k,), from its records or uniformly over all categories.

        ``uniform`` (rows + 1,) has the probabilities of a uniform draw, the last that of keys that no record has, which
        must be 1. Returns the categories, and which of them come from records.
        """
        drawn = rng.integers(self.size, size=len(rows))
        counted = rng.random(len(rows)) >= uniform[rows]
        before = self.records_before
        low, high = before[rows[counted]], before[rows[counted] + 1]
        # A record of the row is drawn by its number, which ``upto`` turns into its category without a list of records.
        record = low + np.floor(rng.random(len(low)) * (high - low)).astype(np.int64)
        drawn[counted] = self.categories[np.searchsorted(self.upto, np.minimum(record, high - 1), side="right")]
        return drawn, counted

    def draw_probabilities(self, uniform: Floats) -> Floats:
        """Return the probability of each category in ``draw_categories``, (rows + 1, size)."""
        counts = np.zeros((len(self.keys) + 1, self.size))
        row = np.repeat(np.arange(len(self.keys)), np.diff(self.starts))
        counts[row, self.categories] = np.diff(self.upto, prepend=0)
        share: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return (1 - uniform[:, None]) * share + uniform[:, None] / self.size

    def uniform_share_by_virtual_records(self, alpha: float) -> Floats:
        """Return the probability of a uniform draw, (rows + 1,), for ``alpha`` virtual records in each category.

        It is C alpha / (N + C alpha), with N records of the row and C categories (eq. 4).
        """
        virtual = self.size * alpha
        return np.append(virtual / (np.diff(self.records_before) + virtual), 1.0)

    def uniform_share_by_entropy(self, least: float) -> Floats:
        """Return the least probability of a uniform draw, (rows + 1,), for an entropy of ``least`` nats (§3.3 B)."""
        counts = np.diff(self.upto, prepend=0)
        row = np.repeat(np.arange(len(self.keys)), np.diff(self.starts))
        share, cells = counts / np.diff(self.records_before)[row], np.diff(self.starts)

        def entropy(mixed: Floats) -> Floats:
            """Return the entropy of each row for these probabilities of a uniform draw, (rows,)."""
            own = (1 - mixed[row]) * share + mixed[row] / self.size
            rest = mixed / self.size
            lacking = np.where(rest > 0, -(self.size - cells) * rest * np.log(np.maximum(rest, 1e-300)), 0.0)
            found: Floats = np.add.reduceat(-own * np.log(own), self.starts[:-1]) + lacking
            return found

        low, high = np.zeros(len(self.keys)), np.ones(len(self.keys))
        high[entropy(low) >= least] = 0.0
        # The entropy grows with the probability of a uniform draw, up to log C, so that bisection finds the least.
        for _ in range(60):
            middle = (low + high) / 2
            enough = entropy(middle) >= least
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.append(high, 1.0)

    def to_arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the table's arrays by name, with a prefix, to be stored."""
        named = {"keys": self.keys, "starts": self.starts, "categories": self.categories, "upto": self.upto}
        return {f"{prefix}.{name}": array for name, array in named.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str, size: int) -> ConditionalTable:
        """Read the table from arrays that ``to_arrays`` made."""
        names = ("keys", "starts", "categories", "upto")
        return cls(size, *(np.asarray(arrays[f"{prefix}.{name}"], dtype=np.int64) for name in names))


def mutual_information(first: Integers, second: Integers, sizes: tuple[int, int]) -> float:
    """Return the mutual information of two features in nats, from their counts."""
    joint = np.bincount(first * sizes[1] + second, minlength=sizes[0] * sizes[1]).reshape(sizes) / len(first)
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float(max(0.0, (joint[seen] * np.log(joint[seen] / outer[seen])).sum()))
