"""Medians of segments: where each of many groups of records is cut in two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Segments", "median_cuts"]

Integers = NDArray[np.int64]
Codes = NDArray[np.int32]

DENSE = 4


@dataclass(frozen=True, eq=False)
class Segments:
    """Some of the segments of an array: the places of their ``members`` (a,), the ``segment`` of each, and their ``sizes``."""

    members: Integers
    segment: Integers
    sizes: Integers

    @classmethod
    def of(cls, sizes: Integers, chosen: Integers) -> Segments:
        """The chosen ones of segments that lie side by side with these sizes; numbered from 0 as they are chosen."""
        starts = np.cumsum(sizes) - sizes
        own = sizes[chosen]
        segment = np.repeat(np.arange(len(chosen)), own)
        offset = starts[chosen] - (np.cumsum(own) - own)
        return cls(np.arange(len(segment)) + offset[segment], segment, own)


def median_cuts(
    codes: Codes, segments: Segments, low: Codes, high: Codes, relaxed: bool
) -> tuple[NDArray[np.bool_], Integers]:
    """Which members lie right of their segment's cut, (a,), and how many lie left of it, (s,).

    The median is the value of rank ceil(size / 2). A strict cut lies below or above it, whichever parts the segment more
    evenly, above it if both do. A relaxed cut leaves ceil(size / 2) members on the left, those of the median value in order.

    ``codes`` (a,) are those of the members, ``low`` and ``high`` (s,) the smallest and largest of each segment.
    """
    median, below, up_to = _medians(codes, segments, low, high)
    mine = median[segments.segment]
    if not relaxed:
        above = np.abs(2 * up_to - segments.sizes) <= np.abs(2 * below - segments.sizes)
        return codes >= (median + above)[segments.segment], np.where(above, up_to, below)
    left = (segments.sizes + 1) // 2
    tied = codes == mine
    running = np.cumsum(tied)
    starts = np.cumsum(segments.sizes) - segments.sizes
    opening = running[starts] - tied[starts]
    rank = running - opening[segments.segment]
    return (codes > mine) | (tied & (rank > (left - below)[segments.segment])), left


def _medians(codes: Codes, segments: Segments, low: Codes, high: Codes) -> tuple[Integers, Integers, Integers]:
    """Median code of each segment, and its members below it and up to it, (s,) each. By counting, else by sorting."""
    starts = np.cumsum(segments.sizes) - segments.sizes
    middle = starts + (segments.sizes - 1) // 2
    spans = (high - low + 1).astype(np.int64)
    total = int(spans.sum())
    if total <= DENSE * len(codes):
        offset = np.cumsum(spans) - spans - low
        running = np.cumsum(np.bincount(codes + offset[segments.segment], minlength=total))
        entry = np.searchsorted(running, middle, side="right")
        before = np.where(entry > 0, running[entry - 1], 0)
        return entry - offset, np.maximum(before - starts, 0), running[entry] - starts
    width = int(high.max()) + 1
    keys = np.sort(codes + segments.segment * width)
    key = keys[middle]
    median = key - np.arange(len(key)) * width
    return median, np.searchsorted(keys, key, "left") - starts, np.searchsorted(keys, key, "right") - starts
