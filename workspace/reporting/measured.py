"""All measurements of a run as tables: one for each family, one for attacks, and one for epsilon beside evidence."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import PublishedFigure

from .attacks import attack_table, is_attack_row
from .evidence import evidence_table
from .results import result_table
from .tables import DisplayTable
from .words import FAMILY_HEADINGS, NO_SETTINGS, SettingsByMethod


def result_tables(
    rows: Sequence[Row],
    published: Sequence[PublishedFigure] = (),
    apart: SettingsByMethod = NO_SETTINGS,
    *,
    keys: bool = False,
) -> list[tuple[DisplayTable, list[Row]]]:
    """Return a table for each family that was measured, with the rows that it shows.

    Attacks and the evidence beside a privacy account have tables of their own.
    """
    attacks = [row for row in rows if is_attack_row(row)]
    plain = [row for row in rows if not is_attack_row(row)]
    found = [(heading, [row for row in plain if row.family == family]) for family, heading in FAMILY_HEADINGS.items()]
    tables = [(result_table(own, published, apart, heading, keys=keys), own) for heading, own in found if own]
    tables += [(beside, attacks)] if (beside := attack_table(attacks, apart)) else []
    evidence = evidence_table(rows)
    # right below the privacy account, which is the first family
    return [*tables[:1], (evidence, []), *tables[1:]] if evidence else tables
