"""Files of SAS (.sas7bdat), which can only be read. Untrusted: the bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sfumato.engine.data.date_forms import SAS_DAY_FORMAT, SAS_MOMENT_FORMAT, SAS_TIME_FORMAT

from ..file_formats import FileFormat, ReadRequest

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import SourceFile
    from ._labelled import FormatUse

EPOCH = "1960-01-01"
MAGIC = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")


def shown_sas_format(form: str) -> str:
    """Return a format of dates or times as SAS writes it, ``DATE9.``; empty for other formats."""
    # readers leave out the dot, without which it would look like a format of SPSS
    text = form.upper() if "." in form else f"{form.upper()}."
    return text if use_of_sas_format(text) else ""


def use_of_sas_format(form: str) -> FormatUse:
    """Return what a format shows: days, moments, or other numbers of time; empty for formats of other programs."""
    uses: dict[FormatUse, re.Pattern[str]] = {
        "day": SAS_DAY_FORMAT,
        "moment": SAS_MOMENT_FORMAT,
        "number": SAS_TIME_FORMAT,
    }
    return next((use for use, pattern in uses.items() if pattern.fullmatch(form)), "")


def sas_date_unit(form: str) -> str:
    """Return the unit in which a column of this format counts from the epoch; empty where the column has no dates."""
    return {"day": "day", "moment": "second"}.get(use_of_sas_format(shown_sas_format(form)), "")


def read_sas(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of a SAS file. Raises what pyreadstat raises."""
    import pyreadstat

    from ._statistical import StatisticalProgram, read_statistical_file

    return read_statistical_file(
        source.content,
        StatisticalProgram(
            reader=pyreadstat.read_sas7bdat, epoch=EPOCH, unit=sas_date_unit, shown_format=shown_sas_format
        ),
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
