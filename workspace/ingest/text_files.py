"""Parsing of text tables: header, rows and cells, in a given format or as the first line shows. Untrusted: the bytes."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_reader

from sfumato.engine.data.schema import Schema
from sfumato.engine.data.spelling import has_decimal_commas, looks_like_header, read_numbers
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.engine.wording import count_noun

from .dialects import number_repeated_names, split_fixed_widths, split_rows
from .limits import MAX_COLUMNS
from .number_signs import parse_number

MAX_ROW_BYTES = 1 << 22
ROWS_PER_WRITE = 10_000
NAMES_RULE = "the first line must hold a name for each column"
UNPARSED_MESSAGE = "a quotation mark is opened and not closed, or a row is longer than 4 MB"


def columns_with_levels(schema: Schema | None) -> set[str]:
    """Return the columns that stay text because the schema gives them levels, or says how their dates are written."""
    return {v.name for v in schema if v.kind.has_levels or v.date_form is not None} if schema is not None else set()


def read_header(
    content: bytes, name: str, form: TextFormat | None, place: str
) -> tuple[list[str], str, tuple[str, ...]]:
    """Return the names of the columns, the separator, and remarks on the names, from the beginning of a file in UTF-8.

    Raises BadInput.
    """
    header, separator = (
        _header_by_format(content, name, form, place) if form else _header_of_first_line(content, name, place)
    )
    distinct, remarks = distinct_names(header)
    check_header(distinct, name, place)
    return distinct, separator, remarks


def distinct_names(header: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of a header with a number where they stand twice, and remarks on these.

    What does not look like names stays as it is.
    """
    distinct = header
    if len(header) <= MAX_COLUMNS and looks_like_header([column for column in header if column]):
        distinct = number_repeated_names(header)
    renamed = [
        f'"{old}" is "{new}"'
        for old, new in zip(header, distinct, strict=True)
        if old and " ".join(old.splitlines()) != new
    ]
    remark = f"names that stand twice have a number: {', '.join(renamed)}"
    return distinct, (remark,) if renamed else ()


def parse_column(
    cells: bytes, name: str, column: str, form: TextFormat | None, levels: set[str], place: str
) -> pd.Series:
    """Parse a column (n,) from the bytes of its cells, one quoted cell a line. Raises BadInput."""
    said = form or TextFormat()
    all_text = said.trim or (said.decimal, said.thousands) != (".", "")
    # text_columns has rewritten the cells, quoted and with commas
    alone = replace(said, quote='"', delimiter=",", header=False)
    as_text = {column} if all_text or column in levels else set()
    frame = _parse_csv(cells, name, [column], ",", alone, as_text, place)
    return convert_texts(frame, form, levels)[column]


def convert_texts(frame: pd.DataFrame, form: TextFormat | None, levels: set[str]) -> pd.DataFrame:
    """Return a table (n, k) with its texts converted to the numbers that they write under the format's signs."""
    said, header = form or TextFormat(), list(frame.columns)
    signs = (said.decimal, said.thousands) != (".", "")
    if said.trim:
        frame = _trim_cells(frame, said.missing)
    else:
        frame = frame.assign(
            **{column: found for column in header if (found := _mask_missing_texts(frame[column], said)) is not None}
        )
    if signs or said.trim:
        return frame.assign(
            **{column: _parse_numbers(frame[column], said) for column in header if column not in levels}
        )
    commas = [] if form else [column for column in header if column not in levels and has_decimal_commas(frame[column])]
    return frame.assign(**{column: read_numbers(frame[column]) for column in commas})


def _mask_missing_texts(values: pd.Series, form: TextFormat) -> pd.Series | None:
    """Return a column of text with the missing codes masked; None where it has none or is not text."""
    if not isinstance(values.dtype, pd.StringDtype):
        return None
    # pandas leaves missing codes as text where a whole number of 2^64 or more comes first
    empty = values.isin(["", *form.missing])
    return values.mask(empty) if empty.any() else None


def not_utf8_error(name: str, place: str) -> BadInput:
    """Return the error for a file that is not UTF-8."""
    found = "or say its encoding under [data.format] of a recipe: sfumato import FILE --preview finds it"
    return BadInput(place, f'"{name}" is not UTF-8 text; save it as UTF-8, {found}')


def wrong_encoding_error(name: str, encoding: str) -> BadInput:
    """Return the error for a file that is not in the given encoding."""
    return BadInput("data.format.encoding", f'"{name}" is not text in {encoding}; say another')


def comma_format(form: TextFormat) -> TextFormat:
    """Return the format of a table after ``rewrite_with_commas`` or ``rewrite_fixed_widths``."""
    return replace(form, delimiter="\t" if form.decimal == "," else ",", quote='"', skip=0, widths=())


