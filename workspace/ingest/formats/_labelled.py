"""Released datasets as files of SPSS, Stata and SAS: codes as they came, with their labels and kinds of missing value beside them.

What was written is read again and held against what was to be written, before it leaves.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sfumato.engine.data.missing_codes import parse_code_range
from sfumato.engine.data.schema import Kind, Variable

from ...errors import NotReleased
from ..file_formats import Outgoing
from ..raw_tables import RawTable
from ..sources import Source

MOST_LETTERS = 26


class Column:
    """A column as it is written: values, labels, missing codes of SPSS or letters of Stata, kinds of SAS, and a format."""

    def __init__(self, values: pd.Series) -> None:
        self.values = values
        self.labels: dict[Any, str] = {}
        self.ranges: list[Any] = []
        self.letters: list[str] = []
        self.tags: np.ndarray | None = None
        self.format = ""


Columns = Mapping[str, Column]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a program's files are written, and read again with ``read``.

    ``day`` and ``moment`` are a format of dates and how many of its units a day or a second has since ``epoch``. Lengths are in bytes;
    a file whose ``longest_label`` is 0 has no room for labels of values. ``with_kinds`` puts kinds of missing value into a column,
    ``write`` makes the file, ``finish`` puts in what the writer cannot. ``stamps`` are the moment of writing, and what stands for it.
    ``labels_texts``: texts may have labels too. ``codes``: kinds of missing value are codes among the values. ``exact``: numbers are
    read as they were written.
    """

    title: str
    epoch: str
    day: tuple[str, float]
    moment: tuple[str, float]
    longest_title: int
    longest_label: int
    longest_text: int
    longest_note: int
    stamps: tuple[re.Pattern[bytes], bytes]
    with_kinds: Callable[[Column, Variable, pd.Series, Sequence[str], Rules], None]
    write: Callable[[pd.DataFrame, Columns, Mapping[str, Variable], dict[str, Any]], bytes]
    read: Callable[[Source], RawTable]
    finish: Callable[[bytes, Columns], bytes] | None = None
    labels_texts: bool = False
    codes: bool = False
    exact: bool = True


def labelled_file(out: Outgoing, rules: Rules) -> bytes:
    """The bytes of a file with the columns of the dataset, levels by their codes.

    Raises NotReleased where the program has no room for a name or a value.
    """
    frame, variables = out.frame, out.variables
    columns = {
        str(name): _column(frame[name], variables[str(name)], out, out.named.get(str(name), ()), rules)
        for name in frame
    }
    written = pd.DataFrame({name: one.values for name, one in columns.items()})
    try:
        content = rules.write(written, columns, variables, _common(columns, variables, rules, out.note))
    except NotReleased:
        raise
    except Exception as error:  # noqa: BLE001  (pyreadstat raises its own and any other; what it says may hold a value)
        raise NotReleased(f"the datasets are no {rules.title} file: {_said(error)}; choose another --format") from None
    pattern, stamp = rules.stamps
    content = pattern.sub(stamp, content[:4096]) + content[4096:]
    if rules.finish is not None:
        content = rules.finish(content, columns)
    _check(content, columns, rules)
    return content


def _common(columns: Columns, variables: Mapping[str, Variable], rules: Rules, note: str) -> dict[str, Any]:
    """What every writer of pyreadstat takes."""
    return {
        "file_label": cut(note, rules.longest_note),
        "column_labels": {
            name: cut(variables[name].title, rules.longest_title) for name in columns if variables[name].title
        },
        "variable_format": {name: one.format for name, one in columns.items() if one.format},
    }


def _column(values: pd.Series, variable: Variable, out: Outgoing, named: Sequence[str], rules: Rules) -> Column:
    if variable.kind is Kind.DATE and pd.api.types.is_datetime64_any_dtype(values.dtype):
        return _dates(values, rules)
    if isinstance(values.dtype, pd.CategoricalDtype):
        own = list(out.levels.get(variable.name, ()))
        if not own or not all(map(is_code, own)):
            return _texts(values, variable, own, rules)
        column = Column(values.astype("object").map(float, na_action="ignore").astype("float64"))
        if rules.longest_label:
            column.labels = {_number(level): cut(variable.labels[level], rules.longest_label) for level in own if variable.labels.get(level)}  # fmt: skip
    elif pd.api.types.is_numeric_dtype(values.dtype):
        column = Column(values.astype("float64"))
        if rules.longest_label:
            numbers = {code: label for code, label in variable.labels.items() if is_code(code) and label}
            column.labels = {_number(code): cut(label, rules.longest_label) for code, label in numbers.items() if not _is_missing(code, variable)}  # fmt: skip
    else:
        return Column(values.astype("object").where(values.notna(), ""))
    if named:
        kinds = out.kinds
        own_kinds = kinds[variable.name] if variable.name in kinds else pd.Series([None] * len(values), dtype="object")
        own_kinds = own_kinds.where(column.values.isna().to_numpy(), None)
        rules.with_kinds(column, variable, own_kinds, named, rules)
    return column


def letters_of(named: Sequence[str]) -> dict[str, str]:
    """The letter of each kind: its own, or for codes of SPSS a, b and so on in their order."""
    if all(len(kind) == 2 and kind[0] == "." for kind in named):
        return {kind: kind[1].lower() for kind in named}
    ordered = sorted(named, key=lambda kind: (not is_code(kind), float(kind) if is_code(kind) else 0.0, kind))
    return {kind: chr(ord("a") + place) for place, kind in enumerate(ordered[:MOST_LETTERS])}


