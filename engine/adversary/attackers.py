"""Family of attackers who infer whether a person is in the data that a release was made from.

No single attacker is best everywhere (Ward et al. 2025, Synth-MIA): a release may disclose people through all
variables, some variables, rare or exact values. A higher score means more probably in the data:

    nearest      minus the distance of the nearest released record: by all variables, levels, number ranks, and
                 ``HALVES`` random halves
    nearer       distance of the nearest reference record less that of the nearest released one, by the same sets
    density      ratio of the densities of release and reference (DOMIAS, van Breugel et al. 2023;
                 ``density.log_density_ratio``)
    likelihood   gain in likelihood of the released records near the person when added to the reference (GenLRA, Ward et
                 al. 2025): sum over the ``LOCAL_NEIGHBOURS`` nearest released records s of log(1 + K(s, x) / sum over
                 the reference of K(s, r)), K(a, b) = exp(-distance / h), h the mean distance of a reference record to
                 the nearest other
    equal        log share of released records with the person's values, less that of the reference, each with half a
                 record added: by all variables, levels, and all but one

The reference are people of the same population who are not in the data. One half of the people selects the best
attacker and the other half measures it (``calibration``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.rows import distinct_codes
from ..data.units import Units
from ..statistics.gower import AT_ONCE, UNIT, GowerDistance, Singles, SubsetGowerDistances
from .cells import count_occurrences, unit_keys
from .density import NeighbourDistances, log_density_ratio
from .nearest_records import NearestRecords, smallest_of_each_row

HALVES = 8
LOCAL_NEIGHBOURS = 10
MOST_LEFT_OUT = 30
"""Number of variables up to which each is left out once."""
INFINITE_RATIO_SCORE = 1e6
"""Larger than the logarithm of every finite ratio."""


def draw_variable_halves(variables: int, rng: np.random.Generator) -> Booleans:
    """Draw at most ``HALVES`` distinct random halves of the variables, (s, d)."""
    size = (variables + 1) // 2
    if variables < 3:
        return np.zeros((0, variables), dtype=np.bool_)
    wanted, found = min(HALVES, comb(variables, size)), dict[tuple[int, ...], None]()
    while len(found) < wanted:
        found[tuple(sorted(rng.choice(variables, size, replace=False).tolist()))] = None
    drawn = np.zeros((wanted, variables), dtype=np.bool_)
    for row, some in zip(drawn, found, strict=True):
        row[list(some)] = True
    return drawn


@dataclass(frozen=True, eq=False)
class AttackerFamily:
    """K attackers, each using some of d variables.

    distance_sets: sets of variables of the distances, (s, d)
    agreement_sets: sets of variables of exact agreement, (e, d)
    names: description of each attacker, (K,)
    """

    distance_sets: Booleans
    agreement_sets: Booleans
    names: tuple[str, ...]

    @classmethod
    def from_halves(cls, levelled: Booleans, variables: Sequence[str], variable_halves: Booleans) -> AttackerFamily:
        """Create the family from random halves of the variables; ``levelled`` (d,) marks categorical variables."""
        d = len(levelled)
        whole = np.ones((1, d), dtype=np.bool_)
        kinds = [levelled[None], ~levelled[None]] if 0 < levelled.sum() < d else []
        distance_sets = ["all variables", *(["variables with levels", "numbers"] if kinds else [])]
        distance_sets += [
            ", ".join(n for n, inside in zip(variables, half, strict=True) if inside) for half in variable_halves
        ]
        but_one = ~np.eye(d, dtype=np.bool_) if 1 < d <= MOST_LEFT_OUT else np.zeros((0, d), dtype=np.bool_)
        alike = np.concatenate([whole, *kinds[:1], but_one])
        agreement_sets = ["all variables", *(["variables with levels"] if kinds else [])]
        agreement_sets += [f"all but {name}" for name in variables] if len(but_one) else []
        names = (
            *(f"nearest released record by {what}" for what in distance_sets),
            *(f"nearest released record against the reference by {what}" for what in distance_sets),
            "density ratio",
            "local likelihood",
            *(f"agreement in {what}" for what in agreement_sets),
        )
        return cls(np.concatenate([whole, *kinds, variable_halves]), alike, names)

    def membership_scores(
        self, gower: GowerDistance, own: Floats, releases: Sequence[Floats], reference: Floats, density: Floats
    ) -> Floats:
        """Score people at positions ``own`` (q, d) from all datasets together and from each, (1 + m, q, K).

        ``releases`` are the positions of each dataset, (r, d), ``reference`` (c, d) those of other people, ``density``
        (1 + m, q, 2) the scores of ``log_density_ratio``.
        """
        distances = SubsetGowerDistances.from_gower(gower)
        releases = [
            one[np.lexsort(one.T)] for one in releases
        ]  # of records that are as near those count that come first
        mine, others = distances.round_places(own), distances.round_places(reference)
        m, q = len(releases), len(own)
        found = np.empty((1 + m, q, len(self.names)))
        s = len(self.distance_sets)
        elsewhere = np.empty((q, s))
        for rows, k, block in distances.iterate_blocks(mine, others, self.distance_sets):
            elsewhere[rows, k] = block.min(axis=1) * UNIT
        width = kernel_bandwidth(distances, others)
        local = [
            _LocalDistances.from_dataset(
                distances, mine, distances.round_places(one), others, self.distance_sets, width
            )
            for one in releases
        ]
        closest = np.stack([one.nearest_distances for one in local])
        for at, apart in enumerate([closest.min(axis=0), *closest]):
            found[at, :, :s] = -apart
            found[at, :, s : 2 * s] = elsewhere - apart
        found[:, :, 2 * s] = INFINITE_RATIO_SCORE * density[:, :, 0] + density[:, :, 1]
        found[:, :, 2 * s + 1] = local_likelihood_gains(local, width)
        found[:, :, 2 * s + 2 :] = self._agreement_log_ratios(gower, own, releases, reference)
        return found

    def scores_without_release(self, gower: GowerDistance, own: Floats, reference: Floats) -> Floats:
        """Score people without a release by their distances from the reference (c, d), (q, s)."""
        distances = SubsetGowerDistances.from_gower(gower)
        found = np.empty((len(own), len(self.distance_sets)))
        for rows, k, block in distances.iterate_blocks(
            distances.round_places(own), distances.round_places(reference), self.distance_sets
        ):
            found[rows, k] = block.min(axis=1) * UNIT
        return found

    @property
    def names_of_units(self) -> tuple[str, ...]:
        """Return the descriptions of the attackers of units: of ``score_units``, and of ``unit_log_ratios``."""
        each = [f"{name}, {how}" for how in ("by the record that scores highest", "by the record that scores lowest", "summed over the records") for name in self.names]  # fmt: skip
        whole = [name for name in self.names if name.startswith("agreement in ")]
        return (
            *each,
            *(name.replace("agreement in", "all records of the unit together by") for name in whole),
            "nearest unit of the release, record by record",
            "nearest unit of the release against the reference, record by record",
        )

    def unit_scores(
        self,
        gower: GowerDistance,
        own: tuple[Floats, Units],
        releases: Sequence[tuple[Floats, Units]],
        reference: tuple[Floats, Units],
    ) -> Floats:
        """Score U units by the records that they have together, from all datasets together and from each, (1 + m, U, e + 2).

        Each table is given as the positions of its records and its units. The scores are the log ratios of the shares of
        units that have the same records, by each set of variables of exact agreement; and minus the distance of the
        nearest unit of as many records, alone and against the reference.
        """
        apart = np.stack([aligned_unit_distances(gower, own, one) for one in releases])
        apart = np.concatenate([apart.min(axis=0)[None], apart])
        nearer = aligned_unit_distances(gower, own, reference) - apart
        return np.concatenate(
            [self._unit_log_ratios(own, releases, reference), -apart[:, :, None], nearer[:, :, None]], axis=2
        )

    def _unit_log_ratios(
        self,
        own: tuple[Floats, Units],
        releases: Sequence[tuple[Floats, Units]],
        reference: tuple[Floats, Units],
    ) -> Floats:
        """Return the log ratios of the shares of units that have the same records, (1 + m, U, e)."""
        counts = np.empty((1 + len(releases), len(own[1]), len(self.agreement_sets)))
        sides = [(_column_keys(places), units) for places, units in (own, reference, *releases)]
        of_datasets = [len(units) for _, units in releases]
        sizes = np.array([sum(of_datasets), *of_datasets])[:, None]
        for k, chosen in enumerate(self.agreement_sets):
            mine, others, *shown = (
                unit_keys(keys[:, chosen].sum(axis=1, dtype=np.uint64), units) for keys, units in sides
            )
            each = np.stack([count_occurrences(mine, keys) for keys in shown])
            here = (np.concatenate([each.sum(axis=0)[None], each]) + 0.5) / (sizes + 1)
            counts[:, :, k] = np.log(here) - np.log((count_occurrences(mine, others) + 0.5) / (len(reference[1]) + 1))
        return counts

    def _agreement_log_ratios(
        self, gower: GowerDistance, own: Floats, releases: Sequence[Floats], reference: Floats
    ) -> Floats:
        """Return the log ratios of exact agreement in release and reference by each set of variables, (1 + m, q, e)."""
        counts = np.empty((1 + len(releases), len(own), len(self.agreement_sets)))
        sides = [_column_keys(places) for places in (own, reference, *releases)]
        sizes = np.array([sum(map(len, releases)), *map(len, releases)])[:, None]
        for k, chosen in enumerate(self.agreement_sets):
            mine, others, *shown = (keys[:, chosen].sum(axis=1, dtype=np.uint64) for keys in sides)
            each = np.stack([count_occurrences(mine, keys) for keys in shown])
            here = (np.concatenate([each.sum(axis=0)[None], each]) + 0.5) / (sizes + 1)
            counts[:, :, k] = np.log(here) - np.log((count_occurrences(mine, others) + 0.5) / (len(others) + 1))
        return counts


def _column_keys(places: Floats) -> Keys:
    """Return keys of the cells (n, d), mixed with their column."""
    salt = mix_bits(np.arange(1, places.shape[1] + 1, dtype=np.uint64))
    # Adding 0.0 turns -0.0 into 0.0, whose bits differ.
    return mix_bits(mix_bits((places + 0.0).view(np.uint64)) ^ salt)


def aligned_unit_distances(gower: GowerDistance, own: tuple[Floats, Units], table: tuple[Floats, Units]) -> Floats:
    """Return the distance of each unit to the nearest of a table with as many records, (U,), as a mean over its records.

    Records of two units are compared in the order of their levels and then of their numbers. Without a unit of as many
    records the distance is the largest possible.
    """
    levelled = np.array([name in gower.levels for name in gower.names], dtype=np.bool_)
    (mine, units), (theirs, others) = ((_align_records(places, of, levelled), of) for places, of in (own, table))
    found = np.full(len(units), len(gower.names) * gower.unit_distance)
    starts, other_starts = units.starts, others.starts
    for size in np.unique(units.sizes):
        asked, known = np.flatnonzero(units.sizes == size), np.flatnonzero(others.sizes == size)
        if not len(known):
            continue
        step = max(1, AT_ONCE // len(known))
        for first in range(0, len(asked), step):
            some = asked[first : first + step]
            total = np.zeros((len(some), len(known)))
            for place in range(int(size)):
                total += gower.pairwise_distances(mine[starts[some] + place], theirs[other_starts[known] + place])
            found[some] = total.min(axis=1) / size
    return found


def _align_records(places: Floats, units: Units, levelled: Booleans) -> Floats:
    """Return the records (n, d) unit by unit, those of a unit by their levels and then by their numbers."""
    columns = np.concatenate([np.flatnonzero(levelled), np.flatnonzero(~levelled)])
    return places[np.lexsort((*places[:, columns[::-1]].T, units.unit_of))]


def kernel_bandwidth(distances: SubsetGowerDistances, reference: Singles) -> float:
    """Return the mean distance of a reference record to the nearest other, at least 1/100 of a variable."""
    if len(reference) < 2:
        return UNIT
    near = NearestRecords.from_rounded_places(distances, reference, reference, 2)
    second = near.k_distances[near.searched.combination_of, 1]  # the first is the record itself, or one like it
    return max(float(second.mean()), UNIT / 100)


@dataclass(frozen=True, eq=False)
class _LocalDistances:
    """Distances of q people to the records of one dataset.

    nearest_distances: distance of the nearest record by each set of variables, (q, s)
    local_distances: distances of the k nearest records by all variables, (q, k)
    log_kernel_sums: log of the kernel sum over the reference at each of these records, (q, k)
    """

    nearest_distances: Floats
    local_distances: Floats
    log_kernel_sums: Floats

    @classmethod
    def from_dataset(
        cls,
        distances: SubsetGowerDistances,
        own: Singles,
        shown: Singles,
        others: Singles,
        subsets: Booleans,
        width: float,
    ) -> _LocalDistances:
        """Compute the distances of people at positions ``own`` to the records ``shown`` of a dataset."""
        k = min(LOCAL_NEIGHBOURS, len(shown))
        closest, apart = np.empty((len(own), len(subsets))), np.empty((len(own), k))
        at: Integers = np.empty((len(own), k), dtype=np.int64)
        for rows, subset, found in distances.iterate_blocks(own, shown, subsets):
            closest[rows, subset] = found.min(axis=1) * UNIT
            if not subset:
                apart[rows], at[rows] = smallest_of_each_row(found, k)
        apart *= UNIT
        different = distinct_codes(at.ravel())
        some, place = different.values, different.codes
        mass, unit = np.empty(len(some)), width / UNIT
        for rows, _, found in distances.iterate_blocks(shown[some], others, np.ones((1, own.shape[1]), dtype=np.bool_)):
            # Scaled by the nearest distance: with a small bandwidth all kernels underflow.
            least = found.min(axis=1)
            mass[rows] = np.log(np.exp((least[:, None] - found) / unit).sum(axis=1)) - least / unit
        return cls(closest, apart, mass[place].reshape(at.shape))


def local_likelihood_gains(local: Sequence[_LocalDistances], width: float) -> Floats:
    """Return the likelihood gains from the nearest records of all datasets together and of each, (1 + m, q)."""
    apart = np.concatenate([one.local_distances for one in local], axis=1)
    mass = np.concatenate([one.log_kernel_sums for one in local], axis=1)
    k = local[0].local_distances.shape[1]
    first = np.argsort(apart, axis=1, kind="stable")[:, :k]
    together = np.take_along_axis(apart, first, axis=1), np.take_along_axis(mass, first, axis=1)
    sides = [together, *((one.local_distances, one.log_kernel_sums) for one in local)]
    return np.stack([np.logaddexp(0, -a / width - m).sum(axis=1) for a, m in sides])


def density_scores(
    inside: Sequence[NeighbourDistances], outside: NeighbourDistances, variables: int, neighbours: int
) -> Floats:
    """Return ``log_density_ratio`` from all datasets together and from each, (1 + m, q, 2)."""
    together = NeighbourDistances.from_tables(inside, neighbours)
    return np.stack([log_density_ratio(one, outside, variables) for one in (together, *inside)])
