"""Tables of text of any size, read some rows at a time. Untrusted: the file.

pandas parses each block of rows and decides what a column is in it: whole numbers, numbers, flags or text. Where the
blocks agree, their parts are joined. Otherwise the column is read again as text, and each distinct text is parsed once,
all together. Nothing is written to a disk but the columns of a long file that is imported (``spooled_columns``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_writer
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import NO_VALUE_CODE, factorize_column
from sfumato.engine.recipe.text_format import TextFormat

from .file_formats import ReadRequest
from .limits import column_buffer_bytes
from .number_signs import write_padded_digits
from .raw_tables import ColumnBuffer, RawTable
from .sources import SOURCE_HEAD_BYTES, SourceFile
from .spooled_columns import GrowingTexts, SpooledColumn, SpooledParts, SpoolFile, column_of_numbers
from .text_files import (
    check_rows,
    columns_with_levels,
    convert_texts,
    parse_column,
    read_csv_options,
    read_header,
    translate_parser_errors,
)
from .text_streams import TableText, prepare_text

CELLS_PER_BLOCK = 1 << 21
"""Number of cells of all columns in a block of rows."""
EXACT_FLOAT_LIMIT = 2.0**53
"""Size below which an integer keeps its value as a float."""
Codes = NDArray[np.signedinteger[Any]] | SpooledParts
"""Codes (n,) of the records of a column, in memory or on disk."""
INTEGER_TYPES = [np.dtype(kind) for kind in ("int8", "int16", "int32", "int64")]


@dataclass(eq=False)
class _ColumnParts:
    """Parts of a column, one for each block of rows, with the type that pandas found in each.

    spooled: parts of a long file, which lie on disk; None where ``parts`` has them
    texts: distinct texts of those on disk
    parts: values of each part
    kinds: "whole", "real", "flag", "text", "empty" where no record has a value, or "other"
    is_sure: no part could have been read otherwise within the whole column, judged by its own values
    has_zero: a whole number is 0
    is_whole: all numbers are whole
    n_bytes: bytes of the parts
    """

    spooled: SpooledParts | None = None
    texts: GrowingTexts = field(default_factory=GrowingTexts)
    parts: list[Any] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    is_sure: bool = True
    """No part may have been read otherwise within the whole, as far as its own values say."""
    has_zero: bool = False
    is_whole: bool = True
    n_bytes: int = 0

    def add_part(self, values: pd.Series) -> None:
        """Add the values of the next block of rows."""
        part = self._compact_part(values)
        if self.spooled is not None:
            self._spool_part(self.spooled, part)
            return
        self.parts.append(part)
        self.n_bytes += sum(one.nbytes for one in part) if isinstance(part, tuple) else part.nbytes

    def _spool_part(self, spooled: SpooledParts, part: Any) -> None:
        """Write the values of the next block of rows to the disk."""
        if isinstance(part, tuple):
            codes, texts = part
            # the code -1 of a missing value selects the appended last entry
            places = np.append(self.texts.place_texts(texts), NO_VALUE_CODE)
            spooled.append_piece(_smallest_integers(places[codes]))
            self.n_bytes = self.texts.texts.nbytes
        elif part.dtype == object or (part.dtype.kind == "f" and np.isnan(part).all()):
            # a column of objects is read again as text
            spooled.append_missing(len(part), np.dtype(np.float64))
        else:
            spooled.append_piece(part)

    def _compact_part(self, values: pd.Series) -> Any:
        """Return the values of a block in the fewest bytes and note their type."""
        if isinstance(values.dtype, pd.StringDtype):
            self.kinds.add("text")
            return _encode_texts(values)
        numbers = values.to_numpy()
        if numbers.dtype.kind == "b":
            self.kinds.add("flag")
        elif numbers.dtype == np.int64:
            self.kinds.add("whole")
            self._note_whole_numbers(numbers, maybe_whole=True)
            return _smallest_integers(numbers)
        elif numbers.dtype == np.float64:
            present = numbers[~np.isnan(numbers)]
            self.kinds.add("real" if len(present) else "empty")
            self._note_whole_numbers(present, maybe_whole=bool((present == np.floor(present)).all()))
        else:
            self.kinds.add("other")
        return numbers

    def _note_whole_numbers(self, present: NDArray[Any], *, maybe_whole: bool) -> None:
        """Note whether whole numbers of a block could have other values when they are read as floats."""
        self.is_whole &= maybe_whole
        if maybe_whole and len(present):
            # a larger whole number loses digits if another block makes the column one of floats
            self.is_sure &= bool(present.min() > -EXACT_FLOAT_LIMIT) and bool(present.max() < EXACT_FLOAT_LIMIT)
            self.has_zero |= bool((present == 0).any())

    def join_parts(self, *, minus_zero: bool, codes: bool) -> ColumnBuffer | _CodedTexts | None:
        """Join the parts to a column; None where the column has to be read again as text.

        ``minus_zero``: the file may contain ``-0``; ``codes``: some missing codes are numbers.
        """
        kinds = self.kinds - {"empty"}
        if kinds == {"text"}:
            return self.join_texts()
        if self.spooled is not None:
            return self._join_spooled_numbers(self.spooled, minus_zero=minus_zero, codes=codes)
        # a single block is the whole column, so that pandas has seen all its values
        if len(self.parts) == 1:
            return ColumnBuffer(
                numbers=self.parts[0], kind=np.dtype("int64") if "whole" in kinds else self.parts[0].dtype
            )
        if not self.parts or "other" in kinds:
            return None
        if self.kinds in ({"flag"}, {"whole"}, {"empty"}):
            parts = [part.astype(max(one.dtype for one in self.parts), copy=False) for part in self.parts]
            kind = {"flag": "bool", "whole": "int64", "empty": "float64"}[next(iter(self.kinds))]
            return ColumnBuffer(numbers=np.concatenate(parts), kind=np.dtype(kind))
        if kinds <= {"whole", "real"} and self._are_floats(minus_zero=minus_zero, codes=codes):
            parts = [part.astype(np.float64, copy=False) for part in self.parts]
            return ColumnBuffer(numbers=np.concatenate(parts), kind=np.dtype("float64"))
        return None

    def _are_floats(self, *, minus_zero: bool, codes: bool) -> bool:
        """Return whether numbers of several blocks are what they were as floats, had all been read together."""
        # -0 is 0 among whole numbers and -0.0 among floats; a code 9 may be spelled 9.0 in another block
        return self.is_sure and not codes and not (minus_zero and self.has_zero)

    def _join_spooled_numbers(self, spooled: SpooledParts, *, minus_zero: bool, codes: bool) -> ColumnBuffer | None:
        """Return the column of the parts on disk, as ``join_parts`` does of those in memory."""
        kinds, kind = self.kinds - {"empty"}, None
        if "other" in kinds:
            return None
        if len(spooled.pieces) == 1:
            kind = "int64" if "whole" in kinds else str(spooled.dtype)
        elif self.kinds in ({"flag"}, {"whole"}, {"empty"}):
            kind = {"flag": "bool", "whole": "int64", "empty": "float64"}[next(iter(self.kinds))]
        elif kinds <= {"whole", "real"} and self._are_floats(minus_zero=minus_zero, codes=codes):
            kind = "float64"
        return None if kind is None else ColumnBuffer(spooled=column_of_numbers(spooled, np.dtype(kind)))

    def join_texts(self) -> _CodedTexts:
        """Return the column of texts of parts that are texts, or have no value."""
        if self.spooled is not None:
            return _CodedTexts(self.spooled, self.texts.texts)
        return _join_coded_texts(
            [_all_missing_codes(len(part)) if isinstance(part, np.ndarray) else part for part in self.parts]
        )


def _smallest_integers(numbers: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Return integers in the smallest type that holds them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return numbers.astype(
        next(kind for kind in INTEGER_TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    )


def _encode_texts(values: pd.Series) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    """Return the codes (n,) of texts and the distinct texts (k,), in order of appearance."""
    texts = pa.array(values, from_pandas=True)
    found = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    codes = found.indices.fill_null(NO_VALUE_CODE).to_numpy(zero_copy_only=False)
    return _smallest_integers(codes.astype(np.int64)), found.dictionary


def _all_missing_codes(records: int) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    """Return the coded texts of a part without any value."""
    return np.full(records, NO_VALUE_CODE, dtype=np.int8), pa.array([], pa.string())


@dataclass(frozen=True, eq=False)
class _CodedTexts:
    """Column of text as codes.

    codes: code of each record's text, (n,); NO_VALUE_CODE for a missing value
    texts: distinct texts in order of appearance, (k,)
    """

    codes: Codes
    texts: pa.Array

    @property
    def series(self) -> pd.Series:
        """Return the distinct texts, (k,)."""
        return pd.Series(pd.array(self.texts, dtype="str"))


def _join_coded_texts(parts: Sequence[tuple[NDArray[np.signedinteger[Any]], pa.Array]]) -> _CodedTexts:
    """Join the coded texts of parts to one column."""
    if len(parts) == 1:
        return _CodedTexts(*parts[0])
    # positions in a plain string array are 32-bit: all texts may be longer than 2 GiB
    own = [texts.cast(pa.large_string()) for _, texts in parts]
    together = pa.concat_arrays(own).dictionary_encode()
    places = together.indices.to_numpy(zero_copy_only=False)
    kind = _smallest_integers(np.array([NO_VALUE_CODE, len(together.dictionary)])).dtype
    starts = np.cumsum([0, *map(len, own)])
    codes = [
        # NO_VALUE_CODE is -1 and so selects the appended last entry
        np.append(places[start : start + len(texts)], NO_VALUE_CODE).astype(kind)[part]
        for (part, _), texts, start in zip(parts, own, starts, strict=False)
    ]
    return _CodedTexts(np.concatenate(codes) if codes else np.array([], dtype=np.int8), together.dictionary)


@dataclass(frozen=True)
class TextColumns:
    """Reader of the columns of a text table.

    source: file
    text: its text
    header: names of the columns
    separator: separator of the cells
    known_format: format of the recipe, None without one
    levels: columns that stay text
    place: recipe key at which an error is reported
    keeps_zeros: columns of digits of which some have a leading zero stay text too, as codes
    spool: where the columns of a long file lie; None for memory
    """

    source: SourceFile
    text: TableText
    header: tuple[str, ...]
    separator: str
    known_format: TextFormat | None
    levels: frozenset[str]
    place: str
    keeps_zeros: bool = False
    spool: SpoolFile | None = None

    def read_columns(self, names: Sequence[str], max_bytes: int) -> dict[str, ColumnBuffer]:
        """Read the first columns of these names, as many as ``max_bytes`` hold, at least one. Raises BadInput."""
        form = self.text.form
        signs = form.trim or (form.decimal, form.thousands) != (".", "")
        found = self._read_written_columns(names, max_bytes) if signs else self._read_parsed_columns(names, max_bytes)
        self.source.check_unchanged()
        return found

    def read_written_columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Read the texts of columns, (n,) each, with blanks around them, missing codes and empty texts.

        Raises BadInput.
        """
        untrimmed = replace(self, text=replace(self.text, form=replace(self.text.form, trim=False)), spool=None)
        found: dict[str, pd.Series] = {}
        # another pass over the file only for the columns that the memory did not hold
        while unread := [name for name in names if name not in found]:
            parts = untrimmed._read_parts(unread, column_buffer_bytes(), as_text=frozenset(unread), raw=True)
            for name in list(parts):
                held = parts.pop(name).join_texts()
                found[name] = _categorical_column(held.codes, held.series).series
        self.source.check_unchanged()
        return found

    def _read_parsed_columns(self, names: Sequence[str], most_bytes: int) -> dict[str, ColumnBuffer]:
        """Read columns as pandas parses them, and again as text those whose blocks disagree."""
        form = self.text.form
        found: dict[str, ColumnBuffer] = {}
        again: list[str] = []
        codes = any(_is_float_text(code) for code in form.missing)
        may_be_codes = self.keeps_zeros and self.text.survey.may_have_leading_zeros
        parts = self._read_parts(names, most_bytes, as_text=self.levels)
        for name in list(parts):
            part = parts.pop(name)
            held = part.join_parts(minus_zero=self.text.survey.may_have_minus_zero, codes=codes)
            if held is None or (may_be_codes and part.is_whole and part.kinds & {"whole", "real"}):
                again.append(name)
            else:
                found[name] = self._convert_column(name, held)
        if again:
            found |= self._read_written_columns(again, most_bytes - sum(held.n_bytes for held in found.values()))
        return found

    def _convert_column(self, name: str, held: ColumnBuffer | _CodedTexts) -> ColumnBuffer:
        """Return a column whose texts are converted to the numbers that they write."""
        if isinstance(held, ColumnBuffer):
            return held
        texts = held.series
        meant = convert_texts(texts.to_frame(name), self.known_format, set(self.levels))[name]
        # nothing was converted, so the codes stay valid
        same = isinstance(meant.dtype, pd.StringDtype) and not meant.hasnans
        return _categorical_column(held.codes, texts) if same else _column_from_codes(held.codes, meant)

    def _read_written_columns(self, names: Sequence[str], most_bytes: int) -> dict[str, ColumnBuffer]:
        """Read columns as text and parse each of their distinct texts once."""
        found = {}
        parts = self._read_parts(names, most_bytes, as_text=frozenset(names), raw=True)
        for name in list(parts):
            held = parts.pop(name).join_texts()
            cells = pa.BufferOutputStream()
            # quoted, so that line breaks and separators within a cell stay
            quoted = csv_writer.WriteOptions(include_header=False, quoting_style="all_valid")
            csv_writer.write_csv(pa.table({"cell": held.texts}), cells, quoted)
            levels = set(self.levels)
            if self.keeps_zeros and self._has_padded_digits(held.texts):
                levels.add(name)
            meant = parse_column(
                cells.getvalue().to_pybytes(), self.source.name, name, self._given_format(), levels, self.place
            )
            found[name] = _column_from_codes(held.codes, meant)
        return found

    def _has_padded_digits(self, texts: pa.Array) -> bool:
        """Return whether the distinct texts (k,) that are no missing codes are digits, and some begin with a zero."""
        cells = (text.strip() if self.text.form.trim else text for text in texts.to_pylist())
        return write_padded_digits(cell for cell in cells if cell and cell not in self.text.form.missing)

    def _given_format(self) -> TextFormat | None:
        """Return the format that splits the text, None where the recipe has no format."""
        return None if self.known_format is None else self.text.form

    def _read_parts(
        self, names: Sequence[str], most_bytes: int, as_text: frozenset[str], *, raw: bool = False
    ) -> dict[str, _ColumnParts]:
        """Read the parts of the columns; in ``raw`` columns an empty cell is an empty text."""
        found = {name: _ColumnParts(None if self.spool is None else SpooledParts(self.spool)) for name in names}
        for frame in self._read_frames(names, as_text, raw=raw):
            for name, gathered in found.items():
                gathered.add_part(frame[name])
            while len(found) > 1 and sum(one.n_bytes for one in found.values()) > most_bytes:
                # a column left out here is asked for again in the next pass
                found.popitem()
        return found

    def _read_frames(self, names: Sequence[str], as_text: frozenset[str], *, raw: bool) -> Iterator[pd.DataFrame]:
        """Yield the blocks of rows of some columns as frames."""
        rows = max(1, CELLS_PER_BLOCK // len(self.header))
        said = read_csv_options(self.header, self.separator, self.text.form, as_text & set(names))
        if raw:
            said["na_filter"] = False
        if len(names) < len(self.header):
            said["usecols"] = list(names)
        opened: Any = self.text.open()
        with (
            translate_parser_errors(self.source.name, self.place),
            pd.read_csv(opened, **said, chunksize=rows) as frames,
        ):
            yield from frames


def _is_float_text(code: str) -> bool:
    """Return whether a text writes a float."""
    try:
        float(code)
    except ValueError:
        return False
    return True


def _column_from_codes(codes: Codes, values: pd.Series) -> ColumnBuffer:
    """Return the column of which ``codes`` (n,) select the values (k,), some of which may be missing."""
    if values.dtype == np.int64 and _are_all_present(codes):
        kept = _smallest_integers(values.to_numpy())
        if isinstance(codes, SpooledParts):
            return _select_spooled(codes, lambda some: pd.Series(kept[some].astype(np.int64)), values)
        return ColumnBuffer(numbers=kept[codes], kind=np.dtype("int64"))
    if values.dtype in (np.int64, np.float64):
        # the code -1 selects the NaN at the end
        padded = np.append(values.to_numpy(dtype=np.float64), np.nan)
        if isinstance(codes, SpooledParts):
            return _select_spooled(codes, lambda some: pd.Series(padded[some]), values)
        return ColumnBuffer(numbers=padded[codes], kind=np.dtype("float64"))
    if isinstance(values.dtype, pd.StringDtype):
        own, texts = factorize_column(values)
        placed = _smallest_integers(np.append(own, NO_VALUE_CODE))
        if isinstance(codes, SpooledParts):
            return _select_spooled(codes, lambda some: _categorical_texts(placed[some], texts), values)
        return _categorical_column(placed[codes], texts)
    if isinstance(codes, SpooledParts):
        return _select_spooled(codes, lambda some: values.take(some).reset_index(drop=True), values)
    return ColumnBuffer(values.take(codes).reset_index(drop=True))


def _are_all_present(codes: Codes) -> bool:
    """Return whether no record lacks a value."""
    return codes.lowest >= 0 if isinstance(codes, SpooledParts) else bool((codes >= 0).all())


def _select_spooled(
    codes: SpooledParts, select: Callable[[NDArray[Any]], pd.Series], values: pd.Series
) -> ColumnBuffer:
    """Return a column on disk of which ``codes`` select the values (k,)."""
    return ColumnBuffer(spooled=SpooledColumn(codes, select, values))


def _categorical_column(codes: Codes, texts: pd.Series) -> ColumnBuffer:
    """Return texts (n,) as a categorical whose categories are the distinct texts (k,), in order of appearance."""
    if isinstance(codes, SpooledParts):
        return _select_spooled(codes, lambda some: _categorical_texts(some, texts), texts)
    return ColumnBuffer(_categorical_texts(codes, texts))


def _categorical_texts(codes: NDArray[Any], texts: pd.Series) -> pd.Series:
    """Return the categorical (n,) of which codes select the texts (k,)."""
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(texts), validate=False))


def read_text_table(source: SourceFile, request: ReadRequest) -> RawTable:
    """Read the table of a text file, in the requested format or as its first line shows.

    Columns that have levels in the schema stay text. Without a format the file is UTF-8, the first line has the names
    and shows the separator, only empty cells are missing, and columns without other signs may have decimal commas.
    Raises BadInput, whose message never contains a value.
    """
    form, place = request.form, request.place
    text = prepare_text(source.iterate_pieces, source.name, form or TextFormat(), place, source.survey)
    known = text.form if form else None
    header, separator, notes = read_header(text.first_lines(SOURCE_HEAD_BYTES), source.name, known, place)
    rows = check_rows(pa.PythonFile(text.open(), mode="r"), source.name, len(header), separator, text.form.quote, place)
    levels = frozenset(columns_with_levels(request.schema))
    # a schema says what is a number; without one a column that would lose zeros is one of codes
    codes = request.schema is None
    spool = None if request.spool is None or rows <= request.spool.rows else SpoolFile(request.spool.folder, place)
    columns = TextColumns(source, text, tuple(header), separator, known, levels, place, codes, spool)
    return replace(RawTable.from_reader(columns, header, needed=request.needed), notes=notes)
