"""Titles of variables stand beside, or in place of, their short names."""

from sfumato.engine.methods.rows import Row
from sfumato.tui.parts.explain import Meaning, facts
from sfumato.tui.parts.variable_titles import first_titled, titled, titles_of
from sfumato.workspace.reporting.explanation import FoundNumber

TOML = '[variables]\nlpi = { kind = "continuous", title = "incentive payment" }\nage = { kind = "count" }\n'


def test_titles_are_those_of_the_recipe():
    assert titles_of(TOML) == {"lpi": "incentive payment"}
    for odd in ("", "[[", "variables = 3", "[variables]\na = 3", "[variables]\na = { title = 3 }"):
        assert titles_of(odd) == {}


def test_a_title_stands_with_the_name():
    titles = titles_of(TOML)
    assert titled("lpi", titles) == "lpi: incentive payment"
    assert titled("age", titles) == "age"
    assert first_titled("lpi, log_normal", titles) == "incentive payment (lpi), log_normal"
    assert first_titled("age, log_normal", titles) == "age, log_normal"


def test_an_explained_number_names_its_variable_in_full():
    row = Row("utility", "ecdf", "max", "lpi", "synthetic", None, None, 0.1, None, None, None, "", "computed", "", {})
    assert ("variable", "lpi: incentive payment") in facts(FoundNumber(row), Meaning("", "", "", ""), titles_of(TOML))
