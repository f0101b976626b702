"""Power of an attack: the smallest leak that it detects with a given probability.

The smallest detectable excess is the leak that a two-sided test at ``POWER_LEVEL`` detects with probability ``POWER``.

Shares: a' is the smallest success rate of n_a targets that differs significantly from the rate c of n_c controls, where
    the interval of
the difference (Newcombe 1998, method 10) begins at 0. The rate a with the required power is z_power standard errors
larger:

    a' - c = sqrt((a' - lower limit of a')^2 + (upper limit of c - c)^2)
    a = a' + z_power sqrt(a' (1 - a') / n_a + c (1 - c) / n_c)

and the excess is (a - c) / (1 - c).

AUC: the same number of standard errors of the Mann-Whitney statistic without a leak, whose square is (n_a + n_c + 1) /
    (12 n_a n_c)
without ties. For the best of several attackers ``calibration`` computes it from its permutations.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from ..statistics.score_interval import score_interval

POWER_LEVEL, POWER = 0.05, 0.8
FAMILY_AREA_FACTOR = 1.65
"""Ratio of the detectable excess AUC of the best of a family to that of one attacker: 1.49 to 1.63 for 12 to 30
simulated ones (``tests/engine/adversary/test_calibration.py``)."""


def detectable_standard_errors(level: float = POWER_LEVEL, power: float = POWER) -> float:
    """Return the number of standard errors that a leak must have to be detected with this power."""
    return float(ndtri(1 - level / 2) + ndtri(power))


def detectable_share(
    control: float, targets: float, controls: float, level: float = POWER_LEVEL, power: float = POWER
) -> float:
    """Return the smallest success rate of ``targets`` people that differs from the rate ``control``; 1 if none does."""
    from scipy.optimize import brentq

    z = float(ndtri(1 - level / 2))
    above = score_interval(control, controls, z)[1] - control

    def excess_over_limit(share: float) -> float:
        """Return the difference from the control's rate less its limit; 0 where it becomes significant."""
        return share - control - math.hypot(share - score_interval(share, targets, z)[0], above)

    if excess_over_limit(1.0) <= 0:
        return 1.0
    reached = float(brentq(excess_over_limit, control, 1.0))
    error = math.sqrt(reached * (1 - reached) / targets + control * (1 - control) / controls)
    return min(1.0, reached + float(ndtri(power)) * error)


def detectable_excess(
    control: float, targets: float, controls: float, level: float = POWER_LEVEL, power: float = POWER
) -> float:
    """Return the smallest detectable excess (a - c) / (1 - c). Raises ZeroDivisionError if c is 1."""
    return (detectable_share(control, targets, controls, level, power) - control) / (1 - control)


def detectable_excess_from_error(null_error: float, level: float = POWER_LEVEL, power: float = POWER) -> float:
    """Return the smallest detectable excess from its standard error without a leak, at most 1."""
    return min(1.0, detectable_standard_errors(level, power) * null_error)


def null_area_error(targets: int, controls: int) -> float:
    """Return the standard error of the AUC without a leak and without ties."""
    return math.sqrt((targets + controls + 1) / (12 * targets * controls))


def detectable_family_area(targets: int, controls: int) -> float:
    """Return the approximate smallest AUC that the best of a family of attackers detects, at most 1."""
    return min(1.0, 0.5 + FAMILY_AREA_FACTOR * detectable_standard_errors() * null_area_error(targets, controls))


def controls_needed(
    excess: float, control: float, targets: int, level: float = POWER_LEVEL, power: float = POWER
) -> float:
    """Return the fewest controls with which ``targets`` people detect an excess; infinite if none."""
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
