"""Position of a release between an independent sample of the population and a copy of the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Integers
from ..statistics.score_interval import score_interval


def _no_records() -> Integers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MemorisationShare:
    """Share that a release shows, compared with an independent sample of the population and with a copy of the data.

    value: share that the release shows
    baseline: share that an independent sample would show
    copy_value: share that the confidential data would show
    noise: twice the standard error of the difference; a smaller excess is not significant
    records: confidential records that the share is about
    """

    value: float
    baseline: float
    copy_value: float = 1.0
    noise: float = 0.0
    records: Integers = field(default_factory=_no_records)

    @property
    def excess(self) -> float:
        """Return (value - baseline - noise) / (copy - baseline - noise), from 0, an independent sample, to 1, a copy.

        After anonymeter's residual risk (Giomi et al. 2023, §3). It is 0 if even a copy could not be distinguished.
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
    """Return the two-sigma margin below the difference of two shares of ``cases`` each."""
    if not cases:
        return 0.0
    # Newcombe's interval of score limits (1998, method 10): unlike the standard error it is not 0 if all or none of a
    # few cases occur. For one case it is above 1, so that one record alone says nothing.
    return float(np.hypot(value - score_interval(value, cases, 2)[0], score_interval(baseline, cases, 2)[1] - baseline))
