"""A release as an intruder sees it who looks for one person: a few hundred numbers of each target.

    counts       released records that agree with the target on a set of variables: all variables, those with levels, all but one, and ``SETS`` sets
                 drawn at random (Stadler et al. 2022; Meeus et al. 2023: queries on random subsets), numbers in ``PARTS`` parts of equal count; as
                 square roots, whose spread does not grow with the count
    nearest      distance of the nearest released record, and the mean of the ``FEW`` nearest: by all variables, those with levels, numbers, and
                 random halves of them; by Gower on ranks
    guesses      share of the released records nearest to the target by the known variables that have its value of a sensitive variable

All datasets of a release together are one table. A label of a generalised variable agrees with the values that it contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import NotComputable
from ..partition.hierarchies import Hierarchy, contained, single
from ..statistics.gower import Gower
from .attackers import MOST_LEFT_OUT, halves

SETS, PARTS, FEW = 100, 20, 5
AT_ONCE = 1 << 22
"""Cells of targets, released records and variables that are compared at once."""
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Looked:
    """The features of T targets by d variables. ``places`` (T, d) are those of ``gower``; ``sets`` (s, d) the variables of the counts, ``near`` (h, d)
    those of the distances; ``known`` (d,) and ``sensitive`` (g, d) the variables of the guesses. ``values`` (T, d) are level codes and numbers.
    """

    schema: Schema
    gower: Gower
    levels: Mapping[str, tuple[str, ...]]
    trees: Mapping[str, Hierarchy]
    places: Floats
    values: Floats
    sets: Booleans
    near: Booleans
    known: Booleans
    sensitive: tuple[int, ...]

    @classmethod
    def of(
        cls,
        data: Microdata,
        targets: Integers,
        names: Sequence[str],
        known: Sequence[str],
        sensitive: Sequence[str],
        trees: Mapping[str, Hierarchy],
        rng: np.random.Generator,
    ) -> Looked:
        names = tuple(names)
        d = len(names)
        gower = Gower.of([data.alone], names)
        own = data.block(list(map(int, targets)))
        levelled = np.array([data.schema[name].kind.has_levels for name in names], dtype=np.bool_)
        levels = {
            n: tuple(map(str, data.column(n).cat.categories)) for n, has in zip(names, levelled, strict=True) if has
        }
        whole = np.ones((1, d), dtype=np.bool_)
        kinds = [levelled[None], ~levelled[None]] if 0 < levelled.sum() < d else []
        but_one = ~np.eye(d, dtype=np.bool_) if 2 < d <= MOST_LEFT_OUT else np.zeros((0, d), dtype=np.bool_)
        sets = np.unique(
            np.concatenate([whole, *kinds, but_one, np.eye(d, dtype=np.bool_), _drawn_sets(d, rng)]), axis=0
        )
        near = np.concatenate([whole, *kinds, halves(d, rng)])
        values = np.stack([own.numbers(name) for name in names], axis=1)
        return cls(
            data.schema, gower, levels, trees, gower.places(own), values, sets, near,
            np.isin(names, list(known)), tuple(names.index(name) for name in sensitive),
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature is, in words."""
        said = self.gower.names

        def of(chosen: Booleans) -> str:
            some = [name for name, inside in zip(said, chosen, strict=True) if inside]
            return "all variables" if len(some) == len(said) else ", ".join(some)

        return (
            *(f"records that agree on {of(chosen)}" for chosen in self.sets),
            *(f"distance of the nearest record by {of(chosen)}" for chosen in self.near),
            *(f"mean distance of the {FEW} nearest records by {of(chosen)}" for chosen in self.near[:1]),
            *(f"{said[at]} of the records nearest by the known variables" for at in self.sensitive),
        )

    def features(self, releases: Sequence[Microdata]) -> Singles:
        """Of one release, (T, F)."""
        t = len(self.places)
        counts = np.zeros((t, len(self.sets)))
        nearest = np.full((t, len(self.near)), np.inf, dtype=np.float32)
        few = np.full((t, FEW), np.inf, dtype=np.float32)
        guesses = [list[tuple[Singles, Singles]]() for _ in self.sensitive]
        for release in releases:
            columns = [self._column(release, k) for k in range(len(self.gower.names))]
            step = max(1, AT_ONCE // max(1, t * len(columns)))
            for first in range(0, len(release), step):
                some = slice(first, first + step)
                both = [one.against(some) for one in columns]
                agree, apart = (np.stack(side) for side in zip(*both, strict=True))
                for k, chosen in enumerate(self.sets):
                    counts[:, k] += np.logical_and.reduce(agree[chosen], axis=0).sum(axis=1)
                for k, chosen in enumerate(self.near):
                    total = apart[chosen].sum(axis=0)
                    nearest[:, k] = np.minimum(nearest[:, k], total.min(axis=1, initial=np.inf))
                    if k == 0:
                        kept = min(FEW, total.shape[1])
                        few = np.sort(np.concatenate([few, np.partition(total, kept - 1, axis=1)[:, :kept]], axis=1))[
                            :, :FEW
                        ]
                if self.sensitive and self.known.any():
                    by_known = apart[self.known].sum(axis=0)
                    for one, at in zip(guesses, self.sensitive, strict=True):
                        least = by_known.min(axis=1)
                        tied = by_known <= least[:, None]
                        one.append(
                            (
                                least,
                                np.stack([(agree[at] & tied).sum(axis=1), tied.sum(axis=1)], axis=1).astype(np.float32),
                            )
                        )
        mean = np.where(np.isfinite(few), few, 0).sum(axis=1) / np.maximum(np.isfinite(few).sum(axis=1), 1)
        d = len(self.gower.names)
        nearest = np.where(np.isfinite(nearest), nearest, d)
        shares = [_of_nearest(one) for one in guesses] if self.known.any() else []
        return np.column_stack([np.sqrt(counts), nearest, mean, *shares]).astype(np.float32)

    def only(self, target: int) -> Looked:
        """The same of one of the targets."""
        some = slice(target, target + 1)
        return replace(self, places=self.places[some], values=self.values[some])

    @property
    def guessed(self) -> slice:
        """Which features are the guesses."""
        number = len(self.names)
        return slice(number - (len(self.sensitive) if self.known.any() else 0), number)

    def _column(self, release: Microdata, k: int) -> _Compared:
        name = self.gower.names[k]
        has_levels = name in self.gower.levels
        if name in release.generalised:
            return _Labels.of(release, name, self)
        if has_levels and not release.schema[name].kind.has_levels:  # a mean or a middle of levels
            number = release.frame[name].to_numpy(dtype=np.float64)
            return _Numbers(
                self.values[:, k] / max(1, len(self.levels[name]) - 1), number / max(1, len(self.levels[name]) - 1), 0.5
            )
        own, theirs = self.places[:, k], self.gower.places_of(release, name)
        if has_levels:
            return _Levels(own, theirs)
        return _Numbers(own / self.gower.unit, theirs / self.gower.unit, None)


class _Compared:
    def against(self, some: slice) -> tuple[Booleans, Singles]:
        """Which of some released records (r,) agree with the targets, and how far apart they are, at most 1: (T, r) each."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _Levels(_Compared):
    own: Floats
    theirs: Floats

    def against(self, some: slice) -> tuple[Booleans, Singles]:
        agree = self.own[:, None] == self.theirs[some]
        return agree, (~agree).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Numbers(_Compared):
    """Places from 0 to 1, negative where missing; they agree in the same of ``PARTS`` parts, or where they are less than ``within`` apart."""

    own: Floats
    theirs: Floats
    within: float | None

    def against(self, some: slice) -> tuple[Booleans, Singles]:
        own, theirs = self.own[:, None].astype(np.float32), self.theirs[some].astype(np.float32)
        lacks, missing = np.nan_to_num(own, nan=-1) < 0, np.nan_to_num(theirs, nan=-1) < 0
        apart = np.where(lacks | missing, lacks != missing, np.minimum(np.abs(own - theirs), 1)).astype(np.float32)
        if self.within is not None:
            return apart < self.within, apart
        parts = [np.where(side < 0, -1, np.minimum(side * PARTS, PARTS - 1)).astype(np.int8) for side in (own, theirs)]
        return parts[0] == parts[1], apart


@dataclass(frozen=True, eq=False)
class _Labels(_Compared):
    """Which label (L,) contains each target's value, (T, L), how much it leaves open, (L,), and the label of each released record, (r,)."""

    holds: Booleans
    codes: Integers

    @classmethod
    def of(cls, release: Microdata, name: str, looked: Looked) -> _Labels:
        values = release.frame[name].astype(str).to_numpy(dtype=object)
        labels, codes = np.unique(values, return_inverse=True)
        k = looked.gower.names.index(name)
        holds = np.stack([_holds(str(label), name, looked.values[:, k], looked) for label in labels], axis=1)
        return cls(holds, codes.ravel())

    def against(self, some: slice) -> tuple[Booleans, Singles]:
        agree = self.holds[:, self.codes[some]]
        return agree, (~agree).astype(np.float32)


def _holds(label: str, name: str, values: Floats, looked: Looked) -> Booleans:
    """Which values (T,) a label contains."""
    kind, levels = looked.schema[name].kind, looked.levels.get(name, ())
    if (found := contained(label, values, kind, levels)) is not None:
        return np.asarray(found & ~np.isnan(values))
    if not kind.has_levels and (number := single(label, kind)) is not None:
        return np.asarray(values == number)
    tree = looked.trees.get(name)
    if tree is not None:
        under = {row[0] for row in tree.rows if label in row}
    elif label in levels:
        under = {label}
    elif set(label) <= {"*"}:
        under = set(levels)
        if not levels:
            return ~np.isnan(values)
    else:
        raise NotComputable(f'"{name}" is released as labels that say neither an interval nor a group')
    inside = np.array([level in under for level in levels], dtype=np.bool_)
    return np.asarray(inside[np.nan_to_num(values, nan=0).astype(np.int64)] & ~np.isnan(values))


def _of_nearest(parts: Sequence[tuple[Singles, Singles]]) -> Floats:
    """Of the records at the least distance of all parts, the share that agrees, (T,); 0 without records."""
    if not parts:
        return np.zeros(0)
    least = np.min([own for own, _ in parts], axis=0)
    counts = np.sum([np.where((own <= least)[:, None], both, 0) for own, both in parts], axis=0)
    return np.asarray(counts[:, 0] / np.maximum(counts[:, 1], 1))


def _drawn_sets(d: int, rng: np.random.Generator) -> Booleans:
    """``SETS`` sets of d variables, of sizes from 1 to d, each as probable as any other."""
    drawn = np.zeros((SETS, d), dtype=np.bool_)
    for row in drawn:
        row[rng.permutation(d)[: rng.integers(1, d + 1)]] = True
    return drawn