def rewrite_with_commas(lines: Iterable[str], name: str, form: TextFormat, place: str) -> Iterator[bytes]:
    """Rewrite the lines of a blank-separated table with commas, many lines at once. Raises BadInput."""
    plain = (line.replace("\t", " ").strip(" \r\n") + "\n" for line in lines)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=comma_format(form).delimiter, lineterminator="\n")
    rows = (row for row in split_rows(plain, " ", form.quote, skip_blanks=True) if row)
    try:
        while some := list(itertools.islice(rows, ROWS_PER_WRITE)):
            writer.writerows(some)
            yield out.getvalue().encode("utf-8")
            out.seek(0)
            out.truncate()
    except csv.Error:
        raise BadInput(place, f'"{name}" is not a table: {UNPARSED_MESSAGE}') from None


def rewrite_fixed_widths(lines: Iterable[str], name: str, form: TextFormat) -> Iterator[bytes]:
    """Rewrite the lines of a table of fixed widths with commas, many lines at once; empty lines are left out.

    Raises BadInput where a line is longer than all columns together.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=comma_format(form).delimiter, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    total = sum(form.widths)
    numbered = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, start=form.skip + 1))
    filled = ((number, line) for number, line in numbered if line.strip())
    while some := list(itertools.islice(filled, ROWS_PER_WRITE)):
        for number, line in some:
            if line[total:].strip():
                raise BadInput(
                    "data.format.widths",
                    f'line {number:,} of "{name}" has {len(line.rstrip()):,} characters, and the widths add up to {total:,}; '
                    "give one for each column",
                )
            writer.writerow(split_fixed_widths(line, form.widths))
        yield out.getvalue().encode("utf-8")
        out.seek(0)
        out.truncate()


def split_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of bytes in UTF-8, each with its line feed."""
    decoder, rest = codecs.getincrementaldecoder("utf-8")(), ""
    for piece in pieces:
        *whole, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (line + "\n" for line in whole)
    if rest:
        yield rest


def _header_by_format(content: bytes, name: str, form: TextFormat, place: str) -> tuple[list[str], str]:
    """Return the names of the columns and the separator, in the given format."""
    text = io.StringIO(content[: 2 * MAX_ROW_BYTES].decode("utf-8", "ignore"), newline="")
    try:
        rows = split_rows(text, form.delimiter, form.quote, skip_blanks=form.trim)
        first: list[str] = next((row for row in rows if row), [])
    except csv.Error:
        raise BadInput(place, f'"{name}" is not a table: its first line cannot be split into names') from None
    if not first:
        raise BadInput(place, f'"{name}" has no line to read' + (f" after the first {form.skip}" if form.skip else ""))
    if not form.header:
        return list(names_without_header(form, len(first))), form.delimiter
    return [cell.strip() if form.trim else cell for cell in first], form.delimiter


def names_without_header(form: TextFormat, columns: int) -> Sequence[str]:
    """Return the names of the columns of a table without a line of names: as given, else numbered. Raises BadInput."""
    if form.names and len(form.names) != columns:
        raise BadInput(
            "data.format.names",
            f"{count_noun(len(form.names), 'name')} for {count_noun(columns, 'column')}: give one for each",
        )
    return form.names or [f"column_{number + 1}" for number in range(columns)]


def _header_of_first_line(content: bytes, name: str, place: str) -> tuple[list[str], str]:
    """Return the names of the columns and the separator that occurs most often in the first line."""
    first = content.partition(b"\n")[0].decode("utf-8", "ignore").rstrip("\r")  # a longer line is cut
    separator = max(",\t;|", key=first.count)
    if first.count(separator) == 0 and _cannot_be_name(first):
        raise BadInput(place, f'"{name}" is not a table: its first line names no columns')
    try:
        return _remove_apostrophes(next(csv.reader([first], delimiter=separator, strict=True))), separator
    except csv.Error:
        raise BadInput(place, f'"{name}" is not a table: its first line cannot be split into names') from None


def _cannot_be_name(line: str) -> bool:
    """Return whether a line without a separator cannot be the header of a one-column table."""
    return not line.strip() or len(line) > 200 or any(sign in line for sign in "{}<>")


def _remove_apostrophes(header: list[str]) -> list[str]:
    """Return the names of a header, without apostrophes where these surround every name."""
    quoted = all(len(name) > 2 and name[0] == name[-1] == "'" for name in header)
    return [name[1:-1] for name in header] if quoted else header


def check_header(header: Sequence[str], name: str, place: str) -> None:
    """Raise BadInput where names of columns are too many, unprintable or not distinct."""
    if len(header) > MAX_COLUMNS:
        raise BadInput(
            place,
            f'"{name}" has {count_noun(len(header), "column")}; at most {MAX_COLUMNS:,} can be read: leave some out',
        )
    first: dict[str, int] = {}
    for i, column in enumerate(header, start=1):
        if not column.isprintable():
            raise BadInput(
                place, f'the name of column {i} of "{name}" has characters that cannot be printed; {NAMES_RULE}'
            )
        if (earlier := first.setdefault(column, i)) != i:
            # names are quoted only if they are names: in a file without a header they are a record's values
            if looks_like_header(header):
                raise BadInput(place, f'"{name}" has two columns called "{column}"')
            raise BadInput(place, f'columns {earlier} and {i} of "{name}" have the same name; {NAMES_RULE}')


