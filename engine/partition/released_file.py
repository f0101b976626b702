"""What one anonymised table shows by itself: its classes, its suppressed cells, and its generalised values.

Records that agree on all known variables are a class, by their cells as the file writes them: whoever sees the file
sees two spellings apart. A suppressed cell is a value of its own there, which equals no other value. A record whose
known cells are all suppressed is in no class: it makes no other record safer (Sweeney 2002; Machanavajjhala et al. 2007;
Li, Li & Venkatasubramanian 2007). Such records are a group apart: a person whose values no class has is among them, and
learns no less from k, l and t of that group than of a class.

Sensitive values are compared by their meaning: two spellings of a disease are one disease, and a missing value is no
disease.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..data.spelling import spell_as_whole
from .equivalence_classes import ORDERED, SensitiveColumn, class_sizes, equivalence_classes
from .hierarchies import parse_interval

MASKED = re.compile(r"[^*]+\*+")
"""A value whose last characters are suppressed, such as ``81***``."""
NUMERAL = re.compile(r"[+-]?\d+(\.\d+)?")
SUPPRESSED_CELLS = ("", "*")
"""Cells that hold no value. Every other sign or code is a value, since it is seen."""


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A variable that an intruder may know.

    suppressed: records without a value of it
    values: distinct values, as written
    intervals, masked: those of them that are intervals (``[20, 30)``, ``<50``), and those whose end is ``*``
    """

    name: str
    suppressed: int
    values: int
    intervals: int
    masked: int


@dataclass(frozen=True, slots=True)
class Diversity:
    """Values of a sensitive variable in groups of records, in the worst group.

    l_distinct, l_entropy: least distinct values, and least exponential of the entropy, of the records with a value; 0
        where a group has none
    t: largest distance from the values of all records of the table, missing ones as one value
    """

    l_distinct: int
    l_entropy: float
    t: float


@dataclass(frozen=True, slots=True)
class SensitiveVariable:
    """A sensitive variable of the table.

    missing: records without a value of it, of all
    classes: its values in the classes; None without a class
    suppressed: its values in the records whose known cells are all suppressed; None without such records
    """

    name: str
    missing: int
    classes: Diversity | None
    suppressed: Diversity | None

    @property
    def groups(self) -> tuple[Diversity, ...]:
        """Return the diversity of the classes and of the suppressed records, where there are such."""
        return tuple(one for one in (self.classes, self.suppressed) if one is not None)

    @property
    def compared_l(self) -> int:
        """Return the l that is compared with a limit: the least of the classes and of the suppressed records."""
        return min(one.l_distinct for one in self.groups)

    @property
    def compared_t(self) -> float:
        """Return the t that is compared with a limit: the largest of the classes and of the suppressed records."""
        return max(one.t for one in self.groups)


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
    sensitive: tuple[SensitiveVariable, ...]

    @property
    def suppressed_cells(self) -> int:
        """Count the suppressed cells of the known variables."""
        return sum(column.suppressed for column in self.known)

    @property
    def compared_k(self) -> int | None:
        """Return the k that is compared with a limit: the number of suppressed records where these are fewer than k.

        A person whose values no class has is one of them.
        """
        return self.k if self.k is None or not self.suppressed_records else min(self.k, self.suppressed_records)


def measure_released_file(
    known: Mapping[str, pd.Series], data: Microdata, sensitive: Sequence[str]
) -> ReleasedFileAnonymity:
    """Measure the classes of ``known`` columns (n,), whose cells are compared exactly as written.

    Missing values, empty cells and a lone ``*`` are suppressed. ``data`` holds the ``sensitive`` variables of the same n
    records.
    """
    columns = list(known.values())
    suppressed = np.logical_and.reduce([_is_suppressed(column) for column in columns])
    rows = np.flatnonzero(~suppressed)
    classes = equivalence_classes([column.iloc[rows] for column in columns], len(rows))
    sizes = class_sizes(classes)
    found = [_measure_sensitive(data, name, classes, rows, np.flatnonzero(suppressed)) for name in sensitive]
    return ReleasedFileAnonymity(
        len(suppressed),
        int(suppressed.sum()),
        len(sizes),
        int(sizes.min()) if len(sizes) else None,
        int((sizes == 1).sum()),
        tuple(_describe_column(name, column) for name, column in known.items()),
        tuple(found),
    )


