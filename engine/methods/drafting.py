"""Offers of methods for the draft of a plan: for which variables and goals, with which settings, and why.

A method takes part in drafts by a second decorator, under its own:

    @measure_method("My measure", ...)
    @drafts(offer)
    def my_measure(...): ...

``offer`` is given a ``Case`` and returns an ``Offer``, a ``DeclinedOffer`` with the reason, or None where the case does
not concern it. Of the synthesis or anonymisation methods for the same task, the draft takes the one of the highest
``rank`` that accepts the data; of the measures it takes all. Methods of other packages take part in the same way, below
ours of the same rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..data.schema import Kind, Role
from .outputs import Question
from .registry import Method
from .table_profile import TableProfile, VariableProfile

Want = Literal["synthesis", "anonymisation", "evaluation"]
"""What a plan is wanted for: datasets drawn from models, a table whose records stand in classes, or an evaluation of existing files."""

ALTERNATIVE, GENERAL, SUITED = -10, 0, 10
"""Ranks: a search may try it in place of another; it can do any variable of its kinds; this one looks as its model says."""
OURS = "a choice of ours; no rule of the field has a number"
"""The source of a limit that has no other."""
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Case:
    """Request for the draft of a plan.

    want: goal of the plan
    table: profile of the data
    known: quasi-identifiers
    sensitive: sensitive variables
    released: variables that are synthesised or changed
    m: number of datasets
    holdout: whether records are held out as controls of attacks
    controls: number of held-out records, where that is known
    audit: whether to draft an audit that carries out the plan many times
    k, l, p, t: limits of an anonymisation; None are not requested
    target: variable to synthesise in a step; without one, joint methods are asked for one step that makes all
        ``released`` variables
    predictors: variables that the target may depend on, the most informative first
    hierarchies: trees proposed for quasi-identifiers of an anonymisation
    widths: intervals of numerical quasi-identifiers, as recipes write them
    epsilon: privacy budget where the plan is to be differentially private
    linked: False where synthetic records correspond to no confidential record
    draws_units: whether new units are drawn, with all their records
    recoded: kept variables that a public rule makes coarser
    """

    want: Want
    table: TableProfile
    known: tuple[str, ...]
    sensitive: tuple[str, ...]
    released: tuple[str, ...]
    m: int = 5
    holdout: bool = False
    controls: int | None = None
    audit: bool = False
    k: int = 5
    l: float | None = None  # noqa: E741
    p: int | None = None
    t: float | None = None
    target: VariableProfile | None = None
    predictors: tuple[str, ...] = ()
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    widths: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    linked: bool = True
    draws_units: bool = False
    recoded: tuple[str, ...] = ()

    @property
    def compared_variables(self) -> tuple[str, ...]:
        """Return the names of all variables except identifiers."""
        return tuple(seen.name for seen in self.table if not seen.variable.role.is_identifier)

    @property
    def has_units(self) -> bool:
        """Return whether a variable numbers units of several records."""
        return any(seen.variable.role is Role.UNIT for seen in self.table)

    @property
    def kept_variables(self) -> tuple[str, ...]:
        """Return the variables that are released unchanged."""
        return tuple(name for name in self.compared_variables if name not in self.released)

    @property
    def guessed_variables(self) -> tuple[str, ...]:
        """Return the variables that an intruder wants to learn.

        These are the sensitive ones, or else the released ones that are not known.
        """
        return self.sensitive or tuple(name for name in self.released if name not in self.known)


@dataclass(frozen=True, slots=True)
class OfferedLimit:
    """Threshold for an output of the offered method.

    output: name of the output
    bound, limit: kind and value of the threshold
    source: where the limit comes from
    question: question of the release check whose limit replaces this one
    target, params: of the rows that it applies to
    detectable: smallest value that the records of the case would detect with 80 % power; a smaller limit cannot be
        decided
    baseline: value without a leak; limits of the release check are shares of the way from it to 1
    extra: whether to set it only if the hold-out that the other limits need can decide it; no hold-out is enlarged for
        it
    """

    output: str
    bound: Literal["max", "min", "max_ratio", "max_increase"]
    limit: float
    source: str = OURS
    question: Question | None = None
    target: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    detectable: float | None = None
    baseline: float = 0.0
    extra: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """Step that a method offers, with its reasons.

    why: reason for the method and its settings
    settings: parameters of the step
    rank: preference among methods for the same task
    limits: thresholds on its outputs
    missed: parts of the request that it does not fulfil
    finishes: whether it completes an anonymisation in which an earlier step left records that break the limits
    unfinished: settings with which the step is such an earlier one
    """

    why: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rank: int = GENERAL
    limits: tuple[OfferedLimit, ...] = ()
    missed: tuple[str, ...] = ()
    finishes: bool = False
    unfinished: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclinedOffer:
    """Reason why a method that belongs to a case cannot be used in it."""

    reason: str


Offers = Callable[[Case], Offer | DeclinedOffer | None]
_ATTRIBUTE, _RATE = "__sfumato_drafts__", "__sfumato_rate__"


def drafts(offer: Offers, seconds: float | None = None, memory: float | None = None) -> Callable[[F], F]:
    """Decorate a method so that it takes part in drafts; placed below the method's own decorator.

    A method of another package states the measured cost of one task (a fit, a dataset measured, an anonymisation, a
    block): ``seconds`` for 10,000 records of 10 variables, and bytes of ``memory`` for each value of the table. The
    costs of ours are in ``engine.methods.measured_rates``.
    """

    def attach(func: F) -> F:
        """Store the offer and the rate on the function."""
        setattr(func, _ATTRIBUTE, offer)
        setattr(func, _RATE, (seconds, memory))
        return func

    return attach


def declared_rate(method: Method) -> tuple[float | None, float | None]:
    """Return the seconds and the bytes of memory that a method declares with ``drafts``; None where not measured."""
    found: tuple[float | None, float | None] = getattr(method.func, _RATE, (None, None))
    return found


def request_offer(method: Method, case: Case) -> Offer | DeclinedOffer | None:
    """Return the method's offer for the case; None where it takes no part in drafts."""
    offer: Offers | None = getattr(method.func, _ATTRIBUTE, None)
    return None if offer is None else offer(case)


