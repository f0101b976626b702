"""Filtering of records by a DuckDB expression, ``where`` of a recipe. Untrusted: the expression.

It may use the columns of the file and nothing else.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from sfumato.engine.errors import BadInput

from .limits import FILTER_MEMORY_SHARE, FILTER_SECONDS, machine_bytes

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    from numpy.typing import NDArray

# no file, no network, no frame of the calling Python code, and no temporary file on a disk
DUCKDB_SETTINGS: dict[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0KiB",
}
# DuckDB lists these as consistent although they read the clock
UNDECLARED_CLOCK_FUNCTIONS = {"current_localtime", "current_localtimestamp"}
# the parser returns these as column references, not as functions
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


PLAIN_EXPRESSION_CLASSES = {
    "BETWEEN",
    "CASE",
    "CAST",
    "COLLATE",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
    "FUNCTION",
    "OPERATOR",
}
"""Classes of nodes of the syntax tree that read no column but the ones they name."""


def select_where(frame: pd.DataFrame, where: str, place: str = "data.where") -> pd.DataFrame:
    """Return the records of a frame for which a DuckDB expression holds, as ``find_records_where`` finds them."""
    names = list(map(str, frame.columns))

    def select_columns(read: Sequence[str]) -> pd.DataFrame:
        return frame.iloc[:, [i for i, name in enumerate(names) if name in read]]

    selected: pd.DataFrame = frame.iloc[find_records_where(names, select_columns, where, place)]
    return selected


def find_records_where(
    names: Sequence[str], read_columns: Callable[[Sequence[str]], pd.DataFrame], where: str, place: str = "data.where"
) -> NDArray[np.int64]:
    """Return the numbers, from 0, of the records for which a DuckDB expression holds, (m,), ascending.

    ``read_columns`` returns some columns of the file, (n, j). The expression may use nothing else: no file, no other
    table, no clock and no random number. It is limited to FILTER_SECONDS and FILTER_MEMORY_SHARE of the machine's
    memory. Raises BadInput, whose message never contains a value.
    """
    import duckdb

    limits = {"memory_limit": f"{int(FILTER_MEMORY_SHARE * machine_bytes()) >> 20}MiB"}
    with duckdb.connect(":memory:", config={**DUCKDB_SETTINGS, **limits}) as connection:
        # DuckDB has no time limit for a statement of its own
        deadline = threading.Timer(FILTER_SECONDS, connection.interrupt)
        # records must come back in the order of the file, also where DuckDB reads them in parallel
        connection.execute("SET preserve_insertion_order = true")
        # the same records must be selected on every machine
        connection.execute("SET TimeZone = 'UTC'")
        # the expression cannot lift the settings above
        connection.execute("SET lock_configuration = true")
        try:
            tree = _parse_condition(connection, where, place)
            _check_only_columns(tree, names, place)
            frame = read_columns(columns_of_expression(tree, names))
            # A frame without columns cannot be registered; an expression without columns reads none.
            connection.register("records", frame if len(frame.columns) else frame.assign(**{"": 0}))
            deadline.start()
            chosen = _records_where_true(connection, where)
        except duckdb.Error as error:
            raise BadInput(place, _message_without_values(error)) from None
        finally:
            deadline.cancel()
    return chosen


def _records_where_true(connection: duckdb.DuckDBPyConnection, where: str) -> NDArray[np.int64]:
    """Return the numbers, from 0, of the records of the table ``records`` for which an expression holds, ascending."""
    import duckdb
    import numpy as np

    table = connection.table("records")
    # A filter may hold no aggregate and no window function, such as row_number(): DuckDB refuses them here.
    table.filter(duckdb.SQLExpression(where))
    # The value of the expression is asked for every record, in their order: a column with numbers of records could be
    # named by the expression, or read by a star, by #2, or by the name of the table.
    condition = duckdb.SQLExpression(f"CAST((\n{where}\n) AS BOOLEAN)")
    found = table.project(condition).to_arrow_table()
    # COLUMNS(*) stands for several conditions, which must all hold.
    holds = [column.fill_null(False).to_numpy() for column in found.columns]
    return np.flatnonzero(np.logical_and.reduce(holds))


def columns_of_expression(tree: object, names: Sequence[str]) -> list[str]:
    """Return the columns whose values a parsed expression may read: all where it can read unnamed ones."""
    found: set[str] = set()
    for node in _walk_syntax_tree(tree):
        found |= {part.lower() for part in node.get("column_names", [])}
        if node.get("class", "CONSTANT") not in PLAIN_EXPRESSION_CLASSES:
            return list(names)
    # the name of the table as a value is the whole row
    return list(names) if "records" in found else [name for name in names if name.lower() in found]


@lru_cache(maxsize=1)
def _nondeterministic_functions() -> frozenset[str]:
    """Return the lower-case names of DuckDB's functions whose result depends on more than their arguments."""
    import duckdb

    query = "SELECT lower(function_name), stability, macro_definition FROM duckdb_functions()"
    with duckdb.connect(":memory:", config=dict(DUCKDB_SETTINGS)) as connection:
        rows = connection.execute(query).fetchall()
    unstable = {name for name, stability, _ in rows if stability not in (None, "CONSISTENT")}
    unstable |= FUNCTIONS_WITHOUT_BRACKETS | UNDECLARED_CLOCK_FUNCTIONS
    # a macro is as unstable as what it calls; one with a query of its own could read tables
    macros = {name: set(re.findall(r"\w+", text.lower())) for name, _, text in rows if text}
    while spread := {name for name, words in macros.items() if words & {*unstable, "select"}} - unstable:
        unstable |= spread
    return frozenset(unstable)


