"""Whether members are found in a release more often than people who were held out would be: exact tests of counts.

**Hold-out.** A release that does not depend on who was a member finds a person of the joint table as likely whether he was held out or
not. Given how many were found, the number of members among them is hypergeometric; nothing is assumed of the population or the model.

**Chance.** A few people are beyond that test: of 20 copied people of a hold-out of a fifth, none is a control with probability .8^20 = .012.
The second reference is the joint table itself: what an independent sample of the population would find of it. For single records it is seen
from rows that occur exactly twice (Good 1953): a sample of r rows finds at most 2 (r / N) N_2 of those that occur once among N. Both
references together are one conditional binomial test: members found against controls found and what the table shows by chance.

**Both are asked.** Where chance is a bound, as Good's is, it is far above what several datasets or columns with few levels show, and hides what the hold-out
shows plainly: 56 of 56 rare members and 4 of 11 rare controls in five datasets. Such a count is tested twice, by both references and by the
hold-out alone, and the tests are corrected together.

A count that could never reach the level, because too little was found, is no test and costs the others nothing (Tarone 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..data.arrays import Integers

LEVEL = 0.01
"""The probability that any of the tests of an honest release is significant."""
WEAK = 0.05
"""What the hold-out alone must show at least where the second reference decides."""


def _nobody() -> Integers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Found:
    """How many ``members`` of so many, and ``controls`` of so many, a release shows, and of whom and in what: ``who``, ``what``.

    ``chance`` is a count that an independent sample shows in the same way, ``exposure`` how many members it would show for each one counted there.
    ``rate`` is the expected count of controls for each counted chance; it may be a ``bound``; not ``by_both`` where it is left out. ``records`` are the
    members that were found, from 0. Chance counts only where the hold-out alone shows ``weak``. Tests that come ``first``, named before anything is seen, share half of the level, and all others the other half.
    """

    who: str
    what: str
    members: int
    of_members: int
    controls: int = 0
    of_controls: int = 0
    chance: float = 0.0
    exposure: float = 0.0
    rate: float = 0.0
    records: Integers = field(default_factory=_nobody)
    weak: float = 2 * WEAK
    first: bool = False
    bound: bool = False
    by_both: bool = True

    @property
    def by_holdout(self) -> float:
        """The probability of so many members among all who were found."""
        from scipy.stats import hypergeom

        if not self.of_controls:
            return 1.0
        total = self.of_members + self.of_controls
        return float(hypergeom.sf(self.members - 1, total, self.of_members, self.members + self.controls))

    @property
    def p(self) -> float:
        """The probability of so many members among all who were found here and by chance."""
        from scipy.stats import binom

        if not self.exposure:
            return self.by_holdout
        share = self.exposure / (1 + self.exposure + self.rate)
        p = float(binom.sf(self.members - 1, self.members + self.controls + np.ceil(self.chance), share))
        return max(p, 0.0) if self.by_holdout <= self.weak or not self.of_controls else self.by_holdout

    @property
    def by_holdout_alone(self) -> Found | None:
        """The same count where a bound of chance is not asked, in the half of the level that all others share; None where that changes nothing."""
        asked = self.bound and self.exposure and self.of_controls
        return replace(self, by_both=False, exposure=0.0, first=False) if asked else None

    @property
    def least(self) -> float:
        """The smallest p that this number of people could have: all of them are members, and the hold-out alone still shows ``weak``."""
        from scipy.stats import hypergeom

        share = self.exposure / (1 + self.exposure + self.rate) if self.exposure else 1.0
        total = self.members + self.controls
        by_chance = share**total if self.exposure else 1.0
        if not self.of_controls:
            return float(by_chance)
        everybody = self.of_members + self.of_controls
        by_holdout = float(hypergeom.pmf(min(total, self.of_members), everybody, self.of_members, total))
        return float(min(by_chance, by_holdout)) if self.exposure and by_holdout <= self.weak else by_holdout

    @property
    def expected(self) -> float:
        """The members that would be found if they were found as often as controls, or as by chance, whichever is more."""
        by_controls = (self.controls + 0.5) * self.of_members / self.of_controls if self.of_controls else 0.0
        if self.controls == 0 and self.exposure:
            by_controls = 0.0
        return max(by_controls, self.chance * self.exposure)

    @property
    def excess(self) -> float:
        """The members found beyond those expected."""
        return max(0.0, self.members - self.expected)

    @property
    def share(self) -> float:
        """The excess as a share of the members that chance would not find."""
        room = self.of_members - self.expected
        return float(min(1.0, self.excess / room)) if room > 0 else 0.0

    @property
    def of_the_found(self) -> float:
        """The excess as a share of the members found: what being a member has to do with being found."""
        return self.excess / self.members if self.members else 0.0


@dataclass(frozen=True, eq=False)
class Verdict:
    """The test that shows most of several: its ``p`` corrected for all of them (at most 1)."""

    found: Found
    p: float


def corrected(counts: Sequence[Found]) -> list[Verdict]:
    """Each count, by both references and by the hold-out alone, with its p times the number of tests that could have been significant at its own level
    (Tarone 1990), most significant first.

    The correction holds for whatever dependence, so that overlapping sets of columns and people may all be tried. Sets that show the same people
    are one test, whose p is the largest of theirs.
    """
    alike: dict[object, tuple[Found, float]] = {}
    for one in (*counts, *filter(None, (one.by_holdout_alone for one in counts))):
        if not one.members:
            continue
        shown = (one.first, one.by_both, one.members, one.controls, one.records.tobytes())
        key = shown if len(one.records) else one
        same, p = alike.get(key, (one, 0.0))
        alike[key] = (same, max(p, one.p))
    parts = [[pair for pair in alike.values() if pair[0].first is first] for first in (True, False)]
    halves = 2 if any(one.first for one in counts) else 1
    found = list[Verdict]()
    for part in parts:
        least = np.sort([one.least for one, _ in part])
        found += [Verdict(one, float(min(1.0, halves * p * _possible(least, p)))) for one, p in part]
    return sorted(found, key=lambda one: (one.p, -one.found.excess))


def _possible(least: np.ndarray[tuple[int, ...], np.dtype[np.float64]], p: float) -> int:
    """How many tests could have reached this p."""
    return max(1, int(np.searchsorted(least, max(p, 1e-300) * (1 + 1e-9), side="right")))
