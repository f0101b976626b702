"""Tables of text of any size: columns are gathered some rows at a time, and the meaning of a cell is found from all
values of its column.

Text is parsed by pandas. What a column is, whole numbers, numbers, flags or text, it finds of each block of rows; where
the blocks agree, that is what it finds of the whole. Where they do not, or where a block may have been read otherwise
(``-0`` is 0 among whole numbers, -0.0 among others), the column is read again as text, and each of its different texts
is parsed once, all of them together. A table of one block is never read again. Text is held as its different values and
a code a record, whole numbers in the fewest bytes, and nothing is written to a disk. Untrusted: the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_writer
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import NO_VALUE_CODE, factorize_column
from sfumato.engine.recipe.text_format import TextFormat

from .file_formats import ReadRequest
from .raw_tables import ColumnBuffer, RawTable
from .sources import SOURCE_HEAD_BYTES, SourceFile
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
"""Cells of all columns in a block: as many as pandas splits before any becomes part of a column."""
EXACT_FLOAT_LIMIT = 2.0**53
"""Below this a whole number is the same whether it is read as an integer or as a float."""
INTEGER_TYPES = [np.dtype(kind) for kind in ("int8", "int16", "int32", "int64")]


@dataclass(eq=False)
class _ColumnParts:
    """Parts of a column, one a block of rows, and what pandas took each for.

    parts: values of each part
    kinds: "whole", "real", "flag", "text", "empty" where no record has a value, or "other"
    is_sure: no part may have been read otherwise within the whole, as far as its own values say
    has_zero: a whole number is 0
    n_bytes: bytes of the parts
    """

    parts: list[Any] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    is_sure: bool = True
    """No part may have been read otherwise within the whole, as far as its own values say."""
    has_zero: bool = False
    n_bytes: int = 0

    def add_part(self, values: pd.Series) -> None:
        part = self._compact_part(values)
        self.parts.append(part)
        self.n_bytes += sum(one.nbytes for one in part) if isinstance(part, tuple) else part.nbytes

    def _compact_part(self, values: pd.Series) -> Any:
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
        """Note whether numbers that may have been read as whole ones could be other numbers when read as floats."""
        if maybe_whole and len(present):
            self.is_sure &= bool(present.min() > -EXACT_FLOAT_LIMIT) and bool(present.max() < EXACT_FLOAT_LIMIT)
            self.has_zero |= bool((present == 0).any())

    def join_parts(self, *, minus_zero: bool, codes: bool) -> ColumnBuffer | _CodedTexts | None:
        """Join the parts to a column; None where it has to be read again.

        ``minus_zero``: the file may contain ``-0``; ``codes``: numbers may stand for a missing value.
        """
        kinds = self.kinds - {"empty"}
        if kinds == {"text"}:
            return _join_coded_texts(
                [_all_missing_codes(len(part)) if isinstance(part, np.ndarray) else part for part in self.parts]
            )
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
        certain = self.is_sure and not codes and not (minus_zero and self.has_zero)
        if kinds <= {"whole", "real"} and certain:
            parts = [part.astype(np.float64, copy=False) for part in self.parts]
            return ColumnBuffer(numbers=np.concatenate(parts), kind=np.dtype("float64"))
        return None


def _smallest_integers(numbers: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Return whole numbers in the fewest bytes that hold them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return numbers.astype(
        next(kind for kind in INTEGER_TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    )


def _encode_texts(values: pd.Series) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    """Return codes (n,) of texts and the distinct texts, in order of appearance."""
    texts = pa.array(values, from_pandas=True)
    found = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    codes = found.indices.fill_null(NO_VALUE_CODE).to_numpy(zero_copy_only=False)
    return _smallest_integers(codes.astype(np.int64)), found.dictionary


def _all_missing_codes(records: int) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    return np.full(records, NO_VALUE_CODE, dtype=np.int8), pa.array([], pa.string())


@dataclass(frozen=True, eq=False)
class _CodedTexts:
    """Column of text as codes.

    codes: code of each record's text, (n,); ABSENT for a missing value
    texts: distinct texts in order of appearance, (k,)
    """

    codes: NDArray[np.signedinteger[Any]]
    texts: pa.Array

    @property
    def series(self) -> pd.Series:
        """Return the distinct texts, (k,)."""
        return pd.Series(pd.array(self.texts, dtype="str"))


def _join_coded_texts(parts: Sequence[tuple[NDArray[np.signedinteger[Any]], pa.Array]]) -> _CodedTexts:
    """Join the coded texts of parts to one column."""
    if len(parts) == 1:
        return _CodedTexts(*parts[0])
    own = [texts.cast(pa.large_string()) for _, texts in parts]
    together = pa.concat_arrays(own).dictionary_encode()
    places = together.indices.to_numpy(zero_copy_only=False)
    kind = _smallest_integers(np.array([NO_VALUE_CODE, len(together.dictionary)])).dtype
    starts = np.cumsum([0, *map(len, own)])
    codes = [
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
    known_format: format, where one is given
    levels: columns that stay text
    place: recipe key at which an error is reported
    """

    source: SourceFile
    text: TableText
    header: tuple[str, ...]
    separator: str
    known_format: TextFormat | None
    levels: frozenset[str]
    place: str

    def read_columns(self, names: Sequence[str], max_bytes: int) -> dict[str, ColumnBuffer]:
        form = self.text.form
        signs = form.trim or (form.decimal, form.thousands) != (".", "")
        found = self._read_written_columns(names, max_bytes) if signs else self._read_parsed_columns(names, max_bytes)
        self.source.check_unchanged()
        return found

    def _read_parsed_columns(self, names: Sequence[str], most_bytes: int) -> dict[str, ColumnBuffer]:
        form = self.text.form
        found: dict[str, ColumnBuffer] = {}
        again: list[str] = []
        codes = any(_is_float_text(code) for code in form.missing)
        parts = self._read_parts(names, most_bytes, as_text=self.levels)
        for name in list(parts):
            held = parts.pop(name).join_parts(minus_zero=self.text.survey.may_have_minus_zero, codes=codes)
            if held is None:
                again.append(name)
            else:
                found[name] = self._convert_column(name, held)
        if again:
            found |= self._read_written_columns(again, most_bytes - sum(held.n_bytes for held in found.values()))
        return found

    def _convert_column(self, name: str, held: ColumnBuffer | _CodedTexts) -> ColumnBuffer:
        """Return a column with the numbers that its texts write."""
        if isinstance(held, ColumnBuffer):
            return held
        texts = held.series
        meant = convert_texts(texts.to_frame(name), self.known_format, set(self.levels))[name]
        same = isinstance(meant.dtype, pd.StringDtype) and not meant.hasnans
        return _categorical_column(held.codes, texts) if same else _column_from_codes(held.codes, meant)

    def _read_written_columns(self, names: Sequence[str], most_bytes: int) -> dict[str, ColumnBuffer]:
        """Read columns each of whose distinct texts is parsed once."""
        found = {}
        parts = self._read_parts(names, most_bytes, as_text=frozenset(names), raw=True)
        for name in list(parts):
            held = _join_coded_texts(parts.pop(name).parts)
            cells = pa.BufferOutputStream()
            quoted = csv_writer.WriteOptions(include_header=False, quoting_style="all_valid")
            csv_writer.write_csv(pa.table({"cell": held.texts}), cells, quoted)
            levels = set(self.levels)
            meant = parse_column(
                cells.getvalue().to_pybytes(), self.source.name, name, self._given_format(), levels, self.place
            )
            found[name] = _column_from_codes(held.codes, meant)
        return found

    def _given_format(self) -> TextFormat | None:
        return None if self.known_format is None else self.text.form

    def _read_parts(
        self, names: Sequence[str], most_bytes: int, as_text: frozenset[str], *, raw: bool = False
    ) -> dict[str, _ColumnParts]:
        """Read the parts of the columns; in ``raw`` columns an empty cell is an empty text."""
        found = {name: _ColumnParts() for name in names}
        for frame in self._read_frames(names, as_text, raw=raw):
            for name, gathered in found.items():
                gathered.add_part(frame[name])
            while len(found) > 1 and sum(one.n_bytes for one in found.values()) > most_bytes:
                found.popitem()
        return found

    def _read_frames(self, names: Sequence[str], as_text: frozenset[str], *, raw: bool) -> Iterator[pd.DataFrame]:
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
    try:
        float(code)
    except ValueError:
        return False
    return True


