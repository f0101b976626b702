"""From a file to microdata: found, read, filtered, sampled. Untrusted: the file."""

from __future__ import annotations

import glob
import hashlib
import importlib.resources
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform
from sfumato.engine.data.schema import Origin, Schema
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat

from ..errors import StrangeFile
from ..plain_files import open_plain
from ..visible_text import printable
from .dialects import SAMPLE_BYTES
from .file_formats import HEAD_BYTES, Asked, Format, format_of, with_sheets
from .filters import select_where
from .foreign_files import read_in_subprocess
from .holdout import check_column, held_out, with_column
from .limits import bounded_memory, large_bytes
from .out_of_core import LargeFile, LargeTable, records_of, where_of
from .raw_tables import RawTable
from .sampling import sampled

SHIPPED = {"randhie", "anes96", "fair"}


@dataclass(frozen=True)
class Source:
    """A file's name and bytes, read once, so that what is hashed is what is parsed."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.content)

    @property
    def head(self) -> bytes:
        """The bytes by which it is known how to read the file: all of them, of a large file the whole lines among the first."""
        return self.content

    @property
    def whole(self) -> str:
        """What all bytes of a large file are: "ascii", "utf-8" or "other"; empty where ``head`` has all of them."""
        return ""


class LargeSource(Source):
    """A file that is larger than ``limits.large_bytes``: opened once, and read as it is asked for."""

    file: LargeFile

    def __init__(self, file: LargeFile) -> None:
        object.__setattr__(self, "name", file.name)
        object.__setattr__(self, "file", file)

    @property
    def content(self) -> bytes:
        """All of its bytes."""
        return self.file.content()

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.file.size

    @property
    def head(self) -> bytes:
        """The whole lines among the first bytes."""
        return self.file.head[: self.file.head.rfind(b"\n") + 1] or self.file.head

    @property
    def whole(self) -> str:
        """What all of the bytes are."""
        survey = self.file.survey
        return "ascii" if survey.plain else "utf-8" if survey.utf8 else "other"

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return self.file.sha256


def find_source(file: str, beside: Path | None = None, place: str = "data.file") -> Source:
    """The file that a recipe or a user names; ``statsmodels:randhie`` is a dataset that ships inside statsmodels.

    A relative path is looked up beside the recipe. Raises BadInput.
    """
    if not file:
        raise BadInput(place, "no data file is named; give one with --data FILE")
    if file.startswith("statsmodels:"):
        return _shipped(file, place)
    path = Path(file).expanduser()
    path = beside / path if beside is not None and not path.is_absolute() else path
    try:
        name = _in_utf8(path.name, place)
        opened = os.fdopen(open_plain(path, follow=True), "rb")
        if os.fstat(opened.fileno()).st_size > large_bytes():
            form = format_of(opened.peek(HEAD_BYTES))
            large = LargeFile.of(opened, name, text=not form.describes_itself) if form.read_large else None
            if large is not None:
                return LargeSource(large)
        with opened, bounded_memory(os.fstat(opened.fileno()).st_size, path.name, place):
            return Source(name, opened.read())
    except StrangeFile as error:
        raise BadInput(place, f'"{file}" is {error.kind}, not a table') from None
    except FileNotFoundError:
        raise BadInput(place, f'no such file "{file}"; give the right path, or --data FILE') from None
    except OSError as error:
        raise BadInput(place, f'"{file}" cannot be read: {os.strerror(error.errno or 0)}') from None


def files_matching(names: Sequence[str], place: str) -> list[str]:
    """The files that names and patterns (``syn*.csv``) mean, each pattern's in the order of the numbers in their names.

    Raises BadInput where a pattern fits no file, and where a file is meant twice: it would count as two datasets.
    """
    found: list[str] = []
    for name in names:
        path = Path(name).expanduser()
        if not glob.has_magic(name) or path.exists():
            found.append(name)
            continue
        fitting = sorted(glob.glob(str(path)), key=_numbered)  # noqa: PTH207  (Path.glob takes no absolute pattern)
        if not fitting:
            raise BadInput(place, f'no file fits "{name}"')
        found += fitting
    seen: dict[Path, str] = {}
    for name in found:
        path = Path(name).expanduser().resolve()
        if path in seen:
            which = f'"{name}" is given twice' if seen[path] == name else f'"{name}" and "{seen[path]}" are one file'
            raise BadInput(place, f"{which}; each released dataset counts once")
        seen[path] = name
    return found


def _numbered(name: str) -> list[tuple[int, str]]:
    """A name's parts as they are counted: ``syn2`` before ``syn10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _in_utf8(name: str, place: str) -> str:
    if not name.isprintable():
        raise BadInput(place, f'"{printable(name)}" has characters in its name that cannot be printed; rename the file')
    return name


def _shipped(file: str, place: str) -> Source:
    name = file.partition(":")[2]
    if name not in SHIPPED:
        raise BadInput(place, f'statsmodels ships no "{name}" that is used here; known: {", ".join(sorted(SHIPPED))}')
    content = (importlib.resources.files("statsmodels") / "datasets" / name / f"{name}.csv").read_bytes()
    return Source(f"{name}.csv", content)


def is_text(source: Source) -> bool:
    """Whether a file is one of text, which does not say itself how it is read."""
    return not format_of(source.head).describes_itself and bool(source.head.strip())


