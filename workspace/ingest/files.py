"""From a file to microdata: reading, filtering, sampling. Untrusted: the file, and ``where``, a DuckDB expression on its columns."""

from __future__ import annotations

import codecs
import csv
import hashlib
import importlib.resources
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_reader
import pyarrow.parquet as pq

from sfumato.engine.data_source import DataSource
from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.schema import Origin, Schema
from sfumato.engine.written_values import are_names, has_decimal_commas, read_numbers

from ..errors import StrangeFile
from ..plain_files import read_plain
from ..reporting.words import printable
from .holdout import check_column, held_out, with_column
from .limits import FILTER_SECONDS, FILTER_SHARE, MOST_COLUMNS, bounded_memory, machine_bytes
from .sampling import sampled

if TYPE_CHECKING:
    import duckdb

SETTINGS: dict[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0KiB",
}
CLOCKS_THAT_DUCKDB_CALLS_CONSISTENT = {"current_localtime", "current_localtimestamp"}
FUNCTIONS_WITHOUT_BRACKETS = {
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
}


def select_where(frame: pd.DataFrame, where: str, place: str = "data.where") -> pd.DataFrame:
    """The records for which a DuckDB expression holds, in order. Raises BadInput, whose message never holds a value.

    The expression sees the file's columns and nothing else: no file, no other table, no clock, no chance. It may take
    FILTER_SECONDS and FILTER_SHARE of the machine's memory, and writes nothing to a disk.
    """
    import duckdb

    number = _unused("record number", frame)
    limits = {"memory_limit": f"{int(FILTER_SHARE * machine_bytes()) >> 20}MiB"}
    with duckdb.connect(":memory:", config={**SETTINGS, **limits}) as connection:
        deadline = threading.Timer(FILTER_SECONDS, connection.interrupt)
        connection.register("records", frame.assign(**{number: range(len(frame))}))
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        try:
            _check_closed(_parsed(connection, where, place), frame, place)
            deadline.start()
            condition = duckdb.SQLExpression(where)
            kept = connection.table("records").filter(condition).project(f'"{number}"').order(f'"{number}"')
            chosen = kept.fetchnumpy()[number]
        except duckdb.Error as error:
            raise BadInput(place, _without_values(error)) from None
        finally:
            deadline.cancel()
    selected: pd.DataFrame = frame.iloc[chosen]
    return selected


def _unused(name: str, frame: pd.DataFrame) -> str:
    taken = {str(column).lower() for column in frame.columns}
    while name in taken:
        name += "_"
    return name


@lru_cache(maxsize=1)
def _unstable_functions() -> frozenset[str]:
    import duckdb

    query = "SELECT lower(function_name), stability, macro_definition FROM duckdb_functions()"
    with duckdb.connect(":memory:", config=dict(SETTINGS)) as connection:
        rows = connection.execute(query).fetchall()
    unstable = {name for name, stability, _ in rows if stability not in (None, "CONSISTENT")}
    unstable |= FUNCTIONS_WITHOUT_BRACKETS | CLOCKS_THAT_DUCKDB_CALLS_CONSISTENT
    macros = {name: set(re.findall(r"\w+", text.lower())) for name, _, text in rows if text}
    while spread := {name for name, words in macros.items() if words & {*unstable, "select"}} - unstable:
        unstable |= spread
    return frozenset(unstable)


def _parsed(connection: duckdb.DuckDBPyConnection, where: str, place: str) -> object:
    statement = f"SELECT 1 FROM records WHERE (\n{where}\n)"
    serialised = connection.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()[0][0]
    try:
        tree = json.loads(serialised)
    except RecursionError:
        raise BadInput(place, "is nested too deeply; write an expression such as price > 0") from None
    if tree["error"]:
        first = str(tree["error_message"]).splitlines()[0]
        raise BadInput(place, f"{first}; write an expression such as price > 0")
    return tree


def _check_closed(tree: object, frame: pd.DataFrame, place: str) -> None:
    columns = [str(column).lower() for column in frame.columns]
    for node in _nodes(tree):
        if node.get("class") == "SUBQUERY":
            raise BadInput(place, "must be an expression on the file's columns; it holds a query of its own")
        if node.get("class") == "PARAMETER":
            raise BadInput(place, "must be an expression on the file's columns; it holds a parameter")
        if node.get("class") == "FUNCTION":
            _check_function(node, place)
        if node.get("class") == "COLUMN_REF":
            _check_name(node["column_names"], columns, place)


def _check_function(node: dict[str, Any], place: str) -> None:
    name = str(node["function_name"]).lower()
    from_today = name == "age" and len(node["arguments"]) == 1
    if name in _unstable_functions() or from_today:
        raise BadInput(
            place,
            f"{name}() depends on more than the file's columns; for a random sample use [data] sample and the seed",
        )


