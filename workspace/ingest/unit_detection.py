"""Detection of units of several records in a file: a column that numbers households or people, or runs of like records.

A column is proposed as the number of a unit where its values repeat a few times and its name says so. Without such a
name, the records of a value must follow each other in the file, or its values must come in turn again and again, and
other columns must stay the same within them far beyond chance. A file without such a column may still have several
records of a person: then records that follow each other agree in most columns far more often than others do. Both are
questions to the owner of the file; until he answers, units are kept whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.long_arrays import compute_column, long_blocks
from sfumato.engine.data.rows import distinct_codes
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.data.units import Units
from sfumato.engine.wording import join_first_names

from .identifiers import is_named_as_area, words_of_name

FEWEST_RECORDS, MOST_RECORDS = 1.25, 50.0
"""Records that a unit has on average where a column may number units."""
LARGEST_UNIT_SHARE = 0.01
"""Largest share of the records that one unit may have, in files of 1,000 records or more."""
LARGEST_UNIT = 10
"""And the largest number of its records in smaller files."""
FEWEST_UNITS = 10
EVIDENCE = 6.0
"""Standard errors by which a column must be constant within units beyond chance."""
LEAST_CONSTANT = 0.9
"""Share of the units of several records within which a column that speaks for units is constant."""
CONTIGUOUS = 1.05
"""Runs of equal values for each value, up to which the records of a value follow each other."""
FEWEST_PAIRS = 100
LIKE_SHARE = 0.8
"""Share of the columns in which two records agree that are alike."""
LEAST_LIKE_PAIRS, TIMES_CHANCE = 0.1, 5.0
"""Share of neighbours that are alike where there are hidden units, and how many times that of other pairs it is."""
FEWEST_COLUMNS = 4
STABLE = 0.9
"""Share of like neighbours that agree in a column that stays the same within a hidden unit."""
SHUFFLES = 5
MOST_RECORDS_EXAMINED = 200_000
"""Records of which the first are examined for hidden units."""
MOST_WAVES = 50
MOST_PAIRS_OF_WAVES, MOST_OF_WAVE = 5, 2_000
"""Pairs of waves, and records of a wave, of which the first are compared."""
RECORDS_A_SHIFT, FARTHEST_SHIFT = 20, 10
"""Records that share a shift between two waves, and how much it may differ from that of the records before."""
UNIT_WORDS = frozenset(
    [
        "household", "households", "hh", "hhid", "hid", "hhno", "hserial", "family", "famid", "person", "personid", "pid", "persnr", "patient",
        "patientid", "firm", "company", "establishment", "enterprise", "case", "caseid", "respondent", "respid", "panel", "subject",
        "participant", "client", "customer", "user", "userid", "id", "idnr", "haushalt", "hhnr", "patnr", "menage", "ménage", "hogar",
    ]
)  # fmt: skip
"""Words of a name that say that a column numbers units."""


@dataclass(frozen=True, slots=True)
class UnitProposal:
    """Column that may number units of several records.

    name: the column
    n_units, n_records: numbers of its values and of the records
    order: column that rises within units without repeats; empty without one
    unit_level: columns that are the same in all records of every unit
    reason: what speaks for it, in words
    """

    name: str
    n_units: int
    n_records: int
    order: str
    unit_level: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class HiddenUnits:
    """Units that a file has and does not number: records of one unit follow each other.

    runs_of: columns that stay the same within a unit
    like_share: share of neighbours in the file that agree in most columns
    chance_share: that share of other pairs of records
    n_units: number of runs of records that agree on these columns
    """

    runs_of: tuple[str, ...]
    like_share: float
    chance_share: float
    n_units: int


@dataclass(frozen=True, slots=True)
class StackedWaves:
    """Waves of a file that has the same people in each and does not number them: they come in the same turn.

    wave: column that is the same in all records of a wave, by which the file is sorted
    like_share: share of the records that agree in most columns with one near their place in the next wave
    chance_share: that share where the records of the next wave are in any order
    """

    wave: str
    like_share: float
    chance_share: float


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Columns of a file as whole numbers that are equal where values are, and in the order of the values.

    columns: codes of each column, -1 where there is no value, (n,) each, coded when they are first asked for
    values: the values of each column, (n,) each
    """

    columns: Mapping[str, NDArray[np.int32]]
    values: Mapping[str, pd.Series]

    @classmethod
    def from_columns(cls, columns: Mapping[str, pd.Series]) -> CodedTable:
        """Code the values of columns, (n,) each."""
        return cls(_CodesOnDemand(columns), columns)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> CodedTable:
        """Code the columns of a frame (n, k)."""
        return cls.from_columns({str(name): frame[name] for name in frame.columns})

    def select_first(self, records: int) -> CodedTable:
        """Return the table of the first records."""
        if records >= self.n_records:
            return self
        return CodedTable.from_columns({name: values.iloc[:records] for name, values in self.values.items()})

    @cached_property
    def n_records(self) -> int:
        """Return the number of records."""
        return len(next(iter(self.values.values()), ()))


