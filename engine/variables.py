"""Which variables a measure compares when the recipe names none."""

from __future__ import annotations

from collections.abc import Collection

from .schema import Kind, Role, Schema

__all__ = ["compared_variables"]


def compared_variables(schema: Schema, released: Collection[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """The released variables of these kinds; where none is said to be released, the sensitive ones.

    Where there are no sensitive ones either, all but the identifiers. Empty when nothing is of these kinds.
    """
    suitable = [v for v in schema if v.kind in kinds and v.role is not Role.IDENTIFIER]
    if released:
        return tuple(v.name for v in suitable if v.name in released)
    sensitive = tuple(v.name for v in suitable if v.role is Role.SENSITIVE)
    return sensitive or tuple(v.name for v in suitable)
