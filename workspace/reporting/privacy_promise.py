"""What a release promises of privacy, in words for who has never heard of epsilon: said here, shown in every public document.

Nothing in it follows from the confidential data: the recipe's epsilons, and what kinds of things are outside the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.wording import count_noun

from .words import number

LARGEST_FACTOR = 12.0
"""Above it exp(epsilon) is only a large number."""


@dataclass(frozen=True, slots=True)
class SampleCost:
    """The ``epsilon`` that so many ``records`` cost which a step draws together: one, or a block."""

    epsilon: float
    records: int


@dataclass(frozen=True, slots=True)
class PrivacyPromise:
    """The epsilon of all datasets together, for one record more or less and for one that is changed; None where there is none.

    It holds but for a chance of ``delta``. ``samples`` are what single draws cost, where there is one; ``reasons`` why there is none; ``sampled``: the confidential records were
    sampled from a file, or others were held out. It is of a person of at most ``person_records`` records; ``bounded``: no more of anybody's were counted.
    """

    epsilon: float | None
    substitution: float | None
    samples: tuple[SampleCost, ...] = ()
    reasons: tuple[str, ...] = ()
    sampled: bool = False
    delta: float = 0.0
    person_records: int = 1
    bounded: bool = False


def promise(privacy: PrivacyPromise) -> list[str]:
    """What is promised, sentence by sentence: the release, a draw, what the proof covers, what it does not."""
    if privacy.epsilon is None or privacy.substitution is None:
        why = f": {'; '.join(privacy.reasons)}" if privacy.reasons else ""
        return [
            f"No guarantee of differential privacy is given{why}.",
            "Noise alone is no guarantee: do not take these data for private because values were drawn with it.",
        ]
    epsilon = upwards(privacy.epsilon)
    return [
        f"These data are differentially private with epsilon {epsilon}{_at_delta(privacy)}, all datasets together: had any one {_whose(privacy)} not been among the "
        f"confidential data, no datasets would have been more than {_factor(privacy.epsilon)} times as likely or as unlikely.",
        *_but_for(privacy),
        f"Had a record been another one, epsilon is {upwards(privacy.substitution)}.",
        *map(_drawn, dict.fromkeys(privacy.samples)),
        "An epsilon of 0.1 promises that hardly anything can be learned of one person, one of 1 that little can; from 10 on the promise "
        "alone protects nobody.",
        "It is proved for the counts that values were drawn from, and so for all that anybody computes from the datasets, whatever else they know.",
        f"The proof does not cover {'; '.join(_outside(privacy))}.",
    ]


def _at_delta(privacy: PrivacyPromise) -> str:
    return f" and delta {upwards(privacy.delta)}" if privacy.delta else ""


def _but_for(privacy: PrivacyPromise) -> Sequence[str]:
    if not privacy.delta:
        return ()
    return (
        f"That holds but for a chance of delta, {upwards(privacy.delta)}; noise is drawn once, and any number of datasets and records costs no more.",
    )


def _whose(privacy: PrivacyPromise) -> str:
    return "record" if privacy.person_records == 1 and not privacy.bounded else "person's records"


def _several(privacy: PrivacyPromise) -> Sequence[str]:
    """What is not promised to people of several records: nothing is left out where no more than so many of anybody's were counted."""
    if privacy.bounded:
        return ()
    if privacy.person_records == 1:
        return ("a person who has several records, each of which costs as much",)
    return (f"a person who has more than {privacy.person_records:,} records, which nothing has looked at",)


def _outside(privacy: PrivacyPromise) -> Sequence[str]:
    return (
        "what holds of everybody alike, and so of each person, in the data or not",
        *_several(privacy),
        "other releases of the same people: theirs adds to this one",
        "what the plan says, such as levels and bounds, where whoever wrote it took that from these data",
        "how the records were read from their file",
        "that there is a release: data that do not fit the plan are refused; nor the choice of this one among others that were tried",
        *(("which records of a larger file were taken: it is of those that were",) if privacy.sampled else ()),
    )


def _drawn(sample: SampleCost) -> str:
    if sample.records == 1:
        return f"Each record was drawn at an epsilon of {upwards(sample.epsilon)}; what is drawn adds up."
    return (
        f"A block of {count_noun(sample.records, 'record')}, drawn together, costs an epsilon of {upwards(sample.epsilon)}, and a single record of it "
        "no less; what is drawn adds up, block by block."
    )


def _factor(epsilon: float) -> str:
    if epsilon > LARGEST_FACTOR:
        return f"exp({upwards(epsilon)})"
    return f"{upwards(math.exp(epsilon))} (exp of epsilon)"


def upwards(value: float) -> str:
    """Four significant digits, never less than the value: a promise is not rounded down."""
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return number(math.ceil(round(value / step, 6)) * step)
