"""Correlation ratio: how much of the variation of a number goes with groups."""

from __future__ import annotations

import math

import numpy as np

from sfumato.engine.data.arrays import Floats


def correlation_ratio(y: Floats, x: Floats, edges: Floats | None = None) -> float:
    """Return the correlation ratio of ``y`` (n,) by groups of ``x`` (n,), corrected for chance; NaN without variation.

    Its square is epsilon squared (Kelley 1935): the share of the variance between groups, without what chance adds. Where
    it is below 0 the ratio is 0. Records in which either is missing do not count.

    edges: bounds of the groups of numbers, ascending; without them ``x`` has the codes of levels
    """
    known = ~(np.isnan(y) | np.isnan(x))
    y, x = y[known], x[known]
    groups = np.unique(x if edges is None else np.searchsorted(edges, x, side="left"), return_inverse=True)[1]
    n, n_groups = y.size, int(groups.max(initial=-1)) + 1
    total = float(((y - y.mean()) ** 2).sum()) if n else 0.0
    if n <= n_groups or total <= 0:
        return math.nan
    means = np.bincount(groups, weights=y) / np.bincount(groups)
    within = float(((y - means[groups]) ** 2).sum())
    return math.sqrt(max(0.0, 1 - within / (n - n_groups) / (total / (n - 1))))
