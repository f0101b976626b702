"""Structure check: kinds, ranges, codes and missing values of the released datasets next to the confidential table's.

It shows whether code written for the release will run on the confidential data, not whether results agree (Raab, McCall
& Cavin 2025). Smallest and largest values stand in it: it is internal.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    confidential = dossier.read_confidential()
    tables = [dossier.read_released(draw).select(names) for draw in range(plan.datasets)]
    after = plan.run.recipe.released_schema
    return [
        _variable_line(before[name], after[name], confidential[name], [one[name] for one in tables]) for name in names
    ]


def _variable_line(
    before: Variable, after: Variable, original: pa.ChunkedArray, released: Sequence[pa.ChunkedArray]
) -> DisplayRow:
    """Return the line of one variable: kind, range, levels and missing values, confidential and released."""
    own, other = _number_range([original]), _number_range(released)
    levels, others = _levels_that_occur([original]), _levels_that_occur(released)
    missing, missing_released = _missing_share([original]), _missing_share(released)
    differs = []
    if before.kind is not after.kind:
        differs.append("kind")
    if own and other and (other[0] < own[0] or other[1] > own[1]):
        differs.append("range")
    if before.kind is after.kind and others - levels:
        differs.append(f"{len(others - levels)} new levels")
    if levels - others and before.kind is after.kind:
        differs.append(f"{count_noun(len(levels - others), 'level')} lost")
    if bool(missing) != bool(missing_released):
        differs.append("missing values")
    return [
        before.name, before.kind.value, after.kind.value, _range_text(own), _range_text(other), _count_of_levels(levels), _count_of_levels(others),
        number(100 * missing), number(100 * missing_released), ", ".join(differs),
    ]  # fmt: skip


def _number_range(columns: Sequence[pa.ChunkedArray]) -> tuple[float, float] | None:
    """Return the smallest and largest number; None for what is no number, or where all are missing."""
    if not (pa.types.is_integer(columns[0].type) or pa.types.is_floating(columns[0].type)):
        return None
    ends = [pc.min_max(pc.drop_null(one)).as_py() for one in columns]
    found = [(float(one["min"]), float(one["max"])) for one in ends if one["min"] is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _levels_that_occur(columns: Sequence[pa.ChunkedArray]) -> set[str]:
    """Return the levels that occur; none for what has no levels."""
    if not pa.types.is_dictionary(columns[0].type):
        return set()
    return {str(level) for one in columns for level in pc.unique(pc.drop_null(one).cast(pa.string())).to_pylist()}


def _missing_share(columns: Sequence[pa.ChunkedArray]) -> float:
    """Return the share of the values that are missing."""
    return float(sum(one.null_count for one in columns) / max(1, sum(len(one) for one in columns)))


def _range_text(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{number(ends[0])} .. {number(ends[1])}"


def _count_of_levels(levels: set[str]) -> str:
    return str(len(levels)) if levels else ""
