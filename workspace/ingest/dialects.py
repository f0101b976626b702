"""Detection of how a text file writes its table: encoding, separator, quotes, header, decimal sign, missing codes.

Each setting comes with a reason. A setting that the file does not determine is marked as doubtful and lists the
alternatives, so that the owner of the file decides before anything is stored.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.recipe.text_format import DELIMITERS, TextFormat
from sfumato.engine.wording import count_noun

from .date_votes import looks_like_date
from .number_signs import WHOLE_NUMBER, detect_number_signs, looks_like_number

SAMPLE_BYTES = 1 << 18
SAMPLE_ROWS = 400
MAX_PREAMBLE_ROWS = 30
ROW_NAMES = "row_names"
"""Name of the first column where the line of names has none for it, as R writes tables."""
MAX_LINES_BELOW = 3
MIN_ROWS_TO_COMPARE = 10
MAX_FOOTER_LINES = 40
MIN_ROWS_ABOVE_NOTE = 3
MIN_ROWS_OF_NOTES = 2
"""Fewest rows of words with gaps above a line of names that are taken for notes."""
MAX_NOTE_LENGTH = 40
"""Most characters of a line below a table that are shown."""
MAX_NOTES = 3
MAX_FIXED_LINE = 2_000
"""Most characters of a line in which columns of fixed widths are looked for."""
MIN_VALUES_OF_COLUMN = 5
MOSTLY = 0.9
"""Share of the lines that have one length where columns have fixed widths."""
NOTE_SIGNS = ":*¹²³©"
MOST_WORDS_OF_NAME = 3
OTHER_COLUMNS = "what stands there has other columns than the table"
TOTAL_WORDS = re.compile(
    r"(?:grand |sub)?totals?|all|sum|gesamt|insgesamt|summe|ensemble|totaal|totale|suma|razem", re.IGNORECASE
)
# the mark of UTF-32-LE begins with that of UTF-16-LE, so it is tried first
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
EIGHT_BIT_ENCODINGS = ("windows-1252", "iso-8859-15", "windows-1250", "cp850", "mac-roman")
"""Encodings tried for text that is not UTF-8; of equally likely ones the first is chosen."""
MISSING_WORDS = ("?", "NA", "N/A", "#N/A", "n/a", "na", "NULL", "null", "NaN", "nan", "None", "missing", ".", "-", "--")
AMBIGUOUS_MISSING_WORDS = {"None", "missing", "na", "-", "."}
"""Words that count as missing codes only in columns whose other values are numbers or dates."""

_DATE_PATTERN = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?"
)
_WORD_PATTERN = re.compile(r"[\w][\w .()&/#@%+*'’!?°-]*", re.UNICODE)
_COMMON_NON_ASCII = frozenset("äöüÄÖÜßéèêëàâáãåæçñóòôõøíìîïúùûýœÉÈÀÁÂÅÆÇÑÓÔØÍÎÚ€°§£’‘“”–«»ąćęłńśźżŁŚŻčďěňřšťůžČŘŠŽőűŐŰ")
RowsAndStarts = tuple[list[list[str]], list[int]]


@dataclass(frozen=True, slots=True)
class SettingReason:
    """Value of a key of the text format, with the reason for it.

    key: key of ``[data.format]``
    value: value found, as text
    explanation: reason, in words
    alternatives: other possible values; where there are any, the file does not settle the key
    """

    key: str
    value: str
    explanation: str
    alternatives: tuple[str, ...] = ()

    @property
    def is_doubtful(self) -> bool:
        """Return whether the file allows other values of the key."""
        return bool(self.alternatives)


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    """Detected format of a text file, the reasons for it, and the first rows.

    format: detected format
    reasons: one for each key
    header: names of the columns, (k,)
    rows: first rows, of k cells each
    is_default: a reader that is given no format reads the same
    """

    format: TextFormat
    reasons: tuple[SettingReason, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_default: bool

    @property
    def doubtful_settings(self) -> tuple[SettingReason, ...]:
        """Return the settings that the file does not determine."""
        return tuple(reason for reason in self.reasons if reason.is_doubtful)


def detect_text_format(
    content: bytes, given_keys: Mapping[str, Any] | None = None, text_class: str = "", tail: bytes = b""
) -> DetectedFormat:
    """Detect how bytes write a table; keys of ``[data.format]`` that the owner has set are taken as given.

    Where ``content`` is only the beginning of a file, ``text_class`` describes the whole file: "ascii", "utf-8" or
    "other". ``tail`` are the last lines of the file, among which lines below the table are looked for. A key that cannot be detected keeps its default and is marked as doubtful. Raises BadInput for a wrong key.
    """
    asked = TextFormat.from_table(given_keys or {})
    known = {key: _given_setting(key, getattr(asked, key)) for key in given_keys or {}}
    encoding = known.get("encoding") or _detect_encoding(content, text_class or _text_class(content))
    text = _decode_sample(content, encoding.value)
    line = _match_separator_line(text)
    first = 0 if line is None else 1
    if "skip" in known:
        first, line = int(known["skip"].value), None
    # as text_streams skips lines: other signs that Python counts as ends of lines stay within cells
    lines = "\n".join(text.split("\n")[first:])
    given = (known["delimiter"].value if "delimiter" in known else "") or (line.group(1) if line else "")
    fixed = known.get("widths")
    if fixed is not None and asked.widths:
        delimiter, quote = (
            SettingReason("delimiter", ",", "widths say where a cell ends"),
            SettingReason("quote", '"', "as usual"),
        )
        rows, starts = _split_sample_by_widths(lines, asked.widths)
    else:
        delimiter, quote, rows, starts = _detect_separator(
            lines, given, known["quote"].value if "quote" in known else None
        )
        fixed = None if given else _propose_widths(lines, delimiter.value, rows)
    place = _place_table(rows, known, asked.names)
    header, uneven, below, body = place.header, place.uneven, place.below, place.body
    preamble, names = place.preamble, place.names
    skip = first + (starts[preamble] if preamble else 0)
    footer = known.get("footer") or _detect_footer(
        tail, encoding.value, delimiter.value, quote.value, len(names), asked.widths
    )
    columns = place.columns
    codes, missing = _missing_codes(columns, names, asked, known)
    decimal, thousands = _detect_number_signs(columns, codes)
    blanks = delimiter.value != " " and lines.count(f"{delimiter.value} ") > lines.count(delimiter.value) / 2
    trim = known.get("trim") or SettingReason(
        "trim", "yes" if _has_blanks_around(body) or blanks else "no", "cells have blanks around them"
    )
    signs = (known.get("decimal") or decimal, known.get("thousands") or thousands)
    split_by = [known.get("delimiter") or delimiter, known.get("quote") or quote]
    if fixed is not None:
        split_by = [fixed] if asked.widths else [fixed, *split_by]
    reasons = [encoding, *split_by, header, *signs, missing]
    if skip:
        why = OTHER_COLUMNS if preamble else "the line sep= is Excel's"
        reasons.append(known.get("skip") or SettingReason("skip", str(skip), why))
    if trim.value == "yes":
        reasons.append(trim)
    reasons += [reason for reason in (uneven, below, footer) if reason is not None and reason.value not in ("", "0")]
    found = TextFormat(
        encoding.value, delimiter.value, quote.value, signs[0].value, signs[1].value, header.value == "yes", skip, trim.value == "yes", codes,
        "" if uneven is None else uneven.value, int(below.value), int(footer.value), asked.widths, asked.names,
    )  # fmt: skip
    shown = tuple(tuple(cell.strip() if found.trim else cell for cell in row) for row in body[:20])
    # what text_files reads without a format: the separator that is most frequent in the first line
    one_line = not any("\n" in cell for cell in place.first_row)
    usual = (
        one_line
        and not known
        and not skip
        and found == TextFormat(delimiter=max(",\t;|", key=lines.partition("\n")[0].count))
    )
    return DetectedFormat(found, tuple(reasons), tuple(name.strip() for name in names), shown, usual)


def detect_sheet_format(rows: Sequence[Sequence[str]], given_keys: Mapping[str, Any] | None = None) -> DetectedFormat:
    """Detect which rows of a sheet are a table, and which of its texts are missing codes.

    ``rows`` are the cells of all rows as texts, empty ones as empty text; of a long sheet, those of its beginning and
    its end suffice. Keys of ``[data.format]`` that the owner has set are taken as given. Raises BadInput for a wrong
    key.
    """
    asked = TextFormat.from_table(given_keys or {})
    known = {key: _given_setting(key, getattr(asked, key)) for key in given_keys or {}}
    first = int(known["skip"].value) if "skip" in known else 0
    starts = [number for number, row in enumerate(rows) if number >= first and any(map(str.strip, row))]
    width = _usual_width([rows[number] for number in starts])
    even = [[*row, *[""] * (width - len(row))][:width] for row in rows]
    table = [even[number] for number in starts]
    place = _place_table(table[:SAMPLE_ROWS], known, asked.names)
    top = starts[place.preamble] if starts else 0
    footer = known.get("footer") or _count_footer(even[max(top, len(even) - SAMPLE_ROWS) :], len(place.names))
    end = len(even) - int(footer.value)
    # a total or a note is no value of a column
    ended = [row for number, row in zip(starts, table, strict=True) if number < end]
    place = _place_table(ended[:SAMPLE_ROWS], known, asked.names)
    skip = first or (top if place.preamble else 0)
    codes, missing = _missing_codes(place.columns, place.names, asked, known)
    skipped = known.get("skip") or SettingReason("skip", str(skip), OTHER_COLUMNS)
    reasons = (place.header, missing, *(one for one in (skipped, place.below, footer) if one.value != "0"))
    found = TextFormat(
        header=place.header.value == "yes",
        skip=skip,
        missing=codes,
        skip_below=int(place.below.value),
        footer=int(footer.value),
        names=asked.names,
    )
    shown = tuple(map(tuple, place.body[:20]))
    return DetectedFormat(found, reasons, tuple(place.names), shown, not known and found == TextFormat())


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of columns that rows of a sheet span, without cells far to the right of a single row."""
    widths = Counter(max((j for j, cell in enumerate(row, 1) if cell.strip()), default=0) for row in rows)
    several = [width for width, count in widths.items() if count > 1]
    return max(several or widths, default=0)


