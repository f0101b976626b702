"""A file into a project: its records with guessed kinds, a description of its columns, and a plan to start from.

A guess is corrected by the owner of the file, and never more than that. Numerical libraries are loaded when a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput
from sfumato.engine.schema import Kind, MissingPolicy, Role, Schema, Variable

from ..plan.drafts import draft_of, draft_of_import, inline, keep_missing, store_draft
from ..store.workspace import Workspace
from .dialects import Detection, detect

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.text_format import TextFormat

    from .files import Source

FEW_LEVELS = 20


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column looks like: the guessed variable, how many records have no value, how many values differ."""

    variable: Variable
    missing: int
    distinct: int


@dataclass(frozen=True, slots=True)
class Imported:
    """A file that was stored. ``dropped`` records had a missing value; ``recipe`` is one to start from, in TOML."""

    project_id: int
    project: str
    source: str
    records: int
    dropped: int
    columns: tuple[ColumnProfile, ...]
    recipe: str
    detection: Detection | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """How a file would be read; nothing is stored. ``detection`` is None for a file that says itself how it is read."""

    source: str
    detection: Detection | None
    columns: tuple[ColumnProfile, ...]


def preview_file(file: str, said: Mapping[str, Any] | None = None) -> Preview:
    """How a file would be read, where ``said`` are keys of ``[data.format]`` that its owner sets. Raises BadInput."""
    from .files import find_source

    source = find_source(file, place="FILE")
    frame, detection = _read(source, said or {})
    return Preview(source.name, detection, tuple(describe(frame)))


def _read(source: Source, said: Mapping[str, Any]) -> tuple[pd.DataFrame, Detection | None]:
    """The table of a file, and how its text was read: as found, but for what is said. Raises BadInput."""
    from sfumato.engine.text_format import TextFormat

    from .files import is_text, read_frame

    if not is_text(source):
        form = TextFormat.from_table(said) if said else None
        return read_frame(source, place="FILE", form=form), None
    detection = detect(source.content, said)
    binary = b"\0" in source.content[:65536] and not detection.format.encoding.startswith(("utf-16", "utf-32"))
    form = None if detection.usual or binary else detection.format
    return read_frame(source, place="FILE", form=form), detection


def import_file(directory: Path, file: str, project: str, said: Mapping[str, Any] | None = None) -> Imported:
    """Store a file's records in a project of a workspace, made if need be; by default the project has the file's name.

    A file of text is read as it shows (``dialects``), but for what is ``said``: keys of ``[data.format]``. Everything is read and
    checked before the workspace is opened. Records with a missing value leave the stored table. A project that has no plan yet gets a draft of one. Raises BadInput and NotAWorkspace; then nothing was stored.
    """
    from sfumato.engine.microdata import conform

    from .files import find_source

    source = find_source(file, place="FILE")
    frame, detection = _read(source, said or {})
    if not len(frame):
        raise BadInput("FILE", f'"{source.name}" has no records')
    columns = describe(frame)
    schema = Schema(tuple(column.variable for column in columns if column.variable.role is not Role.IDENTIFIER))
    if not len(schema):
        raise BadInput("FILE", f'"{source.name}" has no column but identifiers')
    data = conform(frame, schema, MissingPolicy.DROP)
    name = project or Path(source.name).stem
    form = None if detection is None or detection.usual else detection.format
    recipe = draft_recipe(str(Path(file).expanduser().resolve()), name, columns, form)
    with Workspace.create(directory) as workspace:
        stored = workspace.tables.write_microdata(data)
        with workspace.writing() as connection:
            project_id = workspace.ensure_project(name)
            planned = draft_of(workspace, project_id)
            dataset_id = workspace.add_dataset(project_id, source.name, source.sha256, data, stored)
            keep_missing(connection, dataset_id, {c.variable.name: c.missing for c in columns}, len(frame))
            if planned is None:
                store_draft(connection, draft_of_import(project_id, dataset_id, recipe))
    return Imported(project_id, name, source.name, len(data), data.dropped, tuple(columns), recipe, detection)


def describe(frame: pd.DataFrame) -> list[ColumnProfile]:
    """One guess a column. A column whose values all differ and that is not a measurement is taken for an identifier."""
    return [_profile(str(name), frame[name]) for name in frame.columns]


def _profile(name: str, values: pd.Series) -> ColumnProfile:
    present = values.dropna()
    distinct = int(present.nunique())
    kind = _kind(present, distinct)
    unique = kind in (Kind.CATEGORICAL, Kind.COUNT) and distinct == len(values) > FEW_LEVELS
    role = Role.IDENTIFIER if unique else Role.OTHER
    return ColumnProfile(Variable(name, Kind.CATEGORICAL if unique else kind, role), int(values.isna().sum()), distinct)


def _kind(present: pd.Series, distinct: int) -> Kind:
    import pandas as pd

    if distinct <= 2:
        return Kind.BINARY
    if pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present):
        whole = bool((present % 1 == 0).all())
        if whole and distinct <= FEW_LEVELS and present.abs().max() < 100:
            return Kind.CATEGORICAL
        return Kind.COUNT if whole and present.min() >= 0 else Kind.CONTINUOUS
    if pd.api.types.is_datetime64_any_dtype(present):
        return Kind.DATE
    dates = pd.to_datetime(present.astype("str").head(1000), errors="coerce", format="ISO8601", utc=True)
    return Kind.DATE if len(dates) and dates.notna().all() else Kind.CATEGORICAL


def draft_recipe(file: str, title: str, columns: Sequence[ColumnProfile], form: TextFormat | None = None) -> str:
    """A recipe in TOML to start from: data and variables filled in, the rest left to its owner."""
    lines = [f"title = {_quoted(title)}", "", "[data]", f"file = {_quoted(file)}"]
    lines.append(
        "# holdout = 0.2                 # a share of the records kept out of the release, to hold attacks on it against"
    )
    if any(column.missing for column in columns):
        lines.append(
            'missing = "drop"               # records with a missing value are left out; other policies: "refuse", "keep"'
        )
    if form is not None:
        lines += ["", "[data.format]                  # how the file is read, as its first lines show"]
        lines += [f"{key} = {inline(value)}" for key, value in form.to_table().items()]
    lines += ["", "[variables]                    # give each a role: quasi_identifier, sensitive, or other"]
    for column in columns:
        variable = column.variable
        line = f'{_key(variable.name)} = {{ kind = "{variable.kind}", role = "{variable.role}" }}'
        lines.append(f"# {line}" if variable.role is Role.IDENTIFIER else line)
    lines += [
        "",
        "[release]",
        "m = 5",
        "seed = 1",
        "",
        "# next: [[synthesis]], [[measure]], [[threshold]]; see sfumato methods",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _quoted(name)
