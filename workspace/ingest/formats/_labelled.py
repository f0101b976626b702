"""Released datasets as files of SPSS, Stata and SAS: codes with their labels, and kinds of missing value.

Each file is read again after writing and compared with the dataset, so that a limit of a program changes no released
value unnoticed.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from sfumato.engine.data.missing_codes import parse_code_range
from sfumato.engine.data.schema import Kind, Variable

from ...errors import NotReleased
from ..file_formats import OutputTable
from ..raw_tables import RawTable
from ..sources import SourceFile
from ._valid_names import NameRules, derive_valid_names

MAX_MISSING_LETTERS = 26
"""Number of kinds of missing value that Stata and SAS can name by a letter."""


FORMATS_OF_PROGRAMS = (
    {"SPSS": "DATE11", "SAS transport": "DATE9.", "text": "ddMONyyyy"},
    {"SPSS": "DATE11", "SAS transport": "DATE11.", "text": "dd-Mon-yyyy"},
    {"SPSS": "ADATE10", "SAS transport": "MMDDYY10.", "text": "mm/dd/yyyy"},
    {"SPSS": "ADATE8", "SAS transport": "MMDDYY8.", "text": "mm/dd/yy"},
    {"SPSS": "EDATE10", "SAS transport": "DDMMYYP10.", "text": "dd.mm.yyyy"},
    {"SPSS": "EDATE8", "SAS transport": "DDMMYYP8.", "text": "dd.mm.yy"},
    {"SAS transport": "DDMMYY10.", "text": "dd/mm/yyyy"},
    {"SAS transport": "DDMMYY8.", "text": "dd/mm/yy"},
    {"SPSS": "TIME5", "SAS transport": "TIME5."},
    {"SPSS": "TIME5", "SAS transport": "HHMM5."},
    {"SPSS": "TIME8", "SAS transport": "TIME8."},
    {"SPSS": "TIME8", "SAS transport": "TIME."},
    {"SPSS": "TIME11.2", "SAS transport": "TIME11.2"},
)
"""Formats that show the same in several programs, and how texts write it.

