"""What tells two uses of a method apart in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.engine.execution import execute
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.tui.cli.summary import draw_table, result_table, verdict_table
from sfumato.tui.comparing import compared_text
from sfumato.tui.words import measured, use_text
from sfumato.workspace.reporting.findings import result_tables
from sfumato.workspace.reporting.findings import verdict_table as report_verdicts
from sfumato.workspace.reporting.uses import apart_in, differing, settings_apart

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
    assert settings_apart(both.to_toml()) == {
        "utility.propensity": {"model": "logit", "permutations": 5},
        "risk.identification": {"known": []},
    }


def test_one_use_of_each_method_needs_no_word(small_recipe: Make) -> None:
    assert settings_apart(small_recipe().to_toml()) == {}
    assert differing("utility.propensity", [{"model": "cart"}, {"model": "cart"}]) == {}


def test_rows_of_two_runs_are_told_apart_alike() -> None:
    rows: list[tuple[str, dict[str, Any]]] = [("utility.propensity", {}), ("utility.propensity", {"model": "cart"})]
    assert apart_in([*rows, ("utility.ecdf", {"points": "distinct"})]) == {"utility.propensity": {"model": "logit"}}


@pytest.mark.parametrize(
    ("params", "words"),
    [({}, "model logit, permutations 5"), ({"model": "cart", "known": ["a", "b"]}, "model cart, permutations 5")],
)
def test_a_use_is_told_with_its_defaults(params: dict[str, Any], words: str) -> None:
    apart = {"model": "logit", "permutations": 5}
    assert use_text(params, apart) == words
    assert measured("price", params, apart) == f"price, {words}"


def test_a_list_is_spelled_out_where_uses_differ_in_it_and_else_not() -> None:
    params = {"known": ["age", "sex"], "radius": {"income": "5%"}}
    assert measured("", params).startswith("income ")
    assert measured("", params, {"known": []}).startswith("known age, sex, income ")


def test_every_table_has_a_line_of_its_own_for_each_use(both: Recipe, small_data: Microdata) -> None:
    outcome, apart = execute(both, small_data), settings_apart(both.to_toml())
    averages = [row for row in outcome.rows if row.draw is None]
    report = "".join(str(markup) for _, markup in result_tables(averages, (), apart))
    for text in (result_table(averages, (), apart), draw_table(outcome.rows, apart)):
        lines = [line for line in text.splitlines() if "propensity.pmse" in line or "true_match_rate" in line]
        assert len({line.split("  ")[0] + line[20:60] for line in lines}) >= 4
        for words in ("model logit", "model cart", "known region, age", "known age"):
            assert any(words in line for line in lines), words
    for text in (verdict_table(outcome.verdicts, apart), str(report_verdicts(outcome.verdicts, apart)), report):
        assert "model logit" in text
        assert "model cart" in text


def test_a_comparison_names_the_use(both: Recipe, small_recipe: Make, small_data: Microdata) -> None:
    from sfumato.engine.comparison import compare

    rows = execute(both, small_data).rows
    found = compare(rows, rows)
    apart = apart_in((one.key.rpartition(".")[0], one.params) for one in found)
    text = compared_text("Utility", [one for one in found if one.key == "utility.propensity.pmse"], (1, 2), apart)
    assert "model logit" in text
    assert "model cart" in text
