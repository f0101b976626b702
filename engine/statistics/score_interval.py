"""Score interval of a proportion (Wilson 1927), which has a width even where all or none of a few cases were counted."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""Number of standard errors to either side of a 95 % interval."""


def score_interval(share: float, cases: float, z: float = Z_95) -> tuple[float, float]:
    """Return the score interval of a ``share`` of ``cases`` independent cases.

    Its ends are the shares from which it is z of their own standard errors away: Brown, Cai & DasGupta (2001), eq. 4.
    Raises ZeroDivisionError without cases.
    """
    middle, half = share + z * z / (2 * cases), z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    low, high = ((middle + sign * half) / (1 + z * z / cases) for sign in (-1, 1))
    # Rounding may leave the ends a little off.
    return (0.0 if share == 0 else low), (1.0 if share == 1 else high)
