"""An original table and its anonymised release, record by record, and the information lost between them.

Sizes are those of Measuring Data Quality for Project Lighthouse §3.3. ``classes`` (n,) number the equivalence class of
each record, -1 for a suppressed one. A class's relative information loss RIL is its size as a share of the whole
variable's; the losses here are averaged over the records that are not suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import Values
from ..data.schema import Kind, Role, Schema
from ..errors import NotComputable
from .equivalence_classes import class_extremes, equivalence_classes
from .hierarchies import ROOT, Hierarchy, flat_hierarchy, parse_group

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.BINARY)
CATEGORIES = (Kind.CATEGORICAL, Kind.ORDINAL)
MISSING = "(missing)"
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """An original table and its anonymised release, linked by record.

    original: original table of n records
    released: released table
    rows: original rows of the k released records; the n - k others are suppressed, (k,)
    """

    original: Microdata
    released: Microdata
    rows: NDArray[np.intp]

    @classmethod
    def from_tables(cls, original: Microdata, released: Microdata) -> LinkedTables:
        """Link the records by the classes of an anonymised release, else record by record.

        Raises NotComputable where it is not known which records were released.
        """
        released.require_linked()
        n = len(released) if released.classes is None else len(released.classes)
        if n != len(original) or len(released.linked_records) != len(released):
            reason = f"the release has {len(released):,} of {len(original):,} records and does not say which"
            raise NotComputable(reason)
        return cls(original, released, released.linked_records)

    @property
    def released_share(self) -> float:
        return len(self.rows) / len(self.original)

    def number_pairs(self, name: str) -> tuple[Floats, Floats]:
        """Return the original and released numbers of a variable, both (k,), NaN where missing.

        Raises NotComputable where the release has no numbers of it.
        """
        self._require_released(name)
        if self.released.schema[name].kind.has_levels:
            return self.original.numbers(name)[self.rows], self._released_level_codes(name)
        return self.original.numbers(name)[self.rows], self.released.numbers(name)

    def text_pairs(self, name: str) -> tuple[TextValues, TextValues]:
        """Return the original (n,) and released (k,) values of a variable as text."""
        self._require_released(name)
        return TextValues.from_values(self.original.frame[name]), TextValues.from_values(self.released.frame[name])

    def is_root(self, name: str) -> NDArray[np.bool_]:
        """Return which released values (k,) of a variable are generalised to the root."""
        if name not in self.released.generalised:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(self.released.frame[name].astype("object").eq(ROOT).fillna(value=False), dtype=np.bool_)

    def record_classes(self, names: Sequence[str]) -> Integers:
        """Return the equivalence class of each original record, (n,), -1 where it is suppressed.

        These are the classes that the release has; without them, released records that are alike in ``names``.
        """
        if self.released.classes is not None:
            return self.released.classes
        columns = [self.released.frame[name] for name in names if name in self.released.frame.columns]
        return equivalence_classes(columns, len(self.released))

    def _require_released(self, name: str) -> None:
        """Raise NotComputable if the release lacks the variable or has no records."""
        if name not in self.released.frame.columns:
            raise NotComputable("the release does not have this variable")
        if not len(self.rows):
            raise NotComputable("every record is suppressed")

    def _released_level_codes(self, name: str) -> Floats:
        """Return the released levels of a variable as the original's codes, (k,).

        Raises NotComputable if some are generalised.
        """
        column = self.original.column(name)
        if not self.original.schema[name].kind.has_levels:
            raise NotComputable("the release has intervals of this variable, not numbers")
        labels = self.released.frame[name].astype("object")
        # The release may list its levels in another order, so its own codes would mean other levels.
        codes = column.cat.categories.get_indexer(pd.Index(labels))
        if ((codes < 0) & labels.notna()).any():
            raise NotComputable("the release generalises values of this variable, which are then no numbers")
        return np.where(codes < 0, np.nan, codes.astype(np.float64))


@dataclass(frozen=True, eq=False)
class TextValues:
    """Values of a variable as text, with missing as a value of its own.

    distinct: different values, ascending
    place: place of each record's value among them, (n,)
    """

    distinct: tuple[str, ...]
    place: NDArray[np.intp]

    @classmethod
    def from_values(cls, values: Values) -> TextValues:
        """Build from text, or from a column of any kind."""
        if not isinstance(values, pd.Series):
            distinct, place = np.unique(np.asarray(values).astype(str), return_inverse=True)
            return cls(tuple(map(str, distinct)), place)
        if not isinstance(values.dtype, pd.CategoricalDtype):
            text = values.astype("str").astype("object").where(values.notna(), MISSING)
            return cls.from_values(np.asarray(text, dtype=object))
        codes = values.cat.codes.to_numpy()
        names = [*map(str, values.cat.categories), MISSING]
        found = sorted({names[code] for code in pd.unique(codes)})
        # Levels that no record has must not count among the distinct values.
        at = {name: place for place, name in enumerate(found)}
        return cls(tuple(found), np.array([at.get(name, -1) for name in names], dtype=np.intp)[codes])


def compared_quasi_identifiers(schema: Schema, released: Sequence[str]) -> tuple[str, ...]:
    """Return the quasi-identifiers; without any, the released variables; without those, all but the identifiers."""
    known = tuple(v.name for v in schema if v.role is Role.QUASI_IDENTIFIER)
    return known or tuple(released) or schema.non_identifiers


def class_ranges(values: Floats, classes: Integers) -> Floats:
    """Return the range of the values in the class of each record that is not suppressed, (k,)."""
    kept = classes >= 0
    own = classes[kept]
    low, high = class_extremes(values[kept], own, int(own.max(initial=-1)) + 1)
    return np.asarray((high - low)[own]) if len(own) else np.empty(0)


def numerical_loss(original: Floats, classes: Integers, hidden: Flags | None = None) -> float:
    """Return the mean relative information loss of a numerical variable.

    It is the sum over classes of |e| perim(e) / perim(O), divided by |A|. perim is max - min of the *original* values
    ``original`` (n,), and ``classes`` (n,) has at least one record not suppressed. 0 for a constant. Missing values,
    NaN, are ignored. ``hidden`` (k,) marks records, of those not suppressed, whose value is generalised to the root.
    """
    # perim(O) is over all records, suppressed ones included, as in the paper's example.
    present = ~np.isnan(original)
    ranges, whole = class_ranges(original[present], classes[present]), float(np.ptp(original[present]))
    if hidden is not None:
        # Whatever its class holds, nothing is left of a value that is shown as the root, as of a category there
        # (§3.3.2).
        ranges = np.where(hidden[present[classes >= 0]], whole, ranges)
    return float(np.mean(ranges)) / whole if whole and len(ranges) else 0.0


def categorical_loss(
    original: TextValues, released: TextValues, classes: Integers, tree: Hierarchy | None = None
) -> float:
    """Return the mean relative information loss of a categorical variable.

    It is the mean size of the released node over that of the root. ``original`` (n,) and ``released`` (k,), the latter
    of the records that are not suppressed, hold labels; without a tree their values lie below one root. A group,
    ``{foo, bar}``, counts as the lowest node over its values, a label that is no node as the root. Raises ValueError
    where an original value is not in the tree.
    """
    tree = tree or flat_hierarchy(original.distinct)
    rows, root = tree.rows_of_values(original.distinct)[original.place], float(tree.node_sizes[-1].max())
    size = {
        node: float(s)
        for level, sizes in enumerate(tree.node_sizes)
        for node, s in zip(_labels_at_level(tree, level), sizes, strict=True)
    }
    of_label = [size[one] if one in size else _common_node_size(tree, parse_group(one)) for one in released.distinct]
    shown = np.array(of_label)[released.place]
    # A class that shows less than the lowest node over its original values, such as its mode, has lost that node's size
    # all the same.
    return float(np.mean(np.maximum(shown, _class_node_sizes(tree, rows, classes)))) / root


def _common_node_size(tree: Hierarchy, leaves: Sequence[str]) -> float:
    """Return the size of the lowest node over all these values; the root's if a value is not in the tree."""
    rows = [i for i, row in enumerate(tree.rows) if row[0] in leaves]
    if rows and len(rows) == len(set(leaves)):
        for nodes, sizes in zip(tree.node_numbers, tree.node_sizes, strict=True):
            if len(set(nodes[rows])) == 1:
                return float(sizes[rows[0]])
    return float(tree.node_sizes[-1].max())


def _labels_at_level(tree: Hierarchy, level: int) -> list[str]:
    return [row[level] for row in tree.rows]


def _class_node_sizes(tree: Hierarchy, rows: Integers, classes: Integers) -> Floats:
    """Return the size of the lowest node over the class of each record that is not suppressed, (k,).

    ``rows`` (n,) is the row of the tree of each record's value.
    """
    kept = rows[classes >= 0]
    found = tree.node_sizes[-1][kept]
    for nodes, sizes in zip(tree.node_numbers[-2::-1], tree.node_sizes[-2::-1], strict=True):
        # From the root down: the lowest level at which a class has a single node is written last.
        shared = class_ranges(nodes[rows].astype(np.float64), classes) == 0
        found = np.where(shared, sizes[kept], found)
    return np.asarray(found, dtype=np.float64)
