"""What an intruder may think of a record: the guesses at the variables that a release makes anew (Reiter, Wang & Zhang §2, §4, §5).

Numbers and dates are guessed on a grid of confidential values, in which a record's own value stands for its
cell: a guess is right when it falls into that cell. Half of the grid follows the quantiles, half the inverse hyperbolic sine of the distance from the median in
interquartile ranges, so that the cells of a long tail are narrow beside what varies there: the density at one of its values, times
its width, is near the probability of the cell. Missing is a value too.

``observed`` guesses are the combinations that records have, within the strata; those that no record has are left out, which makes
the truth easier to find and never harder. ``neighbours`` differ from the truth in one variable, and so does what is found: an
upper bound, since all other guesses could only take from the truth. ``all`` are all combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..errors import NotComputable
from ..methods.release_models import IntruderGuesses
from ..partition.equivalence_classes import equivalence_classes

Value = TypeVar("Value", bound=np.generic)
Space = Literal["observed", "all", "neighbours"]


@dataclass(frozen=True, eq=False)
class Guessable:
    """One variable: its ``values`` (k,), such as ``Microdata.numbers`` gives, how many values each stands for as a logarithm, ``log_width``
    (k,), and the place of every record's own among them, ``codes`` (n,).
    """

    name: str
    number: bool
    values: Floats
    log_width: Floats
    codes: Integers

    @classmethod
    def of(cls, data: Microdata, name: str, grid: int) -> Guessable:
        """Every level; at most ``grid`` numbers; and missing where a record is."""
        variable, numbers, missing = data.schema[name], data.numbers(name), data.missing_mask(name)
        if variable.kind.has_levels:
            points = np.arange(len(data.column(name).cat.categories), dtype=np.float64)
            edges, widths = points + 0.5, np.ones(len(points))
        elif missing.all():
            points, edges, widths = np.zeros(1), np.array([np.inf]), np.ones(1)
        else:
            points, edges = _grid(numbers[~missing], grid)
            ends = [numbers[~missing].min(), *edges, numbers[~missing].max()]
            if variable.kind in (Kind.COUNT, Kind.DATE):
                widths = np.diff(np.floor(ends)) + (np.arange(len(points)) == 0)
            else:
                widths = np.diff(ends)
            widths = np.where(widths > 0, widths, 1.0)
            edges = np.append(edges, np.inf)
        codes = np.searchsorted(edges, np.where(missing, points[0], numbers), side="left")
        if missing.any():
            points, widths = np.append(points, np.nan), np.append(widths, 1.0)
            codes = np.where(missing, len(points) - 1, codes)
        return cls(name, not variable.kind.has_levels, points, np.log(widths), codes.astype(np.int64))


def _grid(numbers: Floats, most: int) -> tuple[Floats, Floats]:
    """Values (k,), at most so many, that stand for cells, and the edges (k - 1,) between these."""
    values, counts = np.unique(numbers, return_counts=True)
    cell = np.arange(len(values))
    if len(values) > most:
        below = (np.cumsum(counts) - counts / 2) / len(numbers)
        low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
        far = np.arcsinh((values - middle) / (high - low or np.std(numbers)))
        place = 0.5 * below + 0.5 * (far - far[0]) / (far[-1] - far[0])
        cell = np.minimum((place * most).astype(np.int64), most - 1)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    edges = (values[starts[1:] - 1] + values[starts[1:]]) / 2
    upto, ends = np.cumsum(counts), np.append(starts[1:], len(values)) - 1
    halves = (upto[starts] - counts[starts] + upto[ends]) / 2  # the median of the records of each cell
    return values[np.searchsorted(upto, halves)], edges


@dataclass(frozen=True, eq=False)
class GuessSpace:
    """The guesses at every record. ``stratum`` (n,) numbers the strata; ``combinations`` has those of each, (g, V) places of values.

    ``counts`` are how many records have each combination.
    """

    data: Microdata
    variables: tuple[Guessable, ...]
    space: Space
    stratum: Integers
    combinations: tuple[Integers, ...]
    counts: tuple[Integers, ...]

    @classmethod
    def of(
        cls, data: Microdata, names: Sequence[str], space: Space, grid: int, strata: Sequence[str], largest: int
    ) -> GuessSpace:
        """Raises NotComputable where a record would have more than ``largest`` guesses."""
        variables = tuple(Guessable.of(data, name, grid) for name in names)
        sizes = [len(one.values) for one in variables]
        stratum = (
            equivalence_classes([data.frame[name] for name in strata], len(data))
            if strata
            else np.zeros(len(data), dtype=np.int64)
        )
        codes = np.column_stack([one.codes for one in variables])
        combinations, counts = [], []
        for s in range(int(stratum.max()) + 1):
            own, count = np.unique(codes[stratum == s], axis=0, return_counts=True)
            if space == "all":
                if np.prod([float(size) for size in sizes]) > largest:
                    raise NotComputable(_too_many(float(np.prod([float(size) for size in sizes])), largest))
                every = np.indices(sizes).reshape(len(sizes), -1).T
                place = np.ravel_multi_index(tuple(own.T), sizes)
                full = np.zeros(len(every), dtype=np.int64)
                full[place] = count
                own, count = every, full
            if space == "observed" and len(own) > largest:
                raise NotComputable(_too_many(len(own), largest))
            combinations.append(own.astype(np.int64))
            counts.append(count.astype(np.int64))
        if space == "neighbours" and (found := 1 + sum(sizes) - len(sizes)) > largest:
            raise NotComputable(_too_many(found, largest))
        return cls(data, variables, space, stratum.astype(np.int64), tuple(combinations), tuple(counts))

    def groups(self, records: NDArray[np.intp], most: int) -> Iterator[NDArray[np.intp]]:
        """The records in groups whose guesses can be weighed together: of one stratum, with at most ``most`` guesses in all."""
        for s in np.unique(self.stratum[records]):
            own = records[self.stratum[records] == s]
            size = max(1, most // self.guesses_in(int(s)))
            for start in range(0, len(own), size):
                yield own[start : start + size]

    def guesses_in(self, stratum: int) -> int:
        """How many guesses each record of a stratum has."""
        if self.space == "neighbours":
            return 1 + sum(len(one.values) - 1 for one in self.variables)
        return len(self.combinations[stratum])

    def at(self, records: NDArray[np.intp]) -> OpenGuesses:
        """The guesses at records (t,) of one stratum."""
        s = int(self.stratum[records[0]])
        truth = np.column_stack([one.codes[records] for one in self.variables])
        if self.space == "neighbours":
            places = np.stack([_neighbours(own, [len(one.values) for one in self.variables]) for own in truth])
            counts = np.zeros(places.shape[:2], dtype=np.int64)
        else:
            places = np.broadcast_to(self.combinations[s], (len(records), *self.combinations[s].shape))
            counts = np.broadcast_to(self.counts[s], places.shape[:2])
        right = (places == truth[:, None, :]).all(axis=2)
        values, log_width = {}, np.zeros(places.shape[:2])
        for v, one in enumerate(self.variables):
            own = self.data.numbers(one.name)[records]
            values[one.name] = np.where(places[..., v] == truth[:, None, v], own[:, None], one.values[places[..., v]])
            log_width += one.log_width[places[..., v]]
        return OpenGuesses(
            IntruderGuesses(records, values), np.argmax(right, axis=1), counts - right, log_width, places.shape[1]
        )


@dataclass(frozen=True, eq=False)
class OpenGuesses:
    """Guesses (t, g), the place of the truth among each record's, (t,), -1 where it is not there; the ``others`` (t, g) that have each
    combination, the logarithm of how many values each guess stands for, (t, g), and how many guesses there are in all.
    """

    guesses: IntruderGuesses
    truth: NDArray[np.intp]
    others: Integers
    log_width: Floats
    size: int

    def take(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> OpenGuesses:
        """Of some records (r,) the guesses in some columns, (r, c) or the same (c,) for all."""
        columns = np.broadcast_to(columns, (len(rows), columns.shape[-1]))

        def taken(values: NDArray[Value]) -> NDArray[Value]:
            return np.take_along_axis(values[rows], columns, axis=1)

        guesses = IntruderGuesses(
            self.guesses.records[rows], {name: taken(v) for name, v in self.guesses.values.items()}
        )
        right = columns == self.truth[rows, None]
        truth = np.where(right.any(axis=1), np.argmax(right, axis=1), -1)
        return OpenGuesses(guesses, truth, taken(self.others), taken(self.log_width), self.size)


def _neighbours(truth: Integers, sizes: Sequence[int]) -> Integers:
    """The truth first, and what differs from it in one variable, (1 + sum of sizes - V, V)."""
    found = [truth]
    for v, size in enumerate(sizes):
        for place in range(size):
            if place != truth[v]:
                other = truth.copy()
                other[v] = place
                found.append(other)
    return np.stack(found)


def _too_many(found: float, largest: int) -> str:
    return (
        f'a record has {found:,.0f} guesses, more than {largest:,}: use guesses = "observed" or "neighbours", fewer points, strata, '
        "or a larger largest"
    )


def expected(values: Mapping[str, Floats], weights: Floats, names: Sequence[str]) -> Floats:
    """The mean of each number by weights (t, g) that sum to 1, (t, V); missing guesses are left out."""
    found = []
    for name in names:
        known = ~np.isnan(values[name])
        total = np.where(known, weights, 0.0)
        mean = (np.where(known, values[name], 0.0) * total).sum(axis=1) / np.maximum(total.sum(axis=1), 1e-300)
        found.append(mean)
    return np.column_stack(found) if found else np.empty((len(weights), 0))
