"""``sfumato import``: a file into a project, and a first description of its columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.limits import READ_SECONDS
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.reporting.reading import doubt_lines, first_rows, reading_table
from sfumato.workspace.reporting.tables import Table, table
from sfumato.workspace.reporting.words import records_text
from sfumato.workspace.service.importing import ImportSelection, preview_file
from sfumato.workspace.visible_text import replace_unprintable

from ..session.importing import import_apart, left_out_lines
from ..session.places import remember_workspace
from .options import chosen_workspace, printed, say_workspace, terminal_width


def preview_text(file: str, said: Mapping[str, Any], selection: ImportSelection) -> str:
    """How a file would be read, why, and its first rows; nothing is stored."""
    found = call_in_process(preview_file, file, said, selection, what=f'the reading of "{file}"', seconds=READ_SECONDS)
    parts = ["\n".join([f"{found.source}: how it would be read", *found.notes])]
    if found.detection is not None:
        parts += [printed(reading_table(found.detection)), printed(first_rows(found.detection, terminal_width()))]
        parts += doubt_lines(found.detection)
    parts += [printed(_columns(found.columns)), "\n".join(left_out_lines(found.columns))]
    return "\n\n".join(filter(None, parts))


def _columns(columns: Sequence[ColumnProfile]) -> Table:
    lines = [
        [p.variable.name, p.variable.kind.value, "" if p.enters else "left out", f"{p.missing:,}", f"{p.distinct:,}", replace_unprintable(p.variable.title)]
        for p in columns
    ]  # fmt: skip
    titled = any(p.variable.title for p in columns)
    heads = ("column", "kind", "", "missing", "distinct", "title")
    return table(heads if titled else heads[:5], [line if titled else line[:5] for line in lines], right=(3, 4))


def import_and_describe(
    directory: Path | None,
    file: str,
    project: str | None,
    recipe_file: Path | None,
    said: Mapping[str, Any],
    selection: ImportSelection,
) -> str:
    """Store the file's records with guessed kinds; returns the description and what to do next."""
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("--recipe", f'"{recipe_file}" exists already; name a new file')
    directory = chosen_workspace(directory)
    say_workspace(directory)
    found = import_apart(directory, file, project or "", said, selection)
    remember_workspace(directory)
    parts = [
        f'{found.source}: {records_text(found.records, found.dropped)} in project "{found.project}" of {directory}',
        *(["\n".join(found.notes)] if found.notes else []),
        *([] if found.detection is None or found.detection.usual else [printed(reading_table(found.detection))]),
        *([] if found.detection is None else doubt_lines(found.detection)),
        printed(_columns(found.columns)),
        *filter(None, ["\n".join(left_out_lines(found.columns))]),
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
