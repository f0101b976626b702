"""Output of ``sfumato import``: a file into a project, and a first description of its columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.dialects import SettingReason
from sfumato.workspace.policy.disclosure import INTERNAL
from sfumato.workspace.reporting.reading import detection_table, first_rows_table, previewed_rows_table, undecided_lines
from sfumato.workspace.reporting.tables import DisplayTable, table_from_titles
from sfumato.workspace.reporting.words import records_and_dropped_text
from sfumato.workspace.service.importing import FIRST_ROWS, FilePreview, ImportResult, ImportSelection
from sfumato.workspace.visible_text import replace_unprintable

from ..session.importing import column_remarks, import_in_process
from ..session.places import remember_workspace
from .options import chosen_workspace, report_workspace_at_end, table_text, terminal_width


def importing_object(found: FilePreview | ImportResult) -> dict[str, Any]:
    """Return an import or its preview as the object that ``--json`` writes."""
    stored = (
        {
            "project": found.project,
            "records": found.records,
            "dropped": found.dropped,
            "recipe": read_toml(found.recipe),
        }
        if isinstance(found, ImportResult)
        else {}
    )
    return {
        "disclosure": INTERNAL,
        "stored": bool(stored),
        "source": found.source,
        **stored,
        "notes": list(found.notes),
        "read_with": [] if found.detection is None else [_setting_object(one) for one in found.detection.reasons],
        "columns": [_column_object(one) for one in found.columns],
        **({"first_rows": {name: list(texts) for name, texts in found.first_rows.items()}} if found.first_rows else {}),
    }


def _setting_object(one: SettingReason) -> dict[str, Any]:
    """Return a setting of the detected format; without alternatives the file settles it."""
    return {"key": one.key, "value": one.value, "why": one.explanation, "alternatives": list(one.alternatives)}


def _column_object(one: ColumnProfile) -> dict[str, Any]:
    """Return how a column is read, what is open about it, and why it is left out if it is."""
    return {
        "name": one.variable.name,
        "title": one.variable.title,
        "kind": str(one.variable.kind),
        "format": one.variable.format,
        "role": str(one.variable.role),
        "missing": one.missing,
        "distinct": one.distinct,
        "included": one.is_included,
        "reasons": list(one.exclusion_reasons),
        "question": one.question,
    }


def preview_text(found: FilePreview) -> str:
    """Return a preview of a file: its format with reasons, its first rows and its columns."""
    parts = ["\n".join([f"{found.source}: how it would be read", *found.notes])]
    if found.detection is not None:
        parts.append(table_text(detection_table(found.detection)))
        if not found.first_rows:
            parts.append(table_text(first_rows_table(found.detection, terminal_width())))
        parts += undecided_lines(found.detection)
    parts += _first_rows_parts(found)
    parts += [table_text(_columns_table(found.columns)), "\n".join(column_remarks(found.columns))]
    return "\n\n".join(filter(None, parts))


def _first_rows_parts(found: FilePreview | ImportResult) -> list[str]:
    """Return the first rows below how each column is read, where they were wanted; columns with a question come first."""
    if not found.first_rows:
        return []
    table = previewed_rows_table(found.columns, found.first_rows, terminal_width(), FIRST_ROWS)
    return ["First rows, confidential:", table_text(table)]


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


def store_file(
    directory: Path | None,
    file: str,
    project: str | None,
    recipe_file: Path | None,
    format_settings: Mapping[str, Any],
    selection: ImportSelection,
    *,
    with_rows: bool = False,
) -> ImportResult:
    """Import a file's records with guessed kinds, and write a recipe to start from where a file is named."""
    # Before the import: then nothing is stored where the recipe cannot be written.
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("--recipe", f'"{recipe_file}" exists already; name a new file')
    directory = chosen_workspace(directory)
    report_workspace_at_end(directory)
    found = import_in_process(directory, file, project or "", format_settings, selection, with_rows)
    remember_workspace(directory)
    if recipe_file is not None:
        recipe_file.write_text(found.recipe, "utf-8")
    return found


def imported_text(found: ImportResult, directory: Path | None, recipe_file: Path | None) -> str:
    """Return the description of an import and the next steps."""
    where = chosen_workspace(directory)
    parts = [
        f'{found.source}: {records_and_dropped_text(found.records, found.dropped)} in project "{found.project}" of {where}',
        *(["\n".join(found.notes)] if found.notes else []),
        *(
            []
            if found.detection is None or found.detection.is_default
            else [table_text(detection_table(found.detection))]
        ),
        *([] if found.detection is None else undecided_lines(found.detection)),
        *_first_rows_parts(found),
        table_text(_columns_table(found.columns)),
        *filter(None, ["\n".join(column_remarks(found.columns))]),
        "Kinds are guesses. Correct them and give each column its role in a recipe: quasi-identifier, sensitive or other.",
    ]
    if recipe_file is None:
        parts.append(
            f"next: sfumato draft {shlex.quote(found.project)} --known NAMES --sensitive NAMES -o my-study.toml drafts a recipe; --recipe my-study.toml here writes one to start from"
        )
    else:
        parts.append(
            f"{recipe_file} is a recipe to start from; add its steps, or have them drafted (sfumato draft), then: sfumato run {recipe_file}"
        )
    return "\n\n".join(parts)
