"""Printed tables of a release: public files and a page on what they hide, and internal files that say why.

In public a hidden cell is a mark: never 0, never empty, and nothing tells whether it is unsafe itself or hidden for
others' sake. Values, rules, intervals and certificates are internal.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO

import numpy as np

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.table_sections import PlannedTable
from sfumato.engine.tables.system import EMPTY, PrintedTable
from sfumato.engine.wording import count_noun, format_percent

from ..release.dossier import ReleaseDossier
from ..reporting.document import BulletList, Chapter, Document, DocumentPart, Paragraph
from ..reporting.tables import table_from_titles
from ..store.protected_tables import StoredTables
from ..table_files.argus_export import argus_files
from ..table_files.printed_tables import DIGITS, HIDDEN_MARK, public_table_csv, status_table_csv
from ..visible_text import plain_cell
from .written import WrittenFile

PAGE, FOLDER = "what-the-tables-hide.html", "printed-tables"
CERTIFICATES = "certificates.csv"
TITLE = "TABLES"
NAME_LENGTH = 40


def printed_table_files(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return the public files: each table as CSV, and ``what-the-tables-hide.html``; nothing without tables."""
    stored = dossier.read_printed_tables()
    if stored is None:
        return {}
    names = printed_file_names(stored)
    planned = planned_tables(dossier)
    files = {
        f"{FOLDER}/{name}.csv": public_table_csv(one, stored.statuses, planned[one.name].measure)
        for name, one in zip(names, stored.printed, strict=True)
    }
    return {PAGE: hidden_cells_page(dossier, stored).to_html().encode(), **files}


def printed_table_records(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return the internal files: each table with its statuses, as tau-ARGUS reads it, and the certificates."""
    stored = dossier.read_printed_tables()
    if stored is None:
        return {}
    planned, files = planned_tables(dossier), dict[str, bytes]()
    for name, one in zip(printed_file_names(stored), stored.printed, strict=True):
        own = planned[one.name]
        files[f"{FOLDER}/{name}.csv"] = status_table_csv(one, stored.statuses, own.measure)
        try:
            argus = argus_files(name, one, stored.statuses, own.hierarchies, own.measure)
        except BadInput:
            continue  # tau-ARGUS has no such table, such as one with second groupings
        files |= {f"{FOLDER}/argus/{file}": content for file, content in argus.items()}
    files[f"{FOLDER}/{CERTIFICATES}"] = certificates_csv(stored)
    return files


def planned_tables(dossier: ReleaseDossier) -> dict[str, PlannedTable]:
    """Return the tables of the recipe by name."""
    return {one.name: one for one in dossier.plan.run.recipe.tables}


def printed_file_names(stored: StoredTables) -> list[str]:
    """Return a name of each table's file, without suffix: letters, digits and hyphens of the table's name."""
    names = list[str]()
    for at, one in enumerate(stored.printed, start=1):
        own = re.sub(r"[^a-z0-9]+", "-", one.name.lower()).strip("-")[:NAME_LENGTH].strip("-") or "table"
        names.append(f"{at:02}-{own}")
    return names


def hidden_cells_page(dossier: ReleaseDossier, stored: StoredTables) -> Document:
    """Return the page on what the tables hide, in numbers of cells alone."""
    lines = list[list[str]]()
    for name, one in zip(printed_file_names(stored), stored.printed, strict=True):
        cells, hidden = one.cells.size, count_hidden_cells(one, stored)
        by = ", ".join(one.variables) or "total"
        lines.append([f"{FOLDER}/{name}.csv", by, f"{cells:,}", f"{hidden:,}", format_percent(hidden / cells)])
    parts: list[DocumentPart] = [
        Paragraph(
            f"The release has {count_noun(len(lines), 'table')}. Each line of a file is a cell: its labels, its value and its "
            f'status. A hidden cell has the mark "{HIDDEN_MARK}" in place of its value. It is neither 0 nor missing.'
        ),
        table_from_titles(("file", "by", "cells", "hidden", "share"), lines, right=(2, 3, 4)),
    ]
    advice = BulletList(
        [
            "A cell is hidden because few contribute to it, because few make up most of a sum, or because it would show one that is hidden. The files do not tell which.",
            "Sums of printed cells are exact. Do not fill a hidden cell from sums, and do not count it as 0.",
            "The tables were protected together, with those that were released before of the same people. Hidden cells were chosen by rules on how many contribute and how much the largest ones do; the limits of these rules are not published.",
        ]
    )
    return Document("What the tables hide", TITLE, [Chapter("Tables", parts), Chapter("How to read them", [advice])])


def count_hidden_cells(printed: PrintedTable, stored: StoredTables) -> int:
    """Return how many places of a table are hidden."""
    cells = printed.cells[printed.cells != EMPTY]
    empty = printed.cells.size - cells.size if stored.are_zeros_hidden else 0
    return int((~stored.audit.published[cells]).sum()) + empty


def certificates_csv(stored: StoredTables) -> bytes:
    """Return for each hidden cell its value, and a second table that fits everything printed and differs there.

    ``certificate`` names the column of that table; other tables differ too where they need not.
    """
    system, audit = stored.system, stored.audit
    hidden = np.flatnonzero(~audit.published)
    used = sorted({int(row) for row in audit.certificate[hidden] if row >= 0})
    others = [system.values + np.asarray(system.columns.T @ audit.tables[row]) for row in used]
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["cell", "value", "certificate", *(f"table {at}" for at in range(1, len(used) + 1))])
    for cell in hidden.tolist():
        own = int(audit.certificate[cell])
        lines.writerow(
            [
                plain_cell(system.cell_names[cell]),
                f"{system.values[cell]:.{DIGITS}g}",
                f"table {used.index(own) + 1}" if own >= 0 else "",
                *(f"{values[cell]:.{DIGITS}g}" for values in others),
            ]
        )
    return text.getvalue().encode()
