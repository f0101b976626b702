"""Portable files of SPSS (.por), which can only be read. Untrusted: the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..file_formats import FileFormat, ReadRequest
from .spss import EPOCH, spss_date_unit

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import SourceFile

NO_KINDS = "an SPSS portable file is read with all its missing codes as one kind of missing value"


def is_portable(head: bytes) -> bool:
    """Return whether bytes are the beginning of an SPSS portable file."""
    # the format has lines of 80 characters, which may break anywhere, even within the signature
    return b"SPSSPORT" in head.replace(b"\r", b"").replace(b"\n", b"") and b"PORT" in head[:200]


def read_portable(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of an SPSS portable file. Raises what pyreadstat raises."""
    import pyreadstat

    from ._statistical import StatisticalProgram, read_statistical_file

    program = StatisticalProgram(
        reader=pyreadstat.read_por,
        epoch=EPOCH,
        unit=spss_date_unit,
        has_kinds=False,
        kinds_are_letters=False,
        fixed_encoding=True,
        notes=(NO_KINDS,),
    )
    return read_statistical_file(source.content, program)


FORMAT = FileFormat(
    kind="an SPSS portable",
    list_title="SPSS",
    suffixes=(".por",),
    recognises=is_portable,
    read=read_portable,
    uses_subprocess=True,
    released_as="spss",
    required_modules=("pyreadstat",),
    manual_sentence="Labels; all missing codes are one kind of missing value.",
    order=6,
)
