"""Files of SPSS (.sav, .zsav): kinds of missing value are codes among the values, declared one by one or as ranges. Untrusted: the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..file_formats import Asked, Format, Outgoing

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import Source
    from ._labelled import Column, Columns, Rules

EPOCH = "1582-10-14"
_DATES = re.compile(r"(DATE|ADATE|EDATE|SDATE|JDATE|DATETIME|YMDHMS)\d*(\.\d+)?")
_STAMP = re.compile(rb"(?<=\A.{92})[ \d]\d [A-Z][a-z]{2} \d\d\d\d:\d\d:\d\d", re.DOTALL)


def unit(form: str) -> str:
    """What a column of this format counts from the epoch; empty where it holds no dates."""
    return "second" if _DATES.fullmatch(form.upper()) else ""


def read(source: Source, _asked: Asked | None = None) -> RawTable:
    import pyreadstat

    from ._statistical import Program, read_statistical

    return read_statistical(source.content, Program(reader=pyreadstat.read_sav, epoch=EPOCH, unit=unit, letters=False))


def write(out: Outgoing) -> bytes:
    from ._labelled import Rules, labelled_file

    rules = Rules(
        title=FORMAT.title,
        epoch=EPOCH,
        day=("SDATE10", 86_400.0),
        moment=("DATETIME20", 1.0),
        longest_title=255,
        longest_label=120,
        longest_text=32_767,
        longest_note=60,
        stamps=(_STAMP, b"01 Jan 8000:00:00"),
        with_kinds=_with_codes,
        write=_written,
        read=read,
        labels_texts=True,
        codes=True,
    )
    return labelled_file(out, rules)


def _with_codes(column: Column, variable: Variable, kinds: pd.Series, named: Sequence[str], rules: Rules) -> None:
    from ._labelled import cut, declared, is_code

    codes = [kind for kind in named if is_code(kind)]
    column.values = column.values.fillna(
        kinds.where(kinds.isin(codes)).map(float, na_action="ignore").astype("float64")
    )
    labels = {kind: variable.labels.get(kind) for kind in codes}
    column.labels |= {float(kind): cut(label, rules.longest_label) for kind, label in labels.items() if label}
    column.ranges = declared(variable, codes)


def _written(frame: pd.DataFrame, columns: Columns, variables: Mapping[str, Variable], common: dict[str, Any]) -> bytes:
    import pyreadstat

    from sfumato.engine.data.schema import Kind

    from ._labelled import into_bytes

    measures = {Kind.CATEGORICAL: "nominal", Kind.BINARY: "nominal", Kind.ORDINAL: "ordinal"}
    measure = {name: measures.get(variables[name].kind, "scale") for name in columns}
    ranges = {name: one.ranges for name, one in columns.items() if one.ranges}
    labels = {
        name: {code if one.values.dtype == object else float(code): label for code, label in one.labels.items()}
        for name, one in columns.items()
        if one.labels
    }
    return into_bytes(
        lambda path: pyreadstat.write_sav(
            frame, path, **common, variable_value_labels=labels, missing_ranges=ranges, variable_measure=measure
        )
    )


FORMAT = Format(
    kind="an SPSS",
    suffixes=(".sav", ".zsav"),
    recognised=lambda head: head.startswith((b"$FL2", b"$FL3")),
    read=read,
    subprocess=True,
    write=write,
    keeps_codes=True,
    media_type="application/x-spss-sav",
    needs=("pyreadstat",),
    manual="Labels; missing codes and ranges of them.",
    order=5,
)
