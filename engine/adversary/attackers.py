"""A family of attackers who infer whether a person is among the data that a release was made from.

No single attacker is the best everywhere (Ward et al. 2025, Synth-MIA): a release may disclose people through all variables, some variables,
rare values or exact values. Each attacker scores every person; a higher score means "more probably among the data":

    nearest      minus the distance of the nearest released record: over all variables, those with levels, numbers by ranks, and ``HALVES`` random
                 halves of the variables
    nearer       the distance of the nearest reference record less that of the nearest released one, over the same sets of variables
    density      the ratio of the densities of release and reference (DOMIAS, van Breugel et al. 2023), as ``density.log_ratio`` orders it
    likelihood   how much the person, added to the reference, raises the likelihood of the released records near them (GenLRA, Ward et al. 2025):
                 sum over the ``LOCAL`` nearest released records s of log(1 + K(s, x) / sum over the reference of K(s, r)), K(a, b) = exp(-distance / h),
                 h the mean distance of a reference record to the nearest other
    equal        log of the share of released records with the person's values, less that of the reference, each with half a record added: by all
                 variables, all with levels, and all but one

The reference consists of people of the same population who are not in the data. One half of the people selects the best attacker and the
other half measures it (``calibration``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..statistics.gower import Gower
from .cells import Keys, mixed, occurrences
from .density import Near, log_ratio
from .distances import UNIT, Distances, Singles, nearest
from .nearest import near

HALVES = 8
LOCAL = 10
MOST_LEFT_OUT = 30
"""With at most this many variables, each is left out once."""
ENDLESS = 1e6
"""Larger than the logarithm of every finite ratio."""


def halves(variables: int, rng: np.random.Generator) -> Booleans:
    """At most ``HALVES`` different halves of d ``variables``, drawn at random: (s, d)."""
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
class Family:
    """K attackers by d variables: ``near`` (s, d) are the sets of variables of the distances, ``alike`` (e, d) those of exact agreement."""

    near: Booleans
    alike: Booleans
    names: tuple[str, ...]

    @classmethod
    def of(cls, levelled: Booleans, variables: Sequence[str], drawn: Booleans) -> Family:
        """With these ``halves``; ``levelled`` (d,) are the variables that have levels."""
        d = len(levelled)
        whole = np.ones((1, d), dtype=np.bool_)
        kinds = [levelled[None], ~levelled[None]] if 0 < levelled.sum() < d else []
        said = ["all variables", *(["variables with levels", "numbers"] if kinds else [])]
        said += [", ".join(n for n, inside in zip(variables, half, strict=True) if inside) for half in drawn]
        but_one = ~np.eye(d, dtype=np.bool_) if 1 < d <= MOST_LEFT_OUT else np.zeros((0, d), dtype=np.bool_)
        alike = np.concatenate([whole, *kinds[:1], but_one])
        agreeing = ["all variables", *(["variables with levels"] if kinds else [])]
        agreeing += [f"all but {name}" for name in variables] if len(but_one) else []
        names = (
            *(f"nearest released record by {what}" for what in said),
            *(f"nearest released record against the reference by {what}" for what in said),
            "density ratio",
            "local likelihood",
            *(f"agreement in {what}" for what in agreeing),
        )
        return cls(np.concatenate([whole, *kinds, drawn]), alike, names)

    def scores(
        self, gower: Gower, own: Floats, releases: Sequence[Floats], reference: Floats, density: Floats
    ) -> Floats:
        """Scores (1 + m, q, K) of people at places ``own`` (q, d), by all released datasets together and by each.

        ``releases`` are places (r, d) of each dataset, ``reference`` (c, d) those of other people, ``density`` (1 + m, q, 2) the scores of ``log_ratio``.
        """
        distances = Distances.by(gower)
        releases = [
            one[np.lexsort(one.T)] for one in releases
        ]  # of records that are as near those count that come first
        mine, others = distances.rounded(own), distances.rounded(reference)
        m, q = len(releases), len(own)
        found = np.empty((1 + m, q, len(self.names)))
        s = len(self.near)
        elsewhere = np.empty((q, s))
        for rows, k, block in distances.blocks(mine, others, self.near):
            elsewhere[rows, k] = block.min(axis=1) * UNIT
        width = bandwidth(distances, others)
        local = [_Local.of(distances, mine, distances.rounded(one), others, self.near, width) for one in releases]
        closest = np.stack([one.closest for one in local])
        for at, apart in enumerate([closest.min(axis=0), *closest]):
            found[at, :, :s] = -apart
            found[at, :, s : 2 * s] = elsewhere - apart
        found[:, :, 2 * s] = ENDLESS * density[:, :, 0] + density[:, :, 1]
        found[:, :, 2 * s + 1] = likelihoods(local, width)
        found[:, :, 2 * s + 2 :] = self._agreement(gower, own, releases, reference)
        return found

    def scores_without(self, gower: Gower, own: Floats, reference: Floats) -> Floats:
        """Scores (q, s) of people at places ``own`` (q, d) by an attacker who has no release: how far they are from the ``reference`` (c, d) by each set of variables."""
        distances = Distances.by(gower)
        found = np.empty((len(own), len(self.near)))
        for rows, k, block in distances.blocks(distances.rounded(own), distances.rounded(reference), self.near):
            found[rows, k] = block.min(axis=1) * UNIT
        return found

    def _agreement(self, gower: Gower, own: Floats, releases: Sequence[Floats], reference: Floats) -> Floats:
        counts = np.empty((1 + len(releases), len(own), len(self.alike)))
        sides = [_column_keys(places) for places in (own, reference, *releases)]
        sizes = np.array([sum(map(len, releases)), *map(len, releases)])[:, None]
        for k, chosen in enumerate(self.alike):
            mine, others, *shown = (keys[:, chosen].sum(axis=1, dtype=np.uint64) for keys in sides)
            each = np.stack([occurrences(mine, keys) for keys in shown])
            here = (np.concatenate([each.sum(axis=0)[None], each]) + 0.5) / (sizes + 1)
            counts[:, :, k] = np.log(here) - np.log((occurrences(mine, others) + 0.5) / (len(others) + 1))
        return counts


def _column_keys(places: Floats) -> Keys:
    """Each cell of (n, d) mixed with its column."""
    salt = mixed(np.arange(1, places.shape[1] + 1, dtype=np.uint64))
    return mixed(mixed((places + 0.0).view(np.uint64)) ^ salt)


def bandwidth(distances: Distances, reference: Singles) -> float:
    """The mean distance of a record (c, d) to the nearest other, at least a hundredth of a variable."""
    if len(reference) < 2:
        return UNIT
    found = np.empty(len(reference))
    for pairs in near(distances, reference, reference, 2):  # the first is the record itself, or one like it
        found[pairs.rows] = pairs.of_each(2)[0][:, 1]
    return max(float(found.mean()), UNIT / 100)


@dataclass(frozen=True, eq=False)
class _Local:
    """Of q people and one dataset: the distance of the nearest record by each set of variables, ``closest`` (q, s); those of the k nearest by all
    variables, (q, k), and the logarithm of the sum of kernels over the reference at each of these, ``mass`` (q, k).
    """

    closest: Floats
    apart: Floats
    mass: Floats

    @classmethod
    def of(
        cls, distances: Distances, own: Singles, shown: Singles, others: Singles, subsets: Booleans, width: float
    ) -> _Local:
        k = min(LOCAL, len(shown))
        closest, apart = np.empty((len(own), len(subsets))), np.empty((len(own), k))
        at: Integers = np.empty((len(own), k), dtype=np.int64)
        for rows, subset, found in distances.blocks(own, shown, subsets):
            closest[rows, subset] = found.min(axis=1) * UNIT
            if not subset:
                apart[rows], at[rows] = nearest(found, k)
        apart *= UNIT
        some, place = np.unique(at, return_inverse=True)
        mass, unit = np.empty(len(some)), width / UNIT
        for rows, _, found in distances.blocks(shown[some], others, np.ones((1, own.shape[1]), dtype=np.bool_)):
            least = found.min(axis=1)
            mass[rows] = np.log(np.exp((least[:, None] - found) / unit).sum(axis=1)) - least / unit
        return cls(closest, apart, mass[place].reshape(at.shape))


def likelihoods(local: Sequence[_Local], width: float) -> Floats:
    """The gain in likelihood, (1 + m, q), by the nearest records of all datasets together, and of each."""
    apart = np.concatenate([one.apart for one in local], axis=1)
    mass = np.concatenate([one.mass for one in local], axis=1)
    k = local[0].apart.shape[1]
    first = np.argsort(apart, axis=1, kind="stable")[:, :k]
    together = np.take_along_axis(apart, first, axis=1), np.take_along_axis(mass, first, axis=1)
    sides = [together, *((one.apart, one.mass) for one in local)]
    return np.stack([np.logaddexp(0, -a / width - m).sum(axis=1) for a, m in sides])


def density_scores(inside: Sequence[Near], outside: Near, variables: int, neighbours: int) -> Floats:
    """``log_ratio`` (1 + m, q, 2) by all datasets together, and by each."""
    together = Near.together(inside, neighbours)
    return np.stack([log_ratio(one, outside, variables) for one in (together, *inside)])
