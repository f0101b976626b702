"""Tests for rows of people that a release has more often than any release with rows independent of the data.

Membership labels are not used, so these tests add to the permutation test of ``membership_evidence``.

**Coincidences.** A row that occurs once in the joint table and once in a dataset is a coincidence. Let the N people be
independent draws from p and the r released rows independent draws from any q. Row x is a coincidence with probability N
p exp(-N p) r q exp(-r q), and occurs exactly twice in one of the tables with probability (N p)^2 exp(-N p) / 2 + (r
q)^2 exp(-r q) / 2, which is at least as large since 2 a b <= a^2 + b^2. So of coincidences and pairs together at most
half are coincidences on average, whatever p and q are. The test scans the rarest rows first, since copies of rare rows
occur beside few pairs; its p-value is that of the strongest beginning of a sequence of coin tosses (exact, by
recursion).

**Repeated rows.** A row that a dataset repeats occurs exactly once in the joint table with probability N p exp(-N p) <=
1 / e. Rows chosen without the data match no person, or several, more often than exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import Keys
from ..data.sorting import sort_with_order, sorted_search
from ..statistics.ranks_and_tails import binomial_tail
from ..wording import agreeing_word, count_noun
from .cells import look_up_counts, row_keys, run_starts_and_lengths
from .coded import CodedColumn, JointColumn, binned_rank_keys, code_by_value, record_surprisal, released_row_surprisal
from .evidence import COPY_LEVEL

WHOLE, REPEATED, NEAR, SOME_COLUMNS = "whole", "repeated", "near", "some columns"
SHARES = {WHOLE: 0.5, REPEATED: 0.2, NEAR: 0.2, SOME_COLUMNS: 0.1}
"""Fixed shares of the significance level by kind of test."""
MOST_EXAMINED = 400
"""Largest number of coincidences and pairs, rarest first, whose beginnings are tested."""
REPEATS = (2, 3, 5, 8)
"""Numbers of occurrences in a dataset that count as repeated."""
PARTS = 10
"""Number of bins of a number in the search for near copies."""
MANY = 200_000
"""Number of records above which near copies are not searched."""
WEIGHTS = ((0.00002, 55.0), (0.008, 19.0), (0.05, 2.0))
OTHER_WEIGHT = 0.8
"""Factor of the permutation test's level if the p of the rows is above all of ``WEIGHTS``; its mean is .997.

With the largest weight a hold-out that is too small does not contradict the rows; one found like members does."""
MOST_COMPARED = 100_000
"""Number of people up to which tests are checked for finding the same."""


@dataclass(frozen=True, eq=False)
class RowCoincidenceTest:
    """Test of rows that occur in the joint table and in a dataset more often than by chance.

    what: how rows are compared, in words
    kind: one of ``SHARES``
    records: rows of the joint table that were found, ascending, (x,)
    expected: number of them expected by chance
    chance: explanation of the expected number, in words
    p: probability of at least as many coincidences
    smallest_p: smallest p-value possible with this number of coincidences and pairs, or of repeated rows
    n_pairs: number of rows that occur exactly twice in one of the two tables; 0 for repeated rows
    """

    what: str
    kind: str
    records: Integers
    expected: float
    chance: str
    p: float
    smallest_p: float
    n_pairs: int = 0


def compare_coincidences_with_pairs(
    what: str, kind: str, records: Integers, n_pairs: int, unit_of: Integers | None = None
) -> RowCoincidenceTest:
    """Test coincidences (x,) against ``n_pairs`` rows that occur exactly twice in one of the tables.

    Of the records of a unit one counts, where ``unit_of`` (N,) numbers these.
    """
    # Records of a household come together, by chance too: only its first is a toss of its own.
    found = len(records) if unit_of is None else len(np.unique(unit_of[records]))
    p = float(binomial_tail(found - 1, found + n_pairs, 0.5)) if found else 1.0
    least = 0.5 ** min(1000, found + n_pairs)
    return RowCoincidenceTest(
        what, kind, np.sort(records), float(min(found, n_pairs)), _pairs_text(n_pairs), p, least, n_pairs
    )


def _pairs_text(pairs: int) -> str:
    return f"{count_noun(pairs, 'such row')} {agreeing_word(pairs, 'occurs', 'occur')} twice in one of the two"


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Sorted row keys with their multiplicities.

    order: original position of each row, (n,)
    keys: distinct keys, ascending, (k,)
    starts: first position of each distinct key, (k,)
    counts: number of occurrences of each, (k,)
    """

    order: Integers
    keys: Keys
    starts: Integers
    counts: Integers

    @classmethod
    def from_rows(cls, rows: Keys) -> SortedRows:
        """Sort row keys, (n,)."""
        order, ascending = sort_with_order(rows)
        starts, counts = run_starts_and_lengths(ascending)
        return cls(order, ascending[starts], starts, counts)

    def rows_occurring(self, times: int) -> Integers:
        """Return one position for each key that occurs ``times`` times."""
        return np.asarray(self.order[self.starts[self.counts == times]])


