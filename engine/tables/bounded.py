"""Printed tables together with rounded ones and with the cells that datasets show: one system, whose rows have bounds.

What stands beside printed tables is a table too. The cells of a rounded one have bounds, and the records of a dataset
with coarser columns are cells over groups, which are known. Readers do not know which combinations of the two occur, so
all combinations are atoms that may have records; what occurs of one variable stays together, so a value has its group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats
from ..errors import NotComputable
from ..wording import count_noun
from .audit import TableAudit, audit_tables
from .declared_table import COUNT, DeclaredTable, TableVariable
from .polytope import CellBounds
from .rules import TableRules, UnsafeCells
from .system import EMPTY, MAX_PRINTED_CELLS, TableSystem, build_system

MOST_COMBINATIONS = 20_000
"""Combinations of all groups up to which tables are looked at together, as for rounded tables alone."""
MOST_CELLS_OF_CONTRIBUTORS = 2_000
"""Cells up to which contributors are looked at too."""
SINGLE_PROGRAMS = 100


@dataclass(frozen=True, eq=False)
class BoundedTable:
    """A table that is known within bounds.

    declared: the table, which counts records
    low, high: bounds of each place, equal where it is known, (shape of the table)
    judged: places whose small counts must not follow, (shape of the table)
    """

    declared: DeclaredTable
    low: Floats
    high: Floats
    judged: Booleans


@dataclass(frozen=True, eq=False)
class PlainTable:
    """A printed table of counts.

    declared: the table, over n records
    shown: places that are printed, (shape of the table)
    unsafe: hidden places that must not follow, (shape of the table)
    """

    declared: DeclaredTable
    shown: Booleans
    unsafe: Booleans


@dataclass(frozen=True, eq=False)
class BoundedAudit:
    """What follows from printed tables and from what stands beside them.

    system: atoms and cells of all of them
    audit: what each reader finds out
    are_contributors_examined: whether contributors, who know their own part of each cell, were looked at, as asked for
    """

    system: TableSystem
    audit: TableAudit
    are_contributors_examined: bool = True


def audit_with_bounded(
    printed: Sequence[PlainTable],
    beside: Sequence[BoundedTable],
    threshold: int,
    *,
    zeros_shown: bool,
    contributors: bool = True,
) -> BoundedAudit:
    """Audit which unsafe cells follow from printed tables of counts with others that are known within bounds.

    Args:
        printed: tables over the same n records, the first of them those that are examined.
        beside: what stands beside them.
        threshold: counts of 1 to ``threshold`` - 1 units are small.
        zeros_shown: whether readers see which cells of the printed tables are 0.
        contributors: whether to look at contributors, who know their own part of each cell.

    Raises NotComputable for more combinations of groups than can be looked at.
    """
    system = build_system([*(one.declared for one in printed), *(one.declared for one in beside)], complete=True)
    combinations = system.columns.shape[0]
    if combinations > MOST_COMBINATIONS:
        raise NotComputable(
            f"the tables have {count_noun(combinations, 'combination')} of groups with what stands beside them, at "
            f"most {MOST_COMBINATIONS:,} can be looked at together"
        )
    cells_of = {(one.release, one.name): one.cells for one in system.tables}
    number = system.cell_count
    low, high = np.zeros(number), np.full(number, np.inf)
    unsafe, of_printed = np.zeros(number, dtype=np.bool_), np.zeros(number, dtype=np.bool_)
    small = (system.unit_counts > 0) & (system.unit_counts < threshold)
    for table in printed:
        cells = cells_of[table.declared.release, table.declared.name]
        known = cells != EMPTY
        of_printed[cells[known]] = True
        shown = cells[known & table.shown]
        low[shown] = high[shown] = system.values[shown]
        unsafe[cells[known & table.unsafe]] = True
    printed_exactly = low == high
    for one in beside:
        cells = cells_of[one.declared.release, one.declared.name]
        known = cells != EMPTY
        np.maximum.at(low, cells[known], one.low[known])
        np.minimum.at(high, cells[known], one.high[known])
        # What a printed table shows, the office has decided to print; that it is small is the printed table's finding.
        judged = cells[known & one.judged]
        unsafe[judged] |= small[judged] & ~printed_exactly[judged]
    rules = TableRules(threshold=threshold, zeros="safe" if zeros_shown else "unsafe")
    is_small = number <= MOST_CELLS_OF_CONTRIBUTORS
    audit = audit_tables(
        system,
        low == high,
        rules,
        bounds=CellBounds(low, high),
        contributors=contributors and is_small,
        unsafe=UnsafeCells({"threshold": unsafe}, np.zeros(number), ()),
        single_programs=SINGLE_PROGRAMS,
        zeros_shown_in=of_printed,
    )
    return BoundedAudit(system, audit, is_small or not contributors)


def table_of_dataset(columns: Mapping[str, Any], release: str, where: Booleans | None = None) -> BoundedTable:
    """Return what the columns of a dataset, as it shows them, say of the records: how many have each combination.

    ``columns`` are labels of each record, (n,) each; ``where`` are the records that the dataset has, (n,). Raises
    NotComputable for too many combinations.
    """
    declared = DeclaredTable(
        "dataset",
        tuple(TableVariable.from_values(name, values, total=False) for name, values in columns.items()),
        measure=COUNT,
        where=where,
        release=release,
    )
    if math.prod(declared.shape) > MAX_PRINTED_CELLS:
        raise NotComputable(f"the dataset has more than {MAX_PRINTED_CELLS:,} combinations of values")
    counts = np.zeros(declared.shape)
    codes = tuple(own.groupings[0].codes for own in declared.variables)
    inside = slice(None) if where is None else where
    np.add.at(counts, tuple(one[inside] for one in codes), 1.0)
    return BoundedTable(declared, counts, counts, np.zeros(counts.shape, dtype=np.bool_))
