"""The words for numbers, verdicts and parameters, and what tells two uses of a method apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.labels import quantity_of
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount, count_noun
from sfumato.workspace.reporting.comparison import comparison_table
from sfumato.workspace.reporting.results import TableContext, dataset_rows_table, result_table, verdict_table
from sfumato.workspace.reporting.tables import format_table, table_html
from sfumato.workspace.reporting.words import (
    all_parameters,
    brief_limit_text,
    brief_observed_text,
    limit_text,
    method_use_text,
    number,
    observed_text,
    outcome_tally_text,
    params_text,
    people_limit_number,
    records_and_dropped_text,
    rounded_text,
    settings_text,
    target_text,
    varying_settings,
    varying_settings_by_method,
    varying_settings_of_recipe,
)

Make = Callable[..., Recipe]
LOGIT = {"method": "utility.propensity"}
TREE = {"method": "utility.propensity", "model": "cart", "permutations": 2}
RISK = {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}}


@pytest.fixture
def both(small_recipe: Make) -> Recipe:
    return small_recipe(
        measure=[LOGIT, TREE, RISK, {**RISK, "known": ["age"]}],
        threshold=[{"value": "utility.propensity.pmse", "max": 1}],
    )


def test_uses_differ_in_the_settings_that_one_of_them_says(both: Recipe) -> None:
    assert varying_settings_of_recipe(both.to_toml()) == {
        "utility.propensity": {"model": "logit", "permutations": 5},
        "risk.identification": {"known": []},
    }


def test_one_use_of_each_method_needs_no_word(small_recipe: Make) -> None:
    assert varying_settings_of_recipe(small_recipe().to_toml()) == {}
    assert varying_settings("utility.propensity", [{"model": "cart"}, {"model": "cart"}]) == {}


def test_rows_of_two_runs_are_told_apart_alike() -> None:
    rows: list[tuple[str, dict[str, Any]]] = [("utility.propensity", {}), ("utility.propensity", {"model": "cart"})]
    assert varying_settings_by_method([*rows, ("utility.ecdf", {"points": "distinct"})]) == {
        "utility.propensity": {"model": "logit"}
    }


@pytest.mark.parametrize(
    ("params", "words"),
    [({}, "model logit, permutations 5"), ({"model": "cart", "known": ["a", "b"]}, "model cart, permutations 5")],
)
def test_a_use_is_told_with_its_defaults(params: dict[str, Any], words: str) -> None:
    apart = {"model": "logit", "permutations": 5}
    assert method_use_text(params, apart) == words
    assert target_text("price", params, apart) == f"price, {words}"


def test_a_list_is_spelled_out_where_uses_differ_in_it_and_else_not() -> None:
    params = {"known": ["age", "sex"], "radius": {"income": "5%"}}
    assert target_text("", params).startswith("income ")
    assert target_text("", params, {"known": []}).startswith("known age, sex, income ")


def test_every_table_has_a_line_of_its_own_for_each_use(both: Recipe, small_data: Microdata) -> None:
    outcome, apart = execute_run(both, small_data, key=PUBLIC), varying_settings_of_recipe(both.to_toml())
    averages = [row for row in outcome.rows if row.draw is None]
    results, verdicts = result_table(averages, TableContext(apart)), verdict_table(outcome.verdicts, apart)
    for made in (results, dataset_rows_table(outcome.rows, apart)):
        lines = [line for line in format_table(made).splitlines() if "(pMSE)" in line or "for certain" in line]
        assert len({" ".join(line.split())[:80] for line in lines}) >= 4
        for words in ("model logit", "model cart", "known region, age", "known age"):
            assert any(words in line for line in lines), words
    for shown in (format_table(verdicts), str(table_html(verdicts)), str(table_html(results))):
        assert "model logit" in shown
        assert "model cart" in shown


def test_a_comparison_names_the_use(both: Recipe, small_recipe: Make, small_data: Microdata) -> None:
    from sfumato.engine.execution.comparison import compare_rows

    rows = execute_run(both, small_data, key=PUBLIC).rows
    found = compare_rows(rows, rows)
    apart = varying_settings_by_method((one.key.rpartition(".")[0], one.params) for one in found)
    pmse = [one for one in found if one.key == "utility.propensity.pmse"]
    shown = format_table(comparison_table("Utility", pmse, (1, 2), apart))
    assert "model logit" in shown
    assert "model cart" in shown


def test_parameters_are_put_in_words() -> None:
    params = {"radius": {"a": 5, "b": "5%"}, "known": ["x", "y"], "q": 0.9, "whole": True, "none": ""}
    assert settings_text(params) == "radius: a 5, b 5%; known: x, y; q 0.9; whole yes"


@pytest.mark.parametrize(
    ("counts", "words"),
    [({"met": 7}, "✓ 7 met"), ({"met": 1}, "✓ 1 met"), ({"met": 5, "not met": 2}, "✗ 2 of 7 not met"), ({"met": 0}, ""),
     ({"met": 1, "not met": 1, "undecided": 1, "not computed": 1}, "✗ 1 of 4 not met, ~ 1 undecided, ? 1 not computed"),
     ({"met": 2, "undecided": 1}, "~ 1 of 3 undecided")],
)  # fmt: skip
def test_a_tally_of_verdicts_is_told_in_grammar(counts: dict[str, int], words: str) -> None:
    assert outcome_tally_text(counts) == words


def test_records_are_counted_in_grammar() -> None:
    assert (count_noun(1, "record"), count_noun(1200, "record")) == ("1 record", "1,200 records")
    assert records_and_dropped_text(47_621, 1_221) == "47,621 records; 1,221 dropped (missing values)"
    assert records_and_dropped_text(60, 0) == "60 records"


def test_what_says_how_an_interval_was_made_is_told_only_where_uses_differ_in_it() -> None:
    params = {"q": 0.5, "confidence": 0.9, "synthesis": "partial"}
    assert params_text(params) == "q 0.5"
    assert params_text(params, {"confidence": 0.95}) == "confidence 0.9, q 0.5"


def test_a_tree_of_values_is_told_by_how_many_values_it_has() -> None:
    trees = {"work": [["Private", "*"], ["State", "*"]], "sex": [["f", "*"]]}
    told = dict(all_parameters({"hierarchies": trees, "radius": {"income": "5%"}, "subsets": [["a", "b"], ["c"]]}))
    assert told == {"hierarchies": "work of 2 values, sex of 1 value", "radius": "income 5%", "subsets": "a, b, c"}


def test_records_are_called_what_the_recipe_calls_them() -> None:
    years = RecordCount(20_190, "person-years")
    assert records_and_dropped_text(years, 12) == "20,190 person-years; 12 dropped (missing values)"
    assert records_and_dropped_text(RecordCount(1, "person-years")) == "1 person-year"
    assert records_and_dropped_text(RecordCount(80)) == records_and_dropped_text(80) == "80 records"
    verdict = Verdict("risk.identification.true_match_rate", "", None, "max", 0.01, 0.0044, 0.0, "met")
    assert observed_text(verdict, years) == observed_text(verdict, 20_190), "neither noun stands in the cell"
    share = quantity_of("risk.identification.true_match_rate", 0.0044, years)
    assert share.startswith("88.84 of 20,190 person-years (")
    assert "people" not in share


def test_a_ratio_is_a_share_of_what_it_is_compared_with():
    key = "risk.identification.expected_match_risk"
    ratio = Verdict(key, "", None, "max_ratio", 0.2, 0.003026, 0.197, "met", "", {})
    assert limit_text("max_ratio", 0.2, key) == "at most 20 % of the confidential value"
    assert observed_text(ratio) == "0.3 % of the confidential value"
    assert brief_observed_text(ratio) == "0.3 %"
    assert brief_limit_text(limit_text("max_ratio", 0.2, key)) == "≤ 20 % of raw data"
    assert limit_text("max_ratio", 1e-9, key) == "at most 1e-07 % of the confidential value"
    assert limit_text("max_increase", 0.02, "risk.identification.true_match_rate") == (
        "at most 2 points above the confidential value"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.86e-05, "0.000039"), (9.96e-05, "0.0001"), (1.2e-7, "0.00000012"), (-3e-6, "-0.000003"), (2e-9, "2e-09")],
)
def test_a_small_number_is_a_decimal_that_can_be_compared(value, text):
    assert number(value) == text


def test_a_limit_in_people_is_rounded_so_that_it_allows_no_more() -> None:
    assert people_limit_number(41.62) == "41"
    assert people_limit_number(1234.9999999) == "1,235", "a share of a number of people is whole but for rounding"
    assert people_limit_number(41.62, value=41.3) == "41.62", "a value that is allowed does not stand above its limit"
    assert people_limit_number(41.62, value=42.0) == "41"
    assert people_limit_number(41.2, "min") == "42"
    assert people_limit_number(1e-9) == "0"


def test_small_numbers_are_rounded_before_they_are_powers_of_ten() -> None:
    assert rounded_text("-0.00039 %", 1) == "-0.0004 %"
    assert rounded_text("0.000843 %", 2) == "0.00084 %"
    assert rounded_text("0.05 %", 1) == "0.05 %"