@dataclass(frozen=True, slots=True)
class _TablePlace:
    """Place of a table among the first rows of a file.

    preamble: rows above the table
    header, uneven, below: settings of the line of names, of its number of cells, and of the lines below it
    first_row: first row of the table
    names: distinct names of its columns, (k,)
    body: its records, those among the first rows
    """

    preamble: int
    header: SettingReason
    uneven: SettingReason | None
    below: SettingReason
    first_row: Sequence[str]
    names: Sequence[str]
    body: list[list[str]]

    @property
    def columns(self) -> list[list[str]]:
        """Return the cells of each column, without blanks around them."""
        return [[row[j].strip() for row in self.body if j < len(row)] for j in range(len(self.names))]


def _place_table(rows: list[list[str]], known: Mapping[str, SettingReason], given_names: Sequence[str]) -> _TablePlace:
    """Find the table among the first rows of a file, none of them empty; settings in ``known`` are taken as given."""
    preamble = 0 if "skip" in known else _preamble_rows(rows)
    uneven = known.get("header_cells")
    if uneven is None and "header" not in known:
        preamble, uneven = _detect_header_cells(rows, preamble, is_fixed="skip" in known)
    table = rows[preamble:]
    if uneven is not None and uneven.value:
        header = SettingReason("header", "yes", "a line of words stands above the rows")
        table = [_names_for_columns(table[0], uneven.value), *table[1:]]
    else:
        header = known.get("header") or _detect_header(table)
    body = table[1:] if header.value == "yes" else table
    names = (
        table[0] if body is not table and table else [f"column_{i + 1}" for i in range(len(table[0]) if table else 0)]
    )
    names = list(given_names) or number_repeated_names([name.strip() for name in names])
    below = known.get("skip_below") or _detect_lines_below(body if header.value == "yes" else [])
    return _TablePlace(preamble, header, uneven, below, table[0] if table else [], names, body[int(below.value) :])


