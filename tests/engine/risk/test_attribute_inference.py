"""Attribute inference by hand, of copies, of what is drawn without the data, and of what would mislead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.record_risk import arrays_by_part, average_record_risk
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk import attribute_inference as module
from sfumato.engine.risk.attribute_inference import AttributeInferenceSpec, _blocks_of_groups, attribute_inference

SCHEMA = schema_of(
    Variable("zip", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcdef")),
    "age: continuous quasi_identifier",
    Variable("ill", Kind.CATEGORICAL, Role.SENSITIVE, levels=tuple("xyz")),
    "pay: continuous sensitive",
)
RADIUS = {"pay": Radius.parse("10%")}


def table(rows: pd.DataFrame, origin: Any = "confidential") -> Microdata:
    return conform_to_schema(rows, Schema(tuple(SCHEMA[str(name)] for name in rows)), MissingPolicy.KEEP, origin)


def attacked(own: Microdata, controls: Microdata, released: Microdata, seed: int = 0, **spec: Any) -> Measure:
    whole = AttributeInferenceSpec(**spec).for_release(own.schema, ())
    return attribute_inference(own.with_controls(controls), released, whole, Run(np.random.default_rng(seed)))


def answers(found: Measure, target: str = "ill", **params: str) -> dict[str, Estimate]:
    return {e.measure: e for e in found.estimates if e.target == target and e.params == params}


def values(found: Measure, target: str = "ill", **params: str) -> dict[str, float | None]:
    """All but the power, the p-value and what rests on halves of the controls, which are held against simulations."""
    simulated = ("detectable_excess", "excess_p_value", "added_risk", "detectable_added_risk", "largest_added_risk")
    return {name: e.value for name, e in answers(found, target, **params).items() if name not in simulated}


def draw_people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A population in which age tells something of illness and pay."""
    age = rng.normal(50, 10, n)
    sick = rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 5))
    pay = np.exp(3 + age / 50 + 0.5 * rng.normal(size=n))
    return pd.DataFrame({"zip": rng.choice(list("abc"), n), "age": age, "ill": np.where(sick, "x", "y"), "pay": pay})


OWN = pd.DataFrame({"zip": list("aabc"), "ill": list("xyxx")})
OTHERS = pd.DataFrame({"zip": list("abdd"), "ill": list("yxyx")})


def test_four_records_by_hand() -> None:
    """Of zip a the release says x, of b y, of d x, and of c, which it lacks, x, as most of its records do."""
    found = attacked(table(OWN), table(OTHERS), table(pd.DataFrame({"zip": list("aabd"), "ill": list("xxyx")})))
    found_values = values(found)
    # without the release people are guessed from halves of the controls that are drawn at random
    without = {name: found_values.pop(name) for name in ("attack_without_release", "control_without_release")}
    assert all(0 <= one <= 1 for one in without.values())
    assert found_values == {
        "attack_success": 2 / 4,  # the first and the last
        "control_success": 1 / 4,  # the last
        "excess_risk": pytest.approx((2 / 4 - 1 / 4) / (1 - 1 / 4)),
        "largest_excess_risk": pytest.approx((2 / 4 - 1 / 4) / (1 - 1 / 4)),  # there is nothing to ignore
        "baseline_success": 2 / 4,  # controls have x and y as often: half of x and half of y
        "guesses": 4,
        **dict.fromkeys(("best_attack_success", "best_attack_with_release"), 2 / 4),
        **dict.fromkeys(("best_control_success", "best_control_with_release"), 1 / 4),
    }
    assert found.per_record["right"].tolist() == [1, 0, 0, 1]
    assert found.per_record["candidates"].tolist() == [2, 2, 1, 0]
    assert found.per_record["from_controls"].tolist() == [0, 1, 1, 0.5]  # of a they say y, of b x, and of c either


