"""Names of the arrays that computations take and give, and looking up many numbers in them; docstrings say shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

FEW = 4096
"""Numbers among which it is quicker to search as they come."""


def sorted_search(
    ascending: NDArray[Any],
    needles: NDArray[Any],
    side: Literal["left", "right"] = "left",
    order: Integers | None = None,
) -> Integers:
    """``np.searchsorted`` with the needles (k,) asked in ascending order, or in an ``order`` (k,) that is nearly so: in a large table that is several times faster."""
    if len(ascending) <= FEW:
        return np.searchsorted(ascending, needles, side)
    order = np.argsort(needles) if order is None else order
    found = np.empty(len(needles), dtype=np.int64)
    found[order] = np.searchsorted(ascending, needles[order], side)
    return found


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different values among some without NaN, ascending; ``np.unique`` hashes them, and takes many times longer for millions."""
    ascending = np.sort(values)
    new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new]


def side_by_side(compute: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """What ``compute`` makes of each part, in their order, on all cores: NumPy sorts, looks up and adds without Python's lock."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return list(threads.map(compute, parts))
