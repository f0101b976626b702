"""Linkability: whether a release tells that what is known of a person from two places belongs to one person.

An intruder has two disjoint sets of variables of one person, such as demographic ones and others, each from another source, and does not know that
they belong together. For each set the k released records are sought that are nearest in its variables. Where a released record is
among both, the intruder links the two (Giomi, Boenisch, Wehmeyer & Tasnádi 2022, §4.3 and Appendix). No released record has to be that of a person:
the attack needs no pairing of rows, so it answers for shuffled and for fully synthetic releases too.

What is linked of control records, of which no release was made, follows from how the variables go together in general and is no disclosure; what is
linked of the release's own people beyond that is. The baseline links k records picked at random on either side.

Distances are Gower's by ranks. Among records tied with the k-th nearest the missing ones are picked at random; the probability of a link counts.
With S and T the records that are certainly and perhaps among the nearest by the first set, a of T being picked, and S', T' and b those by the
second: where S and S' share a record the link is certain; else, with y of T in S', x of T' in S, and w in T and T',

    P(no link) = sum over j of  C(w, j) C(|T| - y - w, a - j) / C(|T|, a)  *  C(|T'| - x - j, b) / C(|T'|, b)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy.special import gammaln

from ..attacks.density import candidates
from ..attacks.permuted import exact_p
from ..attacks.targets import BOTH, TargetKind, TargetKinds, Vulnerable, vulnerable_rows
from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput
from ..methods.drafting import Case, Declined, Offer, drafts
from ..methods.intruder import Known
from ..methods.levers import IDENTITY
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.gower import Gower
from ..wording import counted
from ._attack import WITHOUT_CONTROLS, AttackResult, Rate, attack_outputs, combined, whole_limits
from ._attacked_records import drawn, of_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkabilitySpec(Spec):
    """The two sets of variables, and how many released records are nearest."""

    known: Annotated[
        Known,
        Variant("variables known of a person from one place; default: the quasi-identifiers that are not in the other"),
    ] = ()
    other: Annotated[
        tuple[str, ...],
        Param(
            "variables known of a person from another place; default: all others but identifiers",
            names="variables",
            told=True,
        ),
    ] = ()
    neighbours: Annotated[int, Param("released records that are nearest in each set of variables", ge=1)] = 1
    records: Annotated[int, Param("most targets of a kind, and most controls; of more, a random sample", ge=1)] = 2000
    people: TargetKinds = BOTH
    vulnerable: Vulnerable = None

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Quasi-identifiers on one side and all others but identifiers on the other, where none are named."""
        known = self.known or tuple(n for n in schema.of_role(Role.QUASI_IDENTIFIER) if n not in self.other)
        other = self.other or tuple(name for name in schema.but_identifiers if name not in known)
        return replace(self, known=known, other=other)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when a side has no variable, or a variable is on both."""
        full = self.for_release(schema, released)
        if not full.known:
            raise BadInput(
                f"{place}.known",
                'nothing is known from the first place; name variables, or give some the role "quasi_identifier"',
            )
        if not full.other:
            raise BadInput(f"{place}.other", "nothing is known from the other place; name variables")
        for name in full.other:
            if name in full.known:
                raise BadInput(f"{place}.other", f'"{name}" is among the known variables')


def _offer(case: Case) -> Offer | Declined | None:
    """Whether people in the data can be linked through the release more often than others."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return Declined(WITHOUT_CONTROLS)
    other = [name for name in case.compared if name not in case.known]
    if not case.known or not other:
        return Declined("all variables are quasi-identifiers, or none is: there are no two sets of variables to link")
    return Offer(
        "whether quasi-identifiers and other variables of people in the data can be linked through the release more often than those of others",
        {"known": list(case.known)},
        limits=whole_limits("linkability", case, 0.05),
    )