def test_a_record_s_guess_stands_beside_what_controls_say_of_it() -> None:
    """What is generally so is guessed right of many records and is no worse for any of them: a screen shows both, a check can tell them apart."""
    found = attacked(table(OWN), table(OTHERS), table(pd.DataFrame({"zip": list("aabd"), "ill": list("xxyx")})))
    declared = method_by_key("risk.attribute_inference")
    assert declared is not None
    risk = average_record_risk([arrays_by_part(found.per_record, declared.measurement.per_record)])
    assert risk.prior is not None
    assert (risk.probability.tolist(), risk.prior.tolist()) == ([1, 0, 0, 1], [0, 1, 1, 0.5])
    assert risk.ranking().tolist()[:2] == [0, 3], "of equally probable ones that which was least so before comes first"


def test_the_most_confident_guesses_by_hand() -> None:
    """Those of zip a, from two equal records each; of the controls the one of zip a."""
    released = table(pd.DataFrame({"zip": list("aabd"), "ill": list("xxyx")}))
    found = values(attacked(table(OWN), table(OTHERS), released, confident=0.25), guesses="confident")
    assert (found["attack_success"], found["guesses"], found["control_success"]) == (0.5, 2, 0)
    assert found["excess_risk"] == 0.5


def test_four_numbers_by_hand() -> None:
    """Ages meet the nearest: 20 says 100, 31 says 200; 109 is within 10 % of 100, 230 is not of 200, and a control says nothing."""
    own = pd.DataFrame({"age": [20.0, 21, 31, 30], "pay": [100.0, 109, 200, 230]})
    released = table(pd.DataFrame({"age": [20.0, 31], "pay": [100.0, 200]}))
    others = pd.DataFrame({"age": [20.0, 20, 40, 31], "pay": [100.0, 120, 150, 190]})
    found = attacked(table(own), table(others), released, known=("age",), radius=RADIUS)
    assert found.per_record["right"].tolist() == [1, 1, 1, 0]
    assert values(found, "pay")["attack_success"] == 3 / 4
    assert values(found, "pay")["control_success"] == 2 / 4, "the first, and 200 within 10 % of 190"


def test_a_copy_gives_everything_away() -> None:
    rng = np.random.default_rng(1)
    own, others = table(draw_people(300, rng)), table(draw_people(200, rng))
    found = attacked(
        own, others, table(own.frame.sample(frac=1, random_state=2).astype({"zip": str}), "synthetic"), radius=RADIUS
    )
    for target in ("ill", "pay"):
        for params in ({}, {"guesses": "confident"}, {"people": "vulnerable"}):
            got = answers(found, target, **params)
            assert (got["attack_success"].value, got["excess_risk"].value, got["excess_risk"].upper) == (1, 1, 1)
            fewest = (
                0.76 if "people" in params else 0.9
            )  # of 34 controls as vulnerable as the 59 targets 24 are guessed right
            assert got["excess_risk"].lower > fewest  # type: ignore[operator]
    assert (found.per_record["right"] == 1).all()


@pytest.mark.slow
def test_a_part_of_the_records_that_is_copied_is_found() -> None:
    """A tenth of a release copied: little on average, all of it among the confident guesses."""
    rng = np.random.default_rng(2)
    own, fresh = draw_people(1000, rng), draw_people(1000, rng)
    fresh.iloc[:100] = own.iloc[:100]
    found = attacked(table(own), table(draw_people(1000, rng)), table(fresh, "synthetic"), radius=RADIUS)
    every, sure = answers(found, "pay"), answers(found, "pay", guesses="confident")
    assert 0.05 < every["excess_risk"].value < 0.15  # type: ignore[operator]
    assert (sure["attack_success"].value, sure["guesses"].value, sure["excess_risk"].value) == (1, 100, 1)


