"""Matching of long tables in passes: candidates of records whose keys are brought together in buckets.

Records of equal exact keys lie in one bucket, whatever their block, so that the candidates of a bucket's records are all in
it. Of a bucket with too many records for one key the values of a window are counted range by range. Counts of candidates
are integers: they do not depend on blocks, buckets or ranges.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.record_keys import KeyNumbers, buckets_of_keys
from ..data.row_buckets import BucketRows, RowBuckets, stack_columns
from ..data.rows import distinct_rows, number_groups
from .intruder import IntruderKnowledge, MatchTolerance, require_equal_values, require_own_records
from .matching import CachedMatcher, MatchResults, RankedPoints, RecordMatcher, WindowKey
from .strategies import Subset, count_candidates
from .window_counts import KeyCounts, RangeRows, RowRanges

MOST_TOGETHER = 1 << 21
"""Records of both tables that are counted together within windows."""
SAMPLED = 64
"""One in this many values of a window is looked at, to find ranges with about equally many values."""
BLOCK, ROW, OWN = 0, 1, 2
"""Columns of a confidential record in a bucket: its block, its place there, and the variables on which its own released
record agrees, as bits. Its keys and the ends of its windows follow; of a released record they follow the block.
"""


class ColumnPlaces(NamedTuple):
    """Columns of a bucket's rows that a match compares.

    exact: places of the exact keys, from 0
    windows: places of the windows, from 0
    """

    exact: tuple[int, ...]
    windows: tuple[int, ...]


@dataclass(frozen=True)
class MatchVariables:
    """Variables that a match compares, exactly or within a tolerance.

    names: variables
    keys: those that are compared exactly, as numbers
    tolerances: those of the others
    """

    names: tuple[str, ...]
    keys: KeyNumbers
    tolerances: Mapping[str, MatchTolerance]

    @classmethod
    def from_tables(
        cls,
        confidential: Microdata,
        released: Microdata,
        names: Sequence[str],
        tolerances: Mapping[str, MatchTolerance],
    ) -> Self:
        """Return the variables of two tables, whose records are not looked at.

        Raises NotComputable where records are not linked, or values cannot be equal.
        """
        require_own_records(released)
        exact = [name for name in names if name not in tolerances]
        for name in exact:
            require_equal_values(confidential, released, name)
        within = {name: tolerances[name] for name in names if name in tolerances}
        return cls(tuple(names), KeyNumbers.from_tables(exact, [confidential, released]), within)

    def windows_of(self, ours: Microdata, theirs: Microdata, names: Sequence[str]) -> dict[str, WindowKey]:
        """Return the windows of a block by those of these variables that have a tolerance, by name."""
        within = [name for name in names if name in self.tolerances]
        found = IntruderKnowledge.from_variables(ours, within, self.tolerances).unlinked_keys_and_windows(theirs)[1]
        return dict(zip(within, found, strict=True))

    def agreement_bits(
        self, ours: Microdata, theirs: Microdata, names: Sequence[str], windows: Mapping[str, WindowKey]
    ) -> Integers:
        """Return the variables on which each record agrees with its own released one, as bits in the order of the names,
        (n,). ``windows`` are those of the names.
        """
        found = np.zeros(len(ours), dtype=np.int64)
        for bit, name in enumerate(names):
            if name in windows:
                one = windows[name]
                agrees = (one.lower <= one.released) & (one.released <= one.upper)
            else:
                (own,), (other,) = (self.keys.columns_of(data, [name]) for data in (ours, theirs))
                agrees = (own == other) | (np.isnan(own) & np.isnan(other))
            found |= agrees.astype(np.int64) << bit
        return found

    def rows_of_block(
        self,
        ours: Microdata,
        theirs: Microdata,
        used: Sequence[str],
        own: Integers,
        windows: Mapping[str, WindowKey],
        number: int,
        together: Sequence[str] | None = None,
        ranges: RowRanges | None = None,
    ) -> dict[str, Floats]:
        """Return the records of a block as rows of buckets.

        used: variables that are compared
        own: what is known of each confidential record's own released record, (n,)
        windows: those of the used variables
        number: number of buckets
        together: variables of which records with equal exact keys lie in one bucket, by default the used ones
        ranges: ranges of the only window that are the buckets instead
        """
        exact, within = self._split_names(used)
        keys = [self.keys.columns_of(data, exact) for data in (ours, theirs)]
        places = [place for place, name in enumerate(exact) if together is None or name in together]
        ends = [end for name in within for end in (windows[name].lower, windows[name].upper)]
        values = [windows[name].released for name in within]
        if ranges is None:
            buckets = [
                buckets_of_keys([columns[place] for place in places], number, len(data))
                for columns, data in zip(keys, (ours, theirs), strict=True)
            ]
        else:
            buckets = [ranges.range_of(ends[0]), ranges.range_of(values[0])]
        return {
            "ours": stack_columns(buckets[0], np.arange(len(ours)), own, *keys[0], *ends),
            "theirs": stack_columns(buckets[1], *keys[1], *values),
        }

    def places_among(self, names: Sequence[str], used: Sequence[str]) -> ColumnPlaces:
        """Return the columns of some of the variables in the rows of a block by the ``used`` ones."""
        exact, within = self._split_names(used)
        return ColumnPlaces(
            tuple(exact.index(name) for name in exact if name in names),
            tuple(within.index(name) for name in within if name in names),
        )

    def _split_names(self, used: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the exact variables and those with a tolerance, in the order of all."""
        within = [name for name in self.names if name in used and name in self.tolerances]
        return [name for name in self.names if name in used and name not in self.tolerances], within