class _CodesOnDemand(Mapping[str, NDArray[np.int32]]):
    """Codes of columns by name, computed once."""

    def __init__(self, values: Mapping[str, pd.Series]) -> None:
        self._values, self._codes = values, dict[str, NDArray[np.int32]]()

    def __getitem__(self, name: str) -> NDArray[np.int32]:
        if name not in self._codes:
            self._codes[name] = _ordered_codes(self._values[name])
        return self._codes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _ordered_codes(values: pd.Series) -> NDArray[np.int32]:
    """Return the rank of each value among the distinct ones, (n,); -1 where there is none."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
        return _ranks_of_numbers(values.to_numpy())
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes = values.cat.codes.to_numpy()
        used = np.unique(np.concatenate([np.unique(codes[rows]) for rows in long_blocks(len(codes))] or [codes]))
        used = used[used >= 0]
        order = _order_of_values(np.asarray(values.cat.categories)[used])
        rank = np.full(len(values.cat.categories) + 1, -1, dtype=np.int32)
        rank[used[order]] = np.arange(len(used))
        return compute_column(len(codes), np.int32, lambda rows: rank[codes[rows]])
    codes, distinct = pd.factorize(values.array)
    rank = np.empty(len(distinct) + 1, dtype=np.int32)
    rank[_order_of_values(np.asarray(distinct))], rank[-1] = np.arange(len(distinct)), -1
    return rank[codes]


def _order_of_values(distinct: NDArray[Any]) -> NDArray[np.int64]:
    """Return the ascending order of distinct values (u,), of their texts where they cannot be compared."""
    try:
        return np.argsort(distinct)
    except TypeError:
        return np.argsort(np.asarray([str(one) for one in distinct]))


def _ranks_of_numbers(numbers: NDArray[Any]) -> NDArray[np.int32]:
    """Return the rank of each number among the distinct ones, (n,); -1 for NaN."""
    found = distinct_codes(numbers)
    if numbers.dtype.kind != "f" or not len(numbers) or not np.isnan(found.values[-1]):
        return found.codes
    missing = len(found.values) - 1
    return compute_column(
        len(numbers), np.int32, lambda rows: np.where(found.codes[rows] == missing, -1, found.codes[rows])
    )


def list_unit_candidates(variables: Iterable[Variable]) -> list[str]:
    """List the columns that may number units: whole numbers, codes and texts, but for areas.

    The records of a county are not those of a household or a person over time.
    """
    return [v.name for v in variables if v.kind in (Kind.CATEGORICAL, Kind.COUNT) and not is_named_as_area(v.name)]


def propose_unit(table: CodedTable, candidates: Sequence[str]) -> UnitProposal | None:
    """Return the column of a file that numbers units of several records; None where none does.

    ``candidates`` are the columns that may: whole numbers, codes and texts. Of several, the one with most units whose name
    says so is proposed, or else the one with most units.
    """
    found = [proposal for name in candidates if (proposal := _examine_candidate(table, name)) is not None]
    if not found:
        return None
    return max(found, key=lambda one: (_is_named_as_unit(one.name), one.n_units))


def _is_named_as_unit(name: str) -> bool:
    """Return whether a column's name says that it numbers units."""
    words = words_of_name(name)
    return not UNIT_WORDS.isdisjoint(words) or "".join(words) in UNIT_WORDS


