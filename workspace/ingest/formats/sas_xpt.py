"""Transport files of SAS (.xpt): kinds of missing value are .A to .Z and ._, which lie where ``sas_transport`` finds them. Untrusted: the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..file_formats import Asked, Format, Outgoing
from .sas import EPOCH, unit

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import Source
    from ._labelled import Column, Columns, Rules

MAGIC = (b"HEADER RECORD*******LIBRARY HEADER", b"HEADER RECORD*******LIBV8   HEADER")
_STAMP = re.compile(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d")


def read(source: Source, _asked: Asked | None = None) -> RawTable:
    import pyreadstat

    from ..sas_transport import kinds_of_missing
    from ._statistical import Program, read_statistical

    program = Program(
        reader=pyreadstat.read_xport, epoch=EPOCH, unit=unit, kinds=False, kinds_of_missing=kinds_of_missing
    )
    return read_statistical(source.content, program)


def write(out: Outgoing) -> bytes:
    from ._labelled import Rules, labelled_file

    rules = Rules(
        title=FORMAT.title,
        epoch=EPOCH,
        day=("YYMMDD10.", 1.0),
        moment=("DATETIME20.", 1.0),
        longest_title=255,
        longest_label=0,
        longest_text=32_767,
        longest_note=40,
        stamps=(_STAMP, b"01JAN80:00:00:00"),
        with_kinds=_with_tags,
        write=_written,
        read=read,
        finish=_with_tags_in_place,
        exact=False,
    )
    return labelled_file(out, rules)


def _with_tags(column: Column, _variable: Variable, kinds: pd.Series, named: Sequence[str], _rules: Rules) -> None:
    import numpy as np

    from ._labelled import letters_of

    of_each = kinds.map(letters_of(named).get, na_action="ignore")
    column.tags = np.array([f".{kind.upper()}" if isinstance(kind, str) else None for kind in of_each], dtype=object)


def _written(
    frame: pd.DataFrame, columns: Columns, _variables: Mapping[str, Variable], common: dict[str, Any]
) -> bytes:
    """Of version 5 where it has room for names, titles and texts, else of version 8."""
    import pyreadstat

    from ._labelled import into_bytes

    titles = common["column_labels"].values()
    short = all(len(name) <= 8 and name.isupper() for name in columns) and all(len(title) <= 40 for title in titles)
    texts = (one.values for one in columns.values() if one.values.dtype == object)
    narrow = all(len(str(text).encode()) <= 200 for column in texts for text in column.unique())
    version: Literal[5, 8] = 5 if short and narrow else 8
    return into_bytes(lambda path: pyreadstat.write_xport(frame, path, **common, file_format_version=version))


def _with_tags_in_place(content: bytes, columns: Columns) -> bytes:
    from ..sas_transport import with_kinds

    tags = {name: one.tags for name, one in columns.items() if one.tags is not None}
    return with_kinds(content, tags, len(next(iter(tags.values())))) if tags else content


FORMAT = Format(
    kind="a SAS transport",
    listed="SAS",
    suffixes=(".xpt",),
    recognised=lambda head: head.startswith(MAGIC),
    read=read,
    subprocess=True,
    write=write,
    keeps_codes=True,
    media_type="application/x-sas-xport",
    needs=("pyreadstat",),
    manual="Titles; `.A` to `.Z` and `._`. The format has no room for labels of values.",
    order=9,
)
