"""From a file to microdata: found, read, filtered, sampled. Untrusted: the file."""

from __future__ import annotations

import glob
import importlib.resources
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata, check_columns, conform_to_schema, no_records_error
from sfumato.engine.data.missing_codes import mask_missing_codes
from sfumato.engine.data.schema import MissingPolicy, Origin, Schema
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat

from ..errors import StrangeFile
from ..plain_files import open_plain
from ..visible_text import replace_unprintable
from .dialects import SAMPLE_BYTES
from .file_formats import Asked, Format, format_of, with_sheets
from .filters import records_where
from .foreign_files import read_in_subprocess
from .holdout import check_column, held_out, screened, with_column
from .limits import bounded_memory, large_bytes
from .raw_tables import RawTable
from .sampling import as_conformed, drawn_records
from .sources import OpenedFile, Source

SHIPPED = {"randhie", "anes96", "fair"}
CELLS_AT_ONCE = 1 << 20
"""Of all records, in the columns that are conformed together."""


def find_source(file: str, beside: Path | None = None, place: str = "data.file") -> Source:
    """The file that a recipe or a user names; ``statsmodels:randhie`` is a dataset that ships inside statsmodels.

    A relative path is looked up beside the recipe. A large file stays where it is, opened. Raises BadInput.
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
        size = os.fstat(opened.fileno()).st_size
        if size > large_bytes() and (stays := OpenedFile(opened)).path.exists():
            return Source(name, stays)
        with opened, bounded_memory(size, path.name, place):
            return Source(name, opened.read())
    except StrangeFile as error:
        raise BadInput(place, f'"{file}" is {error.kind}, not a table') from None
    except FileNotFoundError:
        other = ", or --data FILE" if place == "data.file" else ""
        raise BadInput(place, f'no such file "{file}"; give the right path{other}') from None
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
        raise BadInput(
            place, f'"{replace_unprintable(name)}" has characters in its name that cannot be printed; rename the file'
        )
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
    with bounded_memory(source.size, source.name, place):
        found = _format_of(source, form, sheet, place)
        if found.subprocess:
            return read_in_subprocess(source, found, sheet, place)
        return found.read(source, Asked(place, schema, form, sheet))


def _format_of(source: Source, form: TextFormat | None, sheet: str, place: str) -> Format:
    """The format of a file. Raises BadInput where it does not suit what is said of the file."""
    found = format_of(source.head)
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
    raw = read_table(source, with_column(schema, data), form=data.format, sheet=data.sheet)
    if not raw.records:
        raise BadInput("data.file", f'"{source.name}" has no records')
    return chosen_records(filtered(raw, source, data.where), source, data, schema, seed, origin, key=key)


def filtered(raw: RawTable, source: Source, where: str, place: str = "data.where") -> RawTable:
    """The records for which a DuckDB expression holds, of which it is shown the columns that it names; all where it is empty. Raises BadInput."""
    if not where:
        return raw
    with bounded_memory(source.size, source.name, place):
        kept = records_where(raw.names, raw.frame_of, where, place)
    if not len(kept):
        raise BadInput(place, f'no record of "{source.name}" satisfies it')
    return raw.only(kept)


def chosen_records(
    raw: RawTable,
    source: Source,
    data: DataSource,
    schema: Schema,
    seed: int,
    origin: Origin = "confidential",
    *,
    key: bytes,
) -> Microdata:
    """The microdata of the filtered records of a file, as ``ingest`` makes them: of all records a few columns at a time are conformed. Raises BadInput."""
    wanted = with_column(schema, data)
    with bounded_memory(source.size, source.name, "data.file"):
        check_column(raw, schema, data)
        check_columns(raw.names, wanted)
        whole = _without_missing(raw, wanted, data.missing, origin)
        records = int(whole.sum())
        if not records:
            raise no_records_error(raw.records)
        too_many = data.sample is not None and data.sample > records  # is said after what is wrong with values
        some = data.sample is not None and not too_many
        chosen = drawn_records(records, source.sha256, data, seed, key) if some else None
        found: dict[str, pd.Series] = {}
        kinds: dict[str, pd.Series] = {}
        at_once = max(1, CELLS_AT_ONCE // raw.records)
        for first in range(0, len(wanted), at_once):
            part = wanted.select_variables(wanted.names[first : first + at_once])
            cells = pd.DataFrame(dict(raw.columns(part.names)), copy=False)
            one = conform_to_schema(cells if whole.all() else cells[whole], part, data.missing, origin, tags=raw.tags)
            found |= {name: _chosen(one.frame[name], chosen) for name in part.names}
            if one.kinds is not None:
                kinds |= {str(name): _chosen(values, chosen) for name, values in one.kinds.items()}
        if too_many:
            drawn_records(records, source.sha256, data, seed, key)
        if chosen is not None:
            found = {name: as_conformed(values, wanted[name]) for name, values in found.items()}
        frame = pd.DataFrame(found, copy=False)
        dropped = raw.records - records
        everything = Microdata(wanted, frame, origin, dropped, kinds=pd.DataFrame(kinds) if kinds else None)
        if data.holdout is not None:
            everything = held_out(everything, schema, source.sha256, data, seed, key)
        return everything if data.screen is None else screened(everything, source.sha256, data, seed, key)


def _chosen(values: pd.Series, chosen: list[int] | None) -> pd.Series:
    return values if chosen is None else values.iloc[chosen].reset_index(drop=True)


def _without_missing(raw: RawTable, wanted: Schema, policy: MissingPolicy, origin: Origin) -> NDArray[np.bool_]:
    """Which records (n,) the missing-value policy leaves. Raises BadInput where it refuses some."""
    lacking = np.zeros(raw.records, dtype=np.bool_)
    if policy is MissingPolicy.KEEP:
        return ~lacking
    counts = {}
    for name, values in raw.columns(wanted.names):
        absent = mask_missing_codes(values, wanted[name]).isna().to_numpy()
        counts[name] = int(absent.sum())
        lacking |= absent
    if policy is MissingPolicy.REFUSE and lacking.any():
        worst = max(counts, key=lambda name: counts[name])
        ((_, values),) = raw.columns([worst])
        conform_to_schema(values.to_frame(worst), Schema((wanted[worst],)), policy, origin)
    return ~lacking