None of Stata: other programs read its dates as numbers unless the format is ``%td`` or ``%tc``, and its times count
milliseconds.
"""


class WrittenColumn:
    """Column in the form that the writer of a statistical program takes.

    values: values, (n,); missing ones are NaN, empty texts or letters of Stata
    labels: labels of values and of kinds of missing value, by code
    ranges: missing codes of SPSS, and ranges of them
    letters: letters of Stata's kinds of missing value
    tags: kinds of SAS's missing values, (n,)
    format: date format of the program, empty for other columns
    shown: format in which the confidential file shows it, in place of that; empty for none
    """

    def __init__(self, values: pd.Series) -> None:
        self.values = values
        self.labels: dict[Any, str] = {}
        self.ranges: list[Any] = []
        self.letters: list[str] = []
        self.tags: np.ndarray | None = None
        self.format = ""
        self.shown = ""


Columns = Mapping[str, WrittenColumn]
FormatUse = Literal["", "day", "moment", "number"]
"""What a format of a program shows: days, moments, or other numbers of time; empty where it is none of its formats."""


@dataclass(frozen=True, kw_only=True)
class FileRules:
    """Rules by which a program's files are written, and read again with ``read``.

    title: name of the program
    epoch: date from which it counts
    day: format of dates, and how many of its units a day has
    moment: format of moments, and how many of its units a second has
    longest_title, longest_text, longest_note: limits in bytes
    longest_label: limit of labels of values in bytes; 0 where the file has no room for them
    stamps: pattern of the moment of writing, and what stands for it
    with_kinds: puts kinds of missing value into a column
    write: makes the file
    read: reads it again
    finish: puts in what the writer cannot
    can_label_texts: texts may have labels too
    kinds_are_codes: kinds of missing value are codes among the values
    is_exact: numbers are read as they were written
    use_of_format: returns what a variable's own format shows
    names: rules for the names of columns
    """

    title: str
    names: NameRules
    epoch: str
    day: tuple[str, float]
    moment: tuple[str, float]
    longest_title: int
    longest_label: int
    longest_text: int
    longest_note: int
    stamps: tuple[re.Pattern[bytes], bytes]
    with_kinds: Callable[[WrittenColumn, Variable, pd.Series, Sequence[str], FileRules], None]
    write: Callable[[pd.DataFrame, Columns, Mapping[str, Variable], dict[str, Any]], bytes]
    read: Callable[[SourceFile], RawTable]
    finish: Callable[[bytes, Columns], bytes] | None = None
    can_label_texts: bool = False
    kinds_are_codes: bool = False
    is_exact: bool = True
    use_of_format: Callable[[str], FormatUse] = lambda _form: ""


def write_labelled_file(out: OutputTable, rules: FileRules) -> bytes:
    """Write the bytes of a file with the columns of the dataset, levels by their codes.

    A column whose name the program refuses gets one derived from it. Raises NotReleased where the program has no room for
    a value.
    """
    frame, variables = out.frame, out.variables
    columns = {
        str(name): _written_column(frame[name], variables[str(name)], out, out.named_kinds.get(str(name), ()), rules)
        for name in frame
    }
    names = derive_valid_names(columns, rules.names)
    columns = {names[name]: column for name, column in columns.items()}
    variables = {names[name]: _titled_by_name(variables[name], names[name]) for name in names}
    written = pd.DataFrame({name: one.values for name, one in columns.items()})
    try:
        content = rules.write(written, columns, variables, _common_options(columns, variables, rules, out.note))
    except NotReleased:
        raise
    except Exception as error:  # noqa: BLE001  (pyreadstat raises its own and any other; what it says may hold a value)
        raise NotReleased(
            f"the datasets are no {rules.title} file: {_writer_error_text(error)}; choose another --format"
        ) from None
    pattern, stamp = rules.stamps
    # the time of writing is replaced, so that a dataset has the same bytes each time; only in the header,
    # since values may look like a time
    content = pattern.sub(stamp, content[:4096]) + content[4096:]
    if rules.finish is not None:
        content = rules.finish(content, columns)
    _check_written_file(content, columns, variables, rules)
    return content


def _titled_by_name(variable: Variable, written_name: str) -> Variable:
    """Return a variable whose title is its name, where it has no title and is written under another name."""
    return variable if variable.title or variable.name == written_name else replace(variable, title=variable.name)


def _common_options(columns: Columns, variables: Mapping[str, Variable], rules: FileRules, note: str) -> dict[str, Any]:
    """Return the options that every writer of pyreadstat takes."""
    return {
        "file_label": truncate_to_bytes(note, rules.longest_note),
        "column_labels": {
            name: truncate_to_bytes(variables[name].title, rules.longest_title)
            for name in columns
            if variables[name].title
        },
        "variable_format": {name: one.shown or one.format for name, one in columns.items() if one.shown or one.format},
    }


def _written_column(
    values: pd.Series, variable: Variable, out: OutputTable, named: Sequence[str], rules: FileRules
) -> WrittenColumn:
    """Return a column with its codes, labels and kinds of missing value in the form that the program has room for."""
    if variable.kind is Kind.DATE and pd.api.types.is_datetime64_any_dtype(values.dtype):
        return _date_column(values, rules, _format_of_program(variable.format, rules))
    if isinstance(values.dtype, pd.CategoricalDtype):
        own = list(out.levels.get(variable.name, ()))
        if not own or not all(map(is_plain_number, own)):
            column = _text_column(values, variable, own, rules)
            if rules.kinds_are_codes and named:
                rules.with_kinds(column, variable, _kinds_of_missing(values, variable, out), named, rules)
            return column
        column = WrittenColumn(values.astype("object").map(float, na_action="ignore").astype("float64"))
        column.shown = _format_of_numbers(variable.format, rules)
        if rules.longest_label:
            column.labels = {_parse_code(level): truncate_to_bytes(variable.labels[level], rules.longest_label) for level in own if variable.labels.get(level)}  # fmt: skip
    elif pd.api.types.is_numeric_dtype(values.dtype):
        column = WrittenColumn(values.astype("float64"))
        column.shown = _format_of_numbers(variable.format, rules)
        if rules.longest_label:
            numbers = {code: label for code, label in variable.labels.items() if is_plain_number(code) and label}
            column.labels = {_parse_code(code): truncate_to_bytes(label, rules.longest_label) for code, label in numbers.items() if not _is_missing_code(code, variable)}  # fmt: skip
    else:
        return WrittenColumn(values.astype("object").where(values.notna(), ""))
    if named:
        rules.with_kinds(column, variable, _kinds_of_missing(values, variable, out), named, rules)
    return column


def _kinds_of_missing(values: pd.Series, variable: Variable, out: OutputTable) -> pd.Series:
    """Return the kind of each missing value of a column, (n,); None where there is a value."""
    kinds = out.kinds[variable.name] if variable.name in out.kinds else pd.Series([None] * len(values), dtype="object")
    # a kind belongs to a missing value: one beside a value would overwrite it
    return kinds.where(values.isna().to_numpy(), None)


def _format_of_program(form: str, rules: FileRules) -> str:
    """Return the program's format that shows what a format, or a form of dates in texts, shows; empty where it has none."""
    if rules.use_of_format(form):
        return form
    # a day of one digit has no format of its own
    form = re.sub(r"\b([dm])(?=[./-])", r"\1\1", form)
    return next((one.get(rules.title, "") for one in FORMATS_OF_PROGRAMS if form in one.values()), "")


