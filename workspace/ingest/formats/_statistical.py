"""Files of Stata, SPSS and SAS: values as numbers, text and dates, with labels and kinds of missing value beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
from numpy.typing import NDArray

from sfumato.engine.data.missing_codes import format_code_range

from ..raw_tables import ColumnDescription, RawTable

FALLBACK_ENCODING = "WINDOWS-1252"
"""Encoding tried where the one that the file declares cannot decode its text."""
MICROSECONDS = {"day": 86_400_000_000, "second": 1_000_000, "millisecond": 1_000}
MAX_DAYS = 3_000_000
"""Number of days from an epoch up to which a count can be a date: about the year 9800."""
FALLBACK_NOTE = "text is not in the encoding that the file says; it was read as Windows-1252"


@dataclass(frozen=True, kw_only=True)
class StatisticalProgram:
    """Description of how files of a statistical program are read.

    reader: reader of pyreadstat
    epoch: date from which the program counts
    unit: returns the unit in which a column of a given format counts from ``epoch``; empty where the column has no
        dates
    has_kinds: pyreadstat returns kinds of missing value
    kinds_are_letters: kinds of missing value are letters, which may have labels
    kinds_of_missing: finds kinds that pyreadstat does not return, (n,) by name, from the content and the number of
        records
    fixed_encoding: the reader takes no encoding
    shown_format: returns a format as a release keeps it; empty where it shows no dates, times or months
    notes: remarks on each file
    """

    reader: Callable[..., tuple[pd.DataFrame, Any]]
    epoch: str
    unit: Callable[[str], str]
    has_kinds: bool = True
    kinds_are_letters: bool = True
    kinds_of_missing: Callable[[bytes, int], Mapping[str, NDArray[np.object_]]] | None = None
    fixed_encoding: bool = False
    shown_format: Callable[[str], str] = lambda _form: ""
    notes: tuple[str, ...] = ()


def read_statistical_file(content: bytes, program: StatisticalProgram) -> RawTable:
    """Read the table of a file of ``program``. Raises what pyreadstat raises."""
    frame, about, notes = _read_with_fallback(content, program)
    if len(set(frame.columns)) != frame.shape[1]:
        raise ValueError("two columns have one name")
    kinds = {} if program.kinds_of_missing is None else program.kinds_of_missing(content, len(frame))
    columns, tags, described, written = {}, {}, {}, {}
    for name in map(str, frame.columns):
        values, tag = _split_missing_kinds(frame[name], about, name)
        tag = pd.Series(kinds[name], index=frame.index) if name in kinds else tag
        missing = _declared_missing(about, name, tag)
        form = str(about.original_variable_types.get(name) or "")
        unit = program.unit(form)
        if unit:
            if missing:
                # codes among dates become missing values, which would hide that they differ
                written[name] = values.map(repr, na_action="ignore").astype("object")
            values, missing = _dates_from_counts(values, missing, about, name, unit, program.epoch)
        # these programs have no missing texts: an empty one stands for it
        columns[name] = values.where(values != "") if _is_text_column(values) else values
        if tag is not None:
            tags[name] = tag
        measure = (about.variable_measure or {}).get(name, "unknown")
        labels = _labels_by_code((about.variable_value_labels or {}).get(name, {}), program)
        title = str(about.column_names_to_labels.get(name) or "")
        described[name] = ColumnDescription(
            title,
            labels,
            missing,
            "" if measure == "unknown" else str(measure),
            program.shown_format(form),
        )
    found = RawTable.from_frame(
        pd.DataFrame(columns, index=frame.index), described, pd.DataFrame(tags) if tags else None, notes + program.notes
    )
    return replace(found, written=pd.DataFrame(written)) if written else found


def _read_with_fallback(content: bytes, program: StatisticalProgram) -> tuple[pd.DataFrame, Any, tuple[str, ...]]:
    """Read a file in the encoding that it declares, or else in Windows-1252 with a note about it."""
    # converted by _dates_from_counts, since missing codes may stand among the dates
    options: dict[str, Any] = {"disable_datetime_conversion": True}
    if program.has_kinds:
        # without it every kind of missing value is read as the same NaN
        options["user_missing"] = True
    try:
        return *program.reader(BytesIO(content), **options), ()
    except (UnicodeDecodeError, pyreadstat.ReadstatError) as error:
        if program.fixed_encoding or not (isinstance(error, UnicodeDecodeError) or "encoding" in str(error)):
            raise
        return *program.reader(BytesIO(content), encoding=FALLBACK_ENCODING, **options), (FALLBACK_NOTE,)


def _is_text_column(values: pd.Series) -> bool:
    """Return whether a column has texts."""
    return values.dtype == object or pd.api.types.is_string_dtype(values.dtype)


def _split_missing_kinds(values: pd.Series, about: Any, name: str) -> tuple[pd.Series, pd.Series | None]:
    """Separate the numbers of a column (n,) of Stata or SAS from the kinds of its missing values.

    The kinds are None where no value has one.
    """
    kinds: Sequence[str] = (about.missing_user_values or {}).get(name, ())
    if not kinds or about.readstat_variable_types.get(name) == "string":
        return values, None
    tags = values.map(lambda value: f".{value}" if isinstance(value, str) else None).astype("object")
    return pd.to_numeric(values.mask(tags.notna()).astype("object"), errors="coerce").astype("float64"), tags


def _declared_missing(about: Any, name: str, tags: pd.Series | None) -> tuple[str | float, ...]:
    """Return the missing codes and ranges of a column, or the kinds of missing value that occur in it."""
    if tags is not None:
        return tuple(sorted(map(str, tags.dropna().unique())))
    found: list[str | float] = []
    for limits in (about.missing_ranges or {}).get(name, ()):
        low, high = limits["lo"], limits["hi"]
        found.append(_whole_number_code(low) if low == high else format_code_range(low, high))
    return tuple(found)


def _whole_number_code(code: str | float) -> str | float:
    """Return a code as an integer where it is whole."""
    return code if isinstance(code, str) else int(code) if float(code).is_integer() else float(code)


def _labels_by_code(labels: Mapping[Any, Any], program: StatisticalProgram) -> dict[str, str]:
    """Return the labels of values by the text of their code, and those of kinds of missing value by their name, ``.a``."""
    found = {}
    for code, label in labels.items():
        tagged = isinstance(code, str) and program.kinds_are_letters
        text = f".{code}" if tagged else code if isinstance(code, str) else f"{code:.15g}"
        found[text] = str(label)
    return found


def _dates_from_counts(
    values: pd.Series, missing: tuple[str | float, ...], about: Any, name: str, unit: str, epoch: str
) -> tuple[pd.Series, tuple[str | float, ...]]:
    """Convert counts of a unit since the epoch to dates (n,), without the missing codes among them.

    Where some counts are too large for a date, the counts are returned unchanged.
    """
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    for limits in (about.missing_ranges or {}).get(name, ()):
        # a code such as 99999999 would become a date
        numbers = numbers.mask(numbers.between(limits["lo"], limits["hi"]))
    if (numbers.abs() * (MICROSECONDS[unit] / MICROSECONDS["day"]) > MAX_DAYS).any():
        return values, missing
    counts = np.rint(numbers.fillna(0).to_numpy() * MICROSECONDS[unit]).astype("timedelta64[us]")
    dates = pd.Series(np.datetime64(epoch, "us") + counts, index=values.index)
    return dates.mask(numbers.isna()), tuple(code for code in missing if str(code).startswith("."))
