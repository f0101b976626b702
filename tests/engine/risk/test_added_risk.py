"""What a release adds for its own people beyond others: nothing where members are easier to guess anyway, all of it where they leak."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.adversary.calibration import area_without_release, draw_first_half
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.risk._attack import AddedSuccess, AttackResult, SuccessRate
from sfumato.engine.risk.attribute_inference import AttributeInferenceSpec, attribute_inference
from sfumato.engine.risk.linkability import LinkabilitySpec, linkability

PLACES = tuple(f"p{i}" for i in range(8))
SCHEMA = schema_of(
    "age: count quasi_identifier",
    Variable("place", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=PLACES),
    Variable("ill", Kind.CATEGORICAL, Role.SENSITIVE, levels=tuple(f"d{i}" for i in range(8))),
    "pay: count",
)
MEMBERS, CONTROLS = 400, 250


def people(count: int, rng: np.random.Generator, easy: float) -> pd.DataFrame:
    """People of whom a share lives in four ``easy`` places, where nine in ten have the illness of the place; elsewhere two in ten have it."""
    lives_easily = rng.random(count) < easy
    place = np.where(lives_easily, rng.integers(0, 4, count), rng.integers(4, 8, count))
    ill = np.where(rng.random(count) < np.where(lives_easily, 0.9, 0.2), place, rng.integers(0, 8, count))
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, count),
            "place": np.array(PLACES)[place],
            "ill": np.array([f"d{i}" for i in range(8)])[ill],
            "pay": rng.integers(0, 5_000, count),
        }
    )


def table(frame: pd.DataFrame) -> Microdata:
    return conform_to_schema(frame.reset_index(drop=True), SCHEMA)


def inferred(data: Microdata, shown: Microdata, seed: int) -> dict[str, Estimate]:
    spec = AttributeInferenceSpec(people=("random",)).for_release(SCHEMA, ())
    found = attribute_inference(data, shown, spec, Run(np.random.default_rng(seed))).estimates
    return {one.measure: one for one in found if not one.params}


def linked(data: Microdata, shown: Microdata, seed: int) -> dict[str, Estimate]:
    spec = LinkabilitySpec(people=("random",)).for_release(SCHEMA, ())
    found = linkability(data, shown, spec, Run(np.random.default_rng(seed))).estimates
    return {one.measure: one for one in found if not one.params}


ATTACKS: dict[str, Callable[[Microdata, Microdata, int], dict[str, Estimate]]] = {
    "inference": inferred,
    "linkage": linked,
}


pytestmark = pytest.mark.slow


@cache
def simulated(attack: str, easier: float, copied: float, times: int = 40) -> tuple[dict[str, Estimate], ...]:
    """Attacks on releases of people like the members, and some copied members, of whom a share that is ``easier`` larger than of controls lives easily."""
    found = []
    for seed in range(times):
        rng = np.random.default_rng(seed)
        own, others = people(MEMBERS, rng, 0.5 + easier), people(CONTROLS, rng, 0.5)
        fresh = people(MEMBERS, rng, 0.5 + easier)
        leaked = round(copied * MEMBERS)
        shown = pd.concat([own.iloc[:leaked], fresh.iloc[leaked:]])
        found.append(ATTACKS[attack](table(own).with_controls(table(others)), table(shown), seed))
    return tuple(found)


def share_found(results: tuple[dict[str, Estimate], ...], measure: str) -> float:
    return float(np.mean([one[measure].lower > 0 for one in results]))  # type: ignore[operator]


def test_members_who_are_easier_to_guess_anyway_are_no_added_risk_but_an_excess() -> None:
    """The plain excess finds the people and not the release: it is the negative control."""
    found = simulated("inference", 0.3, 0.0)
    assert share_found(found, "excess_risk") > 0.7
    for measure in ("added_risk", "largest_added_risk"):
        assert share_found(found, measure) <= 0.1, measure
        values = [one[measure].value for one in found]
        assert abs(np.mean(values)) < 4 * np.std(values) / math.sqrt(len(values)) + 0.02  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", ATTACKS)
def test_without_a_leak_neither_added_risk_nor_excess_is_often_above_nothing(attack: str) -> None:
    found = simulated(attack, 0.0, 0.0)
    for measure in ("added_risk", "largest_added_risk", "excess_risk", "largest_excess_risk"):
        assert share_found(found, measure) <= 0.1, measure


def families(count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Families of three who share home, illness and pay, as no column says."""
    shared = pd.DataFrame(
        {
            "place": np.array(PLACES)[rng.integers(0, 8, count)],
            "ill": [f"d{one}" for one in rng.integers(0, 8, count)],
            "pay": rng.integers(0, 5_000, count),
        }
    )
    return shared.loc[np.repeat(shared.index, 3)].assign(age=rng.integers(18, 90, 3 * count)).reset_index(drop=True)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("copied", [0.0, 0.4])
