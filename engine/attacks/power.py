"""What an attack would have found: the smallest leak that stands out from chance with a given probability.

An attack that finds nothing says little where it asked few people. The smallest detectable excess says what it could have found. Both are for a
two-sided test at ``LEVEL``, or an interval of 1 - ``LEVEL``, that finds the leak with probability ``POWER``.

Shares: what is right of n_a targets stands out from a share c of n_c controls from that share a' on where the interval of their difference from Wilson's limits
(Newcombe 1998, method 10) lies above 0; the share a that reaches a' with this power lies z_power standard errors above it:

    a' - c = sqrt((a' - lower limit of a')^2 + (upper limit of c - c)^2),    a = a' + z_power sqrt(a' (1 - a') / n_a + c (1 - c) / n_c)

The excess is then (a - c) / (1 - c).

Areas: as many standard errors of the Mann-Whitney statistic without a leak, whose square is (n_a + n_c + 1) / (12 n_a n_c) without ties. Of the best of
several attackers ``calibration`` finds it by its permutations, since a leak that one of them sees may be missed where another is chosen.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import norm

from ..statistics.score_interval import score_interval

LEVEL, POWER = 0.05, 0.8


def deviates(level: float = LEVEL, power: float = POWER) -> float:
    """Standard errors that a leak of this power lies from chance."""
    return float(norm.ppf(1 - level / 2) + norm.ppf(power))


def detectable_share(
    control: float, targets: float, controls: float, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest share of so many targets that stands out from the share ``control`` of so many controls; 1 where none does."""
    z = float(norm.ppf(1 - level / 2))
    above = score_interval(control, controls, z)[1] - control

    def beyond(share: float) -> float:
        return share - control - math.hypot(share - score_interval(share, targets, z)[0], above)

    if beyond(1.0) <= 0:
        return 1.0
    reached = float(brentq(beyond, control, 1.0))
    error = math.sqrt(reached * (1 - reached) / targets + control * (1 - control) / controls)
    return min(1.0, reached + float(norm.ppf(power)) * error)


def detectable_excess(
    control: float, targets: float, controls: float, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest excess (a - c) / (1 - c) that stands out. ZeroDivisionError where c is 1."""
    return (detectable_share(control, targets, controls, level, power) - control) / (1 - control)


def excess_from_spread(spread: float, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest excess that stands out where its standard error without a leak is ``spread``; at most 1."""
    return min(1.0, deviates(level, power) * spread)


def area_error(targets: int, controls: int) -> float:
    """The standard error of the area under the ROC curve without a leak and without ties."""
    return math.sqrt((targets + controls + 1) / (12 * targets * controls))


def controls_needed(excess: float, control: float, targets: int, level: float = LEVEL, power: float = POWER) -> float:
    """The fewest controls with which an excess stands out of so many targets; infinite where no number is enough."""
    if detectable_excess(control, targets, 1e12, level, power) > excess:
        return math.inf
    low, high = 1.0, 2.0
    while detectable_excess(control, targets, high, level, power) > excess:
        low, high = high, 2 * high
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if detectable_excess(control, targets, middle, level, power) <= excess else (middle, high)
        )
    return math.ceil(high)
