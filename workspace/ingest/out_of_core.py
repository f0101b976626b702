"""Files that are larger than a share of the memory: columns are gathered some rows at a time, and of those the chosen records stay.

What a cell means is found as for any other file, from all values of its column, so that the records are the same to the last bit. A format
with ``read_large`` says how its columns are read. Untrusted: the file.

Text is parsed by pandas. What a column is, whole numbers, numbers, flags or text, it finds of each part; where the parts agree, that is what it
finds of the whole. Where they do not, or where a part may have been read otherwise (``-0`` is 0 among whole numbers, -0.0 among others), the
column is read again as it is written, and each of its different texts is parsed once, all of them together. Text is held as its different
values and a code a record, whole numbers in the fewest bytes, and nothing is written to a disk.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_writer
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import ABSENT, different, written_out
from sfumato.engine.data.microdata import Microdata, check_columns, conform, none_left
from sfumato.engine.data.missing_codes import without_codes
from sfumato.engine.data.schema import MissingPolicy, Origin, Schema
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat

from .filters import columns_read, select_where
from .holdout import check_column, held_out, with_column
from .limits import at_once_bytes
from .raw_tables import Description
from .sampling import as_conformed, drawn_records
from .text_files import (
    LONGEST_ROW,
    as_written,
    check_rows,
    header_of,
    levels_of,
    options,
    read_column,
    unparsed,
)
from .text_streams import PIECE, Survey, Surveyor, TableText, table_text

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


OPENED = Path("/proc/self/fd")
HEAD_BYTES = 2 * LONGEST_ROW


@dataclass(frozen=True, eq=False)
class LargeFile:
    """A plain file, opened once and hashed; whoever reads it reads what is opened."""

    name: str
    file: BufferedReader
    sha256: str
    head: bytes
    size: int
    stamp: tuple[int, ...]
    survey: Survey

    def __post_init__(self) -> None:
        """Who reads the file no more closes it."""
        weakref.finalize(self, self.file.close)

    @classmethod
    def of(cls, file: BufferedReader, name: str, *, text: bool) -> LargeFile | None:
        """The file, hashed, and surveyed if it is one of text; None where the system does not name what is opened. Raises OSError."""
        if not (OPENED / str(file.fileno())).exists():
            return None
        head = file.read(HEAD_BYTES)
        file.seek(0)
        stamp = _stamp(file)
        found, surveyor = hashlib.sha256(), Surveyor()
        while piece := file.read(PIECE):
            found.update(piece)
            if text:
                surveyor.see(piece)
        return cls(name, file, found.hexdigest(), head, stamp[0], stamp, surveyor.done())

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the beginning, some at a time, wherever another reader is."""
        at = 0
        while piece := os.pread(self.file.fileno(), PIECE, at):
            yield piece
            at += len(piece)

    @property
    def path(self) -> str:
        """Where what is opened can be read."""
        return str(OPENED / str(self.file.fileno()))

    def content(self) -> bytes:
        """All bytes. Raises BadInput."""
        self.file.seek(0)
        content = self.file.read()
        self.check_unchanged()
        return content

    def check_unchanged(self) -> None:
        """Hold that the file is the one that was hashed. Raises BadInput."""
        if _stamp(self.file) != self.stamp:
            raise BadInput("data.file", f'"{self.name}" changed while it was read; read it again when it is written')


def _stamp(file: BufferedReader) -> tuple[int, ...]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class WholeColumns(Protocol):
    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        """The values (n,) of each of the columns, all records."""


