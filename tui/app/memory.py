"""The memory of the app's process: few malloc arenas, so that memory freed by one thread can be used by the next."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""mallopt(3) of the GNU C library: how many stores threads are spread over; by default eight a processor."""
ARENAS = 2


def limit_malloc_arenas() -> bool:
    """Make all threads share two malloc arenas; return False where the C library cannot. To be called before threads are started."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS))
    return False
