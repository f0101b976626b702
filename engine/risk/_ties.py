"""Guesses that are as likely as one another: which of them an intruder takes, and how many there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats

SAME = 1e-7
"""Two logarithms of probabilities that differ by less are the same: what rounding leaves."""


def share_right(logs: Floats, truth: NDArray[np.intp]) -> Floats:
    """1 / q where the truth is one of the q most likely guesses, (t, k) of logarithms (t, g, k)."""
    most = logs >= logs.max(axis=1, keepdims=True) - SAME
    own = np.take_along_axis(most, truth[:, None, None], 1)[:, 0]
    return np.asarray(own / most.sum(axis=1))


def as_likely(logs: Floats, truth: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many guesses are at least as likely as the truth, itself among them, (t, k) of logarithms (t, g, k)."""
    own = np.take_along_axis(logs, truth[:, None, None], 1)
    return np.asarray((logs >= own - SAME).sum(axis=1))