def _check_name(path: list[str], columns: list[str], place: str) -> None:
    names = [name.lower() for name in path]
    if names[0] not in columns and names[0] in FUNCTIONS_WITHOUT_BRACKETS:
        raise BadInput(place, f'"{path[0]}" depends on more than the file\'s columns')
    if twice := [name for name in names if columns.count(name) > 1]:
        raise BadInput(place, f'the file has columns that differ from "{twice[0]}" in nothing but case; rename one')


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _without_values(error: duckdb.Error) -> str:
    import duckdb

    if isinstance(error, duckdb.PermissionException) or "file system operations are disabled" in str(error):
        return "must be an expression on the file's columns; it tries to read something else"
    if isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)):
        return f"{str(error).splitlines()[0].partition(': ')[2]}; write an expression such as price > 0"
    if isinstance(error, duckdb.InterruptException):
        return f"takes longer than {FILTER_SECONDS:g} s; write a simpler expression"
    if isinstance(error, duckdb.OutOfMemoryException):
        return "needs more memory than a filter may take; write a simpler expression"
    if isinstance(error, duckdb.ConversionException):
        return "a value of the file cannot be converted to the type that the expression asks for; use try_cast"
    return "is not one expression that can be computed for every record of the file"


SHIPPED = {"randhie", "anes96", "fair"}
LONGEST_ROW = 1 << 22
NAMES = "the first line must hold a name for each column"
_TEXTS = ["string", "large_string", "string_view", "date", "timestamp", "null"]
_KINDS = ["boolean", "integer", "floating", "decimal", *_TEXTS]
READABLE = [getattr(pa.types, f"is_{kind}") for kind in _KINDS]
"""What a column of a Parquet file may hold."""
UNPARSED = "a quotation mark is opened and not closed, or a row is longer than 4 MB"


