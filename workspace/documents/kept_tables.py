"""Public tables of a release that was drawn from protected tables: CSV files, and a page on what is preserved."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from itertools import combinations

import numpy as np

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.wording import count_noun

from ..release.dossier import ReleaseDossier
from ..reporting.document import BulletList, Chapter, Document, DocumentPart, Paragraph
from ..reporting.tables import table_from_titles
from ..reporting.words import number
from ..visible_text import plain_cell
from .written import WrittenFile

PAGE, FOLDER = "what-this-file-keeps.html", "tables"


def kept_table_documents(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``what-this-file-keeps.html``, ``tables/01.csv`` and so on.

    Nothing where no step gives publishable tables.
    """
    tables = dossier.read_approved_tables()
    if not tables:
        return {}
    names = [f"{FOLDER}/{at:0{max(2, len(str(len(tables))))}}.csv" for at in range(1, len(tables) + 1)]
    files = {name: table_csv(one) for name, one in zip(names, tables, strict=True)}
    return {PAGE: kept_page(tables, names, dossier.plan.replaced).to_html().encode(), **files}


def table_csv(table: ApprovedTable) -> bytes:
    """Return a CSV table with a line for each cell: its categories and the count."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*map(plain_cell, table.variables), "count"])
    for cell in np.ndindex(*table.counts.shape):
        # Zeros of rounded counts are left out: some would name rare categories. A noisy 0 is a count like any other.
        if table.counts[cell] or table.noise:
            labels = [table.categories[axis][at] for axis, at in enumerate(cell)]
            lines.writerow([*map(plain_cell, labels), f"{table.counts[cell]:.12g}"])
    return text.getvalue().encode()


def kept_page(tables: Sequence[ApprovedTable], names: Sequence[str], replaced: Sequence[str]) -> Document:
    """Return a page with the tables and their protection, and the pairs of variables that no table has."""
    lines = [
        [name, ", ".join(one.variables), f"{one.counts.size:,}", one.protection]
        for name, one in zip(names, tables, strict=True)
    ]
    pairs = {frozenset(pair) for one in tables for pair in combinations(one.variables, 2)}
    every = list(combinations(replaced, 2))
    missing = [f"{a} and {b}" for a, b in every if frozenset((a, b)) not in pairs]
    kept: list[DocumentPart] = [
        Paragraph(
            f"The records were drawn from {count_noun(len(tables), 'table')} of counts and from nothing else of the confidential data. Each table was "
            "protected before, and is here as a file; a cell that is not listed is 0."
        ),
        table_from_titles(("file", "variables", "cells", "protection"), lines, right=(2,)),
    ]
    if any(one.noise for one in tables):
        widest = max(one.noise for one in tables)
        kept.append(
            Paragraph(
                f"A sum of k cells of one table has a standard error, by the noise, of the square root of k times its standard deviation "
                f"(at most {number(widest)}); negative counts are noise and no mistake."
            )
        )
    not_kept: list[DocumentPart] = (
        [BulletList(missing)]
        if missing
        else [
            Paragraph(
                "Every pair of variables is in some table. Relations of three or more are kept where a table has them all."
            )
        ]
    )
    advice = BulletList(
        [
            "An analysis of variables that share a table is supported, as far as the protection lets it be.",
            "An analysis of other variables shows what follows from the tables alone: expect relations that are too weak. It is not supported.",
        ]
    )
    return Document(
        "What this file keeps of the confidential data",
        "SYNTHETIC DATA",
        [
            Chapter("Kept", kept),
            Chapter(f"Not kept: {count_noun(len(missing), 'pair')} of {len(every):,} pairs of variables", not_kept),
            Chapter("What that means for an analysis", [advice]),
        ],
    )
