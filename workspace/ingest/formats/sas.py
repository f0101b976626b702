"""Files of SAS (.sas7bdat), which can only be read. Untrusted: the bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..file_formats import FileFormat, ReadRequest

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import SourceFile

EPOCH = "1960-01-01"
MAGIC = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
_DAYS = re.compile(
    r"(DATE|YYMMDD\w?|DDMMYY\w?|MMDDYY\w?|YYMMDDP|E8601DA|B8601DA|IS8601DA|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|DAY|JULIAN|NLDATE)\d*(\.\d+)?"
)
_SECONDS = re.compile(r"(DATETIME|E8601DT|B8601DT|IS8601DT|DATEAMPM|NLDATM|MDYAMPM)\d*(\.\d+)?")


def sas_date_unit(form: str) -> str:
    """Return the unit in which a column of this format counts from the epoch; empty where the column has no dates."""
    form = form.upper()
    return "second" if _SECONDS.fullmatch(form) else "day" if _DAYS.fullmatch(form) else ""


def read_sas(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of a SAS file. Raises what pyreadstat raises."""
    import pyreadstat

    from ._statistical import StatisticalProgram, read_statistical_file

    return read_statistical_file(
        source.content, StatisticalProgram(reader=pyreadstat.read_sas7bdat, epoch=EPOCH, unit=sas_date_unit)
    )


FORMAT = FileFormat(
    kind="a SAS",
    suffixes=(".sas7bdat",),
    recognises=lambda head: head.startswith(MAGIC),
    read=read_sas,
    uses_subprocess=True,
    released_as="sas-xpt",
    required_modules=("pyreadstat",),
    manual_sentence="Titles; `.A` to `.Z` and `._`. Labels of values stand in another file.",
    order=8,
)
