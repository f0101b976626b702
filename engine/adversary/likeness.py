"""How far a release is on the way from an independent sample of the population to a copy of the confidential data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Integers
from ..statistics.score_interval import score_interval


def _nobody() -> Integers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Likeness:
    """A share that a release shows, ``value``, between what an independent sample of the same population would show,
    ``baseline``, and what the confidential data themselves would, ``copy``.

    ``noise`` is twice the standard error of the difference: what is less above the baseline says nothing. ``records`` are
    the confidential records, from 0, that the share is about.
    """

    value: float
    baseline: float
    copy: float = 1.0
    noise: float = 0.0
    records: Integers = field(default_factory=_nobody)

    @property
    def excess(self) -> float:
        """(value - baseline - noise) / (copy - baseline), from 0, an independent sample, to 1, a copy.

        After anonymeter's residual risk (Giomi et al. 2023, §3). 0 where even a copy could not be told from an independent
        sample. A copy is 1 whatever the noise.
        """
        room = self.copy - self.baseline
        if room <= self.noise or self.value <= self.baseline:
            return 0.0
        return float(np.clip((self.value - self.baseline - self.noise) / (room - self.noise), 0.0, 1.0))


def standard_error(share: float, cases: float) -> float:
    """That of a share of ``cases`` independent cases; 0 of none."""
    # a sum of chances that is all of the cases may be above their number by rounding
    return float(np.sqrt(max(0.0, share * (1 - share)) / cases)) if cases else 0.0


def score_margin(value: float, baseline: float, cases: float) -> float:
    """How far below ``value - baseline`` the difference of two shares of ``cases`` each may lie, at two standard errors.

    Newcombe's interval of score limits (1998, method 10): unlike the standard error it is not 0 where all of a few cases, or none of
    them, were seen. Of one case it is above 1, so that one record alone says nothing.
    """
    if not cases:
        return 0.0
    return float(np.hypot(value - score_interval(value, cases, 2)[0], score_interval(baseline, cases, 2)[1] - baseline))
