"""Zero-concentrated differential privacy: costs of noise and choices as rho, and their epsilon at a stated delta.

Costs add up (Bun & Steinke 2016).
"""

from __future__ import annotations

import math
from functools import lru_cache

DEFAULT_DELTA = 1e-9
"""The stated chance of more, where a recipe names none."""


def rho_of_gaussian(sigma: float, sensitivity: float = 1.0) -> float:
    """Return the cost of a table with noise of ``sigma`` in each cell.

    A record changes the table by ``sensitivity`` in Euclidean length.
    """
    # Bun & Steinke 2016, Proposition 1.6.
    return sensitivity**2 / (2 * sigma**2)


def sigma_of_rho(rho: float, sensitivity: float = 1.0) -> float:
    """Return the standard deviation of the noise in each cell that a cost of ``rho`` allows."""
    return sensitivity / math.sqrt(2 * rho)


def rho_of_choice(epsilon: float) -> float:
    """Return the cost of one choice by the exponential mechanism at ``epsilon``."""
    # Cesar & Rogers 2021, Proposition 4: a quarter of what any epsilon-private mechanism costs.
    return epsilon**2 / 8


def epsilon_of_choice(rho: float) -> float:
    """Return the epsilon of the exponential mechanism that a cost of ``rho`` allows."""
    return math.sqrt(8 * rho)


def rho_of_epsilon(epsilon: float) -> float:
    """Return the cost of any ``epsilon``-differentially private mechanism (Bun & Steinke 2016, Proposition 1.4)."""
    return epsilon**2 / 2


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the smallest delta that is proved for a rho at ``epsilon`` (Canonne, Kamath & Steinke 2020, Corollary 13).

    It is the least over orders alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1 /
    alpha)^alpha.
    """
    if rho <= 0:
        return 0.0
    low, high = 1.0 + 1e-10, max((epsilon + 1) / (2 * rho) + 2, 2.0)
    for _ in range(200):
        alpha = (low + high) / 2
        # The derivative of the logarithm has one root, which bisection finds.
        slope = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)
        low, high = (alpha, high) if slope < 0 else (low, alpha)
    # The bound holds for every order, so that an inexact root costs sharpness and no validity.
    alpha = high
    exponent = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    return min(1.0, math.exp(min(exponent, 0.0)))


@lru_cache(maxsize=256)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the smallest epsilon that is proved for a rho at ``delta``."""
    if rho <= 0:
        return 0.0
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of_rho(rho, middle) <= delta else (middle, high)
    # The upper end, whose delta is proved to be at most the stated one.
    return high


@lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose delta at ``epsilon`` is at most this one."""
    low, high = 0.0, epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_rho(middle, epsilon) <= delta else (low, middle)
    # The lower end, whose delta is proved to be at most the stated one.
    return low
