"""Inference by what agreeing records have in common: counted by hand, between a guess and data without protection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.record_risk import (
    arrays_by_part,
    average_record_risk,
    has_record_risk,
    leave_one_out_candidates,
    matched_variables,
)
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.inference_attack import InferenceAttackSpec, inference_attack

SCHEMA = Schema(
    (
        Variable("zip", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcd")),
        Variable("sex", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("f", "m")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("mdc", Kind.CATEGORICAL, Role.SENSITIVE, levels=tuple("uvwxyz")),
        Variable("charge", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)
Rows = list[tuple[Any, ...]]


def table(rows: Rows, origin: str = "synthetic", *, linked: bool = True) -> Microdata:
    frame = pd.DataFrame(rows, columns=list(SCHEMA.names))
    return replace(conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP, origin), linked=linked)  # type: ignore[arg-type]


def attacked(confidential: Microdata, released: Microdata, seed: int = 1, **given: Any) -> Measure:
    spec = InferenceAttackSpec.from_table({"sensitive": "mdc", **given}, "measure[0]").for_release(SCHEMA, ())
    return inference_attack(confidential, released, spec, Run(np.random.default_rng(seed)))


def by_name(measure: Measure) -> dict[str, Estimate]:
    return {e.measure: e for e in measure.estimates}


def discharges(n: int, seed: int) -> pd.DataFrame:
    """Records whose diagnosis and charge depend on all that is known."""
    rng = np.random.default_rng(seed)
    zips, sexes, ages = rng.integers(0, 4, n), rng.integers(0, 2, n), rng.integers(0, 5, n) * 10
    likely = (zips + 2 * sexes + ages // 10) % 6
    mdc = np.where(rng.random(n) < 0.6, likely, rng.integers(0, 6, n))
    return pd.DataFrame(
        {
            "zip": np.array(list("abcd"))[zips],
            "sex": np.array(["f", "m"])[sexes],
            "age": ages,
            "mdc": np.array(list("uvwxyz"))[mdc],
            "charge": 100.0 * likely + 30 * rng.normal(size=n),
        }
    )


def micro(frame: pd.DataFrame, origin: str = "synthetic") -> Microdata:
    return conform_to_schema(frame, SCHEMA, origin=origin)  # type: ignore[arg-type]


OURS = table([("a", "f", 30, "u", 10.0), ("a", "m", 30, "v", 20.0), ("b", "f", 50, "w", 40.0)], "confidential")
THEIRS: Rows = [
    ("a", "f", 30, "u", 10.0), ("a", "f", 30, "u", 20.0), ("a", "f", 30, "v", 60.0),
    ("a", "m", 30, "v", 5.0), ("a", "m", 30, "w", 7.0),
    ("c", "m", 70, "x", 100.0),
]  # fmt: skip


def test_an_attack_by_hand() -> None:
    """The first is right, of two equally frequent values of the second one is right, the third agrees with none on all.

    On sex, the one variable that it shares with anybody, it agrees with three: u, u and v.
    """
    found = attacked(OURS, table(THEIRS))
    assert by_name(found)["misclassification"].value == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert found.per_record["right"].tolist() == [1, 0.5, 0]
    assert found.per_record["guessed"].tolist() == [0.5, 0.5, 0], (
        "u and v are released equally often, more often than all others"
    )
    assert found.per_record["candidates"].tolist() == [3, 2, 0]
    # without knowing anything: u and v are most frequent, twice each
    assert by_name(found)["guess_misclassification"].value == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    charge = attacked(OURS, table(THEIRS), sensitive="charge")
    assert charge.per_record["error"] == pytest.approx([20, 14, 10])
    assert by_name(charge)["mean_absolute_error"].value == pytest.approx(44 / 3)
    assert by_name(charge)["guess_mean_absolute_error"].value == pytest.approx(
        np.abs(202 / 6 - np.array([10, 20, 40])).mean()
    )


def test_where_nobody_agrees_all_may_be_asked_instead() -> None:
    found = attacked(OURS, table(THEIRS), sensitive="charge", fallback="all")
    assert found.per_record["error"] == pytest.approx([20, 14, abs(202 / 6 - 40)])
    assert found.per_record["candidates"].tolist() == [3, 2, 0]


def test_the_nearest_agree_on_most_variables_whichever_these_are() -> None:
    theirs = table(
        [("b", "m", 50, "w", 1.0), ("b", "f", 90, "w", 2.0), ("d", "m", 50, "y", 3.0), ("d", "m", 50, "y", 4.0)]
    )
    found = attacked(OURS, theirs, known=["zip", "sex", "age"])
    assert found.per_record["right"][2] == 1, "two agree on two variables, each on other ones; two more on one alone"
    for names in (["age", "zip", "sex"], ["sex", "age", "zip"]):
        assert attacked(OURS, theirs, known=names).per_record["right"].tolist() == found.per_record["right"].tolist()


def test_bins_make_known_numbers_agree() -> None:
    theirs = table([("a", "f", 33, "u", 1.0), ("b", "f", 55, "w", 1.0), ("a", "m", 31, "v", 2.0)])
    exact, near = (attacked(OURS, theirs, **given) for given in ({}, {"bins": {"age": "width 10"}}))
    assert exact.per_record["candidates"].tolist() == [0, 0, 0]
    assert near.per_record["candidates"].tolist() == [1, 1, 1]
    assert by_name(near)["misclassification"].value == 0
    learned = attacked(OURS, theirs, bins={"age": "2 equal count"})
    assert by_name(learned)["misclassification"].reason == '"age" in 2 equal count bins of the confidential values'


def test_a_number_within_its_radius_is_right() -> None:
    found = attacked(OURS, table(THEIRS), sensitive="charge", within="70%")
    assert found.per_record["right"].tolist() == [0, 1, 1]
    assert by_name(found)["misclassification"].value == pytest.approx(1 / 3)
    assert "misclassification" not in by_name(attacked(OURS, table(THEIRS), sensitive="charge"))


def test_a_missing_value_is_a_level_to_infer_and_no_number() -> None:
    ours = table([("a", "f", 30, None, None), ("a", "f", 30, "u", 10.0), (None, "f", 30, "v", 3.0)], "confidential")
    theirs = table([("a", "f", 30, None, None), ("a", "f", 30, None, 8.0), (None, "f", 30, "v", 3.0)])
    assert attacked(ours, theirs).per_record["right"].tolist() == [1, 0, 1]
    charge = attacked(ours, theirs, sensitive="charge")
    assert by_name(charge)["mean_absolute_error"].value == pytest.approx((2 + 0) / 2)
    assert by_name(charge)["mean_absolute_error"].reason == (
        "confidential: 1 of 3 records have no value; released: 1 of 3 records have no value"
    )
    assert charge.per_record["candidates"].tolist() == [1, 1, 1]
    with pytest.raises(NotComputable, match='no released record has a value of "charge"'):
        attacked(ours, theirs.with_columns({"charge": pd.Series([np.nan] * 3)}, "synthetic"), sensitive="charge")


@pytest.mark.slow
@pytest.mark.parametrize(("sensitive", "measure"), [("mdc", "misclassification"), ("charge", "mean_absolute_error")])
def test_protection_lies_between_a_copy_and_a_guess(sensitive: str, measure: str) -> None:
    """A bootstrap sample scores the baseline, values dealt at random the guess, records perturbed by half lie between."""
    frame, rng = discharges(3000, 1), np.random.default_rng(2)
    ours = micro(frame, "confidential")
    dealt = rng.permutation(frame[sensitive])
    releases = {
        "sample": frame.sample(3000, replace=True, random_state=3, ignore_index=True),
        "half": frame.assign(**{sensitive: np.where(rng.random(3000) < 0.7, dealt, frame[sensitive])}),
        "dealt": frame.assign(**{sensitive: dealt}),
    }
    found = {name: by_name(attacked(ours, micro(made), sensitive=sensitive)) for name, made in releases.items()}
    value = {name: one[measure].value for name, one in found.items()}
    sample, guess = found["sample"][measure], found["sample"][f"guess_{measure}"].value
    assert sample.baseline == pytest.approx(value["sample"], rel=0.05)
    assert value["sample"] * 1.05 < value["half"] < value["dealt"]
    assert value["dealt"] == pytest.approx(guess, rel=0.07)
    assert sample.baseline < 0.7 * guess, "or what is known would tell nothing"


def test_the_baseline_has_as_many_records_as_the_release() -> None:
    frame = discharges(2000, 1)
    ours = micro(frame, "confidential")
    few, many = (by_name(attacked(ours, micro(discharges(m, 2))))["misclassification"].baseline for m in (40, 2000))
    assert few > many + 0.05  # type: ignore[operator]


@pytest.mark.parametrize("given", [{}, {"sensitive": "charge", "within": 20}])
def test_order_of_records_and_of_names_changes_nothing_not_even_the_baseline(given: dict[str, Any]) -> None:
    frame, theirs = discharges(300, 1), discharges(200, 2)
    first = attacked(micro(frame, "confidential"), micro(theirs), known=["zip", "sex", "age"], **given)
    order = np.random.default_rng(3).permutation(300)
    ours = micro(frame.iloc[order].reset_index(drop=True), "confidential")
    shuffled = replace(micro(theirs.sample(frac=1, random_state=4, ignore_index=True)), linked=False)
    second = attacked(ours, shuffled, known=["age", "zip", "sex"], **given)
    for name, estimate in by_name(first).items():
        assert by_name(second)[name].value == pytest.approx(estimate.value)
        assert (estimate.baseline is None) == name.startswith(("guess_", "least_"))
        assert by_name(second)[name].baseline == pytest.approx(estimate.baseline)
    for name, array in first.per_record.items():
        assert second.per_record[name] == pytest.approx(array[order]), (
            "of each confidential record, whosever the released are"
        )
    another = by_name(attacked(micro(frame, "confidential"), micro(theirs), seed=2, **given))
    assert [e.baseline for e in another.values()] != [e.baseline for e in by_name(first).values()]


def test_records_show_whose_value_is_inferred() -> None:
    measure = {"method": "risk.inference_attack", "sensitive": "mdc", "bins": {"age": "width 20"}}
    recipe = Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in SCHEMA},
            "release": {"released": ["mdc", "charge"], "order": "original"},
            "measure": [measure],
        }
    )
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    step = recipe.measures[0]
    ours, theirs = micro(discharges(80, 1), "confidential"), micro(discharges(80, 2))
    spec = step.spec.for_release(recipe.schema, recipe.released)
    arrays = step.method.measure(ours, theirs, spec, Run(np.random.default_rng(1))).per_record
    parts = arrays_by_part(arrays, step.method.measurement.per_record)
    assert has_record_risk(list(parts))
    risk = average_record_risk([parts])
    assert risk.probability.tolist() == arrays["right"].tolist()
    assert risk.unique is None
    for released in (theirs, replace(theirs, linked=False)):
        alone = leave_one_out_candidates(ours, [released], *matched_variables(recipe, 0), range(80))
        assert alone.candidates.tolist() == arrays["candidates"].tolist(), "bins count as the attack counts"


def test_synthesised_numbers_that_are_known_agree_in_ten_bins_unless_others_are_named() -> None:
    ours, theirs = micro(discharges(200, 1), "confidential"), micro(discharges(200, 2))

    def measure_attack(**given: Any) -> Measure:
        spec = InferenceAttackSpec.from_table({"sensitive": "mdc", "known": ["zip", "charge"], **given}, "step")
        spec.check_release(SCHEMA, ("mdc", "charge"), "step")
        filled = spec.for_release(SCHEMA, ("mdc", "charge"))
        return inference_attack(ours, theirs, filled, Run(np.random.default_rng(1)))

    plain, named = measure_attack(), measure_attack(bins={"charge": "10 equal count"})
    assert by_name(plain) == by_name(named)
    assert (
        by_name(plain)["misclassification"].value
        != by_name(measure_attack(bins={"charge": "width 200"}))["misclassification"].value
    )
    told, unseen = by_name(plain)["misclassification"].value, by_name(attacked(ours, theirs, known=["zip", "charge"]))
    assert told < unseen["misclassification"].value, "equal values alone are never met"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        ({"known": ["mdc"]}, "sensitive", '"mdc" is among the known variables'),
        ({"bins": {"charge": "width 5"}}, "bins.charge", '"charge" is not used here'),
        ({"bins": {"zip": "width 5"}}, "bins.zip", '"zip" is categorical'),
        ({"within": 5}, "within", '"mdc" has levels'),
        ({"sensitive": "charge", "within": "5 days"}, "within", "is not a radius"),
        ({"resamples": 0}, "resamples", "at least 1"),
    ],
)
def test_what_cannot_be_attacked_is_refused(given: dict[str, Any], place: str, message: str) -> None:
    measure = {"method": "risk.inference_attack", "sensitive": "mdc", **given}
    with pytest.raises(BadInput, match=message) as caught:
        Recipe.from_table(
            {
                "variables": {v.name: v.to_table() for v in SCHEMA},
                "release": {"released": ["mdc", "charge"]},
                "measure": [measure],
            }
        )
    assert caught.value.place == f"measure[0].{place}"


def test_nothing_known_and_a_log_scale_below_zero_are_refused() -> None:
    from sfumato.engine.recipe.checks import check_steps

    plain = {v.name: {**v.to_table(), "role": "other"} for v in SCHEMA}
    attack = {"method": "risk.inference_attack", "sensitive": "charge"}
    with pytest.raises(BadInput, match="the intruder knows no variable"):
        Recipe.from_table({"variables": plain, "release": {"released": ["mdc"]}, "measure": [attack]})
    tables = {v.name: v.to_table() for v in SCHEMA}
    recipe = Recipe.from_table(
        {"variables": tables, "release": {"released": ["mdc"]}, "measure": [{**attack, "within": "log 5%"}]}
    )
    with pytest.raises(BadInput, match="1 record is negative"):
        check_steps(recipe, table([("a", "f", 1, "u", -5.0), ("a", "f", 1, "u", 5.0)], "confidential"))


def test_the_confidential_data_are_attacked_by_themselves_as_no_protection() -> None:
    attack = {"method": "risk.inference_attack", "sensitive": "mdc"}
    recipe = Recipe.from_table(
        {"variables": {v.name: v.to_table() for v in SCHEMA}, "release": {"released": ["mdc"]}, "measure": [attack]}
    )
    frame = discharges(400, 1)
    rows = execute_run(recipe, micro(frame, "confidential"), [micro(frame)], key=b"").rows
    values = {row.dataset: row.value for row in rows if row.measure == "misclassification" and row.draw is None}
    assert values["confidential"] == values["synthetic"]


@pytest.mark.slow
def test_a_hundred_thousand_records_take_seconds() -> None:
    import time

    frame = discharges(100_000, 1).assign(age=np.random.default_rng(1).integers(0, 100, 100_000))
    ours, theirs = micro(frame, "confidential"), micro(discharges(100_000, 2))
    start = time.process_time()
    attacked(ours, theirs, resamples=1)
    assert time.process_time() - start < 10


def test_who_ignores_an_age_of_somebody_else_infers_more_rightly() -> None:
    """Two of three of a place have u. The ages are exchanged: by place and age two are inferred wrongly, by place alone one is."""
    people = table([("a", "f", 0, "u", 1), ("a", "f", 1, "u", 1), ("a", "f", 2, "v", 1)], "confidential")
    shown = table([("a", "f", 1, "u", 1), ("a", "f", 2, "u", 1), ("a", "f", 0, "v", 1)])
    found = by_name(attacked(people, shown, known=["zip", "age"]))
    assert found["misclassification"].value == pytest.approx(2 / 3)
    assert found["least_misclassification"].value == pytest.approx(1 / 3)
    assert found["least_misclassification"].reason == "the best intruder compares zip; ignores age"
    assert by_name(attacked(people, shown, known=["zip"]))["least_misclassification"].value == pytest.approx(1 / 3)
