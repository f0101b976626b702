"""Results of an attack on a release, compared with control records and with the same attack without the release.

Right guesses about records in the data say little by themselves: much can be guessed about anybody. Control records are
from the same population but not in the data. The residual risk (Giomi, Boenisch, Wehmeyer & Tasnádi 2022, arXiv
2211.10459, §3.1) is

    R = (a - c) / (1 - c)        with success rates a for records of the data and c for controls

The added risk subtracts the success rates a0 and c0 without the release, where records of other people stand in its
place:

    A = ((a - a0) - (c - c0)) / (1 - c)

R also shows whatever makes members easier to guess than controls, such as a hold-out of other people; A equals R if a0
= c0. A half of all other people stands in place of the release, for members and controls alike (``OtherPeople``).
Drafted limits and the gate use A.

The row ``attack_without_release`` has a0, or ``baseline_success`` where an attack has no naive guess of its own, and
``control_without_release`` has c0.

A method declares ``controls=True``, ``outputs=attack_outputs(...)`` and ``combine=combine_attacks``, and returns
``AttackResult.estimates``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..adversary.permuted import UnitsOfBoth, exact_p_value
from ..adversary.power import detectable_excess, detectable_excess_from_error
from ..data.arrays import Floats, Integers
from ..data.intervals import AT_MOST_ONE, NON_NEGATIVE, SHARE, Range
from ..data.provenance import ReleaseProvenance
from ..methods.drafting import OURS, Case, OfferedLimit
from ..methods.outputs import USUAL_RATES, Label, Output, Question, RiskOutput
from ..methods.results import Estimate
from ..methods.rows import Row, average_with_intervals
from ..statistics.score_interval import Z_95, score_interval

LEVEL = 0.95
NOTHING_LEFT = "every guess about a control record is right too: there is nothing left that the release could add"
NO_GUESS = "the attack makes no guess"
NO_ADDED_SUCCESS = "there are no guesses without the release to compare with"
LARGEST_EXCESS, LARGEST_ADDED = "largest_excess_risk", "largest_added_risk"
"""Names of the outputs of an intruder who ignores misleading variables (``_best_strategy``)."""
ADDED_RISK, DETECTABLE_ADDED = "added_risk", "detectable_added_risk"
"""Names of the outputs for the added risk and for the smallest detectable one."""
ATTACK_WITHOUT, CONTROL_WITHOUT = "attack_without_release", "control_without_release"
"""Names of the outputs for the success without the release, with people in the data and with outsiders."""


ROW_OF_RANDOM_PEOPLE = (("people", "random"), ("guesses", "all"))
"""Default parameters of an attack's rows."""
WITHOUT_CONTROLS = (
    "an attack is compared with what it finds of people who are not in the data, and no records are held out"
)
EXCESS_LIMIT = 0.05
MAX_ATTACKED = 2000
"""Default number of people, and of controls, that are attacked."""


def residual_output(name: str, meaning: str, *, short: str, detectable: str, risk: RiskOutput, label: Label) -> Output:
    """Return the declaration of an output that is a share of the remaining risk, such as excess or added risk."""
    return Output(
        name,
        meaning,
        "low",
        range=AT_MOST_ONE,
        short=short,
        estimated=True,
        detectable=detectable,
        row_defaults=ROW_OF_RANDOM_PEOPLE,
        risk=risk,
        statbarn="CalculatedRatios",
        label=label,
    )


OUTSIDERS = "Outsiders are people outside the data, of whom no release was made."
NOTICED = "or more would most probably (80 %) have been noticed; a smaller one may go unnoticed."
"""End of a sentence on the smallest leak that is found with a power of 80 % at a two-sided level of 5 %."""
SHARPER = "Lower is better: the test then notices smaller leaks. More people attacked make it lower."
"""Sentence on good values of that smallest leak."""


@dataclass(frozen=True, slots=True)
class NaiveGuess:
    """A guess that needs neither the release nor the attack, and how often it is right, as texts for people.

    name: its name behind that of the attack
    says: sentence with ``{value}``
    baseline: what it is, beside the success of the attack
    """

    name: str
    says: str
    baseline: str


