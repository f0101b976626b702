"""Keys of 64 bits: their type, that of a missing value, and the mixing of their bits (splitmix64, Steele, Lea & Flood 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

MISSING_KEY = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(keys: Keys) -> Keys:
    """Return 64-bit numbers (n,) mixed so that each bit affects half of the others (finaliser of splitmix64)."""
    found = keys >> np.uint64(30)
    found ^= keys
    found *= np.uint64(0xBF58476D1CE4E5B9)
    shifted = found >> np.uint64(27)
    found ^= shifted
    found *= np.uint64(0x94D049BB133111EB)
    found ^= np.right_shift(found, np.uint64(31), out=shifted)
    return found
