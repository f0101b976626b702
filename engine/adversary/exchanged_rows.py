"""Permutation test of whether released rows agree more with their own records than with similar ones.

A model that synthesises beside kept columns knows only the kept values of a record. So the synthesised parts of rows
with equal kept values are exchangeable, however close the model is: exchanging them within classes gives the exact null
distribution of every statistic. A record with unique kept values cannot be tested, since its synthesised values may
follow from the kept ones.

Where several records describe a unit, what is drawn of one may follow from the kept values of the others. So whole
units are exchanged, among those whose records have the same kept values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.long_arrays import compute_column, marked_rows, take_block, take_rows
from ..data.rows import distinct_codes
from ..data.units import Units
from .cells import count_occurrences, unit_keys
from .coded import CodedColumn
from .membership_evidence import DRAWS_AT_ONCE, ROUNDING, SequentialPermutationTest, combine_probe_scores

NEAR = 0.005
"""Difference of rank shares up to which numbers agree."""
MOST_CELLS = 1_000_000
"""Largest number of exchanged cells; of larger tables some classes are tested."""
FIRST_LOOK = 4
"""Times as many records as are exchanged that are looked at first, and then each time as many more."""
PILOT_DRAWS = 100
"""Number of exchanges for means and deviations of the scores, not used for p."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ComparedColumns:
    """Synthesised columns of one dataset whose agreement is tested together.

    label: the columns, in words
    columns: positions of the columns
    dataset: position of the dataset
    """

    label: str
    columns: tuple[int, ...]
    dataset: int