def attack_outputs(
    attack: str,
    guesses: str,
    right: str,
    questions: tuple[Question, ...],
    levers: tuple[str, ...],
    exact: bool = True,
    *,
    scene: str = "",
    rates: tuple[str, str] = USUAL_RATES,
    without: str = "",
    naive: NaiveGuess | None = None,
) -> tuple[Output, ...]:
    """Return the declarations of all outputs of an ``attack``.

    ``guesses`` names its guesses ("predicates"), ``right`` says when one is right; ``exact`` adds a p-value. ``scene``
    says what the intruder knows and does, and when he succeeds, ``without`` what he does without the release; ``rates``
    as in ``Label``. An attack with a ``naive`` guess as its baseline has another output for its success without the
    release.
    """
    scene = f"{scene} {OUTSIDERS}".strip()
    added_scene = f"{scene} {without}".strip()
    title = attack.capitalize()
    about = "about people in the data"
    p_value = Output(
        "excess_p_value",
        "chance to find as much about people in the data where the release reveals nothing, by permuted people and controls",
        "none",
        range=SHARE,
        short="p",
        estimated=True,
        label=Label(
            f"{title}: chance of the difference",
            f"If the release revealed nothing, the {attack} attack would still find as much more about people in the data with probability {{value}}.",
            "A large value is good; below 5 %, chance rarely finds as much, and the release may reveal something.",
            counts="share",
            term="p-value of the excess risk, by permutation",
        ),
    )
    return (
        Output(
            "attack_success",
            f"share of the {guesses} that {right} of the records that the release was made of",
            "low",
            "share",
            range=SHARE,
            short="attack",
            estimated=True,
            risk=RiskOutput(questions=questions),
            label=Label(
                f"{title}: for people in the data",
                f"The {attack} attack is right in {{value}} of its {guesses} {about}.",
                "Good is no more than for outsiders, people outside the data.",
                f"The {attack} attack is right too often {about}.",
                levers,
                baseline=naive.baseline if naive else "without the release",
                scene=scene,
            ),
        ),
        Output(
            "baseline_success",
            f"share of {guesses} made without the release that {right} of the records that the release was made of",
            "none",
            "share",
            range=SHARE,
            short="baseline",
            estimated=True,
            label=Label(
                f"{title}: {naive.name if naive else 'without the release'}",
                naive.says if naive else f"Without the release, {{value}} of the {guesses} {about} are right.",
                scene=without if naive is None else "",
            ),
        ),
        *((_without_release_output(ATTACK_WITHOUT, title, without, outsiders=False),) if naive else ()),
        _without_release_output(CONTROL_WITHOUT, title, without, outsiders=True),
        Output(
            "control_success",
            f"share of the {guesses} that {right} of control records, of which no release was made",
            "none",
            "share",
            range=SHARE,
            short="control",
            estimated=True,
            label=Label(
                f"{title}: for outsiders",
                f"The {attack} attack is right in {{value}} of its {guesses} about outsiders, people outside the data.",
                scene=scene,
                term="success on the controls",
            ),
        ),
        residual_output(
            "excess_risk",
            "residual risk: success beyond the control, as a share of the remaining risk: (attack - control) / (1 - control)",
            short="excess",
            detectable="detectable_excess",
            risk=RiskOutput(questions=questions),
            label=Label(
                f"{title}: more than for outsiders",
                f"On a scale from success on outsiders (0 %) to always right (100 %), the {attack} attack on people in the data reaches {{value}}.",
                "Good is 0 % or below: people in the data are as safe as outsiders.",
                "The release discloses more about people in the data than about outsiders.",
                levers,
                counts="share",
                baseline="as safe as outsiders",
                scene=scene,
                rates=rates,
                term="excess risk, the residual risk of an attack that is compared with controls",
            ),
        ),
        Output(
            "detectable_excess",
            "smallest excess that would have been found with 80 % power",
            "none",
            range=AT_MOST_ONE,
            short="detectable",
            estimated=True,
            label=Label(
                f"{title}: least difference noticed",
                f"A true difference from outsiders of {{value}} {NOTICED}",
                SHARPER,
                counts="share",
                term="detectable excess risk, power 80 %",
            ),
        ),
        Output(
            "guesses",
            f"{guesses} that count",
            "none",
            guesses,
            range=NON_NEGATIVE,
            short="guesses",
            estimated=True,
            label=Label(f"{title}: number of guesses", f"The {attack} attack makes {{value}} {about}."),
        ),
        residual_output(
            ADDED_RISK,
            "success beyond the control with the release less the same without it, as a share of the remaining risk: "
            "((attack - attack without) - (control - control without)) / (1 - control)",
            short="added",
            detectable=DETECTABLE_ADDED,
            risk=RiskOutput(gate_reference="chance", questions=questions),
            label=Label(
                f"{title}: added by the release",
                "With people in the data the release adds {value} {more} than with outsiders, as a share of the guesses about outsiders that fail with it.",
                "Good is 0 % or below: the release then helps no more with people in the data than with outsiders.",
                "The release discloses more about people in the data than about outsiders.",
                levers,
                counts="share",
                baseline="the release tells no more about people in the data than about outsiders",
                scene=added_scene,
                rates=rates,
                term="added risk, the excess risk less that of guessing without the release",
            ),
        ),
        Output(
            DETECTABLE_ADDED,
            "smallest added risk that would have been found with 80 % power",
            "none",
            range=AT_MOST_ONE,
            short="detectable added",
            estimated=True,
            label=Label(
                f"{title}: least addition noticed",
                f"A true addition of {{value}} {NOTICED}",
                SHARPER,
                counts="share",
                term="detectable added risk, power 80 %",
            ),
        ),
        *((p_value,) if exact else ()),
    )


