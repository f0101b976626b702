"""Pareto efficiency: which alternatives no other one dominates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_non_dominated(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the Pareto efficient alternatives, (n,), among rows of ``costs`` (n, k), where lower is better in every
    column.

    One alternative dominates another when it is at least as good in every column and better in one (Miettinen,
    Nonlinear Multiobjective Optimization, 1999, Definition 2.2.1). Equal rows do not dominate each other. A row with a
    missing value neither dominates nor is marked.
    """
    known = ~np.isnan(costs).any(axis=1)
    at_least = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    better = (costs[:, None, :] < costs[None, :, :]).any(axis=2)
    dominated = np.asarray((at_least & better).any(axis=0))
    return np.asarray(known & ~dominated)
