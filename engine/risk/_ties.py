"""Ties among guesses: probability of a right random choice, and number of guesses as likely as the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats

LOG_TOLERANCE = 1e-7
"""Difference of log probabilities that rounding can cause; smaller ones are ties."""


def chance_of_truth(logs: Floats, truth: NDArray[np.intp]) -> Floats:
    """Return the probability that the most likely guess is the truth, (t, k): 1 / q if the truth is one of q ties.

    ``logs`` are the guesses' log probabilities, (t, g, k), ``truth`` the position of the truth among them, (t,).
    """
    most = logs >= logs.max(axis=1, keepdims=True) - LOG_TOLERANCE
    own = np.take_along_axis(most, truth[:, None, None], 1)[:, 0]
    return np.asarray(own / most.sum(axis=1))


def count_guesses_as_likely(logs: Floats, truth: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count the guesses that are at least as likely as the truth, including it, (t, k).

    ``logs`` are log probabilities, (t, g, k), ``truth`` the position of the truth, (t,).
    """
    own = np.take_along_axis(logs, truth[:, None, None], 1)
    return np.asarray((logs >= own - LOG_TOLERANCE).sum(axis=1))
