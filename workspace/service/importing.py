"""Import of a file into a project: records with guessed kinds, a description of the columns, and a plan to start from.

The owner of the file corrects single guesses. Numerical libraries are loaded only when a file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.date_forms import DateForm
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema
from sfumato.engine.errors import BadInput, near_miss_hint

from ..ingest.columns import ColumnProfile, profile_columns, records_with_missing
from ..ingest.date_votes import ISO_FORMATS
from ..ingest.dialects import DetectedFormat, detect_text_format
from ..ingest.file_formats import format_of_suffix
from ..plan.drafts import draft_of_import, find_draft, inline_toml, store_draft, store_missing_counts
from ..store.workspace import Workspace
from .spool_place import spool_place

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from sfumato.engine.data.affected_group import AffectedGroup
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.recipe.data_source import DataSource
    from sfumato.engine.recipe.text_format import TextFormat

    from ..ingest.conformed_blocks import ConformedBlocks
    from ..ingest.raw_tables import RawTable
    from ..ingest.sources import SourceFile
    from ..ingest.spooled_columns import SpoolPlace

FIRST_ROWS = 10
"""Records of a preview."""


@dataclass(frozen=True, slots=True)
class ImportSelection:
    """Part of a file that is imported.

    sheet: sheet of an Excel file
    where: condition on the records
    sample: number of records to draw
    only: the only columns to import, if any are named
    leave_out: columns to leave out
    keep: columns to import although they may be identifiers
    kinds: ``COLUMN=KIND`` of columns whose kind the owner of the file says, with the form of a date: ``COLUMN=date:FORM``
    """

    sheet: str = ""
    where: str = ""
    sample: int | None = None
    only: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def data_source(self, file: str, form: TextFormat | None, columns: Sequence[ColumnProfile]) -> DataSource:
        """Return the ``[data]`` table of a recipe that reads the same part of the file, and all records of it.

        Raises BadInput.
        """
        from sfumato.engine.recipe.data_source import DataSource

        if self.sample is not None and self.sample < 1:
            raise BadInput("--sample", f"{self.sample} must be at least 1")
        lacking = any(column.missing for column in columns if column.is_included)
        missing = MissingPolicy.KEEP if lacking else MissingPolicy.REFUSE
        ordering = [column.variable.name for column in columns if column.is_included and column.orders_units]
        order = ordering[0] if ordering and any(column.variable.role is Role.UNIT for column in columns) else ""
        return DataSource(file, self.where, self.sample, missing, None, form, self.sheet, order=order)

    def select_columns(self, columns: Sequence[ColumnProfile]) -> tuple[ColumnProfile, ...]:
        """Return the columns, with the reason for each that is left out.

        Raises BadInput for a column that does not exist.
        """
        names = [column.variable.name for column in columns]
        kinds = self._kinds_by_column()
        for option, asked in (
            ("--only", self.only), ("--leave-out", self.leave_out), ("--keep", self.keep), ("--as", tuple(kinds)),
        ):  # fmt: skip
            for name in asked:
                if name not in names:
                    raise BadInput(option, f'no column "{name}"{near_miss_hint(name, names)}')
        found = [self._apply_to_column(column, kinds) for column in columns]
        units = [column.variable.name for column in found if column.is_included and column.variable.role is Role.UNIT]
        if len(units) > 1:
            if units[-1] not in kinds and units[0] not in kinds:
                raise BadInput("--as", f'"{units[0]}" and "{units[1]}" both number units; a table has one unit')
            # the owner's unit replaces the proposed one
            found = [
                replace(
                    column,
                    variable=replace(column.variable, role=Role.IDENTIFIER),
                    exclusion_reasons=("another column numbers the units",),
                )
                if column.variable.name in units and column.variable.name not in kinds
                else column
                for column in found
            ]
        if not units:
            found = [replace(column, variable=replace(column.variable, level="")) for column in found]
        return tuple(found)

    def _kinds_by_column(self) -> dict[str, tuple[Kind | None, str]]:
        """Return the kinds that the owner says, by column, each with the form of a date or ""; None for a unit.

        Raises BadInput for what is no kind.
        """
        found = dict[str, tuple[Kind | None, str]]()
        for text in self.kinds:
            name, sign, said = text.rpartition("=")
            kind, colon, form = said.partition(":")
            if sign and said == Role.UNIT:
                found[name] = None, ""
                continue
            if not sign or kind not in set(Kind) or (colon and kind != Kind.DATE):
                raise BadInput("--as", f'"{text}" is not COLUMN=KIND; kinds are {", ".join(Kind)}, and unit')
            try:
                found[name] = Kind(kind), DateForm.parse(form).text if colon else ""
            except ValueError as error:
                raise BadInput("--as", str(error)) from None
        return found

    def _apply_to_column(self, column: ColumnProfile, kinds: Mapping[str, tuple[Kind | None, str]]) -> ColumnProfile:
        """Return the column as selected: left out with a reason, kept although it may identify, or unchanged."""
        name, role = column.variable.name, column.variable.role
        if name in self.leave_out or (self.only and name not in self.only):
            return replace(column, exclusion_reasons=("not asked for",))
        if (name in self.keep and role is Role.IDENTIFIER) or (name in kinds and role.is_identifier):
            column = replace(column, variable=replace(column.variable, role=Role.OTHER), exclusion_reasons=())
        if name in kinds:
            kind, form = kinds[name]
            if kind is None:
                numbered = column.variable.kind in (Kind.CATEGORICAL, Kind.COUNT)
                own = Kind(column.variable.kind) if numbered else Kind.CATEGORICAL
                unit = replace(column.variable, kind=own, role=Role.UNIT, level="", format="")
                return replace(column, variable=unit, question="", exclusion_reasons=(), orders_units=False)
            codes = column.variable.missing
            if kind.has_levels:
                codes = tuple(code for code in codes if code not in column.signs)
            form = form or (column.variable.format if kind is Kind.DATE else "")
            changed = replace(column.variable, kind=kind, missing=codes, format="" if form in ISO_FORMATS else form)
            column = replace(column, variable=changed, question="", other_formats=())
        return replace(column, question="") if name in self.keep else column


EVERYTHING = ImportSelection()


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import.

    project_id, project: the project
    source: name of the file
    records: records that were stored
    dropped: records that were left out for a missing value
    columns: its columns
    recipe: a recipe to start from, in TOML
    detection: how its text or sheet was read; None for a format that defines it
    notes: remarks on how it was read
    first_rows: texts of the first records by column, where they were wanted
    """

    project_id: int
    project: str
    source: str
    records: int
    dropped: int
    columns: tuple[ColumnProfile, ...]
    recipe: str
    detection: DetectedFormat | None = None
    notes: tuple[str, ...] = ()
    first_rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilePreview:
    """Result of reading a file without storing it.

    source: name of the file
    detection: how its text is read; None for a format that defines it
    columns: its columns
    notes: remarks
    first_rows: texts of the first records by column, those with a question first
    """

    source: str
    detection: DetectedFormat | None
    columns: tuple[ColumnProfile, ...]
    notes: tuple[str, ...] = ()
    first_rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def asked_columns(self) -> tuple[ColumnProfile, ...]:
        """Return the columns with a question that its owner can answer."""
        return tuple(column for column in self.columns if column.is_included and column.question)


