"""Codes and ranks of the columns of members, controls and releases, for comparisons that ignore names.

A cell has a code, equal where values are, and a numeric cell also a rank in the table, a share from 0 to 1. Coding by
value: released values have the code of the equal confidential value. Coding by rank: numbers have their rank among the
released ones, levels the rank of their frequency, so that a monotone or one-to-one recoding changes nothing. Members
and controls are coded as one joint table: membership is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.bits import MISSING_KEY, Keys
from ..data.long_arrays import compute_column, join_columns, long_blocks, running_sums, take_rows
from ..data.rows import DistinctNumbers, distinct_codes
from ..data.sorting import is_run_start, sort_order, sorted_search

Codes = NDArray[np.int32]
Singles = NDArray[np.float32]
BINS = 20
"""Number of bins of a number in the rarity of people."""
UNKNOWN_CODE = -1
FEWEST_WITH_LEVEL = 5
"""Rarer levels are joined: a hold-out of a fifth has all of four records once in 600 times, of one once in five."""
MOST_WITH_RARE_LEVELS = 0.2
"""Share of records with rare levels above which they stay: releasing such values reveals single people."""


@dataclass(frozen=True, eq=False)
class RankedNumbers:
    """Numbers of a column (n,) with ranks.

    distinct_numbers: distinct values, NaN last, with codes and counts
    """

    distinct_numbers: DistinctNumbers

    @cached_property
    def n_present(self) -> Integers:
        """Return the number of distinct present values and the number of records that have one, (2,)."""
        values, counts = self.distinct_numbers.values, self.distinct_numbers.counts
        present = len(values) - int(len(values) > 0 and np.isnan(values[-1]))
        return np.array([present, sum(int(counts[:present][rows].sum()) for rows in long_blocks(present))])

    @cached_property
    def counts_below(self) -> Integers:
        """Return the number of records below each value, and at the end that of all present ones, (v + 1,)."""
        sums = running_sums(self.distinct_numbers.counts[: self.n_present[0]])
        return join_columns([np.zeros(1, dtype=np.int64), sums])

    def _locate_values(self, others: DistinctNumbers) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the insertion position of each of the other values (u,), and whether it equals the value there."""
        values = self.distinct_numbers.values
        place = sorted_search(values[: self.n_present[0]], others.values)
        is_equal = compute_column(
            len(place),
            np.bool_,
            lambda rows: values[place[rows].clip(max=len(values) - 1)] == others.values[rows],
        )
        return place, is_equal

    def rank_shares_of(self, others: RankedNumbers) -> Singles:
        """Return the share of these numbers below each of the others (k,), ties counting half; -1 for NaN."""
        place, found = self._locate_values(others.distinct_numbers)
        below, (most, present), values = self.counts_below, self.n_present.tolist(), others.distinct_numbers.values

        def share_of(rows: slice) -> Singles:
            middle = below[place[rows]] + below[np.minimum(place[rows] + found[rows], most)]
            shares = (middle / (2 * max(1, present))).astype(np.float32)
            shares[np.isnan(values[rows])] = -1
            return np.asarray(shares)

        return others.distinct_numbers.take_by_row(compute_column(len(values), np.float32, share_of))

    def match_codes(self, others: RankedNumbers) -> Codes:
        """Return the code of each of the other values (k,); ``UNKNOWN_CODE`` for unknown values."""
        place, found = self._locate_values(others.distinct_numbers)
        values, known = others.distinct_numbers.values, len(self.distinct_numbers.values)
        of_missing = known - 1 if self.n_present[0] < known else UNKNOWN_CODE
        codes = compute_column(
            len(values),
            np.int32,
            lambda rows: np.where(np.isnan(values[rows]), of_missing, np.where(found[rows], place[rows], UNKNOWN_CODE)),
        )
        return others.distinct_numbers.take_by_row(codes)


