"""Tables of counts that a synthesis step was protected by, and that may be published beside its datasets: what was kept, and with what noise.

A step that declares ``approved`` gives them from its fit. They hold nothing that its protection has not changed; a step gives none where that protection
does not cover what a table would show.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data.arrays import Floats


@dataclass(frozen=True, eq=False)
class ApprovedTable:
    """Counts of the records by some variables, an axis each.

    ``categories`` are the texts along each axis. ``multiple_of``: each count was rounded to the nearest multiple of it; cells of 0 are not listed. ``noise``:
    the standard deviation of the normal noise in each cell, 0 without any.
    """

    variables: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    counts: Floats
    multiple_of: int = 0
    noise: float = 0.0

    @property
    def protection(self) -> str:
        """How it was protected, in a few words."""
        if self.noise:
            return f"normal noise, standard deviation {self.noise:.3g}"
        return f"rounded to the nearest multiple of {self.multiple_of}"