def preview_file(
    file: str, format_settings: Mapping[str, Any] | None = None, selection: ImportSelection = EVERYTHING
) -> FilePreview:
    """Read a file as an import would, and store nothing. ``format_settings`` are the owner's keys of ``[data.format]``.

    Raises BadInput.
    """
    from ..ingest.files import find_source

    source = find_source(file, place="FILE")
    raw, detection = read_source(source, format_settings or {}, selection)
    return FilePreview(source.name, detection, selection.select_columns(profile_columns(raw)), raw.notes)


def read_source(
    source: SourceFile,
    format_settings: Mapping[str, Any],
    selection: ImportSelection,
    place: str = "FILE",
    needed: frozenset[str] | None = None,
    spool: SpoolPlace | None = None,
) -> tuple[RawTable, DetectedFormat | None]:
    """Return the table of a file and how its text or sheet was read: as detected, except for the ``format_settings``.

    ``needed`` are the columns that will be read, all if it is None. The columns of a long file lie at ``spool``, where it
    is given. Raises BadInput at ``place``.
    """
    from ..ingest.files import is_text_source, read_table

    # whoever says the names says that no line has them
    if format_settings.get("names") and "header" not in format_settings:
        format_settings = {**format_settings, "header": False}
    if not is_text_source(source):
        raw = read_table(
            source, place=place, sheet=selection.sheet, given_keys=format_settings, needed=needed, spool=spool
        )
        return raw, raw.detection
    head = source.head
    detection = detect_text_format(head, format_settings, source.text_class, source.tail)
    fixed = next((one for one in detection.doubtful_settings if one.key == "widths"), None)
    if fixed is not None and detection.format.delimiter == " ":
        raise BadInput(
            "--widths",
            f'"{source.name}" looks like a table of fixed widths: {fixed.explanation}. Say how many characters each column has, such as '
            f"--widths {fixed.alternatives[0]}; or --delimiter blanks where blanks separate the cells",
        )
    # Text has no NUL, except in encodings of 16 and 32 bits: such a file is of another kind than its name says.
    binary = b"\0" in head[:65536] and not detection.format.encoding.startswith(("utf-16", "utf-32"))
    form = None if detection.is_default or binary else detection.format
    return read_table(source, place=place, form=form, sheet=selection.sheet, needed=needed, spool=spool), detection