@measure_method(
    "Linkability",
    spec=LinkabilitySpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), arXiv 2211.10459, §3.1 and §4.3",
    outputs=attack_outputs("linkage", "guesses", "are linked rightly", ("linkability",), IDENTITY),
    confidential=True,
    controls=True,
    combine=combined,
)
@drafts(_offer)
def linkability(confidential: Microdata, released: Microdata, spec: LinkabilitySpec, run: Run) -> Measure:
    """The attack on people at random and on the most vulnerable. Raises NotComputable where a variable is generalised."""
    assert confidential.controls is not None
    rng, controls = run.for_all, confidential.controls
    kinds: dict[TargetKind, tuple[Integers, Integers]] = {
        "random": (drawn(confidential, spec.records, rng), drawn(controls, spec.records, rng))
    }
    if "vulnerable" in spec.people:
        kinds["vulnerable"] = vulnerable_rows(confidential, controls, spec.vulnerable, spec.records, rng)
    sides = [Gower.of([released], sorted(names)) for names in (spec.known, spec.other)]
    shown = [gower.places(released) for gower in sides]
    k = min(spec.neighbours, len(released))
    found: list[Estimate] = []
    for kind, (own, others) in kinds.items():
        if kind not in spec.people:
            continue
        params = {} if kind == "random" else {"people": kind}
        if not len(others):
            why = "no control record is as vulnerable as the people who are attacked"
            names = (output.name for output in attack_outputs("", "guesses", "", (), ()))
            found += [Estimate.not_computed(name, why, **params) for name in names]
            continue
        rates, chances = list[Rate](), list[Floats]()
        for data, rows in ((confidential, own), (controls, others)):
            some = of_rows(data, rows)
            places = [gower.places(some) for gower in sides]
            near = [_Nearest.of(g, at, table, k) for g, at, table in zip(sides, places, shown, strict=True)]
            chances.append(linked(*near))
            rates.append(Rate(float(np.sum(chances[-1])), len(rows)))
        by_chance = Rate(len(own) * _at_random(k, len(released)), len(own))
        words = f"{counted(len(own), 'record')} and {len(others):,} controls are attacked"
        p_value = exact_p(chances[0], chances[1], rng.spawn(1)[0])
        found += AttackResult(rates[0], by_chance, rates[1], p_value=p_value).estimates(reason=words, **params)
    return Measure(tuple(found))


@dataclass(frozen=True, eq=False)
class _Nearest:
    """Who may be among the k nearest of q people: pairs of a person ``row`` (p,) and a released record ``column`` (p,), ascending by both.

    ``certain`` (p,) says of whom it is sure. ``picked`` (q,) is how many of the other pairs of a person are picked at random.
    """

    row: Integers
    column: Integers
    certain: Booleans
    picked: Integers
    records: int

    @classmethod
    def of(cls, gower: Gower, own: Floats, table: Floats, k: int) -> _Nearest:
        places, which = np.unique(own, axis=0, return_inverse=True)  # people who are alike have the same nearest
        row, column, apart, reach = candidates(gower, places, table, k)
        inside = np.flatnonzero(apart <= reach[row])
        at = inside[np.lexsort((column[inside], row[inside]))]
        start = np.searchsorted(row[at], np.arange(len(places) + 1))
        sizes = np.diff(start)[which.ravel()]
        person = np.repeat(np.arange(len(own)), sizes)
        at = at[np.arange(len(person)) + np.repeat(start[which.ravel()] - np.cumsum(sizes) + sizes, sizes)]
        certain = apart[at] < reach[row[at]]
        return cls(person, column[at], certain, k - np.bincount(person[certain], minlength=len(own)), len(table))


def linked(first: _Nearest, second: _Nearest) -> Floats:
    """The probability that a released record is among the nearest of a person by both sets of variables, (q,)."""
    q = len(first.picked)
    sizes = [np.bincount(one.row[~one.certain], minlength=q) for one in (first, second)]
    mine, others = (one.row * one.records + one.column for one in (first, second))
    _, ours, theirs = np.intersect1d(mine, others, assume_unique=True, return_indices=True)
    sure, also = first.certain[ours], second.certain[theirs]
    both, y, x, w = (
        np.bincount(first.row[ours[some]], minlength=q)
        for some in (sure & also, ~sure & also, sure & ~also, ~(sure | also))
    )
    found = np.empty(q)
    for at in range(q):
        terms = _chances(sizes[0][at], sizes[1][at], first.picked[at], second.picked[at], y[at], x[at], w[at])
        none = 0.0 if both[at] else sum(terms)
        found[at] = min(1.0, max(0.0, 1 - none))
    return found


def _chances(t: int, u: int, a: int, b: int, y: int, x: int, w: int) -> Iterator[float]:
    """The terms of P(no link) that are not 0."""
    for j in range(max(0, a - (t - y - w)), min(w, a) + 1):
        if t - y - w >= a - j >= 0 and u - x - j >= b:
            yield float(np.exp(_log_choose(w, j) + _log_choose(t - y - w, a - j) - _log_choose(t, a)
                               + _log_choose(u - x - j, b) - _log_choose(u, b)))  # fmt: skip


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _at_random(k: int, records: int) -> float:
    """The probability that two random samples of k of all ``records`` share one."""
    if 2 * k > records:
        return 1.0
    return float(1 - np.exp(_log_choose(records - k, k) - _log_choose(records, k)))