def _is_suppressed(column: pd.Series) -> Booleans:
    """Mark the cells (n,) that hold no value."""
    return np.asarray(column.isna() | column.isin(SUPPRESSED_CELLS), dtype=np.bool_)


def _measure_sensitive(
    data: Microdata, name: str, classes: Integers, rows: Integers, suppressed: Integers
) -> SensitiveVariable:
    """Measure a variable in the ``classes`` of the records ``rows``, (m,) both, and in the ``suppressed`` ones, (s,)."""
    variable = _read_sensitive(data, name)
    absent = np.isnan(variable.distinct)[variable.codes]
    return SensitiveVariable(
        name,
        int(absent.sum()),
        _measure_diversity(variable, absent, classes, rows) if len(rows) else None,
        _measure_diversity(variable, absent, np.zeros_like(suppressed), suppressed) if len(suppressed) else None,
    )


def _measure_diversity(variable: SensitiveColumn, absent: Booleans, classes: Integers, rows: Integers) -> Diversity:
    """Measure a variable, ``absent`` in some records (n,), in the ``classes`` of the records ``rows``, (m,) both."""
    composition = variable.class_composition(classes, int(classes.max()) + 1, rows)
    present = ~absent[rows]
    inside, own = np.unique(classes[present], return_inverse=True)
    l_distinct, l_entropy = 0, 0.0
    if len(inside) == len(composition.sizes):
        values = variable.class_composition(own, len(inside), rows[present])
        l_distinct, l_entropy = int(values.distinct_counts().min()), float(values.effective_values().min())
    # The distance is from all records of the file: the suppressed ones still show their sensitive values.
    return Diversity(l_distinct, l_entropy, float(variable.distance_from_table(composition).max()))


def _read_sensitive(data: Microdata, name: str) -> SensitiveColumn:
    """Return the values of a variable: two spellings of a level are one value, and a suppressed one is missing."""
    variable = data.schema[name]
    if not variable.kind.has_levels:
        return SensitiveColumn.from_microdata(data, name)
    column: pd.Series = data.frame[name]
    said = [_fold_spelling(variable.labels.get(str(level), str(level))) for level in column.cat.categories]
    meant = pd.factorize(pd.Series([None if text in SUPPRESSED_CELLS else text for text in said], dtype="object"))[0]
    numbers = np.append(np.where(meant < 0, np.nan, meant), np.nan)
    # Code -1, of a record without a value, selects the NaN at the end.
    return SensitiveColumn.from_values(name, numbers[column.cat.codes.to_numpy()], variable.kind in ORDERED)


def _fold_spelling(text: str) -> str:
    """Return a text without what only its spelling has: letter case, blanks, forms of the same letter, ``.0``."""
    return spell_as_whole(" ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def _describe_column(name: str, column: pd.Series) -> KnownColumn:
    """Count the suppressed cells of a column, and its generalised values."""
    suppressed = _is_suppressed(column)
    values = column[~suppressed].unique()
    texts = [value for value in values if isinstance(value, str)]
    return KnownColumn(name, int(suppressed.sum()), len(values), _count_intervals(texts), _count_masked(texts))


def _count_intervals(texts: Iterable[str]) -> int:
    """Count the labels that are intervals of numbers or of dates."""
    # Most distinct texts of a long column are numbers, which no interval is.
    labels = (text for text in texts if not NUMERAL.fullmatch(text))
    return sum(any(parse_interval(text, kind) for kind in (Kind.CONTINUOUS, Kind.DATE)) for text in labels)


def _count_masked(texts: Iterable[str]) -> int:
    """Count the labels whose last characters are suppressed."""
    return sum(MASKED.fullmatch(text) is not None for text in texts)