def import_file(
    directory: Path,
    file: str,
    project: str,
    format_settings: Mapping[str, Any] | None = None,
    selection: ImportSelection = EVERYTHING,
    with_rows: bool = False,
) -> ImportResult:
    """Store a file's records in a project of a workspace, both made if need be.

    The default name of a project is the file's. Text is read as detected (``dialects``), except for the
    ``format_settings``: keys of ``[data.format]``. A project that has no plan yet gets a draft of one. ``with_rows`` is
    whether the first records are wanted. Raises BadInput and NotAWorkspace; then nothing was stored.
    """
    found = _read_file(file, format_settings or {}, selection, spool_place(directory))
    stored = _store_file(directory, file, project, selection, found)
    return replace(stored, first_rows=_preview_with_rows(found).first_rows) if with_rows else stored


@dataclass(frozen=True, slots=True)
class ImportOrQuestions:
    """What was imported, or a preview where nothing was stored."""

    result: ImportResult | None = None
    preview: FilePreview | None = None


def import_or_ask(
    directory: Path, file: str, project: str, format_settings: Mapping[str, Any] | None = None
) -> ImportOrQuestions:
    """Import a file as ``import_file`` does, unless a column has a question: then store nothing and return a preview."""
    found = _read_file(file, format_settings or {}, EVERYTHING, spool_place(directory))
    preview = _preview_with_rows(found)
    if not preview.asked_columns:
        return ImportOrQuestions(_store_file(directory, file, project, EVERYTHING, found))
    return ImportOrQuestions(preview=preview)


def preview_first_rows(
    file: str, format_settings: Mapping[str, Any] | None = None, selection: ImportSelection = EVERYTHING
) -> FilePreview:
    """Read a file as an import would, and return how each column is read with the first records. Nothing is stored.

    Raises BadInput.
    """
    return _preview_with_rows(_read_file(file, format_settings or {}, selection))


def _preview_with_rows(found: _FileRead) -> FilePreview:
    """Return the preview of a file that was read, with its first records."""
    preview = FilePreview(found.source.name, found.detection, found.columns, found.raw.notes)
    asked = [column.variable.name for column in preview.asked_columns]
    names = dict.fromkeys([*asked, *(column.variable.name for column in preview.columns)])
    texts = {name: _first_texts(found.raw.first_values(name, FIRST_ROWS)) for name in names}
    return replace(preview, first_rows={name: texts[name] for name in names})


def _first_texts(values: pd.Series) -> tuple[str, ...]:
    """Return the first values of a column as text; empty where there is none."""
    return tuple("" if missing else str(value) for value, missing in zip(values, values.isna(), strict=True))


@dataclass(frozen=True, eq=False)
class _FileRead:
    """Table of a file as it was read, with its columns as selected.

    source: the file
    raw: its records
    detection: how its text or sheet was read; None for a format that defines it
    columns: its columns, with reasons for those that are left out
    """

    source: SourceFile
    raw: RawTable
    detection: DetectedFormat | None
    columns: tuple[ColumnProfile, ...]


def _read_file(
    file: str, format_settings: Mapping[str, Any], selection: ImportSelection, spool: SpoolPlace | None = None
) -> _FileRead:
    """Read the records of a file that are wanted, and guess its columns; those of a long one lie at ``spool``.

    Raises BadInput.
    """
    from ..ingest.files import filter_records, find_source

    source = find_source(file, place="FILE")
    raw, detection = read_source(source, format_settings, selection, spool=spool)
    if not raw.records:
        raise BadInput("FILE", f'"{source.name}" has no records')
    raw = filter_records(raw, source, selection.where, place="--where")
    columns = selection.select_columns(profile_columns(raw))
    return _FileRead(source, add_unit_column(raw, columns), detection, columns)


def add_unit_column(raw: RawTable, columns: Sequence[ColumnProfile]) -> RawTable:
    """Return the table of a file in which the proposed unit of a file that numbers none is a column like others."""
    from ..ingest.whole_units import number_hidden_units

    return number_hidden_units(raw, Schema(tuple(c.variable for c in columns if c.variable.role is Role.UNIT)))


