"""How a file of text writes its table, found from its first lines: encoding, separator, quotes, header, decimal sign, missing codes.

What is found is said with its reason. What the file does not settle is a doubt, with the other readings, so that its owner decides before
anything is stored. The separator and the quotes are those under which the file is most regular: van den Burg, Nazábal & Sutton (2019),
"Wrangling messy CSV files by detecting row and type patterns", eq. 1 to 4.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.recipe.text_format import DELIMITERS, TextFormat
from sfumato.engine.wording import count_noun

from .number_signs import WHOLE, is_number, signs_of

SAMPLE_BYTES = 1 << 18
SAMPLE_ROWS = 400
MOST_PREAMBLE = 30
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
EIGHT_BIT = ("windows-1252", "iso-8859-15", "windows-1250", "cp850", "mac-roman")
MISSING_WORDS = ("?", "NA", "N/A", "#N/A", "n/a", "na", "NULL", "null", "NaN", "nan", "None", "missing", ".", "-", "--")
WORDS_OF_TEXT = {"None", "missing", "na", "-", "."}
"""Codes that are taken for missing only where the rest of a column are numbers or dates."""

_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?"
)
_WORD = re.compile(r"[\w][\w .()&/#@%+*'’!?°-]*", re.UNICODE)
_COMMON_LETTERS = frozenset("äöüÄÖÜßéèêëàâáãåæçñóòôõøíìîïúùûýœÉÈÀÁÂÅÆÇÑÓÔØÍÎÚ€°§£’‘“”–«»ąćęłńśźżŁŚŻčďěňřšťůžČŘŠŽőűŐŰ")
Parsed = tuple[list[list[str]], list[int]]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a key of the format has its value. ``others``: what it may be instead; where there are any, the file does not settle it."""

    key: str
    value: str
    said: str
    others: tuple[str, ...] = ()

    @property
    def doubtful(self) -> bool:
        return bool(self.others)


@dataclass(frozen=True, slots=True)
class Detection:
    """A format, the reasons of its keys, and the first rows under it: ``header`` (k,) and ``rows`` of k cells.

    ``usual``: a reader that is told nothing reads the same.
    """

    format: TextFormat
    reasons: tuple[Reason, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    usual: bool

    @property
    def doubts(self) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if reason.doubtful)


def detect(content: bytes, said: Mapping[str, Any] | None = None, whole: str = "") -> Detection:
    """How these bytes write a table, where ``said`` are keys of ``[data.format]`` that their owner has set.

    Where they are but the first of a file, ``whole`` says what all of it is: "ascii", "utf-8", or "other".
    What cannot be found is left as it is by default, and said to be in doubt. Raises BadInput for what is said wrongly.
    """
    asked = TextFormat.from_table(said or {})
    known = {key: _said(key, getattr(asked, key)) for key in said or {}}
    encoding = known.get("encoding") or _encoding(content, whole or _whole(content))
    text = _text(content, encoding.value)
    line = _separator_line(text)
    first = 0 if line is None else 1
    if "skip" in known:
        first, line = int(known["skip"].value), None
    lines = "".join(text.splitlines(keepends=True)[first:])
    given = (known["delimiter"].value if "delimiter" in known else "") or (line.group(1) if line else "")
    delimiter, quote, rows, starts = _separated(lines, given, known["quote"].value if "quote" in known else None)
    preamble = 0 if "skip" in known else _preamble(rows)
    table, skip = rows[preamble:], first + (starts[preamble] if preamble else 0)
    header = known.get("header") or _header(table)
    body = table[1:] if header.value == "yes" else table
    names = (
        table[0] if body is not table and table else [f"column_{i + 1}" for i in range(len(table[0]) if table else 0)]
    )
    columns = [[row[j].strip() for row in body if j < len(row)] for j in range(len(names))]
    codes, missing = _missing(columns, names)
    if "missing" in known:
        codes, missing = asked.missing, known["missing"]
    decimal, thousands = _signs_of_numbers(columns, codes)
    blanks = delimiter.value != " " and lines.count(f"{delimiter.value} ") > lines.count(delimiter.value) / 2
    trim = known.get("trim") or Reason(
        "trim", "yes" if _trim(body) or blanks else "no", "cells have blanks around them"
    )
    signs = (known.get("decimal") or decimal, known.get("thousands") or thousands)
    reasons = [encoding, known.get("delimiter") or delimiter, known.get("quote") or quote, header, *signs, missing]
    if skip:
        why = "what stands there has other columns than the table" if preamble else "the line sep= is Excel's"
        reasons.append(known.get("skip") or Reason("skip", str(skip), why))
    if trim.value == "yes":
        reasons.append(trim)
    found = TextFormat(
        encoding.value, delimiter.value, quote.value, signs[0].value, signs[1].value, header.value == "yes", skip, trim.value == "yes", codes
    )  # fmt: skip
    shown = tuple(tuple(cell.strip() if found.trim else cell for cell in row) for row in body[:20])
    usual = not known and not skip and found == TextFormat(delimiter=max(",\t;|", key=lines.partition("\n")[0].count))
    return Detection(found, tuple(reasons), tuple(name.strip() for name in names), shown, usual)