@pytest.mark.slow
def test_the_regularity_of_the_population_is_no_risk() -> None:
    """An illness that follows from age is guessed of controls as well: a high attack, no excess."""
    rng = np.random.default_rng(3)
    tables = [draw_people(600, rng) for _ in range(3)]
    for one in tables:
        one["ill"] = np.where(one["age"] > 50, "x", "y")
    own, others, released = map(table, tables)
    got = answers(attacked(own, others, released, known=("age",), radius=RADIUS))
    assert got["attack_success"].value > 0.98  # type: ignore[operator]
    assert got["baseline_success"].value < 0.6  # type: ignore[operator]
    assert got["excess_risk"].lower <= 0 <= got["excess_risk"].upper  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_no_column_rules_the_others(unit: float) -> None:
    """A known variable of heavy tails and any unit that has nothing to do with anything leaves a leak in the others visible."""
    rng = np.random.default_rng(4)
    own, others, fresh = (draw_people(500, rng) for _ in range(3))
    for one in (own, others, fresh):
        one["age"], one["noise"] = one["age"].round(3), rng.standard_cauchy(500) * unit
    fresh[["zip", "age", "ill", "pay"]] = own[["zip", "age", "ill", "pay"]]
    schema = Schema((*SCHEMA, Variable("noise", Kind.CONTINUOUS, Role.QUASI_IDENTIFIER)))
    tables = [conform_to_schema(one, schema) for one in (own, others, fresh)]
    found = {
        e.target: e for e in attacked(*tables, radius=RADIUS).estimates if e.measure == "excess_risk" and not e.params
    }
    assert found["pay"].lower > 0.03  # type: ignore[operator]


@pytest.mark.slow
def test_order_of_records_and_number_spelling_change_nothing() -> None:
    rng = np.random.default_rng(5)
    tables = [draw_people(200, rng) for _ in range(3)]
    before = attacked(*map(table, tables), radius=RADIUS, records=90)
    mixed = [one.sample(frac=1, random_state=7).reset_index(drop=True) for one in tables]
    for one in mixed:
        one["age"] = one["age"].map("{:+.17e}".format)
    after = attacked(*map(table, mixed), radius=RADIUS, records=90)
    assert before.estimates == after.estimates
    assert answers(before)["guesses"].value == 90
    assert "90 of 200 records are attacked, drawn at random" in answers(before)["attack_success"].reason


def test_missing_values() -> None:
    """A missing level is guessed like any; a missing number is not attacked; a missing known value is near missing ones."""
    own = pd.DataFrame({"zip": ["a", None, "b"], "ill": ["x", None, "y"], "pay": [10.0, 20.0, None]})
    found = attacked(table(own), table(own), table(own), radius=RADIUS)
    assert values(found)["attack_success"] == 1
    assert values(found, "pay")["guesses"] == 2
    assert "training: 1 of 3 records have no value" in answers(found, "pay")["attack_success"].reason
    assert answers(found)["excess_risk"].reason.startswith("every guess about a control record is right")


def test_a_release_without_any_value_is_not_computed() -> None:
    released = table(pd.DataFrame({"zip": ["a", "b"], "ill": ["x", "y"], "pay": [1.0, 2.0]}))
    released.frame["pay"] = np.nan
    found = attacked(
        table(draw_people(30, np.random.default_rng(1))[["zip", "ill", "pay"]]),
        table(draw_people(30, np.random.default_rng(2))[["zip", "ill", "pay"]]),
        released,
        radius=RADIUS,
    )
    assert {e.value for e in answers(found, "pay").values()} == {None}
    assert values(found)["attack_success"] is not None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"known": ("ill",), "radius": RADIUS}, None),
        ({}, '"pay" is continuous; say how near is right: pay = "5%"'),
        ({"sensitive": ("age",), "known": ("age",)}, '"age" is among the known variables'),
        ({"sensitive": ("ill",), "radius": RADIUS}, '"pay" is not guessed here; guessed: ill'),
    ],
)
def test_what_does_not_suit_is_refused(spec: dict[str, Any], message: str | None) -> None:
    if message is None:
        AttributeInferenceSpec(**spec).check_release(SCHEMA, (), "measure[0]")
        return
    with pytest.raises(BadInput, match=message.replace("?", r"\?")):
        AttributeInferenceSpec(**spec).check_release(SCHEMA, (), "measure[0]")


def test_a_variable_that_is_guessed_twice_is_refused() -> None:
    with pytest.raises(BadInput, match=r'sensitive\[1\]: "ill" is listed twice'):
        AttributeInferenceSpec(sensitive=("ill", "ill")).check_repeats("measure[0]")


