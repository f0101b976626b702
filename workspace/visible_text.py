"""Text of strangers in files that others open: nothing in it is hidden, and no cell of a table is a formula.

Titles, labels, levels and names come from untrusted files. Every text file that leaves passes its texts through ``replace_hidden``, every
cell of a CSV file through ``plain_cell``.
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
_DROPPED = "\u00ad\u034f\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Joiners, soft hyphens and variation selectors, which some scripts use: the text reads the same without them."""
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Letters to Unicode that show nothing."""
_NO_CHARACTER = "\ufffe\uffff\U000e0000-\U000e0fff"
_ANY_DROPPED = re.compile(f"[{_DROPPED}]")
_ANY_HIDDEN = re.compile(f"[{_BLANK_LETTERS}{_NO_CHARACTER}]")
_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
_DELIMITED = re.compile(r"([;,|])")
_SIGNS = "=+-@\u2212"
_NUMBER = r"[+\-\u2212]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_HARMLESS = re.compile(rf"(?:[+\-\u2212]|{_NUMBER}(?:\s*\.\.\s*{_NUMBER})?)", re.IGNORECASE)
"""A number, two with points between them, or a sign alone."""
_END_OF_INTERVAL = re.compile(rf"(?:{_NUMBER}|[+\-\u2212](?:inf|\u221e))\s*[)\]}}]*", re.IGNORECASE)


def replace_hidden(text: str) -> str:
    """Return ``text`` with U+FFFD in place of characters that have no look of their own, such as control characters and direction marks.

    Line ends and tabs stay. Zero-width joiners, soft hyphens and variation selectors are left out.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = _ANY_HIDDEN.sub(REPLACEMENT, _ANY_DROPPED.sub("", text))
    if shown.isprintable():
        return shown
    return "".join(REPLACEMENT if is_hidden(c) and c not in "\n\t" else c for c in shown)


def is_hidden(character: str) -> bool:
    """Return whether a character commands, turns or hides text in place of being read; line ends and tabs are among them."""
    return (
        unicodedata.category(character) in _CATEGORIES
        or _ANY_DROPPED.match(character) is not None
        or _ANY_HIDDEN.match(character) is not None
    )


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet program may take a cell with this text, or a part of it, for a formula; a number such as -1 is not a formula."""
    line = replace_hidden(_join_lines(text))
    return _escape_formulas(line) != line


def plain_cell(text: str) -> str:
    """Return a text as a cell of a CSV file: ``replace_hidden``, in one line, with an apostrophe before a would-be formula.

    The apostrophe is also put behind a comma, semicolon or stroke inside the text, where a program that takes another sign for the
    delimiter splits cells. Numbers stay unchanged, and so do the ends of intervals.
    """
    return _escape_formulas(replace_hidden(_join_lines(text)))


def leading_cell(text: str) -> str:
    """Return ``plain_cell`` for the first cell of a line, with an apostrophe before a number or a sign alone too."""
    # A program that takes another sign for the delimiter reads the whole line as this cell: more than a number stands behind the sign.
    cell = plain_cell(text)
    return f"'{cell}" if _begins_formula(cell) else cell


def _join_lines(text: str) -> str:
    return text if text.isprintable() else re.sub(r"\r\n|[\r\n\t]", " ", text)


def _escape_formulas(line: str) -> str:
    if _HARMLESS.fullmatch(line.strip()):
        return line
    first, *rest = _DELIMITED.split(line)
    parts = [f"'{first}" if _begins_formula(first) else first]
    for delimiter, part in zip(rest[::2], rest[1::2], strict=True):
        apart = _begins_formula(part) and not _END_OF_INTERVAL.fullmatch(part.strip())
        parts += [delimiter, f"'{part}" if apart else part]
    return "".join(parts)


def _begins_formula(text: str) -> bool:
    """Return whether the first sign of a text, behind blanks and quotes, begins a formula, also in one of its wide or small forms."""
    first = text.lstrip(' "\u00a0')[:1]
    return first != "" and unicodedata.normalize("NFKC", first)[:1] in _SIGNS


def replace_unprintable(text: str) -> str:
    """Return ``text`` with white space as spaces and every other unprintable character as ``?``: names come from untrusted files."""
    if text.isprintable():
        return text
    return "".join(" " if c.isspace() else c if c.isprintable() else "?" for c in text)


def replace_unprintable_in_lines(text: str) -> str:
    """Return ``text`` in its lines, unprintable characters of each replaced."""
    return text if text.isprintable() else "\n".join(map(replace_unprintable, text.split("\n")))