@dataclass(frozen=True, eq=False)
class JointColumn:
    """Column of the joint table and of each dataset.

    name: name of the column
    own: cell keys in the joint table, (N,)
    released: cell keys in each dataset, (r,) each
    numbers: values in the joint table, (N,); None for levels
    released_numbers: values in each dataset, (r,) each; empty for levels
    """

    name: str
    own: Keys
    released: Sequence[Keys]
    numbers: Floats | None = None
    released_numbers: Sequence[Floats] = ()

    @cached_property
    def ranked_numbers(self) -> RankedNumbers:
        """Return the numbers of the joint table with ranks."""
        assert self.numbers is not None
        return RankedNumbers(distinct_codes(self.numbers))

    @cached_property
    def released_ranked_numbers(self) -> list[RankedNumbers]:
        """Return the numbers of each dataset with ranks."""
        return [RankedNumbers(distinct_codes(one)) for one in self.released_numbers]

    @cached_property
    def rank_shares(self) -> Singles | None:
        """Return the rank of each number in the joint table, as a share, (N,); None for levels."""
        return None if self.numbers is None else self.ranked_numbers.rank_shares_of(self.ranked_numbers)


RARE_LEVEL_KEY = np.uint64(0xD1B54A32D192ED03)


def pool_rare_levels(name: str, own: Keys, released: Sequence[Keys]) -> JointColumn:
    """Return a column of levels with the rare levels of the joint table (N,) joined, there and in each dataset (r,)."""
    # A model draws only levels that members have, never one that only hold-out people have, so an honest release too
    # would show members of a rare level more often. Released levels that are not in the joint table stay: they may be
    # other names.
    levels = distinct_codes(own)
    is_rare = (levels.counts < FEWEST_WITH_LEVEL) & (levels.values != MISSING_KEY)
    if not is_rare.any() or levels.counts[is_rare].sum() > MOST_WITH_RARE_LEVELS * len(own):
        return JointColumn(name, own, released)
    rare = levels.values[is_rare]

    def join_rare(cells: Keys) -> Keys:
        different = distinct_codes(cells)
        keys = np.where(np.isin(different.values, rare), RARE_LEVEL_KEY, different.values)
        return take_rows(keys, different.codes)

    return JointColumn(name, join_rare(own), [join_rare(one) for one in released])


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """Codes and ranks of a column in the joint table and in each dataset.

    name: name of the column
    codes: code of each record of the joint table, (N,)
    released_codes: codes in each dataset, -1 for values that no record has, (r,) each
    counts: number of records of the joint table with each code, (v,)
    rank_shares: rank of each record, as a share, (N,); None for levels
    released_rank_shares: ranks in each dataset, (r,) each; empty for levels
    """

    name: str
    codes: Codes
    released_codes: tuple[Codes, ...]
    counts: Integers
    rank_shares: Singles | None = None
    released_rank_shares: tuple[Singles, ...] = ()

    @cached_property
    def surprisal(self) -> Singles:
        """Return minus the log share of records with the record's value, (N,)."""
        return self.surprisal_of(slice(None))

    def surprisal_of(self, records: slice | Integers) -> Singles:
        """Return minus the log share of records with the value of some records, (k,)."""
        counts, codes = self.counts, self.codes[records]
        if len(codes) < len(counts):
            return np.asarray(-np.log(counts[codes] / len(self.codes)), dtype=np.float32)
        return np.asarray(-np.log(counts / len(self.codes)), dtype=np.float32)[codes]


def code_by_value(column: JointColumn) -> CodedColumn:
    """Code a column so that equal values have equal codes."""
    if column.numbers is not None:
        ordered, released = column.ranked_numbers, column.released_ranked_numbers
        codes, places = tuple(map(ordered.match_codes, released)), tuple(map(ordered.rank_shares_of, released))
        return CodedColumn(
            column.name,
            ordered.distinct_numbers.codes,
            codes,
            ordered.distinct_numbers.counts,
            column.rank_shares,
            places,
        )
    own = distinct_codes(column.own)

    def known_codes(cells: Keys) -> Codes:
        """Return the code of each cell in the joint table; unknown if its value is not there."""
        others = distinct_codes(cells)
        place = sorted_search(own.values, others.values).clip(max=len(own.values) - 1)
        codes = np.where(own.values[place] == others.values, place, UNKNOWN_CODE).astype(np.int32)
        return others.take_by_row(codes)

    return CodedColumn(column.name, own.codes, tuple(map(known_codes, column.released)), own.counts)