def _said(key: str, value: object) -> Reason:
    text = (
        "yes"
        if value is True
        else "no"
        if value is False
        else ", ".join(value)
        if isinstance(value, tuple)
        else str(value)
    )
    return Reason(key, text, "as you say")


def _whole(content: bytes) -> str:
    if content.isascii():
        return "ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "other"
    return "utf-8"


def _encoding(content: bytes, whole: str) -> Reason:
    for mark, name in BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return Reason("encoding", name, "the file begins with its byte-order mark")
    some = content[:SAMPLE_BYTES]
    zeros = [some[i::2].count(0) / max(1, len(some[i::2])) for i in (0, 1)]
    if max(zeros) > 0.3 and min(zeros) < 0.05:
        name = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        text = some[: len(some) // 2 * 2].decode(name, "replace")
        if len(some) >= 16 and sum(sign.isprintable() or sign in "\t\r\n" for sign in text) > 0.95 * len(text):
            return Reason("encoding", name, "every other byte is 0")
    if whole == "other":
        return _eight_bit(content)
    return Reason(
        "encoding",
        "utf-8",
        "plain ASCII" if whole == "ascii" else "all of it is valid UTF-8, which other text hardly ever is",
    )


def _eight_bit(content: bytes) -> Reason:
    """Of encodings of a byte a character none can be excluded; the one whose letters stand among letters is taken, and asked about."""
    high = [m.span() for m in re.finditer(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?", content[: 4 * SAMPLE_BYTES])]
    pieces = [content[a:b] for a, b in high[:2000]]

    def likeness(name: str) -> float:
        good = total = 0
        for piece in pieces:
            try:
                text = piece.decode(name)
            except UnicodeDecodeError:
                return -1.0
            for sign in text:
                if ord(sign) > 127:
                    total += 1
                    good += sign in _COMMON_LETTERS
        return good / max(1, total)

    scores = {name: likeness(name) for name in EIGHT_BIT}
    best = max(EIGHT_BIT, key=lambda name: scores[name])
    others = tuple(name for name in EIGHT_BIT if name != best and scores[name] >= 0)
    return Reason("encoding", best, "not UTF-8; most letters beyond ASCII are usual ones in it", others)


def _text(content: bytes, encoding: str) -> str:
    size = SAMPLE_BYTES * (4 if encoding.startswith("utf-32") else 2 if encoding.startswith("utf-16") else 1)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(content[:size], final=len(content) <= size)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(content) > size and "\n" in text:
        text = text[: text.rindex("\n") + 1]  # the last line may be cut
    return text


def _separator_line(text: str) -> re.Match[str] | None:
    return re.match(r'"?sep=(.)"?\n', text)


def _separated(text: str, said: str, quote_said: str | None) -> tuple[Reason, Reason, list[list[str]], list[int]]:
    delimiters = [said] if said in DELIMITERS else list(DELIMITERS)
    scored: list[tuple[float, str, str, Parsed]] = []
    for delimiter in delimiters:
        if delimiter not in text and not said and not (delimiter == " " and "\t" in text):
            continue
        for quote in ('"', "'") if quote_said is None else (quote_said,):
            if quote == "'" and quote_said is None and not _stands_around_cells(text, delimiter):
                continue
            parsed = _parsed(text, delimiter, quote)
            scored.append((_regularity(parsed[0]), delimiter, quote, parsed))
    if not scored:
        rows, starts = _parsed(text, ",", '"')
        return Reason("delimiter", ",", "there is one column"), Reason("quote", '"', "as usual"), rows, starts
    preference = {",": 0.0, ";": 0.0, "\t": 0.0, "|": -1e-9, " ": -1e-3, ":": -1e-3}
    scored.sort(key=lambda one: one[0] + preference[one[1]], reverse=True)
    score, delimiter, quote, (rows, starts) = scored[0]
    rivals = tuple(
        dict.fromkeys(d for s, d, _, _ in scored if d != delimiter and s > 0.85 * score and s > 0 and not said)
    )
    if score <= 0 and not said:
        rows, starts = _parsed(text, ",", '"')
        return (
            Reason("delimiter", ",", "no separator splits the lines alike"),
            Reason("quote", '"', "as usual"),
            rows,
            starts,
        )
    count = (Counter(map(len, rows)).most_common(1) or [(0, 0)])[0]
    words = (
        "the file says so in its first line"
        if said
        else f"it splits {count[1]} of the first {count_noun(len(rows), 'row')} into {count[0]} cells"
    )
    why = f"{DELIMITERS[delimiter]}: {words}"
    around = "apostrophes stand around cells" if quote == "'" else "as usual"
    return Reason("delimiter", delimiter, why, rivals), Reason("quote", quote, around), rows, starts


def _stands_around_cells(text: str, delimiter: str) -> bool:
    """Whether apostrophes begin and end cells, at least half of those that hold one."""
    head = text[:20_000]
    cells = [cell.strip() for line in head.split("\n") for cell in line.split(delimiter)]
    with_one = [cell for cell in cells if "'" in cell]
    whole = [cell for cell in with_one if len(cell) > 1 and cell[0] == cell[-1] == "'"]
    return bool(whole) and 2 * len(whole) >= len(with_one)


def _parsed(text: str, delimiter: str, quote: str) -> Parsed:
    """The first rows, without empty ones, and on which line of the text each begins."""
    if delimiter == " ":
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
    """The reader of the standard library over lines, each a list of cells; without quotes where ``quote`` is empty."""
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=skip_blanks)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, skipinitialspace=skip_blanks)


def _regularity(rows: list[list[str]]) -> float:
    """P T of van den Burg et al.: how alike the rows are in their number of cells, and the share of the cells of a known type."""
    if not rows:
        return 0.0
    patterns = Counter(map(len, rows))
    alike = sum(n * max(1e-3, length - 1) / length for length, n in patterns.items() if length) / len(patterns)
    cells = [cell.strip() for row in rows for cell in row]
    known = sum(map(_of_a_type, cells)) / max(1, len(cells))
    return alike * known if max(patterns) > 1 else 0.0


def _of_a_type(cell: str) -> bool:
    return not cell or cell in MISSING_WORDS or bool(is_number(cell) or _DATE.fullmatch(cell) or _WORD.fullmatch(cell))


def _preamble(rows: list[list[str]]) -> int:
    """How many rows stand before the table: those before the first that has as many cells as most, and titles that a spreadsheet
    filled up with empty cells: at most half of theirs hold something, of the row below more.
    """
    if not rows:
        return 0
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    first = next(i for i, row in enumerate(rows) if len(row) == usual)
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[: MOST_PREAMBLE + 2]]
    while first + 1 < len(filled) and 2 * filled[first] <= usual and any(2 * n > usual for n in filled[first + 1 :]):
        first += 1
    return first if usual > 1 and first <= MOST_PREAMBLE else 0