def compare_whole_rows(what: str, own: Keys, released: Keys, unit_of: Integers | None = None) -> RowCoincidenceTest:
    """Test the coincidences between all whole rows of the joint table (N,) and of a dataset (r,)."""
    ours, theirs = SortedRows.from_rows(own), SortedRows.from_rows(released)
    pairs = int((ours.counts == 2).sum()) + int((theirs.counts == 2).sum())
    return compare_coincidences_with_pairs(what, WHOLE, _find_coincidences(ours, theirs), pairs, unit_of)


def _find_coincidences(ours: SortedRows, theirs: SortedRows) -> Integers:
    """Return the records whose row occurs once in both tables."""
    alone = np.flatnonzero(ours.counts == 1)
    return np.asarray(ours.order[ours.starts[alone[look_up_counts(theirs.keys, theirs.counts, ours.keys[alone]) == 1]]])


def scan_rarest_rows(
    what: str,
    kind: str,
    own: SortedRows,
    released: SortedRows,
    surprise: Floats,
    released_surprise: Floats,
    unit_of: Integers | None = None,
) -> RowCoincidenceTest:
    """Test the coincidences between rows of the joint table (N,) and of a dataset (r,), the rarest rows first.

    Parameters ---------- what, kind : str
        How rows are compared, in words, and one of ``SHARES``.
    own, released : SortedRows
        The N rows of the joint table and the r rows of the dataset.
    surprise, released_surprise : Floats
        Surprisal of each row, which must be a function of its values, (N,) and (r,).
    unit_of : array of int, optional
        Unit of each record, (N,): of the coincidences of a unit the rarest counts.
    """
    alone = _find_coincidences(own, released)
    if unit_of is not None:
        alone = alone[np.argsort(-np.round(surprise[alone], 6), kind="stable")]
        alone = alone[np.sort(np.unique(unit_of[alone], return_index=True)[1])]
    pairs = np.concatenate([surprise[own.rows_occurring(2)], released_surprise[released.rows_occurring(2)]])
    surprises = np.concatenate([surprise[alone], pairs])
    is_found = np.arange(len(surprises)) < len(alone)
    # Of equally rare rows a pair comes first, so that no order of the rows helps the coincidences.
    # Rounded, so that sums in another order remain ties.
    order = np.lexsort((is_found, -np.round(surprises, 6)))[:MOST_EXAMINED]
    p, length = strongest_beginning(is_found[order])
    everybody = compare_coincidences_with_pairs(what, kind, alone, len(pairs))
    if len(surprises) > MOST_EXAMINED:
        # The beginning and the whole are two tests.
        if everybody.p < p:
            return replace(everybody, p=min(1.0, 2 * everybody.p))
        p = min(1.0, 2 * p)
    beginning = order[:length]
    records = alone[beginning[is_found[beginning]]]
    beside = length - len(records)
    return replace(
        everybody, records=np.sort(records), expected=float(min(len(records), beside)), chance=_pairs_text(beside), p=p
    )


