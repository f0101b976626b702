"""Files of SPSS (.sav, .zsav), whose kinds of missing value are codes among the values. Untrusted: the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.date_forms import SPSS_FORMAT

from ..file_formats import FileFormat, OutputTable, ReadRequest
from ._valid_names import SPSS_NAMES, derive_valid_names

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import SourceFile
    from ._labelled import Columns, FileRules, FormatUse, WrittenColumn

# SPSS counts seconds from the eve of the Gregorian calendar
EPOCH = "1582-10-14"
MAX_CODES = 3
"""Most missing codes of a variable."""
MAX_TEXT_CODE = 8
"""Most bytes of a missing code of texts."""
LENGTH_TO_SECONDS = {"DATETIME": 20, "YMDHMS": 19, "DTIME": 12, "TIME": 8, "MTIME": 5}
"""Characters of a moment or time to its whole seconds, by format."""
_DATES = re.compile(r"(DATE|ADATE|EDATE|SDATE|JDATE|DATETIME|YMDHMS)\d*(\.\d+)?")
# the header has the day and time of writing from byte 92 on, after record type, product name,
# layout, case size, compression, weight, number of cases and bias
_STAMP = re.compile(rb"(?<=\A.{92})[ \d]\d [A-Z][a-z]{2} \d\d\d\d:\d\d:\d\d", re.DOTALL)


def _use_of_spss_format(form: str) -> FormatUse:
    """Return what a format shows: days, moments, or other numbers of time; empty for formats of other programs."""
    name = form.upper().rstrip("0123456789.")
    if not SPSS_FORMAT.fullmatch(form.upper()) or not _has_room_for_decimals(form.upper()):
        return ""
    return "moment" if name in ("DATETIME", "YMDHMS") else "day" if _DATES.fullmatch(form.upper()) else "number"


def _has_room_for_decimals(form: str) -> bool:
    """Return whether a format is as wide as SPSS requires for its decimals of seconds; a format of SAS may not be."""
    found = re.fullmatch(r"([A-Z]+)(\d+)\.(\d+)", form)
    return found is None or int(found[2]) > LENGTH_TO_SECONDS.get(found[1], 0) + int(found[3])


def spss_date_unit(form: str) -> str:
    """Return the unit in which a column of this format counts from the epoch; empty where the column has no dates."""
    return "second" if _DATES.fullmatch(form.upper()) else ""


def read_spss(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of an SPSS file. Raises what pyreadstat raises."""
    import pyreadstat

    from ._statistical import StatisticalProgram, read_statistical_file

    return read_statistical_file(
        source.content,
        StatisticalProgram(
            reader=pyreadstat.read_sav,
            epoch=EPOCH,
            unit=spss_date_unit,
            kinds_are_letters=False,
            shown_format=lambda form: form if _use_of_spss_format(form) else "",
        ),
    )


