"""Conversion of a file to microdata: the file is found, read, filtered and sampled. Untrusted: the file."""

from __future__ import annotations

import glob
import gzip
import importlib.resources
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.affected_group import AffectedGroup
from sfumato.engine.data.declaration import declared_keys
from sfumato.engine.data.microdata import Microdata, check_columns, conform_to_schema, no_records_error
from sfumato.engine.data.missing_codes import mask_missing_codes
from sfumato.engine.data.schema import MissingPolicy, Origin, Schema
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.text_format import TextFormat

from ..errors import StrangeFile
from ..plain_files import open_plain
from ..visible_text import replace_unprintable
from .conformed_blocks import ConformedBlocks, conform_blocks
from .dialects import SAMPLE_BYTES
from .file_formats import FileFormat, ReadRequest, recognise_format, sheet_formats_text
from .filters import find_records_where
from .foreign_files import read_in_subprocess
from .holdout import add_holdout_column, check_holdout_column, draw_screening_records, split_off_controls
from .limits import allowed_read_bytes, bounded_memory, large_file_bytes
from .raw_tables import RawTable
from .reserved_names import check_reserved_names
from .sampling import conform_sampled_values, draw_sample
from .sources import OpenedFile, SourceFile
from .spooled_columns import SpoolPlace
from .whole_units import check_unit_levels, number_hidden_units, units_of_raw_records

GZIP_SIGNATURE = b"\x1f\x8b"
GZIP_MEMORY_PARTS = 4
"""Part of the memory for reading a file that a packed one may unpack to is one of so many."""
SHEET_KEYS = ("header", "names", "skip", "skip_below", "footer", "missing")
"""Keys of ``[data.format]`` that say where the table of a sheet lies, and what stands for no value."""
STATSMODELS_DATASETS = {"randhie", "anes96", "fair"}
# conforming copies the columns, so only a few at a time are in memory twice
CELLS_PER_CONFORM = 1 << 20
"""Cells that are conformed together: all records of some columns."""


def find_source(file: str, recipe_folder: Path | None = None, place: str = "data.file") -> SourceFile:
    """Open the file that a recipe or a user names.

    ``statsmodels:randhie`` is a dataset that ships with statsmodels, ``sfumato:households`` one that ships with Sfumato.

    A relative path is looked up in the folder of the recipe. A large file is not read into memory but stays open.
    Raises BadInput.
    """
    if not file:
        raise BadInput(place, "no data file is named; give one with --data FILE")
    if file.startswith("statsmodels:"):
        return _statsmodels_source(file, place)
    if file.startswith("sfumato:"):
        return _shipped_source(file, place)
    path = Path(file).expanduser()
    path = recipe_folder / path if recipe_folder is not None and not path.is_absolute() else path
    try:
        name = _check_printable(path.name, place)
        with ExitStack() as closing:
            opened = closing.enter_context(os.fdopen(open_plain(path, follow=True), "rb"))
            size = os.fstat(opened.fileno()).st_size
            packed = opened.peek(2)[:2] == GZIP_SIGNATURE
            # /proc/self/fd, by which Arrow reopens the file, does not exist on every system
            if not packed and size > large_file_bytes() and (stays := OpenedFile(opened)).path.exists():
                closing.pop_all()  # the source closes the file
                return SourceFile(name, stays)
            closing.enter_context(bounded_memory(size, path.name, place))
            if packed:
                return SourceFile(name.removesuffix(".gz"), _unpack_gzip(opened, size, name, place))
            return SourceFile(name, opened.read())
    except StrangeFile as error:
        raise BadInput(place, f'"{file}" is {error.kind}, not a table') from None
    except FileNotFoundError:
        other = ", or --data FILE" if place == "data.file" else ""
        raise BadInput(place, f'no such file "{file}"; give the right path{other}') from None
    except OSError as error:
        raise BadInput(place, f'"{file}" cannot be read: {os.strerror(error.errno or 0)}') from None


def _unpack_gzip(opened: IO[bytes], size: int, name: str, place: str) -> bytes:
    """Return what a gzip file of ``size`` bytes packs. Raises BadInput where it is damaged or unpacks to too much."""
    # a few kilobytes may unpack to more than the memory: parsing what is unpacked takes several times its size
    most = allowed_read_bytes(size) // GZIP_MEMORY_PARTS
    try:
        content = gzip.GzipFile(fileobj=opened).read(most + 1)
    except (EOFError, zlib.error, OSError):
        raise BadInput(place, f'"{name}" is a damaged gzip file; pack it again, or give the unpacked file') from None
    if len(content) > most:
        raise BadInput(
            place, f'"{name}" unpacks to more than {most >> 20:,} MiB; unpack it, and give the unpacked file'
        )
    return content


