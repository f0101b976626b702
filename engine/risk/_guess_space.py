"""Candidate guesses at the synthesised variables of a record (Reiter, Wang & Zhang §2, §4, §5).

Numbers and dates are guessed on a grid of confidential values; a record's own value stands for its cell, and a guess is
right if it falls into that cell. Missing is a value too.

``observed`` guesses are the combinations of values in the stratum: leaving others out makes the truth easier to find,
never harder. ``neighbours`` differ from the truth in one variable: the result is an upper bound, since other guesses
could only reduce the probability of the truth. ``all`` are all combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..data.schema import Kind
from ..errors import NotComputable
from ..methods.release_models import IntruderGuesses
from ..partition.equivalence_classes import equivalence_classes
from ..statistics.columns import standard_deviation

Value = TypeVar("Value", bound=np.generic)
Space = Literal["observed", "all", "neighbours"]


@dataclass(frozen=True, eq=False)
class GuessableVariable:
    """Guessed variable with the grid of its possible values.

    name: name of the variable
    is_number: whether it is a number or a date
    values: possible values, coded as in ``Microdata.numbers``, (k,)
    log_width: logarithm of the number of values, or of the length, that each stands for, (k,)
    codes: grid position of each record's value, (n,)
    """

    name: str
    is_number: bool
    values: Floats
    log_width: Floats
    codes: Integers

    @classmethod
    def from_column(cls, data: Microdata, name: str, grid: int) -> GuessableVariable:
        """Create the grid: all levels, or at most ``grid`` numbers, and missing if any record is."""
        variable, numbers, missing = data.schema[name], data.numbers(name), data.missing_mask(name)
        if variable.kind.has_levels:
            points = np.arange(len(data.column(name).cat.categories), dtype=np.float64)
            edges, widths = points + 0.5, np.ones(len(points))
        elif missing.all():
            points, edges, widths = np.zeros(1), np.array([np.inf]), np.ones(1)
        else:
            points, edges = _number_grid(numbers[~missing], grid)
            ends = [numbers[~missing].min(), *edges, numbers[~missing].max()]
            if variable.kind in (Kind.COUNT, Kind.DATE):
                # Whole numbers above the lower and up to the upper edge; the first cell also contains its lower edge.
                widths = np.diff(np.floor(ends)) + (np.arange(len(points)) == 0)
            else:
                widths = np.diff(ends)
            # A heap or a constant forms a cell without length.
            widths = np.where(widths > 0, widths, 1.0)
            edges = np.append(edges, np.inf)
        codes = np.searchsorted(edges, np.where(missing, points[0], numbers), side="left")
        if missing.any():
            points, widths = np.append(points, np.nan), np.append(widths, 1.0)
            codes = np.where(missing, len(points) - 1, codes)
        return cls(name, not variable.kind.has_levels, points, np.log(widths), codes.astype(np.int64))


def _number_grid(numbers: Floats, most: int) -> tuple[Floats, Floats]:
    """Return at most ``most`` values that represent cells, (k,), and the edges between the cells, (k - 1,)."""
    values, counts = np.unique(numbers, return_counts=True)
    cell = np.arange(len(values))
    if len(values) > most:
        below = (np.cumsum(counts) - counts / 2) / len(numbers)
        low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
        # Half of the grid follows the quantiles, half asinh of the standardised distance from the median: cells of a
        # long tail stay so narrow that density times width is near their probability.
        far = np.arcsinh((values - middle) / (high - low or standard_deviation(numbers)))
        place = 0.5 * below + 0.5 * (far - far[0]) / (far[-1] - far[0])
        cell = np.minimum((place * most).astype(np.int64), most - 1)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    edges = (values[starts[1:] - 1] + values[starts[1:]]) / 2
    upto, ends = np.cumsum(counts), np.append(starts[1:], len(values)) - 1
    halves = (upto[starts] - counts[starts] + upto[ends]) / 2  # the median of the records of each cell
    return values[np.searchsorted(upto, halves)], edges


@dataclass(frozen=True, eq=False)
class GuessSpace:
    """Guesses at the records of a table: variables, and combinations of their values in each stratum.

    data: confidential table of n records
    variables: V guessed variables
    space: kind of combinations that are guessed
    stratum: stratum of each record, (n,)
    combinations: guesses of each stratum as grid positions, (g, V) each
    counts: number of records with each combination, (g,) for each stratum
    """

    data: Microdata
    variables: tuple[GuessableVariable, ...]
    space: Space
    stratum: Integers
    combinations: tuple[Integers, ...]
    counts: tuple[Integers, ...]

    @classmethod
    def from_variables(
        cls, data: Microdata, names: Sequence[str], space: Space, grid: int, strata: Sequence[str], max_guesses: int
    ) -> GuessSpace:
        """Create the guesses at the variables ``names``.

        Raises:
            NotComputable: if a record would have more than ``max_guesses`` guesses.
        """
        variables = tuple(GuessableVariable.from_column(data, name, grid) for name in names)
        sizes = [len(one.values) for one in variables]
        stratum = (
            equivalence_classes([data.frame[name] for name in strata], len(data))
            if strata
            else np.zeros(len(data), dtype=np.int64)
        )
        codes = np.column_stack([one.codes for one in variables])
        combinations, counts = [], []
        for s in range(int(stratum.max()) + 1):
            inside = codes[stratum == s]
            different = distinct_rows(inside.T, len(inside))
            own, count = inside[different.first], different.counts
            if space == "all":
                # As floats: the product of many sizes overflows integers.
                if np.prod([float(size) for size in sizes]) > max_guesses:
                    raise NotComputable(
                        _too_many_guesses_reason(float(np.prod([float(size) for size in sizes])), max_guesses)
                    )
                every = np.indices(sizes).reshape(len(sizes), -1).T
                place = np.ravel_multi_index(tuple(own.T), sizes)
                full = np.zeros(len(every), dtype=np.int64)
                full[place] = count
                own, count = every, full
            if space == "observed" and len(own) > max_guesses:
                raise NotComputable(_too_many_guesses_reason(len(own), max_guesses))
            combinations.append(own.astype(np.int64))
            counts.append(count.astype(np.int64))
        if space == "neighbours" and (found := 1 + sum(sizes) - len(sizes)) > max_guesses:
            raise NotComputable(_too_many_guesses_reason(found, max_guesses))
        return cls(data, variables, space, stratum.astype(np.int64), tuple(combinations), tuple(counts))

    def blocks_of_stratum(self, records: NDArray[np.intp], most: int) -> Iterator[NDArray[np.intp]]:
        """Yield blocks of records of one stratum with at most ``most`` guesses in all."""
        for s in np.unique(self.stratum[records]):
            own = records[self.stratum[records] == s]
            size = max(1, most // self.guess_count(int(s)))
            for start in range(0, len(own), size):
                yield own[start : start + size]

    def guess_count(self, stratum: int) -> int:
        """Return the number of guesses at each record of a stratum."""
        if self.space == "neighbours":
            return 1 + sum(len(one.values) - 1 for one in self.variables)
        return len(self.combinations[stratum])

    def guesses_at(self, records: NDArray[np.intp]) -> CandidateGuesses:
        """Return the guesses at records (t,) of one stratum."""
        s = int(self.stratum[records[0]])
        truth = np.column_stack([one.codes[records] for one in self.variables])
        if self.space == "neighbours":
            places = np.stack(
                [_neighbour_combinations(own, [len(one.values) for one in self.variables]) for own in truth]
            )
            counts = np.zeros(places.shape[:2], dtype=np.int64)
        else:
            places = np.broadcast_to(self.combinations[s], (len(records), *self.combinations[s].shape))
            counts = np.broadcast_to(self.counts[s], places.shape[:2])
        right = (places == truth[:, None, :]).all(axis=2)
        values, log_width = {}, np.zeros(places.shape[:2])
        for v, one in enumerate(self.variables):
            own = self.data.numbers(one.name)[records]
            # A record's own value stands for its cell, so that the truth itself is among the guesses.
            values[one.name] = np.where(places[..., v] == truth[:, None, v], own[:, None], one.values[places[..., v]])
            log_width += one.log_width[places[..., v]]
        return CandidateGuesses(
            IntruderGuesses(records, values), np.argmax(right, axis=1), counts - right, log_width, places.shape[1]
        )


@dataclass(frozen=True, eq=False)
class CandidateGuesses:
    """Guesses at t records of one stratum, g each.

    guesses: guessed values, (t, g)
    truth: position of the truth among each record's guesses, -1 if it is not among them, (t,)
    others: number of other records with each combination, (t, g)
    log_width: logarithm of the number of values that each guess stands for, (t, g)
    size: number of guesses at each record, including those not selected
    """

    guesses: IntruderGuesses
    truth: NDArray[np.intp]
    others: Integers
    log_width: Floats
    size: int

    def select(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> CandidateGuesses:
        """Return the guesses at some records (r,), in some columns: (r, c), or (c,) for all records."""
        columns = np.broadcast_to(columns, (len(rows), columns.shape[-1]))

        def select_cells(values: NDArray[Value]) -> NDArray[Value]:
            return np.take_along_axis(values[rows], columns, axis=1)

        guesses = IntruderGuesses(
            self.guesses.records[rows], {name: select_cells(v) for name, v in self.guesses.values.items()}
        )
        right = columns == self.truth[rows, None]
        truth = np.where(right.any(axis=1), np.argmax(right, axis=1), -1)
        return CandidateGuesses(guesses, truth, select_cells(self.others), select_cells(self.log_width), self.size)


def _neighbour_combinations(truth: Integers, sizes: Sequence[int]) -> Integers:
    """Return the truth, then all combinations that differ from it in one variable, (1 + sum of sizes - V, V)."""
    found = [truth]
    for v, size in enumerate(sizes):
        for place in range(size):
            if place != truth[v]:
                other = truth.copy()
                other[v] = place
                found.append(other)
    return np.stack(found)


def _too_many_guesses_reason(found: float, largest: int) -> str:
    """Return why there are too many guesses, in words."""
    return (
        f'a record has {found:,.0f} guesses, more than {largest:,}: use guesses = "observed" or "neighbours", fewer points, strata, '
        "or a larger largest"
    )


def expected_values(values: Mapping[str, Floats], weights: Floats, names: Sequence[str]) -> Floats:
    """Return the mean of each number weighted by (t, g) weights that sum to 1, (t, V); missing guesses are left out."""
    found = []
    for name in names:
        known = ~np.isnan(values[name])
        total = np.where(known, weights, 0.0)
        mean = (np.where(known, values[name], 0.0) * total).sum(axis=1) / np.maximum(total.sum(axis=1), 1e-300)
        found.append(mean)
    return np.column_stack(found) if found else np.empty((len(weights), 0))