def _examine_candidate(table: CodedTable, name: str) -> UnitProposal | None:
    """Return the proposal that a column numbers units; None where it does not."""
    codes = table.columns[name]
    n_records = len(codes)
    lacking = sum(int(np.count_nonzero(codes[rows] < 0)) for rows in long_blocks(n_records))
    # the codes are those of all distinct values; who has none is alone
    n_units = int(codes.max(initial=-1)) + 1 + lacking
    if n_units < FEWEST_UNITS or not FEWEST_RECORDS <= n_records / n_units <= MOST_RECORDS:
        return None
    units = Units.from_codes(codes)
    if units.sizes.max() > max(LARGEST_UNIT, LARGEST_UNIT_SHARE * n_records):
        return None
    is_named = _is_named_as_unit(name)
    is_contiguous = 1 + int((codes[1:] != codes[:-1]).sum()) <= CONTIGUOUS * n_units
    # most columns of a table are neither, and nothing has to be compared
    if not (is_named or ((is_contiguous or units.come_in_turn) and n_records / n_units <= LARGEST_UNIT)):
        return None
    others = [one for one in table.columns if one != name]
    shares = {one: _constant_share(units, table.columns[one]) for one in others}
    beyond = [
        one for one in others if shares[one] >= LEAST_CONSTANT and _is_constant_beyond_chance(units, table.columns[one])
    ]
    # Where values only come in turn, whatever rises through the file rises within them; a wave has few values.
    ordering = others if is_named or is_contiguous else [one for one in others if table.columns[one].max() < MOST_WAVES]
    order = next((one for one in ordering if _rises_within_units(units, table.columns[one])), "")
    # Any column that a file is sorted by has some column that follows from it, as low weight does from weight.
    if not (order or len(beyond) > 1 or (is_named and beyond)):
        return None
    reasons = [
        "its name says so" if is_named else "",
        f"{_quote_names(beyond)} {'is' if len(beyond) == 1 else 'are'} the same within it" if beyond else "",
        f"{order} rises within it" if order else "",
    ]
    level = tuple(one for one in beyond if shares[one] == 1.0)
    return UnitProposal(name, n_units, n_records, order, level, ", and ".join(filter(None, reasons)))


def _quote_names(names: Sequence[str]) -> str:
    """Return some names in words, the first three at most."""
    return join_first_names(names, 3)


def _constant_share(units: Units, values: NDArray[np.integer[Any]]) -> float:
    """Return the share of the units of several records that have one value."""
    several = int((units.sizes > 1).sum())
    differing = units.differing_units(values)
    return 1 - len(differing) / several if several else 0.0


def _is_constant_beyond_chance(units: Units, values: NDArray[np.integer[Any]]) -> bool:
    """Return whether more units have one value than if records were assigned to units at random (label permutation)."""
    rng = np.random.default_rng(len(values))
    observed = _constant_share(units, values)
    drawn = np.array([_constant_share(units, rng.permutation(values)) for _ in range(SHUFFLES)])
    several = int((units.sizes > 1).sum())
    expected = float(drawn.mean())
    spread = np.sqrt(max(expected * (1 - expected), 1 / several) / several)
    return bool(observed - expected > EVIDENCE * spread)


def _rises_within_units(units: Units, values: NDArray[np.integer[Any]]) -> bool:
    """Return whether values rise within units in the order of the file, without repeats, in nearly all that have several
    records; a column that rises through the whole file orders no unit.
    """
    previous = units.previous_records
    later = previous >= 0
    if int(later.sum()) < FEWEST_PAIRS // 5:
        return False
    rises = values[later] > values[previous[later]]
    starts = units.first_records
    # numbers of the records rise in all, from the last record of a unit to the first of the next too
    restarts = (values[starts[1:]] <= values[starts[1:] - 1]).mean() if len(starts) > 1 else 0.0
    return bool(rises.mean() >= 0.99 and (values[later] >= 0).all() and restarts > 0.5)


def find_hidden_units(table: CodedTable) -> HiddenUnits | None:
    """Return the hidden units of a file that numbers none; None without evidence of any.

    Neighbours in the file are compared with other pairs. A file that is sorted has like neighbours too: columns by which it
    is sorted do not count, and pairs are compared within the records that are equal in these.
    """
    table = table.select_first(MOST_RECORDS_EXAMINED)
    sorted_by, groups = _sorting_columns(table)
    names = [
        name for name, codes in table.columns.items() if name not in sorted_by and len(np.unique(codes[:10_000])) > 1
    ]
    if len(names) < FEWEST_COLUMNS or table.n_records < FEWEST_PAIRS:
        return None
    same_group = groups[1:] == groups[:-1]
    if int(same_group.sum()) < FEWEST_PAIRS:
        return None
    agree = np.stack([table.columns[name][1:] == table.columns[name][:-1] for name in names], axis=1)[same_group]
    is_like = agree.sum(axis=1) >= LIKE_SHARE * len(names)
    like = float(is_like.mean())
    chance = float(np.mean([_like_share_of_others(table, names, groups, seed) for seed in range(SHUFFLES)]))
    if like <= LEAST_LIKE_PAIRS or like < TIMES_CHANCE * chance:
        return None
    stable = tuple(name for name, share in zip(names, agree[is_like].mean(axis=0), strict=True) if share >= STABLE)
    runs_of = (*sorted_by, *stable)
    return HiddenUnits(runs_of, like, chance, int(number_runs([table.columns[name] for name in runs_of]).max()))


