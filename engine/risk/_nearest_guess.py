"""What is guessed of a record from those that are nearest to it in what is known, and whether it is right.

The nearest records are the k nearest and all that lie as near as the k-th of them. A level is guessed as the most frequent of theirs. A number or a date
is guessed as that of their values that lies within the radius of most of theirs. Of several guesses that are equally good one is picked
at random, and its chance to be right counts: 0, 1, or a fraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import Booleans, Floats, Integers
from ..errors import NotComputable
from ..matching.radius import Radius
from ..microdata import Microdata
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


def guessed(gower: Gower, offered: Floats, own: Floats, sought: Sought, neighbours: int = 1) -> Guessed:
    """Guesses of records at places ``own`` (q, d) from the nearest at ``offered`` (r, d), r at least 1."""
    kth = min(neighbours, len(offered)) - 1
    places, query = np.unique(own, axis=0, return_inverse=True)
    query = query.ravel()
    members = np.split(np.argsort(query, kind="stable"), np.cumsum(np.bincount(query, minlength=len(places)))[:-1])
    right, distance, agreeing = np.zeros((3, len(own)))
    asked, candidates = np.zeros((2, len(own)), dtype=np.int64)
    for rows, apart in gower.blocks(places, offered):
        reach = np.partition(apart, kth, axis=1)[:, kth] if kth else apart.min(axis=1)
        for line, low, those in zip(apart, reach, members[rows], strict=True):
            nearest = np.flatnonzero(line <= low)
            guesses, agree = sought.told(nearest)
            right[those] = sought.right(guesses, those)
            distance[those], asked[those], agreeing[those] = low, len(nearest), agree[0]
            candidates[those] = np.count_nonzero(line == 0)
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
