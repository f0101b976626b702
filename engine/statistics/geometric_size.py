"""Geometric sizes of equivalence classes: Measuring Data Quality for Project Lighthouse §3.3.

``classes`` (n,) number the equivalence class of each record, -1 for a suppressed one. A class's relative information loss
RIL is its size as a share of the whole variable's; the losses here are averaged over the records that are not suppressed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["categorical_loss", "class_ranges", "numerical_loss"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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


def numerical_loss(original: Floats, classes: Integers) -> float:
    """Sum over classes of |e| perim(e) / perim(O), divided by |A|: both (n,), at least one record not suppressed.

    perim is max - min of the *original* values; of O over all records, suppressed ones included, as in the paper's
    example. 0 for a constant. Missing values, NaN, are ignored.
    """
    present = ~np.isnan(original)
    ranges, whole = class_ranges(original[present], classes[present]), float(np.ptp(original[present]))
    return float(np.mean(ranges)) / whole if whole and len(ranges) else 0.0


def categorical_loss(original: NDArray[np.object_], released: NDArray[np.object_], classes: Integers,
                     sizes: Mapping[str, float]) -> float:  # fmt: skip
    """The same with the geometric size of the generalised node over that of the root.

    ``original`` (n,) and ``released`` (k,), the latter of the records that are not suppressed, hold labels.

    ``sizes`` give the inner nodes' sizes, the largest is the root's; labels that it does not name are leaves if they are
    original values, and else the root. Empty: the flat tree. A class released under one leaf although its records had
    several values (a mode) counts as generalised to the root: nothing smaller is known to cover it.
    """
    root = max(sizes.values(), default=1.0)
    codes = np.unique(original, return_inverse=True)[1].astype(np.float64)
    mixed = class_ranges(codes, classes) > 0
    leaves = set(original)
    size = {label: sizes.get(label, 0.0 if label in leaves else root) for label in set(released)}
    found = np.array([size[label] for label in released])
    return float(np.mean(np.where((found == 0) & mixed, root, found))) / root