def _missing_codes(
    columns: Sequence[Sequence[str]], names: Sequence[str], asked: TextFormat, known: Mapping[str, SettingReason]
) -> tuple[tuple[str, ...], SettingReason]:
    """Return the missing codes of any column: those that the owner has set, else those that are found."""
    return (asked.missing, known["missing"]) if "missing" in known else _detect_missing_codes(columns, names)


def _given_setting(key: str, value: object) -> SettingReason:
    """Return a setting that the owner has made, with its value as text."""
    text = (
        "yes"
        if value is True
        else "no"
        if value is False
        else ", ".join(map(str, value))
        if isinstance(value, tuple)
        else str(value)
    )
    return SettingReason(key, text, "as you say")


def _text_class(content: bytes) -> str:
    """Classify bytes as "ascii", "utf-8" or "other"."""
    if content.isascii():
        return "ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "other"
    return "utf-8"


def _detect_encoding(content: bytes, text_class: str) -> SettingReason:
    """Detect the encoding from a byte-order mark, from bytes that are 0, or from the class of the text."""
    for mark, name in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return SettingReason("encoding", name, "the file begins with its byte-order mark")
    some = content[:SAMPLE_BYTES]
    # in UTF-16 most characters of Western text have one byte that is 0, always at the same side
    zeros = [some[i::2].count(0) / max(1, len(some[i::2])) for i in (0, 1)]
    if max(zeros) > 0.3 and min(zeros) < 0.05:
        name = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        text = some[: len(some) // 2 * 2].decode(name, "replace")
        # binary files have zeros too, but decode to unprintable characters
        if len(some) >= 16 and sum(sign.isprintable() or sign in "\t\r\n" for sign in text) > 0.95 * len(text):
            return SettingReason("encoding", name, "every other byte is 0")
    if text_class == "other":
        return _detect_eight_bit_encoding(content)
    return SettingReason(
        "encoding",
        "utf-8",
        "plain ASCII" if text_class == "ascii" else "all of it is valid UTF-8, which other text hardly ever is",
    )


def _detect_eight_bit_encoding(content: bytes) -> SettingReason:
    """Choose the eight-bit encoding under which most non-ASCII letters are common ones.

    The setting is always doubtful, since no eight-bit encoding can be excluded.
    """
    # only bytes above 127 and the letters around them tell the encodings apart
    high = [m.span() for m in re.finditer(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?", content[: 4 * SAMPLE_BYTES])]
    pieces = [content[a:b] for a, b in high[:2000]]

    def likeness(name: str) -> float:
        """Return the share of non-ASCII characters that are common letters or signs; -1 if the bytes are no text in it."""
        good = total = 0
        for piece in pieces:
            try:
                text = piece.decode(name)
            except UnicodeDecodeError:
                return -1.0
            for sign in text:
                if ord(sign) > 127:
                    total += 1
                    good += sign in _COMMON_NON_ASCII
        return good / max(1, total)

    scores = {name: likeness(name) for name in EIGHT_BIT_ENCODINGS}
    best = max(EIGHT_BIT_ENCODINGS, key=lambda name: scores[name])
    others = tuple(name for name in EIGHT_BIT_ENCODINGS if name != best and scores[name] >= 0)
    return SettingReason("encoding", best, "not UTF-8; most letters beyond ASCII are usual ones in it", others)


def _decode_sample(content: bytes, encoding: str) -> str:
    """Decode the beginning of a file, with line feeds as line ends and without a cut last line."""
    size = SAMPLE_BYTES * (4 if encoding.startswith("utf-32") else 2 if encoding.startswith("utf-16") else 1)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(content[:size], final=len(content) <= size)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(content) > size and "\n" in text:
        text = text[: text.rindex("\n") + 1]  # the last line may be cut
    return text


def split_fixed_widths(line: str, widths: Sequence[int]) -> list[str]:
    """Return the cells of a line whose columns have these widths, without blanks around them."""
    ends = list(itertools.accumulate(widths))
    return [line[end - width : end].strip() for end, width in zip(ends, widths, strict=True)]


def _split_sample_by_widths(text: str, widths: Sequence[int]) -> RowsAndStarts:
    """Return the first rows of a table of fixed widths, and the line of the text on which each begins."""
    numbered = ((number, line) for number, line in enumerate(text.split("\n")) if line.strip())
    some = list(itertools.islice(numbered, SAMPLE_ROWS))
    return [split_fixed_widths(line, widths) for _, line in some], [number for number, _ in some]


def _propose_widths(text: str, delimiter: str, rows: Sequence[Sequence[str]]) -> SettingReason | None:
    """Return the doubt that a text has columns of fixed widths, with the widths that it shows; None for other texts.

    Such lines are equally long. Either blanks split them into different numbers of cells, or in one of the cells that
    blanks split digits meet letters at the same place in every line, both of which vary by themselves.
    """
    if delimiter not in (" ", ","):
        return None
    sample = [line for line in text.split("\n") if line.strip()][1 : SAMPLE_ROWS + 1]
    long = Counter(map(len, sample)).most_common(1)[0][0] if sample else 0
    # a title and a source may have another length
    lines = [line for line in sample if len(line) == long]
    if len(lines) < max(MIN_ROWS_TO_COMPARE, MOSTLY * len(sample)) or not 1 < long <= MAX_FIXED_LINE:
        return None
    if delimiter == "," and max(map(len, rows)) > 1:
        return None
    signs = [frozenset(map(_class_of_sign, column)) for column in zip(*lines, strict=True)]
    starts = [0, *(place for place in range(1, long) if _begins_cell(signs, place))]
    widths = [end - start for start, end in zip(starts, [*starts[1:], long], strict=True)]
    glued = any(_meet_digits_and_letters(lines, signs, place) for place in starts[1:])
    # a name in quotes may have blanks within
    uneven = (
        delimiter == " " and not any('"' in line for line in lines) and len({len(line.split()) for line in lines}) > 1
    )
    if len(widths) < 2 or not (glued or uneven):
        return None
    why = "digits and letters meet at the same places" if glued else "blanks split them into different numbers of cells"
    value = ",".join(map(str, widths))
    return SettingReason("widths", "", f"each line has {long} characters, and {why}", (value,))


def _class_of_sign(sign: str) -> str:
    """Return the class of a character: blank, digit, upper, lower, or other; signs of numbers count as digits."""
    if sign in " \t":
        return "blank"
    if sign.isdigit() or sign in ".,+-":
        return "digit"
    return "upper" if sign.isupper() else "lower" if sign.isalpha() else "other"


def _begins_cell(signs: Sequence[frozenset[str]], place: int) -> bool:
    """Return whether a cell begins at a place by the classes of the characters there and beside it, in all lines."""
    before, here = signs[place - 1], signs[place]
    after = signs[place + 1] if place + 1 < len(signs) else frozenset[str]()
    if before == {"blank"}:
        return here != {"blank"}
    if before <= {"digit", "blank"} and "digit" in before:
        return "blank" not in here and not here & {"digit", "other"}
    if before <= {"upper", "lower"} and here <= {"digit"}:
        return True
    # a capital that stands between a capital and small letters begins a word: MSouth
    return before == here == {"upper"} and "lower" in after and "upper" not in after


def _meet_digits_and_letters(lines: Sequence[str], signs: Sequence[frozenset[str]], place: int) -> bool:
    """Return whether digits before a place and letters from it on are values of two columns, not a code of one.

    Both vary, and each letter comes with several of the digits.
    """
    if not signs[place - 1] <= {"digit", "blank"} or signs[place] & {"digit", "blank", "other"}:
        return False
    start = max((at for at in range(place) if signs[at] == {"blank"}), default=-1) + 1
    pairs = {(line[start:place], line[place]) for line in lines}
    digits, letters = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    return len(digits) >= MIN_VALUES_OF_COLUMN and len(letters) > 1 and min(letters.values()) > 1


def _match_separator_line(text: str) -> re.Match[str] | None:
    """Match the line ``sep=;`` with which Excel declares the separator."""
    return re.match(r'"?sep=(.)"?\n', text)


def _detect_separator(
    text: str, given_delimiter: str, given_quote: str | None
) -> tuple[SettingReason, SettingReason, list[list[str]], list[int]]:
    """Choose the separator and the quotes under which the rows are most regular, and return the rows split by them."""
    delimiters = [given_delimiter] if given_delimiter in DELIMITERS else list(DELIMITERS)
    scored: list[tuple[float, str, str, RowsAndStarts]] = []
    for delimiter in delimiters:
        # tabs count as blanks in a blank-separated table (see _parse_sample_rows)
        if delimiter not in text and not given_delimiter and not (delimiter == " " and "\t" in text):
            continue
        for quote in ('"', "'") if given_quote is None else (given_quote,):
            if quote == "'" and given_quote is None and not _apostrophes_quote_cells(text, delimiter):
                continue
            parsed = _parse_sample_rows(text, delimiter, quote)
            scored.append((_regularity_score(parsed[0]), delimiter, quote, parsed))
    if not scored:
        rows, starts = _parse_sample_rows(text, ",", '"')
        return (
            SettingReason("delimiter", ",", "there is one column"),
            SettingReason("quote", '"', "as usual"),
            rows,
            starts,
        )
    # blanks and colons occur in ordinary text and times, so they lose near ties
    preference = {",": 0.0, ";": 0.0, "\t": 0.0, "|": -1e-9, " ": -1e-3, ":": -1e-3}
    scored.sort(key=lambda one: one[0] + preference[one[1]], reverse=True)
    score, delimiter, quote, (rows, starts) = scored[0]
    rivals = tuple(
        dict.fromkeys(
            d for s, d, _, _ in scored if d != delimiter and s > 0.85 * score and s > 0 and not given_delimiter
        )
    )
    if score <= 0 and not given_delimiter:
        rows, starts = _parse_sample_rows(text, ",", '"')
        return (
            SettingReason("delimiter", ",", "no separator splits the lines alike"),
            SettingReason("quote", '"', "as usual"),
            rows,
            starts,
        )
    count = (Counter(map(len, rows)).most_common(1) or [(0, 0)])[0]
    words = (
        "the file says so in its first line"
        if given_delimiter
        else f"it splits {count[1]} of the first {count_noun(len(rows), 'row')} into {count[0]} cells"
    )
    why = f"{DELIMITERS[delimiter]}: {words}"
    around = "apostrophes stand around cells" if quote == "'" else "as usual"
    return SettingReason("delimiter", delimiter, why, rivals), SettingReason("quote", quote, around), rows, starts


def _apostrophes_quote_cells(text: str, delimiter: str) -> bool:
    """Return whether apostrophes begin and end at least half of the cells that contain one."""
    head = text[:20_000]
    cells = [cell.strip() for line in head.split("\n") for cell in line.split(delimiter)]
    # an apostrophe within words (O'Neil) must not open a quoted cell
    with_one = [cell for cell in cells if "'" in cell]
    whole = [cell for cell in with_one if len(cell) > 1 and cell[0] == cell[-1] == "'"]
    return bool(whole) and 2 * len(whole) >= len(with_one)


def _parse_sample_rows(text: str, delimiter: str, quote: str) -> RowsAndStarts:
    """Return the first non-empty rows and the line of the text on which each begins."""
    if delimiter == " ":
        # columns aligned with several blanks are one separator apart
        text = re.sub(r"[ \t]+", " ", re.sub(r"(?m)^[ \t]+|[ \t]+$", "", text))
    reader = split_rows(io.StringIO(text), delimiter, quote, skip_blanks=delimiter not in " \t")
    rows: list[list[str]] = []
    starts: list[int] = []
    before = 0
    try:
        for row in reader:
            if row:
                rows.append(row)
                starts.append(before)
            before = int(reader.line_num)
            if len(rows) == SAMPLE_ROWS:
                break
    except csv.Error:
        return [], []
    return rows, starts


def split_rows(lines: Iterable[str], delimiter: str, quote: str, *, skip_blanks: bool) -> Any:
    """Return the standard library's reader over lines, each a list of cells; without quotes where ``quote`` is empty."""
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=skip_blanks)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, skipinitialspace=skip_blanks)


def _regularity_score(rows: list[list[str]]) -> float:
    """Compute how regular rows are after van den Burg et al.: by their lengths and the known types of their cells."""
    if not rows:
        return 0.0
    patterns = Counter(map(len, rows))
    # van den Burg, Nazábal & Sutton (2019), "Wrangling messy CSV files by detecting row and type
    # patterns", the pattern score P with their alpha = 1e-3 (eq. 1 to 4)
    alike = sum(n * max(1e-3, length - 1) / length for length, n in patterns.items() if length) / len(patterns)
    cells = [cell.strip() for row in rows for cell in row]
    known = sum(map(_has_known_type, cells)) / max(1, len(cells))
    # without this a file read as one column of words would be perfectly regular
    return alike * known if max(patterns) > 1 else 0.0


def _has_known_type(cell: str) -> bool:
    """Return whether a cell is empty, a missing code, a number, a date or plain words."""
    return not cell or cell in MISSING_WORDS or bool(_is_number_or_date(cell) or _WORD_PATTERN.fullmatch(cell))


def _preamble_rows(rows: list[list[str]]) -> int:
    """Count the rows before the table.

    These are the rows before the first row of the usual length, and titles that a spreadsheet padded with empty cells.
    At most half of the cells of a title are filled, and more than half of those of a later row; or it is one of several
    rows of words with gaps above a full line of names.
    """
    if not rows:
        return 0
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    first = next(i for i, row in enumerate(rows) if len(row) == usual)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[: MAX_PREAMBLE_ROWS + 2]]
    while first + 1 < len(filled) and 2 * filled[first] <= usual and any(2 * n > usual for n in filled[first + 1 :]):
        first += 1
    first = _row_of_names_below_notes(rows[: MAX_PREAMBLE_ROWS + 1 + SAMPLE_ROWS], first, usual)
    return first if usual > 1 and first <= MAX_PREAMBLE_ROWS else 0


