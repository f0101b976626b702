"""Equivalence classes: records that agree on all quasi-identifiers (Sweeney 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["class_sizes", "equivalence_classes", "joint_classes"]

Integers = NDArray[np.int64]
Values = NDArray[Any] | pd.Series


def equivalence_classes(columns: Sequence[Values], records: int) -> Integers:
    """The class of each record (n,), numbered from 0 as they appear; one class where there are no columns.

    A missing value equals another missing value and nothing else.
    """
    group = np.zeros(records, dtype=np.int64)
    for column in columns:
        codes = _codes(column)
        width = int(codes.max(initial=-1)) + 1
        group = pd.factorize(group * width + codes)[0].astype(np.int64)
    return group


def _codes(column: Values) -> Integers:
    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.cat.codes, dtype=np.int64) + 1
    return pd.factorize(np.asarray(column), use_na_sentinel=False)[0].astype(np.int64)


def joint_classes(first: Sequence[Values], second: Sequence[Values]) -> tuple[Integers, Integers]:
    """Classes of two tables' records, (n,) and (m,), equal for records that agree on all columns, of either table."""
    both = [np.concatenate([_plain(a), _plain(b)]) for a, b in zip(first, second, strict=True)]
    records = len(first[0])
    joint = equivalence_classes(both, len(both[0]))
    return joint[:records], joint[records:]


def _plain(column: Values) -> NDArray[Any]:
    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.astype(column.cat.categories.dtype))
    return np.asarray(column)


def class_sizes(classes: Integers) -> Integers:
    """Records in each class, (classes,); those of class -1 are not counted."""
    return np.bincount(classes[classes >= 0]).astype(np.int64)
