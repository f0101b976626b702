"""What an attack would have found: the smallest leak that stands out from chance with a given probability.

An attack that finds nothing says little where it asked few people. The smallest detectable excess says what it could have found. Both are for a
two-sided test at ``LEVEL``, or an interval of 1 - ``LEVEL``, that finds the leak with probability ``POWER``.

Shares: by the arcsine of the root, whose variance is 1 / (4 n) whatever the share (Cohen 1988, ch. 6): with c the share that is right of
n_c controls and a that of n_a targets,

    arcsin sqrt(a) - arcsin sqrt(c) = (z_{1 - level/2} + z_power) / 2 * sqrt(1 / n_a + 1 / n_c)

and the excess is (a - c) / (1 - c). c is estimated with 3/8 of a success added (Anscombe 1948), so that it is not 0.

Areas: z times the standard error of the Mann-Whitney statistic without a leak, (n_a + n_c + 1) / (12 n_a n_c), or one that was found by permutation.
"""

from __future__ import annotations

import math

from scipy.stats import norm

LEVEL, POWER = 0.05, 0.8


def deviates(level: float = LEVEL, power: float = POWER) -> float:
    """Standard errors that a leak of this power lies from chance."""
    return float(norm.ppf(1 - level / 2) + norm.ppf(power))


def detectable_share(
    control: float, targets: float, controls: float, level: float = LEVEL, power: float = POWER
) -> float:
    """The share of so many targets that stands out from the share ``control`` of so many controls; at most 1."""
    base = (control * controls + 0.375) / (controls + 0.75)
    reach = math.asin(math.sqrt(base)) + deviates(level, power) / 2 * math.sqrt(1 / targets + 1 / controls)
    return 1.0 if reach >= math.pi / 2 else math.sin(reach) ** 2


def detectable_excess(
    control: float, targets: float, controls: float, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest excess (a - c) / (1 - c) that stands out. ZeroDivisionError where c is 1."""
    base = (control * controls + 0.375) / (controls + 0.75)
    return (detectable_share(control, targets, controls, level, power) - base) / (1 - base)


def excess_from_spread(spread: float, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest excess that stands out where its standard error without a leak is ``spread``; at most 1."""
    return min(1.0, deviates(level, power) * spread)


def area_error(targets: int, controls: int) -> float:
    """The standard error of the area under the ROC curve without a leak and without ties."""
    return math.sqrt((targets + controls + 1) / (12 * targets * controls))


def detectable_area(spread: float, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest area that stands out from 1/2 where its standard error without a leak is ``spread``; at most 1."""
    return min(1.0, 0.5 + deviates(level, power) * spread)


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