def count_in_bucket(
    ours: BucketRows, theirs: BucketRows, sets: Sequence[ColumnPlaces], n_exact: int
) -> Iterator[tuple[Floats, list[Integers]]]:
    """Yield the confidential records of a bucket, (k, width), each once, with their candidates by each set, (k,).

    The sets contain the ones before. ``n_exact`` columns are exact keys.
    """
    counts = {places: count_exact_keys(theirs, places.exact) for places in sets if not places.windows}
    window = next((places.windows[0] for places in sets if places.windows), None)
    no_points, between = np.empty((0, 1 + n_exact)), KeyCounts(np.empty((0, n_exact)), np.empty(0, dtype=np.int64))
    chunks: Iterator[RangeRows]
    if window is None:
        chunks = (RangeRows(rows, no_points, between) for rows in ours.iterate_rows(MOST_TOGETHER))
    elif len(ours) + len(theirs) <= MOST_TOGETHER:
        chunks = iter([RangeRows(ours.read_rows(), theirs.read_rows(), between)] if len(ours) else [])
    else:
        chunks = _ranges_of_window(ours, theirs, window, n_exact, several=any(len(one.windows) > 1 for one in sets))
    for rows in chunks:
        yield rows.queries, count_candidates_of(rows, sets, counts, n_exact)


def count_candidates_of(
    rows: RangeRows, sets: Sequence[ColumnPlaces], counts: Mapping[ColumnPlaces, KeyCounts], n_exact: int
) -> list[Integers]:
    """Return the candidates of some confidential records by each set, (k,). ``counts`` has the keys of the released
    records by each set without windows.
    """
    queries, points, between = rows
    exact = [(queries[:, OWN + 1 + at], points[:, 1 + at], between.keys[:, at]) for at in range(n_exact)]
    sizes = (len(queries), len(points), len(between.records))
    windows = {}
    for at in {at for places in sets for at in places.windows}:
        lower, upper = (queries[:, OWN + 1 + n_exact + 2 * at + end].copy() for end in (0, 1))
        values = points[:, 1 + n_exact + at].copy()
        # Ranked once for all sets.
        windows[at] = WindowKey(lower, upper, values, RankedPoints.from_points(values))
    found = []
    for places in sets:
        if places in counts:
            keys, records = counts[places]
            columns = [(exact[at][0], column) for at, column in zip(places.exact, keys.T, strict=True)]
            (own, other), number = number_groups(columns, [len(queries), len(keys)])
            found.append(np.bincount(other, records, max(number, 1)).astype(np.int64)[own])
            continue
        (own, others, middle), number = number_groups([exact[at] for at in places.exact], sizes)
        within = [windows[at] for at in places.windows]
        matcher = CachedMatcher(RecordMatcher(own, others, max(number, 1)), within)
        inside = count_candidates(matcher, [], np.arange(len(queries)))
        if len(middle):
            has_window = ~(np.isnan(within[0].lower) | np.isnan(within[0].upper))
            inside += has_window * np.bincount(middle, between.records, max(number, 1)).astype(np.int64)[own]
        found.append(inside)
    return found


