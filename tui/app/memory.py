"""Limit the memory of the app's process: with few malloc arenas, memory freed by one thread can be used by the next."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""Option of mallopt(3) in the GNU C library: number of arenas that threads are spread over; by default eight per
processor.
"""
ARENAS = 2


def limit_malloc_arenas() -> bool:
    """Make all threads share two malloc arenas; return False if the C library cannot.

    Call it before threads are started.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS))
    return False
