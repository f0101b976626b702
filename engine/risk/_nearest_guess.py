"""What is guessed of a record from those that are nearest to it in what is known, and whether it is right.

The nearest records are the k nearest and all that lie as near as the k-th of them. A level is guessed as the most frequent of theirs. A number or a date
is guessed as that of their values that lies within the radius of most of theirs. Of several guesses that are equally good one is picked
at random, and its chance to be right counts: 0, 1, or a fraction. Records to learn from that are alike in what is known are looked at together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..matching.radius import Radius
from ..partition.equivalence_classes import class_sizes, equivalence_classes
from ..statistics.gower import Gower


class Sought(Protocol):
    """A variable that is guessed: its values of r records to learn from, and of q records that are attacked."""

    def told(self, rows: Integers) -> tuple[Floats, Floats]:
        """Of the records that are learned from, those that are asked: the guesses that are equally good, and who of ``rows`` agree with one."""
        ...

    def right(self, guesses: Floats, attacked: Integers) -> Floats:
        """The chance of one of these guesses, picked at random, to be right of each of these attacked records."""
        ...


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels as codes, equal for equal ones: ``offered`` (r,) to learn from, ``own`` (q,). A missing one is a level."""

    offered: Floats
    own: Floats

    def told(self, rows: Integers) -> tuple[Floats, Floats]:
        """The most frequent levels, and how many records have one of them."""
        values, counts = np.unique(self.offered[rows], return_counts=True)
        return values[counts == counts.max()], counts[counts == counts.max()][:1].astype(np.float64)

    def right(self, guesses: Floats, attacked: Integers) -> Floats:
        """1 / the number of guesses where the record's own is among them."""
        return np.isin(self.own[attacked], guesses) / len(guesses)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers without missing ones: ``offered`` (r,) to learn from, ``own`` (q,); what is near them is between ``lower`` and ``upper``, NaN nothing."""

    offered: Floats
    around: tuple[Floats, Floats]
    own: Floats
    window: tuple[Floats, Floats]

    def told(self, rows: Integers) -> tuple[Floats, Floats]:
        """The values that lie in the windows of most records, and of how many."""
        values = np.unique(self.offered[rows])
        lower, upper = (np.sort(ends[rows][~np.isnan(ends[rows])]) for ends in self.around)
        counts = np.searchsorted(lower, values, "right") - np.searchsorted(upper, values, "left")
        return values[counts == counts.max()], counts[counts == counts.max()][:1].astype(np.float64)

    def right(self, guesses: Floats, attacked: Integers) -> Floats:
        """The share of the guesses that lie in the record's window."""
        lower, upper = (ends[attacked] for ends in self.window)
        inside = np.searchsorted(guesses, upper, "right") - np.searchsorted(guesses, lower, "left")
        return np.where(np.isnan(lower), 0.0, inside / len(guesses))


def windows(values: Floats, radius: Radius | None) -> tuple[Floats, Floats]:
    """What counts as near each value (n,): (n,) and (n,), NaN nothing; without a radius the value alone."""
    if radius is None:
        return values, values
    unfit = radius.kind == "log_relative"
    return radius.window(np.where(unfit & (values < 0), np.nan, values))


@dataclass(frozen=True, eq=False)
class Guessed:
    """Of q records the chance that the guess is right, how far the k-th nearest lies, how many are asked, how many of these
    agree with the guess, and how many records agree in all that is known: (q,) each.
    """

    right: Floats
    distance: Floats
    asked: Integers
    agreeing: Floats
    candidates: Integers

    def confident(self, share: float) -> Booleans:
        """The records (q,) whose guess is among this share of the most confident, and all that are as confident as the last of them.

        More confident is a guess from nearer records; of equally near ones, that with which more of those asked agree, one
        more being counted against it.
        """
        if not len(self.right):
            return np.zeros(0, dtype=np.bool_)
        doubt = 1 - self.agreeing / (self.asked + 1)
        order = np.lexsort((doubt, self.distance))
        last = order[max(int(np.ceil(share * len(order) - 1e-9)), 1) - 1]
        nearer = self.distance < self.distance[last]
        return np.asarray(nearer | ((self.distance == self.distance[last]) & (doubt <= doubt[last])))