def _row_of_names_below_notes(rows: Sequence[list[str]], first: int, usual: int) -> int:
    """Return the row of names where it is the first without an empty cell, below several rows of notes; otherwise
    ``first``.

    Numbers or dates stand below some of the names, and none of them in the notes.
    """
    at = next((i for i, row in enumerate(rows) if i >= first and _count_filled(row) == len(row) == usual), first)
    # a line of names may have none for the row names
    lacks_first = any(not row[0].strip() and _count_filled(row) == usual - 1 for row in rows[first:at])
    if at == first or at < MIN_ROWS_OF_NOTES or lacks_first or len(rows) < at + 1 + MIN_ROWS_ABOVE_NOTE:
        return first
    names, body = [cell.strip() for cell in rows[at]], rows[at + 1 :]
    columns = [[row[j].strip() for row in body if j < len(row) and row[j].strip()] for j in range(usual)]
    typed = [bool(column) and sum(map(_is_number_or_date, column)) > 0.8 * len(column) for column in columns]
    words = [*names, *(cell.strip() for row in rows[first:at] for cell in row)]
    is_named = len(set(names)) == usual and not any(cell in MISSING_WORDS for cell in names)
    return at if any(typed) and is_named and not any(map(_is_number_or_date, words)) else first


def _detect_header(rows: list[list[str]]) -> SettingReason:
    """Decide whether the first row names the columns, by comparing it with the rows below."""
    if not rows:
        return SettingReason("header", "yes", "the file has no rows")
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    columns = [[row[j].strip() for row in rest if j < len(row) and row[j].strip()] for j in range(len(first))]
    typed = [bool(column) and sum(map(_is_number_or_date, column)) > 0.8 * len(column) for column in columns]
    names = [bool(cell) and not _is_number_or_date(cell) for cell in first]
    if not rest:
        return SettingReason("header", "yes", "there is one line")
    if all(names) and len(set(first)) == len(first):
        if any(typed):
            return SettingReason("header", "yes", "the first line has words where others have numbers or dates")
        again = [name for name, column in zip(first, columns, strict=True) if name in column]
        if again:
            return SettingReason("header", "no", "values of the first line occur again below it", ("yes",))
        return SettingReason(
            "header", "yes", "values of the first line do not occur again; all columns are text", ("no",)
        )
    filled = [cell for cell in first if cell]
    words = 2 * len(filled) > len(first) and not any(map(_is_number_or_date, filled))
    # names may stand twice or be missing, where words stand above numbers
    if words and any(has and cell for cell, has in zip(first, typed, strict=True)):
        return SettingReason("header", "yes", "the first line has words where others have numbers or dates")
    if any(has and _is_number_or_date(cell) for cell, has in zip(first, typed, strict=True)):
        # wide tables name columns by years: 1990, 1991
        years = all(re.fullmatch(r"(19|20)\d\d", cell) for cell in first if _is_number_or_date(cell)) and len(
            set(first)
        ) == len(first)
        if years and any(names):
            return SettingReason("header", "yes", "the first line has names and years, each once", ("no",))
        # one name such as 5-9 does not make a record of a line of names; a sign of no value is no name
        worded = sum(
            has and bool(cell) and not _is_number_or_date(cell) and cell not in MISSING_WORDS
            for cell, has in zip(first, typed, strict=True)
        )
        if 2 * worded > sum(typed) and len(set(first)) == len(first):
            why = "the first line has words where most others have numbers or dates"
            return SettingReason("header", "yes", why, ("no",))
        return SettingReason("header", "no", "the first line has numbers or dates as the others have")
    if len(set(first)) < len(first) - first.count("") + bool(first.count("")):
        return SettingReason("header", "no", "the first line has a value twice", ("yes",))
    return SettingReason("header", "yes", "the first line is not like the others", ("no",))


