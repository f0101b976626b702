"""Tables of text of any size: columns are gathered some rows at a time, and what a cell means is found from all values of its column.

Text is parsed by pandas. What a column is, whole numbers, numbers, flags or text, it finds of each block of rows; where the blocks agree, that is
what it finds of the whole. Where they do not, or where a block may have been read otherwise (``-0`` is 0 among whole numbers, -0.0 among others),
the column is read again as it is written, and each of its different texts is parsed once, all of them together. A table of one block is never
read again. Text is held as its different values and a code a record, whole numbers in the fewest bytes, and nothing is written to a disk.
Untrusted: the file.
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

from .file_formats import Asked
from .raw_tables import Held, RawTable
from .sources import HEAD_BYTES, Source
from .text_files import as_written, check_rows, header_of, levels_of, options, read_column, unparsed
from .text_streams import TableText, table_text

CELLS_AT_ONCE = 1 << 21
"""Of all columns in a block: as many as pandas splits before any becomes part of a column."""
EXACT = 2.0**53
"""Below it a whole number is the same whether it is read as one or as a float."""
WHOLE = [np.dtype(kind) for kind in ("int8", "int16", "int32", "int64")]


@dataclass(eq=False)
class _Gathered:
    """Parts of a column, and what pandas took each for: "whole", "real", "flag", "text", "empty" where no record has a value, or "other"."""

    parts: list[Any] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    sure: bool = True
    """No part may have been read otherwise within the whole, as far as its own values say."""
    zero: bool = False
    size: int = 0

    def add(self, values: pd.Series) -> None:
        part = self._part(values)
        self.parts.append(part)
        self.size += sum(one.nbytes for one in part) if isinstance(part, tuple) else part.nbytes

    def _part(self, values: pd.Series) -> Any:
        if isinstance(values.dtype, pd.StringDtype):
            self.found.add("text")
            return _coded(values)
        numbers = values.to_numpy()
        if numbers.dtype.kind == "b":
            self.found.add("flag")
        elif numbers.dtype == np.int64:
            self.found.add("whole")
            self._look(numbers, maybe_whole=True)
            return _small(numbers)
        elif numbers.dtype == np.float64:
            present = numbers[~np.isnan(numbers)]
            self.found.add("real" if len(present) else "empty")
            self._look(present, maybe_whole=bool((present == np.floor(present)).all()))
        else:
            self.found.add("other")
        return numbers

    def _look(self, present: NDArray[Any], *, maybe_whole: bool) -> None:
        """Where texts may have been read as whole numbers: whether they may be other numbers when they are read as floats."""
        if maybe_whole and len(present):
            self.sure &= bool(present.min() > -EXACT) and bool(present.max() < EXACT)
            self.zero |= bool((present == 0).any())

    def held(self, *, minus_zero: bool, codes: bool) -> Held | _Coded | None:
        """The column; None where it has to be read again. ``minus_zero``: the file may hold ``-0``; ``codes``: numbers may stand for no value."""
        kinds = self.found - {"empty"}
        if kinds == {"text"}:
            return _together([_absent(len(part)) if isinstance(part, np.ndarray) else part for part in self.parts])
        if len(self.parts) == 1:
            return Held(numbers=self.parts[0], kind=np.dtype("int64") if "whole" in kinds else self.parts[0].dtype)
        if not self.parts or "other" in kinds:
            return None
        if self.found in ({"flag"}, {"whole"}, {"empty"}):
            parts = [part.astype(max(one.dtype for one in self.parts), copy=False) for part in self.parts]
            kind = {"flag": "bool", "whole": "int64", "empty": "float64"}[next(iter(self.found))]
            return Held(numbers=np.concatenate(parts), kind=np.dtype(kind))
        certain = self.sure and not codes and not (minus_zero and self.zero)
        if kinds <= {"whole", "real"} and certain:
            parts = [part.astype(np.float64, copy=False) for part in self.parts]
            return Held(numbers=np.concatenate(parts), kind=np.dtype("float64"))
        return None


def _small(numbers: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Whole numbers in the fewest bytes that hold them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return numbers.astype(next(kind for kind in WHOLE if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max))


def _coded(values: pd.Series) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    """Codes (n,) of texts and the different ones, in the order in which they appear."""
    texts = pa.array(values, from_pandas=True)
    found = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    codes = found.indices.fill_null(NO_VALUE_CODE).to_numpy(zero_copy_only=False)
    return _small(codes.astype(np.int64)), found.dictionary


def _absent(records: int) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    return np.full(records, NO_VALUE_CODE, dtype=np.int8), pa.array([], pa.string())


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column (n,) by codes of its different ``texts`` (k,), in the order in which they appear; ABSENT stands for no value."""

    codes: NDArray[np.signedinteger[Any]]
    texts: pa.Array

    @property
    def series(self) -> pd.Series:
        """The texts (k,)."""
        return pd.Series(pd.array(self.texts, dtype="str"))


def _together(parts: Sequence[tuple[NDArray[np.signedinteger[Any]], pa.Array]]) -> _Coded:
    """One column of the codes of parts."""
    if len(parts) == 1:
        return _Coded(*parts[0])
    own = [texts.cast(pa.large_string()) for _, texts in parts]
    together = pa.concat_arrays(own).dictionary_encode()
    places = together.indices.to_numpy(zero_copy_only=False)
    kind = _small(np.array([NO_VALUE_CODE, len(together.dictionary)])).dtype
    starts = np.cumsum([0, *map(len, own)])
    codes = [
        np.append(places[start : start + len(texts)], NO_VALUE_CODE).astype(kind)[part]
        for (part, _), texts, start in zip(parts, own, starts, strict=False)
    ]
    return _Coded(np.concatenate(codes) if codes else np.array([], dtype=np.int8), together.dictionary)


