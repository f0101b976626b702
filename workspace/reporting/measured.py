"""All measurements of a run as tables: one for each family, one for attacks, and one for epsilon beside evidence."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods.rows import Row

from .attacks import attack_table, is_attack_row
from .evidence import evidence_table
from .numbers import section_place, section_title
from .results import NO_CONTEXT, TableContext, result_table
from .tables import DisplayTable
from .words import FAMILY_HEADINGS


def result_tables(rows: Sequence[Row], context: TableContext = NO_CONTEXT) -> list[tuple[DisplayTable, list[Row]]]:
    """Return a table for each family that was measured, with the rows that it shows; folded, for each question answered.

    The evidence beside a privacy account has a table of its own, and attacks too where nothing is folded.
    """
    attacks = [] if context.folded else [row for row in rows if is_attack_row(row)]
    plain = [row for row in rows if context.folded or not is_attack_row(row)]
    if context.folded:
        found = sorted(_rows_by_section(plain).items(), key=lambda one: section_place(one[0]))
    else:
        found = [(text, [row for row in plain if row.family == family]) for family, text in FAMILY_HEADINGS.items()]
    tables = [(result_table(own, context, heading), own) for heading, own in found if own]
    tables += [(beside, attacks)] if (beside := attack_table(attacks, context.apart)) else []
    evidence = evidence_table(rows)
    if evidence is None:
        return tables
    # right below the privacy account, which is the first family and the last question
    at = len(tables) if context.folded else 1
    return [*tables[:at], (evidence, []), *tables[at:]]


def _rows_by_section(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by the question that they answer."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(section_title(row.key), []).append(row)
    return found
