"""Shares in shades: nine steps from few to many, and four either way for differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .figure import Cells

__all__ = ["SHADES", "SIDES", "Shading", "percent", "shading"]

Floats = NDArray[np.float64]
SHADES, SIDES = 9, 4


@dataclass(frozen=True, eq=False)
class Shading:
    """The upper ends of the steps, rising, of the size of a share: (SHADES,), or (SIDES,) where ``signed``."""

    ends: Floats
    signed: bool

    def of(self, values: Floats) -> NDArray[np.int16]:
        """The step of each share, from 1; 0 where there is none, and below 0 for a difference that is: shape of ``values``."""
        sizes = np.abs(values)
        steps = np.searchsorted(self.ends * (1 - 1e-12), sizes, side="left").clip(0, len(self.ends) - 1) + 1
        found = np.where(sizes > 0, steps, 0) * np.where(values < 0, -1, 1)
        return np.asarray(np.where(np.isfinite(values), found, 0), dtype=np.int16)


def shading(parts: list[Cells], *, log: bool = False) -> Shading:
    """One shading for several panels: steps even in the square root of the share, or in its logarithm if ``log``."""
    signed = any(one.signed for one in parts)
    count = SIDES if signed else SHADES
    sizes = np.concatenate([np.abs(one.shares).ravel() for one in parts]) if parts else np.empty(0)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size:
        return Shading(np.linspace(0, 1, count + 1)[1:], signed)
    steps = np.arange(1, count + 1) / count
    low, high = float(sizes.min()), float(sizes.max())
    ends = low * (high / low) ** steps if log and high > low else high * steps**2
    ends[-1] = high
    return Shading(ends, signed)


def percent(share: float) -> str:
    """``0.35 %``, two digits or all those before the point."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"
