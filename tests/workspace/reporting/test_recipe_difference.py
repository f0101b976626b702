"""What differs between two plans in words: exact, in one line, and harmless."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from sfumato.engine.recipe.difference import plan_differences
from sfumato.workspace.reporting.recipe_difference import (
    LONGEST_VALUE,
    difference_object,
    difference_sentence,
    difference_table,
)
from sfumato.workspace.reporting.tables import format_table


def difference_sentences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [difference_sentence(one) for one in plan_differences(before, now)]


def step(**settings: Any) -> dict[str, Any]:
    return {"synthesis": [{"target": "price", "method": "cart", **settings}]}


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (step(minbucket=5), step(minbucket=7), "synthesis[0] price: minbucket was 5, is 7"),
        (step(), step(minbucket=7), "synthesis[0] price: minbucket: (not set) -> 7"),
        (step(minbucket=7), step(), "synthesis[0] price: minbucket: 7 -> (not set)"),
        (step(), {}, "synthesis[0] price: removed (method cart)"),
        ({"data": {"where": "a > 0"}}, {"data": {"where": "a > 1"}}, "data.where was a > 0, is a > 1"),
        ({"title": "A"}, {"title": "B"}, "title was A, is B"),
        (step(predictors=["a", "b", "c"]), step(predictors=["a", "c", "d"]), "synthesis[0] price: predictors gains d and loses b"),
        (step(predictors=["a", "b"]), step(predictors=["b", "a"]), "synthesis[0] price: predictors was a, b, is b, a"),
        (step(proper=True), step(proper=1), "synthesis[0] price: proper was true, is 1"),
        (step(x=""), step(x=[]), 'synthesis[0] price: x was "", is empty'),
        (step(x=0.1 + 0.2), step(x=0.3), "synthesis[0] price: x was 0.30000000000000004, is 0.3"),
    ],
)  # fmt: skip
def test_a_difference_is_one_exact_line(before: dict[str, Any], now: dict[str, Any], words: str) -> None:
    assert difference_sentences(before, now) == [words]


def test_the_order_of_steps_is_told() -> None:
    one, other = {"target": "a"}, {"target": "b"}
    assert difference_sentences({"synthesis": [one, other]}, {"synthesis": [other, one]}) == [
        "synthesis: the order was a, b; it is b, a"
    ]


def test_long_values_that_differ_at_their_end_are_said_to() -> None:
    assert difference_sentences({"title": "x" * 300 + "a"}, {"title": "x" * 300 + "b"}) == [
        f"title was {'x' * (LONGEST_VALUE - 1)}…, and differs behind that"
    ]


def test_nothing_in_a_plan_commands_a_terminal_or_breaks_a_line() -> None:
    hostile = "a\x1b[2J\nb\u202e"
    found = plan_differences({}, {"title": hostile, "measure": [{"method": hostile, hostile: hostile}]})
    table = format_table(difference_table(found, ("run 1", "run 2")))
    for line in (*map(difference_sentence, found), *table.splitlines()):
        assert line.isprintable(), line
    assert len(table.splitlines()) == 4, "a head of two lines, and two differences"


def test_a_difference_is_written_as_json_whatever_toml_holds() -> None:
    before = {"data": {"a": float("nan"), "b": date(2020, 1, 1)}, "title": "t"}
    found = [difference_object(one) for one in plan_differences(before, {"data": {"a": {"x": [float("inf"), True]}}})]
    assert json.loads(json.dumps(found, allow_nan=False)) == [
        {"where": "data", "setting": "a.x", "kind": "added", "before": None, "now": ["inf", True]},
        {"where": "data", "setting": "a", "kind": "removed", "before": "nan", "now": None},
        {"where": "data", "setting": "b", "kind": "removed", "before": "2020-01-01", "now": None},
        {"where": "title", "setting": "", "kind": "removed", "before": "t", "now": None},
    ]
