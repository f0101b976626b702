"""Whom an attack asks about: people at random, or the most vulnerable people, and control records chosen by the same rule.

How vulnerable a person is follows from the confidential data alone. Three scores, each larger for a person who is easier to distinguish from others:

    distance    the mean distance to the 5 nearest other records, by Gower on ranks (Meeus, Guépin, Creţu & de Montjoye 2023, Achilles' heels;
                the record itself is no neighbour of its own)
    uniqueness  the minimal sample uniques of up to 3 variables, each weighted by its size as in SUDA (Elliot, Manning & Ford 2002), on levels
                and numbers in bins of equal count
    rarity      minus the sum of the logarithms of the shares of the person's values, numbers in the same bins

Each score is computed from all variables, and again from the quasi-identifiers alone: whoever is rare among all variables is seldom
rare in the few that an intruder knows. The score of a person is the largest of the six ranks; a rank is the share of the records with a
lower score, where equal scores count half.

A control is scored as if it were among the data: it takes the place of one record, the one of median rarity. The vulnerable
controls are those that reach the score of the least vulnerable target. So one rule selects targets and controls, and a
release that owes nothing to single people treats both alike.

Scores depend on the values of the records and not on their order. Of more than ``MOST`` records, ``MOST`` are selected by a hash of their
values and scored by rarity alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..methods.spec import Param
from .cells import cells_of, rows_of
from .distances import Distances, Singles
from .nearest import near

TargetKind = Literal["random", "vulnerable"]
TargetKinds = Annotated[
    tuple[TargetKind, ...],
    Param("kinds of targets, each with rows of its own: random, vulnerable; default: both", unique=True, selects=True),
]
Vulnerable = Annotated[
    float | None,
    Param(
        "number of vulnerable targets, or their share of the records where below 1; default: 5 %, at least 50 and at most 500",
        gt=0,
    ),
]
BOTH: tuple[TargetKind, ...] = ("random", "vulnerable")
NEIGHBOURS = 5
SET_SIZE = 3
BINS = 20
MOST = 50_000
"""Records that are scored; of more, those whose values have the lowest hashes."""
MOST_NEIGHBOURS = 10_000
"""Records among which the nearest are searched for."""
MOST_IN_SETS = 20
"""Variables that form sets; of more, those with the largest effective number of values."""
SHARE, LEAST, LARGEST = 0.05, 50, 500
"""The most vulnerable people by default: this share of the records, at least ``LEAST`` and at most ``LARGEST``."""
DENSE = 1 << 22
_KEPT = 4


@dataclass(frozen=True, eq=False)
class Vulnerability:
    """The score of each of the n records, (n,), and of each control, (c,), in [0, 1]; NaN of records that were not scored."""

    people: Floats
    controls: Floats

    def vulnerable(self, number: int) -> tuple[Integers, Integers]:
        """Rows of the people with the ``number`` highest scores, and all that equal the lowest of these; and of the controls that reach it."""
        scored = np.sort(self.people[~np.isnan(self.people)])
        if not len(scored) or number < 1:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        least = scored[-min(number, len(scored))]
        return np.flatnonzero(self.people >= least), np.flatnonzero(self.controls >= least)


def number_of(asked: float | None, records: int) -> int:
    """The number of most vulnerable people of ``records``: ``asked``, which is a share where it is below 1; None for the default."""
    if asked is None:
        return min(records, max(LEAST, min(LARGEST, round(SHARE * records))))
    return min(records, max(1, round(asked * records) if asked < 1 else round(asked)))


def compared(schema: Schema) -> tuple[str, ...]:
    """The variables that distinguish people: all but identifiers, by name."""
    return tuple(sorted(schema.but_identifiers))


_FOUND: OrderedDict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Vulnerability] = OrderedDict()


def vulnerability(people: Microdata, controls: Microdata, names: Sequence[str] = ()) -> Vulnerability:
    """How vulnerable people and controls are, by these variables and by the quasi-identifiers among them; default: all variables but identifiers.

    The last few results are kept, because every attack on the same tables needs the same.
    """
    names = tuple(sorted(names)) or compared(people.schema)
    keys = tuple(name for name in names if people.schema[name].role is Role.QUASI_IDENTIFIER)
    key = people.alone.sha256, controls.sha256, names, keys
    if key not in _FOUND:
        each = [_vulnerability(people, controls, names, some) for some in dict.fromkeys((names, keys)) if some]
        _FOUND[key] = Vulnerability(
            *(np.max([getattr(one, side) for one in each], axis=0) for side in ("people", "controls"))
        )
        while len(_FOUND) > _KEPT:
            _FOUND.popitem(last=False)
    _FOUND.move_to_end(key)
    return _FOUND[key]


def _vulnerability(
    people: Microdata, controls: Microdata, names: tuple[str, ...], scored: tuple[str, ...]
) -> Vulnerability:
    """By the variables that are ``scored``; the records are selected by the hash of ``names``."""
    order = np.argsort(rows_of(cells_of(people, names), names, len(people)), kind="stable")
    asked = order[:MOST]
    table = _Table.of(people, controls, scored, asked)
    scores = [table.rarity()]
    if len(people) <= MOST:
        scores += [table.distance(), table.uniqueness()]
    own = np.full(len(people), np.nan)
    own[asked] = np.max([_ranks(mine, mine, own=1) for mine, _ in scores], axis=0)
    others = np.max([_ranks(theirs, np.delete(mine, table.replaced), own=0) for mine, theirs in scores], axis=0)
    return Vulnerability(own, others)


def _ranks(asked: Floats, among: Floats, own: int) -> Floats:
    """The share of others ``among`` (k,) below each of ``asked`` (q,), equal ones counting half: ``own`` is 1 where each is itself among them."""
    if len(among) <= own:
        return np.full(len(asked), 0.5)
    held = np.sort(among)
    below, reached = (np.searchsorted(held, asked, side) for side in ("left", "right"))
    return np.asarray((below + reached - own) / (2 * (len(held) - own)))


@dataclass(frozen=True, eq=False)
class _Table:
    """The scored people in the order of their hashes, and the controls: as places (n, d), (c, d), and as coarse values with common numbers from 0.

    ``frequent`` (n,) is the sum of the logarithms of the shares of a person's coarse values; controls take the place of person ``replaced``.
    """

    distances: Distances
    people: Singles
    controls: Singles
    coarse: Integers
    coarse_controls: Integers
    frequent: Floats
    replaced: int

    @classmethod
    def of(cls, people: Microdata, controls: Microdata, names: tuple[str, ...], asked: Integers) -> _Table:
        distances = Distances.of([people, controls], names)
        own, others = (distances.gower.places(data) for data in (people, controls))
        own = own[asked]
        values = np.concatenate([own, others])
        coarse = [
            _coarse(column, bool(levelled)) for column, levelled in zip(values.T, distances.levelled, strict=True)
        ]
        codes = np.stack(coarse, axis=1)
        mine, theirs = codes[: len(own)], codes[len(own) :]
        frequent = np.round(np.sum([np.log(np.bincount(one)[one] / len(own)) for one in mine.T], axis=0), 9)
        order = np.lexsort((own[:, ~distances.levelled].sum(axis=1), frequent))
        return cls(
            distances,
            distances.rounded(own),
            distances.rounded(others),
            mine,
            theirs,
            frequent,
            int(order[len(order) // 2]),
        )

    def distance(self) -> tuple[Floats, Floats]:
        among = self.people[:MOST_NEIGHBOURS]
        left = np.delete(among, self.replaced, axis=0) if self.replaced < len(among) else among[1:]
        own = _mean_of_nearest(self.distances, self.people, among, own=len(among))
        return own, _mean_of_nearest(self.distances, self.controls, left, own=0)

    def rarity(self) -> tuple[Floats, Floats]:
        n = len(self.coarse)
        others = np.zeros(len(self.coarse_controls))
        for mine, theirs in zip(self.coarse.T, self.coarse_controls.T, strict=True):
            counts = np.bincount(mine, minlength=max(mine.max(initial=0), theirs.max(initial=0)) + 1)
            others -= np.log((counts[theirs] + 1 - (theirs == mine[self.replaced])) / n)
        return -self.frequent, np.round(others, 9)

    def uniqueness(self) -> tuple[Floats, Floats]:
        """The SUDA score by sets of up to ``SET_SIZE`` variables."""
        some = self._most_telling()
        d = len(some)
        most = min(SET_SIZE, d)
        unique: dict[tuple[int, ...], tuple[Booleans, Booleans]] = {}
        score = np.zeros(len(self.coarse)), np.zeros(len(self.coarse_controls))
        for size in range(1, most + 1):
            weight = prod(d - i for i in range(size, min(SET_SIZE, d - 1) + 1))
            for chosen in combinations(range(d), size):
                found = self._unique([some[k] for k in chosen])
                if size < most:
                    unique[chosen] = found
                for side in (0, 1):
                    minimal = found[side].copy()
                    for part in combinations(chosen, size - 1) if size > 1 else ():
                        minimal &= ~unique[part][side]
                    np.add(score[side], weight * minimal, out=score[side])
        return score

    def _most_telling(self) -> Integers:
        """The variables of which sets are made, at most ``MOST_IN_SETS``."""
        if self.coarse.shape[1] <= MOST_IN_SETS:
            return np.arange(self.coarse.shape[1])
        alike = [(np.bincount(column) ** 2.0).sum() for column in self.coarse.T]
        return np.sort(np.argsort(alike, kind="stable")[:MOST_IN_SETS])

    def _unique(self, chosen: Sequence[int]) -> tuple[Booleans, Booleans]:
        """Which people are unique on these variables, (n,), and which controls equal no record but the replaced one, (c,)."""
        mine, theirs = self.coarse[:, chosen[0]], self.coarse_controls[:, chosen[0]]
        for k in chosen[1:]:
            size = 1 + int(max(self.coarse[:, k].max(initial=0), self.coarse_controls[:, k].max(initial=0)))
            mine, theirs = mine * size + self.coarse[:, k], theirs * size + self.coarse_controls[:, k]
            if max(mine.max(initial=0), theirs.max(initial=0)) >= DENSE:
                both = np.unique(np.concatenate([mine, theirs]), return_inverse=True)[1]
                mine, theirs = both[: len(mine)], both[len(mine) :]
        counts = np.bincount(mine, minlength=int(max(mine.max(initial=0), theirs.max(initial=0))) + 1)
        return counts[mine] == 1, counts[theirs] - (theirs == mine[self.replaced]) == 0


def _mean_of_nearest(distances: Distances, asked: Singles, among: Singles, own: int) -> Floats:
    """The mean distance of each of (q, d) to the ``NEIGHBOURS`` nearest others of (r, d), to all where there are fewer: (q,).

    The first ``own`` of ``asked`` are themselves the first of ``among``, and no neighbours of their own. Equal records are looked up once.
    """
    if not len(asked) or not len(among):
        return np.zeros(len(asked))
    places, which = np.unique(asked, axis=0, return_inverse=True)
    table, counts = np.unique(among, axis=0, return_counts=True)
    k = min(NEIGHBOURS + 1, len(table))  # the own place may hold no other record
    apart, held = np.full((2, len(places), k), np.inf)
    for pairs in near(distances, places, table, k):
        apart[pairs.rows], at = pairs.of_each(k)
        held[pairs.rows] = counts[at]
    found = np.empty(len(asked))
    for some, less in ((slice(0, own), 1), (slice(own, None), 0)):
        number = held[which.ravel()[some]]
        number[:, 0] -= less
        taken = np.diff(np.minimum(np.cumsum(number, axis=1), NEIGHBOURS), axis=1, prepend=0)
        found[some] = (taken * apart[which.ravel()[some]]).sum(axis=1) / np.maximum(taken.sum(axis=1), 1)
    return found


def _coarse(values: Floats, levelled: bool) -> Integers:
    """Values (n,) as numbers from 0: levels and up to ``BINS`` different numbers unchanged, more numbers in ``BINS`` bins of about equal count."""
    held, codes = np.unique(values, return_inverse=True)
    if levelled or len(held) <= BINS:
        return np.asarray(codes.ravel(), dtype=np.int64)
    present = np.sort(values[values >= 0])
    cuts = np.unique(present[np.arange(1, BINS) * len(present) // BINS])
    return np.asarray(np.where(values < 0, 0, 1 + np.searchsorted(cuts, values, "right")), dtype=np.int64)


def drawn_alike(rows: Integers, data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """At most ``most`` of some rows, at random, in the order of their values."""
    names = compared(data.schema)
    some = data.block(list(map(int, rows)))
    order = rows[np.argsort(rows_of(cells_of(some, names), names, len(rows)), kind="stable")]
    if len(order) <= most:
        return order
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))])


def vulnerable_rows(
    people: Microdata, controls: Microdata, asked: float | None, most: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Rows of the most vulnerable people and of controls who are as vulnerable, at most ``most`` of each, in the order of their values."""
    own, others = vulnerability(people, controls).vulnerable(number_of(asked, len(people)))
    return drawn_alike(own, people, most, rng), drawn_alike(others, controls, most, rng)
