"""Membership inference: whether a release tells who is among the people it was made of.

The intruder has a person's values, the release, and records of other people, the reference. A person is the more likely among the data
the denser the release is at their place, against the reference (``_density_ratio``; DOMIAS, van Breugel, Sun, Qian & van der Schaar 2023).
The distance of the closest released record alone is no such measure: it is small for whoever is like many (Yao et al. 2025).

The controls are divided at random: a share of them is the reference, the others are scored like the records of the data, none of them
being in the reference. Where the release owes nothing to single people, records and scored controls have scores of one distribution:

    auc             chance that a record of the data scores above a control, equal ones counting half; 1/2 where nothing is told
    attack_success  the share of the records of the data that score as high as few controls do: at most ``false_positives`` of these

The second speaks of the people of whom the release tells most, whom an average hides (Carlini et al. 2022). Its limit is the score of a
control, the lowest that so few controls reach; where too many share the highest score, what is above that. Under 1 / ``false_positives``
scored controls nothing can be said, and it is not computed. The baseline is the same attack without the release, by how far a person is
from the reference alone: where it is off 1/2, the controls are other people than the data, and the attack says less than it seems to.

All m datasets are scored together, as one release of m times as many records, and each alone. Values that a release keeps unchanged are among
those that the intruder looks at: a partly synthetic release tells of membership by them, unless ``known`` leaves them out.

How much denser a release is than other people are at the place of a record, by nearest neighbours.

The density of N records at a place is c / (N r^d): r is the distance of the k-th nearest, c how many lie as near as that, d the number of
variables. The score of a record is the logarithm of its density in the release over that in the reference, which are people of the same
population who are not in the data (van Breugel, Sun, Qian & van der Schaar 2023, eq. 2, there with other estimates of the densities).

Where a released record has the very values of the person r is 0, and the density has no end. Such scores are ordered as the ratio is for r
towards 0: above all others where the reference has none like it, and by the shares c / N where both have.

How often a score of one group lies above one of another: the Mann-Whitney statistic, which is the area under the ROC curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, rankdata

from ..arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, Declined, Offer, drafts
from ..methods.intruder import Known
from ..methods.outputs import Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.release_models import Models
from ..methods.results import Estimate, Measure, WholeMeasure
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.gower import Gower
from ..statistics.score_interval import Z
from ..wording import counted
from ._attack import WITHOUT_CONTROLS, AttackResult, Rate, attack_outputs, excess_limit
from ._attacked_records import drawn, of_rows


def area(above: Floats | Integers, below: Floats | Integers) -> float:
    """The share of the pairs, one of each group (m,) and (n,), in which the first is larger, equal ones counting half."""
    ranks = rankdata(np.concatenate([above, below]))[: len(above)]
    return float((math.fsum(ranks) - len(above) * (len(above) + 1) / 2) / (len(above) * len(below)))


def area_interval(area: float, above: int, below: int, z: float = Z) -> tuple[float, float]:
    """The interval of an area found of so many scores of each group: those θ from which it is z standard errors away at most.

    Newcombe (2006, Part 2, method 5), of the kind of Wilson's: the variance, by Hanley & McNeil (1982) with exponential scores and
    N* = (m + n) / 2 - 1 in place of m - 1 and n - 1, is that at θ, so that an area of 1 has an interval too. At θ = 1/2 it is the exact
    one of the Mann-Whitney test, (m + n + 1) / (12 m n).
    """

    def beyond(theta: float) -> float:
        spread = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + ((above + below) / 2 - 1) * spread) / (above * below)
        return abs(area - theta) - z * math.sqrt(max(variance, 0.0))

    near = 1e-12
    lower = 0.0 if area <= near else float(brentq(beyond, 0.0, min(area, 1 - near)))
    upper = 1.0 if area >= 1 - near else float(brentq(beyond, max(area, near), 1.0))
    return lower, upper


@dataclass(frozen=True, eq=False)
class Near:
    """Of q places the distances of the k nearest of so many ``records``, ascending, (q, k), and how many lie as near as the last, (q,)."""

    nearest: Floats
    count: Floats
    records: int

    @classmethod
    def of(cls, gower: Gower, places: Floats, table: Floats, neighbours: int) -> Near:
        """Among records at places ``table`` (r, d), r at least 1, of those at ``places`` (q, d)."""
        k = min(neighbours, len(table))
        distinct, query = np.unique(places, axis=0, return_inverse=True)
        nearest, count = np.zeros((len(distinct), k)), np.zeros(len(distinct))
        for rows, apart in gower.blocks(distinct, table):
            nearest[rows] = np.sort(np.partition(apart, k - 1, axis=1)[:, :k], axis=1)
            count[rows] = (apart <= nearest[rows][:, -1:]).sum(axis=1)
        return cls(nearest[query.ravel()], count[query.ravel()], len(table))

    @property
    def reach(self) -> Floats:
        """The distance of the k-th nearest, (q,)."""
        return self.nearest[:, -1]

    @classmethod
    def together(cls, tables: Sequence[Near], neighbours: int) -> Near:
        """The same of the records of several tables in one."""
        nearest = np.sort(np.concatenate([one.nearest for one in tables], axis=1), axis=1)[:, :neighbours]
        reach = nearest[:, -1:]
        counts = [np.where(one.reach == reach[:, 0], one.count, (one.nearest <= reach).sum(axis=1)) for one in tables]
        return cls(nearest, np.sum(counts, axis=0), sum(one.records for one in tables))


def log_ratio(inside: Near, outside: Near, variables: int) -> Floats:
    """The scores, (q, 2), ordered by the first column and then by the second: 1 for a ratio without end, -1 for one of 0, else 0; and its logarithm.

    Of a ratio without end or of 0 the logarithm is that of what the distance that is 0 multiplies.
    """
    endless = (inside.reach == 0).astype(np.float64) - (outside.reach == 0)
    own, other = (np.log(np.where(one.reach > 0, one.reach, 1.0)) for one in (inside, outside))
    more = np.log(inside.count / inside.records) - np.log(outside.count / outside.records)
    return np.stack([endless, more + variables * (other - own)], axis=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class MembershipInferenceSpec(Spec):
    """What the intruder has of a person, how densities are found, and how the controls are used."""

    known: Annotated[Known, Variant("variables the intruder has of a person; default: all but identifiers")] = ()
    neighbours: Annotated[int, Param("which nearest record tells how dense a table is", ge=1)] = 1
    reference: Annotated[
        float, Param("share of the controls that the intruder has; the others are scored", gt=0, lt=1)
    ] = 0.5
    false_positives: Annotated[
        float, Param("share of the scored controls that may be taken for records of the data", gt=0, lt=1)
    ] = 0.01
    records: Annotated[int, Param("most records scored, and most controls, at random where there are more", ge=1)] = (
        2000
    )
    blocks: Annotated[int, Param("tasks that the records are divided among", ge=1, le=1000, selects=True)] = 4

    def grid(self) -> tuple[float, ...]:
        return tuple(map(float, range(self.blocks)))

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With all variables but identifiers where none is named."""
        return replace(self, known=self.known or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when the intruder has nothing of a person."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(f"{place}.known", "all variables are identifiers; name what the intruder has of a person")


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of q records as ``log_ratio`` gives them: ``score`` (1 + m, q, 2), first by all datasets together, and ``alone`` (q,) without any.

    ``row`` (q,) numbers each record, in the data where ``training`` (q,), else among the controls.
    """

    row: Integers
    training: Booleans
    score: Floats
    alone: Floats

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, NDArray[Any]]]) -> _Scored:
        row, training, alone = (np.concatenate([part[name] for part in parts]) for name in ("row", "training", "alone"))
        return cls(row, training, np.concatenate([part["score"] for part in parts], axis=1), alone)

    def ranks(self, dataset: int) -> Integers:
        """The order of the scores, (q,), equal ones equal: by all datasets (0), or by one of them."""
        return np.asarray(np.unique(self.score[dataset], axis=0, return_inverse=True)[1].ravel(), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _FalsePositives(Rate):
    """How many of the scored controls reach the limit: it is the score of one of them, so that their number is no chance, but the limit is."""

    @property
    def interval(self) -> tuple[float, float]:
        """Of K independent people without a release of theirs a share beta(j, K + 1 - j) reaches the j-th highest score of K others: its 95 % limits."""
        j, k = int(self.successes), self.guesses
        low = float(beta.ppf(0.025, j, k + 1 - j)) if j else 0.0
        return min(self.value, low), max(self.value, float(beta.ppf(0.975, max(j, 1), k + 1 - max(j, 1))))


OUTPUTS = (
    Output(
        "auc",
        "chance that a record of the data looks more like one of the release than a control record does; 0.5 where nothing is told",
        "low",
        "share",
        range=SHARE,
        short="AUC",
        estimated=True,
        risk=RiskOutput(questions=("membership",)),
        statbarn="StatisticalHypothesisTests",
    ),
    *attack_outputs("guesses", "take a person for one of the data, at the false positives asked for,", ("membership",)),
)


def gather(
    confidential: Microdata,
    releases: Sequence[Microdata],
    spec: MembershipInferenceSpec,
    parts: Sequence[Mapping[str, NDArray[Any]]],
) -> WholeMeasure:
    """Areas and success rates of all datasets together, and of each alone.

    ``per_record`` of the whole: ``above_controls`` (n,), NaN of records that are not scored.
    """
    scored = _Scored.of(parts)
    ranks = [scored.ranks(k) for k in range(len(scored.score))]
    whole, *alone = (Measure(tuple(_estimates(scored, own, spec))) for own in ranks)
    above = np.full(len(confidential), np.nan)
    controls, own = np.sort(ranks[0][~scored.training]), ranks[0][scored.training]
    lower, upper = (np.searchsorted(controls, own, side) for side in ("left", "right"))
    above[scored.row[scored.training]] = (lower + upper) / (2 * len(controls))
    return WholeMeasure(replace(whole, per_record={"above_controls": above}), tuple(alone))


def _offer(case: Case) -> Offer | Declined | None:
    """Whether the release says who is in the data."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return Declined(WITHOUT_CONTROLS)
    return Offer("whether it can be told who is in the data and who is not", limits=(excess_limit("membership"),))


@measure_method(
    "Membership inference",
    spec=MembershipInferenceSpec,
    source="van Breugel, Sun, Qian & van der Schaar (2023); Carlini et al. (2022); Newcombe (2006)",
    outputs=OUTPUTS,
    gather=gather,
    controls=True,
    per_record=(
        RecordArray(
            "above_controls",
            "share of the scored controls that look less like a record of the release, equal ones counting half",
            "share",
            "high",
        ),
    ),
)
@drafts(_offer)
def membership_inference(
    confidential: Microdata,
    releases: Sequence[Microdata],
    models: Models,
    spec: MembershipInferenceSpec,
    block: int,
    run: Run,
) -> dict[str, NDArray[Any]]:
    """The scores of one block of records and controls, as ``_Scored`` has them. Raises NotComputable where there are too few controls."""
    assert confidential.controls is not None
    reference, controls = _divided(confidential.controls, spec, run.rng)
    own = drawn(confidential, spec.records, run.rng)
    rows, training = np.concatenate([own, controls]), np.arange(len(own) + len(controls)) < len(own)
    mine = slice(block, None, spec.blocks)
    rows, training = rows[mine], training[mine]
    outside = of_rows(confidential.controls, reference)
    gower = Gower.of([*releases, outside], sorted(spec.known))
    sides = ((confidential, rows[training]), (confidential.controls, rows[~training]))
    places = np.concatenate([gower.places(of_rows(table, some)) for table, some in sides])
    order = np.argsort(~training, kind="stable")
    elsewhere = Near.of(gower, places, gower.places(outside), spec.neighbours)
    inside = []
    for done, release in enumerate(releases, start=1):
        inside.append(Near.of(gower, places, gower.places(release), spec.neighbours))
        run.report(Progress(done, len(releases), "datasets"))
    together = Near.together(inside, spec.neighbours)
    score = np.stack([log_ratio(one, elsewhere, len(gower.names)) for one in (together, *inside)])
    return {"row": rows[order], "training": training[order], "score": score, "alone": elsewhere.reach}


def _divided(controls: Microdata, spec: MembershipInferenceSpec, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Rows of the controls that are the reference, and of those that are scored."""
    if len(controls) < 2:
        raise NotComputable("there is one control record; the reference and what is scored need one each")
    order = drawn(controls, len(controls), rng)
    shuffled = order[rng.permutation(len(order))]
    size = min(max(round(spec.reference * len(order)), 1), len(order) - 1)
    return shuffled[:size], shuffled[size : size + spec.records]


def _estimates(scored: _Scored, ranks: Integers, spec: MembershipInferenceSpec) -> Iterator[Estimate]:
    own, others = ranks[scored.training], ranks[~scored.training]
    without = scored.alone[scored.training], scored.alone[~scored.training]
    value = area(own, others)
    words = f"{counted(len(own), 'record')} and {len(others):,} controls are scored"
    yield Estimate("auc", value, "", *area_interval(value, len(own), len(others)), area(*without), reason=words)
    if (allowed := _allowed(spec.false_positives, len(others))) < 1:
        needed = math.ceil(1 / spec.false_positives - 1e-9)
        yield from AttackResult(Rate(0, 0), None, Rate(0, 0)).estimates(
            reason=f"{spec.false_positives:.3g} false positives need {needed:,} scored controls or more, and there are {len(others):,}: "
            f"hold out {counted(math.ceil(needed / (1 - spec.reference)), 'record')} or more"
        )
        return
    (told, false), (by_chance, _) = _above(own, others, allowed), _above(*without, allowed)
    result = AttackResult(Rate(told, len(own)), Rate(by_chance, len(own)), _FalsePositives(false, len(others)))
    yield from result.estimates(reason=words)


def _allowed(share: float, controls: int) -> int:
    """How many of the scored controls may be taken for records of the data."""
    return math.floor(share * controls * (1 + 1e-12))


def _above(own: Integers | Floats, others: Integers | Floats, allowed: int) -> tuple[int, int]:
    """How many records of the data, and how many controls, reach the lowest score of a control that at most ``allowed`` controls reach.

    Where more share the highest score, those that are above it.
    """
    scores, counts = np.unique(others, return_counts=True)
    reaching = np.cumsum(counts[::-1])[::-1]
    fit = np.flatnonzero(reaching <= allowed)
    if not len(fit):
        return int(np.count_nonzero(own > scores[-1])), 0
    return int(np.count_nonzero(own >= scores[fit[0]])), int(reaching[fit[0]])
