"""Limits on the disclosure risk of kept columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..statistics.comparing import is_above

if TYPE_CHECKING:
    from ..data.arrays import Integers

CHANCE_OF_SHORT_CLASS = 1e-4
"""Largest probability that a hold-out makes one class too small."""


class HasClassSizes(Protocol):
    """Object that knows the sizes of its equivalence classes, such as ``CombinationSizes``."""

    @property
    def classes_by_size(self) -> tuple[Integers, Integers]:
        """Return the different sizes of its classes, and the number of classes of each, (s,)."""


@dataclass(frozen=True)
class KeptColumnLimits:
    """Limits on the combination of kept columns.

    smallest_class: smallest allowed class; None for no limit
    average_risk: largest allowed mean of 1 / f; None for no limit
    """

    smallest_class: int | None = None
    average_risk: float | None = None

    def count_unprotected(self, sizes: HasClassSizes) -> int:
        """Count the people who violate the limits.

        These are people in too small classes, or in small ones if the average is too high.
        """
        return self.count_unprotected_in(*sizes.classes_by_size)

    def count_unprotected_in(self, class_sizes: Integers, classes: Integers | None = None) -> int:
        """Count the people who violate the limits, given class sizes (c,), and how many ``classes`` have each, by default
        one.
        """
        people = class_sizes if classes is None else class_sizes * classes
        n_classes = len(class_sizes) if classes is None else int(classes.sum())
        over = 0 if self.smallest_class is None else int(people[class_sizes < self.smallest_class].sum())
        # The mean of 1 / f over the records is the number of classes over that of the records.
        if self.average_risk is not None and is_above(float(n_classes), self.average_risk * float(people.sum())):
            # The average speaks of everybody, but people in large classes are not who raises it.
            over = max(over, int(people[is_above(1.0 / class_sizes, self.average_risk)].sum()))
        return over

    def count_unprotected_records(self, group_sizes: Integers) -> int:
        """Count the people who violate the limits, given how many records each record's group has (n,), at least 1."""
        over = 0 if self.smallest_class is None else int((group_sizes < self.smallest_class).sum())
        shares = 1.0 / group_sizes
        if self.average_risk is not None and is_above(float(shares.sum()), self.average_risk * len(group_sizes)):
            over = max(over, int(is_above(shares, self.average_risk).sum()))
        return over

    def limits_before_removal(self, share: float) -> KeptColumnLimits:
        """Return stricter limits, so that these hold after a random ``share`` of the records is removed."""
        if not 0 < share < 1:
            return self
        # No class has 1 / f above 1, so that the largest average is no limit.
        average = None if self.average_risk is None else self.average_risk * (1 - share)
        if self.smallest_class is None:
            return KeptColumnLimits(None, average)
        size = self.smallest_class
        # A class of f records keeps a binomial number of them. It may disappear, but hardly become short.
        while _chance_of_short_class(size, self.smallest_class, 1 - share) > CHANCE_OF_SHORT_CLASS:
            size += 1
        return KeptColumnLimits(size, average)


def _chance_of_short_class(size: int, limit: int, stays: float) -> float:
    """Return the probability that a class of ``size`` keeps some records, but fewer than ``limit``.

    Each record stays with probability ``stays``.
    """
    from scipy.special import bdtr

    return float(bdtr(limit - 1, size, stays) - bdtr(0, size, stays))
