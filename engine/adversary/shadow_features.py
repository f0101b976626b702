"""Features of a release for an intruder who looks for one person: a few hundred numbers per target.

    counts       square roots of the numbers of released records that agree with the target on a set of variables: all,
                 levels, all but one, and ``SETS`` random sets (Stadler et al. 2022; Meeus et al. 2023); numbers in
                 ``PARTS`` bins of equal count
    nearest      distance of the nearest released record, and mean of the ``NEAREST_AVERAGED`` nearest: by all
                 variables, levels, numbers, and random halves of them; Gower on ranks
    guesses      share of the nearest released records, by the known variables, that have the target's sensitive value

All datasets of a release form one table. A label of a generalised variable agrees with the values that it contains.

A target that is a unit of several records has of each feature the sum over its records and the most telling of them
(the largest count, the smallest distance), the mean of the guesses, and the numbers of released units whose records,
in any order, agree with its own on each set of variables: a household copied whole shows in these alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import mix_bits
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..data.schema import Schema
from ..data.units import Units
from ..errors import NotComputable
from ..partition.hierarchies import Hierarchy, parse_single_number, values_in_label
from ..statistics.gower import GowerDistance, variable_distances
from .attackers import MOST_LEFT_OUT, draw_variable_halves
from .cells import count_occurrences, unit_keys

SETS, PARTS, NEAREST_AVERAGED = 100, 20, 5
MISSING_CODE = -2
"""Smallest code of a level: one that no table has."""
AT_ONCE = 1 << 22
"""Number of cells (targets, released records, variables) compared together."""
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TargetFeatures:
    """Extractor of the features of T targets from d variables.

    schema: schema of the confidential data
    gower: ranges, levels and ranks of the variables
    levels: levels of each categorical variable
    hierarchies: generalisation hierarchy of each variable that has one
    places: positions of the targets in ``gower``, (T, d)
    values: level codes and numbers of the targets, (T, d)
    count_sets: sets of variables of the counts, (s, d)
    distance_sets: sets of variables of the distances, (h, d)
    known: whether the intruder knows each variable, (d,)
    sensitive: positions of the guessed variables, (g,)
    members: units of the targets, where these are units of several records; ``places`` and ``values`` are then those
        of all R records of the targets, unit by unit, (R, d)
    """

    schema: Schema
    gower: GowerDistance
    levels: Mapping[str, tuple[str, ...]]
    hierarchies: Mapping[str, Hierarchy]
    places: Floats
    values: Floats
    count_sets: Booleans
    distance_sets: Booleans
    known: Booleans
    sensitive: tuple[int, ...]
    members: Units | None = None

    @classmethod
    def from_targets(
        cls,
        data: Microdata,
        targets: Integers,
        names: Sequence[str],
        known: Sequence[str],
        sensitive: Sequence[str],
        trees: Mapping[str, Hierarchy],
        rng: np.random.Generator,
        members: Units | None = None,
    ) -> TargetFeatures:
        """Choose the sets of variables and look up the values of the targets: rows of ``data``, (T,).

        With ``members`` they are the rows of all records of the targets, unit by unit, (R,).
        """
        names = tuple(names)
        d = len(names)
        gower = GowerDistance.from_tables([data.without_controls], names)
        own = data.select_rows(list(map(int, targets)))
        levelled = np.array([data.schema[name].kind.has_levels for name in names], dtype=np.bool_)
        levels = {
            n: tuple(map(str, data.column(n).cat.categories)) for n, has in zip(names, levelled, strict=True) if has
        }
        whole = np.ones((1, d), dtype=np.bool_)
        kinds = [levelled[None], ~levelled[None]] if 0 < levelled.sum() < d else []
        but_one = ~np.eye(d, dtype=np.bool_) if 2 < d <= MOST_LEFT_OUT else np.zeros((0, d), dtype=np.bool_)
        sets = np.concatenate([whole, *kinds, but_one, np.eye(d, dtype=np.bool_), _draw_variable_sets(d, rng)])
        sets = sets[distinct_rows(sets.T, len(sets)).first]
        near = np.concatenate([whole, *kinds, draw_variable_halves(d, rng)])
        values = np.stack([own.numbers(name) for name in names], axis=1)
        return cls(
            data.schema, gower, levels, trees, gower.record_places(own), values, sets, near,
            np.isin(names, list(known)), tuple(names.index(name) for name in sensitive), members,
        )  # fmt: skip

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Return a description of each feature, (F,)."""
        said = self.gower.names

        def variables_text(chosen: Booleans) -> str:
            some = [name for name, inside in zip(said, chosen, strict=True) if inside]
            return "all variables" if len(some) == len(said) else ", ".join(some)

        near = (
            *(f"records that agree on {variables_text(chosen)}" for chosen in self.count_sets),
            *(f"distance of the nearest record by {variables_text(chosen)}" for chosen in self.distance_sets),
            *(
                f"mean distance of the {NEAREST_AVERAGED} nearest records by {variables_text(chosen)}"
                for chosen in self.distance_sets[:1]
            ),
        )
        guesses = tuple(f"{said[at]} of the records nearest by the known variables" for at in self.sensitive)
        if self.members is None:
            return (*near, *guesses)
        return (
            *(f"{one}, over all members" for one in near),
            *(f"{one}, of one member" for one in near),
            *(f"units whose records agree on {variables_text(chosen)}" for chosen in self.count_sets),
            *guesses,
        )

    def extract_features(self, releases: Sequence[Microdata]) -> Singles:
        """Return the features of one release, (T, F)."""
        t = len(self.places)
        counts = np.zeros((t, len(self.count_sets)))
        alike = np.zeros((0 if self.members is None else len(self.members), len(self.count_sets)))
        nearest = np.full((t, len(self.distance_sets)), np.inf, dtype=np.float32)
        few = np.full((t, NEAREST_AVERAGED), np.inf, dtype=np.float32)
        guesses = [list[tuple[Singles, Singles]]() for _ in self.sensitive]
        for release in releases:
            columns = [self._compare_column(release, k) for k in range(len(self.gower.names))]
            if self.members is not None:
                alike += self._count_equal_units(columns, self.members, release)
            step = max(1, AT_ONCE // max(1, t * len(columns)))
            for first in range(0, len(release), step):
                some = slice(first, first + step)
                both = [one.compare_rows_at(some) for one in columns]
                agree, apart = (np.stack(side) for side in zip(*both, strict=True))
                for k, chosen in enumerate(self.count_sets):
                    counts[:, k] += np.logical_and.reduce(agree[chosen], axis=0).sum(axis=1)
                for k, chosen in enumerate(self.distance_sets):
                    total = apart[chosen].sum(axis=0)
                    nearest[:, k] = np.minimum(nearest[:, k], total.min(axis=1, initial=np.inf))
                    if k == 0:
                        kept = min(NEAREST_AVERAGED, total.shape[1])
                        few = np.sort(np.concatenate([few, np.partition(total, kept - 1, axis=1)[:, :kept]], axis=1))[
                            :, :NEAREST_AVERAGED
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
        shares = [_agreeing_share_of_nearest(one) for one in guesses] if self.known.any() else []
        # The spread of a square root of a count does not grow with the count.
        if self.members is None:
            return np.column_stack([np.sqrt(counts), nearest, mean, *shares]).astype(np.float32)
        members = self.members
        total = [members.sum_by_unit(one) for one in (np.sqrt(counts), nearest, mean[:, None])]
        telling = [members.largest_by_unit(np.sqrt(counts)), *(-members.largest_by_unit(-one) for one in (nearest, mean[:, None]))]  # fmt: skip
        guessed = [members.sum_by_unit(share) / members.sizes for share in shares]
        return np.column_stack([*total, *telling, np.sqrt(alike), *guessed]).astype(np.float32)

    def _count_equal_units(
        self, columns: Sequence[_ColumnComparison], members: Units, release: Microdata
    ) -> NDArray[np.int64]:
        """Count the released units of equal composition on each set of variables, (T, s); 0 without units."""
        counts = np.zeros((len(members), len(self.count_sets)), dtype=np.int64)
        try:
            released = release.require_units()
        except NotComputable:
            return counts
        cells = [
            [mix_bits(codes.astype(np.uint64) + np.uint64((k + 1) << 48)) for codes in column.codes()]
            for k, column in enumerate(columns)
        ]
        for k, chosen in enumerate(self.count_sets):
            own, theirs = (
                unit_keys(np.add.reduce([cells[v][side] for v in np.flatnonzero(chosen)]), units)
                for side, units in ((0, members), (1, released))
            )
            counts[:, k] = count_occurrences(own, theirs)
        return counts

    def select_target(self, target: int) -> TargetFeatures:
        """Return the extractor for one of the targets."""
        if self.members is None:
            some, own = np.array([target]), None
        else:
            some = self.members.records_of(np.array([target]))
            own = Units.from_codes(np.zeros(len(some), dtype=np.int64))
        return replace(self, places=self.places[some], values=self.values[some], members=own)

    @property
    def guess_features(self) -> slice:
        """Return the slice of the features that are guesses."""
        number = len(self.feature_names)
        return slice(number - (len(self.sensitive) if self.known.any() else 0), number)

    def _compare_column(self, release: Microdata, k: int) -> _ColumnComparison:
        """Return the comparison of one variable of the targets with that of a release."""
        name = self.gower.names[k]
        has_levels = name in self.gower.levels
        if name in release.generalised:
            return _LabelComparison.from_release(release, name, self)
        if has_levels and not release.schema[name].kind.has_levels:  # a mean or a middle of levels
            number = release.frame[name].to_numpy(dtype=np.float64)
            return _NumberComparison(
                self.values[:, k] / max(1, len(self.levels[name]) - 1), number / max(1, len(self.levels[name]) - 1), 0.5
            )
        own, theirs = self.places[:, k], self.gower.variable_places(release, name)
        if has_levels:
            return _LevelComparison(own, theirs)
        return _NumberComparison(own / self.gower.unit_distance, theirs / self.gower.unit_distance, None)


class _ColumnComparison:
    """Comparison of a column of the targets with that of a release."""

    def compare_rows_at(self, some: slice) -> tuple[Booleans, Singles]:
        """Return whether released records (r,) agree with the targets, and their distances, at most 1: (T, r) each."""
        raise NotImplementedError

    def codes(self) -> tuple[Integers, Integers]:
        """Return codes of the targets, (T,), and of the released records, (r,), equal where these agree."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _LevelComparison(_ColumnComparison):
    """Comparison of levels by their codes.

    own: codes of the targets, (T,)
    theirs: codes of the released records, (r,)
    """

    own: Floats
    theirs: Floats

    def compare_rows_at(self, some: slice) -> tuple[Booleans, Singles]:
        """Return agreement and distance, 0 or 1, (T, r) each."""
        agree = self.own[:, None] == self.theirs[some]
        return agree, (~agree).astype(np.float32)

    def codes(self) -> tuple[Integers, Integers]:
        """Return the codes, at least 0."""
        own, theirs = (np.asarray(side, dtype=np.int64) - np.int64(MISSING_CODE) for side in (self.own, self.theirs))
        return own, theirs


@dataclass(frozen=True, eq=False)
class _NumberComparison(_ColumnComparison):
    """Comparison of numbers by their positions from 0 to 1, negative if missing.

    own: positions of the targets, (T,)
    theirs: positions of the released records, (r,)
    within: distance below which they agree; None if equal bins of ``PARTS`` agree
    """

    own: Floats
    theirs: Floats
    within: float | None

    def compare_rows_at(self, some: slice) -> tuple[Booleans, Singles]:
        """Return agreement and distance in rank shares, (T, r) each."""
        own, theirs = self.own[:, None].astype(np.float32), self.theirs[some].astype(np.float32)
        own, theirs = (np.nan_to_num(side, nan=-1) for side in (own, theirs))
        apart = np.empty((len(own), len(theirs)), dtype=np.float32)
        np.minimum(variable_distances(own, theirs, apart, has_levels=False, most=1.0), 1, out=apart)
        if self.within is not None:
            return apart < self.within, apart
        parts = [_bins(side, PARTS) for side in (own, theirs)]
        return parts[0] == parts[1], apart

    def codes(self) -> tuple[Integers, Integers]:
        """Return the bins; those as wide as the distance below which numbers agree stand for the latter."""
        number = PARTS if self.within is None else max(1, int(0.5 / self.within))
        own, theirs = (
            _bins(np.nan_to_num(side.astype(np.float32), nan=-1), number) for side in (self.own, self.theirs)
        )
        return own.astype(np.int64) + 1, theirs.astype(np.int64) + 1


def _bins(places: Singles, number: int) -> NDArray[np.int8]:
    """Return the bin of each place from 0 to 1, -1 for a negative one."""
    return np.where(places < 0, -1, np.minimum(places * number, number - 1)).astype(np.int8)


@dataclass(frozen=True, eq=False)
class _LabelComparison(_ColumnComparison):
    """Comparison of values with the labels of a generalised column.

    contains_value: whether each label contains each target's value, (T, L)
    label_codes: label of each released record, (r,)
    """

    contains_value: Booleans
    label_codes: Integers

    @classmethod
    def from_release(cls, release: Microdata, name: str, looked: TargetFeatures) -> _LabelComparison:
        """Parse the labels of a released column."""
        values = release.frame[name].astype(str).to_numpy(dtype=object)
        labels, codes = np.unique(values, return_inverse=True)
        k = looked.gower.names.index(name)
        holds = np.stack([_label_contains(str(label), name, looked.values[:, k], looked) for label in labels], axis=1)
        return cls(holds, codes.ravel())

    def compare_rows_at(self, some: slice) -> tuple[Booleans, Singles]:
        """Return agreement and distance, 0 or 1, (T, r) each."""
        agree = self.contains_value[:, self.label_codes[some]]
        return agree, (~agree).astype(np.float32)

    def codes(self) -> tuple[Integers, Integers]:
        """Return the labels; a value that several labels contain, or none, equals no label."""
        own = np.where(self.contains_value.sum(axis=1) == 1, self.contains_value.argmax(axis=1), self.contains_value.shape[1])  # fmt: skip
        return own.astype(np.int64), self.label_codes.astype(np.int64)


def _label_contains(label: str, name: str, values: Floats, looked: TargetFeatures) -> Booleans:
    """Return whether a label contains each of the values, (T,).

    Raises NotComputable if the label is neither an interval nor a group.
    """
    kind, levels = looked.schema[name].kind, looked.levels.get(name, ())
    if (found := values_in_label(label, values, kind, levels)) is not None:
        return np.asarray(found & ~np.isnan(values))
    if not kind.has_levels and (number := parse_single_number(label, kind)) is not None:
        return np.asarray(values == number)
    tree = looked.hierarchies.get(name)
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


def _agreeing_share_of_nearest(parts: Sequence[tuple[Singles, Singles]]) -> Floats:
    """Return the share of the nearest records of all parts that agree, (T,); 0 without records."""
    if not parts:
        return np.zeros(0)
    least = np.min([own for own, _ in parts], axis=0)
    counts = np.sum([np.where((own <= least)[:, None], both, 0) for own, both in parts], axis=0)
    return np.asarray(counts[:, 0] / np.maximum(counts[:, 1], 1))


def _draw_variable_sets(d: int, rng: np.random.Generator) -> Booleans:
    """Draw ``SETS`` random sets of d variables with uniform sizes from 1 to d, (SETS, d)."""
    drawn = np.zeros((SETS, d), dtype=np.bool_)
    for row in drawn:
        row[rng.permutation(d)[: rng.integers(1, d + 1)]] = True
    return drawn
