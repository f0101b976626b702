"""All that a run measured, table by table: a family each, attacks beside control records, and epsilon beside evidence."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import PublishedFigure

from .attacks import attack_table, is_of_attack
from .evidence import evidence_table
from .results import result_table
from .tables import Table
from .words import FAMILIES, NOTHING, Apart


def result_tables(
    rows: Sequence[Row], published: Sequence[PublishedFigure] = (), apart: Apart = NOTHING, *, keys: bool = False
) -> list[tuple[Table, list[Row]]]:
    """A table for every family that was measured, its heading the title; and the rows that it shows.

    Below a privacy account stands what the release shows, or that it was not measured; attacks have a table of their own.
    """
    attacks = [row for row in rows if is_of_attack(row)]
    plain = [row for row in rows if not is_of_attack(row)]
    found = [(heading, [row for row in plain if row.family == family]) for family, heading in FAMILIES.items()]
    tables = [(result_table(own, published, apart, heading, keys=keys), own) for heading, own in found if own]
    tables += [(beside, attacks)] if (beside := attack_table(attacks, apart)) else []
    evidence = evidence_table(rows)
    return [*tables[:1], (evidence, []), *tables[1:]] if evidence else tables
