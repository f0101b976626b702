"""A table as its file gives it: cells, what the file says of its columns, and which kinds of missing value its empty cells are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, slots=True)
class Description:
    """What a file says of a column beside its values.

    ``labels`` are of values and of missing codes, by their text; ``missing`` are codes, or ranges of them (``engine.missing_codes``);
    ``measure`` is nominal, ordinal, scale, or empty.
    """

    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str | float, ...] = ()
    measure: str = ""


@dataclass(frozen=True)
class RawTable:
    """``frame`` (n, k) as it was read. ``tags`` (n, j) has, of columns with such, the kind of each missing value: ``.a``, ``._``.

    ``descriptions`` are of the columns that have one; ``notes`` are to be told to who reads the file.
    """

    frame: pd.DataFrame
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    tags: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
