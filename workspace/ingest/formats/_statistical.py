"""Files of Stata, SPSS and SAS: values as numbers, text and dates, with labels and kinds of missing value beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
from numpy.typing import NDArray

from sfumato.engine.data.missing_codes import format_code_range

from ..raw_tables import Description, RawTable

WESTERN = "WINDOWS-1252"
MICROSECONDS = {"day": 86_400_000_000, "second": 1_000_000, "millisecond": 1_000}
MOST_DAYS = 3_000_000
FALLEN_BACK = "text is not in the encoding that the file says; it was read as Windows-1252"


@dataclass(frozen=True, kw_only=True)
class Program:
    """How files of a program are read.

    ``reader`` is pyreadstat's. ``unit`` says what a column of a format counts from ``epoch``, empty where it holds no dates. ``kinds``:
    pyreadstat gives kinds of missing value; ``letters``: they are letters, of which labels may be too. ``kinds_of_missing`` finds those that it
    does not, (n,) by name, from content and number of records. ``fixed``: the encoding is not to be set. ``notes`` are of each file.
    """

    reader: Callable[..., tuple[pd.DataFrame, Any]]
    epoch: str
    unit: Callable[[str], str]
    kinds: bool = True
    letters: bool = True
    kinds_of_missing: Callable[[bytes, int], Mapping[str, NDArray[np.object_]]] | None = None
    fixed: bool = False
    notes: tuple[str, ...] = ()


def read_statistical(content: bytes, program: Program) -> RawTable:
    """The table of a file of ``program``. Raises what pyreadstat raises."""
    frame, about, notes = _read(content, program)
    if len(set(frame.columns)) != frame.shape[1]:
        raise ValueError("two columns have one name")
    kinds = {} if program.kinds_of_missing is None else program.kinds_of_missing(content, len(frame))
    columns, tags, described = {}, {}, {}
    for name in map(str, frame.columns):
        values, tag = _untagged(frame[name], about, name)
        tag = pd.Series(kinds[name], index=frame.index) if name in kinds else tag
        missing = _missing(about, name, tag)
        unit = program.unit(str(about.original_variable_types.get(name) or ""))
        if unit:
            values, missing = _dates(values, missing, about, name, unit, program.epoch)
        columns[name] = values.where(values != "") if _is_text(values) else values
        if tag is not None:
            tags[name] = tag
        measure = (about.variable_measure or {}).get(name, "unknown")
        labels = _labels((about.variable_value_labels or {}).get(name, {}), program)
        title = str(about.column_names_to_labels.get(name) or "")
        described[name] = Description(title, labels, missing, "" if measure == "unknown" else str(measure))
    return RawTable.of(
        pd.DataFrame(columns, index=frame.index), described, pd.DataFrame(tags) if tags else None, notes + program.notes
    )


def _read(content: bytes, program: Program) -> tuple[pd.DataFrame, Any, tuple[str, ...]]:
    options: dict[str, Any] = {"disable_datetime_conversion": True}
    if program.kinds:
        options["user_missing"] = True
    try:
        return *program.reader(BytesIO(content), **options), ()
    except (UnicodeDecodeError, pyreadstat.ReadstatError) as error:
        if program.fixed or not (isinstance(error, UnicodeDecodeError) or "encoding" in str(error)):
            raise
        return *program.reader(BytesIO(content), encoding=WESTERN, **options), (FALLEN_BACK,)


def _is_text(values: pd.Series) -> bool:
    return values.dtype == object or pd.api.types.is_string_dtype(values.dtype)


def _untagged(values: pd.Series, about: Any, name: str) -> tuple[pd.Series, pd.Series | None]:
    """The numbers of a column (n,) of Stata or SAS, and the kinds of its missing values where some have one."""
    kinds: Sequence[str] = (about.missing_user_values or {}).get(name, ())
    if not kinds or about.readstat_variable_types.get(name) == "string":
        return values, None
    tags = values.map(lambda value: f".{value}" if isinstance(value, str) else None).astype("object")
    return pd.to_numeric(values.mask(tags.notna()).astype("object"), errors="coerce").astype("float64"), tags


def _missing(about: Any, name: str, tags: pd.Series | None) -> tuple[str | float, ...]:
    if tags is not None:
        return tuple(sorted(map(str, tags.dropna().unique())))
    found: list[str | float] = []
    for limits in (about.missing_ranges or {}).get(name, ()):
        low, high = limits["lo"], limits["hi"]
        found.append(_plain(low) if low == high else format_code_range(low, high))
    return tuple(found)


def _plain(code: str | float) -> str | float:
    return code if isinstance(code, str) else int(code) if float(code).is_integer() else float(code)


def _labels(labels: Mapping[Any, Any], program: Program) -> dict[str, str]:
    """Labels by the text of the code that they are of; a kind of missing value by its name, ``.a``."""
    found = {}
    for code, label in labels.items():
        tagged = isinstance(code, str) and program.letters
        text = f".{code}" if tagged else code if isinstance(code, str) else f"{code:.15g}"
        found[text] = str(label)
    return found


def _dates(
    values: pd.Series, missing: tuple[str | float, ...], about: Any, name: str, unit: str, epoch: str
) -> tuple[pd.Series, tuple[str | float, ...]]:
    """Dates (n,) from counts of a unit since the epoch, without missing codes among them; the counts where some are no dates."""
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    for limits in (about.missing_ranges or {}).get(name, ()):
        numbers = numbers.mask(numbers.between(limits["lo"], limits["hi"]))
    if (numbers.abs() * (MICROSECONDS[unit] / MICROSECONDS["day"]) > MOST_DAYS).any():
        return values, missing
    counts = np.rint(numbers.fillna(0).to_numpy() * MICROSECONDS[unit]).astype("timedelta64[us]")
    dates = pd.Series(np.datetime64(epoch, "us") + counts, index=values.index)
    return dates.mask(numbers.isna()), tuple(code for code in missing if str(code).startswith("."))
