"""Titles of variables stand beside, or in place of, their short names."""

from sfumato.engine.methods.rows import Row
from sfumato.tui.parts.explain import MeasureDescription, number_facts
from sfumato.tui.parts.variable_titles import title_leading_variable, title_variable, variable_titles
from sfumato.workspace.reporting.explanation import ExplainedNumber

TOML = '[variables]\nlpi = { kind = "continuous", title = "incentive payment" }\nage = { kind = "count" }\n'


def test_titles_are_those_of_the_recipe():
    assert variable_titles(TOML) == {"lpi": "incentive payment"}
    for odd in ("", "[[", "variables = 3", "[variables]\na = 3", "[variables]\na = { title = 3 }"):
        assert variable_titles(odd) == {}


def test_a_title_stands_with_the_name():
    titles = variable_titles(TOML)
    assert title_variable("lpi", titles) == "lpi: incentive payment"
    assert title_variable("age", titles) == "age"
    assert title_leading_variable("lpi, log_normal", titles) == "incentive payment (lpi), log_normal"
    assert title_leading_variable("age, log_normal", titles) == "age, log_normal"


def test_an_explained_number_names_its_variable_in_full():
    row = Row("utility", "ecdf", "max", "lpi", "synthetic", None, None, 0.1, None, None, None, "", "computed", "", {})
    assert ("variable", "lpi: incentive payment") in number_facts(
        ExplainedNumber(row), MeasureDescription("", "", "", ""), variable_titles(TOML)
    )
