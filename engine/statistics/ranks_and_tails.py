"""Ranks and exact tail probabilities, as ``scipy.stats`` computes them bit for bit, without loading it.

Loading ``scipy.stats`` takes half a second, which is a third of what the gate takes of a small table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.arrays import Floats


def average_ranks(values: NDArray[Any]) -> Floats:
    """Return the ranks from 1 of some values (n,), or of each column of (n, k); equal values have their average.

    Ranks of a column with NaN are all NaN.
    """
    rows = np.ascontiguousarray(values.T)
    order = np.argsort(rows, axis=-1, kind="stable")
    in_order = np.take_along_axis(rows, order, axis=-1)
    is_first = np.ones(in_order.shape, dtype=np.bool_)
    is_first[..., 1:] = in_order[..., 1:] != in_order[..., :-1]
    starts = np.flatnonzero(is_first)
    counts = np.diff(starts, append=in_order.size)
    first = starts % max(1, in_order.shape[-1]) + 1.0
    ranks = np.empty(in_order.shape)
    np.put_along_axis(ranks, order, np.repeat(first + (counts - 1) / 2, counts).reshape(in_order.shape), axis=-1)
    if rows.dtype.kind == "f":
        ranks[np.isnan(rows).any(axis=-1)] = np.nan
    return ranks.T


def binomial_tail(count: ArrayLike, tosses: ArrayLike, chance: float) -> Floats:
    """Return the probability of more than ``count`` successes in so many tosses; the arguments are broadcast."""
    from scipy.special._ufuncs import _binom_sf

    k, n = (np.asarray(one, dtype=np.float64) for one in (count, tosses))
    with np.errstate(invalid="ignore"):
        inside = np.clip(_binom_sf(np.clip(k, 0, n), n, chance), 0.0, 1.0)
    return np.asarray(np.where(k < 0, 1.0, np.where(k >= n, 0.0, inside)))


def hypergeometric_tail(count: int, records: int, marked: int, drawn: int) -> float:
    """Return the probability that more than ``count`` of the ``marked`` records are among the ``drawn``."""
    from scipy.special._ufuncs import _hypergeom_sf

    if count < max(drawn - (records - marked), 0):
        return 1.0
    if count >= min(marked, drawn):
        return 0.0
    return float(np.clip(_hypergeom_sf(float(count), float(marked), float(drawn), float(records)), 0.0, 1.0))