def _header(rows: list[list[str]]) -> Reason:
    if not rows:
        return Reason("header", "yes", "the file has no rows")
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    columns = [[row[j].strip() for row in rest if j < len(row) and row[j].strip()] for j in range(len(first))]
    typed = [bool(column) and sum(map(_has_type, column)) > 0.8 * len(column) for column in columns]
    names = [bool(cell) and not _has_type(cell) for cell in first]
    if not rest:
        return Reason("header", "yes", "there is one line")
    if all(names) and len(set(first)) == len(first):
        if any(typed):
            return Reason("header", "yes", "the first line has words where others have numbers or dates")
        again = [name for name, column in zip(first, columns, strict=True) if name in column]
        if again:
            return Reason("header", "no", "values of the first line come again below it", ("yes",))
        return Reason("header", "yes", "values of the first line do not come again; all columns are text", ("no",))
    if any(has and _has_type(cell) for cell, has in zip(first, typed, strict=True)):
        years = all(re.fullmatch(r"(19|20)\d\d", cell) for cell in first if _has_type(cell)) and len(set(first)) == len(
            first
        )
        if years and any(names):
            return Reason("header", "yes", "the first line has names and years, each once", ("no",))
        return Reason("header", "no", "the first line has numbers or dates as the others have")
    if len(set(first)) < len(first) - first.count("") + bool(first.count("")):
        return Reason("header", "no", "the first line has a value twice", ("yes",))
    return Reason("header", "yes", "the first line is not like the others", ("no",))


