"""Round trips of files: import, a release that changes nothing, and import again, in each format that a release can have.

    python tests/benchmarks/round_trips.py FILE [FILE ...]

Each row counts the columns of a file that enter a project, and of these, for each format, the columns that do not come
back as they were: ``values`` (numbers, days, levels or their labels, and what is missing), ``kinds``, and, where the
format is the file's own, ``titles``, ``labels``, ``codes`` of missing values and ``formats`` of dates and times. Below are
the columns that differ, by what differs. A file that cannot be read, or a format without room for it, is named.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.ingest.columns import profile_columns
from sfumato.workspace.ingest.file_formats import format_by_name, recognise_format
from sfumato.workspace.ingest.files import find_source
from sfumato.workspace.ingest.raw_tables import RawTable
from sfumato.workspace.policy.disclosure import DisclosureRules
from sfumato.workspace.release.public_files import (
    confidential_missing_kinds,
    kind_names_by_variable,
    publishable_missing_kinds,
    released_missing_kinds,
)
from sfumato.workspace.release.tables import DatasetContext, dataset_bytes, names_of_levels, released_levels
from sfumato.workspace.service.importing import EVERYTHING, read_source
from sfumato.workspace.store.tables import TableStore

FORMS = ("csv", "parquet", "excel", "spss", "stata")
OWN = {"spss": "spss", "stata": "stata"}
"""Formats whose titles, labels, codes and formats of columns are compared, where the file is of the same program."""


def read_file(path: Path) -> tuple[RawTable, Microdata]:
    """Read a file as an import does, without the columns that it leaves out."""
    raw, _ = read_source(find_source(str(path), place="FILE"), {}, EVERYTHING)
    columns = [column.variable for column in profile_columns(raw) if column.is_included]
    schema = Schema(tuple(columns))
    data = conform_to_schema(raw.frame[list(schema.names)], schema, MissingPolicy.KEEP, tags=raw.tags)
    return raw, data


def write_release(data: Microdata, form: str) -> bytes:
    """Return all variables of a table as a release of the format writes those that it keeps."""
    with tempfile.TemporaryDirectory() as directory:
        tables = TableStore(Path(directory) / "tables")
        stored = tables.read_stored_table(tables.write_microdata(data))
    own, rules = stored.select(list(data.schema.names)), DisclosureRules(smallest_cell=1)
    named = {}
    kinds = None
    if format_by_name(form).keeps_codes:
        named = publishable_missing_kinds(confidential_missing_kinds(stored), rules)
        kinds = released_missing_kinds(own, stored, named, data.schema.names, rules, np.random.default_rng(1))
    levels = released_levels([own])
    context = DatasetContext(levels=levels, kinds=kinds, named_kinds=kind_names_by_variable(named))
    return dataset_bytes(own, data.schema, (), form, context)


def differing_columns(
    before: tuple[RawTable, Microdata], after: tuple[RawTable, Microdata], own: bool
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
            yield from ((what, name) for what in differing_descriptions(raw, raw_after, name))


def differing_descriptions(raw: RawTable, raw_after: RawTable, name: str) -> Iterator[str]:
    """Yield what the file says of a column that the release does not say."""
    one, two = raw.descriptions.get(name), raw_after.descriptions.get(name)
    if one is None or two is None:
        return
    if one.title != two.title:
        yield "titles"
    if not _are_labels_known(two.labels, one.labels):
        yield "labels"
    if set(map(str, one.missing)) != set(map(str, two.missing)):
        yield "codes"
    if one.format != two.format:
        yield "formats"


def _are_labels_known(found: Mapping[str, str], known: Mapping[str, str]) -> bool:
    """Return whether all labels are known; a level without a record has none in a release."""
    return all(known.get(code) == label for code, label in found.items()) and bool(found) == bool(known)


def are_equal(variable: Variable, data: Microdata, other: Variable, data_after: Microdata) -> bool:
    """Return whether a column has the same values, a level by its code or its label."""
    name = variable.name
    if not np.array_equal(data.missing_mask(name), data_after.missing_mask(name)):
        return False
    if not variable.kind.has_levels and not other.kind.has_levels:
        return np.array_equal(data.numbers(name), data_after.numbers(name), equal_nan=True)
    one, two = (table.frame[name].astype("object") for table in (data, data_after))
    shown = names_of_levels(variable, [str(level) for level in one.dropna().unique()])
    present = ~data.missing_mask(name)
    pairs = zip(one[present].map(str), two[present].map(str), strict=True)
    return all(a == b or shown.get(a, a) == b or _same_number(a, b) for a, b in pairs)


def _same_number(one: str, two: str) -> bool:
    """Return whether two texts are the same number."""
    try:
        return float(one) == float(two)
    except ValueError:
        return False


def main() -> None:
    """Print a row for each file, and below all columns that differ."""
    print(f"{'file':36}{'columns':>9}" + "".join(f"{form:>10}" for form in FORMS))
    details, kept, columns = list[str](), dict.fromkeys(FORMS, 0), dict.fromkeys(FORMS, 0)
    for path in map(Path, sys.argv[1:]):
        try:
            before = read_file(path)
        except BadInput as error:
            details.append(f"{path.name}: not read: {error}")
            continue
        program = recognise_format(path.read_bytes()).name
        cells = []
        for form in FORMS:
            try:
                content = write_release(before[1], form)
                with tempfile.TemporaryDirectory() as directory:
                    copy = Path(directory) / f"copy.{format_by_name(form).suffix}"
                    copy.write_bytes(content)
                    found = list(differing_columns(before, read_file(copy), OWN.get(form) == program))
            except (NotReleased, BadInput) as error:
                cells.append("no room")
                details.append(f"{path.name} as {form}: {error}")
                continue
            except Exception as error:  # noqa: BLE001  (faults are what this looks for)
                cells.append("fault")
                details.append(f"{path.name} as {form}: a fault: {type(error).__name__} {error}")
                continue
            names = {name for _, name in found}
            cells.append(str(len(names)) if names else "same")
            columns[form] += len(before[1].schema.names)
            kept[form] += len(before[1].schema.names) - len(names)
            for what in dict.fromkeys(what for what, _ in found):
                those = [name for one, name in found if one == what]
                details.append(
                    f"{path.name} as {form}: {what}: {', '.join(those[:6])}{' ...' if len(those) > 6 else ''}"
                )
        print(
            f"{path.name[:35]:36}{len(before[1].schema.names):9d}" + "".join(f"{cell:>10}" for cell in cells),
            flush=True,
        )
    shares = "".join(f"{kept[form] / max(1, columns[form]):>10.1%}" for form in FORMS)
    print(f"{'columns that come back as they were':45}{shares}\n" + "\n".join(details))


if __name__ == "__main__":
    main()
