"""Transport files of SAS (.xpt), whose kinds of missing value are .A to .Z and ._. Untrusted: the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..file_formats import FileFormat, OutputTable, ReadRequest
from ._valid_names import SAS_NAMES, derive_valid_names
from .sas import EPOCH, sas_date_unit, shown_sas_format, use_of_sas_format

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import SourceFile
    from ._labelled import Columns, FileRules, WrittenColumn

MAGIC = (b"HEADER RECORD*******LIBRARY HEADER", b"HEADER RECORD*******LIBV8   HEADER")
_STAMP = re.compile(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d")


def read_transport(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of a SAS transport file. Raises what pyreadstat raises."""
    import pyreadstat

    from ..sas_transport import read_missing_kinds
    from ._statistical import StatisticalProgram, read_statistical_file

    program = StatisticalProgram(
        reader=pyreadstat.read_xport,
        epoch=EPOCH,
        unit=sas_date_unit,
        shown_format=shown_sas_format,
        has_kinds=False,
        kinds_of_missing=read_missing_kinds,
    )
    return read_statistical_file(source.content, program)


def write_transport(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as a SAS transport file. Raises NotReleased where the format has no room for it."""
    from ._labelled import FileRules, write_labelled_file

    rules = FileRules(
        title=FORMAT.title,
        names=SAS_NAMES,
        epoch=EPOCH,
        day=("YYMMDD10.", 1.0),
        moment=("DATETIME20.", 1.0),
        longest_title=255,
        # labels of values stand in a catalogue of formats, not in a transport file
        longest_label=0,
        longest_text=32_767,
        longest_note=40,
        stamps=(_STAMP, b"01JAN80:00:00:00"),
        with_kinds=_add_sas_kinds,
        write=_write_transport_bytes,
        read=read_transport,
        # pyreadstat can neither write nor read kinds of missing value here
        finish=_insert_sas_kinds,
        is_exact=False,
        use_of_format=use_of_sas_format,
    )
    return write_labelled_file(out, rules)


def _add_sas_kinds(
    column: WrittenColumn, _variable: Variable, kinds: pd.Series, named: Sequence[str], _rules: FileRules
) -> None:
    """Set the kinds of SAS's missing values in a column."""
    import numpy as np

    from ._labelled import missing_letters

    of_each = kinds.map(missing_letters(named).get, na_action="ignore")
    column.tags = np.array([f".{kind.upper()}" if isinstance(kind, str) else None for kind in of_each], dtype=object)


def _write_transport_bytes(
    frame: pd.DataFrame, columns: Columns, _variables: Mapping[str, Variable], common: dict[str, Any]
) -> bytes:
    """Write a file of version 5 where it has room for names, titles and texts, otherwise of version 8."""
    import pyreadstat
    from pandas.api.types import is_numeric_dtype

    from ._labelled import capture_written_file

    titles = common["column_labels"].values()
    # limits of version 5 (TS-140): names of 8 characters, titles of 40, texts of 200 bytes
    short = all(len(name) <= 8 and name.isupper() for name in columns) and all(len(title) <= 40 for title in titles)
    texts = (one.values for one in columns.values() if not is_numeric_dtype(one.values.dtype))
    narrow = all(len(str(text).encode()) <= 200 for column in texts for text in column.unique())
    version: Literal[5, 8] = 5 if short and narrow else 8
    return capture_written_file(lambda path: pyreadstat.write_xport(frame, path, **common, file_format_version=version))


def _insert_sas_kinds(content: bytes, columns: Columns) -> bytes:
    """Replace missing numbers in the bytes of a file by those of their kinds."""
    from ..sas_transport import write_missing_kinds

    tags = {name: one.tags for name, one in columns.items() if one.tags is not None}
    return write_missing_kinds(content, tags, len(next(iter(tags.values())))) if tags else content


FORMAT = FileFormat(
    kind="a SAS transport",
    list_title="SAS",
    suffixes=(".xpt",),
    recognises=lambda head: head.startswith(MAGIC),
    read=read_transport,
    uses_subprocess=True,
    write=write_transport,
    keeps_codes=True,
    name_columns=lambda names: derive_valid_names(names, SAS_NAMES),
    media_type="application/x-sas-xport",
    required_modules=("pyreadstat",),
    manual_sentence="Titles; `.A` to `.Z` and `._`. The format has no room for labels of values.",
    order=9,
)
