"""Checks of rows of the database: SQLite keeps any value in any column, and another program may have written it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..errors import DamagedRecord

Given = ParamSpec("Given")
Value = TypeVar("Value")


def raise_damaged_record(record_kind: str) -> Callable[[Callable[Given, Value]], Callable[Given, Value]]:
    """Return a decorator for functions that parse a row, which turns their errors into DamagedRecord(``record_kind``)."""

    def decorate(func: Callable[Given, Value]) -> Callable[Given, Value]:
        """Return the function with its errors turned into DamagedRecord."""

        @wraps(func)
        def read(*args: Given.args, **kwargs: Given.kwargs) -> Value:
            """Call the function; raise DamagedRecord for errors of parsing."""
            try:
                return func(*args, **kwargs)
            # What parsing a strange value may raise; RecursionError is that of deeply nested JSON.
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
                raise DamagedRecord(record_kind) from None

        return read

    return decorate


def check_texts(*values: object) -> None:
    """Raise TypeError where a value is not a string."""
    if not all(isinstance(value, str) for value in values):
        raise TypeError


def check_integers(*values: object) -> None:
    """Raise TypeError where a value is neither None nor an integer."""
    if not all(value is None or isinstance(value, int) for value in values):
        raise TypeError


def check_numbers(*values: object) -> None:
    """Raise TypeError where a value is neither None nor a finite number."""
    if not all(value is None or (isinstance(value, float | int) and math.isfinite(value)) for value in values):
        raise TypeError


def parse_json_table(text: str) -> Mapping[str, Any]:
    """Parse an object that is stored as JSON. Raises TypeError and ValueError."""
    if not isinstance(found := json.loads(text), dict):
        raise TypeError
    return found
