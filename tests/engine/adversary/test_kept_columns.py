"""Kept columns: sizes, limits and levers by counting once more, plans that protect everybody, and the population's risk by simulation."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.adversary import kept_columns
from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.kept_column_limits import CHANCE_OF_SHORT_CLASS
from sfumato.engine.adversary.kept_columns import (
    CombinationSizes,
    KeptColumnChange,
    KeptColumnLimits,
    ProtectionPlan,
    coarser_rules,
    list_column_changes,
    plan_protection,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable

KINDS = {
    "town": Kind.CATEGORICAL, "grade": Kind.ORDINAL, "smoker": Kind.BINARY, "age": Kind.COUNT, "pay": Kind.CONTINUOUS, "born": Kind.DATE,
}  # fmt: skip
LIMITS = [
    KeptColumnLimits(3),
    KeptColumnLimits(11),
    KeptColumnLimits(3, 0.1),
    KeptColumnLimits(None, 0.2),
    KeptColumnLimits(),
]


def people(n: int, seed: int, missing: float = 0.0) -> Microdata:
    """Records of KINDS, some without values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": [f"t{i}" for i in rng.geometric(0.3, n)],
            "grade": [f"g{i}" for i in rng.integers(0, 6, n)],
            "smoker": rng.choice(["no", "yes"], n, p=[0.8, 0.2]),
            "age": rng.integers(0, 90, n),
            "pay": np.round(rng.lognormal(8, 1, n), 2),
            "born": np.datetime64("1950-01-01") + rng.integers(0, 20_000, n),
        }
    )
    if missing:
        without = rng.random(frame.shape) < missing
        without[0] = False  # a column without any value is refused
        frame = frame.astype("object").mask(without)
    schema = Schema(tuple(Variable(name, kind, Role.OTHER) for name, kind in KINDS.items()))
    return conform_to_schema(frame, schema, MissingPolicy.KEEP)


def classes_by_hand(data: Microdata, names: list[str]) -> list[int]:
    """The size of each record's class, by a dictionary of tuples of texts."""
    rows = list(zip(*(data.frame[name].astype(str) for name in names), strict=True)) if names else [()] * len(data)
    counts = Counter(rows)
    return [counts[row] for row in rows]


def people_by_hand(sizes: list[int], limits: KeptColumnLimits) -> int:
    """How many people the limits do not protect, one person after the other."""
    small = 0 if limits.smallest_class is None else sum(size < limits.smallest_class for size in sizes)
    average = sum(1 / size for size in sizes) / max(1, len(sizes))
    if limits.average_risk is not None and average > limits.average_risk + 1e-12:
        return max(small, sum(1 / size > limits.average_risk for size in sizes))
    return small


def people_after(data: Microdata, names: list[str], levers: list[KeptColumnChange], limits: KeptColumnLimits) -> int:
    """People over the limits after some changes, on the recoded table itself."""
    shown = recode_data(data, {lever.variable: lever.rule for lever in levers if lever.rule is not None})
    gone = {lever.variable for lever in levers if lever.rule is None}
    return people_by_hand(classes_by_hand(shown, [name for name in names if name not in gone]), limits)


SUBSETS = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True)


