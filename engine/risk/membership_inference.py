"""Membership inference: whether a release reveals who is in the data.

The intruder has a person's values, the release, and the reference: records of other people. A person is the more likely
in the data the denser the release is around them, relative to the reference (``density_scores``; DOMIAS, van Breugel,
Sun, Qian & van der Schaar 2023).

Of the data and of the controls the same random share is the reference, and the others are scored. So scored records of
the data have relatives in the reference, whom no unit may name, as often as scored controls. If the release does not
depend on single people, both have the same distribution of scores.

    auc             probability that a record scores above a control, ties counting half; 1/2 if nothing is revealed
    attack_success  share of the records above a threshold that at most ``false_positives`` of the controls reach

``added_risk`` subtracts the success without the release. The baseline is the same attack with the distance to the
reference alone; if it differs from 1/2, the controls differ from the data, and the attack says less than it seems to.
The m datasets are scored jointly, as one release of m times as many records, and each alone. Values that are released
unchanged are used too unless ``known`` leaves them out.

Where several records describe a unit (a household, a person over waves), whole units are attacked, are the reference, and
are permuted. Rows with ``of = "units"`` are of the same attack on units: their scores are the largest, the smallest and
the sum of those of their records, and, where the release numbers units, how many of its units have the same records.
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
    score_units,
)
from ..adversary.density import NeighbourDistances
from ..adversary.permuted import UnitsOfBoth
from ..adversary.power import detectable_family_area
from ..adversary.targets import BOTH_TARGET_KINDS, TargetKinds, VulnerableTargets, draw_vulnerable_rows
from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..data.schema import Schema
from ..data.units import Units
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
from ..statistics.gower import GowerDistance
from ..wording import count_noun
from ._attack import (
    EXCESS_LIMIT,
    WITHOUT_CONTROLS,
    AddedSuccess,
    AttackResult,
    SuccessRate,
    attack_outputs,
    design_effect,
    limits_for_all_variables,
    planned_sizes,
)
from ._attacked_records import draw_rows, independent_stream, join_rows, number_units, select_rows, units_of_both

REFERENCE_SHARE, FALSE_POSITIVES = 0.5, 0.01
"""Share of the data and of the controls in the reference, and default false positive rate among the scored ones."""
MIN_SCORED_CONTROLS = 2 * FEWEST_OF_HALF
"""Fewest scored controls of which one may be taken for a record of the data; the family of attackers needs as many."""
NO_LEAK = 0.5
FAMILY_PREFIXES = {"random": "", "vulnerable": "vulnerable_"}
"""Beginnings of the keys under which scores are stored, by kind of target."""
OF_UNITS = {"of": "units"}
"""Parameter of rows about whole units."""


@dataclass(frozen=True, eq=False)
class FamilyScores:
    """Membership scores of q records and controls by the K attackers of the family.

    number: number of each record among those of all blocks, (q,)
    is_member: whether the record is in the data, (q,)
    score: scores from all datasets together and from each, (1 + m, q, K); (0, q, 0) if no control is left as a
        reference
    score_without_release: scores without the release, (q, K)
    unit: number of each record's unit, (q,); None where each record is one
    unit_score: scores of the units by the records that these have together, (1 + m, q, E), equal for records of a unit;
        None where no dataset numbers units
    """

    number: Integers
    is_member: Booleans
    score: Floats
    score_without_release: Floats
    unit: Integers | None = None
    unit_score: Floats | None = None

    @classmethod
    def join_blocks(cls, parts: Sequence[FamilyScores]) -> FamilyScores:
        """Concatenate the scores of all blocks, sorted by number."""
        number = np.concatenate([part.number for part in parts])
        order = np.argsort(number)
        units = [part.unit for part in parts if part.unit is not None]
        of_units = [part.unit_score for part in parts if part.unit_score is not None]
        return cls(
            number[order],
            np.concatenate([part.is_member for part in parts])[order],
            np.concatenate([part.score for part in parts], axis=1)[:, order],
            np.concatenate([part.score_without_release for part in parts])[order],
            np.concatenate(units)[order] if units else None,
            np.concatenate(of_units, axis=1)[:, order] if of_units else None,
        )

    def by_unit(self) -> FamilyScores:
        """Return the scores of the units of the records, by ascending number of the unit."""
        assert self.unit is not None
        number, record = np.unique(self.unit, return_index=True)
        scores = np.stack([score_units(one, self.unit) for one in self.score]) if len(self.score) else self.score
        if len(scores) and self.unit_score is not None:
            scores = np.concatenate([scores, self.unit_score[:, record]], axis=2)
        without = score_units(self.score_without_release, self.unit)
        return FamilyScores(number, self.is_member[record], scores, without)


@dataclass(frozen=True, eq=False)
class MembershipBlock:
    """Membership scores of one block of q records and controls.

    number: number of each record among those of all blocks, (q,)
    row: row of the record in the data or among the controls, (q,)
    is_member: whether the record is in the data, (q,)
    score: density scores from all datasets together and from each, (1 + m, q, 2)
    score_without_release: scores without the release, (q,)
    family_scores: scores by the family of attackers for each kind of target: the same records and controls ("random"),
        or the most vulnerable records and equally vulnerable controls ("vulnerable")
    drawn_halves: random halves of the variables that attackers of the family use, from ``draw_variable_halves``
    seed: seed of the random numbers of the joint evaluation of all blocks
    unit: number of each record's unit, (q,); None where each record is one
    """

    number: Integers
    row: Integers
    is_member: Booleans
    score: Floats
    score_without_release: Floats
    family_scores: Mapping[str, FamilyScores]
    drawn_halves: Booleans
    seed: int
    unit: Integers | None = None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all fields as arrays by the keys under which they are stored."""
        arrays: dict[str, NDArray[Any]] = {
            "which": self.number,
            "row": self.row,
            "training": self.is_member,
            "score": self.score,
            "alone": self.score_without_release,
        }
        if random := self.family_scores.get("random"):
            arrays |= {"family": random.score, "unreleased": random.score_without_release}
        if vulnerable := self.family_scores.get("vulnerable"):
            arrays |= {
                "vulnerable_which": vulnerable.number,
                "vulnerable_training": vulnerable.is_member,
                "vulnerable_family": vulnerable.score,
                "vulnerable_unreleased": vulnerable.score_without_release,
            }
        if self.unit is not None:
            arrays["unit"] = self.unit
        for kind, prefix in FAMILY_PREFIXES.items():
            found = self.family_scores.get(kind)
            if found is not None and found.unit is not None:
                arrays[f"{prefix}family_unit"] = found.unit
            if found is not None and found.unit_score is not None:
                arrays[f"{prefix}unit_score"] = found.unit_score
        return {**arrays, "halves": self.drawn_halves, "seed": np.asarray(self.seed)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Create the block from stored arrays."""
        family_scores = {
            kind: FamilyScores(
                number=arrays[f"{prefix}which"],
                is_member=arrays[f"{prefix}training"],
                score=arrays[f"{prefix}family"],
                score_without_release=arrays[f"{prefix}unreleased"],
                unit=arrays.get(f"{prefix}family_unit"),
                unit_score=arrays.get(f"{prefix}unit_score"),
            )
            for kind, prefix in FAMILY_PREFIXES.items()
            if f"{prefix}family" in arrays
        }
        return cls(
            number=arrays["which"],
            row=arrays["row"],
            is_member=arrays["training"],
            score=arrays["score"],
            score_without_release=arrays["alone"],
            family_scores=family_scores,
            drawn_halves=arrays["halves"],
            seed=int(arrays["seed"]),
            unit=arrays.get("unit"),
        )


@dataclass(frozen=True, eq=False)
class _MembershipScores:
    """Density scores of q records and controls from all blocks.

    row: row of each record in the data or among the controls, (q,)
    is_member: whether the record is in the data, (q,)
    score: density scores from all datasets together and from each, (1 + m, q, 2)
    score_without_release: scores without the release, (q,)
    unit: number of each record's unit, (q,); None where each record is one
    """

    row: Integers
    is_member: Booleans
    score: Floats
    score_without_release: Floats
    unit: Integers | None

    @classmethod
    def from_blocks(cls, blocks: Sequence[MembershipBlock]) -> _MembershipScores:
        """Concatenate the scores of all blocks."""
        return cls(
            np.concatenate([block.row for block in blocks]),
            np.concatenate([block.is_member for block in blocks]),
            np.concatenate([block.score for block in blocks], axis=1),
            np.concatenate([block.score_without_release for block in blocks]),
            None
            if blocks[0].unit is None
            else np.concatenate([block.unit for block in blocks if block.unit is not None]),
        )

    @property
    def units_of_both(self) -> UnitsOfBoth | None:
        """Return the units of records and of controls; None where each record is one."""
        return None if self.unit is None else UnitsOfBoth(self.unit[self.is_member], self.unit[~self.is_member])

    def score_ranks(self, dataset: int) -> Integers:
        """Return the ranks of the scores, equal for ties, (q,): from all datasets (0) or from one of them."""
        return distinct_rows(self.score[dataset].T, self.score.shape[1]).combination_of


@dataclass(frozen=True, slots=True)
class _FalsePositives(SuccessRate):
    """False positive rate of an attack whose threshold is the score of a control."""

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % limits of the false positive rate of new people, given the threshold."""
        from scipy.stats import beta

        # The threshold is the j-th highest score of K controls, so the rate is beta(j, K + 1 - j): the count is fixed,
        # the threshold is random.
        j, k = int(self.successes), self.guesses
        low = float(beta.ppf(0.025, j, k + 1 - j)) if j else 0.0
        return min(self.value, low), max(self.value, float(beta.ppf(0.975, max(j, 1), k + 1 - max(j, 1))))


def gather_blocks(
    confidential: Microdata,
    releases: Sequence[Microdata],
    spec: MembershipInferenceSpec,
    blocks: Sequence[MembershipBlock],
) -> WholeReleaseMeasure:
    """Compute AUC and success rates from all datasets together and from each alone.

    ``per_record`` of the whole: ``above_controls``, the share of controls that score lower, (n,), NaN for records that
    are not scored.
    """
    scored = _MembershipScores.from_blocks(blocks)
    ranks = [scored.score_ranks(k) for k in range(len(scored.score))]
    rng = np.random.default_rng(blocks[0].seed)
    found = [list(_attack_estimates(scored, own, spec, rng)) for own in ranks]
    family = _attacker_family(confidential.schema, sorted(spec.known), blocks[0].drawn_halves)
    for kind in ("random", "vulnerable"):
        if kind not in spec.people:
            continue
        people = FamilyScores.join_blocks([block.family_scores[kind] for block in blocks])
        params: dict[str, str] = {} if kind == "random" else {"people": kind}
        sides = [(people, family.names, params)]
        if people.unit is not None:
            sides.append((people.by_unit(), family.names_of_units, {**params, **OF_UNITS}))
        for scored_people, names, settings in sides:
            first = draw_first_half(scored_people.is_member, rng, scored_people.unit)
            base = area_without_release(scored_people.score_without_release, scored_people.is_member, first)
            for at, estimates in enumerate(found):
                estimates.extend(_family_estimates(names, scored_people, at, first, spec, settings, rng, base))
    whole, *alone = (Measure(tuple(estimates)) for estimates in found)
    above = np.full(len(confidential), np.nan)
    controls, own = np.sort(ranks[0][~scored.is_member]), ranks[0][scored.is_member]
    lower, upper = (np.searchsorted(controls, own, side) for side in ("left", "right"))
    above[scored.row[scored.is_member]] = (lower + upper) / (2 * len(controls))
    return WholeReleaseMeasure(replace(whole, per_record={"above_controls": above}), tuple(alone))


@dataclass(frozen=True, eq=False)
class _AttackedBlock:
    """One block of attacked records and controls.

    number: number of each record among those of all blocks, (q,)
    row: row of the record in the data or among the controls, (q,)
    is_member: whether the record is in the data, (q,)
    places: positions in the known variables, (q, d)
    unit: number of each record's unit, (q,); None where each record is one
    """

    number: Integers
    row: Integers
    is_member: Booleans
    places: Floats
    unit: Integers | None


@dataclass(frozen=True, eq=False)
class _MembershipAttack:
    """Data and controls, with the positions of the released and reference records in the known variables.

    data, controls: both tables
    gower: distance in the known variables
    released: positions of the records of each dataset, (r, d) each
    reference: positions of the reference records, (c, d)
    units: units of all records of the data and of all controls; None where each record is one
    released_units: units of each dataset; None where its records are not numbered by unit
    """

    data: Microdata
    controls: Microdata
    gower: GowerDistance
    released: tuple[Floats, ...]
    reference: Floats
    units: UnitsOfBoth | None
    released_units: tuple[Units | None, ...]

    @classmethod
    def from_tables(
        cls,
        data: Microdata,
        releases: Sequence[Microdata],
        reference: tuple[Integers, Integers],
        spec: MembershipInferenceSpec,
    ) -> _MembershipAttack:
        """Create the attack with the given rows of the data and of the controls as reference."""
        assert data.controls is not None
        outside = join_rows(data, reference[0], data.controls, reference[1])
        # The intruder does not have the data, so distances are scaled by the release and the reference alone.
        gower = GowerDistance.from_tables([*releases, outside], sorted(spec.known))
        places, units = tuple(map(gower.record_places, releases)), _joint_units(data)
        of_releases = tuple(None if units is None else one.units for one in releases)
        return cls(data, data.controls, gower, places, gower.record_places(outside), units, of_releases)

    def attacked_block(self, own: Integers, controls: Integers, block: int, blocks: int) -> _AttackedBlock:
        """Return one block of the given records and controls, records first."""
        rows, training = np.concatenate([own, controls]), np.arange(len(own) + len(controls)) < len(own)
        mine = slice(block, None, blocks)
        rows, training = rows[mine], training[mine]
        parts = ((self.data, rows[training]), (self.controls, rows[~training]))
        places = np.concatenate([self.gower.record_places(select_rows(table, some)) for table, some in parts])
        # ``places`` lists the records of the data first.
        order = np.argsort(~training, kind="stable")
        which = np.arange(len(own) + len(controls))[mine]
        rows, training = rows[order], training[order]
        unit = None
        if self.units is not None:
            unit = np.concatenate([self.units.own[rows[training]], self.units.others[rows[~training]]])
        return _AttackedBlock(which[order], rows, training, places, unit)

    def score_whole_units(
        self, block: _AttackedBlock, reference: tuple[Integers, Integers], places: Floats, drawn_halves: Booleans
    ) -> Floats | None:
        """Score the units of a block by the records that they have together, (1 + m, q, E).

        ``reference`` are rows of the data and of the controls, ``places`` (c, d) their positions. None where no dataset
        numbers units.
        """
        shown = [
            (records, units)
            for records, units in zip(self.released, self.released_units, strict=True)
            if units is not None
        ]
        if self.units is None or len(shown) < len(self.released):
            return None
        family, found = self.attacker_family(drawn_halves), list[Floats]()
        others = Units.from_codes(np.concatenate([self.units.own[reference[0]], self.units.others[reference[1]]]))
        for table, unit_of, rows in (
            (self.data, self.units.own, block.row[block.is_member]),
            (self.controls, self.units.others, block.row[~block.is_member]),
        ):
            asked = np.unique(unit_of[rows])
            whole = np.flatnonzero(np.isin(unit_of, asked))
            units = Units.from_codes(unit_of[whole])
            own = self.gower.record_places(select_rows(table, whole)), units
            scores = family.unit_scores(self.gower, own, shown, (places, others))
            # units are numbered by first appearance among the records
            place = np.searchsorted(asked, unit_of[rows])
            by_number = np.argsort(unit_of[whole][units.first_records])
            found.append(scores[:, by_number[place]])
        return np.concatenate(found, axis=1)

    def attacker_family(self, drawn_halves: Booleans) -> AttackerFamily:
        """Return the family of attackers on the known variables."""
        return _attacker_family(self.data.schema, self.gower.names, drawn_halves)

    def score_vulnerable(
        self, spec: MembershipInferenceSpec, block: int, drawn_halves: Booleans, rng: np.random.Generator
    ) -> FamilyScores:
        """Score one block of the most vulnerable records and of equally vulnerable controls.

        The reference is all other records of both.
        """
        own, others = draw_vulnerable_rows(self.data, self.controls, spec.vulnerable, spec.records, rng)
        side = self.attacked_block(own, others, block, spec.blocks)
        sides = ((self.data, own), (self.controls, others))
        left = [np.setdiff1d(np.arange(len(table)), attacked) for table, attacked in sides]
        if self.units is not None:
            # no housemate of a scored record is in the reference
            left = [
                rows[~np.isin(unit_of[rows], unit_of[attacked])]
                for rows, unit_of, attacked in zip(
                    left, (self.units.own, self.units.others), (own, others), strict=True
                )
            ]
        if not len(left[1]):
            unscored = np.zeros((0, len(side.row), 0))
            return FamilyScores(side.number, side.is_member, unscored, np.zeros((len(side.row), 0)), side.unit)
        reference = self.gower.record_places(join_rows(self.data, left[0], self.controls, left[1]))
        inside = [
            NeighbourDistances.from_places(self.gower, side.places, places, spec.neighbours) for places in self.released
        ]
        elsewhere = NeighbourDistances.from_places(self.gower, side.places, reference, spec.neighbours)
        density = density_scores(inside, elsewhere, len(self.gower.names), spec.neighbours)
        family = self.attacker_family(drawn_halves)
        scores = family.membership_scores(self.gower, side.places, self.released, reference, density)
        without = family.scores_without_release(self.gower, side.places, reference)
        of_units = self.score_whole_units(side, (left[0], left[1]), reference, drawn_halves)
        return FamilyScores(side.number, side.is_member, scores, without, side.unit, of_units)


def _attacker_family(schema: Schema, names: Sequence[str], drawn_halves: Booleans) -> AttackerFamily:
    """Return the family of attackers for the named variables."""
    levelled = np.array([schema[name].kind.has_levels for name in names], dtype=np.bool_)
    return AttackerFamily.from_halves(levelled, names, drawn_halves)


def _divide_people(
    people: Microdata, noun: str, spec: MembershipInferenceSpec, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return the rows of the reference and of the scored records among the data or the controls, whose ``noun`` is given."""
    order = draw_rows(people, len(people), rng)
    unit_of = number_units(people)
    if len(order) < 2 or (unit_of is not None and unit_of.max() < 1):
        lone = f"there is one {noun}" if len(order) < 2 else f"all {noun}s are of one unit"
        raise NotComputable(f"{lone}; the reference and what is scored need one each")
    if unit_of is not None:
        return _divide_units(order, unit_of, spec, rng)
    shuffled = order[rng.permutation(len(order))]
    size = _reference_size(len(order), spec.reference)
    return shuffled[:size], shuffled[size : size + spec.records]


def _divide_units(
    order: Integers, unit_of: Integers, spec: MembershipInferenceSpec, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return the rows of the reference and of the scored records, each of whole units."""
    sizes = np.bincount(unit_of)
    shuffled = rng.permutation(len(sizes))
    size = _reference_size(len(sizes), spec.reference)
    scored = shuffled[size:]
    scored = scored[: max(1, int(np.searchsorted(np.cumsum(sizes[scored]), spec.records, side="right")))]
    return order[np.isin(unit_of[order], shuffled[:size])], order[np.isin(unit_of[order], scored)]


def _joint_units(data: Microdata) -> UnitsOfBoth | None:
    """Return the units of all records of the data and of all controls, numbered one after the other."""
    assert data.controls is not None
    found = units_of_both(data, np.arange(len(data)), data.controls, np.arange(len(data.controls)))
    return None if found is None else UnitsOfBoth(found.own, found.others + int(found.own.max(initial=-1)) + 1)


def _reference_size(number: int, share: float) -> int:
    """Return the number of records or units in the reference; at least one is on either side."""
    return min(max(round(share * number), 1), number - 1)


def _attack_estimates(
    scored: _MembershipScores, ranks: Integers, spec: MembershipInferenceSpec, rng: np.random.Generator
) -> Iterator[Estimate]:
    """Yield AUC and attack success, given the ranks of the scores, (q,)."""
    own, others = ranks[scored.is_member], ranks[~scored.is_member]
    without = scored.score_without_release[scored.is_member], scored.score_without_release[~scored.is_member]
    value = roc_area(own, others)
    words = f"{count_noun(len(own), 'record')} in the data and {len(others):,} outside it are compared"
    units = scored.units_of_both
    # As if the records of a unit said nothing beyond its first: limits are never too narrow.
    sizes = (len(own), len(others)) if units is None else (len(np.unique(units.own)), len(np.unique(units.others)))
    yield Estimate("auc", value, "", *area_interval(value, *sizes), roc_area(*without), reason=words)
    if scored.unit is not None:
        yield _area_of_units(ranks, scored.score_without_release, scored.unit, scored.is_member)
    if (allowed := _allowed_false_positives(spec.false_positives, len(others))) < 1:
        needed = math.ceil(1 / spec.false_positives - 1e-9)
        lacking = f"{spec.false_positives:.3g} false positives need {needed:,} scored controls or more, and there are {len(others):,}: "
        lacking += f"hold out {count_noun(math.ceil(needed / (1 - spec.reference)), 'record')} or more"
        if len(others) < min(needed, MIN_SCORED_CONTROLS):
            yield from AttackResult(SuccessRate(0, 0), None, SuccessRate(0, 0), exact=False).estimates(reason=lacking)
            return
        # One control is a larger share than requested. Its limits are as wide as so few controls make them.
        allowed, words = 1, f"{words}; one control is taken for a record of the data. {lacking}"
    # The success at few false positives shows the people about whom the release reveals most, whom an average hides
    # (Carlini et al. 2022).
    (told, false), (by_chance, _) = (
        _count_reaching_limit(own, others, allowed),
        _count_reaching_limit(*without, allowed),
    )
    controls = _FalsePositives(false, len(others))
    limits = _score_limit(others, allowed), _score_limit(without[1], allowed)
    added = [
        (of_release >= limits[0]).astype(np.float64) - (of_reference >= limits[1])
        for of_release, of_reference in zip((own, others), without, strict=True)
    ]
    gain = AddedSuccess.from_differences(added[0], added[1], independent_stream(rng), units)
    effects = [
        1.0 if units is None else design_effect((values >= limit).astype(np.float64), units.own)
        for values, limit in zip((own, without[0]), limits, strict=True)
    ]
    result = AttackResult(
        SuccessRate(told, len(own), design_effect=effects[0]),
        SuccessRate(by_chance, len(own), design_effect=effects[1]),
        controls,
        exact=False,
        added_success=gain,
    )
    yield from result.estimates(reason=words)


def _area_of_units(ranks: Integers, without: Floats, unit_of: Integers, is_member: Booleans) -> Estimate:
    """Return the AUC of units that are scored by the record that scores highest."""
    record = np.unique(unit_of, return_index=True)[1]
    member, count = is_member[record], len(record)
    largest = [score_units(one[:, None].astype(np.float64), unit_of)[:count, 0] for one in (ranks, without)]
    areas = [roc_area(one[member], one[~member]) for one in largest]
    sizes = int(member.sum()), int((~member).sum())
    words = f"{count_noun(sizes[0], 'unit')} in the data and {sizes[1]:,} outside it are compared"
    return Estimate("auc", areas[0], "", *area_interval(areas[0], *sizes), areas[1], reason=words, params=OF_UNITS)


def _allowed_false_positives(share: float, controls: int) -> int:
    """Return the number of scored controls that may be taken for records of the data."""
    # 0.01 * 100 must not be rounded down to 0.
    return math.floor(share * controls * (1 + 1e-12))


def _count_reaching_limit(own: Integers | Floats, others: Integers | Floats, allowed: int) -> tuple[int, int]:
    """Count the records and the controls that reach the threshold of ``_score_limit``."""
    limit = _score_limit(others, allowed)
    return int(np.count_nonzero(own >= limit)), int(np.count_nonzero(others >= limit))


def _score_limit(others: Integers | Floats, allowed: int) -> float:
    """Return the lowest control score that at most ``allowed`` controls reach.

    If more controls tie at the highest score, the threshold is just above it.
    """
    scores, counts = np.unique(others, return_counts=True)
    reaching = np.cumsum(counts[::-1])[::-1]
    fit = np.flatnonzero(reaching <= allowed)
    return float(scores[fit[0]]) if len(fit) else float(np.nextafter(float(scores[-1]), np.inf))


def _family_estimates(
    names: Sequence[str],
    scored: FamilyScores,
    dataset: int,
    first: Booleans,
    spec: MembershipInferenceSpec,
    params: Mapping[str, Any],
    rng: np.random.Generator,
    without: float,
) -> Iterator[Estimate]:
    """Yield the estimates of the best attacker of the family, whose ``names`` these are.

    ``dataset`` is 0 for all datasets together, else the number of one.
    """
    scores, training, unit_of = scored.score[dataset : dataset + 1], scored.is_member, scored.unit
    people, controls = int(training.sum()), int((~training).sum())
    what = "unit" if params.get("of") == "units" else "record"
    if not len(scores) or not has_enough_people(training, unit_of):
        reason = (
            f"{count_noun(people, what)} and {controls:,} controls are too few to choose an attacker on half of them and judge it on the other: "
            f"each half needs {FEWEST_OF_HALF} of both"
            if len(scores)
            else "every control is as vulnerable as the targets: none is left as a reference"
        )
        for output in FAMILY_OUTPUTS:
            yield Estimate.not_computed(output.name, reason, **params)
        return
    found = evaluate_best_attacker(scores[0], training, first, spec.false_positives, rng, unit_of=unit_of)
    chosen = " and ".join(dict.fromkeys(names[k] for k in found.selected_attackers))
    words = f"{count_noun(people, what)} in the data and {controls:,} outside it; the attackers that did best with other people: {chosen}"
    yield Estimate("family_auc", found.area, "", found.lower, found.upper, without, reason=words, params=params)
    positives = found.true_positives
    # records of a unit are found together, so that they are taken for one at most
    effect = 1.0 if unit_of is None else people / len(np.unique(unit_of[training]))
    rate = SuccessRate(positives * people, people, design_effect=effect)
    yield Estimate(
        "family_tpr", positives, "", *rate.interval, found.false_positives,
        reason=words, params=params,
    )  # fmt: skip
    yield Estimate("p_value", found.p_value, "", reason=words, params=params)
    yield Estimate("detectable_auc", found.detectable_area, "", reason=words, params=params)


@dataclass(frozen=True, kw_only=True, slots=True)
class MembershipInferenceSpec(Spec):
    """Settings: known variables, density estimation, and use of the controls."""

    known: Annotated[Known, Variant("variables the intruder has of a person; default: all but identifiers")] = ()
    neighbours: Annotated[int, Param("which nearest record tells how dense a table is", ge=1)] = 1
    reference: Annotated[
        float, Param("share of the data and of the controls that the intruder has; the others are scored", gt=0, lt=1)
    ] = REFERENCE_SHARE
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
        """Return these settings with ``known`` set to all variables but identifiers if none is named."""
        return replace(self, known=self.known or schema.non_identifiers)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if the intruder knows no variable."""
        known = self.for_release(schema, released).known
        if not known:
            raise BadInput(f"{place}.known", "all variables are identifiers; name what the intruder has of a person")


FAMILY_OUTPUTS = (
    Output(
        "family_auc",
        "chance that the best of a family of attackers takes a record of the data for one rather than a control record; 0.5 where the release reveals nothing, "
        "or the chance without the release where that is higher",
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
            "Of a person in the data and one outside, the best of several attackers picks the right one in {value} of pairs.",
            "Good is 50 % or below, as chance gives: no attacker can tell who is in the data.",
            "At least one attacker finds out who is in the data.",
            MEMBERSHIP,
            counts="share",
            baseline="without the release",
            term="area under the ROC curve (AUC) of the best attacker",
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
            "The best of several attackers finds {value} of the people in the data, while he takes {baseline} of the outsiders for them, wrongly.",
            "Good is no more than his false alarms, the outsiders whom he takes for people in the data.",
            "The best attacker finds too many members.",
            MEMBERSHIP,
            counts="share",
            baseline="false alarms: people outside the data who are taken for members",
            term="true positive rate of membership inference",
        ),
    ),
    Output(
        "p_value",
        "chance to find as much by the best of the family where the release reveals nothing, by permuted labels",
        "none",
        range=SHARE,
        short="p",
        estimated=True,
        label=Label(
            "Chance of such a membership finding (p-value)",
            "If the release revealed nothing, the best attacker would still do as well or better with probability {value}.",
            "A large value is good; one below 5 % means that the release may reveal who is in the data.",
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
            "Smallest AUC that would have been found",
            "An attacker who is right in {value} of pairs or more would most probably (80 %) have been noticed; a weaker one may go unnoticed.",
            "Lower is better: the test then notices smaller leaks. 50 % of pairs is guessing, 100 % certainty.",
            counts="share",
            scene="Of a person in the data and one outside, an attacker picks the one whom he takes for the one in the data.",
        ),
    ),
)


OUTPUTS = (
    Output(
        "auc",
        "chance that a record of the data looks more like one of the release than a control record does; 0.5 where the release reveals nothing",
        "low",
        "share",
        range=SHARE,
        short="AUC",
        estimated=True,
        risk=RiskOutput(questions=("membership",), area=True),
        statbarn="StatisticalHypothesisTests",
        label=Label(
            "Members distinguished from others (AUC)",
            "Of a person in the data and one outside, the one in the data looks more like the release in {value} of pairs.",
            "Good is 50 % or below, as chance gives: people in the data look like anybody else.",
            "The release reveals who is in the data.",
            MEMBERSHIP,
            counts="share",
            baseline="without the release, where the one less like other outsiders is picked",
            term="area under the ROC curve (AUC) of membership inference",
        ),
    ),
    *attack_outputs(
        "membership",
        "guesses",
        "take a person for one of the data, at the false positives asked for,",
        ("membership",),
        MEMBERSHIP,
        exact=False,
        scene="An intruder has a person's values, and takes the person for one of the data where more released records are near than is usual for outsiders. He succeeds with a person in the data; an outsider so taken is a false alarm.",
        without="Without the release he has records of some outsiders only, and takes those for people in the data who are least like these.",
        rates=(
            "Of {guesses} {people} in the data he recognises {count}.",
            "Of as many {outsiders} he wrongly takes for people in the data {count}.",
        ),
    ),
    *FAMILY_OUTPUTS,
)


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the measure if records are held out."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    # The measure takes one control where there are fewer, but a draft holds out enough for the false positives that it
    # asks for.
    limits, sizes = (
        limits_for_all_variables("membership", case, FALSE_POSITIVES, scored=REFERENCE_SHARE),
        planned_sizes(case, REFERENCE_SHARE),
    )
    if (
        case.controls is not None
        and _allowed_false_positives(FALSE_POSITIVES, case.controls - _reference_size(case.controls, REFERENCE_SHARE))
        < 1
    ):
        limits = tuple(replace(limit, detectable=1.0) for limit in limits)
    if limits and sizes is not None:
        family = OfferedLimit(
            "family_auc", "max", NO_LEAK + (1 - NO_LEAK) * EXCESS_LIMIT, OURS, "membership", params={"people": "random"},
            detectable=detectable_family_area(*sizes), baseline=NO_LEAK, extra=True,
        )  # fmt: skip
        limits = (*limits, family)
    return Offer("whether it can be told who is in the data and who is not", limits=limits)


@measure_method(
    "Membership inference",
    spec=MembershipInferenceSpec,
    source="van Breugel, Sun, Qian & van der Schaar (2023); Carlini et al. (2022); Newcombe (2006)",
    outputs=OUTPUTS,
    gather=gather_blocks,
    block_result=MembershipBlock,
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
@drafts(_draft_offer)
def membership_inference(
    confidential: Microdata,
    releases: Sequence[Microdata],
    models: Models,
    spec: MembershipInferenceSpec,
    block: int,
    run: Run,
) -> MembershipBlock:
    """Compute the scores of one block of records and controls. Raises NotComputable if there are too few controls."""
    assert confidential.controls is not None
    aside, controls = _divide_people(confidential.controls, "control record", spec, run.rng)
    of_data, own = _divide_people(confidential, "record of the data", spec, run.rng)
    reference = of_data, aside
    attack = _MembershipAttack.from_tables(confidential, releases, reference, spec)
    drawn_halves = draw_variable_halves(len(spec.known), run.rng)
    seed = run.rng.integers(2**63)
    sides = attack.attacked_block(own, controls, block, spec.blocks)
    inside = []
    for done, places in enumerate(attack.released, start=1):
        inside.append(NeighbourDistances.from_places(attack.gower, sides.places, places, spec.neighbours))
        run.report(Progress(done, len(releases), "datasets"))
    elsewhere = NeighbourDistances.from_places(attack.gower, sides.places, attack.reference, spec.neighbours)
    # The distance to the closest released record alone is no measure: it is small for everybody who resembles many (Yao
    # et al. 2025).
    score = density_scores(inside, elsewhere, len(attack.gower.names), spec.neighbours)
    family_scores = {}
    if "random" in spec.people:
        family = attack.attacker_family(drawn_halves)
        scores = family.membership_scores(attack.gower, sides.places, attack.released, attack.reference, score)
        without = family.scores_without_release(attack.gower, sides.places, attack.reference)
        of_units = attack.score_whole_units(sides, reference, attack.reference, drawn_halves)
        family_scores["random"] = FamilyScores(sides.number, sides.is_member, scores, without, sides.unit, of_units)
    if "vulnerable" in spec.people:
        family_scores["vulnerable"] = attack.score_vulnerable(spec, block, drawn_halves, run.rng)
    return MembershipBlock(
        number=sides.number,
        row=sides.row,
        is_member=sides.is_member,
        score=score,
        score_without_release=elsewhere.kth_distance,
        family_scores=family_scores,
        drawn_halves=drawn_halves,
        seed=int(seed),
        unit=sides.unit,
    )
