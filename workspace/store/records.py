"""Checks of rows of the database: SQLite keeps whatever a column was given, so what another program wrote is examined."""

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
    """Return a decorator for a function that makes a value of a row: raises DamagedRecord with ``record_kind`` where Sfumato did not write the row."""

    def decorate(func: Callable[Given, Value]) -> Callable[Given, Value]:
        @wraps(func)
        def read(*args: Given.args, **kwargs: Given.kwargs) -> Value:
            try:
                return func(*args, **kwargs)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
                raise DamagedRecord(record_kind) from None

        return read

    return decorate


def check_texts(*values: object) -> None:
    """Raise TypeError where a value is no text."""
    if not all(isinstance(value, str) for value in values):
        raise TypeError


def check_integers(*values: object) -> None:
    """Raise TypeError where a value is neither missing nor a whole number."""
    if not all(value is None or isinstance(value, int) for value in values):
        raise TypeError


def check_numbers(*values: object) -> None:
    """Raise TypeError where a value is neither missing nor a finite number."""
    if not all(value is None or (isinstance(value, float | int) and math.isfinite(value)) for value in values):
        raise TypeError


def parse_json_table(text: str) -> Mapping[str, Any]:
    """Parse a table that is kept as JSON. Raises TypeError and ValueError."""
    if not isinstance(found := json.loads(text), dict):
        raise TypeError
    return found
