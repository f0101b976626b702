"""How a text file writes a table: what a recipe's ``[data.format]`` says and a reader obeys.

Where a recipe says nothing, a file is read as one of UTF-8 whose separator its first line shows, whose first line holds the names, and of
which only empty cells are missing.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from ..data.toml import known_keys
from ..errors import BadInput

DELIMITERS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blanks", ":": "colon"}
QUOTES: Final = ('"', "'", "")
DECIMALS: Final = (".", ",")
THOUSANDS: Final = ("", ",", ".", " ", "'")
NO_CHARACTERS: Final = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7", "mbcs", "oem"}
"""Codecs of Python that are no encodings of a file."""


@dataclass(frozen=True)
class TextFormat:
    """How a file of text is read.

    ``delimiter`` " " is any run of blanks and tabs. ``thousands`` " " is any kind of blank, "'" any apostrophe. ``header`` False: no line holds
    names, and the columns are called column_1, column_2, … ``skip`` lines stand before the table. ``trim``: blanks around a cell do
    not count. ``missing``: what stands, in any column, for no value; an empty cell always does.
    """

    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    thousands: str = ""
    header: bool = True
    skip: int = 0
    trim: bool = False
    missing: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, table: object, place: str = "data.format") -> TextFormat:
        """The format that a recipe describes. Raises BadInput at the key."""
        if not isinstance(table, Mapping):
            raise BadInput(place, 'must be a table, such as { delimiter = ";", decimal = "," }')
        known_keys(table, tuple(field.name for field in fields(cls)), place)
        read: dict[str, Callable[[object, str], Any]] = {
            "encoding": _encoding,
            "delimiter": lambda value, at: _one_of(value, tuple(DELIMITERS), at),
            "quote": lambda value, at: _one_of(value, QUOTES, at),
            "decimal": lambda value, at: _one_of(value, DECIMALS, at),
            "thousands": lambda value, at: _one_of(value, THOUSANDS, at),
            "header": _flag,
            "skip": _count,
            "trim": _flag,
            "missing": _codes,
        }
        found = cls(**{key: read[key](value, f"{place}.{key}") for key, value in table.items()})
        if found.thousands == found.decimal:
            raise BadInput(f"{place}.thousands", f'"{found.thousands}" is the decimal sign; say which of the two it is')
        if found.decimal == found.delimiter and not found.quote:
            raise BadInput(f"{place}.decimal", f'"{found.decimal}" separates the columns; say which of the two it is')
        return found

    def to_table(self) -> dict[str, Any]:
        """The ``[data.format]`` table, without what is left at its default; the delimiter is always said."""
        default = TextFormat()
        table: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "delimiter" or value != getattr(default, field.name):
                table[field.name] = list(value) if isinstance(value, tuple) else value
        return table


def _encoding(value: object, place: str) -> str:
    try:
        found = codecs.lookup(value) if isinstance(value, str) else None
    except (LookupError, ValueError):
        found = None
    if found is None or found.name in NO_CHARACTERS or not _encodes_text(found):
        raise BadInput(place, f"{value!r} is no encoding of text; such are utf-8, utf-16, windows-1252, iso-8859-2")
    return str(value)


def _encodes_text(found: codecs.CodecInfo) -> bool:
    try:
        return found.encode("a")[0] in (b"a", "a".encode("utf-16"), "a".encode("utf-32")) or found.name.startswith(
            "utf"
        )
    except (TypeError, ValueError, UnicodeError):
        return False


def _one_of(value: object, known: tuple[str, ...], place: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise BadInput(place, f"{value!r} is none of {', '.join(map(repr, known))}")
    return value


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(place, f"{value!r} must be true or false")
    return value


def _count(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1000:
        raise BadInput(place, f"{value!r} must be a number of lines, from 0 to 1000")
    return value


def _codes(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(code, str) for code in value):
        raise BadInput(place, 'must be a list of texts, such as ["?", "NA"]')
    return tuple(dict.fromkeys(value))