def _format_of_numbers(form: str, rules: FileRules) -> str:
    """Return the program's format for numbers that a format shows as times; empty where it has none."""
    own = _format_of_program(form, rules)
    return own if rules.use_of_format(own) == "number" else ""


def missing_letters(named: Sequence[str]) -> dict[str, str]:
    """Return the letter of each kind of missing value.

    Kinds such as ``.a`` keep their own letter; codes of SPSS get a, b and so on, in the order of the numbers.
    """
    if all(len(kind) == 2 and kind[0] == "." for kind in named):
        return {kind: kind[1].lower() for kind in named}
    ordered = sorted(
        named, key=lambda kind: (not is_plain_number(kind), float(kind) if is_plain_number(kind) else 0.0, kind)
    )
    return {kind: chr(ord("a") + place) for place, kind in enumerate(ordered[:MAX_MISSING_LETTERS])}


def declared_missing_codes(variable: Variable, codes: Sequence[str]) -> list[Any]:
    """Return those missing codes of a variable, and ranges of them, that cover some of the given codes."""
    found: list[Any] = []
    for code in variable.missing:
        limits = parse_code_range(code)
        if limits is not None and any(limits[0] <= float(kind) <= limits[1] for kind in codes):
            found.append({"lo": limits[0], "hi": limits[1]})
        elif limits is None and any(is_plain_number(str(code)) and float(code) == float(kind) for kind in codes):
            found.append(float(code))
    return found


def _text_column(values: pd.Series, variable: Variable, levels: Sequence[str], rules: FileRules) -> WrittenColumn:
    """Return a column of texts, with labels where the program can label texts. Raises NotReleased for too long a text."""
    texts = values.astype("object").where(values.notna(), "")
    longest = max((len(str(text).encode()) for text in levels), default=0)
    if longest > rules.longest_text:
        raise NotReleased(f'values of "{variable.name}" are too long for a {rules.title} file; choose another --format')
    column = WrittenColumn(texts.map(str))
    if rules.can_label_texts and longest <= rules.longest_label:
        column.labels = {level: truncate_to_bytes(variable.labels[level], rules.longest_label) for level in levels if variable.labels.get(level)}  # fmt: skip
    return column


def _date_column(values: pd.Series, rules: FileRules, own_format: str) -> WrittenColumn:
    """Return a column of dates as counts of the program's unit since its epoch, in its own format where that fits."""
    seconds = (values - pd.Timestamp(rules.epoch)).dt.total_seconds()
    # a format of dates would hide times of day
    whole = bool((seconds.dropna() % 86_400 == 0).all())
    use = rules.use_of_format(own_format)
    whole = whole and use != "moment"
    name, unit = rules.day if whole else rules.moment
    column = WrittenColumn(seconds / 86_400 * unit if whole else seconds * unit)
    column.format = name
    column.shown = own_format if use == ("day" if whole else "moment") else ""
    return column


def is_plain_number(text: str) -> bool:
    """Return whether a text is a number in the spelling in which it will be read again."""
    try:
        return f"{float(text):.15g}" == text and np.isfinite(float(text))
    except ValueError:
        return False


