"""Membership inference: whether a release tells who is among the people it was made of.

The intruder has a person's values, the release, and records of other people, the reference. A person is the more likely among the data
the denser the release is at their place, against the reference (``_density_ratio``; DOMIAS, van Breugel, Sun, Qian & van der Schaar 2023).
The distance of the closest released record alone is no such measure: it is small for whoever is like many (Yao et al. 2025).

The controls are divided at random: a share of them is the reference, the others are scored like the records of the data, none of them
being in the reference. Where the release owes nothing to single people, records and scored controls have scores of one distribution:

    auc             chance that a record of the data scores above a control, equal ones counting half; 1/2 where nothing is told
    attack_success  the share of the records of the data that score as high as few controls do: at most ``false_positives`` of these

The second speaks of the people of whom the release tells most, whom an average hides (Carlini et al. 2022). Its limit is the score of a
control, the lowest that so few controls reach; where too many share the highest score, what is above that. Of fewer than
1 / ``false_positives`` scored controls one may reach it, which is a larger share, and the reason says so. ``added_risk`` takes off what is reached without the release. The baseline is the same attack without the release, by how far a person is
from the reference alone: where it is off 1/2, the controls are other people than the data, and the attack says less than it seems to.

All m datasets are scored together, as one release of m times as many records, and each alone. Values that a release keeps unchanged are among
those that the intruder looks at: a partly synthetic release tells of membership by them, unless ``known`` leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..adversary.areas import area_interval, roc_area
from ..adversary.attackers import AttackerFamily, density_scores, draw_variable_halves
from ..adversary.calibration import (
    FEWEST_OF_HALF,
    area_without_release,
    draw_first_half,
    evaluate_best_attacker,
    has_enough_people,
)
from ..adversary.density import NeighbourDistances
from ..adversary.power import detectable_family_area
from ..adversary.targets import BOTH_TARGET_KINDS, TargetKinds, VulnerableTargets, draw_vulnerable_rows
from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.drafting import OURS, Case, DeclinedOffer, Offer, OfferedLimit, drafts
from ..methods.intruder import Known
from ..methods.levers import MEMBERSHIP
from ..methods.outputs import Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.release_models import Models
from ..methods.results import Estimate, Measure, WholeReleaseMeasure
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.gower import Gower
from ..wording import count_noun
from ._attack import MOST_EXCESS, WITHOUT_CONTROLS, AttackResult, Gain, Rate, asked_about, attack_outputs, whole_limits
from ._attacked_records import drawn, of_rows, stream_aside

REFERENCE, FALSE_POSITIVES = 0.5, 0.01
"""The share of the controls that are the reference, and the share of those scored that may be taken for records of the data."""
LEAST_SCORED = 2 * FEWEST_OF_HALF
"""The fewest scored controls of which one may be taken for a record of the data; the family of attackers needs as many."""
NO_LEAK = 0.5


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
        from scipy.stats import beta

        j, k = int(self.successes), self.guesses
        low = float(beta.ppf(0.025, j, k + 1 - j)) if j else 0.0
        return min(self.value, low), max(self.value, float(beta.ppf(0.975, max(j, 1), k + 1 - max(j, 1))))


def gather(
    confidential: Microdata,
    releases: Sequence[Microdata],
    spec: MembershipInferenceSpec,
    parts: Sequence[Mapping[str, NDArray[Any]]],
) -> WholeReleaseMeasure:
    """Areas and success rates of all datasets together, and of each alone.

    ``per_record`` of the whole: ``above_controls`` (n,), NaN of records that are not scored.
    """
    scored = _Scored.of(parts)
    ranks = [scored.ranks(k) for k in range(len(scored.score))]
    rng = np.random.default_rng(int(parts[0]["seed"]))
    found = [list(_estimates(scored, own, spec, rng)) for own in ranks]
    family = _family(confidential.schema, sorted(spec.known), parts[0]["halves"])
    for kind, prefix in (("random", ""), ("vulnerable", "vulnerable_")):
        if kind in spec.people:
            order = np.argsort(np.concatenate([part[f"{prefix}which"] for part in parts]))
            training = np.concatenate([part[f"{prefix}training"] for part in parts])[order]
            scores = np.concatenate([part[f"{prefix}family"] for part in parts], axis=1)[:, order]
            unreleased = np.concatenate([part[f"{prefix}unreleased"] for part in parts])[order]
            params = {} if kind == "random" else {"people": kind}
            first = draw_first_half(training, rng)
            base = area_without_release(unreleased, training, first)
            for at, estimates in enumerate(found):
                estimates.extend(_of_family(family, scores[at : at + 1], training, first, spec, params, rng, base))
    whole, *alone = (Measure(tuple(estimates)) for estimates in found)
    above = np.full(len(confidential), np.nan)
    controls, own = np.sort(ranks[0][~scored.training]), ranks[0][scored.training]
    lower, upper = (np.searchsorted(controls, own, side) for side in ("left", "right"))
    above[scored.row[scored.training]] = (lower + upper) / (2 * len(controls))
    return WholeReleaseMeasure(replace(whole, per_record={"above_controls": above}), tuple(alone))


@dataclass(frozen=True, eq=False)
class _Side:
    """Records of the data where ``training`` (q,), else controls, by their rows, with their ``places`` (q, d), and which of all blocks' records they are (q,)."""

    which: Integers
    row: Integers
    training: Booleans
    places: Floats


