"""What one anonymised table shows by itself: its classes, its suppressed cells, and its generalised values.

Records that agree on all known variables are a class; a suppressed cell is a value of its own there, which equals no
other value. A record whose known cells are all suppressed is in no class: it makes no other record safer, and k says
nothing of it (Sweeney 2002; Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.microdata import Microdata
from ..data.schema import Kind
from .equivalence_classes import SensitiveColumn, class_sizes, equivalence_classes
from .hierarchies import parse_interval

MASKED = re.compile(r"[^*]+\*+")
"""A value whose last characters are suppressed, such as ``81***``."""


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A variable that an intruder may know.

    suppressed: records without a value of it
    values: distinct values
    intervals, masked: those of them that are intervals (``[20, 30)``, ``<50``), and those whose end is ``*``
    """

    name: str
    suppressed: int
    values: int
    intervals: int
    masked: int


@dataclass(frozen=True, slots=True)
class Diversity:
    """A sensitive variable in the classes: least distinct values, least exponential of the entropy, largest distance t
    from the values of all records of the table.
    """

    name: str
    l_distinct: int
    l_entropy: float
    t: float


@dataclass(frozen=True, slots=True)
class ReleasedFileAnonymity:
    """What one table shows.

    records: all of them
    suppressed_records: those whose known cells are all suppressed, which are in no class
    classes: number of classes of the others
    k: records of the smallest class; None without a class
    unique_records: records alone in their class
    """

    records: int
    suppressed_records: int
    classes: int
    k: int | None
    unique_records: int
    known: tuple[KnownColumn, ...]
    sensitive: tuple[Diversity, ...]

    @property
    def suppressed_cells(self) -> int:
        """Count the suppressed cells of the known variables."""
        return sum(column.suppressed for column in self.known)


def measure_released_file(
    known: Mapping[str, pd.Series], data: Microdata, sensitive: Sequence[str]
) -> ReleasedFileAnonymity:
    """Measure the classes of ``known`` columns (n,), with missing values where cells are suppressed.

    ``data`` holds the ``sensitive`` variables of the same n records.
    """
    columns = list(known.values())
    suppressed = np.logical_and.reduce([column.isna().to_numpy() for column in columns])
    rows = np.flatnonzero(~suppressed)
    classes = equivalence_classes([column.iloc[rows] for column in columns], len(rows))
    sizes = class_sizes(classes)
    found = []
    for name in sensitive if len(rows) else ():
        # The distance is from all records of the file: the suppressed ones still show their sensitive values.
        variable = SensitiveColumn.from_microdata(data, name)
        composition = variable.class_composition(classes, len(sizes), rows)
        found.append(
            Diversity(
                name,
                int(composition.distinct_counts().min()),
                float(composition.effective_values().min()),
                float(variable.distance_from_table(composition).max()),
            )
        )
    return ReleasedFileAnonymity(
        len(suppressed),
        int(suppressed.sum()),
        len(sizes),
        int(sizes.min()) if len(sizes) else None,
        int((sizes == 1).sum()),
        tuple(_describe_column(name, column) for name, column in known.items()),
        tuple(found),
    )


def _describe_column(name: str, column: pd.Series) -> KnownColumn:
    """Count the suppressed cells of a column, and its generalised values."""
    values = column.dropna().unique()
    texts = [value for value in values if isinstance(value, str)]
    return KnownColumn(name, int(column.isna().sum()), len(values), _count_intervals(texts), _count_masked(texts))


def _count_intervals(texts: Iterable[str]) -> int:
    """Count the labels that are intervals of numbers or of dates."""
    return sum(any(parse_interval(text, kind) for kind in (Kind.CONTINUOUS, Kind.DATE)) for text in texts)


def _count_masked(texts: Iterable[str]) -> int:
    """Count the labels whose last characters are suppressed."""
    return sum(MASKED.fullmatch(text) is not None for text in texts)
