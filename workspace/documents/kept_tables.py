"""The public tables of a release that was drawn from protected tables: a CSV file each, and a page on what the datasets keep and what not."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from itertools import combinations

import numpy as np

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.wording import counted

from ..release.dossier import Dossier
from ..reporting.document import Chapter, Document, Items, Paragraph, Part
from ..reporting.tables import table
from ..reporting.words import number
from ..visible_text import plain_cell
from .written import Written

PAGE, FOLDER = "what-this-file-keeps.html", "tables"


def kept_documents(dossier: Dossier, written: Sequence[Written]) -> dict[str, bytes]:
    """``what-this-file-keeps.html`` and ``tables/01.csv`` and so on; nothing where no step gives tables that may be published."""
    tables = dossier.approved()
    if not tables:
        return {}
    names = [f"{FOLDER}/{at:0{max(2, len(str(len(tables))))}}.csv" for at in range(1, len(tables) + 1)]
    files = {name: table_csv(one) for name, one in zip(names, tables, strict=True)}
    return {PAGE: kept_page(tables, names, dossier.plan.replaced).html().encode(), **files}


def table_csv(one: ApprovedTable) -> bytes:
    """A line a cell: its categories and the count. Of rounded counts those of 0 are left out, since some of them name rare categories."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*map(plain_cell, one.variables), "count"])
    for cell in np.ndindex(*one.counts.shape):
        if one.counts[cell] or one.noise:
            labels = [one.categories[axis][at] for axis, at in enumerate(cell)]
            lines.writerow([*map(plain_cell, labels), f"{one.counts[cell]:.12g}"])
    return text.getvalue().encode()


def kept_page(tables: Sequence[ApprovedTable], names: Sequence[str], replaced: Sequence[str]) -> Document:
    """What was kept: the tables with their protection; and the pairs of variables that no table has."""
    lines = [
        [name, ", ".join(one.variables), f"{one.counts.size:,}", one.protection]
        for name, one in zip(names, tables, strict=True)
    ]
    pairs = {frozenset(pair) for one in tables for pair in combinations(one.variables, 2)}
    every = list(combinations(replaced, 2))
    missing = [f"{a} and {b}" for a, b in every if frozenset((a, b)) not in pairs]
    kept: list[Part] = [
        Paragraph(
            f"The records were drawn from {counted(len(tables), 'table')} of counts and from nothing else of the confidential data. Each table was "
            "protected before, and is here as a file; a cell that is not listed is 0."
        ),
        table(("file", "variables", "cells", "protection"), lines, right=(2,)),
    ]
    if any(one.noise for one in tables):
        widest = max(one.noise for one in tables)
        kept.append(
            Paragraph(
                f"A sum of k cells of one table has a standard error, by the noise, of the square root of k times its standard deviation "
                f"(at most {number(widest)}); negative counts are noise and no mistake."
            )
        )
    not_kept: list[Part] = (
        [Items(missing)]
        if missing
        else [
            Paragraph(
                "Every pair of variables is in some table. Relations of three or more are kept where a table has them all."
            )
        ]
    )
    advice = Items(
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
            Chapter(f"Not kept: {counted(len(missing), 'pair')} of {len(every):,} pairs of variables", not_kept),
            Chapter("What that means for an analysis", [advice]),
        ],
    )
