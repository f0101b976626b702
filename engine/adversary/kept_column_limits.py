"""Limits on what an intruder learns from the columns that a release keeps. Free of numerical libraries: a screen reads them in a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..statistics.comparing import is_above

if TYPE_CHECKING:
    from ..data.arrays import Integers

CHANCE_OF_SHORT_CLASS = 1e-4
"""Probability with which one class that a plan keeps may be short after a hold-out."""


class HasClassSizes(Protocol):
    """Anything that knows the sizes of its classes of records, such as ``CombinationSizes``."""

    @property
    def class_keys(self) -> Integers:
        """Return the size of each class, (c,)."""


@dataclass(frozen=True)
class KeptColumnLimits:
    """Limits on the combination of kept columns.

    smallest_class: fewest records that share a combination; None for no limit
    average_risk: largest mean of 1 / f; None for no limit
    """

    smallest_class: int | None = None
    average_risk: float | None = None

    def count_unprotected(self, sizes: HasClassSizes) -> int:
        """Count the people whom the limits do not protect: all in too small classes, and in large ones where the average is too high."""
        return self.count_unprotected_in(sizes.class_keys)

    def count_unprotected_in(self, class_sizes: Integers) -> int:
        """Count the people whom the limits do not protect among classes of these sizes (c,)."""
        over = 0 if self.smallest_class is None else int(class_sizes[class_sizes < self.smallest_class].sum())
        # The mean of 1 / f over the records is the number of classes over that of the records.
        if self.average_risk is not None and is_above(
            float(len(class_sizes)), self.average_risk * float(class_sizes.sum())
        ):
            # The average speaks of everybody, but people in large classes are not who raises it.
            over = max(over, int(class_sizes[is_above(1.0 / class_sizes, self.average_risk)].sum()))
        return over

    def limits_before_removal(self, share: float) -> KeptColumnLimits:
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
    """Return the probability that between 1 and ``limit`` - 1 of ``size`` records stay, each with probability ``stays``."""
    from scipy.special import bdtr

    return float(bdtr(limit - 1, size, stays) - bdtr(0, size, stays))
