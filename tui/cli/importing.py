"""``sfumato import``: a file into a project, and a first description of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.importing import ColumnProfile, import_file, preview_file
from sfumato.workspace.ingest.limits import READ_SECONDS
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.reporting.reading import doubt_lines, first_rows, reading_table
from sfumato.workspace.reporting.tables import Table, table
from sfumato.workspace.reporting.words import records_text

from ..places import remember_workspace
from .options import chosen_workspace, printed, say_workspace


def preview_text(file: str, said: Mapping[str, Any]) -> str:
    """How a file would be read, why, and its first rows; nothing is stored."""
    found = call_in_process(preview_file, file, said, what=f'the reading of "{file}"', seconds=READ_SECONDS)
    parts = [f"{found.source}: how it would be read"]
    if found.detection is not None:
        parts += [printed(reading_table(found.detection)), printed(first_rows(found.detection))]
        parts += doubt_lines(found.detection)
    parts.append(printed(_columns(found.columns)))
    return "\n\n".join(parts)


def _columns(columns: Sequence[ColumnProfile]) -> Table:
    lines = [
        [p.variable.name, p.variable.kind.value, p.variable.role.value, f"{p.missing:,}", f"{p.distinct:,}"]
        for p in columns
    ]
    return table(("column", "kind", "role", "missing", "distinct"), lines, right=(3, 4))


def import_and_describe(
    directory: Path | None, file: str, project: str | None, recipe_file: Path | None, said: Mapping[str, Any]
) -> str:
    """Store the file's records with guessed kinds; returns the description and what to do next."""
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("--recipe", f'"{recipe_file}" exists already; name a new file')
    directory = chosen_workspace(directory)
    say_workspace(directory)
    found = call_in_process(
        import_file, directory, file, project or "", said, what=f'the import of "{file}"', seconds=READ_SECONDS
    )
    remember_workspace(directory)
    parts = [
        f'{found.source}: {records_text(found.records, found.dropped)} in project "{found.project}" of {directory}',
        *([] if found.detection is None or found.detection.usual else [printed(reading_table(found.detection))]),
        *([] if found.detection is None else doubt_lines(found.detection)),
        printed(_columns(found.columns)),
        "Kinds are guesses. Correct them and give each column its role in a recipe: known, sensitive or other.",
    ]
    if recipe_file is None:
        parts.append(f"next: sfumato import {file} --recipe my-study.toml writes a recipe to start from")
    else:
        recipe_file.write_text(found.recipe, "utf-8")
        parts.append(f"{recipe_file} is a recipe to start from; add its steps, then: sfumato run {recipe_file}")
    return "\n\n".join(parts)