def _without_release_output(name: str, title: str, without: str, *, outsiders: bool) -> Output:
    """Return the declaration of the success of an attack without the release, with people in the data or ``outsiders``."""
    whom = "outsiders" if outsiders else "people in the data"
    return Output(
        name,
        f"share of right guesses about {'control records' if outsiders else 'the records that the release was made of'} "
        "where records of other people stand in place of the release",
        "none",
        "share",
        range=SHARE,
        short="control without" if outsiders else "attack without",
        estimated=True,
        label=Label(
            f"{title}: outsiders, no release" if outsiders else f"{title}: without the release",
            f"Without the release, {{value}} of the guesses about {whom} are right.",
            "Neither good nor bad: no release changes it. What the release adds is measured from here.",
            scene=without,
        ),
    )


def limits_for_all_variables(
    question: Question, case: Case, right: float, scored: float = 1.0, output: str = ADDED_RISK
) -> tuple[OfferedLimit, ...]:
    """Return the drafted limit of an attack through all variables; none if some are released unchanged."""
    # The attack finds unchanged values whatever is synthesised.
    return () if case.kept_variables else (replace(added_risk_limit(question, case, right, scored), output=output),)


def planned_sizes(case: Case, scored: float = 1.0) -> tuple[int, int] | None:
    """Return the planned numbers of people and controls of an attack; None if the number of controls is unknown.

    ``scored`` is the share of the controls that are attacked.
    """
    if case.controls is None:
        return None
    people, controls = case.table.records - case.controls, scored * case.controls
    return max(1, min(MAX_ATTACKED, people)), max(1, min(MAX_ATTACKED, round(controls)))


