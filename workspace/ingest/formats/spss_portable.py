"""Portable files of SPSS (.por), which are read alone. Untrusted: the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..file_formats import Asked, Format
from .spss import EPOCH, unit

if TYPE_CHECKING:
    from ..raw_tables import RawTable
    from ..sources import Source

NO_KINDS = "an SPSS portable file is read with all its missing codes as one kind of missing value"


def recognised(head: bytes) -> bool:
    """Whether the file's lines, which may end anywhere, begin one."""
    return b"SPSSPORT" in head.replace(b"\r", b"").replace(b"\n", b"") and b"PORT" in head[:200]


def read(source: Source, _asked: Asked | None = None) -> RawTable:
    import pyreadstat

    from ._statistical import Program, read_statistical

    program = Program(
        reader=pyreadstat.read_por, epoch=EPOCH, unit=unit, kinds=False, letters=False, fixed=True, notes=(NO_KINDS,)
    )
    return read_statistical(source.content, program)


FORMAT = Format(
    kind="an SPSS portable",
    listed="SPSS",
    suffixes=(".por",),
    recognised=recognised,
    read=read,
    subprocess=True,
    released_as="spss",
    needs=("pyreadstat",),
    manual="Labels; all missing codes are one kind of missing value.",
    order=6,
)
