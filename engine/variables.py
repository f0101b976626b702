"""What measures ask of a variable: whether it is compared when the recipe names none, and what values it can have."""

from __future__ import annotations

from collections.abc import Collection

from .schema import Kind, Role, Schema, Variable
from .statistics.bounded_interval import SHARE, Range

__all__ = ["compared_variables", "range_of_values"]


def compared_variables(schema: Schema, released: Collection[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """The released variables of these kinds; where none is said to be released, the sensitive ones.

    Where there are no sensitive ones either, all but the identifiers. Empty when nothing is of these kinds.
    """
    suitable = [v for v in schema if v.kind in kinds and v.role is not Role.IDENTIFIER]
    if released:
        return tuple(v.name for v in suitable if v.name in released)
    sensitive = tuple(v.name for v in suitable if v.role is Role.SENSITIVE)
    return sensitive or tuple(v.name for v in suitable)


def range_of_values(variable: Variable) -> Range:
    """The smallest and largest value that it can have, and so its mean and its quantiles; a binary variable is 0 or 1."""
    return SHARE if variable.kind is Kind.BINARY else (variable.lower, variable.upper)