def strongest_beginning(is_found: Booleans) -> tuple[float, int]:
    """Return the p-value of the strongest beginning of a sequence of coin tosses (n,), and its length.

    The strength of a beginning is the binomial probability of at least as many heads. n is at most ``MOST_EXAMINED``.
    """
    n = len(is_found)
    if not is_found.any():
        return 1.0, 0
    heads = np.cumsum(is_found)
    tails = _binomial_tails()
    strength = tails[np.arange(n), heads]
    length = int(np.argmin(strength)) + 1
    limit = strength[length - 1] * (1 + 1e-9)
    reach, crossed = np.zeros(n + 2), 0.0
    reach[0] = 1.0
    for thrown in range(n):
        reach = 0.5 * (reach + np.concatenate([[0.0], reach[:-1]]))
        beyond = np.flatnonzero(tails[thrown, : thrown + 2] <= limit)
        if len(beyond):
            crossed += float(reach[beyond[0] :].sum())
            # Sequences that crossed are counted once, at their first crossing.
            reach[beyond[0] :] = 0.0
    return min(1.0, crossed), length


@cache
def _binomial_tails() -> NDArray[np.float64]:
    """Return the probability of at least k heads in t + 1 tosses, (n, n + 1)."""
    n = MOST_EXAMINED
    return np.asarray(binomial_tail(np.arange(n + 1)[None, :] - 1, np.arange(1, n + 1)[:, None], 0.5))


def find_repeated_rows(
    what: str, own: SortedRows, released: SortedRows, unit_of: Integers | None = None
) -> list[RowCoincidenceTest]:
    """Test whether rows that a dataset repeats occur once in the joint table too often.

    There is one test for each of ``REPEATS``. Of the records of a unit one counts.
    """
    tests = list[RowCoincidenceTest]()
    for least in REPEATS:
        repeated = released.keys[released.counts >= least]
        if not len(repeated):
            break
        met = repeated[look_up_counts(own.keys, own.counts, repeated) == 1]
        if not len(met):
            continue
        records = np.sort(own.order[own.starts[sorted_search(own.keys, met)]])
        n_met = len(met) if unit_of is None else len(np.unique(unit_of[records]))
        p = float(binomial_tail(n_met - 1, len(repeated), 1 / np.e))
        chance = f"{count_noun(len(repeated), 'row')} {agreeing_word(len(repeated), 'is', 'are')} repeated so, and rows that do not depend on the data meet exactly one person with probability .37 at most"
        tests.append(
            RowCoincidenceTest(
                f"{what}, in {count_noun(least, 'row')} of a dataset or more", REPEATED, records, len(repeated) / np.e, chance, p,
                float(np.exp(-min(700, len(repeated)))),
            )
        )  # fmt: skip
    return tests


def find_whole_rows(
    columns: Sequence[JointColumn],
    coded: Sequence[CodedColumn],
    respelled: Mapping[str, Sequence[JointColumn]] | None = None,
    unit_of: Integers | None = None,
) -> list[RowCoincidenceTest]:
    """Test rows in all columns: equal, repeated, nearly equal, and with other names or units.

    Parameters ---------- columns : sequence of JointColumn
        The columns as released.
    coded : sequence of CodedColumn
        Their codes by value.
    respelled : mapping of str to sequences of JointColumn, optional
        The columns with names, units and positions restored to those of the data, by what was restored.
    unit_of : array of int, optional
        Unit of each record, (N,), where several records describe one.
    """
    names = tuple(one.name for one in columns)
    surprise = record_surprisal(coded)
    own, tests = (
        SortedRows.from_rows(row_keys({one.name: one.own for one in columns}, names)),
        list[RowCoincidenceTest](),
    )
    written = {how: (some, [code_by_value(one) for one in some]) for how, some in (respelled or {}).items()}
    for at in range(len(columns[0].released)):
        theirs = released_row_surprisal(coded, at)
        released = SortedRows.from_rows(row_keys({one.name: one.released[at] for one in columns}, names))
        tests.append(scan_rarest_rows("all columns", WHOLE, own, released, surprise, theirs, unit_of))
        tests += find_repeated_rows("all columns", own, released, unit_of)
        for how, (some, codes) in written.items():
            rows = SortedRows.from_rows(row_keys({one.name: one.released[at] for one in some}, names))
            tests.append(
                scan_rarest_rows(
                    f"all columns, {how}", NEAR, own, rows, surprise, released_row_surprisal(codes, at), unit_of
                )
            )
        if len(own.order) > MANY or all(one.rank_shares is None for one in coded):
            continue
        ours, made = (SortedRows.from_rows(row_keys(cells, names)) for cells in _binned_cells(columns, coded, at))
        what = "all columns, with numbers to a tenth of their distribution"
        tests.append(scan_rarest_rows(what, NEAR, ours, made, surprise, theirs, unit_of))
    return tests