@dataclass(frozen=True, eq=False)
class ExchangeEvidence:
    """Result of exchanging rows within classes of equal kept values; numbers are of units where whole units are exchanged.

    p: p-value of the agreement of rows with their own records
    n_people: number of tested records, which share their kept values with another one
    columns_label: columns with the strongest evidence, in words
    n_found: number of records whose own row has their values there, or most of these if there are several columns
    n_expected: expected number of these if rows are exchanged
    records: records found whom exchanged rows seldom have, ascending
    """

    p: float
    n_people: int
    columns_label: str
    n_found: int
    n_expected: float
    records: Integers

    @property
    def excess(self) -> float:
        """Return the number of people found beyond those expected."""
        return max(0.0, self.n_found - self.n_expected)

    @property
    def share_of_found(self) -> float:
        """Return the excess as a share of the people found."""
        return self.excess / self.n_found if self.n_found else 0.0

    @property
    def excess_share(self) -> float:
        """Return the excess as a share of the people whom exchanged rows would not find."""
        room = self.n_people - self.n_expected
        return min(1.0, self.excess / room) if room > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _ExchangedRecords:
    """Records whose rows are exchanged, and how: k records of v units, units of a class one after another.

    records: the records, unit by unit, (k,)
    classes: class of each unit, ascending, (v,)
    starts: place in ``records`` of the first record of each unit, (v,); None where every record is a unit
    """

    records: Integers
    classes: Integers
    starts: Integers | None = None

    @classmethod
    def from_keys(
        cls, kept: Keys, rows: Keys, units: Units | None, columns: Sequence[CodedColumn], datasets: int
    ) -> _ExchangedRecords:
        """Find the records, or the whole units, that share their kept values with others."""
        if units is None:
            chosen = _shared_records(kept, rows, columns, datasets)
            return cls(chosen, distinct_codes(kept[chosen]).codes.astype(np.int64))
        keys = unit_keys(kept, units)
        order = np.lexsort((unit_keys(rows, units), keys))
        shared = order[distinct_codes(keys[order]).repeats > 1]
        most = max(2, MOST_CELLS // max(1, len(columns) * datasets))
        shared = shared[: max(2, int(np.searchsorted(np.cumsum(units.sizes[shared]), most, side="right")))]
        # a class of which one unit is left has nobody to exchange with
        shared = shared[distinct_codes(keys[shared]).repeats > 1]
        # Members stand for each other in the order of their kept values, and within these of all values.
        by_values = Units(units.unit_of, np.lexsort((rows, kept, units.unit_of)))
        sizes = units.sizes[shared]
        return cls(
            by_values.records_of(shared),
            distinct_codes(keys[shared]).codes.astype(np.int64),
            np.cumsum(sizes) - sizes,
        )

    def exchange_at_random(self, rng: np.random.Generator) -> Integers:
        """Return for each record the place of the record whose row it is given, (k,)."""
        # Two equal random numbers are too rare to pay for a stable sort, which takes up to five times as long.
        order = np.argsort(self.classes + rng.random(len(self.classes)))
        if self.starts is None:
            return order
        # all units of a class have as many records
        sizes = np.diff(np.append(self.starts, len(self.records)))
        return np.arange(len(self.records)) + np.repeat(self.starts[order] - self.starts, sizes)

    def sum_by_unit(self, values: Floats) -> Floats:
        """Return the sums over the records of each unit, (v,)."""
        return values if self.starts is None else np.add.reduceat(values, self.starts)

    def records_of(self, shown: Flags) -> Integers:
        """Return the records of the marked units, ascending."""
        if self.starts is not None:
            shown = np.repeat(shown, np.diff(np.append(self.starts, len(self.records))))
        return np.sort(self.records[shown])


def exchange_rows(
    columns: Sequence[CodedColumn], kept: Keys, rows: Keys, datasets: int, units: Units | None = None
) -> ExchangeEvidence | None:
    """Test whether rows agree more with their own records than exchanged rows do.

    Returns None if no two records share kept values.

    Parameters ---------- columns : sequence of CodedColumn
        The synthesised columns. Row i of each dataset belongs to record i, of n records.
    kept : keys
        Key of each record's kept values, (n,).
    rows : keys
        Key of each record with all its values, (n,), for an order independent of the file.
    datasets : int
        Number of datasets to use.
    units : Units, optional
        Units of the records, which are exchanged and counted whole.
    """
    exchanged = _ExchangedRecords.from_keys(kept, rows, units, columns, datasets)
    chosen, n_people = exchanged.records, len(exchanged.classes)
    if not len(chosen):
        return None
    parts = [ComparedColumns(one.name, (at,), d) for d in range(datasets) for at, one in enumerate(columns)]
    if len(columns) > 1:
        every = tuple(range(len(columns)))
        parts += [ComparedColumns(", ".join(one.name for one in columns), every, d) for d in range(datasets)]
    weights = [_agreement_surprisal(one, chosen) for one in columns]

    values = [[_paired_values(one, chosen, d) for one in columns] for d in range(datasets)]

    def agreement_flags(order: Integers) -> list[list[Flags]]:
        """Return for each dataset and column whether each record agrees with the row it is given, (k,)."""
        return [[_values_agree(*pair, order) for pair in part] for part in values]

    def agreement_totals(flags: Sequence[Sequence[Flags]]) -> Floats:
        sums = np.array([[float(w[f].sum()) for w, f in zip(weights, part, strict=True)] for part in flags])
        return np.array([sums[part.dataset, list(part.columns)].sum() for part in parts])

    content = np.concatenate([kept[chosen], rows[chosen]])
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(content.tobytes(), digest_size=16).digest(), "big"))

    def exchanged_order() -> Integers:
        return exchanged.exchange_at_random(rng)

    own = agreement_flags(np.arange(len(chosen)))
    pilot = [agreement_totals(agreement_flags(exchanged_order())) for _ in range(PILOT_DRAWS)]
    means, deviations = np.mean(pilot, axis=0), np.std(pilot, axis=0)
    useful = deviations > ROUNDING
    if not useful.any():
        return ExchangeEvidence(1.0, n_people, parts[0].label, 0, 0.0, np.zeros(0, dtype=np.int64))

    def standardised_scores(values: Floats) -> Floats:
        return np.asarray(((values - means) / np.where(useful, deviations, 1.0))[..., useful])

    observed = standardised_scores(agreement_totals(own))
    test = SequentialPermutationTest(float(combine_probe_scores(observed[None, :])[0]))
    while not test.is_decided:
        drawn = np.array(
            [agreement_totals(agreement_flags(exchanged_order())) for _ in range(min(DRAWS_AT_ONCE, test.draws_left))]
        )
        test.add_statistics(combine_probe_scores(standardised_scores(drawn)))
    best = parts[int(np.flatnonzero(useful)[np.argmax(observed)])]

    def is_shown(flags: Sequence[Sequence[Flags]]) -> Flags:
        # Of several columns a person counts whose row has more than half of the surprise of all their values.
        agreed = np.sum([weights[at] * flags[best.dataset][at] for at in best.columns], axis=0)
        whole = np.sum([weights[at] for at in best.columns], axis=0)
        return np.asarray(exchanged.sum_by_unit(agreed) > exchanged.sum_by_unit(whole) / 2)

    shown = is_shown(own)
    times = np.zeros(len(shown), dtype=np.int64)
    for _ in range(PILOT_DRAWS):
        times += is_shown(agreement_flags(exchanged_order()))
    by_chance = times / PILOT_DRAWS
    records = exchanged.records_of(shown & (by_chance < 0.5))
    return ExchangeEvidence(test.p, n_people, best.label, int(shown.sum()), float(by_chance.sum()), records)