def find_stacked_waves(table: CodedTable) -> StackedWaves | None:
    """Return the waves of a file in which one wave of the same people follows another, and no column numbers them.

    Records of a wave are compared with those near their place in the next one, which has moved where people are missing, and
    with the same records in another order. Columns by which the file is sorted do not count. None without evidence.
    """
    table = table.select_first(MOST_RECORDS_EXAMINED)
    sorted_by, groups = _sorting_columns(table)
    wave = next(iter(sorted_by), "")
    names = [
        name for name, codes in table.columns.items() if name not in sorted_by and len(np.unique(codes[:10_000])) > 1
    ]
    if not wave or len(names) < FEWEST_COLUMNS:
        return None
    starts = np.append(np.flatnonzero(np.diff(table.columns[wave], prepend=-2)), table.n_records)
    blocks = [np.arange(a, b) for a, b in pairwise(starts.tolist())]
    if not 2 <= len(blocks) <= MOST_WAVES or min(map(len, blocks)) < FEWEST_PAIRS:
        return None
    rows = np.stack([table.columns[name] for name in names], axis=1)
    pairs = list(pairwise(blocks))[:MOST_PAIRS_OF_WAVES]
    like = float(np.mean([_like_share_in_turn(rows[one[:MOST_OF_WAVE]], rows[other]) for one, other in pairs]))
    found = list[float]()
    for seed in range(SHUFFLES):
        rng = np.random.default_rng(seed)
        # within records that are equal in the columns by which the file is sorted: their places say something of these
        mixed = [other[np.lexsort((rng.random(len(other)), groups[other]))] for _, other in pairs]
        found += [
            _like_share_in_turn(rows[one[:MOST_OF_WAVE]], rows[other])
            for (one, _), other in zip(pairs, mixed, strict=True)
        ]
    chance = float(np.mean(found))
    if like <= LEAST_LIKE_PAIRS or like < TIMES_CHANCE * chance:
        return None
    return StackedWaves(wave, like, chance)


def _like_share_in_turn(one: NDArray[np.integer[Any]], other: NDArray[np.integer[Any]]) -> float:
    """Return the share of the records (n, k) that agree in most columns with those near their place in other records (m, k).

    A few records at a time share a shift, which is that of those before or a little more or less.
    """
    shift, like = 0, 0
    near = np.arange(-FARTHEST_SHIFT, FARTHEST_SHIFT + 1)
    for first in range(0, len(one), RECORDS_A_SHIFT):
        some = one[first : first + RECORDS_A_SHIFT]
        places = first + shift + near[:, None] + np.arange(len(some))
        inside = (places >= 0) & (places < len(other))
        agree = (other[places.clip(0, len(other) - 1)] == some).sum(axis=2)
        counts = ((agree >= LIKE_SHARE * one.shape[1]) & inside).sum(axis=1)
        best = int(np.argmax(counts - 1e-3 * np.abs(near)))
        like += int(counts[best])
        # of records none of which is like another, no shift is the better one
        shift += int(near[best]) if counts[best] > 1 else 0
    return like / max(1, len(one))


def _sorting_columns(table: CodedTable) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the columns by which a file is sorted, in turn, and the number of each record's group of equal ones, (n,)."""
    groups = np.zeros(table.n_records, dtype=np.int64)
    found: list[str] = []
    while True:
        left = [name for name in table.columns if name not in found]
        inside = groups[1:] == groups[:-1]
        name = next((one for one in left if _is_sorted_within(table.columns[one], inside)), None)
        if name is None:
            return tuple(found), groups
        found.append(name)
        changes = (table.columns[name][1:] != table.columns[name][:-1]) | ~inside
        groups = np.concatenate([[0], np.cumsum(changes)])


def _is_sorted_within(codes: NDArray[np.integer[Any]], inside: NDArray[np.bool_]) -> bool:
    """Return whether values neither fall, or do not rise, from one record to the next inside groups, and do change."""
    steps = np.diff(codes)[inside]
    return bool(((steps >= 0).all() or (steps <= 0).all()) and (steps != 0).sum() >= 2)


def _like_share_of_others(table: CodedTable, names: Sequence[str], groups: NDArray[np.int64], seed: int) -> float:
    """Return the share of pairs of records at random, of one group, that agree in most columns."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(table.n_records), groups))
    pairs = groups[order[1:]] == groups[order[:-1]]
    one, other = order[1:][pairs], order[:-1][pairs]
    agree = np.zeros(len(one), dtype=np.int64)
    for name in names:
        agree += table.columns[name][one] == table.columns[name][other]
    return float((agree >= LIKE_SHARE * len(names)).mean()) if len(one) else 0.0


def number_runs(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the number, from 1, of the run of equal records that each record is in, (n,), by some columns (n,) each."""
    changes = np.zeros(len(columns[0]), dtype=np.bool_)
    for values in columns:
        changes[1:] |= values[1:] != values[:-1]
    return 1 + np.cumsum(changes).astype(np.int64)