def _detect_header_cells(rows: list[list[str]], preamble: int, *, is_fixed: bool) -> tuple[int, SettingReason | None]:
    """Find a line of names that has one cell fewer or more than the rows; return its row, and how it differs.

    Return ``preamble`` and None where the names are as many as the columns. With ``is_fixed`` the owner has said where
    the table begins.
    """
    at = 0 if is_fixed else preamble - 1
    if at < 0 or len(rows) < at + 3 or _detect_header(rows[at + 1 :]).value == "yes":
        return preamble, None
    cells, body = [cell.strip() for cell in rows[at]], rows[at + 1 :]
    usual = len(body[0])
    words = cells[:-1] if len(cells) == usual + 1 and not cells[-1] else cells
    # a file that had row names when R wrote it with row names has an empty first name
    named = words[1:] if len(words) == usual - 1 else words
    if not named or not all(named) or any(map(_is_number_or_date, words)) or len(set(words)) < len(words):
        return preamble, None
    if len(words) == usual and len(cells) == usual + 1:
        why = "the line of names ends with a separator, the rows do not"
        return at, SettingReason("header_cells", "one_more", why)
    if len(words) == usual - 1 and not any(row[-1].strip() for row in body if len(row) == usual):
        why = "each row ends with a separator, the line of names does not"
        return at, SettingReason("header_cells", "last_missing", why)
    if len(words) == usual - 1:
        why = f"the line of names has {usual - 1} cells and each row {usual}: the first column names the rows, as R writes"
        return at, SettingReason("header_cells", "first_missing", why)
    return preamble, None


