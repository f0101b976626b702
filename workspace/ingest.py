"""From a file to microdata: reading, filtering, sampling. The file and the filter are untrusted."""

from __future__ import annotations

import csv
import hashlib
import importlib.resources
import json
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import BadInput
from engine.microdata import Microdata, Origin, conform
from engine.recipe import DataSource
from engine.run import generator
from engine.schema import Schema, Variable

__all__ = ["Source", "find_source", "ingest", "read_frame", "select_where"]

SHIPPED = {"randhie", "anes96", "fair"}
VOLATILE = (
    "random",
    "uuid",
    "now",
    "today",
    "current_date",
    "current_timestamp",
    "get_current_time",
    "nextval",
    "setseed",
)


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
    if path.is_dir():
        raise BadInput(place, f'"{file}" is a directory, not a table')
    try:
        return Source(path.name, path.read_bytes())
    except FileNotFoundError:
        raise BadInput(place, f'no such file "{file}"; give the right path, or --data FILE') from None
    except OSError as error:
        raise BadInput(place, f'"{file}" cannot be read: {os.strerror(error.errno or 0)}') from None


def _shipped(file: str, place: str) -> Source:
    name = file.partition(":")[2]
    if name not in SHIPPED:
        raise BadInput(place, f'statsmodels ships no "{name}" that is used here; known: {", ".join(sorted(SHIPPED))}')
    content = (importlib.resources.files("statsmodels") / "datasets" / name / f"{name}.csv").read_bytes()
    return Source(f"{name}.csv", content)


def read_frame(source: Source, schema: Schema | None = None, place: str = "data.file") -> pd.DataFrame:
    """The table of a CSV, TSV or Parquet file. Columns that the schema gives levels are read as text (``007`` stays).

    Only an empty field is a missing value; other codes are declared by the variable. Raises BadInput.
    """
    if source.content[:4] == b"PAR1":
        return _read_parquet(source, place)
    if not source.content.strip():
        raise BadInput(place, f'"{source.name}" is empty')
    if b"\0" in source.content[:65536]:
        raise BadInput(place, f'"{source.name}" is not a table: CSV, TSV and Parquet files can be read')
    return _read_text(source, schema, place)


def _read_parquet(source: Source, place: str) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = pq.read_table(pa.BufferReader(source.content)).to_pandas()
    except (pa.ArrowException, OSError):
        raise BadInput(place, f'"{source.name}" is a damaged Parquet file') from None
    return frame


def _read_text(source: Source, schema: Schema | None, place: str) -> pd.DataFrame:
    header, separator = _header(source, place)
    if len(header) != len(set(header)):
        twice = next(name for name in header if header.count(name) > 1)
        raise BadInput(place, f'"{source.name}" has two columns called "{twice}"')
    as_text = {v.name: "str" for v in schema if v.kind.has_levels} if schema is not None else {}
    try:
        return pd.read_csv(
            BytesIO(source.content),
            sep=separator,
            dtype={name: kind for name, kind in as_text.items() if name in header},
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
            low_memory=False,
            index_col=False,
        )
    except (
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
        pd.errors.ParserWarning,
        UnicodeDecodeError,
        ValueError,
    ) as error:
        raise BadInput(place, f'"{source.name}" is not a table: {_first_line(error)}') from None


def _header(source: Source, place: str) -> tuple[list[str], str]:
    try:
        first = source.content.split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError:
        raise BadInput(place, f'"{source.name}" is not UTF-8 text; save it as UTF-8') from None
    separator = max(",\t;|", key=first.count)
    if first.count(separator) == 0 and schema_less_line(first):
        raise BadInput(place, f'"{source.name}" is not a table: its first line names no columns')
    return next(csv.reader([first], delimiter=separator)), separator


def schema_less_line(line: str) -> bool:
    """Whether a line without a separator cannot be the header of a one-column table."""
    return not line.strip() or len(line) > 200 or any(sign in line for sign in "{}<>")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].replace("Error tokenizing data. C error: ", "")


def select_where(frame: pd.DataFrame, where: str, place: str = "data.where") -> pd.DataFrame:
    """The records for which a DuckDB expression holds, in order. Raises BadInput.

    The expression sees the file's columns and nothing else: no file, no other table, no clock, no chance.
    """
    import duckdb

    settings: dict[str, Any] = {
        "enable_external_access": "false",
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.register("records", frame.assign(**{"": range(len(frame))}).rename(columns={"": "record number"}))
        connection.execute("SET lock_configuration = true")
        try:
            condition = duckdb.SQLExpression(where)
            _check_closed(connection, where, place)
            kept = connection.table("records").filter(condition).project('"record number"').order('"record number"')
            index = [row[0] for row in kept.fetchall()]
        except duckdb.Error as error:
            raise BadInput(place, f"{_duckdb_message(error)}; write an expression such as price > 0") from None
    return frame.iloc[index]


def _check_closed(connection: Any, where: str, place: str) -> None:
    parsed_only = f"SELECT 1 FROM records WHERE {where}\n"
    serialised = connection.execute("SELECT json_serialize_sql(?)", [parsed_only]).fetchone()
    for node in _nodes(json.loads(serialised[0])):
        if node.get("class") == "SUBQUERY":
            raise BadInput(place, "must be an expression on the file's columns; it holds a query of its own")
        if node.get("class") == "FUNCTION" and str(node.get("function_name", "")).lower() in VOLATILE:
            raise BadInput(
                place, f"{node['function_name']}() gives another answer every time; use [data] sample and the seed"
            )


def _nodes(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(node for item in value.values() for node in _nodes(item))]
    return [node for item in value for node in _nodes(item)] if isinstance(value, list) else []


def _duckdb_message(error: Exception) -> str:
    first = str(error).splitlines()[0]
    if "file system operations are disabled" in first or "Permission" in type(error).__name__:
        return "must be an expression on the file's columns; it tries to read something else"
    return first.partition(": ")[2] or first


def ingest(source: Source, data: DataSource, schema: Schema, seed: int, origin: Origin = "confidential") -> Microdata:
    """The microdata of a file: filtered, sampled without replacement by the seed (file order kept), conformed."""
    frame = read_frame(source, schema)
    if not len(frame):
        raise BadInput("data.file", f'"{source.name}" has no records')
    if data.where:
        frame = select_where(frame, data.where)
        if not len(frame):
            raise BadInput("data.where", f'no record of "{source.name}" satisfies it')
    everything = conform(frame, schema, data.missing, origin)
    return everything if data.sample is None else _sampled(everything, data.sample, seed)


def _sampled(everything: Microdata, size: int, seed: int) -> Microdata:
    records = len(everything)
    if size > records:
        raise BadInput("data.sample", f"{size:,} records are asked for, there are {records:,}; leave it out for all")
    chosen = sorted(generator(seed, "sample").choice(records, size, replace=False))
    frame = everything.frame.iloc[chosen].reset_index(drop=True)
    found = {v.name: frame[v.name].cat.remove_unused_categories() for v in everything.schema if _levels_were_found(v)}
    return Microdata(everything.schema, frame.assign(**found), everything.origin, everything.dropped)


def _levels_were_found(variable: Variable) -> bool:
    return variable.kind.has_levels and not variable.levels
