"""Output of ``sfumato import``: a file into a project, and a first description of its columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.limits import READ_SECONDS
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.reporting.reading import detection_table, first_rows_table, undecided_lines
from sfumato.workspace.reporting.tables import DisplayTable, table_from_titles
from sfumato.workspace.reporting.words import records_and_dropped_text
from sfumato.workspace.service.importing import ImportSelection, preview_file
from sfumato.workspace.visible_text import replace_unprintable

from ..session.importing import column_remarks, import_in_process
from ..session.places import remember_workspace
from .options import chosen_workspace, report_workspace_at_end, table_text, terminal_width


def preview_text(file: str, format_settings: Mapping[str, Any], selection: ImportSelection) -> str:
    """Return a preview of a file: its format with reasons, its first rows and its columns; nothing is stored."""
    # In a process of its own, with a limit of time: a file may make its reader hang or crash.
    found = call_in_process(
        preview_file, file, format_settings, selection, what=f'the reading of "{file}"', seconds=READ_SECONDS
    )
    parts = ["\n".join([f"{found.source}: how it would be read", *found.notes])]
    if found.detection is not None:
        parts += [
            table_text(detection_table(found.detection)),
            table_text(first_rows_table(found.detection, terminal_width())),
        ]
        parts += undecided_lines(found.detection)
    parts += [table_text(_columns_table(found.columns)), "\n".join(column_remarks(found.columns))]
    return "\n\n".join(filter(None, parts))


def _columns_table(columns: Sequence[ColumnProfile]) -> DisplayTable:
    """Return the columns of a file as a table, with titles where any column has one."""
    lines = [
        [p.variable.name, f"{p.variable.kind} {p.variable.format}".strip(), "left out" if not p.is_included else "?" if p.question else "", f"{p.missing:,}", f"{p.distinct:,}", replace_unprintable(p.variable.title)]
        for p in columns
    ]  # fmt: skip
    titled = any(p.variable.title for p in columns)
    heads = ("column", "kind", "", "missing", "distinct", "title")
    return table_from_titles(
        heads if titled else heads[:5], [line if titled else line[:5] for line in lines], right=(3, 4)
    )


def import_and_describe(
    directory: Path | None,
    file: str,
    project: str | None,
    recipe_file: Path | None,
    format_settings: Mapping[str, Any],
    selection: ImportSelection,
) -> str:
    """Import a file's records with guessed kinds; return the description and the next steps."""
    # Before the import: then nothing is stored where the recipe cannot be written.
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("--recipe", f'"{recipe_file}" exists already; name a new file')
    directory = chosen_workspace(directory)
    report_workspace_at_end(directory)
    found = import_in_process(directory, file, project or "", format_settings, selection)
    remember_workspace(directory)
    parts = [
        f'{found.source}: {records_and_dropped_text(found.records, found.dropped)} in project "{found.project}" of {directory}',
        *(["\n".join(found.notes)] if found.notes else []),
        *(
            []
            if found.detection is None or found.detection.is_default
            else [table_text(detection_table(found.detection))]
        ),
        *([] if found.detection is None else undecided_lines(found.detection)),
        table_text(_columns_table(found.columns)),
        *filter(None, ["\n".join(column_remarks(found.columns))]),
        "Kinds are guesses. Correct them and give each column its role in a recipe: quasi-identifier, sensitive or other.",
    ]
    if recipe_file is None:
        parts.append(
            f"next: sfumato draft {shlex.quote(found.project)} --known NAMES --sensitive NAMES -o my-study.toml drafts a recipe; --recipe my-study.toml here writes one to start from"
        )
    else:
        recipe_file.write_text(found.recipe, "utf-8")
        parts.append(
            f"{recipe_file} is a recipe to start from; add its steps, or have them drafted (sfumato draft), then: sfumato run {recipe_file}"
        )
    return "\n\n".join(parts)