def code_by_rank(column: JointColumn) -> CodedColumn:
    """Code a column by the frequency ranks of its levels, or by the ranks of its numbers within each table."""
    if column.numbers is not None:
        own, counts = column.ranked_numbers.distinct_numbers.codes, column.ranked_numbers.distinct_numbers.counts
        places = tuple(one.rank_shares_of(one) for one in column.released_ranked_numbers)
        unknown = tuple(np.full(len(one), UNKNOWN_CODE, dtype=np.int32) for one in column.released)
        return CodedColumn(column.name, own, unknown, counts, column.rank_shares, places)
    own, counts = rank_by_frequency(column.own)
    released = tuple(
        np.where(codes < len(counts), codes, UNKNOWN_CODE).astype(np.int32)
        for codes, _ in map(rank_by_frequency, column.released)
    )
    return CodedColumn(column.name, own, released, counts)


def rank_by_frequency(cells: Keys) -> tuple[Codes, Integers]:
    """Return the frequency rank of each cell's value, missing last, and the counts in that order."""
    different = distinct_codes(cells)
    values, counts = different.values, different.counts
    order = np.lexsort((values, -np.where(values == MISSING_KEY, 0, counts)))
    rank = np.empty(len(values), dtype=np.int32)
    rank[order] = np.arange(len(values))
    return rank[different.codes], counts[order]


def log_value_shares(columns: Sequence[CodedColumn]) -> Floats:
    """Return the sum of the log shares of each record's values, (N,): lower is rarer; numbers in twentieths."""
    return -record_surprisal(columns)


def record_surprisal(columns: Sequence[CodedColumn]) -> Floats:
    """Return the sum of minus log shares of each record's values, (N,); numbers in twentieths."""
    total = np.zeros(len(columns[0].codes) if columns else 0)
    for one in columns:
        total += _class_surprisals(one)[value_classes(one)]
    return total


def released_row_surprisal(columns: Sequence[CodedColumn], release: int) -> Floats:
    """Return the surprisal of each row of a dataset by the shares in the joint table, (r,)."""
    total = np.zeros(len(columns[0].released_codes[release]) if columns else 0)
    for one in columns:
        total += _class_surprisals(one)[value_classes(one, release)]
    return total


def value_classes(one: CodedColumn, release: int | None = None) -> Integers:
    """Return the class of each value of the joint table, or of a dataset, for its share; -1 if unknown.

    The class is the code, or a twentieth of the ranks for many distinct numbers.
    """
    codes = one.codes if release is None else one.released_codes[release]
    if one.rank_shares is None or len(one.counts) <= 2 * BINS:
        return codes.astype(np.int64)
    places = one.rank_shares if release is None else one.released_rank_shares[release]
    return np.clip((places * BINS).astype(np.int64), -1, BINS - 1) + 1


def _class_surprisals(one: CodedColumn) -> Floats:
    """Return minus the log share of each class, that of unknown values last."""
    counts = (
        one.counts
        if one.rank_shares is None or len(one.counts) <= 2 * BINS
        else np.bincount(value_classes(one), minlength=BINS + 1)
    )
    # A level that is not in the joint table counts as one that half a record has.
    return np.asarray(-np.log(np.append(np.maximum(counts, 1), 0.5) / len(one.codes)))


def binned_rank_keys(places: Singles, parts: int, offset: float) -> Keys:
    """Return keys of ranks (n,) that are equal within a bin; missing is a bin of its own."""
    return np.where(places < 0, np.uint64(0), (np.maximum(places, 0) * parts + offset + 1).astype(np.uint64))


def order_rarest_first(score: Floats, rows: Keys) -> Integers:
    """Return the records by ascending score, ties by their row keys, (N,)."""
    order = sort_order(score)
    new = is_run_start(score[order])
    # Only ties are sorted by row, which is faster than ``lexsort`` of all.
    tied = np.flatnonzero(~(new & np.append(new[1:], True)))
    if len(tied):
        run, some = np.cumsum(new)[tied], order[tied]
        by_row = sort_order(rows[some])
        order[tied] = some[by_row[sort_order(run[by_row])]]
    return order


def midrank_shares(values: Floats) -> Floats:
    """Return midranks as shares of the records, missing values first, (n,)."""
    different = distinct_codes(values)
    counts, missing = different.counts, int(np.isnan(different.values[-1:]).sum())
    first = np.append(counts[-missing:], 0)[0] if missing else 0
    above, missing_code = running_sums(counts), len(counts) - missing

    def shares_of(rows: slice) -> Floats:
        shares = (above[rows] + first - (counts[rows] - 1) / 2) / len(values)
        shares[max(0, missing_code - rows.start) :] = (first + 1) / 2 / len(values)
        return shares

    return different.take_by_row(compute_column(len(counts), np.float64, shares_of))
