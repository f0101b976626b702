"""A file into a project: its records with guessed kinds, a description of its columns, and a plan to start from.

A guess is corrected by the owner of the file, and never more than that. Numerical libraries are loaded when a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.schema import MissingPolicy, Role, Schema
from sfumato.engine.errors import BadInput, suggestion

from ..ingest.columns import ColumnProfile, describe, lacking
from ..ingest.dialects import Detection, detect
from ..plan.drafts import draft_of, draft_of_import, inline, keep_missing, store_draft
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.data_source import DataSource
    from sfumato.engine.recipe.text_format import TextFormat

    from ..ingest.raw_tables import RawTable
    from ..ingest.sources import Source


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a file is brought in: an Excel ``sheet``, the records that ``where`` holds for, a ``sample`` of them, and which columns.

    ``only`` these columns, where any are named; not those of ``leave_out``; and those of ``keep`` though they may be identifiers.
    """

    sheet: str = ""
    where: str = ""
    sample: int | None = None
    only: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def data(self, file: str, missing: MissingPolicy, form: TextFormat | None) -> DataSource:
        """The ``[data]`` of a recipe that reads the same. Raises BadInput."""
        from sfumato.engine.recipe.data_source import DataSource

        if self.sample is not None and self.sample < 1:
            raise BadInput("--sample", f"{self.sample} must be at least 1")
        return DataSource(file, self.where, self.sample, missing, None, form, self.sheet)

    def chosen(self, columns: Sequence[ColumnProfile]) -> tuple[ColumnProfile, ...]:
        """The columns, with why each that does not enter does not. Raises BadInput for a column that is not there."""
        names = [column.variable.name for column in columns]
        for option, asked in (("--only", self.only), ("--leave-out", self.leave_out), ("--keep", self.keep)):
            for name in asked:
                if name not in names:
                    raise BadInput(option, f'no column "{name}"{suggestion(name, names)}')
        return tuple(map(self._judged, columns))

    def _judged(self, column: ColumnProfile) -> ColumnProfile:
        name, role = column.variable.name, column.variable.role
        if name in self.leave_out or (self.only and name not in self.only):
            return replace(column, why=("not asked for",))
        if name in self.keep and role is Role.IDENTIFIER:
            return replace(column, variable=replace(column.variable, role=Role.OTHER), why=())
        return column


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Imported:
    """A file that was stored. ``dropped`` records had a missing value; ``recipe`` is one to start from, in TOML.

    ``notes`` are what there is to be told of how it was read.
    """

    project_id: int
    project: str
    source: str
    records: int
    dropped: int
    columns: tuple[ColumnProfile, ...]
    recipe: str
    detection: Detection | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """How a file would be read; nothing is stored. ``detection`` is None for a file that says itself how it is read."""

    source: str
    detection: Detection | None
    columns: tuple[ColumnProfile, ...]
    notes: tuple[str, ...] = ()


def preview_file(file: str, said: Mapping[str, Any] | None = None, selection: Selection = EVERYTHING) -> Preview:
    """How a file would be read, where ``said`` are keys of ``[data.format]`` that its owner sets. Raises BadInput."""
    from ..ingest.files import find_source

    source = find_source(file, place="FILE")
    raw, detection = read_source(source, said or {}, selection)
    return Preview(source.name, detection, selection.chosen(describe(raw)), raw.notes)


def read_source(source: Source, said: Mapping[str, Any], selection: Selection) -> tuple[RawTable, Detection | None]:
    """The table of a file, and how its text was read: as found, but for what is said. Raises BadInput."""
    from sfumato.engine.recipe.text_format import TextFormat

    from ..ingest.files import is_text, read_table

    if not is_text(source):
        form = TextFormat.from_table(said) if said else None
        return read_table(source, place="FILE", form=form, sheet=selection.sheet), None
    head = source.head
    detection = detect(head, said, source.whole)
    binary = b"\0" in head[:65536] and not detection.format.encoding.startswith(("utf-16", "utf-32"))
    form = None if detection.usual or binary else detection.format
    return read_table(source, place="FILE", form=form, sheet=selection.sheet), detection


