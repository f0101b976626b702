"""Limits on what an intruder reads from the columns that a release keeps. Free of numerical libraries: a screen reads them in a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..statistics.comparing import is_above

if TYPE_CHECKING:
    from ..data.arrays import Integers

CHANCE_OF_SHORT_CLASS = 1e-4
"""Probability with which one class that a plan keeps may be short after a hold-out."""


class HasClasses(Protocol):
    """Records in classes, such as ``CombinationSizes``."""

    @property
    def classes(self) -> Integers:
        """Return the size of each class, (c,)."""


@dataclass(frozen=True)
class KeptColumnLimits:
    """What the combination of kept columns must satisfy.

    smallest_class: fewest records that share a combination; None for no limit
    average_risk: largest mean of 1 / f; None for no limit
    """

    smallest_class: int | None = None
    average_risk: float | None = None

    def people_over(self, sizes: HasClasses) -> int:
        """Return how many people the limits do not protect: all in too small classes, and in large ones where the average is too high."""
        return self.people_in(sizes.classes)

    def people_in(self, classes: Integers) -> int:
        """Return how many people the limits do not protect among classes of these sizes (c,)."""
        over = 0 if self.smallest_class is None else int(classes[classes < self.smallest_class].sum())
        # The mean of 1 / f over the records is the number of classes over that of the records.
        if self.average_risk is not None and is_above(float(len(classes)), self.average_risk * float(classes.sum())):
            # The average speaks of everybody, but people in large classes are not who raises it.
            over = max(over, int(classes[is_above(1.0 / classes, self.average_risk)].sum()))
        return over

    def before_removal(self, share: float) -> KeptColumnLimits:
        """Return the limits to ask for now, so that these hold when a random ``share`` of the records has been taken away.

        A class of f records keeps a binomial number of them. Asked for is the smallest f from which on this is above 0 and below the
        limit with a probability of at most ``CHANCE_OF_SHORT_CLASS``.
        """
        if not 0 < share < 1:
            return self
        # No class has 1 / f above 1, so that the largest average is no limit.
        average = None if self.average_risk is None else self.average_risk * (1 - share)
        if self.smallest_class is None:
            return KeptColumnLimits(None, average)
        size = self.smallest_class
        while _chance_of_short_class(size, self.smallest_class, 1 - share) > CHANCE_OF_SHORT_CLASS:
            size += 1
        return KeptColumnLimits(size, average)


def _chance_of_short_class(size: int, limit: int, stays: float) -> float:
    """The probability that between 1 and ``limit`` - 1 of ``size`` records stay, each with probability ``stays``."""
    from scipy.special import bdtr

    return float(bdtr(limit - 1, size, stays) - bdtr(0, size, stays))