@given(
    n=st.integers(1, 40), seed=st.integers(0, 9), missing=st.sampled_from([0.0, 0.3]), names=SUBSETS,
    limits=st.sampled_from(LIMITS),
)  # fmt: skip
@pytest.mark.slow
def test_sizes_and_people_over_are_those_of_a_dictionary(
    n: int, seed: int, missing: float, names: list[str], limits: KeptColumnLimits
) -> None:
    data = people(n, seed, missing)
    sizes = CombinationSizes.from_cells(cell_keys(data, names), names, n)
    by_hand = classes_by_hand(data, names)
    assert sizes.sizes.tolist() == by_hand
    assert sizes.n_unique == by_hand.count(1)
    assert sizes.smallest_size == min(by_hand)
    assert sizes.expected_reidentifications == pytest.approx(sum(1 / size for size in by_hand))
    assert np.repeat(*sizes.classes_by_size).tolist() == sorted(
        size for size in set(by_hand) for _ in range(by_hand.count(size) // size)
    )
    assert limits.count_unprotected(sizes) == people_by_hand(by_hand, limits)
    assert sizes.records_below(3).tolist() == [row for row, size in enumerate(by_hand) if size < 3]


def test_without_a_column_all_records_are_one_class() -> None:
    assert CombinationSizes.from_cells({}, (), 7).sizes.tolist() == [7] * 7
    assert CombinationSizes.from_cells({}, (), 0).average_risk == 0


@settings(max_examples=25)
@given(n=st.integers(12, 150), seed=st.integers(0, 9), names=SUBSETS, limits=st.sampled_from(LIMITS))
@pytest.mark.slow
def test_each_lever_s_number_is_that_of_the_recoded_table(
    n: int, seed: int, names: list[str], limits: KeptColumnLimits
) -> None:
    data = people(n, seed)
    for lever in list_column_changes(data, names, limits):
        assert lever.n_unprotected == people_after(data, names, [lever], limits), lever.description
    plan = plan_protection(data, names, limits)
    assert plan.n_unprotected_before == people_after(data, names, [], limits)
    for place, lever in enumerate(plan.changes, 1):
        assert lever.n_unprotected == people_after(data, names, list(plan.changes[:place]), limits), lever.description
        others = [one for one in plan.changes if one != lever]
        assert lever.n_unprotected_without == people_after(data, names, others, limits), lever.description
        assert lever.n_unprotected_without, "no change is needless"


@given(
    n=st.integers(1, 200), seed=st.integers(0, 9), missing=st.sampled_from([0.0, 0.1]), names=SUBSETS,
    limits=st.sampled_from(LIMITS),
)  # fmt: skip
@pytest.mark.slow
def test_a_plan_protects_everybody_whatever_the_table(
    n: int, seed: int, missing: float, names: list[str], limits: KeptColumnLimits
) -> None:
    data = people(n, seed, missing)
    plan = plan_protection(data, names, limits)
    all_replaced = set(plan.replaced) == set(names)
    assert plan.n_unprotected_after == people_after(data, names, list(plan.changes), limits)
    # A table of fewer people than the smallest class is over the limits with no column at all.
    assert plan.n_unprotected_after == 0 or all_replaced
    assert set(plan.rules).isdisjoint(plan.replaced)
    assert [lever.variable for lever in plan.changes if lever.rule is None] == list(plan.replaced)
    assert {lever.variable: lever.rule for lever in plan.changes if lever.rule is not None} == dict(plan.rules)


@given(seed=st.integers(0, 30), limits=st.sampled_from(LIMITS), order=st.permutations(sorted(KINDS)))
@pytest.mark.slow
def test_neither_the_order_of_rows_nor_that_of_names_changes_a_plan(
    seed: int, limits: KeptColumnLimits, order: list[str]
) -> None:
    data = people(150, seed)
    rows = np.random.default_rng(seed).permutation(len(data))
    schema = Schema(tuple(data.schema[name] for name in order))
    moved = conform_to_schema(data.frame.iloc[rows].reset_index(drop=True)[order], schema, MissingPolicy.KEEP)
    plan, other = plan_protection(data, sorted(KINDS), limits), plan_protection(moved, order, limits)
    assert plan == other
    assert list_column_changes(data, sorted(KINDS), limits) == list_column_changes(moved, order, limits)


@pytest.mark.parametrize("order", [["x", "y"], ["y", "x"]])
def test_ties_are_decided_by_name_and_not_by_the_order_of_columns(order: list[str]) -> None:
    """Two columns that do the same: one of them has to go, and which follows from its name alone."""
    pairs = [(x, y) for x in "ab" for y in "ab"] * 3
    frame = pd.DataFrame(pairs, columns=["x", "y"])[order]
    data = conform_to_schema(frame, Schema(tuple(Variable(name, Kind.BINARY, Role.OTHER) for name in order)))
    plan = plan_protection(data, order, KeptColumnLimits(6))
    assert plan.replaced == ("x",)
    assert plan_protection(data, order, KeptColumnLimits(3)) == ProtectionPlan(), "three people share each combination"


def test_a_column_that_may_not_change_stays_and_the_plan_says_who_is_left() -> None:
    data = people(60, 1)
    limits = KeptColumnLimits(11)
    plan = plan_protection(data, ["born", "smoker"], limits, replaceable=["smoker"])
    assert "born" not in (*plan.rules, *plan.replaced)
    assert plan.n_unprotected_after == people_after(data, ["born", "smoker"], list(plan.changes), limits)
    assert plan.n_unprotected_after == 60


def test_columns_of_an_earlier_rule_are_replaced_and_not_recoded_again() -> None:
    data = people(200, 2)
    (first, *_) = coarser_rules(data, "age", 11)
    shown = recode_data(data, {"age": first})
    assert coarser_rules(shown, "age", 11) == []
    assert coarser_rules(data, "smoker", 11) == []


@given(n=st.integers(1, 200), seed=st.integers(0, 9), name=st.sampled_from(sorted(KINDS)))
@pytest.mark.slow
def test_rules_suit_their_columns_and_never_leave_more_classes(n: int, seed: int, name: str) -> None:
    data = people(n, seed)
    values = data.frame[name].nunique()
    for rule in coarser_rules(data, name, 3):
        shown = recode_data(data, {name: rule}).frame[name].nunique()
        assert shown <= values
        assert (rule.width is None) == KINDS[name].has_levels


def test_steps_are_said_in_units_that_people_know() -> None:
    data = people(400, 3)
    (year,) = [rule for rule in coarser_rules(data, "born", 3) if rule.width == 1826]
    assert (
        KeptColumnChange("born", year, 0, None, is_date=True).description
        == "show born in steps of 1826 days, about 5 years"
    )
    (ten,) = [rule for rule in coarser_rules(data, "age", 3) if rule.width == 10]
    assert KeptColumnChange("age", ten, 0).description == "show age in steps of 10"
    assert KeptColumnChange("age", None, 0).description == "synthesise or leave out age"


def test_large_tables_are_planned_on_a_sample_that_protects_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data, names, limits = people(600, 4), ["town", "grade", "smoker"], KeptColumnLimits(5)
    monkeypatch.setattr(kept_columns, "MOST_RECORDS", 300)
    plan = plan_protection(data, names, limits)
    assert people_after(data, names, list(plan.changes), limits) <= 4, "a class that the sample does not have"


# --- a hold-out that is taken out afterwards


@pytest.mark.parametrize(("limit", "share"), [(3, 0.2), (11, 0.2), (11, 0.3)])
def test_limits_before_a_removal_are_the_smallest_that_hold_after_it(limit: int, share: float) -> None:
    """By the binomial distribution, written out; and one record fewer does not suffice."""
    found = KeptColumnLimits(limit, 0.1).limits_before_removal(share)
    assert found.smallest_class is not None

    def chance(size: int) -> float:
        stay = 1 - share
        return sum(math.comb(size, k) * stay**k * share ** (size - k) for k in range(1, limit))

    assert chance(found.smallest_class) <= CHANCE_OF_SHORT_CLASS < chance(found.smallest_class - 1)
    assert found.average_risk == pytest.approx(0.1 * (1 - share))
    assert KeptColumnLimits(limit).limits_before_removal(0.0) == KeptColumnLimits(limit)


@pytest.mark.slow
def test_a_plan_for_a_hold_out_protects_who_is_left_and_one_without_does_not() -> None:
    """Classes of exactly the size that is asked for, in 400 hold-outs; classes of the limit itself are the control."""
    rng = np.random.default_rng(5)
    limits, share = KeptColumnLimits(11), 0.25
    asked = limits.limits_before_removal(share).smallest_class
    assert asked is not None

    def blocked(size: int) -> int:
        label = np.repeat(np.arange(20), size)
        left = [np.bincount(label[rng.permutation(len(label))[int(share * len(label)) :]]) for _ in range(400)]
        return sum(bool(limits.count_unprotected_in(classes[classes > 0])) for classes in left)

    assert blocked(asked) <= 4
    assert blocked(11) == 400


# --- the population


def simulated_finds(classes: list[int], fraction: float, draws: int, seed: int) -> tuple[float, float, float]:
    """The mean of sum 1 / F over Bernoulli samples of a population with known classes, its standard error, and the mean estimate."""
    rng = np.random.default_rng(seed)
    population = np.array(classes)
    true, estimated = [], []
    for _ in range(draws):
        sample = rng.binomial(population, fraction)
        own = sample > 0
        true.append(float((sample[own] / population[own]).sum()))
        sizes = CombinationSizes(np.repeat(sample[own], sample[own]))
        estimated.append(sizes.population_reidentifications(fraction))
    return float(np.mean(true)), float(np.std(true) / math.sqrt(draws)), float(np.mean(estimated))


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.3])
def test_finds_in_a_population_are_those_of_a_simulation(fraction: float) -> None:
    """Classes as the model has them: sizes with a prior of 1 / F, to which the negative binomial belongs."""
    rng = np.random.default_rng(6)
    sizes = np.arange(1, 4000)
    classes = rng.choice(sizes, 20_000, p=(1 / sizes) / (1 / sizes).sum()).tolist()
    true, error, estimated = simulated_finds(classes, fraction, 30, 7)
    assert estimated == pytest.approx(true, rel=0.03, abs=4 * error)


