"""Moments and ends of numbers that come in blocks, whatever their scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import reduce
from typing import Self

import numpy as np

from ..data.arrays import Floats
from .columns import column_scales


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """What blocks tell of the numbers of a variable.

    present, missing: numbers of values and of missing ones
    low, high: smallest and largest value
    scale: power of two above the largest absolute value
    scaled_mean: mean of the values divided by the scale
    squares: sum of their squared distances from it
    """

    present: float
    missing: float
    low: float
    high: float
    scale: float
    scaled_mean: float
    squares: float

    @classmethod
    def from_values(cls, values: Floats) -> Self:
        """Look at the values (n,) of a block, NaN where missing."""
        there = values[~np.isnan(values)]
        if not len(there):
            return cls(0.0, float(len(values)), np.inf, -np.inf, 1.0, 0.0, 0.0)
        scale = float(column_scales(there))
        scaled = there / scale
        mean = float(scaled.mean())
        squares = float(np.sum((scaled - mean) ** 2))
        return cls(len(there), len(values) - len(there), there.min(), there.max(), scale, mean, squares)

    @classmethod
    def from_blocks(cls, parts: Sequence[Floats]) -> Self:
        """Return the facts of all blocks, given those of each as numbers (7,), in their order."""
        return reduce(cls.join, (cls(*part.tolist()) for part in parts))

    @property
    def as_array(self) -> Floats:
        """Return the facts as numbers, (7,)."""
        return np.array(astuple(self))

    @property
    def mean(self) -> float:
        return self.scaled_mean * self.scale

    def standard_deviation(self, ddof: int = 0) -> float:
        """Return the standard deviation, with divisor n - ``ddof``."""
        return math.sqrt(self.squares / (self.present - ddof)) * self.scale

    def join(self, other: Self) -> Self:
        """Return the facts of both together (Chan, Golub & LeVeque 1979)."""
        if not (self.present and other.present):
            some = self if self.present else other
            return replace(some, missing=self.missing + other.missing)
        present, scale = self.present + other.present, max(self.scale, other.scale)
        ends = min(self.low, other.low), max(self.high, other.high)
        first, second = (one.scaled_mean * (one.scale / scale) for one in (self, other))
        squares = sum(one.squares * (one.scale / scale) ** 2 for one in (self, other))
        gap, share = second - first, other.present / present
        squares += gap**2 * self.present * share
        return type(self)(present, self.missing + other.missing, *ends, scale, first + gap * share, squares)
