"""Zero-concentrated differential privacy: what noise and choices cost as rho, and the epsilon that a rho is at a stated delta.

Gaussian noise of sigma in every cell of a table costs 1 / (2 sigma^2) where a record more or less changes one cell by 1 (Bun & Steinke
2016,
Proposition 1.6); a choice by the exponential mechanism at epsilon costs epsilon^2 / 8 (Cesar & Rogers 2021, Proposition 4), and
anything that is
epsilon-differentially private costs epsilon^2 / 2. Costs add up.
"""

from __future__ import annotations

import math
from functools import lru_cache

DEFAULT_DELTA = 1e-9
"""The stated chance of more, where a recipe names none."""


def rho_of_gaussian(sigma: float, sensitivity: float = 1.0) -> float:
    """Return the cost of a table with noise of ``sigma`` in each cell, which a record changes by ``sensitivity`` in Euclidean length."""
    return sensitivity**2 / (2 * sigma**2)


def sigma_of_rho(rho: float, sensitivity: float = 1.0) -> float:
    """Return the noise that a cost of ``rho`` buys."""
    return sensitivity / math.sqrt(2 * rho)


def rho_of_choice(epsilon: float) -> float:
    """Return the cost of one choice by the exponential mechanism at ``epsilon``."""
    return epsilon**2 / 8


def epsilon_of_choice(rho: float) -> float:
    """Return the epsilon of the exponential mechanism that a cost of ``rho`` buys."""
    return math.sqrt(8 * rho)


def rho_of_epsilon(epsilon: float) -> float:
    """Return the cost of whatever is ``epsilon``-differentially private (Bun & Steinke 2016, Proposition 1.4)."""
    return epsilon**2 / 2


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the smallest delta that is proved for a rho at ``epsilon`` (Canonne, Kamath & Steinke 2020, Corollary 13).

    The least over orders alpha > 1 of exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha)^alpha: its derivative has one
    root, which bisection finds.
    """
    if rho <= 0:
        return 0.0
    low, high = 1.0 + 1e-10, max((epsilon + 1) / (2 * rho) + 2, 2.0)
    for _ in range(200):
        alpha = (low + high) / 2
        slope = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)
        low, high = (alpha, high) if slope < 0 else (low, alpha)
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
    return high


@lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose epsilon at ``delta`` is this one."""
    low, high = 0.0, epsilon + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_rho(middle, epsilon) <= delta else (low, middle)
    return low
