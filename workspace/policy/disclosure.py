"""Rules of a policy for what may be shown outside, and the names of what is internal and public.

All that a command, a screen or a release writes is internal, as confidential as the data, or public. A public number is
a function of the released files alone, or of counts that were protected by these rules, or it has noise that the
privacy account pays for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.methods.rows import Row

if TYPE_CHECKING:
    from sfumato.engine.data.arrays import Floats

INTERNAL = "INTERNAL: as confidential as the data"
"""What every internal page and file says of itself, and its name where it has no room."""
MARKING = f"{INTERNAL}. It does not leave the building."
"""The same at the head of a page."""
INFORMATION_LOSS = ("utility", "quality")
"""The families whose measures may be public: risks and studies of risk stay inside, whatever a method declares."""
FEWEST_INDISTINGUISHABLE_COUNTS = 3
"""Smallest number of true counts behind a protected one, whatever base and smallest cell a policy names."""


@dataclass(frozen=True, slots=True)
class DisclosureRules:
    """Rules for numbers that are published. Its fields are keys of JSON.

    smallest_cell: fewest records that a count rests on
    rounding: base to which counts are rounded
    digits: significant digits of other numbers
    """

    smallest_cell: int = 10
    rounding: int = 5
    digits: int = 3

    @property
    def base(self) -> int:
        """Return the base to which counts of confidential records are rounded."""
        # A policy may name a base of 1, by which every count would be exact.
        return max(self.rounding, FEWEST_INDISTINGUISHABLE_COUNTS)

    @property
    def fewest_records(self) -> int:
        """Return the fewest records that anything shown of the confidential records may rest on."""
        # A policy may name 1 or 2, by which a single record would show.
        return max(self.smallest_cell, FEWEST_INDISTINGUISHABLE_COUNTS)

    def round_number(self, value: float) -> float:
        """Round a number to the significant digits of the policy."""
        return float(f"{value:.{self.digits - 1}e}") if math.isfinite(value) else value

    def round_count(self, records: float) -> float:
        """Round a number of records to the nearest multiple of the base, whether or not the count may be shown."""
        return math.floor(records / self.base + 0.5) * float(self.base)

    def bound_count_above(self, records: int) -> int:
        """Return a number that a count of records does not exceed, the same for at least ``fewest_records`` counts.

        0 and other small counts have one bound. It follows from this count alone: who knows exact counts of other
        records is left with as many.
        """
        few, step = self.fewest_records + self.base, max(self.fewest_records, self.base)
        return few + step * max(0, math.ceil((records - few) / step))

    def bound_count_below(self, records: int) -> int:
        """Return a number that a count of records is not less than, the same for at least ``fewest_records`` counts."""
        step = max(self.fewest_records, self.base)
        return records // step * step

    def protect_counts(self, counts: Floats) -> Floats | None:
        """Return counts of the cells of a table, (k,), protected by rounding; None where the table has too few records.

        Cumulative counts are rounded, and the cells are the differences between them. Cumulative counts near 0 and near
        the total are replaced by one value, half the smallest cell from the end: there, counts of fewer records than
        the smallest cell are merged with larger ones.
        """
        import numpy as np

        cell = self.fewest_records
        total = self.round_count(float(counts.sum()))
        few = cell + self.base  # whole steps of rounding, so that no step is cut where the counts of few records end
        if total < 2 * few + self.base:
            return None
        # Cells that were rounded one by one would have sums: who knows the total and that 48 + 53 = 101 became 50 and
        # 55 has both counts. Of cumulative counts each can be any count that is rounded alike.
        below = np.floor(np.cumsum(counts)[:-1] / self.base + 0.5) * self.base
        below = np.where(below < few, cell / 2, below)
        below = np.where(below > total - few, total - cell / 2, below)
        return np.diff(below, prepend=0.0, append=total)

    def is_protected(self, counts: Floats) -> bool:
        """Return whether counts (k,) can be a result of ``protect_counts``: every cumulative count is one of its steps.

        .
        """
        import numpy as np

        cell = self.fewest_records
        few, total, below = cell + self.base, float(counts.sum()), np.cumsum(counts)[:-1]
        steps = (below % self.base == 0) & (below >= few) & (below <= total - few)
        return total % self.base == 0 and bool(np.all(steps | (below == cell / 2) | (below == total - cell / 2)))


@dataclass(frozen=True, eq=False, slots=True)
class PublicFigure:
    """Figure of utility that may be released, with the protected numbers that it follows from.

    row: the row, as written
    counts: protected counts (k,) of the confidential table, one array for each dataset; none where noise protects the figure
    released: counts (k,) of the same cells in each dataset
    noisy: the gap and the number of all records, in records with noise; None where rounding protects the figure
    epsilon: what both numbers with noise cost; the number of all records is paid for by the first figure alone
    """

    row: Row
    counts: tuple[Floats, ...] = ()
    released: tuple[Floats, ...] = ()
    noisy: tuple[int, int] | None = None
    epsilon: float = 0.0


def noisy_share(noisy: tuple[int, int]) -> float:
    """Return a noisy gap as a share of the noisy number of records, clipped to [0, 1]."""
    gap, records = noisy
    return min(max(gap / max(records, 1), 0.0), 1.0)