@dataclass(frozen=True, eq=False)
class _Alike:
    """Records at K different ``places`` (K, d): ``count`` (K,) of them at each, those at place k being ``order[start[k] : start[k + 1]]``."""

    places: Floats
    count: Integers
    order: Integers
    start: Integers

    @classmethod
    def of(cls, places: Floats) -> _Alike:
        """Of records at these places (r, d), which are never missing."""
        kind = equivalence_classes(list(places.T), len(places))
        count = class_sizes(kind)
        start = np.concatenate([[0], np.cumsum(count)])
        order = np.argsort(kind, kind="stable")
        return cls(places[order[start[:-1]]], count, order, start)

    def reach(self, apart: Floats, neighbours: int) -> Floats:
        """How far the record lies that is the so manieth from each of q places, by the distances (q, K) of the different places: (q,)."""
        if neighbours == 1:
            return np.asarray(apart.min(axis=1))
        some = np.argpartition(apart, min(neighbours, apart.shape[1]) - 1, axis=1)[:, :neighbours]
        near = np.take_along_axis(apart, some, axis=1)
        order = np.argsort(near, axis=1)
        counts = np.cumsum(self.count[np.take_along_axis(some, order, axis=1)], axis=1)
        last = np.argmax(counts >= neighbours, axis=1)
        return np.asarray(np.take_along_axis(near, order, axis=1)[np.arange(len(near)), last])

    def records(self, kinds: Integers) -> Integers:
        """The records at these places."""
        return np.concatenate([self.order[self.start[k] : self.start[k + 1]] for k in kinds])


def guessed(gower: Gower, offered: Floats, own: Floats, sought: Sought, neighbours: int = 1) -> Guessed:
    """Guesses of records at places ``own`` (q, d) from the nearest at ``offered`` (r, d), r at least 1."""
    neighbours = min(neighbours, len(offered))
    alike = _Alike.of(offered)
    places, query = np.unique(own, axis=0, return_inverse=True)
    query = query.ravel()
    members = np.split(np.argsort(query, kind="stable"), np.cumsum(np.bincount(query, minlength=len(places)))[:-1])
    right, distance, agreeing = np.zeros((3, len(own)))
    asked, candidates = np.zeros((2, len(own)), dtype=np.int64)
    for rows, apart in gower.blocks(places, alike.places):
        for line, low, those in zip(apart, alike.reach(apart, neighbours), members[rows], strict=True):
            nearest = alike.records(np.flatnonzero(line <= low))
            guesses, agree = sought.told(nearest)
            right[those] = sought.right(guesses, those)
            distance[those], asked[those], agreeing[those] = low, len(nearest), agree[0]
            candidates[those] = alike.count[line == 0].sum()
    return Guessed(right, distance, asked, agreeing, candidates)


def alone(sought: Sought, offered: Integers, attacked: int) -> Floats:
    """The chance to be right of the one best guess for everybody, (attacked,), from all ``offered`` records."""
    guesses, _ = sought.told(np.arange(len(offered)))
    return sought.right(guesses, np.arange(attacked))


def sought(
    learned: Microdata, attacked: Microdata, name: str, radius: Radius | None
) -> tuple[Sought, Integers, Integers]:
    """A variable as what is guessed of the records of ``attacked`` that have a value of it, and its rows in both tables.

    Raises NotComputable where the records to learn from have none, or show it as no values.
    """
    if attacked.schema[name].kind.has_levels:
        alone = Gower.of([learned], [name])
        codes = alone.places(learned)[:, 0], alone.places(attacked)[:, 0]
        return Levels(*codes), np.arange(len(learned)), np.arange(len(attacked))
    values = learned.numbers(name), attacked.numbers(name)
    rows = tuple(np.flatnonzero(~np.isnan(one)) for one in values)
    if not len(rows[0]):
        raise NotComputable(f'no released record has a value of "{name}"')
    offered, own = (one[some] for one, some in zip(values, rows, strict=True))
    return Numbers(offered, windows(offered, radius), own, windows(own, radius)), rows[0], rows[1]