@dataclass(frozen=True, eq=False)
class _Attack:
    """The data with their controls, and the places of each dataset and of the reference."""

    data: Microdata
    controls: Microdata
    gower: Gower
    released: tuple[Floats, ...]
    reference: Floats

    @classmethod
    def of(
        cls, data: Microdata, releases: Sequence[Microdata], reference: Integers, spec: MembershipInferenceSpec
    ) -> _Attack:
        assert data.controls is not None
        outside = of_rows(data.controls, reference)
        gower = Gower.of([*releases, outside], sorted(spec.known))
        return cls(data, data.controls, gower, tuple(map(gower.places, releases)), gower.places(outside))

    def side(self, own: Integers, controls: Integers, block: int, blocks: int) -> _Side:
        """One block of some records and controls, records first."""
        rows, training = np.concatenate([own, controls]), np.arange(len(own) + len(controls)) < len(own)
        mine = slice(block, None, blocks)
        rows, training = rows[mine], training[mine]
        parts = ((self.data, rows[training]), (self.controls, rows[~training]))
        places = np.concatenate([self.gower.places(of_rows(table, some)) for table, some in parts])
        order = np.argsort(~training, kind="stable")
        which = np.arange(len(own) + len(controls))[mine]
        return _Side(which[order], rows[order], training[order], places)

    def family(self, drawn_halves: Booleans) -> AttackerFamily:
        return _family(self.data.schema, self.gower.names, drawn_halves)

    def vulnerable(
        self, spec: MembershipInferenceSpec, block: int, drawn_halves: Booleans, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """The scores of one block of the most vulnerable records and of controls as vulnerable; the reference are all other controls."""
        own, others = draw_vulnerable_rows(self.data, self.controls, spec.vulnerable, spec.records, rng)
        side = self.side(own, others, block, spec.blocks)
        left = np.setdiff1d(np.arange(len(self.controls)), others)
        if not len(left):
            return {
                "vulnerable_which": side.which,
                "vulnerable_training": side.training,
                "vulnerable_family": np.zeros((0, len(side.row), 0)),
                "vulnerable_unreleased": np.zeros((len(side.row), 0)),
            }
        reference = self.gower.places(of_rows(self.controls, left))
        inside = [
            NeighbourDistances.from_places(self.gower, side.places, places, spec.neighbours) for places in self.released
        ]
        elsewhere = NeighbourDistances.from_places(self.gower, side.places, reference, spec.neighbours)
        density = density_scores(inside, elsewhere, len(self.gower.names), spec.neighbours)
        family = self.family(drawn_halves)
        scores = family.membership_scores(self.gower, side.places, self.released, reference, density)
        return {
            "vulnerable_which": side.which,
            "vulnerable_training": side.training,
            "vulnerable_family": scores,
            "vulnerable_unreleased": family.scores_without_release(self.gower, side.places, reference),
        }


def _family(schema: Schema, names: Sequence[str], drawn_halves: Booleans) -> AttackerFamily:
    levelled = np.array([schema[name].kind.has_levels for name in names], dtype=np.bool_)
    return AttackerFamily.from_halves(levelled, names, drawn_halves)


def _divided(controls: Microdata, spec: MembershipInferenceSpec, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Rows of the controls that are the reference, and of those that are scored."""
    if len(controls) < 2:
        raise NotComputable("there is one control record; the reference and what is scored need one each")
    order = drawn(controls, len(controls), rng)
    shuffled = order[rng.permutation(len(order))]
    size = _of_reference(len(order), spec.reference)
    return shuffled[:size], shuffled[size : size + spec.records]


def _of_reference(controls: int, share: float) -> int:
    """How many of the controls are the reference: one at least, and one at least is left."""
    return min(max(round(share * controls), 1), controls - 1)


def _estimates(
    scored: _Scored, ranks: Integers, spec: MembershipInferenceSpec, rng: np.random.Generator
) -> Iterator[Estimate]:
    own, others = ranks[scored.training], ranks[~scored.training]
    without = scored.alone[scored.training], scored.alone[~scored.training]
    value = roc_area(own, others)
    words = f"{count_noun(len(own), 'record')} and {len(others):,} controls are scored"
    yield Estimate("auc", value, "", *area_interval(value, len(own), len(others)), roc_area(*without), reason=words)
    if (allowed := _allowed(spec.false_positives, len(others))) < 1:
        needed = math.ceil(1 / spec.false_positives - 1e-9)
        lacking = f"{spec.false_positives:.3g} false positives need {needed:,} scored controls or more, and there are {len(others):,}: "
        lacking += f"hold out {count_noun(math.ceil(needed / (1 - spec.reference)), 'record')} or more"
        if len(others) < min(needed, LEAST_SCORED):
            yield from AttackResult(Rate(0, 0), None, Rate(0, 0), exact=False).estimates(reason=lacking)
            return
        # One control is a larger share than was asked for. Its limits are as wide as so few controls make them.
        allowed, words = 1, f"{words}; one control is taken for a record of the data. {lacking}"
    (told, false), (by_chance, _) = _above(own, others, allowed), _above(*without, allowed)
    controls = _FalsePositives(false, len(others))
    limits = _lowest_reached(others, allowed), _lowest_reached(without[1], allowed)
    added = [
        (of_release >= limits[0]).astype(np.float64) - (of_reference >= limits[1])
        for of_release, of_reference in zip((own, others), without, strict=True)
    ]
    gain = Gain.from_differences(added[0], added[1], stream_aside(rng))
    result = AttackResult(Rate(told, len(own)), Rate(by_chance, len(own)), controls, exact=False, gain=gain)
    yield from result.estimates(reason=words)


def _allowed(share: float, controls: int) -> int:
    """How many of the scored controls may be taken for records of the data."""
    return math.floor(share * controls * (1 + 1e-12))


def _above(own: Integers | Floats, others: Integers | Floats, allowed: int) -> tuple[int, int]:
    """How many records of the data, and how many controls, reach the lowest score of a control that at most ``allowed`` controls reach.

    Where more share the highest score, those that are above it.
    """
    limit = _lowest_reached(others, allowed)
    return int(np.count_nonzero(own >= limit)), int(np.count_nonzero(others >= limit))


def _lowest_reached(others: Integers | Floats, allowed: int) -> float:
    """The lowest score of a control that at most ``allowed`` controls reach; above the highest, where more share that."""
    scores, counts = np.unique(others, return_counts=True)
    reaching = np.cumsum(counts[::-1])[::-1]
    fit = np.flatnonzero(reaching <= allowed)
    return float(scores[fit[0]]) if len(fit) else float(np.nextafter(float(scores[-1]), np.inf))


def _of_family(
    family: AttackerFamily,
    scores: Floats,
    training: Booleans,
    first: Booleans,
    spec: MembershipInferenceSpec,
    params: Mapping[str, Any],
    rng: np.random.Generator,
    without: float,
) -> Iterator[Estimate]:
    """What the family of attackers reaches by scores (1, q, K), or (0, q, K) where there is no reference."""
    people, controls = int(training.sum()), int((~training).sum())
    if not len(scores) or not has_enough_people(training):
        reason = (
            f"{count_noun(people, 'record')} and {controls:,} controls are too few to choose an attacker on half of them and judge it on the other: "
            f"each half needs {FEWEST_OF_HALF} of both"
            if len(scores)
            else "every control is as vulnerable as the targets: none is left as a reference"
        )
        for output in FAMILY:
            yield Estimate.not_computed(output.name, reason, **params)
        return
    found = evaluate_best_attacker(scores[0], training, first, spec.false_positives, rng)
    chosen = " and ".join(dict.fromkeys(family.names[k] for k in found.selected_attackers))
    words = f"{count_noun(people, 'record')} and {controls:,} controls; chosen: {chosen}"
    yield Estimate("family_auc", found.area, "", found.lower, found.upper, without, reason=words, params=params)
    positives = found.true_positives
    rate = Rate(positives * people, people)
    yield Estimate(
        "family_tpr", positives, "", *rate.interval, found.false_positives,
        reason=f"at {found.false_positives:.3g} false positives; {words}", params=params,
    )  # fmt: skip
    yield Estimate("p_value", found.p_value, "", reason=words, params=params)
    yield Estimate("detectable_auc", found.detectable_area, "", reason=words, params=params)


@dataclass(frozen=True, kw_only=True, slots=True)
class MembershipInferenceSpec(Spec):
    """What the intruder has of a person, how densities are found, and how the controls are used."""

    known: Annotated[Known, Variant("variables the intruder has of a person; default: all but identifiers")] = ()
    neighbours: Annotated[int, Param("which nearest record tells how dense a table is", ge=1)] = 1
    reference: Annotated[
        float, Param("share of the controls that the intruder has; the others are scored", gt=0, lt=1)
    ] = REFERENCE
    false_positives: Annotated[
        float, Param("share of the scored controls that may be taken for records of the data", gt=0, lt=1)
    ] = FALSE_POSITIVES
    records: Annotated[int, Param("most targets of a kind, and most controls; of more, a random sample", ge=1)] = 2000
    people: TargetKinds = BOTH_TARGET_KINDS
    vulnerable: VulnerableTargets = None
    blocks: Annotated[int, Param("tasks that the records are divided among", ge=1, le=1000, filters_rows=True)] = 4

    def grid(self) -> tuple[float, ...]:
        return tuple(map(float, range(self.blocks)))

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With all variables but identifiers where none is named."""
        return replace(self, known=self.known or schema.non_identifiers)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when the intruder has nothing of a person."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(f"{place}.known", "all variables are identifiers; name what the intruder has of a person")


FAMILY = (
    Output(
        "family_auc",
        "chance that the best of a family of attackers takes a record of the data for one rather than a control record; 0.5 where nothing is told. "
        "Its baseline is the chance without the release, where that is above 0.5",
        "low",
        "share",
        range=SHARE,
        short="AUC of the family",
        estimated=True,
        detectable="detectable_auc",
        row_defaults=(("people", "random"),),
        risk=RiskOutput(gate_reference="chance", questions=("membership",), area=True),
        label=Label(
            "Members distinguished, best attacker (AUC)",
            "The best of several attackers distinguishes a member from another person in {value} of pairs; 50 % is chance.",
            "Good is 50 %: no attacker distinguishes members from other people.",
            "At least one attacker finds out who is in the data.",
            MEMBERSHIP,
            counts="share",
        ),
    ),
    Output(
        "family_tpr",
        "share of the records of the data that the best of a family of attackers finds at the false positives asked for",
        "low",
        "share",
        range=SHARE,
        short="found by the family",
        estimated=True,
        risk=RiskOutput(questions=("membership",)),
        label=Label(
            "Members found by the best attacker",
            "At the allowed rate of false alarms, the best of several attackers finds {value} of the members asked about.",
            "Good is no more than the rate of false alarms.",
            "The best attacker finds too many members.",
            MEMBERSHIP,
            counts="share",
        ),
    ),
    Output(
        "p_value",
        "chance to find as much by the best of the family where nothing is told, by permuted labels",
        "none",
        range=SHARE,
        short="p",
        estimated=True,
        label=Label(
            "Chance of such a membership finding",
            "If the release revealed nothing, the best attacker would do as well with probability {value}.",
            counts="share",
        ),
    ),
    Output(
        "detectable_auc",
        "smallest AUC of the family that would have been found with 80 % power",
        "none",
        "share",
        range=SHARE,
        short="detectable AUC",
        estimated=True,
        label=Label(
            "Smallest AUC that the best attacker shows",
            "With a power of 80 %, the test finds an AUC of {value} or more.",
            counts="share",
        ),
    ),
)


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
        label=Label(
            "Members distinguished from others (AUC)",
            "A member looks more like the release than another person does in {value} of pairs; 50 % is chance.",
            "Good is 50 %: members look like anybody else.",
            "The release reveals who is in the data.",
            MEMBERSHIP,
            counts="share",
        ),
    ),
    *attack_outputs(
        "membership",
        "guesses",
        "take a person for one of the data, at the false positives asked for,",
        ("membership",),
        MEMBERSHIP,
        exact=False,
    ),
    *FAMILY,
)


