"""Donors by likeness: for each record one at random of those that are nearest to it by Gower's distance (1971)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_donors"]

Floats = NDArray[np.float64]

CELLS = 1 << 22


def nearest_donors(
    records: Floats, donors: Floats, discrete: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.intp]:
    """The row of ``donors`` (k, P) that each of ``records`` (n, P) gets, (n,); ``discrete`` (P,) marks codes; P >= 0.

    The distance is the number of codes that differ plus the differences of numbers as shares of their range over both
    tables. Of donors that are equally near each is as likely.
    """
    wanted, which = np.unique(records, axis=0, return_inverse=True)
    offered, member = np.unique(donors, axis=0, return_inverse=True)
    nearest = _nearest(wanted, offered, discrete)[which.ravel()]
    order = np.argsort(member.ravel(), kind="stable")
    sizes = np.bincount(member.ravel(), minlength=len(offered))
    start = np.cumsum(sizes) - sizes
    donor: NDArray[np.intp] = order[start[nearest] + rng.integers(sizes[nearest])]
    return donor


def _nearest(wanted: Floats, offered: Floats, discrete: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each of ``wanted`` (u, P) the first nearest row of ``offered`` (v, P)."""
    both = np.concatenate([wanted, offered])
    scale = np.ptp(both, axis=0) if both.shape[1] else np.empty(0)
    scale = np.where(discrete | (scale == 0), 1, scale)
    step = max(1, CELLS // len(offered))
    found = []
    for start in range(0, len(wanted), step):
        block = wanted[start : start + step]
        distance = np.zeros((len(block), len(offered)))
        for column in range(both.shape[1]):
            apart = block[:, column, None] - offered[None, :, column]
            distance += apart != 0 if discrete[column] else np.abs(apart) / scale[column]
        found.append(distance.argmin(axis=1))
    return np.concatenate(found)
