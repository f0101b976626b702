"""Results of an attack on a release, compared with the same attack without the release and against control records.

An attack makes guesses, each right or wrong. How often they are right of the records that a release was made of says little by itself:
much can
be guessed of anybody by what is generally so. Control records are of the same population, and no release was made of them. The residual
risk is what
is left of the way to certainty (Giomi, Boenisch, Wehmeyer & Tasnádi 2022, arXiv 2211.10459, §3.1):

    R = (a - c) / (1 - c)        a the success rate against the records of the release, c that against controls

The **added risk** takes off what the same attack gets right without the release, a0 and c0, where records of other people stand in its
place:

    A = ((a - a0) - (c - c0)) / (1 - c)

R finds whatever makes members easier to guess than controls, such as a hold-out of other people; A is R where a0 and c0 are equal.
Drafts set their
limits on A and the gate compares it. Its interval is that of a difference of two means, of each person's guesses with and without the
release; it does
not exclude 0 from above where the exact p-value of these differences finds nothing.

a, c and the baseline have Wilson's interval (Brown, Cai & DasGupta 2001). The limits of 1 - R = (1 - a) / (1 - c) follow from Wilson's
limits of both
(MOVER: Donner & Zou 2012, Statistical Methods in Medical Research 21(4), eq. 9). An attack whose guesses are not independent brings
    limits of its own.

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

from ..adversary.permuted import exact_p_value
from ..adversary.power import detectable_excess, detectable_excess_from_error
from ..data.arrays import Floats
from ..data.intervals import AT_MOST_ONE, NON_NEGATIVE, SHARE, Range
from ..methods.drafting import OURS, Case, OfferedLimit
from ..methods.outputs import Label, Output, Question, RiskOutput
from ..methods.results import Estimate
from ..methods.rows import Row, average_with_intervals
from ..statistics.score_interval import Z_95, score_interval

LEVEL = 0.95
NOTHING_LEFT = "every guess about a control record is right too: there is nothing left that the release could add"
NO_GUESS = "the attack makes no guess"
NO_ADDED_SUCCESS = "there are no guesses without the release to compare with"
LARGEST_EXCESS, LARGEST_ADDED = "largest_excess_risk", "largest_added_risk"
"""The outputs of the intruder who ignores what misleads (``_best_strategy``)."""
ADDED_RISK, DETECTABLE_ADDED = "added_risk", "detectable_added_risk"
"""Names of the outputs for the excess with the release less that without it, and for the smallest that would have been found."""


ROW_OF_RANDOM_PEOPLE = (("people", "random"), ("guesses", "all"))
"""Parameters of a row of an attack that does not state them."""
WITHOUT_CONTROLS = (
    "an attack is compared with what it finds of people who are not in the data, and no records are held out"
)
EXCESS_LIMIT = 0.05
MAX_ATTACKED = 2000
"""People that an attack asks about by default, and controls."""


def residual_output(name: str, meaning: str, *, short: str, detectable: str, risk: RiskOutput, label: Label) -> Output:
    """Return an output that is a share of the remaining risk, of people at random and estimated: an excess or what the release adds to it."""
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


def attack_outputs(
    attack: str, guesses: str, right: str, questions: tuple[Question, ...], levers: tuple[str, ...], exact: bool = True
) -> tuple[Output, ...]:
    """Return the outputs of an ``attack`` (``ATTACK_PARTS``).

    ``guesses`` names its guesses (``predicates``), ``right`` says when one is right; ``exact`` where it has a p-value.
    """
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
            f"{title}: chance of such a finding",
            f"If the release revealed nothing, the {attack} attack would do as well {about} with probability {{value}}.",
            counts="share",
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
                f"{title}: success of the attack",
                f"The {attack} attack is right in {{value}} of its {guesses} {about}.",
                "Good is no more than on controls, people outside the data.",
                f"The {attack} attack is right too often {about}.",
                levers,
                baseline="without the release",
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
                f"{title}: without the release",
                f"Without the release, {{value}} of the {guesses} {about} are right.",
            ),
        ),
        Output(
            "control_success",
            f"share of the {guesses} that {right} of control records, of which no release was made",
            "none",
            "share",
            range=SHARE,
            short="control",
            estimated=True,
            label=Label(
                f"{title}: success on controls",
                f"The {attack} attack is right in {{value}} of its {guesses} about controls, people outside the data.",
            ),
        ),
        residual_output(
            "excess_risk",
            "residual risk: success beyond the control, as a share of the remaining risk: (attack - control) / (1 - control)",
            short="excess",
            detectable="detectable_excess",
            risk=RiskOutput(questions=questions),
            label=Label(
                f"{title}: excess risk",
                f"Beyond its success on controls, the {attack} attack gains {{value}} of the remaining risk for people in the data.",
                "Good is 0 %: members are as safe as people outside the data.",
                "The release discloses more about its own people than about others.",
                levers,
                counts="share",
                baseline="as safe as people outside the data",
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
                f"{title}: smallest excess found",
                f"With a power of 80 %, the {attack} attack finds an excess risk of {{value}} or more.",
                counts="share",
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
                f"{title}: added risk",
                f"By the release, the {attack} attack gains {{value}} of the remaining risk for people in the data beyond others.",
                "Good is 0 %: the release adds no more for members than for people outside the data.",
                "The release discloses more about its own people than about others.",
                levers,
                counts="share",
                baseline="no more for members than for others",
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
                f"{title}: smallest added risk",
                f"With a power of 80 %, the {attack} attack finds an added risk of {{value}} or more.",
                counts="share",
            ),
        ),
        *((p_value,) if exact else ()),
    )


def limits_for_all_variables(
    question: Question, case: Case, right: float, scored: float = 1.0, output: str = ADDED_RISK
) -> tuple[OfferedLimit, ...]:
    """Return the threshold of a draft for an attack through all variables; none where some are released unchanged, which it finds whatever
    is drawn.
    """
    return () if case.kept_variables else (replace(added_risk_limit(question, case, right, scored), output=output),)


def planned_sizes(case: Case, scored: float = 1.0) -> tuple[int, int] | None:
    """Return how many people and controls an attack of a draft asks about, ``scored`` the share of the controls; None where their number
    is not known.
    """
    if case.controls is None:
        return None
    people, controls = case.table.records - case.controls, scored * case.controls
    return max(1, min(MAX_ATTACKED, people)), max(1, min(MAX_ATTACKED, round(controls)))


def added_risk_limit(
    question: Question, case: Case, right: float, scored: float = 1.0, series: int = 1
) -> OfferedLimit:
    """Return the threshold of a draft for the added risk of an attack on people at random, all of its guesses.

    ``right`` is the share of controls of whom a guess is planned to be right, ``scored`` the share of the controls that are asked
    about; ``series`` intervals
    are to cover at once.
    """
    sizes = planned_sizes(case, scored)
    detectable = None if sizes is None else detectable_excess(right, *sizes, 1 - LEVEL ** (1 / series))
    return OfferedLimit(
        ADDED_RISK, "max", EXCESS_LIMIT, OURS, question, params=dict(ROW_OF_RANDOM_PEOPLE), detectable=detectable
    )


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """How often guesses are right: ``successes`` of ``guesses``.

    successes: number of right guesses, not whole where parts of guesses are counted
    guesses: number of guesses
    scale: factor of the share, where only one in ``scale`` successes could be seen
    """

    successes: float
    guesses: int
    scale: float = 1.0

    @property
    def value(self) -> float:
        """Return the success rate, at most 1. ZeroDivisionError without guesses."""
        return min(1.0, self.scale * self.successes / self.guesses)

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the success rate."""
        low, high = score_interval(self.successes / self.guesses, self.guesses)
        return min(self.value, max(0.0, self.scale * low)), max(self.value, min(1.0, self.scale * high))


