"""Shared parts of global recoding: trees and interval widths of the quasi-identifiers, and columns recoded to one
level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol

import numpy as np
import pandas as pd

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema
from ..errors import BadInput
from ..methods.spec import Param
from ..partition.hierarchies import Hierarchy, format_label_number, interval_hierarchy, interval_labels
from ._partition import numbers_as_labelled, tree_of_levels

Widths = Annotated[
    Mapping[str, tuple[float, ...]],
    Param(
        "widths of the intervals at each level by variable, each a multiple of the one before; of dates in days",
        gt=0,
        names="variables",
        kinds=(Kind.COUNT, Kind.CONTINUOUS, Kind.DATE),
    ),
]


class RecodingSettings(Protocol):
    """Parameters with trees and interval widths of quasi-identifiers."""

    @property
    def hierarchies(self) -> Mapping[str, Hierarchy]: ...
    @property
    def widths(self) -> Mapping[str, tuple[float, ...]]: ...


def tree_height(spec: RecodingSettings, name: str, schema: Schema) -> int:
    """Return the number of levels above the values in a variable's tree."""
    if not schema[name].kind.has_levels:
        return len(spec.widths.get(name, ())) + 1
    return spec.hierarchies[name].height if name in spec.hierarchies else 1


def check_tree_levels(levels: Mapping[str, int], spec: RecodingSettings, schema: Schema, place: str) -> None:
    """Raise BadInput for a level above the root of its variable's tree."""
    for name, level in levels.items():
        if level > (root := tree_height(spec, name, schema)):
            raise BadInput(f"{place}.{name}", f"{level} is above the root, which is level {root}")


def check_widths(spec: RecodingSettings, place: str) -> None:
    """Raise BadInput for a width that is no multiple of the one before."""
    for name, widths in spec.widths.items():
        try:
            # Any number will do: widths are checked when a tree is built of them.
            interval_hierarchy(np.zeros(1), widths)
        except ValueError as error:
            raise BadInput(f"{place}.widths.{name}", str(error)) from None


def check_setting_names(settings: Mapping[str, Mapping[str, object]], keys: tuple[str, ...], place: str) -> None:
    """Raise BadInput where a setting by variable names another than a quasi-identifier."""
    for setting, by_name in settings.items():
        for name in by_name:
            if name not in keys:
                raise BadInput(f"{place}.{setting}.{name}", f'"{name}" is no quasi-identifier; leave it out')


def tree_with_rows(data: Microdata, name: str, spec: RecodingSettings) -> tuple[Hierarchy, Integers]:
    """Return the tree of a quasi-identifier, of intervals for numbers, and each record's row in it, (n,)."""
    kind = data.schema[name].kind
    if kind.has_levels:
        return tree_of_levels(data, name, spec.hierarchies.get(name))
    return interval_hierarchy(numbers_as_labelled(data, name), spec.widths.get(name, ()), dates=kind is Kind.DATE)


def recode_column(data: Microdata, name: str, level: int, spec: RecodingSettings) -> pd.Series:
    """Return the labels of a column at one level of its tree, (n,); at level 0 the values themselves as labels."""
    kind = data.schema[name].kind
    if kind.has_levels:
        tree, rows = tree_of_levels(data, name, spec.hierarchies.get(name))
        labels = [row[level] for row in tree.rows]
    elif level:
        widths = spec.widths.get(name, ())
        labels, rows = interval_labels(numbers_as_labelled(data, name), widths, level, dates=kind is Kind.DATE)
    else:
        distinct, rows = np.unique(numbers_as_labelled(data, name), return_inverse=True)
        labels = [format_label_number(number, dates=kind is Kind.DATE) for number in distinct.tolist()]
    # Several nodes may have one label at this level.
    categories = list(dict.fromkeys(labels))
    place = {label: code for code, label in enumerate(categories)}
    codes = np.array([place[label] for label in labels], dtype=np.int64)
    return pd.Series(pd.Categorical.from_codes(codes[rows], pd.Index(categories, dtype="object")))
