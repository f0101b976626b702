"""Columns of a table of text, gathered from some rows at a time: each is what pandas makes of the whole file, to the last bit.

pandas parses the rows, as it does those of a smaller file. What a column is, whole numbers, numbers, flags or text, it finds of each part;
where the parts agree, that is what it finds of the whole. Where they do not, or where a part may have been read otherwise (``-0`` is 0 among whole
numbers, -0.0 among others), the column is read again as it is written, and each of its different texts is parsed once, all of them together.

Text is held as its different values and a code a record, whole numbers in the fewest bytes, and nothing is written to a disk.
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

from sfumato.engine.data.distinct_values import ABSENT, different
from sfumato.engine.recipe.text_format import TextFormat

from .text_files import as_written, options, read_column, unparsed
from .text_streams import TableText

CELLS_AT_ONCE = 1 << 21
"""Of all columns: as many as pandas splits before any becomes part of a column."""
EXACT = 2.0**53
"""Below it a whole number is the same whether it is read as one or as a float."""
WHOLE = [np.dtype(kind) for kind in ("int8", "int16", "int32", "int64")]


@dataclass(frozen=True, eq=False)
class Held:
    """A column (n,): ``numbers`` in the fewest bytes, to be read as ``kind``, or codes (n,) of the different ``values``."""

    numbers: NDArray[Any] | None = None
    kind: np.dtype[Any] | None = None
    codes: NDArray[np.signedinteger[Any]] | None = None
    values: pd.Series | None = None

    def __len__(self) -> int:
        column = self.codes if self.numbers is None else self.numbers
        assert column is not None
        return len(column)

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        if self.numbers is not None:
            return self.numbers.nbytes
        assert self.codes is not None
        assert self.values is not None
        return self.codes.nbytes + int(self.values.memory_usage(index=False, deep=True))

    @property
    def series(self) -> pd.Series:
        """The values (n,); texts as a categorical of the different ones, in the order in which they appear."""
        if self.numbers is not None:
            return pd.Series(self.numbers.astype(self.kind, copy=False))
        assert self.codes is not None
        assert self.values is not None
        if isinstance(self.values.dtype, pd.StringDtype):
            return pd.Series(pd.Categorical.from_codes(self.codes, pd.Index(self.values), validate=False))
        return self.values.take(self.codes).reset_index(drop=True)


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

    def held(self, *, minus_zero: bool, codes: bool) -> Held | None:
        """The column; None where it has to be read again. ``minus_zero``: the file may hold ``-0``; ``codes``: numbers may stand for no value."""
        kinds = self.found - {"empty"}
        if kinds == {"text"}:
            return _texts([_absent(len(part)) if isinstance(part, np.ndarray) else part for part in self.parts])
        if not self.parts or "other" in kinds:
            return None
        if self.found in ({"flag"}, {"whole"}, {"empty"}):
            parts = [part.astype(max(one.dtype for one in self.parts), copy=False) for part in self.parts]
            kind = {"flag": "bool", "whole": "int64", "empty": "float64"}[next(iter(self.found))]
            return Held(np.concatenate(parts), np.dtype(kind))
        certain = self.sure and not codes and not (minus_zero and self.zero)
        if kinds <= {"whole", "real"} and certain:
            return Held(
                np.concatenate([part.astype(np.float64, copy=False) for part in self.parts]), np.dtype("float64")
            )
        return None


def _small(numbers: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Whole numbers in the fewest bytes that hold them all."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return numbers.astype(next(kind for kind in WHOLE if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max))


def _coded(values: pd.Series) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    """Codes (n,) of texts and the different ones, in the order in which they appear."""
    texts = pa.array(values, from_pandas=True)
    found = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    codes = found.indices.fill_null(ABSENT).to_numpy(zero_copy_only=False)
    return _small(codes.astype(np.int64)), found.dictionary


def _absent(records: int) -> tuple[NDArray[np.signedinteger[Any]], pa.Array]:
    return np.full(records, ABSENT, dtype=np.int8), pa.array([], pa.string())


def _texts(parts: Sequence[tuple[NDArray[np.signedinteger[Any]], pa.Array]]) -> Held:
    """One column of the codes of parts."""
    own = [texts.cast(pa.large_string()) for _, texts in parts]
    together = pa.concat_arrays(own).dictionary_encode()
    places = together.indices.to_numpy(zero_copy_only=False)
    kind = _small(np.array([ABSENT, len(together.dictionary)])).dtype
    starts = np.cumsum([0, *map(len, own)])
    codes = [
        np.append(places[start : start + len(texts)], ABSENT).astype(kind)[part]
        for (part, _), texts, start in zip(parts, own, starts, strict=False)
    ]
    return Held(codes=np.concatenate(codes), values=pd.Series(together.dictionary.to_pandas(), dtype="str"))


@dataclass(frozen=True)
class StreamedTable:
    """A table of text whose columns are gathered as they are asked for; ``known`` is the format, where one is said, ``levels`` stay text."""

    text: TableText
    name: str
    header: tuple[str, ...]
    separator: str
    known: TextFormat | None
    levels: frozenset[str]
    place: str

    def gathered(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        """The first columns of these names, as many as so many bytes hold, one at least. Raises BadInput and MemoryError."""
        form = self.text.form
        if form.trim or (form.decimal, form.thousands) != (".", ""):
            return self._as_written(names, most_bytes)
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

    def _meant(self, name: str, held: Held) -> Held:
        """A column with the numbers that its texts write."""
        if held.values is None or not isinstance(held.values.dtype, pd.StringDtype):
            return held
        meant = as_written(held.values.to_frame(name), self.known, set(self.levels))[name]
        same = isinstance(meant.dtype, pd.StringDtype) and not meant.hasnans
        return held if same else _typed(held.codes, meant)

    def _as_written(self, names: Sequence[str], most_bytes: int) -> dict[str, Held]:
        """Columns each of whose different texts is parsed once."""
        found = {}
        parts = self._parts(names, most_bytes, as_text=frozenset(names), raw=True)
        for name in list(parts):
            held = _texts(parts.pop(name).parts)
            cells = pa.BufferOutputStream()
            quoted = csv_writer.WriteOptions(include_header=False, quoting_style="all_valid")
            csv_writer.write_csv(pa.table({"cell": pa.array(held.values, from_pandas=True)}), cells, quoted)
            levels = set(self.levels)
            meant = read_column(cells.getvalue().to_pybytes(), self.name, name, self._said(), levels, self.place)
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
        opened: Any = self.text.open()
        with (
            unparsed(self.name, self.place),
            pd.read_csv(opened, **said, usecols=list(names), chunksize=rows) as frames,
        ):
            yield from frames


def _is_number(code: str) -> bool:
    try:
        float(code)
    except ValueError:
        return False
    return True


def _typed(codes: NDArray[np.signedinteger[Any]] | None, values: pd.Series) -> Held:
    """A column of codes (n,) of values (k,), some of which may be missing."""
    assert codes is not None
    if values.dtype == np.int64 and (codes >= 0).all():
        small = _small(values.to_numpy())
        return Held(small[codes], np.dtype("int64"))
    if values.dtype in (np.int64, np.float64):
        return Held(np.append(values.to_numpy(dtype=np.float64), np.nan)[codes], np.dtype("float64"))
    if isinstance(values.dtype, pd.StringDtype):
        own, texts = different(values)
        return Held(codes=_small(np.append(own, ABSENT)[codes]), values=texts)
    return Held(codes=codes, values=values)
