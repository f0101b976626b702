"""Privacy accounts: the cost of a differentially private synthesis, and what its proof does not cover.

A synthesis is eps-differentially private when adding or removing one confidential record changes the probability of any
output by a factor of at most exp(eps) (Dwork 2006; Park & Ghosh eq. 2), or one unit of several records where a recipe
declares these and bounds them (``[data] largest_unit``). Gaussian noise is accounted for in
zero-concentrated differential privacy as rho (``zcdp``), and reported as an (epsilon, delta) guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..data.intervals import Range
from ..margins.zcdp import epsilon_of_rho, rho_of_epsilon
from .levers import LESS_EPSILON
from .outputs import Label, Output
from .results import Estimate

POSITIVE: Range = (0.0, None)

ACCOUNT = (
    Output(
        "epsilon_sample",
        "what one drawn record costs, or one block of them: with one confidential record or unit more or less, no outcome is more than exp of this times as likely",
        "low",
        range=POSITIVE,
        short="eps a sample",
        statbarn="none",
        label=Label(
            "Privacy loss of one drawn record or block",
            "One record or unit more or less changes the odds of a drawn record or block by a factor of at most exp({value}).",
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
        "what all datasets and paid public figures cost together, for one confidential record or unit more or less",
        "low",
        range=POSITIVE,
        short="eps of the release",
        statbarn="none",
        label=Label(
            "Privacy loss of the release (epsilon)",
            "One record or unit more or less changes the odds of the release by a factor of at most exp({value}).",
            "Lower is better: one person changes the release less.",
            "One person may change the release more than the limit allows.",
            LESS_EPSILON,
            shared=True,
        ),
    ),
    Output(
        "epsilon_substitution",
        "what all datasets and paid public figures cost together, for one confidential record or unit that is changed",
        "low",
        range=POSITIVE,
        short="eps for a change",
        statbarn="none",
        label=Label(
            "Privacy loss for a changed record (epsilon)",
            "One changed record or unit changes the odds of the release by a factor of at most exp({value}).",
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

CONCENTRATED = (
    *ACCOUNT,
    Output(
        "delta",
        "the chance, stated in the recipe, that the promise of epsilon does not hold",
        "low",
        range=(0.0, 1.0),
        short="delta",
        statbarn="none",
        label=Label(
            "Chance that the privacy promise fails (delta)",
            "The promise of epsilon holds but for a chance of {value}.",
            "Lower is better: the promise fails less often.",
            "The promise may fail more often than the limit allows.",
            ("lower delta",),
        ),
    ),
    Output(
        "rho",
        "what all noise and all choices cost in zero-concentrated differential privacy, for one confidential record or unit more or less",
        "low",
        range=POSITIVE,
        short="rho",
        statbarn="none",
        label=Label(
            "Privacy loss in concentrated form (rho)",
            "Noise and choices cost a rho of {value}, which adds up over releases.",
            "Lower is better: one person changes the release less.",
            "One person may change the release more than the limit allows.",
            LESS_EPSILON,
        ),
    ),
    Output(
        "rho_part",
        "what a part of the noise and the choices costs in zero-concentrated differential privacy",
        "none",
        range=POSITIVE,
        short="rho of a part",
        statbarn="none",
        label=Label("Part of the privacy loss (rho)", "Of the privacy loss, {part} costs a rho of {value}."),
    ),
)
"""The measures of a synthesis method whose noise is Gaussian."""
MOST_EXPONENT = 700.0
"""Beyond it exp is no double any more; fewer virtual records than then are never taken."""


@dataclass(frozen=True, slots=True)
class UncoveredUse:
    """Use of the confidential data that a step's privacy proof does not cover, in words for two readers.

    message: for the maker of the release, with a remedy
    public: for the user of the release; it reveals no variable, level or record
    """

    message: str
    public: str


@dataclass(frozen=True, slots=True)
class ConcentratedCost:
    """Privacy cost in zero-concentrated differential privacy.

    rho: for one record added or removed
    substitution: rho for one record that is replaced
    delta: delta at which its epsilon is stated
    failure_delta: part of delta with which the rho itself does not hold (delta-approximate, Bun & Steinke 2016,
        Definition 8.1)
    parts: the terms whose sum is rho, by name
    gaussian: whether all of it is Gaussian noise, which is Gaussian differential privacy with mu = sqrt(2 rho) (Dong,
        Roth & Su 2022)
    """

    rho: float
    substitution: float
    delta: float
    failure_delta: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    gaussian: bool = False

    @property
    def epsilon(self) -> float:
        """Return the epsilon for one record added or removed, at its delta."""
        return epsilon_of_rho(self.rho, self.delta - self.failure_delta)

    @property
    def epsilon_substitution(self) -> float:
        """Return the epsilon for one record that is replaced, at its delta."""
        # The failure probability is not doubled: in either table one record alone can be what fails.
        return epsilon_of_rho(self.substitution, self.delta - self.failure_delta)


class NoiseGuarantee(NamedTuple):
    """Guarantee of noise: the odds of a release differ by a factor of at most exp(``epsilon``), except with probability
    ``delta``.

    ``mu`` is that of Gaussian differential privacy where all noise is Gaussian, else NaN.
    """

    epsilon: float
    delta: float = 0.0
    mu: float = math.nan


@dataclass(frozen=True, slots=True)
class PrivacyAccount:
    """Privacy cost of the datasets of a synthesis.

    epsilon: cost of one draw
    samples: independent draws of a dataset
    datasets: number of datasets
    uncovered: what was learned from the confidential data outside the proof; the noise still accounts for ``noise``,
        but no epsilon of the release can be stated
    records_a_draw: records that a draw makes
    concentrated: cost in zero-concentrated privacy, whose epsilon at its delta is ``epsilon``; it pays for any number
        of records and datasets, which are all drawn from what was measured once
    figures: cost of public figures with noise: part of the cost of the release, but not of that of the noise in the
        datasets
    unit_records: most records of a unit that the cost covers: it is for one such unit more or less, or replaced
    is_bounded: whether no more records of any unit were counted
    """

    epsilon: float
    samples: int
    datasets: int
    uncovered: tuple[UncoveredUse, ...] = ()
    records_a_draw: int = 1
    concentrated: ConcentratedCost | None = None
    figures: float = 0.0
    unit_records: int = 1
    is_bounded: bool = False

    @classmethod
    def from_rho(
        cls, cost: ConcentratedCost, uncovered: tuple[UncoveredUse, ...] = (), epsilon: float | None = None
    ) -> PrivacyAccount:
        """Create the account of margins that were measured once with Gaussian noise.

        ``epsilon`` is the requested one where the noise was calibrated to it.
        """
        return cls(epsilon or cost.epsilon, 1, 1, uncovered, concentrated=cost)

    @property
    def noise(self) -> float:
        """Return the cost of all datasets if the proof covered everything, for one record added or removed."""
        return self.epsilon * self.samples * self.datasets

    @property
    def release(self) -> float | None:
        """Return the cost of all datasets and public figures for one record added or removed.

        The result is None where something is not covered.
        """
        return None if self.uncovered else self.noise + self.figures

    @property
    def substitution(self) -> float | None:
        """Return the cost of all datasets and public figures for one record replaced.

        The result is None where something is not covered.
        """
        if self.uncovered:
            return None
        cost = self.concentrated
        # To replace a record is to remove one and add another, so a pure epsilon doubles.
        return 2 * self.figures + (2 * self.noise if cost is None else cost.epsilon_substitution)

    def noise_guarantee(self, removed: bool) -> NoiseGuarantee:
        """Return the guarantee of the noise if the proof covered everything, for one record ``removed``, or else
        replaced.
        """
        cost = self.concentrated
        if cost is None:
            return NoiseGuarantee(self.noise if removed else 2 * self.noise)
        rho = cost.rho if removed else cost.substitution
        epsilon = self.noise if removed else cost.epsilon_substitution
        return NoiseGuarantee(epsilon, cost.delta, math.sqrt(2 * rho) if cost.gaussian else math.nan)

    def estimates(self) -> tuple[Estimate, ...]:
        """Return the account as estimates of the outputs in ``ACCOUNT``."""
        reason = (
            f"the proof does not cover that {'; nor that '.join(one.message for one in self.uncovered)}"
            if self.uncovered
            else ""
        )
        sample = None if self.uncovered else self.epsilon
        covered = (
            ("epsilon_sample", sample),
            ("epsilon_release", self.release),
            ("epsilon_substitution", self.substitution),
        )
        told = *(Estimate(name, value, reason=reason) for name, value in covered), Estimate("epsilon_noise", self.noise)
        if self.concentrated is None:
            return *told, Estimate("sample_records", self.records_a_draw)
        cost = self.concentrated
        return (
            *told,
            Estimate.not_computed("sample_records", "the cost does not depend on how many records are drawn"),
            Estimate("delta", cost.delta),
            Estimate("rho", None if self.uncovered else cost.rho, reason=reason),
            *(
                Estimate("rho_part", None if self.uncovered else own, reason=reason, params={"part": part})
                for part, own in cost.parts.items()
                if own
            ),
        )


@dataclass(frozen=True, slots=True)
class NoAccount:
    """Reason why there is no epsilon, fit for publication: it names no variable and reveals nothing of the data."""

    reason: str

    def estimates(self) -> tuple[Estimate, ...]:
        """Return all estimates of ``ACCOUNT`` as not computed."""
        return tuple(Estimate.not_computed(output.name, self.reason) for output in ACCOUNT)


def virtual_records(epsilon: float, features: int, largest: float = 1.0) -> float:
    """Return the number alpha of virtual records that each category needs so that a draw of ``features`` values costs
    ``epsilon``.

    alpha = 1 / (exp(epsilon / M) - 1). A record adds at most ``largest`` to the count of any one category.
    """
    # Park & Ghosh's eq. 6 says "at most", but their proof, M log(1 + 1/alpha) <= epsilon, needs at least this many.
    return largest / math.expm1(min(epsilon / features, MOST_EXPONENT))


def epsilon_of_draw(alpha: float, features: int, largest: float = 1.0) -> float:
    """Return the cost of a draw of ``features`` values with ``alpha`` virtual records in each category."""
    # M log(1 + largest / alpha), the inverse of virtual_records.
    return features * math.log1p(largest / alpha) if alpha > 0 else math.inf


def sum_accounts(accounts: Sequence[PrivacyAccount]) -> PrivacyAccount:
    """Return the composed account of several steps of one release."""
    uncovered = tuple(dict.fromkeys(found for one in accounts for found in one.uncovered))
    figures = math.fsum(one.figures for one in accounts)
    pure = [one.noise for one in accounts if one.concentrated is None]
    costs = [one.concentrated for one in accounts if one.concentrated is not None]
    if not costs:
        return PrivacyAccount(math.fsum(pure), 1, 1, uncovered, figures=figures)
    # Failures add up; the conversion of the summed rho to epsilon happens once, so one conversion delta is spent.
    failed = math.fsum(cost.failure_delta for cost in costs)
    delta = failed + min(cost.delta - cost.failure_delta for cost in costs)
    gaussian = not pure and all(cost.gaussian for cost in costs)
    rho, substitution = (math.fsum(of) for of in zip(*((c.rho, c.substitution) for c in costs), strict=True))
    own = ConcentratedCost(rho, substitution, delta, failed, gaussian=gaussian)
    every = replace(
        own,
        rho=own.rho + math.fsum(map(rho_of_epsilon, pure)),
        substitution=own.substitution + math.fsum(rho_of_epsilon(2 * one) for one in pure),
    )
    # Either composition is valid, epsilons added or all as rho, so the smaller epsilon holds.
    added = math.fsum([*pure, own.epsilon])
    return PrivacyAccount(min(added, every.epsilon), 1, 1, uncovered, concentrated=every, figures=figures)