def _offer(case: Case) -> Offer | DeclinedOffer | None:
    """Whether the release says who is in the data."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    # The measure takes one control where there are fewer, but a draft holds out enough for the false positives that it asks for.
    limits, sizes = whole_limits("membership", case, FALSE_POSITIVES, scored=REFERENCE), asked_about(case, REFERENCE)
    if (
        case.controls is not None
        and _allowed(FALSE_POSITIVES, case.controls - _of_reference(case.controls, REFERENCE)) < 1
    ):
        limits = tuple(replace(limit, detectable=1.0) for limit in limits)
    if limits and sizes is not None:
        family = OfferedLimit(
            "family_auc", "max", NO_LEAK + (1 - NO_LEAK) * MOST_EXCESS, OURS, "membership", params={"people": "random"},
            detectable=detectable_family_area(*sizes), baseline=NO_LEAK, extra=True,
        )  # fmt: skip
        limits = (*limits, family)
    return Offer("whether it can be told who is in the data and who is not", limits=limits)


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
    attack = _Attack.of(confidential, releases, reference, spec)
    drawn_halves = draw_variable_halves(len(spec.known), run.rng)
    seed = run.rng.integers(2**63)
    sides = attack.side(own, controls, block, spec.blocks)
    inside = []
    for done, places in enumerate(attack.released, start=1):
        inside.append(NeighbourDistances.from_places(attack.gower, sides.places, places, spec.neighbours))
        run.report(Progress(done, len(releases), "datasets"))
    elsewhere = NeighbourDistances.from_places(attack.gower, sides.places, attack.reference, spec.neighbours)
    score = density_scores(inside, elsewhere, len(attack.gower.names), spec.neighbours)
    found = {
        "which": sides.which,
        "row": sides.row,
        "training": sides.training,
        "score": score,
        "alone": elsewhere.kth_distance,
    }
    if "random" in spec.people:
        family = attack.family(drawn_halves)
        found["family"] = family.membership_scores(attack.gower, sides.places, attack.released, attack.reference, score)
        found["unreleased"] = family.scores_without_release(attack.gower, sides.places, attack.reference)
    if "vulnerable" in spec.people:
        found |= attack.vulnerable(spec, block, drawn_halves, run.rng)
    return {**found, "halves": drawn_halves, "seed": np.asarray(seed)}
