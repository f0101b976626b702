"""Matching of long tables in passes: candidates of records whose keys are brought together in buckets.

Records of equal exact keys lie in one bucket, whatever their block, so that the candidates of a bucket's records are all in
it. Of a bucket with too many records for one key the values of a window are counted range by range. Counts of candidates
are integers: they do not depend on blocks, buckets or ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.record_keys import KeyNumbers, buckets_of_keys
from ..data.row_buckets import BucketRows, stack_columns
from ..data.rows import distinct_rows, number_groups
from .intruder import IntruderKnowledge, MatchTolerance, require_equal_values, require_own_records
from .matching import CachedMatcher, CountedMatches, RecordMatcher, WindowKey
from .strategies import Subset, count_candidates

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

    def windows_of(self, ours: Microdata, theirs: Microdata, names: Sequence[str]) -> list[WindowKey]:
        """Return the windows of a block by these variables, which have a tolerance."""
        return IntruderKnowledge.from_variables(ours, names, self.tolerances).unlinked_keys_and_windows(theirs)[1]

    def agreement_bits(self, ours: Microdata, theirs: Microdata, names: Sequence[str]) -> Integers:
        """Return the variables on which each record agrees with its own released one, as bits in the order of the names, (n,)."""
        found = np.zeros(len(ours), dtype=np.int64)
        for bit, name in enumerate(names):
            found |= self._own_record_agrees(ours, theirs, name).astype(np.int64) << bit
        return found

    def _own_record_agrees(self, ours: Microdata, theirs: Microdata, name: str) -> Booleans:
        if name in self.tolerances:
            (window,) = self.windows_of(ours, theirs, [name])
            return np.asarray((window.lower <= window.released) & (window.released <= window.upper))
        (own,), (other,) = (self.keys.columns_of(data, [name]) for data in (ours, theirs))
        return np.asarray((own == other) | (np.isnan(own) & np.isnan(other)))

    def rows_of_block(
        self,
        ours: Microdata,
        theirs: Microdata,
        used: Sequence[str],
        own: Integers,
        number: int,
        together: Sequence[str] | None = None,
    ) -> dict[str, Floats]:
        """Return the records of a block as rows of buckets.

        used: variables that are compared
        own: what is known of each confidential record's own released record, (n,)
        number: number of buckets
        together: variables of which records with equal exact keys lie in one bucket, by default the used ones
        """
        exact, within = self._split_names(used)
        keys = [self.keys.columns_of(data, exact) for data in (ours, theirs)]
        places = [place for place, name in enumerate(exact) if together is None or name in together]
        windows = self.windows_of(ours, theirs, within)
        sizes = (len(ours), len(theirs))
        buckets = [
            buckets_of_keys([columns[place] for place in places], number, size)
            for columns, size in zip(keys, sizes, strict=True)
        ]
        ends = [end for window in windows for end in (window.lower, window.upper)]
        return {
            "ours": stack_columns(buckets[0], np.arange(len(ours)), own, *keys[0], *ends),
            "theirs": stack_columns(buckets[1], *keys[1], *(one.released for one in windows)),
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
    distinct = {places: _distinct_keys(theirs, places) for places in sets if not places.windows}
    window = next((places.windows[0] for places in sets if places.windows), None)
    if window is None:
        chunks: Iterator[tuple[Floats, Floats]] = ((rows, rows[:0]) for rows in ours.iterate_rows(MOST_TOGETHER))
    elif len(ours) + len(theirs) <= MOST_TOGETHER:
        chunks = iter([(ours.read_rows(), theirs.read_rows())] if len(ours) else [])
    else:
        chunks = _ranges_of_window(ours, theirs, OWN + 1 + n_exact + 2 * window, 1 + n_exact + window)
    for rows, points in chunks:
        yield (
            rows,
            [
                _count_with_keys(rows, places, *distinct[places])
                if places in distinct
                else _count_in_windows(rows, points, places, n_exact)
                for places in sets
            ],
        )


def _distinct_keys(theirs: BucketRows, places: ColumnPlaces) -> tuple[Floats, Integers]:
    """Return the distinct exact keys of a bucket's released records, (k, d), and how many records have each, (k,)."""
    keys, records = [np.empty((0, len(places.exact)))], [np.empty(0, dtype=np.int64)]
    for rows in theirs.iterate_rows(MOST_TOGETHER):
        own, counts = _merge_keys(rows[:, [1 + place for place in places.exact]], np.ones(len(rows), dtype=np.int64))
        keys.append(own)
        records.append(counts)
    return _merge_keys(np.concatenate(keys), np.concatenate(records))


