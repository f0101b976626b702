"""Combining what was computed on m released datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

__all__ = ["monte_carlo_mean"]


def monte_carlo_mean(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float | None, float | None]:
    """Mean of m values and its t interval with m - 1 degrees of freedom; no interval for a single value.

    The interval speaks of the simulation: how far the average over m datasets may lie from the average over all the
    datasets that the same models could have drawn.
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, None
    half = stdtrit(len(values) - 1, (1 + confidence) / 2) * np.std(values, ddof=1) / np.sqrt(len(values))
    return mean, float(mean - half), float(mean + half)
