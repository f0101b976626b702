"""Published figures in a recipe: what is read, what is refused, which rows they belong beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import PublishedFigure, published_value_for, read_published_figures
from sfumato.engine.recipe.recipe import Recipe

SCHEMA = Schema((Variable("price", Kind.CONTINUOUS), Variable("days", Kind.COUNT)))
METHODS = [
    find_method("utility.ecdf", ""),
    find_method("risk.attribute", ""),
    find_method("studies.intruder_uncertainty", ""),
]
GAP = "utility.ecdf.max_abs_difference"
RISK = "risk.attribute.risk"
SWEPT = "studies.intruder_uncertainty.true_match_rate"
PLAIN: dict[str, Any] = {"source": "Table 1", "value": GAP, "dataset": "synthetic", "figure": 0.031}


@pytest.mark.parametrize(
    "table",
    [
        PLAIN,
        {**PLAIN, "target": "days"},
        {**PLAIN, "value": SWEPT, "level": 0.05},
        {**PLAIN, "value": SWEPT, "level": 0.0},
        {**PLAIN, "value": RISK, "dataset": "confidential", "params": {"radius": {"days": 5, "price": "5%"}}},
        {**PLAIN, "params": {"q": 0.9, "names": ["a", "b"], "whole": True}},
        {**PLAIN, "dataset": "anonymised", "figure": -3.0},
    ],
)
def test_a_figure_comes_back_the_same(table: dict[str, Any]) -> None:
    (figure,) = read_published_figures([table], METHODS, SCHEMA)
    assert figure.to_table() == table
    assert read_published_figures([figure.to_table()], METHODS, SCHEMA) == (figure,)


def test_figures_of_one_table_share_what_it_says() -> None:
    shared = {"source": "Table 3", "value": RISK, "params": {"known": ["room"]}}
    figures = [
        {"dataset": "confidential", "figure": 636.4},
        {"dataset": "synthetic", "figure": 126.07, "params": {"radius": {"days": 5}}},
    ]
    assert read_published_figures([{**shared, "figures": figures}, PLAIN], METHODS, SCHEMA) == (
        PublishedFigure(value=RISK, dataset="confidential", figure=636.4, source="Table 3", params={"known": ["room"]}),
        PublishedFigure(
            value=RISK,
            dataset="synthetic",
            figure=126.07,
            source="Table 3",
            params={"known": ["room"], "radius": {"days": 5}},
        ),
        PublishedFigure(value=GAP, dataset="synthetic", figure=0.031, source="Table 1"),
    )


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        ({"value": "utility.ecdf.max_abs_diference"}, ".value", f'did you mean "{GAP}"?'),
        ({"value": "zzz"}, ".value", f"measured: {GAP}"),
        ({"value": 3}, ".value", "3 must be text"),
        ({"dataset": "syntetic"}, ".dataset", "not one of confidential, synthetic, anonymised"),
        ({"figure": "0.1"}, ".figure", "must be a number"),
        ({"figure": True}, ".figure", "must be a number"),
        ({"figure": float("nan")}, ".figure", "must be a number"),
        ({"target": "prize"}, ".target", 'did you mean "price"?'),
        ({"target": 3}, ".target", "must be text"),
        ({"level": "low"}, ".level", "must be a number"),
        ({"value": SWEPT}, ".level", "needs the level"),
        ({"source": " "}, ".source", "must say where"),
        ({"source": 4}, ".source", "must be text"),
        ({"params": 4}, ".params", "must be a table"),
        ({"params": {"q": float("inf")}}, ".params.q", "must be a number"),
        ({"params": {"a": {"b": [1, None]}}}, ".params.a.b[1]", "must be a number"),
        ({"figur": 1}, ".figur", 'did you mean "figure"?'),
        ({"figures": 1}, ".figures", "must be a list of tables"),
        ({"figures": [{"figur": 1}]}, ".figures[0].figur", 'did you mean "figure"?'),
        ({"figures": [{}, {"figure": "x"}]}, ".figures[1].figure", "must be a number"),
        ({"figurs": [], "figures": []}, ".figurs", "unknown key"),
    ],
)
def test_a_figure_that_cannot_be_is_refused(changes: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_published_figures([{**PLAIN, **changes}], METHODS, SCHEMA)
    assert caught.value.place == f"published[0]{place}"
    assert message in caught.value.message


@pytest.mark.parametrize("key", ["source", "value", "dataset", "figure"])
def test_a_figure_needs_its_source_value_dataset_and_number(key: str) -> None:
    with pytest.raises(BadInput, match="must be given") as caught:
        read_published_figures([{k: v for k, v in PLAIN.items() if k != key}], METHODS, SCHEMA)
    assert caught.value.place == f"published[0].{key}"


PARAMS = {"known": ["room"], "radius": {"days": 5, "price": "5%"}, "q": 0.9}
ROW = Row("risk", "attribute", "risk", "days", "synthetic", None, 0.05, 120.0, params=PARAMS)
FIGURE = PublishedFigure(value=RISK, dataset="synthetic", figure=126.0, source="Table 3", target="days", level=0.05)


@pytest.mark.parametrize(
    "params",
    [{}, {"q": 0.9}, {"radius": {"days": 5.0}}, {"radius": {"price": "5%", "days": 5}}, {"known": ["room"]}, PARAMS],
)
def test_a_figure_belongs_beside_the_row_that_includes_its_parameters(params: dict[str, Any]) -> None:
    assert replace(FIGURE, params=params).matches(ROW)


@pytest.mark.parametrize(
    "params",
    [
        {"q": 0.5}, {"p": 0.9}, {"radius": {"days": 10}}, {"radius": {"days": 5, "rooms": 1}}, {"radius": 5},
        {"known": ["room", "x"]}, {"known": "room"}, {"known": {"room": 1}}, {"q": True},
    ],
)  # fmt: skip
def test_other_parameters_are_another_row(params: dict[str, Any]) -> None:
    assert not replace(FIGURE, params=params).matches(ROW)


@pytest.mark.parametrize(
    "changes",
    [
        {"draw": 1},
        {"dataset": "confidential"},
        {"target": "price"},
        {"target": ""},
        {"level": None},
        {"measure": "other"},
    ],
)
def test_another_row_has_no_figure(changes: dict[str, Any]) -> None:
    assert published_value_for(replace(ROW, **changes), [FIGURE]) is None
    assert published_value_for(ROW, [FIGURE, replace(FIGURE, figure=1.0)]) == 126.0


def test_a_recipe_with_figures_label_and_companions_comes_back_the_same(small_recipe: Callable[..., Recipe]) -> None:
    figure = {**PLAIN, "target": "visits", "params": {"a": {"b": 1}}}
    recipe = small_recipe(published=[figure], label="Bayesian", companions=["other", "folder/third.toml"])
    assert recipe.published[0].target == "visits"
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert recipe.sha256 != small_recipe().sha256


@pytest.mark.parametrize(
    ("companions", "place", "message"),
    [
        ("other", "companions", "must be a list"),
        (["other", 3], "companions[1]", "must be the name"),
        ([" "], "companions[0]", "must be the name"),
        (["a", "b", "a"], "companions[2]", "listed twice"),
    ],
)
def test_companions_are_names(
    small_recipe: Callable[..., Recipe], companions: object, place: str, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        small_recipe(companions=companions)
    assert caught.value.place == place
    assert message in caught.value.message