def declared(variable: Variable, codes: Sequence[str]) -> list[Any]:
    """The missing codes, and ranges of them, that these kinds belong to."""
    found: list[Any] = []
    for code in variable.missing:
        limits = parse_code_range(code)
        if limits is not None and any(limits[0] <= float(kind) <= limits[1] for kind in codes):
            found.append({"lo": limits[0], "hi": limits[1]})
        elif limits is None and any(is_code(str(code)) and float(code) == float(kind) for kind in codes):
            found.append(float(code))
    return found


def _texts(values: pd.Series, variable: Variable, levels: Sequence[str], rules: Rules) -> Column:
    texts = values.astype("object").where(values.notna(), "")
    longest = max((len(str(text).encode()) for text in levels), default=0)
    if longest > rules.longest_text:
        raise NotReleased(f'values of "{variable.name}" are too long for a {rules.title} file; choose another --format')
    column = Column(texts.map(str))
    if rules.labels_texts and longest <= rules.longest_label:
        column.labels = {level: cut(variable.labels[level], rules.longest_label) for level in levels if variable.labels.get(level)}  # fmt: skip
    return column


def _dates(values: pd.Series, rules: Rules) -> Column:
    seconds = (values - pd.Timestamp(rules.epoch)).dt.total_seconds()
    whole = bool((seconds.dropna() % 86_400 == 0).all())
    name, unit = rules.day if whole else rules.moment
    column = Column(seconds / 86_400 * unit if whole else seconds * unit)
    column.format = name
    return column


def is_code(text: str) -> bool:
    """Whether a level or a code is a number in its plain spelling, which it will have again when it is read."""
    try:
        return f"{float(text):.15g}" == text and np.isfinite(float(text))
    except ValueError:
        return False


def _is_missing(code: str, variable: Variable) -> bool:
    limits = [(float(one), float(one)) if parse_code_range(one) is None else parse_code_range(one) for one in variable.missing if parse_code_range(one) or is_code(str(one))]  # fmt: skip
    return any(ends is not None and ends[0] <= float(code) <= ends[1] for ends in limits)


def _number(code: str) -> float | int:
    number = float(code)
    return int(number) if number.is_integer() else number


def cut(text: str, most: int) -> str:
    """A label within so many bytes; the codebook has all of it."""
    return text.encode()[:most].decode("utf-8", "ignore")


def _said(error: Exception) -> str:
    import pyreadstat

    told = isinstance(error, pyreadstat.ReadstatError | pyreadstat.PyreadstatError)
    return str(error) if told else "a value has no place in it"


def into_bytes(write: Callable[[str], None]) -> bytes:
    """What a function writes to a path: where the system can, one of a file that has no name and lies in memory."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("dataset", os.MFD_CLOEXEC), "rb") as file:
            write(f"/proc/self/fd/{file.fileno()}")
            file.seek(0)
            return file.read()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "dataset"
        write(str(path))
        return path.read_bytes()


def _check(content: bytes, columns: Columns, rules: Rules) -> None:
    """Raises NotReleased unless a reader finds the values and the kinds of missing value that were to be written."""
    found = rules.read(Source("", content))
    wrong = [name for name, one in columns.items() if name not in found.names or not _same(found, name, one, rules)]
    if wrong or len(found.names) != len(columns):
        named = ", ".join(f'"{name}"' for name in wrong[:3]) or "a column"
        raise NotReleased(f"a {rules.title} file does not keep {named} as it is; choose another --format")


def _same(found: RawTable, name: str, column: Column, rules: Rules) -> bool:
    ((_, read),), given = found.columns([name]), column.values
    if column.format:
        unit = rules.day if column.format == rules.day[0] else rules.moment
        scale = unit[1] / (86_400 if unit is rules.day else 1)
        numbers = (read - pd.Timestamp(rules.epoch)).dt.total_seconds() * scale
        return bool(np.array_equal(np.rint(numbers), np.rint(given), equal_nan=True))
    if pd.api.types.is_numeric_dtype(read.dtype):
        numbers = pd.to_numeric(given, errors="coerce")
        same = _equal(read.to_numpy(dtype=float), numbers.to_numpy(dtype=float), rules)
        return same and (rules.codes or _same_tags(found, name, column))
    return bool((read.fillna("").map(str) == given.fillna("").map(str).str.rstrip(" ")).all())


def _equal(read: np.ndarray, given: np.ndarray, rules: Rules) -> bool:
    """SAS's numbers have at least 53 bits of IBM's floating point, of which up to three may be zeros at the front."""
    if not rules.exact:
        return bool(np.allclose(read, given, rtol=1e-14, atol=0, equal_nan=True))
    return bool(np.array_equal(read, given, equal_nan=True))


def _same_tags(found: RawTable, name: str, column: Column) -> bool:
    there = found.tags[name] if found.tags is not None and name in found.tags else None
    if column.tags is not None:
        wanted: list[str | None] = [None if tag is None else str(tag) for tag in column.tags]
    else:
        wanted = [f".{value}" if isinstance(value, str) else None for value in column.values]
    read = [None] * len(wanted) if there is None else [tag if isinstance(tag, str) else None for tag in there]
    return wanted == read
