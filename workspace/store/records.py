"""Records of the database as values: SQLite keeps whatever a column was given, so what another program wrote is looked at."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..errors import DamagedRecord

Given = ParamSpec("Given")
Value = TypeVar("Value")


def record(what: str) -> Callable[[Callable[Given, Value]], Callable[Given, Value]]:
    """For a function that makes a value of a record: raises DamagedRecord with ``what`` where the record is none of ours."""

    def reads(func: Callable[Given, Value]) -> Callable[Given, Value]:
        @wraps(func)
        def read(*args: Given.args, **kwargs: Given.kwargs) -> Value:
            try:
                return func(*args, **kwargs)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
                raise DamagedRecord(what) from None

        return read

    return reads


def check_texts(*values: object) -> None:
    """TypeError where one is no text."""
    if not all(isinstance(value, str) for value in values):
        raise TypeError


def check_whole(*values: object) -> None:
    """TypeError where one is neither missing nor a whole number."""
    if not all(value is None or isinstance(value, int) for value in values):
        raise TypeError


def check_numbers(*values: object) -> None:
    """TypeError where one is neither missing nor a finite number."""
    if not all(value is None or (isinstance(value, float | int) and math.isfinite(value)) for value in values):
        raise TypeError


def stored_table(text: str) -> Mapping[str, Any]:
    """A table that is kept as JSON. Raises TypeError and ValueError."""
    if not isinstance(found := json.loads(text), dict):
        raise TypeError
    return found
