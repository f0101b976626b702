"""``sfumato import``: a file into a project, and a first description of its columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import conform
from sfumato.engine.schema import MissingPolicy
from sfumato.workspace.ingest.describe import describe, draft_recipe, schema_of
from sfumato.workspace.ingest.files import find_source, read_frame
from sfumato.workspace.plan.drafts import draft_of, draft_of_import, keep_missing, store_draft
from sfumato.workspace.store.workspace import Workspace

from ..console import table

__all__ = ["import_and_describe"]


def import_and_describe(
    workspace: Callable[[], Workspace], file: str, project: str | None, recipe_file: Path | None
) -> str:
    """Store the file's records with guessed kinds; returns the description and what to do next.

    A project that has no plan yet gets a draft of one. Everything is read and checked before the workspace is opened. Records with a missing value stay in the file and
    leave the stored table.
    """
    source = find_source(file, place="FILE")
    frame = read_frame(source, place="FILE")
    if not len(frame):
        raise BadInput("FILE", f'"{source.name}" has no records')
    profiles = describe(frame)
    schema = schema_of(profiles)
    if not len(schema):
        raise BadInput("FILE", f'"{source.name}" has no column but identifiers')
    if recipe_file is not None and recipe_file.exists():
        raise BadInput("--recipe", f'"{recipe_file}" exists already; name a new file')
    data = conform(frame, schema, MissingPolicy.DROP)
    opened = workspace()
    name = project or Path(source.name).stem
    stored = opened.tables.write_microdata(data)
    path = str(Path(file).expanduser().resolve())
    with opened.writing() as connection:
        project_id = opened.ensure_project(name)
        planned = draft_of(opened, project_id)
        dataset_id = opened.add_dataset(project_id, source.name, source.sha256, data, stored)
        keep_missing(connection, dataset_id, {p.variable.name: p.missing for p in profiles}, len(frame))
        if planned is None:
            store_draft(connection, draft_of_import(project_id, dataset_id, draft_recipe(path, name, profiles)))
    lines = [
        [p.variable.name, p.variable.kind.value, p.variable.role.value, f"{p.missing:,}", f"{p.distinct:,}"]
        for p in profiles
    ]
    parts = [
        f'{source.name}: {len(data):,} records in project "{name}" of {opened.directory}'
        + (f", {data.dropped:,} with missing values left out" if data.dropped else ""),
        table(("column", "kind", "role", "missing", "distinct"), lines, right=(3, 4)),
        "Kinds are guesses. Correct them and give each column its role in a recipe: known, sensitive or other.",
    ]
    if recipe_file is None:
        parts.append(f"next: sfumato import {file} --recipe my-study.toml writes a recipe to start from")
    else:
        recipe_file.write_text(draft_recipe(path, name, profiles), "utf-8")
        parts.append(f"{recipe_file} is a recipe to start from; add its steps, then: sfumato run {recipe_file}")
    return "\n\n".join(parts)