def test_relatives_whom_no_column_names_are_no_added_risk_and_hide_none(attack: str, copied: float) -> None:
    """Other families are released, or some of the data: a control's own relatives, from whom he could be guessed too, are hold-out records."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own, others, fresh = families(130, rng), families(80, rng), families(130, rng)
        leaked = 3 * round(copied * 130)
        shown = pd.concat([own.iloc[:leaked], fresh.iloc[leaked:]])
        found.append(ATTACKS[attack](table(own).with_controls(table(others)), table(shown), seed))
    for measure in ("added_risk", "largest_added_risk"):
        share = share_found(tuple(found), measure)
        assert share > 0.8 if copied else share <= 0.15, measure


@pytest.mark.parametrize(("attack", "copied"), [("inference", 0.4), ("linkage", 0.2)])
def test_a_leak_is_added_risk_as_large_as_the_excess(attack: str, copied: float) -> None:
    found = simulated(attack, 0.0, copied)
    assert share_found(found, "added_risk") > 0.8
    assert share_found(found, "largest_added_risk") > 0.8
    added, excess = (np.mean([one[name].value for one in found]) for name in ("added_risk", "excess_risk"))  # type: ignore[arg-type]
    assert added == pytest.approx(excess, abs=0.03)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_smallest_added_risk_that_is_found_goes_with_the_spread(attack: str) -> None:
    """2.8 standard errors, which simulation knows too: the interval has neither half nor twice the width."""
    found = simulated(attack, 0.0, 0.0)
    spread = np.std([one["added_risk"].value for one in found])  # type: ignore[arg-type]
    detectable = np.mean([one["detectable_added_risk"].value for one in found])  # type: ignore[arg-type]
    assert 0.7 < detectable / (2.8 * spread) < 1.5


def test_the_added_risk_by_hand() -> None:
    """Members 30 of 50 with and 25 without, controls 20 of 40 with and 18 without."""
    own, others = np.repeat([1.0, 0.0], [5, 45]), np.repeat([1.0, 0.0], [2, 38])
    gain = AddedSuccess.from_differences(own, others, np.random.default_rng(1))
    assert gain is not None
    result = AttackResult(SuccessRate(30, 50), None, SuccessRate(20, 40), added_success=gain)
    added = {one.measure: one for one in result.estimates()}["added_risk"]
    assert added.value == pytest.approx((5 / 50 - 2 / 40) / 0.5)
    assert added.lower <= 0 < added.upper  # type: ignore[operator]
    for is_naive in (False, True):
        rates = {one.measure: one for one in replace(result, is_naive=is_naive).estimates()}
        assert rates["control_without_release"].value == pytest.approx(18 / 40)
        assert ("attack_without_release" in rates) is is_naive
    assert rates["attack_without_release"].value == pytest.approx(25 / 50)
    plain = {one.measure: one for one in AttackResult(SuccessRate(30, 50), None, SuccessRate(20, 40)).estimates()}[
        "added_risk"
    ]
    assert plain.value is None
    assert plain.reason == "there are no guesses without the release to compare with"
    alone = {one.measure: one for one in AttackResult(SuccessRate(30, 50), None, SuccessRate(20, 40)).estimates()}
    assert alone["control_without_release"].reason == plain.reason
    assert AddedSuccess.from_differences(own[:0], others, np.random.default_rng(1)) is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_added_risk_is_made_of_four_success_rates(attack: str) -> None:
    """The rates of all variables and, with those of the best choice in place of the first two, of the best choice."""
    for found in simulated(attack, 0.3, 0.2, times=2):
        without, of_others = (found[name].value for name in ("attack_without_release", "control_without_release"))
        for measure, own, others in (
            ("added_risk", "attack_success", "control_success"),
            ("largest_added_risk", "best_attack_with_release", "best_control_with_release"),
        ):
            a, c = found[own].value, found[others].value
            assert found[measure].value == pytest.approx(((a - without) - (c - of_others)) / (1 - c))  # type: ignore[operator]
        a, c = (found[name].value for name in ("best_attack_success", "best_control_success"))
        assert found["largest_excess_risk"].value == pytest.approx((a - c) / (1 - c))  # type: ignore[operator]


def test_the_area_without_a_release_is_a_half_of_equal_people_and_more_of_others() -> None:
    rng = np.random.default_rng(2)
    member = np.arange(400) < 250
    first = draw_first_half(member, rng)
    same = [area_without_release(rng.random((400, 3)), member, first) for _ in range(20)]
    assert min(same) == 0.5
    assert np.mean(same) < 0.53
    apart = rng.random((400, 3)) + 0.5 * member[:, None] * (np.arange(3) == 1)
    assert area_without_release(apart, member, first) > 0.8
    assert area_without_release(np.zeros((400, 0)), member, first) == 0.5
