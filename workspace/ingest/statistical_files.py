"""Files of Stata, SPSS and SAS: values as numbers, text and dates, with labels and kinds of missing value beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat

from sfumato.engine.data.missing_codes import range_code

from .raw_tables import Description, RawTable
from .sas_transport import kinds_of_missing

WESTERN = "WINDOWS-1252"
EPOCHS = {"spss": "1582-10-14", "por": "1582-10-14", "stata": "1960-01-01", "sas": "1960-01-01", "xpt": "1960-01-01"}
MICROSECONDS = {"day": 86_400_000_000, "second": 1_000_000, "millisecond": 1_000}
SPSS_DATES = re.compile(r"(DATE|ADATE|EDATE|SDATE|JDATE|DATETIME|YMDHMS)\d*(\.\d+)?")
SAS_DAYS = re.compile(
    r"(DATE|YYMMDD\w?|DDMMYY\w?|MMDDYY\w?|YYMMDDP|E8601DA|B8601DA|IS8601DA|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|DAY|JULIAN|NLDATE)\d*(\.\d+)?"
)
SAS_SECONDS = re.compile(r"(DATETIME|E8601DT|B8601DT|IS8601DT|DATEAMPM|NLDATM|MDYAMPM)\d*(\.\d+)?")
MOST_DAYS = 3_000_000
READERS: dict[str, Callable[..., tuple[pd.DataFrame, Any]]] = {
    "spss": pyreadstat.read_sav,
    "por": pyreadstat.read_por,
    "stata": pyreadstat.read_dta,
    "sas": pyreadstat.read_sas7bdat,
    "xpt": pyreadstat.read_xport,
}
NO_KINDS = "an SPSS portable file is read with all its missing codes as one kind of missing value"
FALLEN_BACK = "text is not in the encoding that the file says; it was read as Windows-1252"


def read_statistical(content: bytes, program: str) -> RawTable:
    """The table of a file of ``program``, a key of READERS. Raises what pyreadstat raises."""
    frame, about, notes = _read(content, program)
    if len(set(frame.columns)) != frame.shape[1]:
        raise ValueError("two columns have one name")
    kinds = kinds_of_missing(content, len(frame)) if program == "xpt" else {}
    columns, tags, described = {}, {}, {}
    for name in map(str, frame.columns):
        values, tag = _untagged(frame[name], about, name)
        tag = pd.Series(kinds[name], index=frame.index) if name in kinds else tag
        missing = _missing(about, name, tag)
        unit = _unit(str(about.original_variable_types.get(name) or ""), program)
        if unit:
            values, missing = _dates(values, missing, about, name, unit, EPOCHS[program])
        columns[name] = values.where(values != "") if _is_text(values) else values
        if tag is not None:
            tags[name] = tag
        measure = (about.variable_measure or {}).get(name, "unknown")
        labels = _labels((about.variable_value_labels or {}).get(name, {}), program)
        title = str(about.column_names_to_labels.get(name) or "")
        described[name] = Description(title, labels, missing, "" if measure == "unknown" else str(measure))
    notes += (NO_KINDS,) if program == "por" else ()
    return RawTable(pd.DataFrame(columns, index=frame.index), described, pd.DataFrame(tags) if tags else None, notes)


def _read(content: bytes, program: str) -> tuple[pd.DataFrame, Any, tuple[str, ...]]:
    options: dict[str, Any] = {"disable_datetime_conversion": True}
    if program in ("spss", "stata", "sas"):
        options["user_missing"] = True
    try:
        return *READERS[program](BytesIO(content), **options), ()
    except (UnicodeDecodeError, pyreadstat.ReadstatError) as error:
        if program == "por" or not (isinstance(error, UnicodeDecodeError) or "encoding" in str(error)):
            raise
        return *READERS[program](BytesIO(content), encoding=WESTERN, **options), (FALLEN_BACK,)


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
        found.append(_plain(low) if low == high else range_code(low, high))
    return tuple(found)


def _plain(code: str | float) -> str | float:
    return code if isinstance(code, str) else int(code) if float(code).is_integer() else float(code)


def _labels(labels: Mapping[Any, Any], program: str) -> dict[str, str]:
    """Labels by the text of the code that they are of; a kind of missing value by its name, ``.a``."""
    found = {}
    for code, label in labels.items():
        tagged = isinstance(code, str) and program in ("stata", "sas", "xpt")
        text = f".{code}" if tagged else code if isinstance(code, str) else f"{code:.15g}"
        found[text] = str(label)
    return found


def _unit(form: str, program: str) -> str:
    """What a column of this format counts from the program's epoch; empty where it holds no dates."""
    if program in ("spss", "por"):
        return "second" if SPSS_DATES.fullmatch(form.upper()) else ""
    if program == "stata":
        plain = form.removeprefix("%").removeprefix("-")
        if plain.startswith(("td", "d")):
            return "day"
        return "millisecond" if plain.startswith("tc") and (plain == "tc" or set("YyDd") & set(plain[2:])) else ""
    form = form.upper()
    return "second" if SAS_SECONDS.fullmatch(form) else "day" if SAS_DAYS.fullmatch(form) else ""


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