def count_exact_keys(theirs: BucketRows, places: Sequence[int]) -> KeyCounts:
    """Count the exact keys of a bucket's released records, of some of their columns."""
    blocks = (rows[:, [1 + place for place in places]] for rows in theirs.iterate_rows(MOST_TOGETHER))
    return KeyCounts.from_rows([np.empty((0, len(places))), *blocks])


def cuts_between(sample: Floats, number: int) -> Floats:
    """Return the ends of ``number`` ranges with about equally many values of a sample (n,), but the outer ones."""
    finite = sample[np.isfinite(sample)]
    return np.unique(np.quantile(finite, np.arange(1, number) / number)) if len(finite) else np.empty(0)


def _ranges_of_window(
    ours: BucketRows, theirs: BucketRows, window: int, n_exact: int, *, several: bool
) -> Iterator[RangeRows]:
    """Yield the confidential records of a bucket by the ranges in which a window begins; ``several`` windows are asked."""
    lower, value = OWN + 1 + n_exact + 2 * window, 1 + n_exact + window
    sample = np.concatenate([rows[::SAMPLED, value] for rows in theirs.iterate_rows(MOST_TOGETHER)] or [np.empty(0)])
    cuts = cuts_between(sample, -(-2 * (len(ours) + len(theirs)) // MOST_TOGETHER))
    ranges = RowRanges(cuts, lower, value, n_exact, all_points=several)
    with contextlib.ExitStack() as files:
        held = []
        for rows_of, column in ((ours, lower), (theirs, value)):
            held.append(RowBuckets(rows_of.buckets.open_file))
            files.callback(held[-1].close)
            for rows in rows_of.iterate_rows(MOST_TOGETHER):
                held[-1].put_stacked(ranges.range_of(rows[:, column]), rows)
        for at in range(ranges.number):
            if held[0].count_rows(at):
                yield ranges.read_range(held[0], held[1], at)


@dataclass(frozen=True)
class SubsetCounts:
    """Candidates of all records by a subset of the variables: how many records have each combination.

    own: variables on which the own released record agrees, as bits, (k,)
    candidates: (k,)
    records: records of both, (k,)
    """

    own: Integers
    candidates: Integers
    records: Integers

    @classmethod
    def from_parts(cls, own: Integers, candidates: Integers, records: Integers | None = None) -> Self:
        """Return the counts of parts, (n,) each, that may have combinations in common; each of one record without counts."""
        # In ascending order, so that sums over them do not depend on blocks either.
        kinds = distinct_rows([own, candidates], len(own))
        each = kinds.sum_by_combination(None if records is None else records.astype(np.float64)).astype(np.int64)
        return cls(own[kinds.first], candidates[kinds.first], each)


class NotCountedYetError(Exception):
    """A search asks for a subset whose candidates no pass has counted yet."""

    def __init__(self, chosen: Subset) -> None:
        """Keep the subset."""
        super().__init__(", ".join(sorted(chosen)))
        self.chosen = chosen


@dataclass(frozen=True)
class CountedSubsets:
    """What passes have counted so far, as the counter that ``best_strategies`` asks.

    names: variables that a strategy may leave out; their places are the bits of the counts
    number: number of targets
    agreement: own records by the variables on which they agree, candidates of no matter
    found: counts by subset
    """

    names: Sequence[str]
    number: int
    agreement: SubsetCounts
    found: Mapping[Subset, SubsetCounts]

    def own_bits(self, names: Sequence[str], chosen: Subset | None = None) -> tuple[Integers, Integers]:
        """Return the variables on which own records agree, as bits, and how many records each stands for."""
        counts = self.agreement if chosen is None else self._counts_of(chosen)
        return counts.own, counts.records

    def match_targets(self, chosen: Subset) -> MatchResults:
        """Return candidates and hits by a subset. Raises NotCountedYetError."""
        counts = self._counts_of(chosen)
        used = sum(1 << bit for bit, name in enumerate(self.names) if name in chosen)
        return MatchResults(counts.candidates, (counts.own & used) == used, counts.records)

    def _counts_of(self, chosen: Subset) -> SubsetCounts:
        if chosen not in self.found:
            raise NotCountedYetError(chosen)
        return self.found[chosen]
