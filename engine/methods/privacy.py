"""What a differentially private synthesis costs, and what its proof does not cover.

A synthesis is eps-differentially private when one record more or less in the confidential data changes the probability of
whatever it may release by a factor of exp(eps) at most (Dwork 2006; Park & Ghosh eq. 2). Changing a record is taking one out and
putting another in: it costs twice as much. What is released together adds up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..data.intervals import Range
from .levers import LESS_EPSILON
from .outputs import Label, Output
from .results import Estimate

POSITIVE: Range = (0.0, None)

ACCOUNT = (
    Output(
        "epsilon_sample",
        "what one drawn record costs, or one block of them: with one confidential record more or less, no outcome is more than exp of this times as likely",
        "low",
        range=POSITIVE,
        short="eps a sample",
        statbarn="none",
        label=Label(
            "Privacy loss of one drawn record or block",
            "One record more or less changes the odds of a drawn record or block by a factor of at most exp({value}).",
            "Lower is better: one person changes a draw less.",
            "One person may change a draw more than the limit allows.",
            LESS_EPSILON,
            shared=True,
        ),
    ),
    Output(
        "sample_records",
        "how many records are drawn together at that cost: one, or a block",
        "none",
        unit="records",
        range=POSITIVE,
        short="records a sample",
        statbarn="none",
        label=Label(
            "Records drawn at one privacy cost", "One privacy cost pays for {value} drawn together.", shared=True
        ),
    ),
    Output(
        "epsilon_release",
        "what all datasets cost together, for one confidential record more or less",
        "low",
        range=POSITIVE,
        short="eps of the release",
        statbarn="none",
        label=Label(
            "Privacy loss of the release (epsilon)",
            "One record more or less changes the odds of the release by a factor of at most exp({value}).",
            "Lower is better: one person changes the release less.",
            "One person may change the release more than the limit allows.",
            LESS_EPSILON,
            shared=True,
        ),
    ),
    Output(
        "epsilon_substitution",
        "what all datasets cost together, for one confidential record that is changed",
        "low",
        range=POSITIVE,
        short="eps for a change",
        statbarn="none",
        label=Label(
            "Privacy loss for a changed record (epsilon)",
            "One changed record changes the odds of the release by a factor of at most exp({value}).",
            "Lower is better: one person changes the release less.",
            "One person may change the release more than the limit allows.",
            LESS_EPSILON,
            shared=True,
        ),
    ),
    Output(
        "epsilon_noise",
        "what the noise alone would account for, if nothing but the counts had been learned from the confidential data",
        "none",
        range=POSITIVE,
        short="eps of the noise",
        statbarn="none",
        label=Label(
            "Privacy loss by the noise alone (epsilon)",
            "The noise alone would account for an epsilon of {value}, if nothing else were learned from the data.",
            shared=True,
        ),
    ),
)
"""The measures of every synthesis method that has an account."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """Something of the confidential data that a step uses outside its proof, as two read it.

    ``said`` to who makes the release, with what would mend it; ``public`` to who uses it, so that it tells nothing of any
    variable, level or record.
    """

    said: str
    public: str


@dataclass(frozen=True, slots=True)
class PrivacyAccount:
    """``epsilon`` for each of ``samples`` independent draws of a dataset, and ``datasets`` of them.

    ``uncovered`` is what was learned from the confidential data outside the proof: then the noise accounts for
    ``noise``, and no epsilon of the release can be told. A draw makes ``together`` records.
    """

    epsilon: float
    samples: int
    datasets: int
    uncovered: tuple[Uncovered, ...] = ()
    together: int = 1

    @property
    def noise(self) -> float:
        """Cost of all datasets if the proof covered everything, for one record more or less."""
        return self.epsilon * self.samples * self.datasets

    @property
    def release(self) -> float | None:
        """Cost of all datasets, for one record more or less; None where something is not covered."""
        return None if self.uncovered else self.noise

    @property
    def substitution(self) -> float | None:
        """Cost of all datasets, for one record that is changed; None where something is not covered."""
        return None if self.uncovered else 2 * self.noise

    def estimates(self) -> tuple[Estimate, ...]:
        """The account as measures, those of ``ACCOUNT``."""
        reason = (
            f"the proof does not cover that {'; nor that '.join(one.said for one in self.uncovered)}"
            if self.uncovered
            else ""
        )
        sample = None if self.uncovered else self.epsilon
        covered = (
            ("epsilon_sample", sample),
            ("epsilon_release", self.release),
            ("epsilon_substitution", self.substitution),
        )
        return (
            *(Estimate(name, value, reason=reason) for name, value in covered),
            Estimate("epsilon_noise", self.noise),
            Estimate("sample_records", self.together),
        )


@dataclass(frozen=True, slots=True)
class NoAccount:
    """There is no epsilon, and why not: in words that the public may read, naming no variable and nothing of the data."""

    reason: str

    def estimates(self) -> tuple[Estimate, ...]:
        """Every measure of ``ACCOUNT``, not computed."""
        return tuple(Estimate.not_computed(output.name, self.reason) for output in ACCOUNT)


MOST_EXPONENT = 700.0
"""Beyond it exp is no double any more; fewer virtual records than then are never taken."""


def virtual_records(epsilon: float, features: int, largest: float = 1.0) -> float:
    """How many virtual records alpha every category needs, so that a draw of ``features`` values costs ``epsilon``.

    alpha = 1 / (exp(epsilon / M) - 1). Park & Ghosh's eq. 6 says "at most"; their proof, M log(1 + 1/alpha) <= epsilon, needs
    at least. A record adds at most ``largest`` to the count of any one category.
    """
    return largest / math.expm1(min(epsilon / features, MOST_EXPONENT))


def epsilon_of(alpha: float, features: int, largest: float = 1.0) -> float:
    """The cost of a draw of ``features`` values with ``alpha`` virtual records a category: M log(1 + largest / alpha)."""
    return features * math.log1p(largest / alpha) if alpha > 0 else math.inf


def total(accounts: Sequence[PrivacyAccount]) -> PrivacyAccount:
    """The account of several steps of one release together (sequential composition)."""
    uncovered = tuple(dict.fromkeys(found for one in accounts for found in one.uncovered))
    return PrivacyAccount(math.fsum(one.noise for one in accounts), 1, 1, uncovered)