def expand_file_patterns(names: Sequence[str], place: str) -> list[str]:
    """List the files that names and patterns (``syn*.csv``) stand for, in the order of the numbers in their names."""
    found: list[str] = []
    for name in names:
        path = Path(name).expanduser()
        if not glob.has_magic(name) or path.exists():
            found.append(name)
            continue
        # "syn10" before "syn2" would give the datasets other numbers than their files have
        fitting = sorted(glob.glob(str(path)), key=_natural_sort_key)  # noqa: PTH207  (Path.glob takes no absolute pattern)
        if not fitting:
            raise BadInput(place, f'no file fits "{name}"')
        found += fitting
    seen: dict[Path, str] = {}
    for name in found:
        # two spellings of one path, or a link, are one file
        path = Path(name).expanduser().resolve()
        if path in seen:
            which = f'"{name}" is given twice' if seen[path] == name else f'"{name}" and "{seen[path]}" are one file'
            raise BadInput(place, f"{which}; each released dataset counts once")
        seen[path] = name
    return found


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return the parts of a name as a sort key that puts ``syn2`` before ``syn10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _check_printable(name: str, place: str) -> str:
    """Return the name of a file. Raises BadInput where it has characters that cannot be printed."""
    if not name.isprintable():
        raise BadInput(
            place, f'"{replace_unprintable(name)}" has characters in its name that cannot be printed; rename the file'
        )
    return name


def _statsmodels_source(file: str, place: str) -> SourceFile:
    """Return a dataset that ships with statsmodels. Raises BadInput for an unknown one."""
    name = file.partition(":")[2]
    if name not in STATSMODELS_DATASETS:
        raise BadInput(
            place, f'statsmodels ships no "{name}" that is used here; known: {", ".join(sorted(STATSMODELS_DATASETS))}'
        )
    content = (importlib.resources.files("statsmodels") / "datasets" / name / f"{name}.csv").read_bytes()
    return SourceFile(f"{name}.csv", content)


def _shipped_source(file: str, place: str) -> SourceFile:
    """Return a generated table that ships with the recipes. Raises BadInput for an unknown one."""
    name = file.partition(":")[2]
    folder = importlib.resources.files("sfumato.workspace.recipes") / "data"
    known = sorted(one.name.removesuffix(".csv") for one in folder.iterdir() if one.name.endswith(".csv"))
    if name not in known:
        raise BadInput(place, f'Sfumato ships no table "{name}"; known: {", ".join(known)}')
    return SourceFile(f"{name}.csv", (folder / f"{name}.csv").read_bytes())


def is_text_source(source: SourceFile) -> bool:
    """Return whether a file is a non-empty text file, so that its format has to be detected or given."""
    return not recognise_format(source.head).describes_itself and bool(source.head.strip())


