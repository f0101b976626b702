"""Rows of people that a release repeats more often than any release with independently drawn rows can.

A row that stands once in the joint table and once in a dataset is a coincidence. Let N people be independent draws of the population p and
the r released rows independent draws of any distribution q, which a model of whatever kind has. The expected number of coincidences
is the sum over possible rows of N p exp(-N p) r q exp(-r q). By Cauchy and Schwarz it is at most twice the root of the expected numbers of rows
that occur exactly twice in the one and in the other, and so at most their sum. Given coincidences and such pairs together, the coincidences are
at most binomial with probability one half.

So nothing is taken from the distribution of the data, and no hold-out is needed: nine copied people are beyond .002 where no row occurs twice.
The bound rests on rows that are drawn independently of each other. A release without repeated rows on purpose has no pairs: the hold-out,
where there is one, has to agree weakly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Integers
from .cells import Keys, counted_keys, occurrences
from .evidence import holdout_probability

WEAK = 0.2
"""What the hold-out alone must show at least: a fifth of all people as hold-out misses all of nine copied ones with probability .13."""


@dataclass(frozen=True, eq=False)
class RowCoincidences:
    """Rows of some columns that stand once in the joint table and once in a dataset.

    what: the columns, in words
    records: rows of the joint table, (x,)
    pairs: rows that occur exactly twice, in the joint table and in the dataset together
    is_whole: whether these are all columns
    """

    what: str
    records: Integers
    pairs: int
    is_whole: bool = False

    @classmethod
    def from_rows(cls, what: str, rows: Keys, released: Keys, *, is_whole: bool = False) -> RowCoincidences:
        """Count the coincidences between rows of the joint table (N,) and of a dataset (r,)."""
        times = occurrences(rows, rows)
        alone = np.flatnonzero(times == 1)
        once = alone[occurrences(rows[alone], released) == 1]
        released_times = counted_keys(released)[1]
        pairs = int((times == 2).sum()) // 2 + int((released_times == 2).sum())
        return cls(what, once, pairs, is_whole)

    @property
    def p(self) -> float:
        """Return the probability of so many coincidences under independent draws, at most."""
        from scipy.stats import binom

        found = len(self.records)
        return float(binom.sf(found - 1, found + self.pairs, 0.5)) if found else 1.0


@dataclass(frozen=True, eq=False)
class IndependenceTest:
    """The coincidences that independent draws explain least, with ``p`` corrected for all that were looked at."""

    coincidences: RowCoincidences
    p: float


def strongest_coincidence(found: Sequence[RowCoincidences], members: int, records: int) -> IndependenceTest | None:
    """Return the strongest of several tests, of those with which the hold-out agrees weakly; None without any.

    Whole rows, named beforehand, have half of the level and all others the other half. A test that could not reach a p with what
    it found costs the others nothing (Tarone 1990), and tests of the same people are one test with the largest p.
    """
    best: IndependenceTest | None = None
    for is_whole in (True, False):
        alike: dict[bytes, RowCoincidences] = {}
        for one in found:
            if one.is_whole is is_whole and len(one.records):
                key = np.sort(one.records).tobytes() if len(one.records) <= MOST_COMPARED else repr(one.what).encode()
                same = alike.get(key)
                alike[key] = one if same is None or one.pairs > same.pairs else same
        least = np.sort([0.5 ** min(1000, len(one.records) + one.pairs) for one in alike.values()])
        for one in alike.values():
            of_members = int((one.records < members).sum())
            controls = records - members
            agrees = holdout_probability(of_members, members, len(one.records) - of_members, controls) <= WEAK
            if controls and not agrees:
                continue
            possible = max(1, int(np.searchsorted(least, max(one.p, 1e-300) * (1 + 1e-9), side="right")))
            p = min(1.0, 2 * one.p * possible)
            if best is None or p < best.p:
                best = IndependenceTest(one, p)
    return best


MOST_COMPARED = 100_000
"""People up to whom two tests are compared for whether they find the same."""


def fewest_coincidences(pairs: int, members: int, records: int, level: float) -> int | None:
    """Return the fewest members, copied whole, with whom the test of whole rows is significant; None where no number of them is."""
    from scipy.stats import binom

    copied = np.arange(1, members + 1)
    sure = 2 * binom.sf(copied - 1, copied + pairs, 0.5) <= level
    if records > members:
        sure &= copied * np.log(members / records) <= np.log(WEAK)
    return int(copied[np.argmax(sure)]) if sure.any() else None