def _parse_condition(connection: duckdb.DuckDBPyConnection, where: str, place: str) -> object:
    """Parse an expression into DuckDB's syntax tree. Raises BadInput where it is no expression."""
    # the line ends keep a comment (--) in the expression from hiding the bracket
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


def _check_only_columns(tree: object, names: Sequence[str], place: str) -> None:
    """Raise BadInput where an expression uses anything but the columns of the file."""
    columns = [name.lower() for name in names]
    for node in _walk_syntax_tree(tree):
        if node.get("class") == "SUBQUERY":
            raise BadInput(place, "must be an expression on the file's columns; it holds a query of its own")
        if node.get("class") == "PARAMETER":
            raise BadInput(place, "must be an expression on the file's columns; it holds a parameter")
        if node.get("class") == "FUNCTION":
            _check_function(node, place)
        if node.get("class") == "COLUMN_REF":
            _check_column_reference(node["column_names"], columns, place)


def _check_function(node: dict[str, Any], place: str) -> None:
    """Raise BadInput for a function that reads the clock, draws at random or looks at the system."""
    name = str(node["function_name"]).lower()
    # age(x) counts to the current date, age(x, y) does not
    from_today = name == "age" and len(node["arguments"]) == 1
    if name in _nondeterministic_functions() or from_today:
        raise BadInput(
            place,
            f"{name}() depends on more than the file's columns; for a random sample use [data] sample and the seed",
        )


def _check_column_reference(path: list[str], columns: list[str], place: str) -> None:
    """Raise BadInput for a reference that is a function without brackets, or ambiguous."""
    names = [name.lower() for name in path]
    if names[0] not in columns and names[0] in FUNCTIONS_WITHOUT_BRACKETS:
        raise BadInput(place, f'"{path[0]}" depends on more than the file\'s columns')
    if twice := [name for name in names if columns.count(name) > 1]:
        raise BadInput(place, f'the file has columns that differ from "{twice[0]}" in nothing but case; rename one')


def _walk_syntax_tree(tree: object) -> Iterator[dict[str, Any]]:
    """Yield every node of a syntax tree."""
    # a stack, since nested expressions may exceed Python's recursion limit
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _message_without_values(error: duckdb.Error) -> str:
    """Describe an error of DuckDB without quoting a value of the file."""
    import duckdb

    if isinstance(error, duckdb.PermissionException) or "file system operations are disabled" in str(error):
        return "must be an expression on the file's columns; it tries to read something else"
    # these quote the expression and the columns' names; errors of computing quote values
    if isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)):
        return f"{str(error).splitlines()[0].partition(': ')[2]}; write an expression such as price > 0"
    if isinstance(error, duckdb.InterruptException):
        return f"takes longer than {FILTER_SECONDS:g} s; write a simpler expression"
    if isinstance(error, duckdb.OutOfMemoryException):
        return "needs more memory than a filter may take; write a simpler expression"
    if isinstance(error, duckdb.ConversionException):
        return "a value of the file cannot be converted to the type that the expression asks for; use try_cast"
    return "is not one expression that can be computed for every record of the file"
