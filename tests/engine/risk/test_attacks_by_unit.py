"""Attacks where several records describe a unit: whole units are attacked, divided and permuted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA, as_microdata, draw_households, hold_out, without_households

from sfumato.engine.adversary.areas import de_long_variance, roc_area
from sfumato.engine.adversary.attackers import aligned_unit_distances
from sfumato.engine.adversary.calibration import draw_first_half, evaluate_best_attacker, score_units
from sfumato.engine.adversary.permuted import UnitsOfBoth, exact_p_value
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Role, Schema
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.risk._attack import AddedSuccess, SuccessRate
from sfumato.engine.risk._attacked_records import draw_half_by_values, draw_rows, number_units, units_of_both
from sfumato.engine.risk.attribute_inference import AttributeInferenceSpec, attribute_inference
from sfumato.engine.risk.linkability import LinkabilitySpec, linkability
from sfumato.engine.risk.membership_inference import (
    MembershipBlock,
    MembershipInferenceSpec,
    gather_blocks,
    membership_inference,
)
from sfumato.engine.risk.singling_out import SinglingOutSpec, singling_out
from sfumato.engine.statistics.gower import GowerDistance

NO_INCOME = tuple(name for name in SCHEMA.non_identifiers if name != "income")


def by_membership(data: Microdata, released: Microdata, run: Run, **settings: object) -> Sequence[Estimate]:
    spec = MembershipInferenceSpec(**{"blocks": 2, "false_positives": 0.05, **settings}).for_release(data.schema, ())  # type: ignore[arg-type]
    seeds = [run.rng.bit_generator.seed_seq for _ in spec.grid()]  # type: ignore[attr-defined]
    parts = [
        membership_inference(data, [released], lambda _: (), spec, block, Run(np.random.default_rng(seed)))
        for block, seed in enumerate(seeds)
    ]
    # as they come from their files
    parts = [MembershipBlock.from_arrays(part.to_arrays()) for part in parts]
    return gather_blocks(data, [released], spec, parts).whole.estimates


def by_linkability(data: Microdata, released: Microdata, run: Run) -> Sequence[Estimate]:
    return linkability(data, released, LinkabilitySpec().for_release(data.schema, ()), run).estimates


def by_inference(data: Microdata, released: Microdata, run: Run) -> Sequence[Estimate]:
    spec = AttributeInferenceSpec().for_release(data.schema, ())
    return attribute_inference(data, released, spec, run).estimates


def by_singling_out(data: Microdata, released: Microdata, run: Run) -> Sequence[Estimate]:
    return singling_out(data, released, SinglingOutSpec(most=100).for_release(data.schema, ()), run).estimates


Attack = Callable[[Microdata, Microdata, Run], Sequence[Estimate]]
ATTACKS: Mapping[str, Attack] = {
    "membership": by_membership,
    "linkability": by_linkability,
    "inference": by_inference,
    "singling out": by_singling_out,
}


def estimates(attack: Attack, data: pd.DataFrame, controls: pd.DataFrame, released: Microdata, schema: Schema = SCHEMA, seed: int = 0) -> list[tuple[object, ...]]:  # fmt: skip
    """Return the estimates of an attack in plain values."""
    table = as_microdata(data, schema).with_controls(as_microdata(controls, schema))
    found = attack(table, released, Run(np.random.default_rng(seed)))
    return [
        (one.measure, one.target, repr(one.params), one.value, one.lower, one.upper, one.baseline, one.reason)
        for one in found
    ]


def with_role(role: Role) -> Schema:
    """Return the schema in which the number of the household has another role."""
    return Schema(tuple(replace(one, role=role) if one.role is Role.UNIT else replace(one, level="") for one in SCHEMA))


def test_p_of_whole_units_is_the_share_of_all_divisions() -> None:
    """All C(7, 3) divisions of seven units of 1 to 3 records into three and four."""
    own_units, other_units = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 2, 3, 3])
    own, others = np.array([1, 0.5, 0, 1, 1, 0.25]), np.array([0, 0, 1, 0.5, 0, 0.0])
    units = np.concatenate([own_units, 3 + other_units])
    values = np.concatenate([own, others])

    def difference(members: tuple[int, ...]) -> float:
        is_member = np.isin(units, members)
        return float(values[is_member].mean() - values[~is_member].mean())

    every = np.array([difference(some) for some in combinations(range(7), 3)])
    observed = difference((0, 1, 2))
    expected = np.mean(every > observed + 1e-9) + np.mean(np.abs(every - observed) < 1e-9) / 2
    found = [
        exact_p_value(own, others, np.random.default_rng(seed), units=UnitsOfBoth(own_units, other_units))
        for seed in range(200)
    ]
    assert np.mean(found) == pytest.approx(expected, abs=0.01)


def equal_households(rng: np.random.Generator, units: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return right guesses that are equal in all records of a unit, and the units."""
    return np.repeat((rng.random(units) < 0.3).astype(float), size), np.repeat(np.arange(units), size)


