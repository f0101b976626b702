"""Hierarchies proposed for a quasi-identifier: a tree of its values, or nested widths of intervals of its numbers.

Proposals by kind:

    count, continuous, date   intervals of readable widths, each a multiple of the one before
    ordinal                   neighbouring levels side by side, two and two, up to the root
    categorical               codes by what they begin with, where they nest (NUTS, ISCO, ICD, postcodes); else the rare
                              values as one node; else all below the root
    binary                    both values below the root

A proposal is a beginning to be edited, and says what it learnt from the records: a hierarchy is published with a
release, so that what it shows of them (which values there are, which of them are rare, how far they reach) is no longer secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..wording import count_noun
from .hierarchies import ROOT, Hierarchy, flat_hierarchy

MOST_INTERVALS = 20
"""At the finest width, over the range that the widths are for."""
FEWEST_INTERVALS = 2
TAIL = 0.05
"""Share of the records on either side that widths learnt from the data look past: one record says nothing then."""
DAYS = (7, 28, 364, 3640)
"""Widths of intervals of dates: a week, four weeks, 52 weeks, 520 weeks."""
RARE = 0.05
"""A value that fewer of the records have goes to the node of the rare ones."""
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9. /-]*")
SHORTEST_CODE = 3
FEWEST_CODES = 6
MOST_ODD_CODES = 0.1
"""Share of the values that may be no codes, such as "unknown", where the others are; they stay what they are up to the
root.
"""
OTHER = "other"
VALUES_LEARNT = "the values are those that occur in the records"
WidthStep = tuple[int, int]
"""A number of one digit, 1, 2 or 5, and the power of ten that it is multiplied with."""
WIDTHS_LEARNT = "the widths follow how far the middle nine tenths of the records reach; give the variable bounds, and they follow those"


@dataclass(frozen=True, slots=True)
class HierarchyProposal:
    """A proposed hierarchy and how it was made; without a tree or widths all values lie directly below the root.

    way: its name in a word or two
    description: how it was made, in a sentence
    tree: tree of values
    widths: widths of intervals at multiples of each, ascending
    learnt_facts: what it shows of the records; empty where it rests on what the owner declared alone
    """

    way: str
    description: str
    tree: Hierarchy | None = None
    widths: tuple[float, ...] = ()
    learnt_facts: str = ""

    def recipe_settings(self, name: str) -> dict[str, Any]:
        """Return the tables of a recipe's step, ``hierarchies`` or ``widths``; empty for a bare root."""
        if self.tree is not None:
            return {"hierarchies": {name: self.tree.written}}
        return {"widths": {name: [_int_if_whole(width) for width in self.widths]}} if self.widths else {}


def propose_hierarchies(data: Microdata, name: str) -> tuple[HierarchyProposal, ...]:
    """Propose hierarchies for one variable, the best first; at least one."""
    variable = data.schema[name]
    if not variable.kind.has_levels:
        numbers = data.present_numbers(name)
        if variable.kind is Kind.DATE:
            return (propose_for_dates(numbers),)
        return (propose_for_numbers(numbers, variable.bounds or (None, None), whole=variable.kind is Kind.COUNT),)
    column = data.frame[name]
    # Declared levels that nobody has stay in the tree; levels of the column that are neither declared nor used do not.
    counts = dict.fromkeys(variable.levels, 0)
    for value, count in column.value_counts(sort=False).items():
        if count or str(value) in counts:
            counts[str(value)] = int(count)
    learnt = "" if variable.levels else VALUES_LEARNT
    if variable.kind is Kind.ORDINAL:
        return (propose_for_ordered_levels(list(map(str, column.cat.categories)), learnt=learnt),)
    return propose_for_categories(counts, learnt=learnt)


def readable_widths(span: float, finest: float = 0.0) -> tuple[float, ...]:
    """Return ascending widths, 1, 2 or 5 times a power of ten, each a multiple of the previous one.

    There are none if ``span`` is too narrow. The first makes at most 20 intervals of the span, the last at least two.
    None is below ``finest``.
    """
    if not 0 < span < math.inf:
        return ()
    found: list[float] = []
    step = _first_width_step(max(span / MOST_INTERVALS, finest))
    while span / _step_width(step) >= FEWEST_INTERVALS:
        found.append(_step_width(step))
        step = _next_width_step(step)
    return tuple(found)


def _step_width(step: WidthStep) -> float:
    # The product of a digit and a power of ten may be off by rounding: 5 * 10.0**-17 is not 5e-17.
    return float(f"{step[0]}e{step[1]}")


