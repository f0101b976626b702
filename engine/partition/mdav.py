"""MDAV: groups of k to 2k - 1 records that lie close together (Domingo-Ferrer & Torra 2005, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["mdav_groups"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def mdav_groups(points: Floats, k: int, report: Callable[[int], None] = lambda grouped: None) -> Integers:
    """The group of each of n >= k points (n, d), from 0. Costs O(n² d / k).

    The point farthest from the mean takes its k - 1 nearest neighbours, then the one farthest from that point takes
    its own, until fewer than 3k are left; the last 2k to 3k - 1 make two groups, fewer one. Of equally near or far
    points the first counts. ``report`` hears how many points are grouped.
    """
    groups = np.full(len(points), -1, dtype=np.int64)
    left = np.arange(len(points))
    found = 0

    def take(start: int) -> None:
        nonlocal left, found
        near = np.argsort(_distances(points[left], points[start]), kind="stable")[:k]
        own = left == start
        if not own[near].any():
            near[-1] = int(np.flatnonzero(own)[0])
        groups[left[near]] = found
        left, found = np.delete(left, near), found + 1

    while len(left) >= 3 * k:
        first = _farthest(points, left, points[left].mean(axis=0))
        take(first)
        take(_farthest(points, left, points[first]))
        report(len(points) - len(left))
    if len(left) >= 2 * k:
        take(_farthest(points, left, points[left].mean(axis=0)))
    groups[left] = found
    return groups


def _distances(points: Floats, centre: Floats) -> Floats:
    difference = points - centre
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _farthest(points: Floats, left: Integers, centre: Floats) -> int:
    return int(left[np.argmax(_distances(points[left], centre))])