def test_p_of_whole_units_keeps_its_level_and_p_of_records_does_not() -> None:
    by_unit, by_record, covered = [], [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        (own, of_own), (others, of_others) = equal_households(rng, 60, 3), equal_households(rng, 40, 3)
        units = UnitsOfBoth(of_own, of_others)
        by_unit.append(exact_p_value(own, others, rng, units=units))
        by_record.append(exact_p_value(own, others, rng))
        gain = AddedSuccess.from_differences(own, others, rng, units)
        assert gain is not None
        covered.append(abs(gain.members - gain.controls) < 1.96 * gain.spread)
    assert 0.02 < np.mean(np.array(by_unit) <= 0.05) < 0.09
    assert np.mean(np.array(by_record) <= 0.05) > 0.1, "the negative control"
    assert np.mean(covered) > 0.92


def test_an_interval_of_equal_records_is_that_of_their_units() -> None:
    right, units = equal_households(np.random.default_rng(1), 80, 4)
    of_records = SuccessRate.from_chances(right, units).interval
    of_units = SuccessRate.from_chances(right[::4]).interval
    assert of_records == pytest.approx(of_units, rel=0.02)
    # Different records of a unit count as much as any others.
    assert SuccessRate.from_chances(right, np.arange(320)).design_effect == pytest.approx(1)


def test_scores_of_units_by_loops() -> None:
    rng = np.random.default_rng(2)
    scores, unit_of = rng.normal(size=(30, 2)), rng.integers(3, 9, 30)
    found = score_units(scores, unit_of)
    for at, number in enumerate(np.unique(unit_of)):
        own = scores[unit_of == number]
        assert found[at] == pytest.approx(np.concatenate([own.max(axis=0), own.min(axis=0), own.sum(axis=0)]))


def test_variance_of_an_area_of_repeated_scores_is_that_of_one_of_each() -> None:
    rng = np.random.default_rng(3)
    own, others = rng.normal(0.5, 1, 50), rng.normal(0, 1, 40)
    units = np.repeat(np.arange(50), 3), np.repeat(np.arange(40), 3)
    repeated = de_long_variance(np.repeat(own, 3), np.repeat(others, 3), units)
    assert repeated == pytest.approx(de_long_variance(own, others))
    assert roc_area(np.repeat(own, 3), np.repeat(others, 3)) == pytest.approx(roc_area(own, others))


def test_the_best_attacker_keeps_its_level_by_unit_and_not_by_record() -> None:
    by_unit, by_record = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        unit_of = np.repeat(np.arange(80), 4)
        scores = np.repeat(rng.normal(size=(80, 4)), 4, axis=0) + 0.1 * rng.normal(size=(320, 4))
        member = unit_of < 45
        for units, found in ((unit_of, by_unit), (None, by_record)):
            first = draw_first_half(member, rng, units)
            found.append(evaluate_best_attacker(scores, member, first, 0.05, rng, 99, units).p_value)
    assert np.mean(np.array(by_unit) <= 0.05) < 0.1
    assert np.mean(np.array(by_record) <= 0.05) > 0.12, "the negative control"


def test_halves_and_samples_take_whole_units() -> None:
    rng = np.random.default_rng(4)
    data = as_microdata(draw_households(rng, 300))
    numbers = data.frame["household"].to_numpy()
    half = draw_half_by_values(data, rng)
    assert set(numbers[half]).isdisjoint(numbers[~half])
    assert len(set(numbers[half])) == 150
    some = draw_rows(data, 200, rng)
    assert 190 <= len(some) <= 200
    left = np.setdiff1d(np.arange(len(data)), some)
    assert set(numbers[some]).isdisjoint(numbers[left])


def test_distances_of_units_by_loops() -> None:
    rng = np.random.default_rng(9)
    tables = [as_microdata(draw_households(rng, number)) for number in (40, 30)]
    gower = GowerDistance.from_tables(tables, sorted(NO_INCOME))
    sides = [(gower.record_places(table), table.units) for table in tables]
    found = aligned_unit_distances(gower, *sides)  # type: ignore[arg-type]
    levelled = [name in gower.levels for name in gower.names]

    def records(side: int, unit: int) -> list[tuple[float, ...]]:
        """The records of a unit, by levels and then numbers."""
        places, units = sides[side]
        assert units is not None
        rows = [tuple(row) for row in places[units.unit_of == unit].tolist()]
        return sorted(rows, key=lambda row: [x for x, has in zip(row, levelled, strict=True) if has] + [x for x, has in zip(row, levelled, strict=True) if not has])  # fmt: skip

    for unit in range(40):
        mine, best = records(0, unit), len(gower.names) * gower.unit_distance
        for other in range(30):
            theirs = records(1, other)
            if len(theirs) == len(mine):
                each = [float(gower.pairwise_distances(np.array([a]), np.array([b]))[0, 0]) for a, b in zip(mine, theirs, strict=True)]  # fmt: skip
                best = min(best, sum(each) / len(mine))
        assert found[unit] == pytest.approx(best)


def test_units_on_both_sides_are_seen_where_some_have_no_number() -> None:
    """Then their numbers are fractions on one side and whole on the other."""
    rng = np.random.default_rng(3)
    data, controls = hold_out(draw_households(rng, 40), rng)
    split = pd.concat([data.iloc[:3], controls], ignore_index=True)
    for others, is_apart in ((controls, True), (split, False)):
        ours, theirs = (as_microdata(one, SCHEMA) for one in (data, others))
        numbers = theirs.frame["household"]
        theirs = replace(theirs, frame=theirs.frame.assign(household=numbers.where(numbers != numbers.iloc[-1])))
        assert ours.frame["household"].dtype != theirs.frame["household"].dtype
        found = units_of_both(ours, np.arange(len(data)), theirs, np.arange(len(others)))
        assert (found is not None) is is_apart


def test_units_are_numbered_by_their_values() -> None:
    frame = draw_households(np.random.default_rng(5), 100)
    other = frame.assign(household=5_000 - 3 * frame["household"]).sample(frac=1, random_state=1)
    one, two = (number_units(as_microdata(each)) for each in (frame, other))
    assert one is not None
    assert two is not None
    # households of equal people may change their numbers
    values = [each[list(SCHEMA.non_identifiers)].astype(str).agg("|".join, axis=1) for each in (frame, other)]
    pairs = [sorted(zip(number.tolist(), text, strict=True)) for number, text in zip((one, two), values, strict=True)]
    assert pairs[0] == pairs[1]


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_neither_the_order_of_records_nor_the_numbers_of_units_matter(attack: str) -> None:
    rng = np.random.default_rng(6)
    data, controls = hold_out(draw_households(rng, 240), rng)
    released = as_microdata(draw_households(rng, 120))
    numbers = dict(enumerate(rng.permutation(10_000)[:240].tolist()))
    shuffled = [
        frame.assign(household=frame["household"].map(numbers)).sample(frac=1, random_state=k).reset_index(drop=True)
        for k, frame in enumerate((data, controls))
    ]
    one = estimates(ATTACKS[attack], data, controls, released)
    two = estimates(ATTACKS[attack], *shuffled, released)
    for left, right in zip(one, two, strict=True):
        assert left[:3] == right[:3]
        assert left[3:7] == pytest.approx(right[3:7], abs=1e-9), left


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_record_a_unit_gives_what_the_attack_gives_without_units(attack: str) -> None:
    rng = np.random.default_rng(7)
    data, controls = hold_out(draw_households(rng, 300).drop_duplicates("household"), rng)
    released = draw_households(rng, 150).drop_duplicates("household")
    found = [
        estimates(ATTACKS[attack], data, controls, as_microdata(released, schema), schema)
        for schema in (SCHEMA, with_role(Role.IDENTIFIER))
    ]
    assert found[0] == found[1]
    assert not [one for one in found[0] if "units" in str(one[2])]


def answers(found: Sequence[Estimate], **params: str) -> dict[str, Estimate]:
    return {one.measure: one for one in found if one.params == params}


@pytest.mark.slow
@pytest.mark.parametrize("is_numbered", [True, False])
def test_a_release_of_the_true_table_gives_away_all_households(is_numbered: bool) -> None:
    """By record many a hold-out person is like somebody of the data; no other household is like one of theirs."""
    rng = np.random.default_rng(8)
    data, controls = hold_out(draw_households(rng, 800), rng)
    table = as_microdata(data).with_controls(as_microdata(controls))
    released = as_microdata(data) if is_numbered else without_households(data)
    found = by_membership(table, released, Run(np.random.default_rng(0)), known=NO_INCOME)
    of_units, of_records = answers(found, of="units"), answers(found)
    assert of_units["family_auc"].value > 0.93  # type: ignore[operator]
    assert 1 - of_units["family_auc"].value < (1 - of_records["auc"].value) / 2  # type: ignore[operator]
    assert of_units["p_value"].value < 0.01  # type: ignore[operator]
    assert answers(found, of="units", people="vulnerable")["family_auc"].value > 0.9  # type: ignore[operator]


@pytest.mark.slow
def test_honest_releases_of_households_are_found_at_the_level() -> None:
    """REVIEW A8: 450 people in households of three who are equal in all columns but one."""
    by_unit, by_record = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parts = []
        for first, units in ((0, 100), (100, 50), (150, 100)):
            frame = draw_households(rng, 3 * units).drop_duplicates("household").iloc[np.repeat(np.arange(units), 3)]
            age = rng.integers(0, 90, 3 * units)
            parts.append(frame.assign(household=np.repeat(np.arange(first, first + units), 3), age=age))
        data, controls, others = parts
        for found, schema in ((by_unit, SCHEMA), (by_record, with_role(Role.IDENTIFIER))):
            table = as_microdata(data, schema).with_controls(as_microdata(controls, schema))
            run = Run(np.random.default_rng(seed))
            got = by_membership(table, as_microdata(others, schema), run, people=("random",))
            sides = [answers(got), answers(got, of="units")] if schema is SCHEMA else [answers(got)]
            found.append(any(one["family_auc"].lower > 0.5 for one in sides))  # type: ignore[operator]
    assert sum(by_unit) <= 3
    assert sum(by_record) > sum(by_unit), "the negative control"


@pytest.mark.slow
def test_households_released_with_other_ages_are_found_member_by_member() -> None:
    """No household stands in the release as it is; whose ages are a year off is near all the same."""
    rng = np.random.default_rng(10)
    data, controls = hold_out(draw_households(rng, 600), rng)
    age = (data["age"] + rng.choice([-1, 1], len(data))).clip(0)
    income = rng.permutation(data["income"].to_numpy())
    table = as_microdata(data).with_controls(as_microdata(controls))
    released = as_microdata(data.assign(age=age, income=income))
    found = by_membership(table, released, Run(np.random.default_rng(0)), known=NO_INCOME, people=("random",))
    of_units, of_records = answers(found, of="units"), answers(found)
    assert of_units["family_auc"].value > of_records["family_auc"].value + 0.1  # type: ignore[operator]
    assert "record by record" in of_units["family_auc"].reason
