"""Reading of TOML tables and their keys, with messages that name the place of a wrong key or value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from ..errors import BadInput

DEEPEST_TABLE = 50
MOST_DIGITS = 100
"""Most signs of a number: one of 100 hexadecimal digits still fits a floating-point number."""
MOST_CHARACTERS = 16 << 20
"""Most characters of a text. Files that people write are limited further where they are read."""
# Strings and comments, closed or not: each alternative matches to the end of the text at the latest, so that a text
# without closing quotation marks takes no longer.
_STRINGS = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?(?:\"{3}|\\?\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|\#[^\n]*+""", re.DOTALL
)
_DOTTED = re.compile(r"(?<![\w-])(?:[\w-]++|\"\")(?:[ \t]*+\.[ \t]*+(?:[\w-]++|\"\"))++")
_NUMBER = re.compile(rf"(?<!\w)[0-9][0-9A-Za-z_]{{{MOST_DIGITS},}}+")


def read_toml(text: str, place: str = "recipe") -> dict[str, Any]:
    """Return the table of a TOML text. Raises BadInput at ``place``, with the line where it is not TOML.

    Texts may come from others: one that is too long, too deep or has numbers of too many digits is refused at once.
    """
    _check_limits(text, place)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(place, f"not valid TOML: {error}") from None
    if _is_nested_deeper(table, DEEPEST_TABLE):
        raise BadInput(place, _depth_message(""))
    return table


def _check_limits(text: str, place: str) -> None:
    """Raise BadInput for a text that is too long for TOML of ours, or that the parser would not read in time."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(place, f"has {len(text):,} characters; the most are {MOST_CHARACTERS:,}")
    # The parser's time grows with the square of the parts of a key, and Python refuses integers of over 4,300 digits.
    plain = _STRINGS.sub(_without_content, text)
    if number := _NUMBER.search(plain):
        raise BadInput(
            place, f"a number has more than {MOST_DIGITS} digits{_line_text(plain, number)}; write it shorter"
        )
    for key in _DOTTED.finditer(plain):
        if key[0].count(".") >= DEEPEST_TABLE:
            raise BadInput(place, _depth_message(_line_text(plain, key)))


def _without_content(string: re.Match[str]) -> str:
    """Return an empty string in place of a string, with its line breaks, and nothing in place of a comment."""
    return "" if string[0].startswith("#") else '""' + "\n" * string[0].count("\n")


def _depth_message(line: str) -> str:
    return f"tables and lists are nested deeper than {DEEPEST_TABLE}{line}; write fewer levels"


def _line_text(text: str, match: re.Match[str]) -> str:
    """Return the line of a match, in parentheses."""
    return f" (line {text.count(chr(10), 0, match.start()) + 1})"


def _is_nested_deeper(table: Any, most: int) -> bool:
    """Return whether tables and lists are nested deeper than ``most``."""
    # Level by level rather than by recursion, which deep nesting would exhaust.
    level = [table]
    for _ in range(most):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, dict | list)
        ]
        if not level:
            return False
    return True


def get_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table under a key; empty without the key. Raises BadInput."""
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise BadInput(key, f"must be a table, [{key}]")
    return value


def get_tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the tables under a key, ``[[key]]``. Raises BadInput."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadInput(key, f"must be tables, [[{key}]]")
    return value