def _first_width_step(least: float) -> WidthStep:
    # log10 may round up at a power of ten, so the search begins one below.
    """Return the smallest step whose width is at least ``least``."""
    power = math.floor(math.log10(least)) - 1
    steps = ((digit, power + more) for more in range(4) for digit in (1, 2, 5))
    return next(step for step in steps if _step_width(step) >= least)


def _next_width_step(step: WidthStep) -> WidthStep:
    """Return the next wider step whose width is a multiple of this one's."""
    digit, power = step
    # 5 is no multiple of 2, so 2 is followed by 10.
    return {1: (2, power), 2: (1, power + 1), 5: (1, power + 1)}[digit]


def propose_for_numbers(
    numbers: Floats, bounds: tuple[float | None, float | None] = (None, None), *, whole: bool = False
) -> HierarchyProposal:
    """Propose intervals of numbers (n,), by the declared ``bounds`` or else by the data without their tails."""
    declared = None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])
    low, high = declared or _range_without_tails(numbers)
    whole = whole or bool(len(numbers) and (numbers == np.floor(numbers)).all())
    widths = readable_widths(high - low, 2.0 if whole else 0.0)
    if not widths:
        return HierarchyProposal(
            "root", "the values lie too close together for intervals: all of them below one root, *"
        )
    said = ", ".join(f"{width:.15g}" for width in widths)
    if declared:
        return HierarchyProposal(
            "intervals", f"intervals {said} wide, for the bounds {low:.15g} to {high:.15g}", widths=widths
        )
    return HierarchyProposal("intervals", f"intervals {said} wide", widths=widths, learnt_facts=WIDTHS_LEARNT)


def _range_without_tails(numbers: Floats) -> tuple[float, float]:
    """Return the range of the records without the tails, or of all records if that is a single value."""
    if not len(numbers):
        return 0.0, 0.0
    # The range is published with the hierarchy, and its ends would otherwise be those of two people.
    low, high = np.quantile(numbers, [TAIL, 1 - TAIL], method="inverted_cdf")
    if low == high:
        low, high = numbers.min(), numbers.max()
    return float(low), float(high)


def propose_for_dates(days: Floats) -> HierarchyProposal:
    """Propose intervals of weeks, four weeks, 52 and 520 weeks for days since 1970, (n,).

    The widest has at least two intervals in the middle nine tenths of the days.
    """
    low, high = _range_without_tails(np.floor(days))
    room = [width for width in DAYS if high - low >= FEWEST_INTERVALS * width]
    finest = (high - low) / MOST_INTERVALS
    widths = tuple(float(width) for at, width in enumerate(room) if width == room[-1] or room[at + 1] > finest)
    if not widths:
        return HierarchyProposal("root", "the days lie within two weeks: all of them below one root, *")
    said = ", ".join(f"{width:g}" for width in widths)
    return HierarchyProposal(
        "intervals", f"intervals of {said} days", widths=widths, learnt_facts=WIDTHS_LEARNT.partition(";")[0]
    )


def propose_for_ordered_levels(levels: Sequence[str], *, learnt: str = "") -> HierarchyProposal:
    """Propose pairs of neighbouring levels, then pairs of pairs, up to the root.

    An odd one joins the pair before it.
    """
    if len(levels) < 4:
        return HierarchyProposal(
            "root",
            "too few levels to group: all of them below one root, *",
            flat_hierarchy(levels),
            learnt_facts=learnt,
        )
    ends = [(rank, rank) for rank in range(len(levels))]
    columns = [list(levels)]
    while len(ends := _pair_neighbours(ends)) > 1:
        labels = [f"[{levels[low]}, {levels[high]}]" for low, high in ends]
        if len(set(labels)) < len(labels):
            break
        columns.append([label for label, (low, high) in zip(labels, ends, strict=True) for _ in range(low, high + 1)])
    if len(columns) == 1 or (tree := _tree_from_columns(columns)) is None:
        words = "the levels' names are such as groups have: all of them below one root, *"
        return HierarchyProposal("root", words, flat_hierarchy(levels), learnt_facts=learnt)
    return HierarchyProposal(
        "neighbours", "neighbouring levels together, two and two up to the root", tree, learnt_facts=learnt
    )


