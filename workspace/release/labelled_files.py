"""Released datasets as files of SPSS, Stata and SAS: codes as they came, with their labels and kinds of missing value beside them.

What was written is read again and held against what was to be written, before it leaves.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from sfumato.engine.data.missing_codes import range_of
from sfumato.engine.data.schema import Kind, Variable

from ..errors import NotReleased
from ..ingest.sas_transport import with_kinds
from .forms import FILE_TYPES, Form

Levels = Mapping[str, Sequence[str]]
Kinds = Mapping[str, Sequence[str]]

EPOCHS = {"spss": "1582-10-14", "stata": "1960-01-01", "sas-xpt": "1960-01-01"}
DAY_FORMATS = {"spss": ("SDATE10", 86_400.0), "stata": ("%td", 1.0), "sas-xpt": ("YYMMDD10.", 1.0)}
MOMENT_FORMATS = {"spss": ("DATETIME20", 1.0), "stata": ("%tc", 1000.0), "sas-xpt": ("DATETIME20.", 1.0)}
LONGEST_TITLE = {"spss": 255, "stata": 80, "sas-xpt": 255}
LONGEST_LABEL = {"spss": 120, "stata": 300, "sas-xpt": 0}
MOST_LETTERS = 26
LONGEST_TEXT = {"spss": 32_767, "stata": 2_045, "sas-xpt": 32_767}
STAMPS: dict[Form, tuple[tuple[re.Pattern[bytes], bytes], ...]] = {
    "spss": ((re.compile(rb"(?<=\A.{92})[ \d]\d [A-Z][a-z]{2} \d\d\d\d:\d\d:\d\d", re.DOTALL), b"01 Jan 8000:00:00"),),
    "stata": ((re.compile(rb"(?<=<timestamp>\x11)[ \d]\d [A-Z][a-z]{2} \d{4} \d\d:\d\d"), b"01 Jan 1980 00:00"),),
    "sas-xpt": ((re.compile(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d"), b"01JAN80:00:00:00"),),
}
"""When a file was written, which is no matter of its readers and would make the bytes of one release differ."""


def labelled_file(
    frame: pd.DataFrame,
    variables: Mapping[str, Variable],
    levels: Levels,
    kinds: pd.DataFrame,
    named: Kinds,
    form: Form,
    note: str,
) -> bytes:
    """The bytes of a file of ``form`` with the columns of ``frame`` (n, k), levels by their codes.

    ``kinds`` (n, j) are those of missing values, None where there is none, of which ``named`` may be declared; ``levels`` are those
    that occur in some of the datasets. Raises NotReleased where the program has no room for a name or a value.
    """
    columns = {
        str(name): _column(frame[name], variables[str(name)], levels, kinds, named.get(str(name), ()), form)
        for name in frame
    }
    written = pd.DataFrame({name: one.values for name, one in columns.items()})
    try:
        content = _write(written, columns, variables, form, note)
    except NotReleased:
        raise
    except Exception as error:  # noqa: BLE001  (pyreadstat raises its own and any other; what it says may hold a value)
        raise NotReleased(
            f"the datasets are no {FILE_TYPES[form].said} file: {_said(error)}; choose another --format"
        ) from None
    for pattern, stamp in STAMPS[form]:
        content = pattern.sub(stamp, content[:4096]) + content[4096:]
    if form == "sas-xpt" and any(one.tags is not None for one in columns.values()):
        tags = {name: one.tags for name, one in columns.items() if one.tags is not None}
        content = with_kinds(content, tags, len(frame))
    _check(content, columns, form)
    return content


class _Column:
    """A column as it is written: values, labels, missing codes of SPSS or letters of Stata, kinds of SAS, and a format."""

    def __init__(self, values: pd.Series) -> None:
        self.values = values
        self.labels: dict[Any, str] = {}
        self.ranges: list[Any] = []
        self.letters: list[str] = []
        self.tags: np.ndarray | None = None
        self.format = ""


def _column(
    values: pd.Series, variable: Variable, levels: Levels, kinds: pd.DataFrame, named: Sequence[str], form: Form
) -> _Column:
    if variable.kind is Kind.DATE and pd.api.types.is_datetime64_any_dtype(values.dtype):
        return _dates(values, form)
    if isinstance(values.dtype, pd.CategoricalDtype):
        own = list(levels.get(variable.name, ()))
        if not own or not all(map(_is_code, own)):
            return _texts(values, variable, own, form)
        column = _Column(values.astype("object").map(float, na_action="ignore").astype("float64"))
        if form != "sas-xpt":
            column.labels = {_number(level): _cut(variable.labels[level], LONGEST_LABEL[form]) for level in own if variable.labels.get(level)}  # fmt: skip
    elif pd.api.types.is_numeric_dtype(values.dtype):
        column = _Column(values.astype("float64"))
        if form != "sas-xpt":
            numbers = {code: label for code, label in variable.labels.items() if _is_code(code) and label}
            column.labels = {_number(code): _cut(label, LONGEST_LABEL[form]) for code, label in numbers.items() if not _is_missing(code, variable)}  # fmt: skip
    else:
        return _Column(values.astype("object").where(values.notna(), ""))
    if named:
        own_kinds = kinds[variable.name] if variable.name in kinds else pd.Series([None] * len(values), dtype="object")
        _with_kinds(column, variable, own_kinds, named, form)
    return column


def _with_kinds(column: _Column, variable: Variable, kinds: pd.Series, named: Sequence[str], form: Form) -> None:
    kinds = kinds.where(column.values.isna().to_numpy(), None)
    if form == "spss":
        codes = [kind for kind in named if _is_code(kind)]
        column.values = column.values.fillna(
            kinds.where(kinds.isin(codes)).map(float, na_action="ignore").astype("float64")
        )
        column.labels |= {float(kind): _cut(variable.labels[kind], LONGEST_LABEL[form]) for kind in codes if variable.labels.get(kind)}  # fmt: skip
        column.ranges = _declared(variable, codes)
        return
    letters = _letters(named)
    of_each = kinds.map(letters.get, na_action="ignore")
    if form == "sas-xpt":
        column.tags = np.array(
            [f".{kind.upper()}" if isinstance(kind, str) else None for kind in of_each], dtype=object
        )
        return
    own = {kind: letter for kind, letter in letters.items() if letter != "_"}
    column.letters = sorted(own.values())
    column.labels |= {letter: _cut(variable.labels[kind], LONGEST_LABEL[form]) for kind, letter in own.items() if variable.labels.get(kind)}  # fmt: skip
    tagged = of_each.where(of_each.isin(column.letters))
    column.values = column.values.astype("object").where(tagged.isna().to_numpy(), tagged)


def _letters(named: Sequence[str]) -> dict[str, str]:
    """The letter of each kind: its own, or for codes of SPSS a, b and so on in their order."""
    if all(len(kind) == 2 and kind[0] == "." for kind in named):
        return {kind: kind[1].lower() for kind in named}
    ordered = sorted(named, key=lambda kind: (not _is_code(kind), float(kind) if _is_code(kind) else 0.0, kind))
    return {kind: chr(ord("a") + place) for place, kind in enumerate(ordered[:MOST_LETTERS])}


def _declared(variable: Variable, codes: Sequence[str]) -> list[Any]:
    """The missing codes, and ranges of them, that these kinds belong to."""
    found: list[Any] = []
    for code in variable.missing:
        limits = range_of(code)
        if limits is not None and any(limits[0] <= float(kind) <= limits[1] for kind in codes):
            found.append({"lo": limits[0], "hi": limits[1]})
        elif limits is None and any(_is_code(str(code)) and float(code) == float(kind) for kind in codes):
            found.append(float(code))
    return found


def _texts(values: pd.Series, variable: Variable, levels: Sequence[str], form: Form) -> _Column:
    texts = values.astype("object").where(values.notna(), "")
    longest = max((len(str(text).encode()) for text in levels), default=0)
    if longest > LONGEST_TEXT[form]:
        raise NotReleased(
            f'values of "{variable.name}" are too long for a {FILE_TYPES[form].said} file; choose another --format'
        )
    column = _Column(texts.map(str))
    if form == "spss" and longest <= LONGEST_LABEL["spss"]:
        column.labels = {level: _cut(variable.labels[level], LONGEST_LABEL[form]) for level in levels if variable.labels.get(level)}  # fmt: skip
    return column


def _dates(values: pd.Series, form: Form) -> _Column:
    seconds = (values - pd.Timestamp(EPOCHS[form])).dt.total_seconds()
    whole = bool((seconds.dropna() % 86_400 == 0).all())
    name, unit = (DAY_FORMATS if whole else MOMENT_FORMATS)[form]
    column = _Column(seconds / 86_400 * unit if whole else seconds * unit)
    column.format = name
    return column


def _is_code(text: str) -> bool:
    """Whether a level or a code is a number in its plain spelling, which it will have again when it is read."""
    try:
        return f"{float(text):.15g}" == text and np.isfinite(float(text))
    except ValueError:
        return False


def _is_missing(code: str, variable: Variable) -> bool:
    limits = [(float(one), float(one)) if range_of(one) is None else range_of(one) for one in variable.missing if range_of(one) or _is_code(str(one))]  # fmt: skip
    return any(ends is not None and ends[0] <= float(code) <= ends[1] for ends in limits)


def _number(code: str) -> float | int:
    number = float(code)
    return int(number) if number.is_integer() else number


def _cut(text: str, most: int) -> str:
    """A label within so many bytes; the codebook has all of it."""
    return text.encode()[:most].decode("utf-8", "ignore")


def _said(error: Exception) -> str:
    import pyreadstat

    told = isinstance(error, pyreadstat.ReadstatError | pyreadstat.PyreadstatError)
    return str(error) if told else "a value has no place in it"


def _write(
    frame: pd.DataFrame, columns: Mapping[str, _Column], variables: Mapping[str, Variable], form: Form, note: str
) -> bytes:
    import pyreadstat

    titles = {name: _cut(variables[name].title, LONGEST_TITLE[form]) for name in columns if variables[name].title}
    formats = {name: one.format for name, one in columns.items() if one.format}
    labels = {name: one.labels for name, one in columns.items() if one.labels}
    common: dict[str, Any] = {"file_label": _cut(note, 40 if form == "sas-xpt" else 60), "column_labels": titles, "variable_format": formats}  # fmt: skip
    if form == "spss":
        measure = {name: MEASURES.get(variables[name].kind, "scale") for name in columns}
        ranges = {name: one.ranges for name, one in columns.items() if one.ranges}
        labels = {
            name: {_like(code, columns[name]): label for code, label in own.items()} for name, own in labels.items()
        }
        return _into_bytes(lambda path: pyreadstat.write_sav(frame, path, **common, variable_value_labels=labels, missing_ranges=ranges, variable_measure=measure))  # fmt: skip
    if form == "stata":
        letters = {name: one.letters for name, one in columns.items() if one.letters}
        whole = {name: own for name, own in labels.items() if all(not isinstance(code, float) for code in own)}
        return _into_bytes(lambda path: pyreadstat.write_dta(frame, path, **common, version=14, variable_value_labels=whole, missing_user_values=letters))  # fmt: skip
    short = all(len(name) <= 8 and name.isupper() for name in columns) and all(
        len(title) <= 40 for title in titles.values()
    )
    texts = (one.values for one in columns.values() if one.values.dtype == object)
    narrow = all(len(str(text).encode()) <= 200 for column in texts for text in column.unique())
    version: Literal[5, 8] = 5 if short and narrow else 8
    return _into_bytes(lambda path: pyreadstat.write_xport(frame, path, **common, file_format_version=version))


MEASURES = {Kind.CATEGORICAL: "nominal", Kind.BINARY: "nominal", Kind.ORDINAL: "ordinal"}


def _like(code: Any, column: _Column) -> Any:
    return code if column.values.dtype == object else float(code)


def _into_bytes(write: Callable[[str], None]) -> bytes:
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


PROGRAMS = {"spss": "spss", "stata": "stata", "sas-xpt": "xpt"}


def _check(content: bytes, columns: Mapping[str, _Column], form: Form) -> None:
    """Raises NotReleased unless a reader finds the values and the kinds of missing value that were to be written."""
    from ..ingest.statistical_files import read_statistical

    found = read_statistical(content, PROGRAMS[form])
    wrong = [name for name, one in columns.items() if name not in found.frame or not _same(found, name, one, form)]
    if wrong or len(found.frame.columns) != len(columns):
        named = ", ".join(f'"{name}"' for name in wrong[:3]) or "a column"
        raise NotReleased(f"a {FILE_TYPES[form].said} file does not keep {named} as it is; choose another --format")


def _same(found: Any, name: str, column: _Column, form: Form) -> bool:
    read, given = found.frame[name], column.values
    if column.format:
        unit = (DAY_FORMATS if column.format == DAY_FORMATS[form][0] else MOMENT_FORMATS)[form]
        scale = unit[1] / (86_400 if unit is DAY_FORMATS[form] else 1)
        numbers = (read - pd.Timestamp(EPOCHS[form])).dt.total_seconds() * scale
        return bool(np.array_equal(np.rint(numbers), np.rint(given), equal_nan=True))
    if pd.api.types.is_numeric_dtype(read.dtype):
        numbers = pd.to_numeric(given, errors="coerce")
        same = _equal(read.to_numpy(dtype=float), numbers.to_numpy(dtype=float), form)
        return same and (form == "spss" or _same_tags(found, name, column))
    return bool((read.fillna("").map(str) == given.fillna("").map(str).str.rstrip(" ")).all())


def _equal(read: np.ndarray, given: np.ndarray, form: Form) -> bool:
    """SAS's numbers have at least 53 bits of IBM's floating point, of which up to three may be zeros at the front."""
    if form == "sas-xpt":
        return bool(np.allclose(read, given, rtol=1e-14, atol=0, equal_nan=True))
    return bool(np.array_equal(read, given, equal_nan=True))


def _same_tags(found: Any, name: str, column: _Column) -> bool:
    there = found.tags[name] if found.tags is not None and name in found.tags else None
    if column.tags is not None:
        wanted: list[str | None] = [None if tag is None else str(tag) for tag in column.tags]
    else:
        wanted = [f".{value}" if isinstance(value, str) else None for value in column.values]
    read = [None] * len(wanted) if there is None else [tag if isinstance(tag, str) else None for tag in there]
    return wanted == read
