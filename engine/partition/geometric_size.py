"""Geometric sizes of equivalence classes: Measuring Data Quality for Project Lighthouse §3.3.

``classes`` (n,) number the equivalence class of each record, -1 for a suppressed one. A class's relative information loss
RIL is its size as a share of the whole variable's; the losses here are averaged over the records that are not suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .generalised_labels import members
from .hierarchies import Hierarchy

__all__ = ["categorical_loss", "class_ranges", "numerical_loss"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def class_ranges(values: Floats, classes: Integers) -> Floats:
    """Max - min of the values in the class of each record that is not suppressed, in their order, (k,)."""
    kept = classes >= 0
    numbers, values = np.unique(classes[kept], return_inverse=True)[1], values[kept]
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    if not len(starts):
        return np.empty(0)
    ranges = np.maximum.reduceat(values[order], starts) - np.minimum.reduceat(values[order], starts)
    return np.asarray(ranges[numbers], dtype=np.float64)


def numerical_loss(original: Floats, classes: Integers, hidden: Flags | None = None) -> float:
    """Sum over classes of |e| perim(e) / perim(O), divided by |A|: both (n,), at least one record not suppressed.

    perim is max - min of the *original* values; of O over all records, suppressed ones included, as in the paper's
    example. 0 for a constant. Missing values, NaN, are ignored. A ``hidden`` value, (k,) of the records not suppressed, is
    generalised to the root: whatever its class holds, nothing is left of it, as of a category at the root (§3.3.2).
    """
    present = ~np.isnan(original)
    ranges, whole = class_ranges(original[present], classes[present]), float(np.ptp(original[present]))
    if hidden is not None:
        ranges = np.where(hidden[present[classes >= 0]], whole, ranges)
    return float(np.mean(ranges)) / whole if whole and len(ranges) else 0.0


def categorical_loss(
    original: NDArray[np.object_], released: NDArray[np.object_], classes: Integers, tree: Hierarchy
) -> float:
    """The same with the geometric size of the generalised node over that of the root.

    ``original`` (n,) and ``released`` (k,), the latter of the records that are not suppressed, hold labels. A group,
    ``{foo, bar}``, counts as the lowest node over its values, a label that is no node as the root. Where a class shows less than the lowest node over all its original values, such as its
    mode, that node counts. Raises ValueError where an original value is not in the tree.
    """
    labels, place = np.unique(original, return_inverse=True)
    rows, root = tree.codes(list(labels))[place], float(tree.node_sizes[-1].max())
    size = {
        node: float(s)
        for level, sizes in enumerate(tree.node_sizes)
        for node, s in zip(_nodes(tree, level), sizes, strict=True)
    }
    distinct, label = np.unique(released.astype(str), return_inverse=True)
    shown = np.array([size[one] if one in size else _size_over(tree, members(one)) for one in map(str, distinct)])[
        label
    ]
    return float(np.mean(np.maximum(shown, _common_sizes(tree, rows, classes)))) / root


def _size_over(tree: Hierarchy, leaves: Sequence[str]) -> float:
    """Size of the lowest node over all these values; the root's where there are none, or one is not in the tree."""
    rows = [i for i, row in enumerate(tree.rows) if row[0] in leaves]
    if rows and len(rows) == len(set(leaves)):
        for nodes, sizes in zip(tree.nodes, tree.node_sizes, strict=True):
            if len(set(nodes[rows])) == 1:
                return float(sizes[rows[0]])
    return float(tree.node_sizes[-1].max())


def _nodes(tree: Hierarchy, level: int) -> list[str]:
    return [row[level] for row in tree.rows]


def _common_sizes(tree: Hierarchy, rows: Integers, classes: Integers) -> Floats:
    """Size of the lowest node over the leaves (rows of the tree) of the class of each record not suppressed, (k,)."""
    kept = rows[classes >= 0]
    found = tree.node_sizes[-1][kept]
    for nodes, sizes in zip(tree.nodes[-2::-1], tree.node_sizes[-2::-1], strict=True):
        shared = class_ranges(nodes[rows].astype(np.float64), classes) == 0
        found = np.where(shared, sizes[kept], found)
    return np.asarray(found, dtype=np.float64)