def import_file(
    directory: Path,
    file: str,
    project: str,
    said: Mapping[str, Any] | None = None,
    selection: Selection = EVERYTHING,
) -> Imported:
    """Store a file's records in a project of a workspace, made if need be; by default the project has the file's name.

    A file of text is read as it shows (``dialects``), but for what is ``said``: keys of ``[data.format]``. Everything is read and
    checked before the workspace is opened. Records with a missing value leave the stored table, unless most would. A project that has
    no plan yet gets a draft of one. Raises BadInput and NotAWorkspace; then nothing was stored.
    """
    from ..ingest.files import chosen_records, filtered, find_source
    from ..reporting.constraints import kept_text
    from ..store.workspace import key_beforehand
    from ..views.constraints import broken_in_project

    source = find_source(file, place="FILE")
    raw, detection = read_source(source, said or {}, selection)
    if not raw.records:
        raise BadInput("FILE", f'"{source.name}" has no records')
    raw = filtered(raw, source, selection.where, place="--where")
    columns = selection.chosen(describe(raw))
    schema = Schema(tuple(column.variable for column in columns if column.enters))
    if not len(schema):
        raise BadInput("FILE", f'"{source.name}" has no column that can be read but identifiers')
    incomplete = int(lacking(raw, columns).sum())
    missing = MissingPolicy.KEEP if 2 * incomplete > raw.records else MissingPolicy.DROP
    name = project or Path(source.name).stem
    form = None if detection is None or detection.usual else detection.format
    asked = selection.data(str(Path(file).expanduser().resolve()), missing, form)
    recipe = draft_recipe(asked, name, columns, (incomplete, raw.records))
    data = chosen_records(raw, source, asked, schema, 1, key=key_beforehand(directory) if asked.drawn else b"")
    with Workspace.create(directory) as workspace:
        stored = workspace.tables.write_microdata(data)
        with workspace.writing() as connection:
            project_id = workspace.ensure_project(name)
            planned = draft_of(workspace, project_id)
            dataset_id = workspace.add_dataset(project_id, source.name, source.sha256, data, stored)
            counts = {c.variable.name: c.missing for c in columns}
            keep_missing(connection, dataset_id, counts, raw.records)
            if planned is None:
                store_draft(connection, draft_of_import(project_id, dataset_id, recipe))
    rules = broken_in_project(directory, project_id)
    notes = (*raw.notes, *([] if rules is None else [f"constraints of the plan: {kept_text(rules)}"]))
    return Imported(project_id, name, source.name, len(data), data.dropped, columns, recipe, detection, notes)


def draft_recipe(
    data: DataSource, title: str, columns: Sequence[ColumnProfile], incomplete: tuple[int, int] = (0, 0)
) -> str:
    """A recipe in TOML to start from: data and variables filled in, the rest left to its owner.

    ``incomplete`` of so many records have a missing value in a column that enters.
    """
    lines = [f"title = {_quoted(title)}", "", "[data]", f"file = {_quoted(data.file)}"]
    lines += [
        f"{key} = {inline(value)}" for key, value in data.to_table().items() if key in ("sheet", "where", "sample")
    ]
    lines.append(
        "# holdout = 0.2                 # a share of the records kept out of the release, to hold attacks on it against"
    )
    if data.missing is MissingPolicy.KEEP:
        few = f"{incomplete[0]:,} of {incomplete[1]:,} records have a missing value"
        lines.append(f'missing = "keep"               # {few}; other policies: "drop", "refuse"')
    elif any(column.missing for column in columns):
        lines.append(
            'missing = "drop"               # records with a missing value are left out; other policies: "refuse", "keep"'
        )
    if data.format is not None:
        lines += ["", "[data.format]                  # how the file is read, as its first lines show"]
        lines += [f"{key} = {inline(value)}" for key, value in data.format.to_table().items()]
    lines += ["", "[variables]                    # give each a role: quasi_identifier, sensitive, or other"]
    for column in columns:
        variable = column.variable
        line = f"{_key(variable.name)} = {inline(variable.to_table())}"
        lines.append(line if column.enters else f"# {line}  # left out: {'; '.join(column.why)}")
    lines += [
        "",
        "[release]",
        "m = 5",
        "seed = 1",
        "",
        "# next: roles, then sfumato draft for the rest; or [[synthesis]], [[measure]], [[threshold]] by hand, see sfumato methods",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _quoted(name)
