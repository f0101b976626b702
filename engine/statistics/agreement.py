"""Whether tests on an anonymised table say what they say on the original one (Lighthouse data quality §4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .significance import Difference

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many tests there were, and how many went wrong in each way.

    ``lost``: significant on the original only (the paper prints it as Type I); ``spurious``: on the anonymised only
    (Type II); ``sign_flip``: on both, in opposite directions.
    """

    tests: int = 0
    lost: int = 0
    spurious: int = 0
    sign_flip: int = 0

    @property
    def errors(self) -> int:
        """Tests that went wrong."""
        return self.lost + self.spurious + self.sign_flip

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.tests + other.tests,
            self.lost + other.lost,
            self.spurious + other.spurious,
            self.sign_flip + other.sign_flip,
        )


def agreement(pairs: Iterable[tuple[Difference, Difference]], alpha: float) -> Agreement:
    """The agreement of tests at level ``alpha``, each given on the original and on the anonymised table."""
    total = Agreement()
    for original, anonymised in pairs:
        was, now = original.p < alpha, anonymised.p < alpha
        flipped = was and now and original.sign * anonymised.sign < 0
        total += Agreement(1, int(was and not now), int(now and not was), int(flipped))
    return total
