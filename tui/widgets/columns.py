"""Columns that make the most of the width they get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .pages import Column
from .table import Table

__all__ = ["cells", "fitted"]


def fitted(
    columns: Sequence[Column], width: int, grows: Sequence[str], drops: Sequence[str] = ()
) -> tuple[Column, ...]:
    """The columns in ``width`` cells: those named in ``drops`` go while it is too little, the first of ``grows`` takes what is left."""
    kept = tuple(columns)
    for name in drops:
        if Table(kept).width <= width:
            break
        kept = tuple(column for column in kept if column.name != name)
    spare = max(0, width - Table(kept).width)
    names = [column.name for column in kept]
    grown = next((name for name in grows if name in names), None)
    return tuple(replace(column, width=column.width + spare * (column.name == grown)) for column in kept)


def cells(columns: Sequence[Column], values: Mapping[str, object]) -> tuple[object, ...]:
    """A row's values in the order of the columns."""
    return tuple(values[column.name] for column in columns)
