"""Protected tables of counts that may be published with the datasets of a synthesis step.

A step that declares ``publishable_tables`` derives them from its fit. They contain nothing that its protection has not
changed; a step returns none where its protection does not cover what a table would show.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data.arrays import Floats


@dataclass(frozen=True, eq=False)
class ApprovedTable:
    """Protected table of counts that may be published.

    variables: one for each axis
    categories: texts along each axis
    counts: protected counts, one axis for each variable
    multiple_of: each count was rounded to the nearest multiple of it; cells of 0 are not listed
    noise: standard deviation of the normal noise in each cell, 0 without any
    """

    variables: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    counts: Floats
    multiple_of: int = 0
    noise: float = 0.0

    @property
    def protection(self) -> str:
        """Return how the table was protected, in a few words."""
        if self.noise:
            return f"normal noise, standard deviation {self.noise:.3g}"
        return f"rounded to the nearest multiple of {self.multiple_of}"
