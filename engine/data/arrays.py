"""Names of the arrays that computations take and give, and computing on all cores; docstrings say shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def side_by_side(compute: Callable[[T], R], parts: Iterable[T]) -> list[R]:
    """What ``compute`` makes of each part, in their order, on all cores: NumPy sorts, looks up and adds without Python's lock."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return list(threads.map(compute, parts))
