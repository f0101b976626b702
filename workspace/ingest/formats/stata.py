"""Files of Stata (.dta), whose kinds of missing value are .a to .z. Untrusted: the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.date_forms import STATA_FORMAT

from ..file_formats import FileFormat, OutputTable, ReadRequest
from ._valid_names import STATA_NAMES, derive_valid_names

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Variable

    from ..raw_tables import RawTable
    from ..sources import SourceFile
    from ._labelled import Columns, FileRules, FormatUse, WrittenColumn

EPOCH = "1960-01-01"
# the first byte of files of Stata 12 and before is the number of the format, 103 to 115
_OLD_VERSIONS = range(0x67, 0x74)
# the byte 0x11 is the length of the time of writing, 17 characters
_STAMP = re.compile(rb"(?<=<timestamp>\x11)[ \d]\d [A-Z][a-z]{2} \d{4} \d\d:\d\d")


def is_stata(head: bytes) -> bool:
    """Return whether bytes are the beginning of a Stata file, of version 13 or later or of an older one."""
    old = len(head) > 4 and head[0] in _OLD_VERSIONS and head[1] in (1, 2) and head[2:4] == b"\x01\x00"
    return old or head.startswith(b"<stata_dta>")


def _use_of_stata_format(form: str) -> FormatUse:
    """Return what a format shows: days, moments, or other numbers of time; empty for formats of other programs."""
    if not STATA_FORMAT.fullmatch(form):
        return ""
    return {"day": "day", "millisecond": "moment"}.get(_stata_date_unit(form), "number")  # type: ignore[return-value]


def _stata_date_unit(form: str) -> str:
    """Return the unit in which a column of this format counts from the epoch; empty where the column has no dates."""
    plain = form.removeprefix("%").removeprefix("-")
    if plain.startswith(("td", "d")):
        return "day"
    # a %tc format without a day or a year shows a time of day, not a date
    return "millisecond" if plain.startswith("tc") and (plain == "tc" or set("YyDd") & set(plain[2:])) else ""


def read_stata(source: SourceFile, _asked: ReadRequest | None = None) -> RawTable:
    """Read the table of a Stata file. Raises what pyreadstat raises."""
    import pyreadstat

    from ._statistical import StatisticalProgram, read_statistical_file

    return read_statistical_file(
        source.content,
        StatisticalProgram(
            reader=pyreadstat.read_dta,
            epoch=EPOCH,
            unit=_stata_date_unit,
            shown_format=lambda form: form if _use_of_stata_format(form) else "",
        ),
    )


def write_stata(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as a Stata file. Raises NotReleased where the format has no room for it."""
    from ._labelled import FileRules, write_labelled_file

    rules = FileRules(
        title=FORMAT.title,
        names=STATA_NAMES,
        epoch=EPOCH,
        day=("%td", 1.0),
        moment=("%tc", 1000.0),
        longest_title=80,
        longest_label=300,
        longest_text=2_045,
        longest_note=60,
        stamps=(_STAMP, b"01 Jan 1980 00:00"),
        with_kinds=_add_stata_letters,
        write=_write_stata_bytes,
        read=read_stata,
        use_of_format=_use_of_stata_format,
    )
    return write_labelled_file(out, rules)


def _add_stata_letters(
    column: WrittenColumn, variable: Variable, kinds: pd.Series, named: Sequence[str], rules: FileRules
) -> None:
    """Put letters in place of missing values that have a kind, with the labels of these kinds."""
    from ._labelled import missing_letters, truncate_to_bytes

    letters = missing_letters(named)
    of_each = kinds.map(letters.get, na_action="ignore")
    # SAS's ._ has no counterpart in Stata
    own = {kind: letter for kind, letter in letters.items() if letter != "_"}
    column.letters = sorted(own.values())
    labels = {letter: variable.labels.get(kind) for kind, letter in own.items()}
    column.labels |= {
        letter: truncate_to_bytes(label, rules.longest_label) for letter, label in labels.items() if label
    }
    tagged = of_each.where(of_each.isin(column.letters))
    column.values = column.values.astype("object").where(tagged.isna().to_numpy(), tagged)


def _write_stata_bytes(
    frame: pd.DataFrame, columns: Columns, _variables: Mapping[str, Variable], common: dict[str, Any]
) -> bytes:
    """Write the bytes of a Stata file with pyreadstat."""
    import pyreadstat

    from ._labelled import capture_written_file

    letters = {name: one.letters for name, one in columns.items() if one.letters}
    # Stata can label whole numbers only
    whole = {
        name: one.labels
        for name, one in columns.items()
        if one.labels and not any(isinstance(code, float) for code in one.labels)
    }
    return capture_written_file(
        lambda path: pyreadstat.write_dta(
            frame, path, **common, version=14, variable_value_labels=whole, missing_user_values=letters
        )
    )


FORMAT = FileFormat(
    kind="a Stata",
    suffixes=(".dta",),
    recognises=is_stata,
    read=read_stata,
    uses_subprocess=True,
    write=write_stata,
    keeps_codes=True,
    name_columns=lambda names: derive_valid_names(names, STATA_NAMES),
    media_type="application/x-stata-dta",
    required_modules=("pyreadstat",),
    manual_sentence="Labels; `.a` to `.z`.",
    order=7,
)
