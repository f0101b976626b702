"""Position of a release between an independent sample of the population and a copy of the confidential data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Integers
from ..statistics.score_interval import score_interval


def _no_records() -> Integers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MemorisationShare:
    """A share that a release shows, compared with an independent sample of the population and with a copy of the data.

    value: share that the release shows
    baseline: share that an independent sample of the same population would show
    copy_value: share that the confidential data themselves would show
    noise: twice the standard error of the difference; a smaller excess over the baseline says nothing
    records: the confidential records, from 0, that the share is about
    """

    value: float
    baseline: float
    copy_value: float = 1.0
    noise: float = 0.0
    records: Integers = field(default_factory=_no_records)

    @property
    def excess(self) -> float:
        """Return (value - baseline - noise) / (copy - baseline), from 0, an independent sample, to 1, a copy.

        After anonymeter's residual risk (Giomi et al. 2023, §3). 0 where even a copy could not be distinguished from an independent
        sample. A copy is 1 whatever the noise.
        """
        room = self.copy_value - self.baseline
        if room <= self.noise or self.value <= self.baseline:
            return 0.0
        return float(np.clip((self.value - self.baseline - self.noise) / (room - self.noise), 0.0, 1.0))


def share_standard_error(share: float, n_cases: float) -> float:
    """Return the standard error of a share of ``n_cases`` independent cases; 0 without cases."""
    # a sum of chances that is all of the cases may be above their number by rounding
    return float(np.sqrt(max(0.0, share * (1 - share)) / n_cases)) if n_cases else 0.0


def score_margin(value: float, baseline: float, cases: float) -> float:
    """Return how far below ``value - baseline`` the difference of two shares of ``cases`` each may lie, at two standard errors.

    Newcombe's interval of score limits (1998, method 10): unlike the standard error it is not 0 where all of a few cases, or none of
    them, were seen. Of one case it is above 1, so that one record alone says nothing.
    """
    if not cases:
        return 0.0
    return float(np.hypot(value - score_interval(value, cases, 2)[0], score_interval(baseline, cases, 2)[1] - baseline))