def check_rows(file: pa.NativeFile, name: str, columns: int, separator: str, quote: str, place: str) -> int:
    """Return the number of rows, header included. Raises BadInput where a row has more or fewer fields than the header."""
    # pandas would fill a short row with missing values and cut a long one
    wrong: list[csv_reader.InvalidRow] = []

    def count(row: csv_reader.InvalidRow) -> str:
        wrong.append(row)
        return "skip"

    names = [str(i) for i in range(columns)]
    rows = 0
    try:
        with csv_reader.open_csv(
            file,
            # without threads Arrow knows the number of an invalid row
            csv_reader.ReadOptions(use_threads=False, column_names=names, block_size=MAX_ROW_BYTES),
            csv_reader.ParseOptions(
                delimiter=separator, quote_char=quote or False, newlines_in_values=True, invalid_row_handler=count
            ),
            # only rows are counted, so one column is kept, as bytes
            csv_reader.ConvertOptions(include_columns=names[:1], column_types={names[0]: pa.binary()}),
        ) as batches:
            rows = sum(len(batch) for batch in batches)
    except pa.ArrowInvalid:
        raise BadInput(place, f'"{name}" is not a table: {UNPARSED_MESSAGE}') from None
    if wrong:
        first = wrong[0]
        raise BadInput(
            place,
            f'"{name}" is not a table: {len(wrong):,} of its rows have more or fewer fields than the header; '
            f"the first is row {first.number}, with {first.actual_columns} instead of {first.expected_columns}",
        )
    return rows


def _parse_csv(
    content: bytes, name: str, header: list[str], separator: str, form: TextFormat, as_text: set[str], place: str
) -> pd.DataFrame:
    """Parse bytes in UTF-8 as a table (n, k). Raises BadInput."""
    with translate_parser_errors(name, place):
        frame: pd.DataFrame = pd.read_csv(io.BytesIO(content), **read_csv_options(header, separator, form, as_text))
    return frame


def read_csv_options(
    header: Sequence[str], separator: str, form: TextFormat, as_text: Collection[str]
) -> dict[str, Any]:
    """Return the options with which pandas reads a text table in UTF-8.

    Columns in ``as_text`` stay as written; others become numbers where all of their cells are.
    """
    return {
        "sep": separator,
        "header": 0 if form.header else None,
        "names": list(header),
        "dtype": dict.fromkeys(as_text, "str"),
        "keep_default_na": False,
        "na_values": ["", *form.missing],
        "quotechar": form.quote or '"',
        "quoting": csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
        "skipinitialspace": form.trim,
        "encoding": "utf-8",
        # otherwise pandas guesses the type chunk by chunk and may mix types in a column
        "low_memory": False,
        # otherwise a separator at the end of each row makes the first column the index
        "index_col": False,
        # in a table of one column an empty line is a record with a missing value
        "skip_blank_lines": len(header) > 1,
    }


@contextmanager
def translate_parser_errors(name: str, place: str) -> Iterator[None]:
    """Turn errors of pandas within the block into BadInput, or MemoryError where memory does not suffice."""
    try:
        yield
    except BadInput:
        raise
    except pd.errors.ParserError as error:
        if "out of memory" in str(error):
            raise MemoryError from None
        raise BadInput(place, f'"{name}" is not a table: {UNPARSED_MESSAGE}') from None
    except MemoryError:
        raise
    except (pd.errors.EmptyDataError, pd.errors.ParserWarning, ValueError):
        raise BadInput(place, f'"{name}" is not a table: {UNPARSED_MESSAGE}') from None


def _trim_cells(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Return a table of text without blanks around its cells, and with missing codes masked."""
    stripped = {column: frame[column].str.strip() for column in frame}
    return pd.DataFrame({column: values.mask(values.isin(["", *missing])) for column, values in stripped.items()})


def _parse_numbers(values: pd.Series, form: TextFormat) -> pd.Series:
    """Return a column of text (n,) as numbers where the format's signs make every cell one; otherwise unchanged."""
    # each distinct text is parsed once: the parser is Python
    codes, texts = pd.factorize(values)
    found = [parse_number(text, form.decimal, form.thousands) for text in texts]
    if not found or any(one is None for one in found):
        return values
    # row 0 of the reindexed series is NaN, for the code -1 of a missing cell
    numbers = pd.Series(found, dtype="float64").reindex(range(-1, len(found))).to_numpy()[codes + 1]
    whole = len(numbers) and bool((numbers % 1 == 0).all()) and abs(numbers).max() < 2**53
    return pd.Series(numbers.astype("int64") if whole else numbers, index=values.index)
