"""Combinations of groups that no record has, for tables whose zeros are hidden: which of them records could have.

Readers of a hidden 0 do not know that it is 0, so a combination without records is an atom like any other. Where it is
impossible, readers do know: a table of women has no men, a region lies in one county. An atom that readers know to be
impossible would make cells look open that are not. A combination is an atom

    always      where nothing in the records speaks against it: it goes against no group that another one determines,
                and against no condition of a table
    doubtful    where a printed cell would have no atom without it: the groups may exclude each other by what they mean,
                or by chance. What follows is then asked of both readers, the one who knows and the one who does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data.arrays import Booleans, Integers
from ..data.rows import distinct_rows
from ..errors import NotComputable
from ..wording import count_noun

if TYPE_CHECKING:
    from .declared_table import DeclaredTable

MAX_COMBINATIONS = 200_000
"""Combinations of groups up to which those without records are written down."""
MOST_OF_CONDITION = 3
"""Variables of the tables that together decide, at most, whether a record is in a table, for this to be noticed."""


def add_empty_combinations(
    tables: Sequence[DeclaredTable], rows: Integers, chosen: Booleans, codes: list[Integers], inside: Booleans
) -> tuple[list[Integers], Booleans, Booleans]:
    """Add combinations without records to those of the atoms.

    Args:
        tables: the tables.
        rows: all records, those that are in none of the tables too, (m,).
        chosen: which tables each of these is in, (m, tables).
        codes: group of each atom, by table: (atoms, groupings), -1 outside of a group or of the table.
        inside: which tables each atom is in, (atoms, tables).

    Returns codes and tables of all atoms, the new ones last, and which are doubtful. Raises NotComputable for too many
    combinations.
    """
    grid = _CombinationGrid(tables, rows, chosen)
    every, objections = grid.list_combinations()
    known = {row.tobytes() for row in np.concatenate([inside.astype(np.int64), *codes], axis=1)}
    # Combinations that differ outside of tables only are one: that with the fewest objections counts.
    order = np.argsort(objections, kind="stable")
    fresh = list[int]()
    for at, row in zip(order.tolist(), every[order], strict=True):
        key = row.tobytes()
        if key not in known:
            known.add(key)
            fresh.append(at)
    every, objections = every[fresh], objections[fresh]
    cut = np.cumsum([inside.shape[1], *(own.shape[1] for own in codes)]).tolist()
    certain = objections == 0
    joined = [
        np.concatenate([own, every[certain, a:b]]) for own, (a, b) in zip(codes, itertools.pairwise(cut), strict=True)
    ]
    there = np.concatenate([inside, every[certain, : cut[0]].astype(np.bool_)])
    needed = _needed_combinations(tables, joined, there, every[~certain], objections[~certain], cut)
    more = every[~certain][needed]
    joined = [np.concatenate([own, more[:, a:b]]) for own, (a, b) in zip(joined, itertools.pairwise(cut), strict=True)]
    doubtful = np.arange(len(there) + len(more)) >= len(there)
    return joined, np.concatenate([there, more[:, : cut[0]].astype(np.bool_)]), doubtful


def _needed_combinations(
    tables: Sequence[DeclaredTable],
    codes: list[Integers],
    inside: Booleans,
    others: Integers,
    objections: Integers,
    cut: list[int],
) -> Booleans:
    """Return which of other combinations a cell needs that has no atom yet: those with the fewest objections."""
    needed = np.zeros(len(others), dtype=np.bool_)
    for at, table in enumerate(tables):
        filled = np.zeros(math.prod(table.shape), dtype=np.bool_)
        for places, mask in places_in_table(table, codes[at]):
            filled[places[mask & inside[:, at]]] = True
        least = np.full(len(filled), np.iinfo(np.int64).max)
        choices = list(places_in_table(table, others[:, cut[at] : cut[at + 1]]))
        for places, mask in choices:
            is_inside = mask & (others[:, at] > 0)
            np.minimum.at(least, places[is_inside], objections[is_inside])
        for places, mask in choices:
            own = np.flatnonzero(mask & (others[:, at] > 0))
            needed[own] |= ~filled[places[own]] & (objections[own] == least[places[own]])
    return needed


class _CombinationGrid:
    """All combinations of what occurs of each variable, and of the tables that records are in together.

    What occurs of each variable stays together: a region has its county in every combination.

    patterns: which tables records are in, (patterns, tables)
    inside: which tables each different record is in, (r, tables)
    parts: columns of each variable among the groupings of all tables
    values: what occurs in these columns, (values, columns), by variable
    of_value: value of each different record, (r,), by variable
    """

    def __init__(self, tables: Sequence[DeclaredTable], rows: Integers, chosen: Booleans) -> None:
        self.tables = tables
        columns = [
            grouping.codes[rows].astype(np.int64)
            for table in tables
            for own in table.variables
            for grouping in own.groupings
        ]
        first = distinct_rows([*chosen.T.astype(np.int64), *columns], len(rows)).first
        codes = np.stack([own[first] for own in columns], axis=1) if columns else np.zeros((len(first), 0), np.int64)
        owners = [(at, own.name) for at, table in enumerate(tables) for own in table.variables for _ in own.groupings]
        self.names = sorted({name for _, name in owners})
        self.parts = [np.flatnonzero([name == own for _, own in owners]) for name in self.names]
        self.table_of_column = np.array([at for at, _ in owners], dtype=np.int64)
        self.inside = chosen[first]
        self.patterns = np.unique(self.inside[self.inside.any(axis=1)], axis=0)
        self.values, self.of_value = list[Integers](), list[Integers]()
        for part in self.parts:
            values, of_value = np.unique(codes[:, part], axis=0, return_inverse=True)
            self.values.append(values)
            self.of_value.append(of_value.ravel())
        number = math.prod([len(self.patterns), *map(len, self.values)])
        if number > MAX_COMBINATIONS:
            raise NotComputable(
                f"the tables have {count_noun(number, 'combination')} of groups, at most {MAX_COMBINATIONS:,} can be "
                "looked at where zeros are hidden; use fewer variables, or print zeros"
            )
        grid = np.indices([len(self.patterns), *map(len, self.values)]).reshape(1 + len(self.values), -1)
        self.pattern, self.places = grid[0], grid[1:]

    def list_combinations(self) -> tuple[Integers, Integers]:
        """Return tables and groups of each combination, -1 outside of a table, and what speaks against each, counted."""
        objections = np.zeros(len(self.pattern), dtype=np.int64)
        is_impossible = np.zeros(len(self.pattern), dtype=np.bool_)
        for at in range(len(self.tables)):
            there: Booleans = self.patterns[self.pattern, at]
            is_impossible |= there & self._lies_in_no_group(at)
            if not self.inside[:, at].all():
                objections += self._objections_of_condition(at, there)
        for one, other in itertools.combinations(range(len(self.values)), 2):
            sizes = len(self.values[one]), len(self.values[other])
            occurs = np.zeros(sizes, dtype=np.bool_)
            occurs[self.of_value[one], self.of_value[other]] = True
            # One of them determines the other one, as a region does its county.
            if occurs.sum() == max(sizes):
                objections += ~occurs[self.places[one], self.places[other]]
        codes = np.full((len(self.pattern), len(self.table_of_column)), -1, dtype=np.int64)
        for part, values, place in zip(self.parts, self.values, self.places, strict=True):
            codes[:, part] = values[place]
        inside = self.patterns[self.pattern]
        codes = np.where(inside[:, self.table_of_column], codes, -1)
        every = np.ascontiguousarray(np.concatenate([inside.astype(np.int64), codes], axis=1))
        return every[~is_impossible], objections[~is_impossible]

    def _lies_in_no_group(self, at: int) -> Booleans:
        """Return the combinations that a table would have no group for, though no record of it lies in none."""
        found = np.zeros(len(self.pattern), dtype=np.bool_)
        for part, values, of_value, place in zip(self.parts, self.values, self.of_value, self.places, strict=True):
            own = values[:, self.table_of_column[part] == at]
            if not own.shape[1] or not (own < 0).any():
                continue
            _, number = np.unique(own, axis=0, return_inverse=True)
            number = number.ravel()
            occurs = np.zeros(len(values), dtype=np.bool_)
            occurs[number[of_value[self.inside[:, at]]]] = True
            is_apart = (own < 0).any(axis=1) & ~occurs[number]
            found |= np.asarray(is_apart)[place]
        return found

    def _objections_of_condition(self, at: int, there: Booleans) -> Integers:
        """Return how often each combination goes against what the records show of the condition of a table."""
        found = np.zeros(len(self.pattern), dtype=np.int64)
        decides = list[set[int]]()
        numbers = range(len(self.values))
        for size in range(1, MOST_OF_CONDITION + 1):
            for chosen in itertools.combinations(numbers, size):
                if any(own <= set(chosen) for own in decides):
                    continue
                shape = tuple(len(self.values[one]) for one in chosen)
                occurs = np.zeros((2, math.prod(shape)), dtype=np.bool_)
                key = np.ravel_multi_index([self.of_value[one] for one in chosen], shape)
                occurs[self.inside[:, at].astype(np.int64), key] = True
                is_decided = not occurs.all(axis=0).any()
                if is_decided:
                    decides.append(set(chosen))
                elif size > 1:
                    continue
                places = np.ravel_multi_index([self.places[one] for one in chosen], shape)
                # Of a combination of several variables that no record has nothing is known.
                seen = occurs[there.astype(np.int64), places]
                is_known = np.asarray(occurs.any(axis=0) | (size == 1))
                found += ~seen & is_known[places]
        return found


def places_in_table(table: DeclaredTable, codes: Integers) -> Iterator[tuple[Integers, Booleans]]:
    """Yield the flat places of atoms in a table for each choice of groupings, and which atoms have one."""
    choices = list[list[tuple[Integers, Booleans]]]()
    at = 0
    for variable in table.variables:
        own = list[tuple[Integers, Booleans]]()
        begin = 0
        if variable.total:
            own.append((np.zeros(len(codes), dtype=np.int64), np.ones(len(codes), dtype=np.bool_)))
            begin = 1
        for grouping in variable.groupings:
            own.append((codes[:, at] + begin, codes[:, at] >= 0))
            begin += len(grouping.labels)
            at += 1
        choices.append(own)
    for choice in itertools.product(*choices):
        places, mask = np.zeros(len(codes), dtype=np.int64), np.ones(len(codes), dtype=np.bool_)
        for (own_places, own_mask), size in zip(choice, table.shape, strict=True):
            places = places * size + own_places
            mask &= own_mask
        yield places, mask
