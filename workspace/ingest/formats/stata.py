"""Files of Stata (.dta): kinds of missing value are .a to .z. Untrusted: the bytes."""

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

EPOCH = "1960-01-01"
_OLD_VERSIONS = range(0x67, 0x74)
_STAMP = re.compile(rb"(?<=<timestamp>\x11)[ \d]\d [A-Z][a-z]{2} \d{4} \d\d:\d\d")


def recognised(head: bytes) -> bool:
    """Whether a file of version 13 or later begins so, or one of an older version."""
    old = len(head) > 4 and head[0] in _OLD_VERSIONS and head[1] in (1, 2) and head[2:4] == b"\x01\x00"
    return old or head.startswith(b"<stata_dta>")


def _unit(form: str) -> str:
    plain = form.removeprefix("%").removeprefix("-")
    if plain.startswith(("td", "d")):
        return "day"
    return "millisecond" if plain.startswith("tc") and (plain == "tc" or set("YyDd") & set(plain[2:])) else ""


def read(source: Source, _asked: Asked | None = None) -> RawTable:
    import pyreadstat

    from ._statistical import Program, read_statistical

    return read_statistical(source.content, Program(reader=pyreadstat.read_dta, epoch=EPOCH, unit=_unit))


def write(out: Outgoing) -> bytes:
    from ._labelled import Rules, labelled_file

    rules = Rules(
        title=FORMAT.title,
        epoch=EPOCH,
        day=("%td", 1.0),
        moment=("%tc", 1000.0),
        longest_title=80,
        longest_label=300,
        longest_text=2_045,
        longest_note=60,
        stamps=(_STAMP, b"01 Jan 1980 00:00"),
        with_kinds=_with_letters,
        write=_written,
        read=read,
    )
    return labelled_file(out, rules)


def _with_letters(column: Column, variable: Variable, kinds: pd.Series, named: Sequence[str], rules: Rules) -> None:
    from ._labelled import cut, letters_of

    letters = letters_of(named)
    of_each = kinds.map(letters.get, na_action="ignore")
    own = {kind: letter for kind, letter in letters.items() if letter != "_"}
    column.letters = sorted(own.values())
    labels = {letter: variable.labels.get(kind) for kind, letter in own.items()}
    column.labels |= {letter: cut(label, rules.longest_label) for letter, label in labels.items() if label}
    tagged = of_each.where(of_each.isin(column.letters))
    column.values = column.values.astype("object").where(tagged.isna().to_numpy(), tagged)


def _written(
    frame: pd.DataFrame, columns: Columns, _variables: Mapping[str, Variable], common: dict[str, Any]
) -> bytes:
    import pyreadstat

    from ._labelled import into_bytes

    letters = {name: one.letters for name, one in columns.items() if one.letters}
    whole = {
        name: one.labels
        for name, one in columns.items()
        if one.labels and not any(isinstance(code, float) for code in one.labels)
    }
    return into_bytes(
        lambda path: pyreadstat.write_dta(
            frame, path, **common, version=14, variable_value_labels=whole, missing_user_values=letters
        )
    )


FORMAT = Format(
    kind="a Stata",
    suffixes=(".dta",),
    recognised=recognised,
    read=read,
    subprocess=True,
    write=write,
    keeps_codes=True,
    media_type="application/x-stata-dta",
    needs=("pyreadstat",),
    manual="Labels; `.a` to `.z`.",
    order=7,
)
