"""Tables as they are printed: a public file that says which cells are hidden, and an internal one that says why.

Both have a line for each cell, with the label of each variable. A hidden cell is a mark in the public file, never 0 and
never empty, and nothing there tells why it is hidden: that a cell is unsafe says how few are in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from sfumato.engine.data.arrays import Booleans, Floats, Integers
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.tables.system import EMPTY, PrintedTable

from ..visible_text import plain_cell
from .delimited_lines import join_cells

if TYPE_CHECKING:
    from sfumato.engine.recipe.declared_tables import RecipeTables

HIDDEN_MARK = "x"
TOTAL_LABEL = "total"
PUBLISHED, HIDDEN, PRIMARY, SECONDARY = "published", "hidden", "primary", "secondary"
DIGITS = 12
"""Significant digits of a sum: more would show in which order its parts were added up."""


@dataclass(frozen=True, eq=False)
class CellStatuses:
    """What becomes of each cell of a system, and why; arrays are (cells,).

    values: value of each cell
    whole: whether it is a number of records
    published: whether it is printed
    primary: whether it is unsafe in itself
    units: number of units in it
    by_rule: for each rule the cells that it finds
    levels: how far above its value each unsafe cell must stay possible
    rise, fall: how far above and below its value others were found possible, NaN where that was not looked at
    failing: cells that are not shown to be safe for every reader
    are_zeros_hidden: whether cells without records are hidden
    """

    values: Floats
    whole: Booleans
    published: Booleans
    primary: Booleans
    units: Integers
    by_rule: Mapping[str, Booleans] = field(default_factory=dict)
    levels: Floats | None = None
    rise: Floats | None = None
    fall: Floats | None = None
    failing: Booleans | None = None
    are_zeros_hidden: bool = False

    @classmethod
    def from_protected(cls, tables: RecipeTables) -> Self:
        """Build from the protected tables of a recipe."""
        system, protected, audit = tables.system, tables.protected, tables.protected.audit
        return cls(
            system.values,
            system.cell_is_whole,
            protected.published,
            protected.primary,
            system.unit_counts,
            audit.by_rule,
            audit.levels,
            audit.rise,
            audit.fall,
            audit.failing | protected.unprotected,
            tables.are_zeros_hidden,
        )

    def status_of(self, cell: int) -> str:
        """Return why a cell is printed or hidden."""
        if cell == EMPTY:
            return PRIMARY if self.are_zeros_hidden else PUBLISHED
        if self.published[cell]:
            return PUBLISHED
        return PRIMARY if self.primary[cell] else SECONDARY

    def format_value(self, cell: int) -> str:
        """Return the value of a cell as text."""
        if cell == EMPTY:
            return "0"
        value = float(self.values[cell])
        return f"{round(value)}" if self.whole[cell] else f"{value:.{DIGITS}g}"


def public_table_csv(printed: PrintedTable, statuses: CellStatuses, value_name: str = "count") -> bytes:
    """Return a table as a public CSV file, with a mark in place of hidden values and a column ``status``."""
    lines = [[*_label_heads(printed), plain_cell(value_name), "status"]]
    for labels, cell in _lines_of_cells(printed):
        hidden = statuses.status_of(cell) != PUBLISHED
        lines.append([*labels, HIDDEN_MARK if hidden else statuses.format_value(cell), HIDDEN if hidden else PUBLISHED])
    return "".join(join_cells(line, ",") for line in lines).encode()


def status_table_csv(printed: PrintedTable, statuses: CellStatuses, value_name: str = "count") -> bytes:
    """Return a table as an internal CSV file: every value, why it is hidden, and between which values it can lie."""
    heads = ("status", "rules", "units", "level", "lowest", "highest", "safe")
    lines = [[*_label_heads(printed), plain_cell(value_name), *heads]]
    for labels, cell in _lines_of_cells(printed):
        lines.append([*labels, statuses.format_value(cell), *_reasons(cell, statuses)])
    return "".join(join_cells(line, ",") for line in lines).encode()


def _reasons(cell: int, statuses: CellStatuses) -> list[str]:
    """Return the cells of a line that say why a cell is hidden, empty where that is not known."""
    status = statuses.status_of(cell)
    if cell == EMPTY:
        return [status, "zeros" if statuses.are_zeros_hidden else "", "0", "", "", "", ""]
    rules = " ".join(rule for rule, found in statuses.by_rule.items() if found[cell])
    value, ends = float(statuses.values[cell]), ["", ""]
    if statuses.rise is not None and statuses.fall is not None:
        numbers = (value - float(statuses.fall[cell]), value + float(statuses.rise[cell]))
        ends = ["" if np.isnan(number) else f"{number:.{DIGITS}g}" for number in numbers]
    level = 0.0 if statuses.levels is None else float(statuses.levels[cell])
    # Only what was hidden for its own sake was to be shown to be safe.
    judged = statuses.failing is not None and bool(statuses.primary[cell])
    safe = ("no" if statuses.failing is not None and statuses.failing[cell] else "yes") if judged else ""
    return [status, rules, str(int(statuses.units[cell])), f"{level:.{DIGITS}g}" if level else "", *ends, safe]


def _label_heads(printed: PrintedTable) -> list[str]:
    """Return the heads of the columns with labels: each variable, and which of its groupings, where it has several."""
    heads = list[str]()
    for name, options in zip(printed.variables, printed.options, strict=True):
        heads += [plain_cell(name), *([plain_cell(f"{name} grouping")] if _has_groupings(options) else [])]
    return heads


def _has_groupings(options: Sequence[tuple[str, str]]) -> bool:
    """Return whether an axis has labels of several groupings."""
    return len({grouping for grouping, label in options if label != TOTAL}) > 1


def _lines_of_cells(printed: PrintedTable) -> Iterator[tuple[list[str], int]]:
    """Yield the labels of each place, and its cell."""
    texts = list[list[list[str]]]()
    for options in printed.options:
        taken = {label for _, label in options}
        total = TOTAL_LABEL
        while total in taken:
            total += "*"
        several = _has_groupings(options)
        texts.append(
            [
                [plain_cell(label if label != TOTAL else total), *([plain_cell(grouping)] if several else [])]
                for grouping, label in options
            ]
        )
    for places in np.ndindex(*printed.cells.shape):
        labels = [text for own, at in zip(texts, places, strict=True) for text in own[at]]
        yield labels, int(printed.cells[places])