@pytest.mark.slow
def test_the_risk_in_the_file_is_no_estimate_of_the_risk_in_the_population() -> None:
    """The control: who takes the sample for the population is wrong by far."""
    classes = np.random.default_rng(8).geometric(0.05, 5_000).tolist()
    true, error, _ = simulated_finds(classes, 0.1, 30, 9)
    sample = np.random.default_rng(10).binomial(classes, 0.1)
    own = sample[sample > 0]
    naive = CombinationSizes(np.repeat(own, own)).expected_reidentifications
    assert naive > 2 * true + 10 * error


def test_a_whole_population_has_the_finds_of_its_file() -> None:
    sizes = CombinationSizes(np.array([1, 2, 2, 5, 5, 5, 5, 5]))
    assert sizes.population_reidentifications(1.0) == sizes.expected_reidentifications == 3.0
    assert sizes.population_reidentifications(0.999999) == pytest.approx(3.0, rel=1e-4)
    shares: list[Any] = [sizes.population_reidentifications(fraction) for fraction in (0.01, 0.1, 0.5, 0.9)]
    assert shares == sorted(shares), "the larger the sample, the surer a find"


def test_a_rule_joins_five_hundred_levels_and_no_more() -> None:
    def joined_level_counts(rare: int) -> list[int]:
        levels = [f"v{i:03}" for i in range(rare)] + ["w"]
        frame = pd.DataFrame({"town": [*levels, *["w"] * 20_000]})
        schema = Schema((Variable("town", Kind.CATEGORICAL, Role.OTHER, levels=tuple(levels)),))
        rules = coarser_rules(conform_to_schema(frame, schema), "town", 3)
        return [sum(map(len, rule.groups.values())) for rule in rules]

    assert kept_columns.MOST_JOINED == max(joined_level_counts(500)) == 500
    assert all(count <= 500 for count in joined_level_counts(501))