def suggest_radius(seen: VariableProfile) -> tuple[int | float | str, str] | None:
    """Return a match radius for a number or date, with the reason; None where values have to be equal.

    It is a share where values are above 0 and spread over orders of magnitude, else a round number of about a fiftieth
    of the spread.
    """
    kind = seen.variable.kind
    if kind.has_levels or not seen.spread or (kind is Kind.COUNT and seen.distinct <= 20):
        return None
    if kind is not Kind.DATE and seen.smallest is not None and seen.smallest > 0 and seen.long_tailed:
        return "5%", "5 % of the value, since values differ by orders of magnitude (Guo & Hu: 5 % of a price)"
    size = _round_to_125(seen.spread / 50)
    if kind in (Kind.COUNT, Kind.DATE):
        size = max(1, round(size))
    unit = " days" if kind is Kind.DATE else ""
    return (
        size,
        f"{size:g}{unit}, about a fiftieth of the span of the middle nine tenths of the values ({OURS.split(';', maxsplit=1)[0]})",
    )


DRAFTED_BINS, FEW_VALUES = 10, 20


def suggest_bins(case: Case, names: Sequence[str], *, as_they_are: bool = True) -> dict[str, str]:
    """Return bins of equal counts for the numbers and dates among some variables, as recipes write them.

    With ``as_they_are``, whole numbers of few distinct values remain categories of their own. Do not request this where
    the records must not decide it, as under a privacy budget.
    """
    seen = [case.table[name] for name in names]
    return {
        one.name: "width 1"
        if as_they_are and one.variable.kind is Kind.COUNT and one.distinct <= FEW_VALUES
        else f"{DRAFTED_BINS} equal count"
        for one in seen
        if not one.variable.kind.has_levels
    }


def suggest_radii(case: Case, names: tuple[str, ...]) -> tuple[dict[str, int | float | str], str]:
    """Return radii for these variables, as recipes write them, with the reasons in one sentence.

    The result is empty where all must be equal.
    """
    found = {name: given for name in names if (given := suggest_radius(case.table[name])) is not None}
    said = "; ".join(f"{name} {why}" for name, (_, why) in found.items())
    return {name: value for name, (value, _) in found.items()}, f"Alike is: {said}." if said else ""


def suggest_hierarchies(case: Case) -> tuple[dict[str, Any], str]:
    """Return the proposed trees as a setting, and a remark on them; both empty without any."""
    if not case.hierarchies:
        return {}, ""
    return {
        "hierarchies": dict(case.hierarchies)
    }, f"; the trees of {', '.join(case.hierarchies)} are proposals, there to be edited"


def _round_to_125(number: float) -> float:
    """Return a number rounded down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** int(f"{number:e}".partition("e")[2])
    # A multiple of the power of ten can exceed its decimal value by rounding.
    step = max(step for step in (1, 2, 5) if step * power <= number * 1.0000001)
    found = step * power
    return int(found) if found >= 1 else float(f"{found:.1g}")
