"""Probes for people whose numbers are released times one factor, or whose dates are released moved.

Two numbers multiplied by the same factor keep their ratio, two dates moved together their difference. So a released row
is compared with the records that have its levels and its ratio, and the factor is the one that most people of the joint
table agree with. Membership is not used.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.rows import distinct_codes
from ..data.sorting import sort_order, sorted_unique
from ..data.spelling import rounding_uncertainty
from .cells import sampled_digits
from .coded import JointColumn
from .membership_evidence import MembershipProbe

MOST_PAIRS = 2_000_000
"""Largest number of pairs with the same ratio; with more a ratio says nothing."""
MOST_COLUMNS = 4
"""Largest number of columns whose pairs are tried: those with most distinct values."""
MOST_RECORDS, MOST_ROWS = 200_000, 1_000_000
"""Largest numbers of records and of rows compared."""
EXACT = 1e-9
"""Tolerance for logarithms of numbers with all digits."""


@dataclass(frozen=True, eq=False)
class _AdditiveColumn:
    """Column on a scale on which a common change adds: logarithms of positive numbers, or days.

    name: name of the column
    joint_values: values of the compared records, NaN or infinite if missing, (n,)
    released_values: values of the compared rows, (r,)
    tolerances: half width of the interval of each row's value before rounding, (r,)
    """

    name: str
    joint_values: Floats
    released_values: Floats
    tolerances: Floats

    @classmethod
    def from_values(cls, name: str, own: Floats, made: Floats, *, is_date: bool) -> _AdditiveColumn:
        """Create the column: logarithms of numbers above 0, or days, of both tables, (n,) and (r,), and the rounding of each row."""
        exact = np.full(len(made), EXACT / 2)
        if is_date:
            return cls(name, own, made, exact)
        written = (made > 0) & np.isfinite(made)
        numbers = made[written]
        exact[written] += rounding_uncertainty(numbers, sampled_digits(sorted_unique(numbers))) / numbers
        ours, theirs = (np.log(np.where(side > 0, side, np.nan)) for side in (own, made))
        return cls(name, ours, theirs, exact)


def probe_common_changes(
    columns: Sequence[JointColumn], dates: Collection[str], levels: Keys, released_levels: Sequence[Keys]
) -> list[MembershipProbe]:
    """Return probes for people whose levels, and two numbers or dates after one common change, a released row has.

    There is at most one probe per dataset and kind, for the most frequent change.

    Args:
        columns: the numeric and date variables.
        dates: variables that are moved by days; the others are multiplied.
        levels: key of each record's levels, (N,).
        released_levels: key of each row's levels, (r,) for each dataset.
    """
    looks = list[MembershipProbe]()
    ours = _choose_rows([_joint_numbers(one) for one in columns], len(levels), MOST_RECORDS)
    for release, theirs in enumerate(released_levels):
        made = _choose_rows([one.released_numbers[release] for one in columns], len(theirs), MOST_ROWS)
        every = distinct_codes(np.concatenate([levels[ours], theirs[made]])).codes.astype(np.int64)
        group, released_group = every[: len(ours)], every[len(ours) :]
        for is_date in (False, True):
            scaled = [
                _AdditiveColumn.from_values(
                    one.name, _joint_numbers(one)[ours], one.released_numbers[release][made], is_date=is_date
                )
                for one in _most_varied_columns([one for one in columns if (one.name in dates) == is_date])
            ]
            best, what = np.zeros(0, dtype=np.int64), ""
            for one, other in combinations(scaled, 2):
                people, change = _most_frequent_change(one, other, group, released_group)
                if len(people) > len(best):
                    best, what = people, _change_text(one.name, other.name, change, dates=is_date)
            if len(best):
                looks.append(_change_probe(ours[best], what, ours))
    return looks


def _joint_numbers(column: JointColumn) -> Floats:
    assert column.numbers is not None
    return column.numbers


def _choose_rows(columns: Sequence[Floats], rows: int, most: int) -> Integers:
    """Return the compared rows of a table, ascending: all, or about ``most`` chosen by hashes of their numbers."""
    if rows <= most:
        return np.arange(rows)
    keys = sum((mix_bits((one + 0.0).view(np.uint64)) for one in columns), np.zeros(rows, dtype=np.uint64))
    return np.flatnonzero(keys <= np.partition(keys, most)[most])


def _most_varied_columns(columns: Sequence[JointColumn]) -> list[JointColumn]:
    """Return the columns with the most distinct values, in their own order."""
    ranked = sorted(columns, key=lambda one: -len(one.ranked_numbers.distinct_numbers.values))[:MOST_COLUMNS]
    return [one for one in columns if one in ranked]


def _most_frequent_change(
    one: _AdditiveColumn, other: _AdditiveColumn, group: Integers, released_group: Integers
) -> tuple[Integers, float]:
    """Return the records that agree with a row after the most frequent change, and that change.

    The result is empty if too many agree by chance.
    """
    nobody = np.zeros(0, dtype=np.int64)
    ours, made = (
        np.flatnonzero(np.isfinite(a) & np.isfinite(b))
        for a, b in ((one.joint_values, other.joint_values), (one.released_values, other.released_values))
    )
    if not len(ours) or not len(made):
        return nobody, 0.0
    own_apart, apart, exact = (
        (one.joint_values - other.joint_values)[ours],
        (one.released_values - other.released_values)[made],
        (one.tolerances + other.tolerances)[made],
    )
    # Group and ratio as one sorted number: intervals of different groups do not overlap.
    width = 2 * (np.abs(own_apart).max() + np.abs(apart).max() + 1)
    place = group[ours] * width + own_apart
    order = sort_order(place)
    place, asked = place[order], released_group[made] * width + apart
    first, last = np.searchsorted(place, asked - exact), np.searchsorted(place, asked + exact, "right")
    many = last - first
    if not 0 < many.sum() <= MOST_PAIRS:
        return nobody, 0.0
    row = np.repeat(np.arange(len(many)), many)
    record = order[np.arange(len(row)) - np.repeat(np.cumsum(many) - many - first, many)]
    change = one.released_values[made[row]] - one.joint_values[ours[record]]
    is_changed = np.abs(change) > 2 * exact[row]
    if not is_changed.any():
        return nobody, 0.0
    row, record, change = row[is_changed], record[is_changed], change[is_changed]
    step = 4 * float(np.median(exact[row]))
    values, which = np.unique(np.rint(change / step), return_inverse=True)
    pairs = np.unique(which * len(ours) + record)
    which_once, people = pairs // len(ours), pairs % len(ours)
    chosen = int(np.argmax(np.bincount(which_once)))
    # Rounding may put equal changes into neighbouring bins.
    near = np.abs(values[which_once] - values[chosen]) <= 1
    return sorted_unique(ours[people[near]]), float(np.median(change[which == chosen]))


def _change_text(one: str, other: str, change: float, *, dates: bool) -> str:
    """Return the change in words."""
    if dates:
        return f"once {one} and {other} are moved back by {change:,.4g} days"
    return f"once {one} and {other} are divided by {np.exp(change):.4g}"


def _change_probe(people: Integers, what: str, some: Integers) -> MembershipProbe:
    """Return a probe for people (k,) found among ``some`` (n,) compared records."""
    who = f"all {len(some):,} people" if some[-1] == len(some) - 1 else f"{len(some):,} people chosen by their values"
    return MembershipProbe(who, f"stand in the release {what}", people, some)