def _pair_neighbours(ends: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ends of pairs of neighbouring groups; an odd one joins the last pair."""
    pairs = [(ends[at][0], ends[min(at + 1, len(ends) - 1)][1]) for at in range(0, len(ends), 2)]
    if len(ends) % 2 and len(pairs) > 1:
        pairs[-2:] = [(pairs[-2][0], pairs[-1][1])]
    return pairs


def propose_for_categories(counts: Mapping[str, int], *, learnt: str = "") -> tuple[HierarchyProposal, ...]:
    """Propose hierarchies of categories from their numbers of records: by code, with the rare ones together, flat."""
    values = list(counts)
    ways = (propose_by_prefix(values, learnt=learnt), propose_by_frequency(counts, learnt=learnt))
    root = HierarchyProposal(
        "root", "every value directly below the root, *", flat_hierarchy(values), learnt_facts=learnt
    )
    return (*(way for way in ways if way is not None), root)


def propose_by_prefix(values: Sequence[str], *, learnt: str = "") -> HierarchyProposal | None:
    """Propose codes below their prefixes, a character shorter at each level.

    None where the values do not look like nested codes. Levels that join nothing are left out. Codes of one length show
    the characters that are gone as ``*``: ``24**``. A code that is the prefix of others is in one group with them.
    """
    codes = [value for value in values if _is_code(value)]
    if len(codes) < FEWEST_CODES or len(values) - len(codes) > MOST_ODD_CODES * len(values):
        return None
    one_length = len(set(map(len, codes))) == 1
    if not one_length and not _codes_nest(codes):
        return None
    columns = [list(values)]
    for length in range(max(map(len, codes)) - 1, 0, -1):
        labels = _prefix_labels(values, length, one_length=one_length)
        if 1 < len(set(labels)) < len(set(columns[-1])):
            columns.append(labels)
    if len(columns) == 1 or (tree := _tree_from_columns(columns)) is None:
        return None
    said = "codes below what they begin with, a sign less at each level: right only where codes that begin alike belong together"
    return HierarchyProposal("prefix", said, tree, learnt_facts=learnt)


def _is_code(value: str) -> bool:
    return len(value) >= SHORTEST_CODE and CODE.fullmatch(value) is not None and any(sign.isdigit() for sign in value)


def _codes_nest(codes: Sequence[str]) -> bool:
    """Return whether at least half of some codes have a separator, or begin with another code."""
    known = set(codes)
    parted = sum(bool(re.search(r"[. /-]", code)) for code in codes)
    inside = sum(any(code[:length] in known for length in range(1, len(code))) for code in codes)
    return 2 * max(parted, inside) >= len(codes)


def _prefix_labels(values: Sequence[str], length: int, *, one_length: bool) -> list[str]:
    """Return the prefix of each value; a node of several values, or of a longer one, shows it with ``*``."""
    begun = [value[:length].rstrip(". /-") if _is_code(value) else value for value in values]
    cut = {start for start, value in zip(begun, values, strict=True) if start != value}
    return [
        start if start not in cut else start + ROOT * (len(value) - len(start) if one_length else 1)
        for start, value in zip(begun, values, strict=True)
    ]


def propose_by_frequency(
    counts: Mapping[str, int], *, rare: float = RARE, learnt: str = ""
) -> HierarchyProposal | None:
    """Propose one node, ``other``, for the rare values; None where there is nothing to join.

    A value is rare if less than a share ``rare`` of the records have it.
    """
    total = sum(counts.values())
    ascending = sorted(counts, key=lambda value: (counts[value], value))
    joined = [value for value in ascending if counts[value] < rare * total]
    if not joined:
        return None
    # A node of one value, or of few people, would reveal a person's value, so more values are added.
    for value in ascending[len(joined) :]:
        if len(joined) > 1 and sum(counts[one] for one in joined) >= rare * total:
            break
        joined.append(value)
    # A tree that joins all values but one says no more than the root.
    if len(joined) > len(counts) - 2:
        return None
    label = OTHER
    while label in counts:
        label += "'"
    tree = _tree_from_columns([list(counts), [label if value in joined else value for value in counts]])
    if tree is None:
        return None
    words = f'the {count_noun(len(joined), "value")} that fewer than {rare:.0%} of the records have, as one, "{label}"'
    shows = f'which values are rare is learnt from the records, and whoever knows a person in "{label}" knows that theirs is one of few'
    return HierarchyProposal("frequency", words, tree, learnt_facts="; ".join(filter(None, (learnt, shows))))


def _tree_from_columns(columns: Sequence[Sequence[str]]) -> Hierarchy | None:
    """Return the tree with these nodes at each level, (levels, values), and a root of its own; None if labels clash."""
    root = ROOT
    while any(root in column for column in columns):
        root += ROOT
    try:
        return Hierarchy(tuple((*nodes, root) for nodes in zip(*columns, strict=True)))
    except ValueError:
        return None


def _int_if_whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number
