"""Global recoding: what the rules make of values, and how two rules compare."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.recoding import align_levels, check_recode_rules, recode_data
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput


def table(kind: Kind, values: list[object], **more: object) -> Microdata:
    schema = Schema((Variable("x", kind, **more),))  # type: ignore[arg-type]
    return conform_to_schema(pd.DataFrame({"x": pd.Series(values, dtype=object)}), schema, MissingPolicy.KEEP)


@pytest.mark.parametrize(
    ("kind", "width", "values", "shown"),
    [
        (Kind.COUNT, 5, [0, 4, 5, 37], [0, 0, 5, 35]),
        (Kind.CONTINUOUS, 0.1, [0.3, 0.29, -0.05, 0.7], [0.30000000000000004, 0.2, -0.1, 0.7000000000000001]),
        (Kind.CONTINUOUS, 5, [4.0, None, 9.99], [0.0, None, 5.0]),
        (Kind.COUNT, 5, [7, None], [5, None]),
        (Kind.DATE, 7, ["1970-01-08", "1970-01-14", "1969-12-31"], ["1970-01-08", "1970-01-08", "1969-12-25"]),
    ],
)
def test_numbers_are_shown_by_the_lower_end_of_their_step(
    kind: Kind, width: float, values: list[object], shown: list[object]
) -> None:
    data = table(kind, values)
    found = recode_data(data, {"x": RecodeRule.parse(width)})
    assert found.frame["x"].equals(table(kind, shown).frame["x"].astype(data.frame["x"].dtype))


@pytest.mark.parametrize(
    ("kind", "rule", "values", "shown"),
    [
        (Kind.COUNT, {"top": 85}, [0, 84, 85, 99], [0, 84, 85, 85]),
        (Kind.COUNT, {"bottom": 18, "top": 85}, [0, 18, 99, None], [18, 18, 85, None]),
        (Kind.COUNT, {"width": 5, "bottom": 18, "top": 85}, [0, 21, 86], [15, 20, 85]),
        (Kind.CONTINUOUS, {"top": 2.5}, [2.4, 2.6, -1.0], [2.4, 2.5, -1.0]),
    ],
)
def test_the_ends_of_numbers_are_shown_by_their_codes(
    kind: Kind, rule: object, values: list[object], shown: list[object]
) -> None:
    data = table(kind, values, bounds=(-5.0, 120.0))
    found = recode_data(data, {"x": RecodeRule.parse(rule)})
    assert found.frame["x"].equals(table(kind, shown).frame["x"].astype(data.frame["x"].dtype))
    assert found.schema["x"].bounds == (-5.0, 120.0), "exact values lie in them too"
    assert RecodeRule.parse(RecodeRule.parse(rule).written) == RecodeRule.parse(rule)


def test_codes_of_the_ends_are_said_in_words() -> None:
    assert str(RecodeRule.parse({"bottom": 18, "top": 85})) == "below 18 as 18, above 85 as 85"
    assert str(RecodeRule.parse({"width": 5, "top": 85})) == "above 85 as 85, lower ends of steps of 5"
    assert RecodeRule.parse({"width": 5}) == RecodeRule.parse(5)
    assert RecodeRule.parse({"top": ["1", "2"]}).groups == {"top": ("1", "2")}, "a group may have such a name"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"bottom": 85, "top": 18}, "bottom must lie below top"),
        ({"top": "high"}, "top must be a number"),
        ({"top": float("inf")}, "top must be a number"),
        ({"top": True}, "top must be a number"),
        ({"width": 0, "top": 5}, "a width above 0"),
        ({"upper": 5}, "must be a list of the levels"),
    ],
)
def test_a_rule_of_the_ends_that_makes_no_sense_is_refused(rule: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RecodeRule.parse(rule)


@pytest.mark.parametrize(
    ("variable", "rule", "said"),
    [
        (Variable("x", Kind.DATE), {"top": 9000}, "dates have steps, and no bottom or top"),
        (Variable("x", Kind.COUNT), {"top": 8.5}, "its codes are whole numbers, not 8.5"),
        (Variable("x", Kind.CATEGORICAL), {"top": 8}, "give groups of levels"),
    ],
)
def test_codes_of_the_ends_suit_their_variable(variable: Variable, rule: object, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_recode_rules({"x": RecodeRule.parse(rule)}, Schema((variable,)), "release.recode")


NUMBER_RULES = st.builds(
    lambda width, bottom, reach: RecodeRule(width, {}, bottom, None if reach is None else (bottom or 0.0) + reach),
    st.sampled_from([None, 1.0, 2.0, 5.0, 10.0]),
    st.sampled_from([None, 0.0, 5.0, 7.0, 10.0]),
    st.sampled_from([None, 5.0, 13.0, 20.0]),
).filter(lambda rule: rule.width is not None or rule.has_end_codes)


@given(NUMBER_RULES, NUMBER_RULES)
def test_a_rule_of_numbers_after_another_makes_what_it_makes_of_exact_values(
    ours: RecodeRule, theirs: RecodeRule
) -> None:
    numbers = np.arange(-5.0, 60.0, 0.5)
    left = ours.remaining_after(theirs)
    if left is not None:
        assert left.recode_numbers(theirs.recode_numbers(numbers)).tolist() == ours.recode_numbers(numbers).tolist()
    assert ours.remaining_after(ours) == ours


def test_what_was_recoded_once_is_not_recoded_again() -> None:
    rules = {"x": RecodeRule.parse(0.1)}
    data = table(Kind.CONTINUOUS, list(np.random.default_rng(1).normal(0, 5, 1000)))
    once = recode_data(data, rules)
    assert recode_data(once, rules) is once
    again = recode_data(Microdata(once.schema, once.frame), rules)
    assert again.frame.equals(once.frame)


def test_missing_levels_stay_missing_and_labels_of_joined_ones_go() -> None:
    data = table(Kind.CATEGORICAL, ["1", None, "2", "3"], labels={"1": "one", "2": "two", "3": "three"})
    found = recode_data(data, {"x": RecodeRule.parse({"3": ["2"]})})
    assert found.frame["x"].astype(object).where(found.frame["x"].notna(), None).tolist() == ["1", None, "3", "3"]
    assert found.schema["x"].labels == {"1": "one"}


def test_bounds_hold_for_what_is_shown() -> None:
    found = recode_data(table(Kind.COUNT, [18, 40], bounds=(18.0, 90.0)), {"x": RecodeRule.parse(5)})
    assert found.schema["x"].bounds == (15.0, 90.0)
    assert found.frame["x"].tolist() == [15, 40]


def test_codes_beside_each_other_mean_the_same() -> None:
    data = table(Kind.ORDINAL, ["low", "mid", "high"], levels=("low", "mid", "high"))
    rules = {"x": RecodeRule.parse({"above": ["mid", "high"]})}
    ours, theirs = align_levels(data, recode_data(data, rules), rules)
    assert ours.frame["x"].cat.categories.tolist() == ["low", "above", "mid", "high"]
    assert ours.frame["x"].dtype == theirs.frame["x"].dtype
    assert theirs.frame["x"].tolist() == ["low", "above", "above"]


LEVELS = ("1", "2", "3", "4")
RULES = (
    {"r": ["1", "2"]}, {"r": ["1", "2", "3"]}, {"1": ["2"]}, {"2": ["3"]}, {"r": ["3", "4"]}, {"1": ["2", "3", "4"]},
    {"r": ["2"]}, {"a": ["1", "2"], "b": ["3", "4"]}, {"b": ["1", "2"], "a": ["3", "4"]}, {"2": ["1"], "4": ["3"]},
)  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), list(product(RULES, RULES)), ids=str)
def test_a_rule_after_another_makes_what_it_makes_of_exact_values_or_there_is_none(
    ours: object, theirs: object
) -> None:
    """Against brute force: is there any map of what the other shows to what this shows?"""
    mine, other = RecodeRule.parse(ours), RecodeRule.parse(theirs)
    data = table(Kind.CATEGORICAL, list(LEVELS))
    exact = recode_data(data, {"x": mine}).frame["x"].astype(str).tolist()
    shown = recode_data(data, {"x": other}).frame["x"].astype(str).tolist()
    possible = len(set(zip(shown, exact, strict=True))) == len(set(shown))
    composed = mine.remaining_after(other, LEVELS)
    assert (composed is not None) == possible
    if composed is not None:
        left = recode_data(data, {"x": other})
        again = recode_data(Microdata(left.schema, left.frame), {"x": composed})
        assert again.frame["x"].astype(str).tolist() == exact


@pytest.mark.parametrize(("ours", "theirs", "there"), [(10, 5, True), (5, 10, False), (0.3, 0.1, True), (7, 5, False)])
def test_steps_after_steps(ours: float, theirs: float, there: bool) -> None:
    found = RecodeRule.parse(ours).remaining_after(RecodeRule.parse(theirs))
    assert (found is not None) == there