@dataclass(frozen=True)
class Source:
    """A file's name and bytes, read once, so that what is hashed is what is parsed."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return hashlib.sha256(self.content).hexdigest()


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
        size = path.stat().st_size
        with bounded_memory(size, path.name, place):
            return Source(_in_utf8(path.name, place), read_plain(path, follow=True))
    except StrangeFile as error:
        raise BadInput(place, f'"{file}" is {error.kind}, not a table') from None
    except FileNotFoundError:
        raise BadInput(place, f'no such file "{file}"; give the right path, or --data FILE') from None
    except OSError as error:
        raise BadInput(place, f'"{file}" cannot be read: {os.strerror(error.errno or 0)}') from None


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


def read_frame(source: Source, schema: Schema | None = None, place: str = "data.file") -> pd.DataFrame:
    """The table of a CSV, TSV or Parquet file. Columns that the schema gives levels are read as text (``007`` stays),
    others of decimal commas (``2,5``) as numbers.

    Only an empty field is a missing value; other codes are declared by the variable. Raises BadInput.
    """
    with bounded_memory(len(source.content), source.name, place):
        return _read_frame(source, schema, place)


def _read_frame(source: Source, schema: Schema | None, place: str) -> pd.DataFrame:
    if source.content[:4] == b"PAR1":
        return _read_parquet(source, place)
    if not source.content.strip():
        raise BadInput(place, f'"{source.name}" is empty')
    if b"\0" in source.content[:65536]:
        raise BadInput(place, f'"{source.name}" is not a table: CSV, TSV and Parquet files can be read')
    return _read_text(source, schema, place)


def _read_parquet(source: Source, place: str) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(pa.BufferReader(source.content))
        _check_header(file.schema_arrow.names, source, place)
        _check_types(file.schema_arrow, source, place)
        frame: pd.DataFrame = file.read().to_pandas(ignore_metadata=True)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(place, f'"{source.name}" is a damaged Parquet file') from None
    return frame


def _check_types(found: pa.Schema, source: Source, place: str) -> None:
    """BadInput for columns whose cells are no single values."""
    for number, field in enumerate(found, start=1):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or not any(is_it(kind) for is_it in READABLE):
            raise BadInput(
                place,
                f'column {number} of "{source.name}" holds {str(kind).partition("<")[0]} values; a table has one number, text or '
                "date a cell: convert the column, or leave it out",
            )


def _read_text(source: Source, schema: Schema | None, place: str) -> pd.DataFrame:
    if b"\n" not in source.content:
        source = Source(source.name, source.content.replace(b"\r", b"\n"))
    _check_utf8(source, place)
    header, separator = _header(source, place)
    _check_header(header, source, place)
    _check_rows(source, header, separator, place)
    as_text = {v.name: "str" for v in schema if v.kind.has_levels} if schema is not None else {}
    try:
        frame = pd.read_csv(
            BytesIO(source.content),
            sep=separator,
            header=0,
            names=header,
            dtype={name: kind for name, kind in as_text.items() if name in header},
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
            low_memory=False,
            index_col=False,
            skip_blank_lines=len(header) > 1,
        )
    except pd.errors.ParserError as error:
        if "out of memory" in str(error):
            raise MemoryError from None
        raise BadInput(place, f'"{source.name}" is not a table: {UNPARSED}') from None
    except MemoryError:
        raise
    except (pd.errors.EmptyDataError, pd.errors.ParserWarning, ValueError):
        raise BadInput(place, f'"{source.name}" is not a table: {UNPARSED}') from None
    commas = [name for name in header if name not in as_text and has_decimal_commas(frame[name])]
    return frame.assign(**{name: read_numbers(frame[name]) for name in commas})


def _check_utf8(source: Source, place: str) -> None:
    decoder, content = codecs.getincrementaldecoder("utf-8")(), memoryview(source.content)
    try:
        for start in range(0, len(content), LONGEST_ROW):
            decoder.decode(content[start : start + LONGEST_ROW])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise BadInput(place, f'"{source.name}" is not UTF-8 text; save it as UTF-8') from None


def _header(source: Source, place: str) -> tuple[list[str], str]:
    first = source.content.partition(b"\n")[0].decode("utf-8-sig").rstrip("\r")
    separator = max(",\t;|", key=first.count)
    if first.count(separator) == 0 and schema_less_line(first):
        raise BadInput(place, f'"{source.name}" is not a table: its first line names no columns')
    try:
        return _unquoted(next(csv.reader([first], delimiter=separator, strict=True))), separator
    except csv.Error:
        raise BadInput(place, f'"{source.name}" is not a table: its first line cannot be split into names') from None


def _unquoted(header: list[str]) -> list[str]:
    """The names of a header; where apostrophes stand around every one of them, without these."""
    quoted = all(len(name) > 2 and name[0] == name[-1] == "'" for name in header)
    return [name[1:-1] for name in header] if quoted else header


def _check_header(header: list[str], source: Source, place: str) -> None:
    """BadInput where the names cannot be used. None is quoted where it may be a value: without a header a record stands there."""
    if len(header) > MOST_COLUMNS:
        raise BadInput(
            place, f'"{source.name}" has {len(header):,} columns; at most {MOST_COLUMNS:,} can be read: leave some out'
        )
    first: dict[str, int] = {}
    for number, name in enumerate(header, start=1):
        if not name.isprintable():
            raise BadInput(
                place, f'the name of column {number} of "{source.name}" has characters that cannot be printed; {NAMES}'
            )
        if (earlier := first.setdefault(name, number)) != number:
            if are_names(header):
                raise BadInput(place, f'"{source.name}" has two columns called "{name}"')
            raise BadInput(place, f'columns {earlier} and {number} of "{source.name}" have the same name; {NAMES}')


def _check_rows(source: Source, header: list[str], separator: str, place: str) -> None:
    """BadInput when a row has more or fewer fields than the header: pandas would cut the one and fill the other."""
    wrong: list[csv_reader.InvalidRow] = []

    def count(row: csv_reader.InvalidRow) -> str:
        wrong.append(row)
        return "skip"

    names = [str(i) for i in range(len(header))]
    try:
        csv_reader.read_csv(
            pa.BufferReader(source.content),
            csv_reader.ReadOptions(use_threads=False, column_names=names, block_size=LONGEST_ROW),
            csv_reader.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=count),
            csv_reader.ConvertOptions(include_columns=names[:1], column_types={names[0]: pa.binary()}),
        )
    except pa.ArrowInvalid:
        raise BadInput(place, f'"{source.name}" is not a table: {UNPARSED}') from None
    if wrong:
        first = wrong[0]
        raise BadInput(
            place,
            f'"{source.name}" is not a table: {len(wrong):,} of its rows have more or fewer fields than the header; '
            f"the first is row {first.number}, with {first.actual_columns} instead of {first.expected_columns}",
        )


def schema_less_line(line: str) -> bool:
    """Whether a line without a separator cannot be the header of a one-column table."""
    return not line.strip() or len(line) > 200 or any(sign in line for sign in "{}<>")


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
    wider = with_column(schema, data)
    frame = read_frame(source, wider)
    if not len(frame):
        raise BadInput("data.file", f'"{source.name}" has no records')
    if data.where:
        with bounded_memory(len(source.content), source.name, "data.where"):
            frame = select_where(frame, data.where)
        if not len(frame):
            raise BadInput("data.where", f'no record of "{source.name}" satisfies it')
    check_column(frame, schema, data)
    everything = conform(frame, wider, data.missing, origin)
    chosen = everything if data.sample is None else sampled(everything, source.sha256, data, seed, key)
    return chosen if data.holdout is None else held_out(chosen, schema, source.sha256, data, seed, key)