def residual_risk(attack: float, control: float) -> float:
    """Return R = (a - c) / (1 - c), at most 1. ZeroDivisionError where c is 1."""
    return (attack - control) / (1 - control)


def residual_interval(attack: SuccessRate, control: SuccessRate) -> tuple[float, float]:
    """Return the 95 % limits of R for guesses that are independent of each other (MOVER). ZeroDivisionError where c is 1."""
    p, q = 1 - attack.value, 1 - control.value
    (p_low, p_high), (q_low, q_high) = (tuple(1 - end for end in reversed(rate.interval)) for rate in (attack, control))
    # A scaled rate's interval can reach 1, which would leave the ratio without a limit: one failure more than all guesses is the least that is taken.
    q_low = min(q, max(q_low, 1 / (control.guesses + 1)))
    under = (p * q) ** 2 - p_low * q_high * (2 * p - p_low) * (2 * q - q_high)
    above = (p * q) ** 2 - p_high * q_low * (2 * p - p_high) * (2 * q - q_low)
    low = p_low * (2 * p - p_low) / (p * q + math.sqrt(max(0.0, under))) if p else 0.0
    high = (p * q + math.sqrt(max(0.0, above))) / (q_low * (2 * q - q_low))
    return 1 - max(high, p / q), 1 - min(low, p / q)


