"""Types of arrays, whose shapes docstrings state, and work on threads, in which NumPy and Arrow do without Python's lock."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
BLOCK_THREADS = min(2, os.cpu_count() or 1)
"""Threads that compute blocks of a long table: more are faster, and each needs memory for a block."""


def map_on_threads(compute: Callable[[T], R], parts: Iterable[T], *, threads: int | None = None) -> list[R]:
    """Return ``compute`` of each part, in order, computed on all cores or on as many ``threads``."""
    # Threads suffice: NumPy sorts, looks up and adds without Python's lock. Each knows the settings of the caller.
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return [one.result() for one in [pool.submit(copy_context().run, compute, part) for part in parts]]


def map_ahead(compute: Callable[[T], R], parts: Iterable[T], threads: int) -> Generator[R]:
    """Yield ``compute`` of each part, in order; ``threads`` work on the next ones meanwhile, one part each."""
    with ThreadPoolExecutor(threads) as pool:
        ahead = deque[Future[R]]()
        try:
            for part in parts:
                ahead.append(pool.submit(copy_context().run, compute, part))
                if len(ahead) == threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for one in ahead:
                one.cancel()


def iterate_ahead(things: Iterable[T]) -> Iterator[T]:
    """Yield some things, each of which is computed on a thread while the one before is used."""
    source = iter(things)

    def take_next() -> list[T]:
        return list(itertools.islice(source, 1))

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(copy_context().run, take_next)
        while found := following.result():
            following = pool.submit(copy_context().run, take_next)
            yield found[0]
