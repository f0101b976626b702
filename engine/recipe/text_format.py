"""Format of a text file with a table, as a recipe's ``[data.format]`` states it.

By default a file is UTF-8, its first line has the names and shows the separator, and only empty cells are missing.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from ..data.declaration import Param, Section
from ..errors import BadInput
from ..wording import count_noun

DELIMITERS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blanks", ":": "colon"}
QUOTES: Final = ('"', "'", "")
DECIMALS: Final = (".", ",")
HEADER_CELLS: Final = ("", "first_missing", "last_missing", "one_more")
THOUSANDS: Final = ("", ",", ".", " ", "'")
NO_CHARACTERS: Final = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7", "mbcs", "oem"}
"""Codecs of Python that are no encodings of a file."""


def _parse_encoding(value: object) -> str:
    """Return the name of a known text encoding. Raises ValueError."""
    try:
        found = codecs.lookup(value) if isinstance(value, str) else None
    except (LookupError, ValueError):
        found = None
    if found is None or found.name in NO_CHARACTERS or not _encodes_text(found):
        raise ValueError(f"{value!r} is no encoding of text; such are utf-8, utf-16, windows-1252, iso-8859-2")
    return str(value)


def _encodes_text(found: codecs.CodecInfo) -> bool:
    """Return whether a codec encodes text as characters of a file."""
    try:
        # Python also registers transforms such as base64 and rot13 as codecs.
        return found.encode("a")[0] in (b"a", "a".encode("utf-16"), "a".encode("utf-32")) or found.name.startswith(
            "utf"
        )
    except (TypeError, ValueError, UnicodeError):
        return False


def _parse_one_of(known: Iterable[str]) -> Callable[[object], str]:
    """Return a function that accepts only these texts."""

    def parse(value: object) -> str:
        """Return the text. Raises ValueError where it is not one of them."""
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, known))}")
        return value

    return parse


@dataclass(frozen=True)
class TextFormat(Section):
    """Format of a text file.

    delimiter: " " is any run of blanks and tabs
    thousands: " " is any kind of blank, "'" any apostrophe
    header: False where no line has names, and the columns are called column_1, column_2, …
    header_cells: how the line of names differs from the rows: "first_missing" as R writes names of rows, "last_missing"
        where each row ends with a separator, "one_more" where only the line of names does
    skip: lines above the table
    skip_below: records below the names that are none: questions, units, import codes
    footer: lines below the table: totals, sources
    widths: characters of each column, where these and no separator say where a cell ends
    names: names of the columns, where no line of the file has them
    trim: whether blanks around a cell are ignored
    missing: texts that stand for a missing value in any column; an empty cell always does
    """

    example: ClassVar[str] = '{ delimiter = ";", decimal = "," }'

    encoding: Annotated[str, Param("such as utf-8, windows-1252", parse=_parse_encoding)] = "utf-8"
    delimiter: Annotated[str, Param("what separates cells", parse=_parse_one_of(DELIMITERS), always_written=True)] = ","
    quote: Annotated[str, Param("what stands around cells", parse=_parse_one_of(QUOTES))] = '"'
    decimal: Annotated[str, Param("the decimal sign", parse=_parse_one_of(DECIMALS))] = "."
    thousands: Annotated[str, Param("what groups thousands", parse=_parse_one_of(THOUSANDS))] = ""
    header: Annotated[bool, Param("whether the first line holds names")] = True
    skip: Annotated[int, Param("lines above the table", ge=0, le=1000)] = 0
    trim: Annotated[bool, Param("whether blanks around cells do not count")] = False
    missing: Annotated[tuple[str, ...], Param("what stands for no value")] = ()
    header_cells: Annotated[
        str, Param("how the line of names differs from the rows", parse=_parse_one_of(HEADER_CELLS))
    ] = ""
    skip_below: Annotated[int, Param("lines below the names that are no records", ge=0, le=100)] = 0
    footer: Annotated[int, Param("lines below the table", ge=0, le=1000)] = 0
    widths: Annotated[
        tuple[int, ...], Param("characters of each column, where no separator stands between them", ge=1, le=10_000)
    ] = ()
    names: Annotated[tuple[str, ...], Param("names of the columns, where no line has them")] = ()

    @classmethod
    def from_table(cls, table: object, place: str = "data.format") -> TextFormat:
        """Create the format that a recipe describes. Raises BadInput at the key."""
        return cls.read_section(table, place)

    def check_fields(self, place: str) -> None:
        """Raise BadInput where one sign has two meanings."""
        if self.thousands == self.decimal:
            raise BadInput(f"{place}.thousands", f'"{self.thousands}" is the decimal sign; say which of the two it is')
        if self.decimal == self.delimiter and not self.quote:
            raise BadInput(f"{place}.decimal", f'"{self.decimal}" separates the columns; say which of the two it is')
        for key in ("header_cells", "skip_below"):
            if getattr(self, key) and not self.header:
                raise BadInput(f"{place}.{key}", "a file without names has no line of names; leave it out")

        if self.widths and (self.delimiter != "," or self.header_cells):
            key = "header_cells" if self.header_cells else "delimiter"
            raise BadInput(f"{place}.{key}", "with widths no sign separates the cells; leave it out")
        if self.names and self.header:
            raise BadInput(f"{place}.names", "a line of the file has the names; set header = false, or leave them out")
        if len(set(self.names)) < len(self.names):
            raise BadInput(f"{place}.names", "a name stands twice; give each column one of its own")
        if self.names and self.widths and len(self.names) != len(self.widths):
            raise BadInput(
                f"{place}.names",
                f"{count_noun(len(self.names), 'name')} for {count_noun(len(self.widths), 'width')}: give one for each",
            )

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", tuple(dict.fromkeys(self.missing)))
