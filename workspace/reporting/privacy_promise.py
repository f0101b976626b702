"""Privacy guarantee of a release in plain sentences, the same in every public document.

The text depends on the recipe only, not on the confidential data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engine.wording import agreeing_word, count_noun

from .words import number

LARGEST_FACTOR = 12.0
"""Epsilon above which the factor exp(epsilon) is not written out, since it is only a large number."""
PROVED = "It is proved for the counts that values were drawn from, and so for all that anybody computes from the datasets, whatever else they know."


@dataclass(frozen=True, slots=True)
class SampleCost:
    """Cost of drawing ``records`` records together, one record or a block: its ``epsilon``."""

    epsilon: float
    records: int


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """What everything that was released of the same people costs together.

    releases: number of releases, this one among them
    epsilon, delta: their sums; None where no proof bounds them
    budget: the most that they may cost; None without a budget
    """

    releases: int
    epsilon: float | None
    delta: float | None
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class PrivacyPromise:
    """Guarantee of differential privacy of all datasets together.

    epsilon: for one record more or less; None without a guarantee
    substitution_epsilon: for one changed record; None without a guarantee
    samples: costs of single draws
    reasons: why there is no guarantee
    sampled: whether the confidential records were sampled from a file, or others were held out
    delta: probability with which the guarantee may fail
    unit_records: largest number of records of a unit that it covers
    unit_noun: what the units are of which at most this number of records was counted, in the plural; empty where nothing
        was cut
    ledger: what everything that was released of the same people costs together; None where it is not known
    packages: packages of other authors, with their versions, whose accounts it repeats
    """

    epsilon: float | None
    substitution_epsilon: float | None
    samples: tuple[SampleCost, ...] = ()
    reasons: tuple[str, ...] = ()
    sampled: bool = False
    delta: float = 0.0
    unit_records: int = 1
    unit_noun: str = ""
    ledger: LedgerSum | None = None
    packages: tuple[str, ...] = ()


def promise_sentences(privacy: PrivacyPromise) -> list[str]:
    """Return the guarantee in sentences: for the release, for a draw, what the proof covers and what it does not."""
    if privacy.epsilon is None or privacy.substitution_epsilon is None:
        why = f": {'; '.join(privacy.reasons)}" if privacy.reasons else ""
        return [
            f"No guarantee of differential privacy is given{why}.",
            "Noise alone is no guarantee: do not take these data for private because values were drawn with it.",
        ]
    epsilon = round_up_text(privacy.epsilon)
    return [
        *_unchecked_sentences(privacy),
        f"These data are differentially private with epsilon {epsilon}{_delta_clause(privacy)}, all datasets together: had {_protected_unit(privacy)} not been among the "
        f"confidential data, no datasets would have been more than {_likelihood_factor(privacy.epsilon)} times as likely or as unlikely.",
        *_delta_sentences(privacy),
        *_bound_sentences(privacy),
        f"Had {_replaced_unit(privacy)}, epsilon is {round_up_text(privacy.substitution_epsilon)}.",
        *_ledger_sentences(privacy.ledger),
        *map(_sample_cost_sentence, dict.fromkeys(privacy.samples)),
        "An epsilon of 0.1 promises that hardly anything can be learned of one person, one of 1 that little can; from 10 on the promise "
        "alone gives no protection.",
        *(() if privacy.packages else (PROVED,)),
        f"The proof does not cover {'; '.join(_proof_exclusions(privacy))}.",
    ]


def _ledger_sentences(ledger: LedgerSum | None) -> Sequence[str]:
    """Return what all releases of the same people cost together, and what is left of their budget; none where unknown."""
    if ledger is None:
        return ()
    others = ledger.releases - 1
    who = (
        f"This release and {count_noun(others, 'other')} of the same people"
        if others
        else "Of these people nothing else"
    )
    if ledger.epsilon is None:
        return (f"{who} have no epsilon in all: no proof covers each of them.",) if others else ()
    if not others:
        sentences = [f"{who} was released from the workspace of this release."]
    else:
        delta = f" and delta {round_up_text(ledger.delta)}" if ledger.delta else ""
        sentences = [f"{who} have epsilon {round_up_text(ledger.epsilon)}{delta} in all."]
    if ledger.budget is not None:
        left = max(0.0, ledger.budget - ledger.epsilon)
        sentences.append(f"Their budget is an epsilon of {ledger.budget:g}; {left:.4g} of it is left.")
    return sentences


def _delta_clause(privacy: PrivacyPromise) -> str:
    """Return the delta of the guarantee as a clause; empty where it is 0."""
    return f" and delta {round_up_text(privacy.delta)}" if privacy.delta else ""


def _delta_sentences(privacy: PrivacyPromise) -> Sequence[str]:
    """Return the sentence about delta; none where it is 0."""
    if not privacy.delta:
        return ()
    return (
        f"That holds but for a chance of delta, {round_up_text(privacy.delta)}; noise is drawn once, and any number of datasets and records costs no more.",
    )


def _unchecked_sentences(privacy: PrivacyPromise) -> Sequence[str]:
    """Return whose claim it is where the account of a package counts."""
    if not privacy.packages:
        return ()
    several = len(privacy.packages) > 1
    return (
        f"All that follows repeats the account of the {'packages' if several else 'package'} {', '.join(privacy.packages)}. "
        f"Sfumato has not checked {'these accounts' if several else 'this account'}.",
    )


def _protected_unit(privacy: PrivacyPromise) -> str:
    """Return what the guarantee protects: a record, or all records of a unit."""
    if privacy.unit_noun:
        return f"all records of any one of the {privacy.unit_noun}"
    return "any one record" if privacy.unit_records == 1 else "any one person's records"


def _replaced_unit(privacy: PrivacyPromise) -> str:
    """Return the change that the guarantee for a replaced record or unit is of."""
    return (
        "a record been another one"
        if privacy.unit_records == 1 and not privacy.unit_noun
        else "all of them been others"
    )


def _bound_sentences(privacy: PrivacyPromise) -> Sequence[str]:
    """Return how many records of a unit were counted; none where the release is of records, or nothing was cut."""
    if not privacy.unit_noun:
        return ()
    counted = f"{count_noun(privacy.unit_records, 'record')} {agreeing_word(privacy.unit_records, 'was', 'were')}"
    return (f"Of each of the {privacy.unit_noun} at most {counted} counted, and none that does not say whose it is.",)


def _uncovered_people(privacy: PrivacyPromise) -> Sequence[str]:
    """Return which people with several records are not covered; none where the number of records was bounded."""
    if privacy.unit_noun:
        return ()
    if privacy.unit_records == 1:
        return ("a person who has several records, each of which costs as much",)
    return (f"a person who has more than {privacy.unit_records:,} records, which nothing has looked at",)


def _proof_exclusions(privacy: PrivacyPromise) -> Sequence[str]:
    """Return what the proof does not cover."""
    return (
        "what holds of everybody alike, and so of each person, in the data or not",
        *_uncovered_people(privacy),
        "other releases of the same people: theirs adds to this one",
        "what the plan says, such as levels and bounds, where whoever wrote it took that from these data",
        "how the records were read from their file",
        "that there is a release: data that do not fit the plan are refused; nor the choice of this one among others that were tried",
        *(("which records of a larger file were taken: it is of those that were",) if privacy.sampled else ()),
    )


def _sample_cost_sentence(sample: SampleCost) -> str:
    """Return the cost of a draw in a sentence."""
    if sample.records == 1:
        return f"Each record was drawn at an epsilon of {round_up_text(sample.epsilon)}; what is drawn adds up."
    return (
        f"A block of {count_noun(sample.records, 'record')}, drawn together, costs an epsilon of {round_up_text(sample.epsilon)}, and a single record of it "
        "no less; what is drawn adds up, block by block."
    )


def _likelihood_factor(epsilon: float) -> str:
    """Return the factor exp(epsilon) by which a dataset can become more likely."""
    if epsilon > LARGEST_FACTOR:
        return f"exp({round_up_text(epsilon)})"
    return f"{round_up_text(math.exp(epsilon))} (exp of epsilon)"


def round_up_text(value: float) -> str:
    """Round a number up to four significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    # up, since a guarantee must not promise more than was proved; the inner round removes noise of the division,
    # which would lift an exact value to the next step
    rounded = math.ceil(round(value / step, 6)) * step
    # Three digits, which very small numbers have elsewhere, would round some of them down.
    return f"{rounded:.4g}" if rounded < 1e-4 else number(rounded)