def text_head(file: Path) -> bytes:
    """Return the whole lines among the first bytes of a text file; empty for other formats.

    Raises OSError and StrangeFile.
    """
    handle = open_plain(file, follow=True)
    with os.fdopen(handle, "rb") as opened:
        packed = opened.peek(2)[:2] == GZIP_SIGNATURE
        text: IO[bytes] = gzip.GzipFile(fileobj=opened) if packed else opened  # type: ignore[assignment]
        try:
            head = text.read(SAMPLE_BYTES)
            more = bool(text.read(1))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""
    if recognise_format(head).describes_itself:
        return b""
    if more and b"\0" in head[:4]:  # UTF-16 or UTF-32, whose characters may end within an end of line
        return head[: len(head) // 4 * 4]
    return head[: head.rfind(b"\n") + 1] or head if more else head


def read_frame(
    source: SourceFile,
    schema: Schema | None = None,
    place: str = "data.file",
    form: TextFormat | None = None,
    sheet: str = "",
) -> pd.DataFrame:
    """Return the cells of a file as a frame (n, k), read as ``read_table`` does. Raises BadInput."""
    return read_table(source, schema, place, form, sheet).frame


def read_table(
    source: SourceFile,
    schema: Schema | None = None,
    place: str = "data.file",
    form: TextFormat | None = None,
    sheet: str = "",
    given_keys: Mapping[str, Any] | None = None,
    needed: frozenset[str] | None = None,
    spool: SpoolPlace | None = None,
) -> RawTable:
    """Read the table of a file; of a large one the ``needed`` columns at once, others when they are asked for.

    A text file is read as the format says, an Excel file's first sheet or the one named. Where the table of a sheet
    lies is detected with ``given_keys``, the keys of ``[data.format]`` that the owner has set. Columns of a text file that
    the schema gives levels are read as text (``007`` stays). Without a format only an empty field is a missing value,
    and decimal commas (``2,5``) are found; other codes are declared by the variable. Columns of a long CSV or Parquet
    file lie at ``spool``, where it is given. Raises BadInput.
    """
    with bounded_memory(source.size, source.name, place):
        asked = TextFormat.from_table(given_keys) if given_keys else form
        found = _format_for_request(source, asked, sheet, place)
        request = ReadRequest(place, schema, form, sheet, given_keys, needed, spool)
        return read_in_subprocess(source, found, request) if found.uses_subprocess else found.read(source, request)


def _format_for_request(source: SourceFile, form: TextFormat | None, sheet: str, place: str) -> FileFormat:
    """Return the format of a file. Raises BadInput where it does not suit the request."""
    found = recognise_format(source.head)
    found.check_installed(place)
    if form is not None and found.describes_itself and not found.has_sheets:
        raise BadInput(
            "data.format", f'"{source.name}" is {found.kind} file, which says itself how it is read; leave it out'
        )
    if form is not None and found.has_sheets:
        _check_sheet_keys(form, source.name, found)
    if sheet and not found.has_sheets and not found.uses_subprocess:
        raise BadInput(
            "data.sheet", f'"{source.name}" is no {sheet_formats_text()} file, so it has no sheets; leave it out'
        )
    return found


def _check_sheet_keys(form: TextFormat, name: str, found: FileFormat) -> None:
    """Raise BadInput where a format sets a key that says nothing of a sheet, such as the separator."""
    usual = TextFormat()
    for key in (one for one in declared_keys(TextFormat) if one not in SHEET_KEYS):
        if getattr(form, key) != getattr(usual, key):
            raise BadInput(
                f"data.format.{key}",
                f'"{name}" is {found.kind} file, of which only {", ".join(SHEET_KEYS)} can be set; leave it out',
            )


def read_file_microdata(
    source: SourceFile,
    data: DataSource,
    schema: Schema,
    seed: int,
    origin: Origin = "confidential",
    *,
    key: bytes,
) -> Microdata:
    """Read the microdata of a file: filtered, sampled without replacement by seed and key in file order, and conformed.

    Held-out records are returned as its ``controls``.
    """
    raw = read_table(source, add_holdout_column(schema, data), form=data.format, sheet=data.sheet)
    if not raw.records:
        raise BadInput("data.file", f'"{source.name}" has no records')
    return microdata_from_table(filter_records(raw, source, data.where), source, data, schema, seed, origin, key=key)


def read_file_in_blocks(
    source: SourceFile, data: DataSource, schema: Schema, seed: int, *, key: bytes, spool: SpoolPlace
) -> Microdata | ConformedBlocks:
    """Read the microdata of a file as ``read_file_microdata`` does, of a long one in blocks where that can be."""
    raw = read_table(source, add_holdout_column(schema, data), form=data.format, sheet=data.sheet, spool=spool)
    if not raw.records:
        raise BadInput("data.file", f'"{source.name}" has no records')
    kept = filter_records(raw, source, data.where)
    blocks = conform_blocks(kept, data, schema, "confidential", spool.rows) if spool.rows < raw.records else None
    return blocks or microdata_from_table(kept, source, data, schema, seed, key=key)


def filter_records(raw: RawTable, source: SourceFile, where: str, place: str = "data.where") -> RawTable:
    """Keep the records for which a DuckDB expression holds; all where it is empty. Raises BadInput."""
    if not where:
        return raw
    with bounded_memory(source.size, source.name, place):
        kept = find_records_where(raw.names, raw.frame_of_columns, where, place)
    if not len(kept):
        raise BadInput(place, f'no record of "{source.name}" satisfies it')
    return raw.keep_records(kept)


def microdata_from_table(
    raw: RawTable,
    source: SourceFile,
    data: DataSource,
    schema: Schema,
    seed: int,
    origin: Origin = "confidential",
    *,
    key: bytes,
) -> Microdata:
    """Sample and conform the filtered records of a file and split off its controls. Raises BadInput."""
    wanted = add_holdout_column(schema, data)
    raw = number_hidden_units(raw, schema)
    with bounded_memory(source.size, source.name, "data.file"):
        check_reserved_names(wanted.names)
        check_holdout_column(raw, schema, data)
        check_columns(raw.names, wanted)
        whole, missing_counts = _records_kept_by_policy(raw, wanted, data, origin)
        records = int(whole.sum())
        if not records:
            raise no_records_error(raw.records)
        too_many = data.sample is not None and data.sample > records  # is said after what is wrong with values
        some = data.sample is not None and not too_many
        # drawn before the loop, so that of each conformed column only the sampled rows stay in memory
        units = units_of_raw_records(raw, wanted, whole)
        chosen = draw_sample(records, source.sha256, data, seed, key, units) if some else None
        found: dict[str, pd.Series] = {}
        kinds: dict[str, pd.Series] = {}
        at_once = max(1, CELLS_PER_CONFORM // raw.records)
        for first in range(0, len(wanted), at_once):
            part = wanted.select_variables(wanted.names[first : first + at_once])
            cells = pd.DataFrame(dict(raw.iterate_columns(part.names)), copy=False)
            one = conform_to_schema(cells if whole.all() else cells[whole], part, data.missing, origin, tags=raw.tags)
            found |= {name: _select_rows(one.frame[name], chosen) for name in part.names}
            if one.kinds is not None:
                kinds |= {str(name): _select_rows(values, chosen) for name, values in one.kinds.items()}
        # this call only raises: the sample is larger than the table
        if too_many:
            draw_sample(records, source.sha256, data, seed, key)
        if chosen is not None:
            # else levels that no sampled record has would tell of records outside the sample
            found = {name: conform_sampled_values(values, wanted[name]) for name, values in found.items()}
        frame = pd.DataFrame(found, copy=False)
        everything = Microdata(
            wanted,
            frame,
            origin,
            raw.records - records,
            raw.records,
            missing_counts,
            kinds=pd.DataFrame(kinds) if kinds else None,
            affected_group=None if whole.all() else _find_dropped_group(raw, wanted, ~whole),
        )
        check_unit_levels(everything)
        if data.holdout is not None:
            everything = split_off_controls(everything, schema, source.sha256, data, seed, key)
        return everything if data.screen is None else draw_screening_records(everything, source.sha256, data, seed, key)


def _select_rows(values: pd.Series, chosen: list[int] | None) -> pd.Series:
    """Return the chosen rows of a column, numbered from 0; all of them where ``chosen`` is None."""
    return values if chosen is None else values.iloc[chosen].reset_index(drop=True)


def _find_dropped_group(raw: RawTable, wanted: Schema, dropped: NDArray[np.bool_]) -> AffectedGroup | None:
    """Return the group of which most records are ``dropped`` (n,) beyond chance; None where there is none."""
    # imported late, since few files drop anybody
    from sfumato.engine.statistics.missing_by_group import iterate_groups, most_affected_group

    groups: list[AffectedGroup] = []
    for variable in wanted:
        if variable.kind.has_levels and not variable.role.is_identifier:
            # A column at a time, so that no more of a large file is in memory than before.
            cells = pd.DataFrame(dict(raw.iterate_columns((variable.name,))), copy=False)
            known = conform_to_schema(cells, Schema((variable,)), MissingPolicy.KEEP, tags=raw.tags)
            groups += iterate_groups(known, dropped)
    return most_affected_group(groups)


def _records_kept_by_policy(
    raw: RawTable, wanted: Schema, data: DataSource, origin: Origin
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Mark the records (n,) that the missing-value policy keeps, and count the values that the others lack, by variable.

    Raises BadInput where it refuses some.
    """
    lacking = np.zeros(raw.records, dtype=np.bool_)
    names = data.complete_cases if data.missing is MissingPolicy.KEEP else wanted.names
    counts = {}
    for name, values in raw.iterate_columns(names):
        absent = mask_missing_codes(values, wanted[name]).isna().to_numpy()
        counts[name] = int(absent.sum())
        lacking |= absent
    if data.missing is MissingPolicy.REFUSE and lacking.any():
        worst = max(counts, key=lambda name: counts[name])
        # conforming the column with most missing values raises the message for all callers
        ((_, values),) = raw.iterate_columns([worst])
        conform_to_schema(values.to_frame(worst), Schema((wanted[worst],)), data.missing, origin)
    return ~lacking, counts if lacking.any() else {}