def _is_missing_code(code: str, variable: Variable) -> bool:
    """Return whether a code is one of the variable's missing codes or lies in a range of them."""
    limits = [(float(one), float(one)) if parse_code_range(one) is None else parse_code_range(one) for one in variable.missing if parse_code_range(one) or is_plain_number(str(one))]  # fmt: skip
    return any(ends is not None and ends[0] <= float(code) <= ends[1] for ends in limits)


def _parse_code(code: str) -> float | int:
    """Return the number of a code, as an integer where it is whole."""
    number = float(code)
    return int(number) if number.is_integer() else number


def truncate_to_bytes(text: str, max_bytes: int) -> str:
    """Truncate a label to at most ``max_bytes`` bytes; the codebook has all of it."""
    # "ignore" drops a character that the cut has split
    return text.encode()[:max_bytes].decode("utf-8", "ignore")


def _writer_error_text(error: Exception) -> str:
    """Return what the writer says is wrong, or a sentence that quotes no value."""
    import pyreadstat

    told = isinstance(error, pyreadstat.ReadstatError | pyreadstat.PyreadstatError)
    return str(error) if told else "a value has no place in it"


def capture_written_file(write: Callable[[str], None]) -> bytes:
    """Return the bytes that a function writes to a path, without a file on a disk where the system allows it."""
    if hasattr(os, "memfd_create"):
        # what is not released yet leaves no file on a disk
        with os.fdopen(os.memfd_create("dataset", os.MFD_CLOEXEC), "rb") as file:
            write(f"/proc/self/fd/{file.fileno()}")
            file.seek(0)
            return file.read()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "dataset"
        write(str(path))
        return path.read_bytes()


def _check_written_file(content: bytes, columns: Columns, variables: Mapping[str, Variable], rules: FileRules) -> None:
    """Raise NotReleased unless reading the file returns the values and kinds of missing value that were written."""
    found = rules.read(SourceFile("", content))
    wrong = [
        name for name, one in columns.items() if name not in found.names or not _same_column(found, name, one, rules)
    ]
    if wrong or len(found.names) != len(columns):
        named = ", ".join(f'"{variables[name].name}"' for name in wrong[:3]) or "a column"
        raise NotReleased(f"a {rules.title} file changes {named}; choose another --format")


def _same_column(found: RawTable, name: str, column: WrittenColumn, rules: FileRules) -> bool:
    """Return whether a column that was read equals the one that was to be written."""
    ((_, read),), given = found.iterate_columns([name]), column.values
    if column.format:
        unit = rules.day if column.format == rules.day[0] else rules.moment
        scale = unit[1] / (86_400 if unit is rules.day else 1)
        numbers = (read - pd.Timestamp(rules.epoch)).dt.total_seconds() * scale
        # counts of seconds are floats, whose last digits a conversion to dates may change
        return bool(np.array_equal(np.rint(numbers), np.rint(given), equal_nan=True))
    if pd.api.types.is_numeric_dtype(read.dtype):
        numbers = pd.to_numeric(given, errors="coerce")
        same = _equal_numbers(read.to_numpy(dtype=float), numbers.to_numpy(dtype=float), rules)
        return same and (rules.kinds_are_codes or _same_missing_kinds(found, name, column))
    # these formats pad texts with blanks, so trailing ones are lost
    return bool((read.fillna("").map(str) == given.fillna("").map(str).str.rstrip(" ")).all())


def _equal_numbers(read: np.ndarray, given: np.ndarray, rules: FileRules) -> bool:
    """Return whether numbers that were read equal those that were written."""
    # SAS transport files have IBM floating point: 56 bits, of which up to three may be zeros at the front
    if not rules.is_exact:
        return bool(np.allclose(read, given, rtol=1e-14, atol=0, equal_nan=True))
    return bool(np.array_equal(read, given, equal_nan=True))


def _same_missing_kinds(found: RawTable, name: str, column: WrittenColumn) -> bool:
    """Return whether the kinds of missing value that were read are those that were to be written."""
    there = found.tags[name] if found.tags is not None and name in found.tags else None
    if column.tags is not None:
        wanted: list[str | None] = [None if tag is None else str(tag) for tag in column.tags]
    else:
        wanted = [f".{value}" if isinstance(value, str) else None for value in column.values]
    read = [None] * len(wanted) if there is None else [tag if isinstance(tag, str) else None for tag in there]
    return wanted == read
