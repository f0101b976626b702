"""How the app's process is given memory: by few stores, so that what one thread lets go the next can have."""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
"""mallopt(3) of the GNU C library: how many stores threads are spread over; by default eight a processor."""
ARENAS = 2


def share_arenas() -> bool:
    """Have all threads share two stores; False where the C library knows no such thing. To be called before threads are started."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS))
    return False
