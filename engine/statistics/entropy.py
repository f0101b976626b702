"""Entropy of the values of a variable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["plug_in_entropy"]


def plug_in_entropy(values: NDArray[np.generic]) -> float:
    """H = -sum p log p in nats, p the shares of the distinct values among ``values`` (n,); n >= 1.

    0 for a constant, log n where every value is another: the entropy of the values at hand, not of a density.
    """
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(shares @ np.log(shares))) + 0.0