@dataclass(frozen=True, slots=True)
class AddedSuccess:
    """What the release adds to guesses about each group: the mean difference with the release less without it, and its variance.

    members, controls: mean differences
    spread: standard error of the one less the other
    p_value: that of a larger difference by permuted people; None where it is not known
    reach: how far the limits of the added risk are below and above it; None where they follow from the spread
    """

    members: float
    controls: float
    spread: float
    p_value: float | None = None
    reach: tuple[float, float] | None = None

    @classmethod
    def from_differences(cls, own: Floats, others: Floats, rng: np.random.Generator) -> AddedSuccess | None:
        """Return the added success from each person's chance to be guessed right with the release less without: (n,) and (c,); None
        without people or controls.
        """
        if not len(own) or not len(others):
            return None
        means = [float(np.mean(np.sort(one))) for one in (own, others)]
        # one person more who differs: no interval is without width because nobody of a few differs
        variances = [
            (float(np.sum(np.sort((one - mean) ** 2))) + 1) / len(one) ** 2
            for one, mean in zip((own, others), means, strict=True)
        ]
        return cls(means[0], means[1], math.sqrt(sum(variances)), exact_p_value(own, others, rng))


@dataclass(frozen=True, slots=True)
class AttackResult:
    """Success rates of an attack on the release's own records, without the release, and on control records.

    attack: on the records that the release was made of
    baseline: without the release; None if not measured
    control: on control records
    limits: of the residual risk where the guesses are not independent of each other; None for ``residual_interval``
    p_value: that of ``sfumato.engine.adversary.permuted``; an interval does not exclude 0 from above where it finds nothing
    exact: whether the attack has a p-value
    gain: what the release adds for both groups; None where it is not known
    """

    attack: SuccessRate
    baseline: SuccessRate | None
    control: SuccessRate
    limits: tuple[float, float] | None = None
    p_value: float | None = None
    exact: bool = True
    added_success: AddedSuccess | None = None

    def estimates(self, target: str = "", reason: str = "", **params: Any) -> tuple[Estimate, ...]:
        """Return the estimates that ``attack_outputs`` declares, of one ``target`` and with these ``params``, with one ``reason``.

        The baseline of the attack's success is the one without the release; that of the excess is 0.
        """
        base = None if self.baseline is None or not self.baseline.guesses else self.baseline.value

        def estimate(name: str, value: float, ends: Range, baseline: float | None = None) -> Estimate:
            return Estimate(name, value, target, ends[0], ends[1], baseline, reason=reason, params=params)

        def rate_estimate(name: str, rate: SuccessRate | None, why: str, baseline: float | None = None) -> Estimate:
            if rate is None or not rate.guesses:
                return Estimate.not_computed(name, why, target, **params)
            return estimate(name, rate.value, rate.interval, baseline)

        count = estimate("guesses", float(self.attack.guesses), (None, None))
        return (
            rate_estimate("attack_success", self.attack, reason or NO_GUESS, base),
            rate_estimate("baseline_success", self.baseline, "there is no guess to make without the release"),
            rate_estimate("control_success", self.control, reason or NO_GUESS),
            self.excess_estimate(target, reason, params),
            self._detectable_excess_estimate(target, reason, params),
            count,
            self.added_risk_estimate(target, reason, params),
            self._detectable_added_estimate(target, reason, params),
            *((self._p_value_estimate(target, reason, params),) if self.exact else ()),
        )

    def _p_value_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        if not self.attack.guesses or not self.control.guesses:
            return Estimate.not_computed("excess_p_value", reason or NO_GUESS, target, **params)
        if self.p_value is None:
            return Estimate.not_computed("excess_p_value", reason or NOTHING_LEFT, target, **params)
        return Estimate("excess_p_value", self.p_value, target, reason=reason, params=params)

    def _detectable_excess_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the smallest excess that stands out: by the spread of the limits where there are some, else of independent guesses."""
        if not self.attack.guesses or not self.control.guesses or self.control.value >= 1:
            why = reason or (NO_GUESS if not self.attack.guesses or not self.control.guesses else NOTHING_LEFT)
            return Estimate.not_computed("detectable_excess", why, target, **params)
        value = (
            detectable_excess(self.control.value, self.attack.guesses, self.control.guesses)
            if self.limits is None
            else detectable_excess_from_error((self.limits[1] - self.limits[0]) / (2 * Z_95))
        )
        return Estimate("detectable_excess", value, target, reason=reason, params=params)

    def excess_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the residual risk with its limits and the baseline 0, as the output ``excess_risk``."""
        if not self.attack.guesses or not self.control.guesses:
            return Estimate.not_computed("excess_risk", reason or NO_GUESS, target, **params)
        if self.control.value >= 1:
            return Estimate.not_computed("excess_risk", NOTHING_LEFT, target, **params)
        value = residual_risk(self.attack.value, self.control.value)
        low, high = self.limits or residual_interval(self.attack, self.control)
        if self.p_value is not None and self.p_value > (1 - LEVEL) / 2:
            low = min(low, 0.0)
        low, high = min(low, value), min(1.0, max(high, value))
        return Estimate("excess_risk", value, target, low, high, 0.0, reason=reason, params=params)

    def _reason_without_added_risk(self, reason: str) -> str:
        """Return why no added risk can be computed; empty where it can."""
        if not self.attack.guesses or not self.control.guesses:
            return reason or NO_GUESS
        if self.control.value >= 1:
            return NOTHING_LEFT
        return "" if self.added_success is not None else NO_ADDED_SUCCESS

    def added_risk_estimate(self, target: str, reason: str, params: dict[str, Any]) -> Estimate:
        """Return the difference of differences with its limits and the baseline 0, as the output ``added_risk``."""
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
        """Return the smallest added risk that stands out of the spread of the differences."""
        if why := self._reason_without_added_risk(reason):
            return Estimate.not_computed(DETECTABLE_ADDED, why, target, **params)
        assert self.added_success is not None
        value = detectable_excess_from_error(self.added_success.spread / (1 - self.control.value))
        return Estimate(DETECTABLE_ADDED, value, target, reason=reason, params=params)


def combine_attacks(rows: Sequence[Row], records: int | None = None) -> list[Row]:
    """Average the rows of all datasets: all are attacked with the same records, so that what these are by chance does not become less with
        more datasets.

    Of several p-values twice the mean is one, however they depend on each other (Rüschendorf 1982; Vovk & Wang 2020, Biometrika 107(4)).
    """
    several = Counter((row.series, row.dataset) for row in rows if row.value is not None)
    return [
        replace(row, value=min(1.0, 2 * row.value), lower=None, upper=None)
        if row.measure == "excess_p_value" and row.value is not None and several[row.series, row.dataset] > 1
        else row
        for row in average_with_intervals(rows, records)
    ]