def _store_file(directory: Path, file: str, project: str, selection: ImportSelection, found: _FileRead) -> ImportResult:
    """Store the records of a file that was read in a project. Raises BadInput and NotAWorkspace."""
    from ..ingest.conformed_blocks import conform_blocks
    from ..ingest.files import microdata_from_table
    from ..reporting.constraints import compliance_text
    from ..store.workspace import future_workspace_key
    from ..views.constraints import evaluate_project_rules

    source, raw, detection, columns = found.source, found.raw, found.detection, found.columns
    schema = Schema(tuple(column.variable for column in columns if column.is_included))
    if not len(schema):
        raise BadInput("FILE", f'"{source.name}" has no column that can be read but identifiers')
    # Nobody is left out for a missing value unless a recipe says so: those who answer all differ from the others.
    name = project or Path(source.name).stem
    form = None if detection is None or detection.is_default else detection.format
    asked = selection.data_source(str(Path(file).expanduser().resolve()), form, columns)
    data: Microdata | ConformedBlocks | None = conform_blocks(
        raw, asked, schema, "confidential", spool_place(directory).rows
    )
    if data is None:
        incomplete = int(records_with_missing(raw, columns).sum())
        key = future_workspace_key(directory) if asked.is_random else b""
        data = microdata_from_table(raw, source, asked, schema, 1, key=key)
        lacking, group = _find_incomplete(data)
    else:
        incomplete, group = _find_incomplete(data)
        lacking = incomplete
    recipe = draft_recipe(asked, name, columns, (incomplete, raw.records))
    # Everything is read and checked before: a file that cannot be read leaves no new workspace behind.
    with Workspace.create(directory) as workspace:
        stored = workspace.tables.write_microdata(data)
        with workspace.write_transaction() as connection:
            project_id = workspace.ensure_project(name)
            planned = find_draft(workspace, project_id)
            dataset_id = workspace.add_dataset(project_id, source.name, source.sha256, data, stored)
            counts = {c.variable.name: c.missing for c in columns}
            store_missing_counts(connection, dataset_id, counts, raw.records)
            if planned is None:
                store_draft(connection, draft_of_import(project_id, dataset_id, recipe))
    rules = evaluate_project_rules(directory, project_id)
    notes = (
        *raw.notes,
        *_missing_value_notes(lacking, len(data), group),
        *([] if rules is None else [f"constraints of the plan: {compliance_text(rules)}"]),
    )
    return ImportResult(project_id, name, source.name, len(data), data.dropped, columns, recipe, detection, notes)


def _find_incomplete(data: Microdata | ConformedBlocks) -> tuple[int, AffectedGroup | None]:
    """Return how many records lack a value, and the group of which most do beyond chance."""
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.statistics.missing_by_group import groups_of_blocks, most_affected_group

    blocks = [data] if isinstance(data, Microdata) else data.iterate_blocks() if data.may_have_missing else []
    lacking = 0

    def mark_blocks() -> Iterator[tuple[Microdata, NDArray[np.bool_]]]:
        nonlocal lacking
        for block in blocks:
            marked = block.any_missing_mask(block.schema.names)
            lacking += int(marked.sum())
            yield block, marked

    groups = list(groups_of_blocks(mark_blocks()))
    return lacking, most_affected_group(groups) if lacking else None


def _missing_value_notes(lacking: int, records: int, group: AffectedGroup | None) -> list[str]:
    """Return how many records lack a value, and of which ``group`` most; none where no record does."""
    from ..reporting.words import affected_group_text

    if not lacking:
        return []
    note = f"{lacking:,} of {records:,} records lack a value and are kept"
    return [note if group is None else f"{note}. {affected_group_text(group, 'lack one')}"]


def draft_recipe(data: DataSource, title: str, columns: Sequence[ColumnProfile], incomplete: tuple[int, int]) -> str:
    """Return a recipe in TOML to start from: data and variables filled in, the rest left to its owner.

    ``incomplete`` is the number of records with a missing value in an included column, and the number of all records.
    """
    lines = [f"title = {_quote_toml(title)}", "", "[data]", f"file = {_quote_toml(data.file)}"]
    lines += [
        f"{key} = {inline_toml(value)}"
        for key, value in data.to_table().items()
        if key in ("sheet", "where", "sample", "order")
    ]
    lines.append(
        "# holdout = 0.2                 # a share of the records kept out of the release, to hold attacks on it against"
    )
    if data.missing is MissingPolicy.KEEP:
        few = f"{incomplete[0]:,} of {incomplete[1]:,} records have a missing value"
        lines.append(f'missing = "keep"               # {few}, a value of its own; "drop" leaves them out')
    if data.format is not None:
        lines += ["", "[data.format]                  # how the file is read, as its first lines show"]
        # a sheet has no separator
        unsaid = {"delimiter"} if format_of_suffix(data.file).has_sheets else set()
        keys = {key: value for key, value in data.format.to_table().items() if key not in unsaid}
        lines += [f"{key} = {inline_toml(value)}" for key, value in keys.items()]
    lines += ["", "[variables]                    # give each a role: quasi_identifier, sensitive, or other"]
    for column in columns:
        variable = column.variable
        line = f"{_toml_key(variable.name)} = {inline_toml(variable.to_table())}"
        lines.append(line if column.is_included else f"# {line}  # left out: {'; '.join(column.exclusion_reasons)}")
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


def _quote_toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _toml_key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _quote_toml(name)
