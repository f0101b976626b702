from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind
from sfumato.engine.design.binning import BinningRule, FittedBins, check_binning_rules
from sfumato.engine.errors import BadInput, NotComputable

numbers = st.floats(-1e300, 1e300) | st.integers(-5, 5).map(float)
rules = (
    st.builds(BinningRule, st.sampled_from(["equal width", "equal count"]), st.integers(1, 30).map(float))
    | st.floats(1e-3, 1e6).map(lambda width: BinningRule("width", width))
    | st.lists(numbers, min_size=1, max_size=6, unique=True).map(lambda cuts: BinningRule("at", 0, tuple(sorted(cuts))))
)


def codes(rule: str, values: list[float]) -> list[int]:
    found = np.array(values)
    return BinningRule.parse(rule).fit_bins(found).bin_codes(found).tolist()


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        ("4 equal width", [0, 1, 2, 3, 4, 7, 8], [0, 0, 1, 1, 2, 3, 3]),
        ("3 equal count", [1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 1, 2, 2, 2]),
        ("4 equal count", [0, 0, 0, 0, 0, 0, 1, 9], [0, 0, 0, 0, 0, 0, 1, 1]),
        ("2 equal count", [5, 5, 5], [0, 0, 0]),
        ("5 equal width", [5, 5, 5], [0, 0, 0]),
        ("width 5", [0, 4, 5, 9, 10, 80], [0, 0, 1, 1, 2, 16]),
        ("width 0.1", [0.0, 0.1, 0.2, 0.3, 0.7], [0, 1, 2, 3, 7]),
        ("at 18, 65", [0, 17.5, 18, 64, 65, 90], [0, 0, 1, 1, 2, 2]),
        ("at -1e3, 0", [-2000, -1000, 0], [0, 1, 2]),
    ],
)
def test_a_bin_holds_its_lower_end(rule: str, values: list[float], expected: list[int]) -> None:
    assert codes(rule, values) == expected


def test_values_beyond_the_confidential_ones_are_in_the_outer_bins_and_missing_ones_in_none() -> None:
    bins = BinningRule.parse("2 equal width").fit_bins(np.array([0.0, 10.0, np.nan]))
    assert bins.bin_codes(np.array([-99.0, 4.9, 5.0, 99.0, np.nan])).tolist() == [0, 0, 1, 1, -1]


def test_a_list_is_a_rule_of_cut_points() -> None:
    assert BinningRule.parse([18, 65.5]) == BinningRule("at", 0, (18.0, 65.5))


@settings(derandomize=True, deadline=None)
@given(rules)
def test_a_rule_comes_back_from_what_it_writes(rule: BinningRule) -> None:
    assert BinningRule.parse(rule.written) == rule


@settings(derandomize=True, deadline=None)
@given(rules.filter(lambda rule: rule.kind != "width"), st.lists(numbers, min_size=1, max_size=20))
def test_every_value_lies_in_the_window_of_its_bin_and_in_no_other(rule: BinningRule, values: list[float]) -> None:
    found = np.array(values)
    bins = rule.fit_bins(found)
    lower, upper = bins.window(found)
    for low, high, own in zip(lower, upper, bins.bin_codes(found), strict=True):
        assert [low <= value <= high for value in found] == [code == own for code in bins.bin_codes(found)]
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(
    rules.filter(lambda rule: rule.depends_on_data), st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=20)
)
def test_every_record_twice_or_in_another_order_makes_the_same_bins(rule: BinningRule, values: list[float]) -> None:
    once, twice = (rule.fit_bins(np.array(found)) for found in (values, [*values[::-1], *values]))
    assert once.cuts.tolist() == twice.cuts.tolist()


def test_bins_of_equal_count_hold_equal_shares_of_distinct_values() -> None:
    values = np.random.default_rng(1).normal(size=1000)
    assert set(np.bincount(BinningRule.parse("10 equal count").fit_bins(values).bin_codes(values))) == {100}
    assert max(np.bincount(BinningRule.parse("10 equal width").fit_bins(values).bin_codes(values))) > 150, (
        "those of width do not"
    )


@pytest.mark.parametrize(
    "value", ["", "10", "equal width", "0 equal count", "99999 equal width", "width 0", "width -1", "width 1e999", "at",
              "at 3, 2", "at 1, 1", "at nan", [], ["a"], [2, 1], 5, None, "5%", "at 1, __import__('os')"],
)  # fmt: skip
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"rule for bins|must|needs"):
        BinningRule.parse(value)


def test_a_width_that_makes_too_many_bins_has_no_bins() -> None:
    with pytest.raises(NotComputable, match="more than 10,000"):
        BinningRule.parse("width 5").fit_bins(np.array([0.0, 1e160]))


@pytest.mark.parametrize("rule", ["7 equal width", "7 equal count", "width 1e307"])
@pytest.mark.filterwarnings("error")
def test_numbers_near_the_largest_double_have_bins(rule: str) -> None:
    values = np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308])
    found = codes(rule, values.tolist())
    assert found == sorted(found)
    assert len(set(found)) > 2


def test_a_rule_for_a_variable_that_is_not_used_is_refused() -> None:
    kinds = {"age": Kind.COUNT, "born": Kind.DATE}
    check_binning_rules(
        {"age": BinningRule.parse("at 5"), "born": BinningRule.parse("width 30")}, kinds, "measure[0].bins"
    )
    with pytest.raises(BadInput, match=r'^measure\[0\]\.bins\.size: "size" is not used here'):
        check_binning_rules({"size": BinningRule.parse("at 5")}, kinds, "measure[0].bins")
    with pytest.raises(BadInput, match=r"^measure\[0\]\.bins\.born: a date has no cut points"):
        check_binning_rules({"born": BinningRule.parse("at 5")}, kinds, "measure[0].bins")


def test_windows_of_missing_values_are_missing() -> None:
    lower, upper = FittedBins(np.array([1.0])).window(np.array([np.nan, 2.0]))
    assert math.isnan(lower[0])
    assert math.isnan(upper[0])
    assert lower[1] == 1


@pytest.mark.parametrize(
    ("rule", "times", "coarser"),
    [
        ("20 equal count", 4, "5 equal count"),
        ("3 equal width", 4, "2 equal width"),
        ("1 equal count", 2, "1 equal count"),
        ("width 2.5", 2, "width 5"),
        ("at 10, 20, 30, 40", 2, "at 20, 40"),
        ("at 10", 4, "at 10"),
    ],
)
def test_a_coarser_rule_joins_neighbouring_bins(rule: str, times: int, coarser: str) -> None:
    values = np.arange(0.0, 60.0)
    fine, found = BinningRule.parse(rule), BinningRule.parse(rule).with_coarser_bins(times)
    assert found.written == coarser
    assert fine.with_coarser_bins(1) == fine
    inside = {}
    for one, other in zip(
        fine.fit_bins(values).bin_codes(values), found.fit_bins(values).bin_codes(values), strict=True
    ):
        assert inside.setdefault(one, other) == other or fine.kind == "equal width", "a fine bin lies in one coarse bin"
