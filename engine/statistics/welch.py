"""Welch's interval for the difference of two means.

It is that of ``scipy.stats.ttest_ind`` (a test holds that) in the special functions alone: importing scipy.stats takes half
a second, in which Compare would stand empty, and it warns of, or has no interval for, datasets whose values are all alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit


def welch_half_width(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> float | None:
    """Half the width of Welch's t interval for the difference of the means of two samples (Welch 1947, Biometrika 34).

    The degrees of freedom are Satterthwaite's. Samples whose values are all alike have no spread: 0.

    Returns:
        None when a sample has fewer than two values.
    """
    if len(first) < 2 or len(second) < 2:
        return None
    shares = np.array([_variance(sample) / len(sample) for sample in (first, second)])
    total = float(shares.sum())
    if total == 0:
        return 0.0
    weights = shares / total
    freedom = 1 / float(np.sum(weights**2 / [len(first) - 1, len(second) - 1]))
    return float(stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(total))


def _variance(sample: Sequence[float]) -> float:
    """Unbiased variance, exactly 0 for equal values, where subtracting a rounded mean would leave a trace."""
    return 0.0 if min(sample) == max(sample) else float(np.var(sample, ddof=1))
