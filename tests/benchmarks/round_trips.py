"""Round trips of files: import, a release that changes nothing, and import again, in each format that a release can have.

    python tests/benchmarks/round_trips.py FILE [FILE ...]

Each row counts the columns of a file that enter a project, and of these, for each format, the columns that do not come
back as they were: ``values`` (numbers, days, levels or their labels, and what is missing), ``kinds``, and, where the
format is the file's own, ``titles``, ``labels``, ``codes`` of missing values and ``formats`` of dates and times. Below are
the columns that differ, by what differs. A file that cannot be read, or a format without room for it, is named.

A release is its dataset and ``codebook.csv``: the copy is read with the kinds, the names and the labels that the codebook
has, since CSV, Parquet and Excel files have no room for kinds and labels, and Stata none for ordinal scales. So a kind
counts only where the codebook does not say it. The last row counts the same without the codebook.

Not counted: labels of codes that no record has, which a release never names, and declarations of missing codes that no
record has, or fewer than the fewest that a policy may show (3).
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.missing_codes import parse_code_range
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.ingest.columns import profile_columns
from sfumato.workspace.ingest.file_formats import format_by_name, recognise_format
from sfumato.workspace.ingest.files import find_source
from sfumato.workspace.ingest.raw_tables import ColumnDescription, RawTable
from sfumato.workspace.policy.disclosure import DisclosureRules
from sfumato.workspace.release.public_files import (
    confidential_missing_kinds,
    kind_names_by_variable,
    publishable_missing_kinds,
    released_missing_kinds,
)
from sfumato.workspace.release.tables import (
    DatasetContext,
    codebook_csv,
    dataset_bytes,
    names_of_levels,
    released_levels,
)
from sfumato.workspace.service.importing import EVERYTHING, read_source
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.visible_text import leading_cell, plain_cell

FORMS = ("csv", "parquet", "excel", "spss", "stata")
NO_TITLE = ColumnDescription()
OWN = {"spss": "spss", "stata": "stata"}
"""Formats whose titles, labels, codes and formats of columns are compared, where the file is of the same program."""


def read_file(path: Path) -> tuple[RawTable, Microdata]:
    """Read a file as an import does, without the columns that it leaves out."""
    raw, _ = read_source(find_source(str(path), place="FILE"), {}, EVERYTHING)
    columns = [column.variable for column in profile_columns(raw) if column.is_included]
    schema = Schema(tuple(columns))
    data = conform_to_schema(raw.frame[list(schema.names)], schema, MissingPolicy.KEEP, tags=raw.tags)
    return raw, data


@dataclass(frozen=True)
class Copy:
    """Release of a table that changes nothing.

    content: bytes of the dataset
    codebook: lines of the codebook
    named_kinds: kinds of missing value that it may declare, by variable
    """

    content: bytes
    codebook: Sequence[Mapping[str, str]]
    named_kinds: Mapping[str, Sequence[str]]


def write_release(data: Microdata, form: str) -> Copy:
    """Write all variables of a table as a release of the format writes those that it keeps."""
    with tempfile.TemporaryDirectory() as directory:
        tables = TableStore(Path(directory) / "tables")
        stored = tables.read_stored_table(tables.write_microdata(data))
    own, rules = stored.select(list(data.schema.names)), DisclosureRules(smallest_cell=1)
    named = {}
    kinds = None
    if format_by_name(form).keeps_codes:
        named = publishable_missing_kinds(confidential_missing_kinds(stored), rules)
        kinds = released_missing_kinds(own, stored, named, data.schema.names, rules, np.random.default_rng(1))
    levels, names = released_levels([own]), kind_names_by_variable(named)
    context = DatasetContext(levels=levels, kinds=kinds, named_kinds=names)
    book = codebook_csv(data.schema, levels, (), named=names, form=form)
    content = dataset_bytes(own, data.schema, (), form, context)
    return Copy(content, list(csv.DictReader(StringIO(book))), names)


def read_copy(path: Path, schema: Schema, copy: Copy, *, with_codebook: bool) -> tuple[RawTable, Microdata]:
    """Read a release as an import does; with the codebook by the kinds that it has, and no column left out."""
    raw, _ = read_source(find_source(str(path), place="FILE"), {}, EVERYTHING)
    lines = {line["variable"]: line for line in copy.codebook}
    written = {name: lines[leading_cell(name)]["name_in_datasets"] or plain_cell(name) for name in schema.names}
    if not with_codebook:
        # a title tells the name of a column that has none of its own
        titled = {name for name in schema.names if raw.descriptions.get(written[name], NO_TITLE).title == name}
        written = {name: written[name] if name in titled else name for name in schema.names}
    names = {other: name for name, other in written.items()}
    raw = replace(
        RawTable.from_frame(raw.frame.rename(columns=names), notes=raw.notes),
        descriptions={names.get(name, name): about for name, about in raw.descriptions.items()},
        tags=None if raw.tags is None else raw.tags.rename(columns=names),
    )
    columns = [column.variable for column in profile_columns(raw) if column.is_included or with_codebook]
    if with_codebook:
        columns = [_as_in_codebook(variable, lines[leading_cell(variable.name)], copy) for variable in columns]
    whole = Schema(tuple(columns))
    return raw, conform_to_schema(raw.frame[list(whole.names)], whole, MissingPolicy.KEEP, tags=raw.tags)


def _as_in_codebook(variable: Variable, line: Mapping[str, str], copy: Copy) -> Variable:
    """Return a variable of the kind that the codebook says, and with its labels where the file has none."""
    labels = {
        other["code"]: other["label"]
        for other in copy.codebook
        if other["variable"] == line["variable"] and other["code"]
    }
    form = line["format"] if variable.format == "" else variable.format
    return replace(variable, kind=Kind(line["kind"]), format=form, labels=dict(variable.labels) or labels)


def differing_columns(
    before: tuple[RawTable, Microdata], after: tuple[RawTable, Microdata], copy: Copy, *, own: bool
) -> Iterator[tuple[str, str]]:
    """Yield what differs of which column: ``("values", "age")``."""
    (raw, data), (raw_after, data_after) = before, after
    for variable in data.schema:
        name = variable.name
        if name not in data_after.schema:
            yield "left out", name
            continue
        other = data_after.schema[name]
        if other.kind is not variable.kind:
            yield "kinds", name
        if not are_equal(variable, data, other, data_after):
            yield "values", name
        if own:
            shown = copy.named_kinds.get(name, ())
            codes = {str(level) for level in data.frame[name].dropna().unique()} if variable.kind.has_levels else set()
            yield from ((what, name) for what in differing_descriptions(raw, raw_after, name, {*codes, *shown}, shown))


def differing_descriptions(
    raw: RawTable, raw_after: RawTable, name: str, codes: Collection[str], shown: Sequence[str]
) -> Iterator[str]:
    """Yield what the file says of a column that the release does not say.

    ``codes`` are those of its levels and missing values that occur, ``shown`` those of missing values alone.
    """
    one, two = raw.descriptions.get(name), raw_after.descriptions.get(name)
    if one is None or two is None:
        return
    if two.title not in {one.title, name}:
        yield "titles"
    occurring = {code: label for code, label in one.labels.items() if code in codes}
    if not occurring.items() <= two.labels.items() <= one.labels.items():
        yield "labels"
    if set(map(str, two.missing)) != {str(code) for code in one.missing if any(map(_covering(code), shown))}:
        yield "codes"
    if one.format != two.format:
        yield "formats"


def _covering(declared: str | float) -> Callable[[str], bool]:
    """Return a test of whether a missing code, or a range of them, covers the code of a record."""
    limits = parse_code_range(declared)
    if limits is None:
        return lambda code: code == str(declared) or _same_number(code, str(declared))
    return lambda code: limits[0] <= float(code) <= limits[1]


def are_equal(variable: Variable, data: Microdata, other: Variable, data_after: Microdata) -> bool:
    """Return whether a column has the same values, a level by its code or its label."""
    name = variable.name
    if not np.array_equal(data.missing_mask(name), data_after.missing_mask(name)):
        return False
    if not variable.kind.has_levels and not other.kind.has_levels:
        return np.array_equal(data.numbers(name), data_after.numbers(name), equal_nan=True)
    one, two = (table.frame[name].astype("object") for table in (data, data_after))
    shown = names_of_levels(variable, [str(level) for level in one.dropna().unique()])
    # a cell of a CSV file has an apostrophe before what a spreadsheet takes for a formula, and the codebook has the code
    codes = {label: code for code, label in other.labels.items()}
    present = ~data.missing_mask(name)
    pairs = zip(one[present].map(str), two[present].map(str), strict=True)
    return all(b in (a, shown.get(a, a)) or codes.get(b) == a or _same_number(a, b) for a, b in pairs)


def _same_number(one: str, two: str) -> bool:
    """Return whether two texts are the same number."""
    try:
        return float(one) == float(two)
    except ValueError:
        return False


def main() -> None:
    """Print a row for each file, and below all columns that differ."""
    print(f"{'file':36}{'columns':>9}" + "".join(f"{form:>10}" for form in FORMS))
    details, columns = list[str](), dict.fromkeys(FORMS, 0)
    kept = {with_codebook: dict.fromkeys(FORMS, 0) for with_codebook in (True, False)}
    for path in map(Path, sys.argv[1:]):
        try:
            before = read_file(path)
        except BadInput as error:
            details.append(f"{path.name}: not read: {error}")
            continue
        program, entering = recognise_format(path.read_bytes()).name, len(before[1].schema.names)
        cells = []
        for form in FORMS:
            columns[form] += entering
            try:
                copy = write_release(before[1], form)
                found = {
                    with_codebook: _find_differences(before, copy, form, program, with_codebook=with_codebook)
                    for with_codebook in kept
                }
            except (NotReleased, BadInput) as error:
                cells.append("no room")
                details.append(f"{path.name} as {form}: {error}")
                continue
            except Exception as error:  # noqa: BLE001  (faults are what this looks for)
                cells.append("fault")
                details.append(f"{path.name} as {form}: a fault: {type(error).__name__} {error}")
                continue
            for with_codebook, differences in found.items():
                kept[with_codebook][form] += entering - len({name for _, name in differences})
            names = {name for _, name in found[True]}
            cells.append(str(len(names)) if names else "same")
            for what in dict.fromkeys(what for what, _ in found[True]):
                those = [name for one, name in found[True] if one == what]
                details.append(
                    f"{path.name} as {form}: {what}: {', '.join(those[:6])}{' ...' if len(those) > 6 else ''}"
                )
        print(f"{path.name[:35]:36}{entering:9d}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
    for with_codebook, title in ((True, "columns that come back as they were"), (False, "without the codebook")):
        shares = "".join(f"{kept[with_codebook][form] / max(1, columns[form]):>10.1%}" for form in FORMS)
        print(f"{title:45}{shares}")
    print("\n".join(details))


def _find_differences(
    before: tuple[RawTable, Microdata], copy: Copy, form: str, program: str, *, with_codebook: bool
) -> list[tuple[str, str]]:
    """Read a release again and list what differs of which column."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"copy.{format_by_name(form).suffix}"
        path.write_bytes(copy.content)
        after = read_copy(path, before[1].schema, copy, with_codebook=with_codebook)
    return list(differing_columns(before, after, copy, own=OWN.get(form) == program))


if __name__ == "__main__":
    main()
