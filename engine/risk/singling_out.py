"""Singling out: are there predicates, made from the release, that hold of exactly one of the people it was made of?

The intruder makes predicates that hold of exactly one released record (``_predicates``), each a guess that exactly one of the people is so. A guess is
right where it holds of exactly one confidential record. A predicate that is rare enough singles somebody out by chance: what counts is
how much oftener guesses are right of these people than of people whom the release has never seen (Giomi et al. 2022, §3).

**Controls of another number.** How many records a predicate singles out hangs on how many there are. So a control is looked at where it would stand:
n' = min(n, n_c) of the n confidential records, drawn at random, give place to n' controls, and a guess is right of controls where it holds of exactly one
record of this table and that is a control. A release that has nothing to do with the people singles out any n' of them as often,

    c = n / n' * 1/N * sum over the N predicates of  P(1 | k_c) * h(k_t),     h(k) = product over i < k of (n' - i) / (n - i)

in expectation equal to a, whatever the share that was held out; k_t and k_c are how many confidential and how many control records a predicate holds
of, h that none of the former is among the n - n' that stay, P(1 | k_c) that one of the latter is among n' of the n_c. Both are exact averages over all such draws. With as many controls as records c is
the share of the predicates that hold of exactly one control.

**The interval of the excess.** Predicates are not independent: ``age >= 89`` and ``age >= 90`` single out the same person. A release that has nothing to do
with the people makes no difference between them and controls, so whom of all one calls a control may be dealt anew: the spread of the residual
risk over such deals is that of chance, with all that predicates share, and its limits are the estimate less the quantiles of the deals. Where so few
predicates are right that deals say nothing, they are as wide as for independent guesses at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import hypergeom

from ..arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, Declined, Offer, drafts
from ..methods.registry import method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ._attack import (
    WITHOUT_CONTROLS,
    AttackResult,
    Rate,
    attack_outputs,
    combined,
    excess_limit,
    residual_interval,
    residual_risk,
)
from ._predicates import Predicates, guessed, multivariate, tables_of_numbers, univariate

TRIES = 10
"""Multivariate predicates that are tried for each that is wanted."""
DEALS = 1000
FEW = 10
"""With fewer right guesses than this, of people and controls together, deals say too little."""
LARGEST = 40
"""A predicate that holds of more records, of as many confidential ones and controls, singles nobody out in any deal (40 / 2^40)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SinglingOutSpec(Spec):
    """Of what predicates are made, and how many."""

    variables: Annotated[
        tuple[str, ...],
        Param(
            "variables that predicates speak of; left out, all but identifiers",
            names="variables",
            told=True,
        ),
    ] = ()
    most: Annotated[int, Param("most predicates of a kind", ge=1, le=10_000)] = 1000
    clauses: Annotated[int, Param("variables of a multivariate predicate", ge=2, le=20)] = 3
    by_variable: Annotated[bool, Param("also the univariate predicates of each variable alone")] = False

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> SinglingOutSpec:
        """All variables but identifiers, where none are named."""
        names = self.variables or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER)
        return SinglingOutSpec(variables=names, most=self.most, clauses=self.clauses, by_variable=self.by_variable)

    def check(self, schema: Schema, place: str) -> None:
        """BadInput where a variable is named twice, or there is none."""
        super(SinglingOutSpec, self).check(schema, place)
        names = self.for_release(schema, ()).variables
        for i, name in enumerate(names):
            if name in names[:i]:
                raise BadInput(f"{place}.variables[{i}]", f'"{name}" is listed twice')
        if not names:
            raise BadInput(f"{place}.variables", "there is no variable but identifiers; name some")