@dataclass(frozen=True)
class LargeTable:
    """A table that stays in its file; ``kept`` (n,) are the numbers, from 0, of the records that are meant, None where all are."""

    file: LargeFile
    names: tuple[str, ...]
    all_records: int
    source: WholeColumns
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    kept: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return self.all_records if self.kept is None else len(self.kept)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
        """The columns of these names, each with its values (n,), texts perhaps as a categorical of them. Raises BadInput."""
        for name, values in zip(names, self.source.read(names), strict=True):
            yield name, values if self.kept is None else values.iloc[self.kept]

    def written_out(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """The columns of these names, each with its values (n,) as they are in the frame of a smaller file. Raises BadInput."""
        return {name: written_out(values) for name, values in self.columns(names)}

    @property
    def frame(self) -> pd.DataFrame:
        """All of it, (n, k). Raises BadInput."""
        return pd.DataFrame(self.written_out(self.names))

    def missing(self, schema: Schema) -> tuple[dict[str, int], NDArray[np.bool_]]:
        """How many records have no value of each variable; which (n,) have none of some. Raises BadInput."""
        counts, lacking = {}, np.zeros(self.records, dtype=np.bool_)
        for name, values in self.columns(schema.names):
            absent = without_codes(values, schema[name]).isna().to_numpy()
            counts[name] = int(absent.sum())
            lacking |= absent
        return counts, lacking


def where_of(table: LargeTable, where: str, place: str = "data.where") -> LargeTable:
    """The records for which a DuckDB expression holds, of which it is shown the columns that it names. Raises BadInput."""
    shown = table.written_out(columns_read(where, table.names, place))
    frame = select_where(pd.DataFrame(shown, index=range(table.records)), where, place)
    if not len(frame):
        raise BadInput(place, f'no record of "{table.file.name}" satisfies it')
    return replace(table, kept=frame.index.to_numpy())


def records_of(
    table: LargeTable, data: DataSource, schema: Schema, seed: int, origin: Origin = "confidential", *, key: bytes
) -> Microdata:
    """The microdata of the table's records: those that ``conform`` and ``sampled`` make of the whole. Raises BadInput."""
    wanted = with_column(schema, data)
    if isinstance(data.holdout, str):
        there = [data.holdout] if data.holdout in table.names else []
        check_column(pd.DataFrame(dict(table.columns(there)), columns=there or list(table.names)), schema, data)
    check_columns(table.names, wanted)
    whole = _whole(table, wanted, data.missing, origin)
    records = int(whole.sum())
    dropped = table.records - records
    if not records:
        raise none_left(dropped)
    chosen = None if data.sample is None else drawn_records(records, table.file.sha256, data, seed, key)
    found: dict[str, pd.Series] = {}
    kinds: dict[str, pd.Series] = {}
    for name, values in table.columns(wanted.names):
        one = conform(
            (values if whole.all() else values[whole]).to_frame(name), Schema((wanted[name],)), data.missing, origin
        )
        found[name] = one.frame[name]
        if one.kinds is not None:
            kinds[name] = one.kinds[name]
        if chosen is not None:
            found[name] = as_conformed(found[name].iloc[chosen].reset_index(drop=True), wanted[name])
            kinds |= {name: kinds[name].iloc[chosen].reset_index(drop=True)} if name in kinds else {}
    records_found = Microdata(
        wanted, pd.DataFrame(found, copy=False), origin, dropped, kinds=pd.DataFrame(kinds) if kinds else None
    )
    if data.holdout is None:
        return records_found
    return held_out(records_found, schema, table.file.sha256, data, seed, key)


def _whole(table: LargeTable, wanted: Schema, policy: MissingPolicy, origin: Origin) -> NDArray[np.bool_]:
    """Which records (n,) the missing-value policy leaves."""
    if policy is MissingPolicy.KEEP:
        return np.ones(table.records, dtype=np.bool_)
    counts, lacking = table.missing(wanted)
    if policy is MissingPolicy.REFUSE and lacking.any():
        worst = max(counts, key=lambda name: counts[name])
        ((_, values),) = table.columns([worst])
        conform(values.to_frame(worst), Schema((wanted[worst],)), policy, origin)
    return ~lacking


def table_of_text(file: LargeFile, schema: Schema | None, place: str, form: TextFormat | None) -> LargeTable:
    """The table of a file of text, as ``text_files`` reads a smaller one. Raises BadInput, whose message never holds a value."""
    said = form or TextFormat()
    text = table_text(file.pieces, file.name, said, place, file.survey)
    known = text.form if form else None
    header, separator = header_of(text.head(HEAD_BYTES), file.name, known, place)
    check_rows(pa.PythonFile(text.open(), mode="r"), file.name, len(header), separator, text.form.quote, place)
    levels = frozenset(levels_of(schema))
    streamed = StreamedTable(text, file.name, tuple(header), separator, known, levels, place)
    columns = _TextColumns(file, streamed)
    return LargeTable(file, tuple(header), columns.records, columns)


@dataclass(eq=False)
class _TextColumns:
    """The columns of a file of text: those that were read last stay, as many as ``at_once_bytes`` hold."""

    file: LargeFile
    table: StreamedTable
    held: dict[str, Held] = field(default_factory=dict)

    @property
    def records(self) -> int:
        self._hold(self.table.header)
        return len(next(iter(self.held.values())))

    def read(self, names: Sequence[str]) -> Iterator[pd.Series]:
        for i, name in enumerate(names):
            if name not in self.held:
                self._hold(names[i:])
            yield self.held[name].series

    def _hold(self, names: Sequence[str]) -> None:
        self.held = {}
        self.held = self.table.gathered(names, at_once_bytes())
        self.file.check_unchanged()
