"""Comparisons of computed numbers with limits that tolerate rounding. Free of numerical libraries.

Two ways to compute a quotient of counts may differ in the last digits. A difference that is smaller than rounding can
make does not count: a value that equals its limit is neither above nor below it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from ..data.arrays import Booleans, Floats

ROUNDING_SHARE = 1e-12
"""Differences that rounding may make, as a share of the limit, and at least of 1: far below one in 10^10 records."""


def _rounding_slack(limit: float) -> float:
    """Return the largest difference from a limit that counts as rounding."""
    return ROUNDING_SHARE * max(1.0, abs(limit)) if math.isfinite(limit) else 0.0


@overload
def is_above(value: float, limit: float) -> bool: ...
@overload
def is_above(value: Floats, limit: float) -> Booleans: ...
def is_above(value: Floats | float, limit: float) -> Booleans | bool:
    """Return whether numbers are above a limit by more than rounding; False for NaN."""
    return value > limit + _rounding_slack(limit)


@overload
def is_below(value: float, limit: float) -> bool: ...
@overload
def is_below(value: Floats, limit: float) -> Booleans: ...
def is_below(value: Floats | float, limit: float) -> Booleans | bool:
    """Return whether numbers are below a limit by more than rounding; False for NaN."""
    return value < limit - _rounding_slack(limit)


def distance_from_limit(value: float, limit: float) -> float:
    """Return the value less the limit, exactly 0 where the two differ by rounding alone."""
    return value - limit if is_above(value, limit) or is_below(value, limit) else 0.0