def _offer(case: Case) -> Offer | Declined | None:
    """Whether the release says what is true of one person alone."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return Declined(WITHOUT_CONTROLS)
    return Offer(
        "whether descriptions found in the release fit exactly one person of the data, oftener than one of the others",
        limits=(excess_limit("singling out"),),
    )


@method(
    "Singling out",
    spec=SinglingOutSpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), arXiv 2211.10459, §3 and §4.2; Cohen & Nissim (2020), PNAS 117(15)",
    outputs=attack_outputs("predicates", "hold of exactly one", ("singling out",)),
    confidential=True,
    controls=True,
    combine=combined,
)
@drafts(_offer)
def singling_out(confidential: Microdata, released: Microdata, spec: SinglingOutSpec, run: Run) -> Measure:
    """Univariate and multivariate predicates that hold of one released record each, against people, controls, and predicates made at random.

    Raises NotComputable where all variables are generalised.
    """
    controls = confidential.controls
    assert controls is not None
    names = sorted(name for name in spec.variables if _comparable(name, confidential, released))
    if not names:
        raise NotComputable(
            "every variable is generalised: no predicate on labels or means of levels can be held against a value"
        )
    remark = "" if len(names) == len(spec.variables) else f"only of {', '.join(names)}: the others are generalised"
    people, others, shown = tables_of_numbers((confidential, controls, released), names)
    kinds = [confidential.schema[name].kind for name in names]
    ordered = np.array([kind in (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE) for kind in kinds])
    whole = np.array([kind in (Kind.COUNT, Kind.DATE) for kind in kinds])
    levels = np.array(
        [0 if own else len(controls.column(name).cat.categories) for name, own in zip(names, ordered, strict=True)]
    )
    rngs = run.rng.spawn(4)
    found: list[Estimate] = []
    made = {"univariate": univariate(shown, ordered, spec.most, rngs[0])}
    if len(names) > 1:
        made["multivariate"] = multivariate(shown, ordered, spec.clauses, spec.most, TRIES * spec.most, rngs[1])
    for (kind, predicates), rng in zip(made.items(), rngs[2:], strict=False):
        tried = _Tried.of(predicates, people, others)
        base = guessed(predicates, others, whole, levels, rng)
        by_chance = base.singles_out(people)
        every = np.ones(len(predicates), dtype=np.bool_)
        why = remark or _ruled(predicates, names) if kind == "univariate" else remark
        found += tried.result(every, by_chance, rng).estimates(reason=why or _none(predicates), kind=kind)
        if kind == "univariate" and spec.by_variable:
            for position, name in enumerate(names):
                own = predicates.variable[:, 0] == position
                why = "" if own.any() else "no value of it is one released record's alone"
                found += tried.result(own, by_chance, rng).estimates(name, why, kind=kind)
    return Measure(tuple(found))


def _comparable(name: str, confidential: Microdata, released: Microdata) -> bool:
    """Whether a variable is released as values, neither as labels nor as means of level codes."""
    alike = released.schema[name].kind.has_levels == confidential.schema[name].kind.has_levels
    return alike and name not in released.generalised


def _none(predicates: Predicates) -> str:
    if not len(predicates):
        return "no predicate holds of exactly one released record"
    return f"only {len(predicates)} predicates hold of exactly one released record" if len(predicates) < FEW else ""


def _ruled(predicates: Predicates, names: list[str]) -> str:
    """That most univariate predicates are of one variable, where others have any; empty otherwise."""
    counts = np.bincount(predicates.variable[:, 0], minlength=len(names))
    first = int(counts.argmax())
    if len(names) < 2 or counts[first] * 2 <= len(predicates):
        return ""
    return f"{counts[first]:,} of {len(predicates):,} predicates are of {names[first]}"


@dataclass(frozen=True, eq=False)
class _Tried:
    """Of how many of the n people and the n_c controls each predicate holds, (P,) both; and which of all records, numbered from 0, (P, r), of those that hold of few."""

    people: int
    controls: int
    of_people: Integers
    of_controls: Integers
    pairs: csr_array

    @classmethod
    def of(cls, predicates: Predicates, people: Floats, controls: Floats) -> _Tried:
        n, others = len(people), len(controls)
        most = LARGEST * max(1, -(-others // n))
        of_people, first, record = predicates.matches(people, most)
        of_controls, second, other = predicates.matches(controls, most)
        few = of_people + of_controls <= most
        which = np.concatenate([first, second])
        at = np.concatenate([record, other + n])[few[which]]
        records, place = np.unique(at, return_inverse=True)
        pairs = csr_array(
            (np.ones(len(at), dtype=np.int32), (which[few[which]], place)), shape=(len(predicates), len(records))
        )
        return cls(n, others, of_people, of_controls, pairs)

    def result(self, some: NDArray[np.bool_], by_chance: NDArray[np.bool_], rng: np.random.Generator) -> AttackResult:
        """The attack by some of the predicates (P,)."""
        total, same = int(some.sum()), min(self.people, self.controls)
        right = int((self.of_people[some] == 1).sum())
        of_controls = float(self._control_terms(self.of_people[some], self.of_controls[some]).sum())
        attack, control = Rate(right, total), Rate(of_controls, total, self.people / same)
        baseline = Rate(int(by_chance[some].sum()), total)
        if not total or control.value >= 1:
            return AttackResult(attack, baseline, control)
        risk = residual_risk(attack.value, control.value)
        low, high = risk - np.quantile(self._dealt(some, rng), (0.975, 0.025))
        if right + of_controls < FEW:
            alone = residual_interval(attack, Rate(control.value * total, total))
            low, high = min(low, alone[0]), max(high, alone[1])
        return AttackResult(attack, baseline, control, (float(low), float(high)))

    def _dealt(self, some: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """The residual risk in so many deals of who is a control, (DEALS,)."""
        pairs, records = self.pairs[np.flatnonzero(some)], self.pairs.shape[1]
        held, total, scale = (
            np.asarray(pairs.sum(axis=1)).ravel(),
            int(some.sum()),
            self.people / min(self.people, self.controls),
        )
        found = np.zeros(DEALS)
        step = max(1, 4_000_000 // max(1, records, total))
        among = (
            rng.hypergeometric(self.controls, self.people, records, DEALS)
            if records
            else np.zeros(DEALS, dtype=np.int64)
        )
        for start in range(0, DEALS, step):
            here = among[start : start + step]
            order = np.argsort(rng.random((len(here), records)), axis=1)
            control = np.zeros(order.shape, dtype=np.int32)
            np.put_along_axis(control, order, np.arange(records) < here[:, None], axis=1)
            of_controls = pairs @ control.T
            of_people = held[:, None] - of_controls
            success = (of_people == 1).sum(axis=0) / total
            beside = np.minimum(1.0, scale * self._control_terms(of_people, of_controls).sum(axis=0) / total)
            left = np.maximum(1 - beside, 1 / total)
            found[start : start + step] = np.where(beside < 1, (success - beside) / left, 0.0)
        return found

    def _control_terms(self, of_people: Integers, of_controls: Integers) -> Floats:
        """P(1 | k_c) h(k_t) of each predicate: how probably it singles out a control that stands among the people, of their shape."""
        same = min(self.people, self.controls)
        one = _chosen(self.controls, of_controls, same, 1)
        none = _chosen(self.people, of_people, self.people - same, 0)
        return np.asarray(one * none)


def _chosen(records: int, marked: Integers, drawn: int, wanted: int) -> Floats:
    """The probability that ``drawn`` of so many ``records``, without replacement, have exactly ``wanted`` of the ``marked`` ones, in the shape of these."""
    table = hypergeom.pmf(wanted, records, np.arange(int(marked.max(initial=0)) + 1), drawn)
    found: Floats = table[marked]
    return found
