"""Structure check: kinds, ranges, codes and missing values of the released datasets next to the confidential table's.

It shows whether code written for the release will run on the confidential data, not whether results agree (Raab, McCall
& Cavin 2025). Smallest and largest values stand in it: it is internal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.data.schema import Variable
from sfumato.engine.wording import count_noun

from ..policy.disclosure import MARKING
from ..release.dossier import ReleaseDossier
from ..reporting.document import Document, Paragraph
from ..reporting.tables import DisplayRow, table_from_titles
from ..reporting.words import number
from .written import WrittenFile

HEADS = ("variable", "kind", "kind released", "range", "range released", "levels", "levels released", "missing %",
         "missing % released", "differs in")  # fmt: skip
READING = (
    "What a program sees of each variable, in the confidential table and in all released datasets together. A released value "
    "outside the confidential range, a level that the confidential table does not have, or missing values on one side alone, are "
    "named in the last column. Levels that were lost are usual where a level is rare."
)


def structure_check(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``structure-check.html`` as bytes, by name."""
    made = Document(
        "Structure check",
        MARKING,
        [Paragraph(READING), table_from_titles(HEADS, structure_lines(dossier), right=(7, 8))],
    )
    return {"structure-check.html": made.to_html().encode()}


def structure_lines(dossier: ReleaseDossier) -> list[DisplayRow]:
    """Return a line for each released variable."""
    plan, before = dossier.plan, dossier.original.schema
    names = [one.name for one in plan.run.recipe.released_schema if one.name not in plan.left_out]
    parts, after = dossier.stored_parts, plan.run.recipe.released_schema
    own, other = (
        _summarise_columns(tables, names) for tables in (parts.iterate_confidential(), parts.iterate_all_released())
    )
    return [_variable_line(before[name], after[name], own[name], other[name]) for name in names]


@dataclass(slots=True)
class _ColumnSummary:
    """What a program sees of a column: smallest and largest number, levels, and how many values of all are missing."""

    ends: tuple[float, float] | None = None
    levels: set[str] = field(default_factory=set)
    missing: int = 0
    values: int = 0

    @property
    def missing_share(self) -> float:
        """Return the share of the values that are missing."""
        return self.missing / max(1, self.values)

    def add_values(self, column: pa.ChunkedArray) -> None:
        """Add further values of the column."""
        self.missing, self.values = self.missing + column.null_count, self.values + len(column)
        there = pc.drop_null(column)
        if pa.types.is_dictionary(column.type):
            self.levels |= {str(level) for level in pc.unique(there.cast(pa.string())).to_pylist()}
        elif len(there) and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            found = pc.min_max(there).as_py()
            low, high = (float(found["min"]), float(found["max"]))
            self.ends = (low, high) if self.ends is None else (min(low, self.ends[0]), max(high, self.ends[1]))


def _summarise_columns(tables: Iterable[pa.Table], names: Sequence[str]) -> dict[str, _ColumnSummary]:
    """Return the summary of each named column over tables that come one by one."""
    found = {name: _ColumnSummary() for name in names}
    for table in tables:
        for name, summary in found.items():
            summary.add_values(table[name])
    return found


def _variable_line(before: Variable, after: Variable, own: _ColumnSummary, other: _ColumnSummary) -> DisplayRow:
    """Return the line of one variable: kind, range, levels and missing values, confidential and released."""
    differs = []
    if before.kind is not after.kind:
        differs.append("kind")
    if own.ends and other.ends and (other.ends[0] < own.ends[0] or other.ends[1] > own.ends[1]):
        differs.append("range")
    if before.kind is after.kind and (new := other.levels - own.levels):
        differs.append(f"{len(new)} new levels")
    if (lost := own.levels - other.levels) and before.kind is after.kind:
        differs.append(f"{count_noun(len(lost), 'level')} lost")
    if bool(own.missing) != bool(other.missing):
        differs.append("missing values")
    return [
        before.name, before.kind.value, after.kind.value, _range_text(own.ends), _range_text(other.ends),
        _count_of_levels(own.levels), _count_of_levels(other.levels),
        number(100 * own.missing_share), number(100 * other.missing_share), ", ".join(differs),
    ]  # fmt: skip


def _range_text(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{number(ends[0])} .. {number(ends[1])}"


def _count_of_levels(levels: set[str]) -> str:
    return str(len(levels)) if levels else ""