def _binned_cells(
    columns: Sequence[JointColumn], coded: Sequence[CodedColumn], at: int
) -> tuple[dict[str, Keys], dict[str, Keys]]:
    """Return the cells of the columns in the joint table and in a dataset, by name, with numbers in ``PARTS`` bins."""
    own, released = dict[str, Keys](), dict[str, Keys]()
    for number, (column, one) in enumerate(zip(columns, coded, strict=True)):
        if one.rank_shares is None:
            own[one.name], released[one.name] = column.own, column.released[at]
            continue
        # Limits between parts differ by column: copies that cross one in a column do not cross all.
        offset = (number * 0.37) % 1
        own[one.name] = binned_rank_keys(one.rank_shares, PARTS, offset)
        released[one.name] = binned_rank_keys(one.released_rank_shares[at], PARTS, offset)
    return own, released


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Strongest of all tests of rows, with a corrected p-value.

    test: strongest test
    p: its p-value, corrected for the number of tests
    """

    test: RowCoincidenceTest
    p: float

    @property
    def level_weight(self) -> float:
        """Return the factor of the permutation test's level (weighted p-values: Genovese, Roeder & Wasserman 2006)."""
        return next((weight for level, weight in WEIGHTS if self.p <= level), OTHER_WEIGHT)

    @property
    def is_notable(self) -> bool:
        """Return whether the permutation test gives these people extra weight."""
        return self.p <= WEIGHTS[-1][0]


def strongest_row_evidence(tests: Sequence[RowCoincidenceTest]) -> RowEvidence | None:
    """Return the strongest of several tests; None if none found anybody."""
    best: RowEvidence | None = None
    for kind, share in SHARES.items():
        alike: dict[bytes, RowCoincidenceTest] = {}
        for one in tests:
            if one.kind == kind and len(one.records):
                key = one.records.tobytes() if len(one.records) <= MOST_COMPARED else repr(one.what).encode()
                # Tests that find the same people are one test, with the largest p.
                same = alike.get(key)
                alike[key] = one if same is None or one.p > same.p else same
        least = np.sort([one.smallest_p for one in alike.values()])
        for one in alike.values():
            # A test that cannot reach this p costs the others nothing (Tarone 1990).
            possible = max(1, int(np.searchsorted(least, max(one.p, 1e-300) * (1 + 1e-9), side="right")))
            p = min(1.0, one.p * possible / share)
            if best is None or p < best.p:
                best = RowEvidence(one, p)
    return best


def fewest_detectable_copies(pairs: int, members: int, records: int, level: float) -> int | None:
    """Return the fewest wholly copied members that are detected at a level; None if no number is."""
    copied = np.arange(1, members + 1)
    alone = binomial_tail(copied - 1, copied + pairs, 0.5)
    if records == members:
        sure = alone <= COPY_LEVEL * SHARES[WHOLE]
    else:
        by_chance = copied * np.log(members / records)
        sure = np.any([(alone <= p * SHARES[WHOLE]) & (by_chance <= np.log(weight * level)) for p, weight in WEIGHTS], axis=0)  # fmt: skip
    return int(copied[np.argmax(sure)]) if sure.any() else None