def text_head(file: Path) -> bytes:
    """The whole lines among the first bytes of a file of text; none of one that says itself how it is read. Raises OSError, StrangeFile."""
    handle = open_plain(file, follow=True)
    with os.fdopen(handle, "rb") as opened:
        head = opened.read(SAMPLE_BYTES)
        more = bool(opened.read(1))
    if format_of(head).describes_itself:
        return b""
    if more and b"\0" in head[:4]:  # UTF-16 or UTF-32, whose characters may end within an end of line
        return head[: len(head) // 4 * 4]
    return head[: head.rfind(b"\n") + 1] or head if more else head


def read_frame(
    source: Source,
    schema: Schema | None = None,
    place: str = "data.file",
    form: TextFormat | None = None,
    sheet: str = "",
) -> pd.DataFrame:
    """The cells of ``read_table``. Raises BadInput."""
    return read_table(source, schema, place, form, sheet).frame


def read_table(
    source: Source,
    schema: Schema | None = None,
    place: str = "data.file",
    form: TextFormat | None = None,
    sheet: str = "",
) -> RawTable:
    """The table of a file; of a file of text as the format says, of an Excel file its first sheet, or the one named. Columns of a file
    of text that the schema gives levels are read as text (``007`` stays).

    Without a format only an empty field is a missing value, and decimal commas (``2,5``) are found; other codes are declared by
    the variable. Raises BadInput.
    """
    if isinstance(source, LargeSource):
        large = open_table(source, schema, place, form, sheet)
        return RawTable(large.frame, large.descriptions, notes=large.notes)
    with bounded_memory(source.size, source.name, place):
        return _read_table(source, schema, place, form, sheet)


def _read_table(source: Source, schema: Schema | None, place: str, form: TextFormat | None, sheet: str) -> RawTable:
    content = source.content
    found = _format_of(content, source, form, sheet, place)
    if found.subprocess:
        return read_in_subprocess(content, found, source.name, sheet, place)
    return found.read(content, Asked(source.name, place, schema, form, sheet))


def _format_of(head: bytes, source: Source, form: TextFormat | None, sheet: str, place: str) -> Format:
    """The format of a file. Raises BadInput where it does not suit what is said of the file."""
    found = format_of(head)
    found.require(place)
    if form is not None and found.describes_itself:
        raise BadInput(
            "data.format", f'"{source.name}" is {found.kind} file, which says itself how it is read; leave it out'
        )
    if sheet and not found.sheets and not found.subprocess:
        raise BadInput("data.sheet", f'"{source.name}" is no {with_sheets()} file, so it has no sheets; leave it out')
    return found


def ingest(
    source: Source,
    data: DataSource,
    schema: Schema,
    seed: int,
    origin: Origin = "confidential",
    *,
    key: bytes,
) -> Microdata:
    """The microdata of a file: filtered, sampled without replacement by seed and key (file order kept), conformed.

    Records that are held out are not among them, but their ``controls``.
    """
    raw = open_table(source, with_column(schema, data), form=data.format, sheet=data.sheet)
    if not raw.records:
        raise BadInput("data.file", f'"{source.name}" has no records')
    return chosen_records(filtered(raw, source, data.where), source, data, schema, seed, origin, key=key)


def open_table(
    source: Source,
    schema: Schema | None = None,
    place: str = "data.file",
    form: TextFormat | None = None,
    sheet: str = "",
) -> RawTable | LargeTable:
    """``read_table`` of a file, which stays where it is where it is large. Raises BadInput."""
    if not isinstance(source, LargeSource):
        return read_table(source, schema, place, form, sheet)
    found = _format_of(source.file.head, source, form, sheet, place)
    assert found.read_large is not None
    with bounded_memory(source.size, source.name, place):
        return found.read_large(source.file, Asked(source.name, place, schema, form))


def filtered(
    raw: RawTable | LargeTable, source: Source, where: str, place: str = "data.where"
) -> RawTable | LargeTable:
    """The records for which a DuckDB expression holds, all where it is empty; they keep their numbers. Raises BadInput."""
    if not where:
        return raw
    with bounded_memory(source.size, source.name, place):
        if isinstance(raw, LargeTable):
            return where_of(raw, where, place)
        frame = select_where(raw.frame, where, place)
    if not len(frame):
        raise BadInput(place, f'no record of "{source.name}" satisfies it')
    return replace(raw, frame=frame, tags=None if raw.tags is None else raw.tags.loc[frame.index])


def chosen_records(
    raw: RawTable | LargeTable,
    source: Source,
    data: DataSource,
    schema: Schema,
    seed: int,
    origin: Origin = "confidential",
    *,
    key: bytes,
) -> Microdata:
    """The microdata of the filtered records of a file, as ``ingest`` makes them. Raises BadInput."""
    if isinstance(raw, LargeTable):
        with bounded_memory(source.size, source.name, "data.file"):
            return records_of(raw, data, schema, seed, origin, key=key)
    check_column(raw.frame, schema, data)
    everything = conform(raw.frame, with_column(schema, data), data.missing, origin, tags=raw.tags)
    chosen = everything if data.sample is None else sampled(everything, source.sha256, data, seed, key)
    return chosen if data.holdout is None else held_out(chosen, schema, source.sha256, data, seed, key)