def _names_for_columns(cells: Sequence[str], header_cells: str) -> list[str]:
    """Return a name for each column from a line of names that has one fewer or more."""
    if header_cells == "one_more":
        return list(cells[:-1])
    return [ROW_NAMES, *cells] if header_cells == "first_missing" else [*cells, ""]


def _detect_lines_below(body: list[list[str]]) -> SettingReason:
    """Count the records below the names that are unlike all others: questions, units, import codes of a survey."""
    none, others = SettingReason("skip_below", "0", "the first record is like the others"), body[MAX_LINES_BELOW:]
    if len(others) < MIN_ROWS_TO_COMPARE:
        return none
    columns = [[row[j].strip() for row in others if j < len(row) and row[j].strip()] for j in range(len(body[0]))]
    typed = [bool(column) and sum(map(_is_number_or_date, column)) > 0.8 * len(column) for column in columns]
    # a column of free text has no levels: it says nothing
    levels = [set(column) if 2 * len(set(column)) <= len(column) else set() for column in columns]
    count = 0
    for row in body[:MAX_LINES_BELOW]:
        cells = [cell.strip() for cell in row]
        # a word among numbers may be a sign of no value, so two columns must agree
        compared = [
            (cell and not _is_number_or_date(cell) and cell not in MISSING_WORDS) if is_typed else cell not in seen
            for cell, is_typed, seen in zip(cells, typed, levels, strict=False)
            if is_typed or (seen and cell)
        ]
        if len(compared) < 2 or not all(compared) or not any(typed):
            break
        count += 1
    if not count:
        return none
    return SettingReason("skip_below", str(count), "what stands there is unlike all records below", ("0",))


