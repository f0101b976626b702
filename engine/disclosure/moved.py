"""People whose numbers all stand in a release multiplied by one factor, or whose dates all stand there moved by one number of days.

Two numbers of a record that were multiplied by the same factor keep their ratio, two dates that were moved together the days between them. So a
released row is held against the records with its levels and its ratio, and the factor is the one that makes most people of the joint table
agree. It is found without knowing who is a member: given how many people agree, the number of members among them is hypergeometric.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.sorting import distinct, distinct_codes, sort_order
from ..data.spelling import SURE_DIGITS, digits_and_decimals
from .cells import Keys, mixed
from .coded import Column
from .evidence import Found

MOST_PAIRS = 2_000_000
"""Pairs of a record and a row with the same ratio; where more agree, a ratio says nothing."""
MOST_COLUMNS = 4
"""Numbers of which each two are tried: those with the most different values."""
MOST_RECORDS, MOST_ROWS = 200_000, 1_000_000
"""Records and rows of a dataset that are looked at."""
LOOKED_AT = 500
EXACT = 1e-9
"""How far two logarithms of numbers that are written with all their digits may lie apart."""


@dataclass(frozen=True, eq=False)
class _Side:
    """Numbers of two columns on the scale on which a common change adds: the first one (k,), its distance from the other, how exact both are, and which rows they are of."""

    first: Floats
    apart: Floats
    exact: Floats
    rows: Integers

    @classmethod
    def of(cls, one: Floats, other: Floats, *, dates: bool) -> _Side:
        rows = np.flatnonzero(np.isfinite(one) & np.isfinite(other) & (dates | ((one > 0) & (other > 0))))
        pair = one[rows], other[rows]
        if dates:
            return cls(pair[0], pair[0] - pair[1], np.full(len(rows), EXACT), rows)
        exact = EXACT + _half_digit(pair[0]) + _half_digit(pair[1])
        return cls(np.log(pair[0]), np.log(pair[0]) - np.log(pair[1]), exact, rows)


def _half_digit(numbers: Floats) -> Floats:
    """Half of the last digit that some positive numbers (k,) are written with, as a share of each."""
    if not len(numbers):
        return numbers
    digits, decimals = digits_and_decimals(numbers[:: max(1, len(numbers) // LOOKED_AT)])
    return np.zeros(len(numbers)) if digits > SURE_DIGITS else np.asarray(0.5 * 10.0**-decimals / numbers)


def moved_together(
    columns: Sequence[Column], dates: Collection[str], levels: Keys, released_levels: Sequence[Keys], members: int
) -> list[Found]:
    """The people of the joint table whose levels, and two numbers or dates after one common change, a released row has: of each dataset those of the
    most frequent change.

    Args:
        columns: the variables that are numbers or dates.
        dates: which of them are moved by days; the others are multiplied.
        levels: (N,) what each record has in all its levels.
        released_levels: what each row of each dataset has in them, (r,) each.
        members: how many of the N come first that are members.
    """
    found = list[Found]()
    if len(columns) < 2:
        return found
    ours = _some(_numbers(columns[0]), levels, MOST_RECORDS)
    for release, theirs in enumerate(released_levels):
        made = _some(columns[0].released_numbers[release], theirs, MOST_ROWS)
        every = distinct_codes(np.concatenate([levels[ours], theirs[made]])).codes.astype(np.int64)
        group, released_group = every[: len(ours)], every[len(ours) :]
        for is_date in (False, True):
            best, what = np.zeros(0, dtype=np.int64), ""
            for one, other in combinations(_told_apart([one for one in columns if (one.name in dates) == is_date]), 2):
                own = _Side.of(_numbers(one)[ours], _numbers(other)[ours], dates=is_date)
                rows = [column.released_numbers[release][made] for column in (one, other)]
                people, change = _most(own, _Side.of(rows[0], rows[1], dates=is_date), group, released_group)
                if len(people) > len(best):
                    best, what = people, _said(one.name, other.name, change, dates=is_date)
            if len(best):
                found.append(_counted(ours[best], what, ours, members))
    return found


def _numbers(column: Column) -> Floats:
    assert column.numbers is not None
    return column.numbers


def _some(numbers: Floats, levels: Keys, most: int) -> Integers:
    """The rows of a table (n,) that are looked at, ascending: all, or of more about so many, chosen by what they say."""
    if len(levels) <= most:
        return np.arange(len(levels))
    keys = mixed(levels ^ mixed(numbers.astype(np.float64).view(np.uint64)))
    return np.flatnonzero(keys <= np.partition(keys, most)[most])


def _told_apart(columns: Sequence[Column]) -> list[Column]:
    """Those of the columns that have the most different values, in their own order."""
    ranked = sorted(columns, key=lambda one: -len(one.ordered.of.values))[:MOST_COLUMNS]
    return [one for one in columns if one in ranked]


def _most(ours: _Side, made: _Side, group: Integers, released_group: Integers) -> tuple[Integers, float]:
    """The records that agree with a row after the change that most of them agree by, ascending, and that change; none where too many agree by chance."""
    nobody = np.zeros(0, dtype=np.int64)
    if not len(ours.rows) or not len(made.rows):
        return nobody, 0.0
    width = 2 * (np.abs(ours.apart).max() + np.abs(made.apart).max() + 1)
    place = group[ours.rows] * width + ours.apart
    order = sort_order(place)
    place, asked = place[order], released_group[made.rows] * width + made.apart
    first, last = np.searchsorted(place, asked - made.exact), np.searchsorted(place, asked + made.exact, "right")
    many = last - first
    if not 0 < many.sum() <= MOST_PAIRS:
        return nobody, 0.0
    row = np.repeat(np.arange(len(many)), many)
    record = order[np.arange(len(row)) - np.repeat(np.cumsum(many) - many - first, many)]
    change = made.first[row] - ours.first[record]
    is_changed = np.abs(change) > 2 * made.exact[row]
    if not is_changed.any():
        return nobody, 0.0
    row, record, change = row[is_changed], record[is_changed], change[is_changed]
    step = 4 * float(np.median(made.exact[row]))
    values, which = np.unique(np.rint(change / step), return_inverse=True)
    pairs = np.unique(which * len(ours.rows) + record)
    which_once, people = pairs // len(ours.rows), pairs % len(ours.rows)
    chosen = int(np.argmax(np.bincount(which_once)))
    near = np.abs(values[which_once] - values[chosen]) <= 1
    return distinct(ours.rows[people[near]]), float(np.median(change[which == chosen]))


def _said(one: str, other: str, change: float, *, dates: bool) -> str:
    if dates:
        return f"once {one} and {other} are moved back by {change:,.4g} days"
    return f"once {one} and {other} are divided by {np.exp(change):.4g}"


def _counted(people: Integers, what: str, some: Integers, members: int) -> Found:
    """People (k,) among ``some`` (n,) who were looked at."""
    own, of_members = people[people < members], int((some < members).sum())
    who = f"all {len(some):,} people" if some[-1] == len(some) - 1 else f"{len(some):,} people chosen by their values"
    return Found(who, what, len(own), of_members, len(people) - len(own), len(some) - of_members, records=own)