def added_risk_limit(
    question: Question, case: Case, right: float, scored: float = 1.0, series: int = 1
) -> OfferedLimit:
    """Return the drafted limit on the added risk of an attack on random people, with all guesses.

    ``right`` is the planned share of right guesses about controls, ``scored`` the share of the controls that are
    attacked, ``series`` the number of intervals that hold simultaneously.
    """
    sizes = planned_sizes(case, scored)
    detectable = None if sizes is None else detectable_excess(right, *sizes, 1 - LEVEL ** (1 / series))
    return OfferedLimit(
        ADDED_RISK, "max", EXCESS_LIMIT, OURS, question, params=dict(ROW_OF_RANDOM_PEOPLE), detectable=detectable
    )


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """Share of right guesses: ``successes`` of ``guesses``.

    successes: number of right guesses, a sum of probabilities if ties are broken at random
    guesses: number of guesses
    scale: factor of the share if only one in ``scale`` successes can be observed
    design_effect: factor of the variance where guesses about records of one unit go together, at least 1
    """

    successes: float
    guesses: int
    scale: float = 1.0
    design_effect: float = 1.0

    @classmethod
    def from_chances(cls, chances: Floats, unit_of: Integers | None = None) -> SuccessRate:
        """Create it from the probability of a right guess about each record, (n,), with their units where there are any."""
        effect = 1.0 if unit_of is None else design_effect(chances, unit_of)
        return cls(float(np.sum(chances)), len(chances), design_effect=effect)

    @property
    def independent_guesses(self) -> float:
        """Return the number of independent guesses that would be as sure."""
        return self.guesses / self.design_effect

    @property
    def value(self) -> float:
        """Return the success rate, at most 1. Raises ZeroDivisionError without guesses."""
        return min(1.0, self.scale * self.successes / self.guesses)

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the success rate (Brown, Cai & DasGupta 2001)."""
        low, high = score_interval(self.successes / self.guesses, self.independent_guesses)
        return min(self.value, max(0.0, self.scale * low)), max(self.value, min(1.0, self.scale * high))


def design_effect(values: Floats, unit_of: Integers) -> float:
    """Return the variance of the mean of values (n,) in units (n,) relative to that of independent values, at least 1.

    Without any variation the records of a unit count as one.
    """
    n, units = len(values), np.unique(unit_of, return_inverse=True)[1]
    if not n:
        return 1.0
    apart = values - values.mean()
    alone = float(np.square(apart).sum())
    together = float(np.square(np.bincount(units, weights=apart)).sum())
    return max(1.0, together / alone) if alone > 1e-12 else n / (int(units.max()) + 1)


def residual_risk(attack: float, control: float) -> float:
    """Return R = (a - c) / (1 - c), at most 1. Raises ZeroDivisionError if c is 1."""
    return (attack - control) / (1 - control)


def residual_interval(attack: SuccessRate, control: SuccessRate) -> tuple[float, float]:
    """Return the 95 % limits of R for independent guesses. Raises ZeroDivisionError if c is 1."""
    p, q = 1 - attack.value, 1 - control.value
    (p_low, p_high), (q_low, q_high) = (tuple(1 - end for end in reversed(rate.interval)) for rate in (attack, control))
    # A scaled rate's interval can reach 1, which would leave the ratio without a limit: one failure more than all
    # guesses is the least that is taken.
    q_low = min(q, max(q_low, 1 / (control.independent_guesses + 1)))
    # Limits of the ratio 1 - R = (1 - a) / (1 - c) from Wilson limits of both rates (MOVER: Donner & Zou 2012,
    # Statistical Methods in Medical Research 21(4), eq. 9).
    under = (p * q) ** 2 - p_low * q_high * (2 * p - p_low) * (2 * q - q_high)
    above = (p * q) ** 2 - p_high * q_low * (2 * p - p_high) * (2 * q - q_low)
    low = p_low * (2 * p - p_low) / (p * q + math.sqrt(max(0.0, under))) if p else 0.0
    high = (p * q + math.sqrt(max(0.0, above))) / (q_low * (2 * q - q_low))
    return 1 - max(high, p / q), 1 - min(low, p / q)


@dataclass(frozen=True, slots=True)
class AddedSuccess:
    """Mean change in the probability of a right guess by the release, for members and for controls.

    members, controls: mean differences, with the release less without it
    spread: standard error of the difference between members and controls
    p_value: permutation p-value of a larger difference; None if unknown
    reach: distances of the limits of the added risk below and above it; None if they follow from ``spread``
    """

    members: float
    controls: float
    spread: float
    p_value: float | None = None
    reach: tuple[float, float] | None = None

    @classmethod
    def from_differences(
        cls, own: Floats, others: Floats, rng: np.random.Generator, units: UnitsOfBoth | None = None
    ) -> AddedSuccess | None:
        """Create it from the change in each member's, (n,), and each control's, (c,), probability of a right guess.

        Returns None without members or controls. The spread is that of whole units where these are given.
        """
        if not len(own) or not len(others):
            return None
        means = [float(np.mean(np.sort(one))) for one in (own, others)]
        # One person more who differs, so that an interval has a width even if none of a few people differs.
        variances = [
            (float(np.sum(np.sort((one - mean) ** 2))) + 1) / len(one) ** 2
            for one, mean in zip((own, others), means, strict=True)
        ]
        if units is not None:
            sides = ((own, units.own), (others, units.others))
            variances = [one * design_effect(*side) for one, side in zip(variances, sides, strict=True)]
        return cls(means[0], means[1], math.sqrt(sum(variances)), exact_p_value(own, others, rng, units=units))


@dataclass(frozen=True, slots=True)
class AttackResult:
    """Success rates of an attack on records of the data, without the release, and on control records.

    attack: success on records of the data
    baseline: success without the release; None if not measured
    control: success on control records
    limits: 95 % limits of the residual risk if guesses are dependent; None to use ``residual_interval``
    p_value: permutation p-value from ``sfumato.engine.adversary.permuted``
    exact: whether the attack has a p-value
    added_success: what the release adds for both groups; None if unknown
    is_naive: whether the baseline is a naive guess, and no attack without the release
    """

    attack: SuccessRate
    baseline: SuccessRate | None
    control: SuccessRate
    limits: tuple[float, float] | None = None
    p_value: float | None = None
    exact: bool = True
    added_success: AddedSuccess | None = None
    is_naive: bool = False

    def estimates(self, target: str = "", reason: str = "", **params: Any) -> tuple[Estimate, ...]:
        """Return the estimates that ``attack_outputs`` declares, for one ``target`` and these ``params``."""
        base = None if self.baseline is None or not self.baseline.guesses else self.baseline.value

        def estimate(name: str, value: float, ends: Range, baseline: float | None = None) -> Estimate:
            return Estimate(name, value, target, ends[0], ends[1], baseline, reason=reason, params=params)

        def rate_estimate(name: str, rate: SuccessRate | None, why: str, baseline: float | None = None) -> Estimate:
            """Return a success rate as an estimate with its interval."""
            if rate is None or not rate.guesses:
                return Estimate.not_computed(name, why, target, **params)
            return estimate(name, rate.value, rate.interval, baseline)

        count = estimate("guesses", float(self.attack.guesses), (None, None))
        return (
            rate_estimate("attack_success", self.attack, reason or NO_GUESS, base),
            rate_estimate("baseline_success", self.baseline, "there is no guess to make without the release"),
            *self._without_release_estimates(target, reason, params),
            rate_estimate("control_success", self.control, reason or NO_GUESS),
            self.excess_estimate(target, reason, params),
            self._detectable_excess_estimate(target, reason, params),
            count,
            self.added_risk_estimate(target, reason, params),
            self._detectable_added_estimate(target, reason, params),
            *((self._p_value_estimate(target, reason, params),) if self.exact else ()),
        )

    def _without_release_estimates(self, target: str, reason: str, params: dict[str, Any]) -> list[Estimate]:
        """Return the success rates without the release, from which the added risk is measured."""
        gain = self.added_success
        sides = [
            (ATTACK_WITHOUT, self.attack, None if gain is None else gain.members),
            (CONTROL_WITHOUT, self.control, None if gain is None else gain.controls),
        ]
        found = []
        for name, rate, change in sides if self.is_naive else sides[1:]:
            if not rate.guesses or change is None:
                why = reason if not rate.guesses and reason else NO_ADDED_SUCCESS if rate.guesses else NO_GUESS
                found.append(Estimate.not_computed(name, why, target, **params))
            else:
                value = min(1.0, max(0.0, rate.value - change))
                found.append(Estimate(name, value, target, reason=reason, params=params))
        return found

    def _p_value_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the permutation p-value of the excess as an estimate."""
        if not self.attack.guesses or not self.control.guesses:
            return Estimate.not_computed("excess_p_value", reason or NO_GUESS, target, **params)
        if self.p_value is None:
            return Estimate.not_computed("excess_p_value", reason or NOTHING_LEFT, target, **params)
        return Estimate("excess_p_value", self.p_value, target, reason=reason, params=params)

    def _detectable_excess_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the smallest excess that would be found with 80 % power."""
        if not self.attack.guesses or not self.control.guesses or self.control.value >= 1:
            why = reason or (NO_GUESS if not self.attack.guesses or not self.control.guesses else NOTHING_LEFT)
            return Estimate.not_computed("detectable_excess", why, target, **params)
        value = (
            detectable_excess(self.control.value, self.attack.independent_guesses, self.control.independent_guesses)
            # Dependent guesses bring limits, whose width gives the standard error.
            if self.limits is None
            else detectable_excess_from_error((self.limits[1] - self.limits[0]) / (2 * Z_95))
        )
        return Estimate("detectable_excess", value, target, reason=reason, params=params)

    def excess_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the residual risk with its limits as the output ``excess_risk``."""
        if not self.attack.guesses or not self.control.guesses:
            return Estimate.not_computed("excess_risk", reason or NO_GUESS, target, **params)
        if self.control.value >= 1:
            return Estimate.not_computed("excess_risk", NOTHING_LEFT, target, **params)
        value = residual_risk(self.attack.value, self.control.value)
        low, high = self.limits or residual_interval(self.attack, self.control)
        # An interval must not exclude 0 from above where the exact test finds nothing.
        if self.p_value is not None and self.p_value > (1 - LEVEL) / 2:
            low = min(low, 0.0)
        low, high = min(low, value), min(1.0, max(high, value))
        return Estimate("excess_risk", value, target, low, high, 0.0, reason=reason, params=params)

    def _reason_without_added_risk(self, reason: str) -> str:
        """Return why the added risk cannot be computed; empty if it can."""
        if not self.attack.guesses or not self.control.guesses:
            return reason or NO_GUESS
        if self.control.value >= 1:
            return NOTHING_LEFT
        return "" if self.added_success is not None else NO_ADDED_SUCCESS

    def added_risk_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the added risk with its limits as the output ``added_risk``."""
        if why := self._reason_without_added_risk(reason):
            return Estimate.not_computed(ADDED_RISK, why, target, **params)
        assert self.added_success is not None
        left = 1 - self.control.value
        value = min(1.0, (self.added_success.members - self.added_success.controls) / left)
        below, above = self.added_success.reach or (Z_95 * self.added_success.spread / left,) * 2
        low, high = value - below, min(1.0, value + above)
        if self.added_success.p_value is not None and self.added_success.p_value > (1 - LEVEL) / 2:
            low = min(low, 0.0)
        return Estimate(ADDED_RISK, value, target, low, max(high, value), 0.0, reason=reason, params=params)

    def _detectable_added_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the smallest added risk that would be found with 80 % power."""
        if why := self._reason_without_added_risk(reason):
            return Estimate.not_computed(DETECTABLE_ADDED, why, target, **params)
        assert self.added_success is not None
        value = detectable_excess_from_error(self.added_success.spread / (1 - self.control.value))
        return Estimate(DETECTABLE_ADDED, value, target, reason=reason, params=params)


def combine_attacks(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Average the rows over all datasets, with averaged intervals."""
    several = Counter((row.series, row.dataset) for row in rows if row.value is not None)
    return [
        # Twice the mean of p-values is a p-value, however they depend on each other (Rüschendorf 1982; Vovk & Wang
        # 2020, Biometrika 107(4)).
        replace(row, value=min(1.0, 2 * row.value), lower=None, upper=None)
        if row.measure == "excess_p_value" and row.value is not None and several[row.series, row.dataset] > 1
        else row
        # All datasets are attacked with the same people, whose sampling error more datasets do not reduce.
        for row in average_with_intervals(rows, provenance)
    ]