def _has_type(cell: str) -> bool:
    return is_number(cell) or bool(_DATE.fullmatch(cell))


def _missing(columns: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[tuple[str, ...], Reason]:
    found: dict[str, int] = {}
    unsure: list[str] = []
    for column in columns:
        counts = Counter(cell for cell in column if cell)
        words = [word for word in MISSING_WORDS if word in counts]
        others = [cell for cell in counts if cell not in words]
        numbers = bool(others) and sum(counts[cell] for cell in others if _has_type(cell)) >= 0.8 * sum(
            counts[o] for o in others
        )
        for code in words:
            if numbers or code not in WORDS_OF_TEXT:
                found[code] = found.get(code, 0) + counts[code]
                if not numbers and code != "?":
                    unsure.append(code)
    far = [text for column, name in zip(columns, names, strict=True) if (text := _far_code(column, name))]
    codes = tuple(code for code in MISSING_WORDS if code in found)
    said = ", ".join(f'"{code}" stands in {found[code]} of the cells looked at' for code in codes) or "only empty cells"
    doubts = tuple(dict.fromkeys(f'"{code}" may be a value' for code in unsure)) + tuple(far)
    return codes, Reason("missing", ", ".join(codes), said, doubts)


def _far_code(column: Sequence[str], name: str) -> str:
    """A number made of nines, or of a minus and nines, that lies far from a column's others: it may be a code."""
    numbers = [float(cell) for cell in column if re.fullmatch(WHOLE, cell)]
    if len(numbers) < 20 or len(numbers) < 0.8 * len(column):
        return ""
    for code in sorted(set(numbers)):
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


def _signs_of_numbers(columns: Sequence[Sequence[str]], codes: Iterable[str]) -> tuple[Reason, Reason]:
    """The decimal sign and the sign of thousands that read most columns of numbers; the plainest of equals."""
    texts = [[cell for cell in column if cell and cell not in codes] for column in columns]
    found = signs_of([column for column in texts if not any(_DATE.fullmatch(cell) for cell in column)])
    if found is None:
        return Reason("decimal", ".", "no number has one"), Reason("thousands", "", "no number has them")
    why = f"so {found.read} of {found.columns} columns with signs in their numbers can be read"
    return (
        Reason("decimal", found.decimal, why, found.other_decimals),
        Reason("thousands", found.thousands, why if found.thousands else "no number has them", found.other_thousands),
    )


def _trim(rows: Sequence[Sequence[str]]) -> bool:
    return any(cell != cell.strip() for row in rows for cell in row)