@dataclass(frozen=True)
class TextColumns:
    """The columns of a table of text; ``known`` is the format, where one is said, ``levels`` stay text."""

    source: Source
    text: TableText
    header: tuple[str, ...]
    separator: str
    known: TextFormat | None
    levels: frozenset[str]
    place: str

    def gathered(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        form = self.text.form
        signs = form.trim or (form.decimal, form.thousands) != (".", "")
        found = self._as_written(names, most_bytes) if signs else self._as_parsed(names, most_bytes)
        self.source.check_unchanged()
        return found

    def _as_parsed(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        form = self.text.form
        found: dict[str, Held] = {}
        again: list[str] = []
        codes = any(_is_number(code) for code in form.missing)
        parts = self._parts(names, most_bytes, as_text=self.levels)
        for name in list(parts):
            held = parts.pop(name).held(minus_zero=self.text.survey.minus_zero, codes=codes)
            if held is None:
                again.append(name)
            else:
                found[name] = self._meant(name, held)
        if again:
            found |= self._as_written(again, most_bytes - sum(held.size for held in found.values()))
        return found

    def _meant(self, name: str, held: Held | _Coded) -> Held:
        """A column with the numbers that its texts write."""
        if isinstance(held, Held):
            return held
        texts = held.series
        meant = as_written(texts.to_frame(name), self.known, set(self.levels))[name]
        same = isinstance(meant.dtype, pd.StringDtype) and not meant.hasnans
        return _categorical(held.codes, texts) if same else _typed(held.codes, meant)

    def _as_written(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        """Columns each of whose different texts is parsed once."""
        found = {}
        parts = self._parts(names, most_bytes, as_text=frozenset(names), raw=True)
        for name in list(parts):
            held = _together(parts.pop(name).parts)
            cells = pa.BufferOutputStream()
            quoted = csv_writer.WriteOptions(include_header=False, quoting_style="all_valid")
            csv_writer.write_csv(pa.table({"cell": held.texts}), cells, quoted)
            levels = set(self.levels)
            meant = read_column(cells.getvalue().to_pybytes(), self.source.name, name, self._said(), levels, self.place)
            found[name] = _typed(held.codes, meant)
        return found

    def _said(self) -> TextFormat | None:
        return None if self.known is None else self.text.form

    def _parts(
        self, names: Sequence[str], most_bytes: int, as_text: frozenset[str], *, raw: bool = False
    ) -> dict[str, _Gathered]:
        """The parts of the columns; of ``raw`` ones an empty cell is an empty text."""
        found = {name: _Gathered() for name in names}
        for frame in self._frames(names, as_text, raw=raw):
            for name, gathered in found.items():
                gathered.add(frame[name])
            while len(found) > 1 and sum(one.size for one in found.values()) > most_bytes:
                found.popitem()
        return found

    def _frames(self, names: Sequence[str], as_text: frozenset[str], *, raw: bool) -> Iterator[pd.DataFrame]:
        rows = max(1, CELLS_AT_ONCE // len(self.header))
        said = options(self.header, self.separator, self.text.form, as_text & set(names))
        if raw:
            said["na_filter"] = False
        if len(names) < len(self.header):
            said["usecols"] = list(names)
        opened: Any = self.text.open()
        with (
            unparsed(self.source.name, self.place),
            pd.read_csv(opened, **said, chunksize=rows) as frames,
        ):
            yield from frames


def _is_number(code: str) -> bool:
    try:
        float(code)
    except ValueError:
        return False
    return True


def _typed(codes: NDArray[np.signedinteger[Any]], values: pd.Series) -> Held:
    """A column of codes (n,) of values (k,), some of which may be missing."""
    if values.dtype == np.int64 and (codes >= 0).all():
        return Held(numbers=_small(values.to_numpy())[codes], kind=np.dtype("int64"))
    if values.dtype in (np.int64, np.float64):
        numbers = np.append(values.to_numpy(dtype=np.float64), np.nan)[codes]
        return Held(numbers=numbers, kind=np.dtype("float64"))
    if isinstance(values.dtype, pd.StringDtype):
        own, texts = factorize_column(values)
        return _categorical(_small(np.append(own, NO_VALUE_CODE)[codes]), texts)
    return Held(values.take(codes).reset_index(drop=True))


def _categorical(codes: NDArray[np.signedinteger[Any]], texts: pd.Series) -> Held:
    """Texts (n,) by their codes: a categorical whose categories are the different texts (k,), in the order in which they appear."""
    return Held(pd.Series(pd.Categorical.from_codes(codes, pd.Index(texts), validate=False)))


def table_of_text(source: Source, asked: Asked) -> RawTable:
    """The table of a file of text, as the format that is asked for says, or as its first line shows. Columns that the schema gives levels stay text.

    Without a format: UTF-8, the separator of the first line, names in it, only empty cells missing, and decimal commas in columns
    that have no other signs. Raises BadInput, whose message never holds a value.
    """
    form, place = asked.form, asked.place
    text = table_text(source.pieces, source.name, form or TextFormat(), place, source.survey)
    known = text.form if form else None
    header, separator = header_of(text.head(HEAD_BYTES), source.name, known, place)
    check_rows(pa.PythonFile(text.open(), mode="r"), source.name, len(header), separator, text.form.quote, place)
    levels = frozenset(levels_of(asked.schema))
    return RawTable.read(TextColumns(source, text, tuple(header), separator, known, levels, place), header)