def _detect_footer(
    tail: bytes, encoding: str, delimiter: str, quote: str, columns: int, widths: Sequence[int] = ()
) -> SettingReason:
    """Count the last lines of a text that are no records, as ``_count_footer`` does."""
    if encoding.startswith(("utf-16", "utf-32")) or delimiter == " ":
        return _NO_FOOTER
    text = tail.decode(encoding, "replace")
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n" if "\n" in text else "\r")]
    if widths:
        return _count_footer([split_fixed_widths(line, widths) if line.strip() else [] for line in lines], columns)
    return _count_footer([_split_line(line, delimiter, quote) for line in lines], columns)


def _split_line(line: str, delimiter: str, quote: str) -> list[str] | None:
    """Return the cells of a line; None where it is no row of its own."""
    # a quotation mark alone is the middle of a cell of several lines
    if quote and line.count(quote) % 2:
        return None
    try:
        return next(split_rows([line], delimiter, quote, skip_blanks=False), []) if line.strip() else []
    except csv.Error:
        return None


_NO_FOOTER = SettingReason("footer", "0", "the last line is like the others")


def _count_footer(rows: Sequence[list[str] | None], columns: int) -> SettingReason:
    """Count the last rows that are no records: empty ones, notes, sources, and a total.

    rows: last rows of a file, empty ones too; None for what is no row
    columns: number of the table's columns
    """
    if columns < 2:
        return _NO_FOOTER
    # where several rows begin with such a word, it is a level of the first column
    totals = [number for number, row in enumerate(rows) if row and TOTAL_WORDS.fullmatch(_first_filled(row)[1])]
    count, named, has_total, is_sure = 0, list[str](), False, True
    for number in range(len(rows) - 1, max(-1, len(rows) - 1 - MAX_FOOTER_LINES), -1):
        row = rows[number]
        if row is None:
            return _NO_FOOTER
        above = [one for one in rows[:number] if one is not None and len(one) == columns and _count_filled(one) > 1]
        is_even, words = len(row) == columns, _first_filled(row)[1]
        is_total = [number] == totals and (not is_even or _shows_total(row, above))
        if is_even and words and not is_total and not _is_padded_note(row, above):
            break
        count, has_total, is_sure = count + 1, has_total or is_total, is_sure and not (is_even and words)
        if words:
            named.insert(0, f'"{words[:MAX_NOTE_LENGTH]}"')
    # blank lines alone are no rows to any reader; where no line is like a row, the table is not what it seems
    if count == len(rows) or not named:
        return _NO_FOOTER
    why = f"{'a total and what stands around it' if has_total else OTHER_COLUMNS}: {', '.join(named[:MAX_NOTES])}"
    return SettingReason("footer", str(count), why, () if is_sure and not has_total else ("0",))


def _count_filled(row: Sequence[str]) -> int:
    """Count the cells of a row that are not empty."""
    return sum(bool(cell.strip()) for cell in row)


def _first_filled(row: Sequence[str]) -> tuple[int, str]:
    """Return the place and the text of the first cell that is not empty; -1 and nothing without one."""
    return next(((place, cell.strip()) for place, cell in enumerate(row) if cell.strip()), (-1, ""))


