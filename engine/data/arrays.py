"""Types of arrays, whose shapes docstrings state, and a map on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def map_on_threads(compute: Callable[[T], R], parts: Iterable[T], *, threads: int | None = None) -> list[R]:
    """Return ``compute`` of each part, in order, computed on all cores or on as many ``threads``."""
    # Threads suffice: NumPy sorts, looks up and adds without Python's lock. Each knows the settings of the caller.
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return [one.result() for one in [pool.submit(copy_context().run, compute, part) for part in parts]]