def write_spss(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as an SPSS file. Raises NotReleased where the format has no room for it."""
    from ._labelled import FileRules, write_labelled_file

    rules = FileRules(
        title=FORMAT.title,
        names=SPSS_NAMES,
        epoch=EPOCH,
        day=("SDATE10", 86_400.0),
        moment=("DATETIME20", 1.0),
        longest_title=255,
        longest_label=120,
        longest_text=32_767,
        longest_note=60,
        stamps=(_STAMP, b"01 Jan 8000:00:00"),
        with_kinds=_add_spss_codes,
        write=_write_spss_bytes,
        read=read_spss,
        can_label_texts=True,
        kinds_are_codes=True,
        use_of_format=_use_of_spss_format,
    )
    return write_labelled_file(out, rules)


def _add_spss_codes(
    column: WrittenColumn, variable: Variable, kinds: pd.Series, named: Sequence[str], rules: FileRules
) -> None:
    """Put missing codes in place of missing values in a column, with their labels and declarations."""
    from pandas.api.types import is_numeric_dtype

    from ._labelled import declared_missing_codes, is_plain_number, truncate_to_bytes

    if not is_numeric_dtype(column.values.dtype):
        _add_text_codes(column, variable, kinds, named, rules)
        return
    declared = declared_missing_codes(variable, [kind for kind in named if is_plain_number(kind)])
    column.ranges = _fitting_declarations(declared, column.values)
    codes = [kind for kind in named if is_plain_number(kind) and _is_declared(float(kind), column.ranges)]
    column.values = column.values.fillna(
        kinds.where(kinds.isin(codes)).map(float, na_action="ignore").astype("float64")
    )
    labels = {kind: variable.labels.get(kind) for kind in codes}
    column.labels |= {
        float(kind): truncate_to_bytes(label, rules.longest_label) for kind, label in labels.items() if label
    }


def _fitting_declarations(declared: Sequence[Any], values: pd.Series) -> list[Any]:
    """Return the declarations of missing codes, and ranges of them, that SPSS has room for: three codes, or a range and one.

    Where there are more, one range covers all, unless some of the ``values`` (n,) lie in it.
    """
    ranges = [one for one in declared if isinstance(one, dict)]
    single = [one for one in declared if not isinstance(one, dict)]
    if len(ranges) <= 1 and len(single) <= (1 if ranges else MAX_CODES):
        return list(declared)
    low = min([*single, *(one["lo"] for one in ranges)])
    high = max([*single, *(one["hi"] for one in ranges)])
    if not values.between(low, high).any():
        return [{"lo": low, "hi": high}]
    return [ranges[0], *single[:1]] if ranges else single[:MAX_CODES]


def _is_declared(code: float, declarations: Sequence[Any]) -> bool:
    """Return whether a code is declared missing."""
    ends = [(one["lo"], one["hi"]) if isinstance(one, dict) else (one, one) for one in declarations]
    return any(low <= code <= high for low, high in ends)


def _add_text_codes(
    column: WrittenColumn, variable: Variable, kinds: pd.Series, named: Sequence[str], rules: FileRules
) -> None:
    """Put missing codes in place of empty texts in a column, as many as SPSS has room for; the others stay empty."""
    from ._labelled import truncate_to_bytes

    codes = sorted(kind for kind in named if len(kind.encode()) <= MAX_TEXT_CODE)[:MAX_CODES]
    column.values = column.values.mask(kinds.isin(codes).to_numpy(), kinds)
    column.ranges = list(codes)
    labels = {kind: truncate_to_bytes(variable.labels.get(kind, ""), rules.longest_label) for kind in codes}
    column.labels |= {kind: label for kind, label in labels.items() if label}


def _write_spss_bytes(
    frame: pd.DataFrame, columns: Columns, variables: Mapping[str, Variable], common: dict[str, Any]
) -> bytes:
    """Write the bytes of an SPSS file with pyreadstat."""
    import pyreadstat
    from pandas.api.types import is_numeric_dtype

    from sfumato.engine.data.schema import Kind

    from ._labelled import capture_written_file

    measures = {Kind.CATEGORICAL: "nominal", Kind.BINARY: "nominal", Kind.ORDINAL: "ordinal"}
    measure = {name: measures.get(variables[name].kind, "scale") for name in columns}
    ranges = {name: one.ranges for name, one in columns.items() if one.ranges}
    labels = {
        name: {float(code) if is_numeric_dtype(one.values.dtype) else code: label for code, label in one.labels.items()}
        for name, one in columns.items()
        if one.labels
    }
    return capture_written_file(
        lambda path: pyreadstat.write_sav(
            frame, path, **common, variable_value_labels=labels, missing_ranges=ranges, variable_measure=measure
        )
    )


FORMAT = FileFormat(
    kind="an SPSS",
    suffixes=(".sav", ".zsav"),
    recognises=lambda head: head.startswith((b"$FL2", b"$FL3")),
    read=read_spss,
    uses_subprocess=True,
    write=write_spss,
    keeps_codes=True,
    name_columns=lambda names: derive_valid_names(names, SPSS_NAMES),
    media_type="application/x-spss-sav",
    required_modules=("pyreadstat",),
    manual_sentence="Labels; missing codes and ranges of them.",
    order=5,
)