def _shared_records(kept: Keys, rows: Keys, columns: Sequence[CodedColumn], datasets: int) -> Integers:
    """Return the records that share their kept values with others, class by class, (k,).

    A large table is cut at ``MOST_CELLS`` cells.
    """
    most = max(2, MOST_CELLS // max(1, len(columns) * datasets))
    shared = _first_shared_records(kept, rows, most)
    if len(shared) <= most:
        return shared
    # Keys are hashes, so that the first classes are any classes; of a class larger than the room for it some records
    # stay.
    own = take_block(kept, shared)
    last = own[most - 1]
    return shared[:most] if own[0] == last else shared[: int(np.searchsorted(own, last))]


def _first_shared_records(kept: Keys, rows: Keys, most: int) -> Integers:
    """Return the records that share their kept values with others, class by class: all of them, or the first of these,
    more than ``most``.
    """
    # Keys are hashes: of a long table the classes of the smallest ones suffice, and nothing else is sorted.
    share = FIRST_LOOK * most / max(1, len(kept))
    while True:
        shared = _shared_up_to(kept, np.uint64(share * 2.0**64)) if share < 1 else _records_that_share(kept)
        if share >= 1 or len(shared) > most:
            return shared[np.lexsort((take_block(rows, shared), take_block(kept, shared)))]
        share *= FIRST_LOOK


def _records_that_share(kept: Keys) -> Integers:
    """Return the records that share their kept values with others, ascending."""
    times = count_occurrences(kept, kept)
    return marked_rows(compute_column(len(kept), np.bool_, lambda rows: times[rows] > 1))


def _shared_up_to(kept: Keys, largest: np.uint64) -> Integers:
    """Return the records that share kept values with others, of keys up to the largest, ascending."""
    some = marked_rows(compute_column(len(kept), np.bool_, lambda rows: kept[rows] <= largest))
    return some[_records_that_share(take_rows(kept, some))]


def _agreement_surprisal(column: CodedColumn, records: Integers) -> Floats:
    """Return minus the log share of the records that agree with each of some records, (k,), counting near numbers."""
    surprise = column.surprisal_of(records).astype(np.float64)
    return surprise if column.rank_shares is None else np.minimum(surprise, -np.log(2 * NEAR))


def _paired_values(column: CodedColumn, records: Integers, release: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what is compared of records (k,) and of their own rows in a dataset: codes of levels or shares of ranks."""
    if column.rank_shares is None or not column.released_rank_shares:
        return column.codes[records], column.released_codes[release][records]
    return column.rank_shares[records], column.released_rank_shares[release][records]


def _values_agree(values: NDArray[Any], released_values: NDArray[Any], order: Integers) -> Flags:
    """Return whether records (k,) agree with the rows that they are given: equal levels or near numbers."""
    given = released_values.take(order)
    if given.dtype.kind == "f":
        return np.asarray(np.abs(values - given) <= NEAR)
    return np.asarray(values == given)