def _column_from_codes(codes: NDArray[np.signedinteger[Any]], values: pd.Series) -> ColumnBuffer:
    """Return the column of codes (n,) of values (k,), some of which may be missing."""
    if values.dtype == np.int64 and (codes >= 0).all():
        return ColumnBuffer(numbers=_smallest_integers(values.to_numpy())[codes], kind=np.dtype("int64"))
    if values.dtype in (np.int64, np.float64):
        numbers = np.append(values.to_numpy(dtype=np.float64), np.nan)[codes]
        return ColumnBuffer(numbers=numbers, kind=np.dtype("float64"))
    if isinstance(values.dtype, pd.StringDtype):
        own, texts = factorize_column(values)
        return _categorical_column(_smallest_integers(np.append(own, NO_VALUE_CODE)[codes]), texts)
    return ColumnBuffer(values.take(codes).reset_index(drop=True))


def _categorical_column(codes: NDArray[np.signedinteger[Any]], texts: pd.Series) -> ColumnBuffer:
    """Return texts (n,) as a categorical whose categories are the distinct texts (k,), in order of appearance."""
    return ColumnBuffer(pd.Series(pd.Categorical.from_codes(codes, pd.Index(texts), validate=False)))


def read_text_table(source: SourceFile, request: ReadRequest) -> RawTable:
    """Read the table of a text file, as the requested format says, or as its first line shows. Columns with levels in
    the schema stay text.

    Without a format: UTF-8, the separator of the first line, names in it, only empty cells missing, and decimal commas
        in columns that have no other signs. Raises BadInput, whose message never contains a value.
    """
    form, place = request.form, request.place
    text = prepare_text(source.iterate_pieces, source.name, form or TextFormat(), place, source.survey)
    known = text.form if form else None
    header, separator = read_header(text.first_lines(SOURCE_HEAD_BYTES), source.name, known, place)
    check_rows(pa.PythonFile(text.open(), mode="r"), source.name, len(header), separator, text.form.quote, place)
    levels = frozenset(columns_with_levels(request.schema))
    return RawTable.from_reader(TextColumns(source, text, tuple(header), separator, known, levels, place), header)