def _merge_keys(keys: Floats, records: Integers) -> tuple[Floats, Integers]:
    """Return each of the keys (n, d) once, (k, d), with the records of all that are equal, (k,)."""
    kinds = distinct_rows(keys.T, len(keys))
    return keys[kinds.first], kinds.sum_by_combination(records.astype(np.float64)).astype(np.int64)


def _count_with_keys(rows: Floats, places: ColumnPlaces, keys: Floats, records: Integers) -> Integers:
    """Count the released records with the exact key of each confidential one, (k,)."""
    own = rows[:, [OWN + 1 + place for place in places.exact]]
    (first, second), number = number_groups(list(zip(own.T, keys.T, strict=True)), [len(own), len(keys)])
    return np.bincount(second, records, max(number, 1)).astype(np.int64)[first]


def _count_in_windows(rows: Floats, points: Floats, places: ColumnPlaces, n_exact: int) -> Integers:
    """Count the points (p, width) with the exact key and within the windows of each confidential record, (k,)."""
    if not len(points) or not len(rows):
        return np.zeros(len(rows), dtype=np.int64)
    own = rows[:, [OWN + 1 + place for place in places.exact]]
    keys = points[:, [1 + place for place in places.exact]]
    (first, second), number = number_groups(list(zip(own.T, keys.T, strict=True)), [len(own), len(keys)])
    lower = OWN + 1 + n_exact
    windows = []
    for i in places.windows:
        low, high = (rows[:, lower + 2 * i + end].copy() for end in (0, 1))
        windows.append(WindowKey(low, high, points[:, 1 + n_exact + i].copy()))
    matcher = CachedMatcher(RecordMatcher(first, second, number), windows)
    return count_candidates(matcher, [], np.arange(len(rows)))


def _ranges_of_window(ours: BucketRows, theirs: BucketRows, lower: int, value: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield the confidential records whose windows begin in a range, and the released ones that may lie in these.

    ``lower`` is the column of the windows' lower ends, ``value`` that of the released values.
    """
    sample = np.concatenate([rows[::SAMPLED, value] for rows in theirs.iterate_rows(MOST_TOGETHER)] or [np.empty(0)])
    number = -(-2 * (len(ours) + len(theirs)) // MOST_TOGETHER)
    finite = sample[np.isfinite(sample)]
    cuts = np.unique(np.quantile(finite, np.arange(1, number) / number)).tolist() if len(finite) else []
    for low, high in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True):
        own = []
        for rows in ours.iterate_rows(MOST_TOGETHER):
            start = rows[:, lower]
            # A window without ends has no candidates, and stands in the first range.
            inside = (start >= low) & ((start < high) | np.isinf(high))
            own.append(rows[inside | (np.isnan(start) & np.isinf(low))])
        queries = np.concatenate(own or [np.empty((0, lower + 2))])
        most = np.nanmax(queries[:, lower + 1], initial=-np.inf) if len(queries) else -np.inf
        points = [
            rows[(rows[:, value] >= low) & (rows[:, value] <= most)] for rows in theirs.iterate_rows(MOST_TOGETHER)
        ]
        if len(queries):
            yield queries, np.concatenate(points or [np.empty((0, value + 1))])


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

    def match_targets(self, chosen: Subset) -> CountedMatches:
        """Return candidates and hits by a subset. Raises NotCountedYetError."""
        counts = self._counts_of(chosen)
        used = sum(1 << bit for bit, name in enumerate(self.names) if name in chosen)
        return CountedMatches(counts.candidates, (counts.own & used) == used, counts.records)

    def _counts_of(self, chosen: Subset) -> SubsetCounts:
        if chosen not in self.found:
            raise NotCountedYetError(chosen)
        return self.found[chosen]