def _shows_total(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Return whether a row that begins with a word for a total has other cells than a record: empty ones, or sums."""
    for place in range(_first_filled(row)[0] + 1, len(row)):
        column = [cell for one in above if (cell := one[place].strip())]
        numbers = [number for cell in column if (number := _size_of_number(cell)) is not None]
        own = _size_of_number(row[place])
        if (column and not row[place].strip()) or (own is not None and len(numbers) > 1 and own > max(numbers)):
            return True
    return False


def _size_of_number(cell: str) -> float | None:
    """Return about the size of the number that a cell writes, whatever its signs; None for other text."""
    if not looks_like_number(cell.strip()):
        return None
    try:
        return abs(float(cell))
    except ValueError:
        text = re.sub(r"[^0-9.,]", "", cell).replace(",", ".")
    whole, sign, decimals = text.rpartition(".")
    # three digits after the last sign are thousands
    return float(text.replace(".", "") if len(decimals) == 3 or not sign else f"{whole.replace('.', '')}.{decimals}")


def _is_padded_note(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Return whether one cell alone is filled, or few are, and not as those of a record that lacks all other values."""
    place, words = _first_filled(row)
    if len(above) < MIN_ROWS_ABOVE_NOTE:
        return False
    if _count_filled(row) != 1:
        return 2 * _count_filled(row) <= len(row) and _is_unlike_columns(row, above)
    column = [cell for one in above if (cell := one[place].strip())]
    if sum(map(_is_number_or_date, column)) > 0.8 * len(column):
        return not _is_number_or_date(words) and words not in MISSING_WORDS
    # a code or a name may be all that is known of a person
    most = max((len(cell.split()) for cell in column), default=0)
    is_sentence = len(words.split()) > max(most, MOST_WORDS_OF_NAME)
    is_marked = any(sign in words and not any(sign in cell for cell in column) for sign in NOTE_SIGNS)
    return words not in column and (is_sentence or is_marked)


def _is_unlike_columns(row: Sequence[str], above: Sequence[Sequence[str]]) -> bool:
    """Return whether the filled cells of a row are words: some below numbers or dates, the others below other levels."""
    below_numbers = False
    for place, cell in ((place, cell.strip()) for place, cell in enumerate(row) if cell.strip()):
        column = [text for one in above if (text := one[place].strip())]
        is_typed = bool(column) and sum(map(_is_number_or_date, column)) > 0.8 * len(column)
        has_levels = 2 * len(set(column)) <= len(column)
        if _is_number_or_date(cell) or cell in MISSING_WORDS or not (is_typed or (has_levels and cell not in column)):
            return False
        below_numbers |= is_typed
    return below_numbers


def number_repeated_names(header: Sequence[str]) -> list[str]:
    """Return names of columns that all differ: ``age``, ``age_2``, and ``column_3`` for the third, which has none."""
    distinct: list[str] = []
    taken: set[str] = set()
    given, next_numbers = set(header), Counter[str]()
    for place, own_name in enumerate(header, start=1):
        # a name of several lines could not be shown, nor typed
        name = " ".join(own_name.splitlines()) or f"column_{place}"
        free = name
        while free in taken or (free != name and free in given):
            next_numbers[name] += 1
            free = f"{name}_{next_numbers[name] + 1}"
        taken.add(free)
        distinct.append(free)
    return distinct


def _is_number_or_date(cell: str) -> bool:
    """Return whether a cell writes a number under any signs, or a date."""
    return looks_like_number(cell) or _is_date(cell)


def _is_date(cell: str) -> bool:
    """Return whether a cell writes a date or a time of day."""
    return bool(_DATE_PATTERN.fullmatch(cell)) or looks_like_date(cell)


def _detect_missing_codes(
    columns: Sequence[Sequence[str]], names: Sequence[str]
) -> tuple[tuple[str, ...], SettingReason]:
    """Find the words that stand for missing values, and numbers that may."""
    found: dict[str, int] = {}
    unsure: list[str] = []
    for column in columns:
        counts = Counter(cell for cell in column if cell)
        words = [word for word in MISSING_WORDS if word in counts]
        others = [cell for cell in counts if cell not in words]
        # words such as "None" are levels among words, and missing codes among numbers
        numbers = bool(others) and sum(counts[cell] for cell in others if _is_number_or_date(cell)) >= 0.8 * sum(
            counts[o] for o in others
        )
        for code in words:
            if numbers or code not in AMBIGUOUS_MISSING_WORDS:
                found[code] = found.get(code, 0) + counts[code]
                if not numbers and code != "?":
                    unsure.append(code)
    far = [text for column, name in zip(columns, names, strict=True) if (text := _outlying_code(column, name))]
    codes = tuple(code for code in MISSING_WORDS if code in found)
    said = ", ".join(f'"{code}" stands in {found[code]} of the cells looked at' for code in codes) or "only empty cells"
    doubts = tuple(dict.fromkeys(f'"{code}" may be a value' for code in unsure)) + tuple(far)
    return codes, SettingReason("missing", ", ".join(codes), said, doubts)


def _outlying_code(column: Sequence[str], name: str) -> str:
    """Describe a number of nines, or a negative digit, that lies far from a column's other values and may be a code."""
    numbers = [float(cell) for cell in column if re.fullmatch(WHOLE_NUMBER, cell)]
    # of fewer numbers any may lie apart by chance
    if len(numbers) < 20 or len(numbers) < 0.8 * len(column):
        return ""
    for code in sorted(set(numbers)):
        # a single 9 is an ordinary value too often
        if not re.fullmatch(r"-?9+|-1|-[1-9]", f"{code:.0f}") or f"{code:.0f}" in ("9",):
            continue
        rest = [number for number in numbers if number != code]
        if not rest:
            continue
        low, high = min(rest), max(rest)
        gap = low - code if code < low else code - high
        if (code < 0 <= low) or gap > max(1.0, high - low):
            return f"{code:.0f} in {name} may be a code"
    return ""


def _detect_number_signs(columns: Sequence[Sequence[str]], codes: Iterable[str]) -> tuple[SettingReason, SettingReason]:
    """Choose the decimal and thousands signs under which most numeric columns can be read, the plainest of equals."""
    texts = [[cell for cell in column if cell and cell not in codes] for column in columns]
    found = detect_number_signs([column for column in texts if not any(map(_is_date, column))])
    if found is None:
        return SettingReason("decimal", ".", "no number has one"), SettingReason("thousands", "", "no number has them")
    why = f"so {found.n_read} of {found.columns} columns with signs in their numbers can be read"
    return (
        SettingReason("decimal", found.decimal, why, found.other_decimals),
        SettingReason(
            "thousands", found.thousands, why if found.thousands else "no number has them", found.other_thousands
        ),
    )


def _has_blanks_around(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether some cell has blanks around its text."""
    return any(cell != cell.strip() for row in rows for cell in row)