def test_negative_numbers_have_no_logarithm() -> None:
    """A control or a released record below 0 is near nothing; nothing breaks."""
    own = pd.DataFrame({"zip": list("ab"), "ill": list("xy"), "pay": [1.0, 2.0]})
    other = own.assign(pay=[-1.0, 2.0])
    found = attacked(table(own), table(other), table(other), radius={"pay": Radius.parse("log 5%")})
    assert values(found, "pay")["attack_success"] == 0.5
    assert values(found, "pay")["control_success"] == 0.5


@pytest.mark.study
def test_a_release_drawn_without_the_data_lies_at_the_control() -> None:
    """The interval of the excess holds 0 in 95 % of the simulations, and misses it where half of the records are given away."""
    covers: dict[tuple[str, str], list[bool]] = {}
    found_out: dict[tuple[str, str], list[bool]] = {}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own, others, fresh = draw_people(400, rng), draw_people(400, rng), draw_people(400, rng)
        leaky = fresh.copy()
        leaky.iloc[:200] = own.iloc[:200]
        for released, kept in ((fresh, covers), (leaky, found_out)):
            if kept is found_out and seed >= 40:
                continue
            measure = attacked(table(own), table(others), table(released, "synthetic"), seed, radius=RADIUS)
            for e in measure.estimates:
                if e.measure == "excess_risk":
                    key = e.target, str(e.params.get("guesses") or e.params.get("people") or "all")
                    kept.setdefault(key, []).append(e.lower <= 0 <= e.upper)  # type: ignore[operator]
    for key, held in covers.items():
        print(f"{key}: covers 0 in {np.mean(held):.1%} of {len(held)}; of a leak in {np.mean(found_out[key]):.1%}")
        assert 0.93 <= np.mean(held) <= 0.97
        assert np.mean(found_out[key]) < 0.1


def test_who_ignores_a_place_that_was_dealt_anew_guesses_the_pay_of_people_in_the_data() -> None:
    """Age and pay are kept, zip is dealt anew. The control: of other people the same choices find nothing."""
    rng = np.random.default_rng(21)
    own, others, fresh = (table(draw_people(300, rng)[["zip", "age", "pay"]]) for _ in range(3))
    dealt = table(own.frame.assign(zip=rng.permutation(own.frame.zip.astype(str))), "synthetic")
    settings = {"known": ("zip", "age"), "sensitive": ("pay",), "radius": RADIUS, "people": ("random",)}
    leaks, nothing = (answers(attacked(own, others, one, **settings), "pay") for one in (dealt, fresh))
    assert leaks["excess_risk"].upper < 0.6  # type: ignore[operator]
    assert leaks["largest_excess_risk"].value > 0.9  # type: ignore[operator]
    assert leaks["largest_excess_risk"].reason == "the best intruder compares age; ignores zip"
    assert nothing["largest_excess_risk"].lower <= 0 <= nothing["largest_excess_risk"].upper  # type: ignore[operator]
    less = answers(attacked(own, others, dealt, **{**settings, "known": ("age",)}), "pay")
    assert leaks["largest_excess_risk"].upper >= less["largest_excess_risk"].lower  # type: ignore[operator]


def test_controls_are_guessed_without_the_release_by_other_controls_alone() -> None:
    """Everybody is alone with their age, and illness has nothing to do with it: a release of others adds nothing.

    Whoever let controls be guessed by a half that has them would take them for known without the release, and find a leak.
    """
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        age, ill = rng.permutation(300).astype(float), rng.choice(list("xyz"), 300)
        own, others, released = (
            table(pd.DataFrame({"age": age[some], "ill": ill[some]}))
            for some in (slice(0, 100), slice(100, 200), slice(200, 300))
        )
        found.append(answers(attacked(own, others, released, seed))["added_risk"].value)
    assert np.mean(np.array(found, dtype=float)) == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("asked", [[3, 4, 2, 1, 9, 1, 1], [10], [10, 10], [1] * 25, [25, 1], []])
def test_blocks_have_every_group_once_in_its_order_and_few_donors(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ASKED", 10)
    blocks = list(_blocks_of_groups(np.array(asked, dtype=np.int64)))
    assert [group for first, last in blocks for group in range(first, last)] == list(range(len(asked)))
    assert all(sum(asked[first + 1 : last]) < 10 for first, last in blocks)
